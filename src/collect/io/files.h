/*
 * files.h - the files, sockets and pipes that records name by a key, as frames of the profile.
 *
 * Regular files, devices and named pipes are their path within the target's mount
 * namespace (" (deleted)" after it when its name was gone already, "…/" before it
 * when it was too deep). Sockets are told apart by kind and by the port that says
 * most, not by connection: a server has too many of those.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collect/io/sharedio.h"

struct files;
struct profile;

struct files *files_new(struct profile *p);
void files_free(struct files *f); /* NULL is fine */

/* A record of RECORD_FILE; one that is cut off or makes no sense is left out. */
void files_learn(struct files *f, const struct shared_file *r, size_t size);
/* The note frame for a key; a word in brackets where it is not known, or for calls that have no file. */
uint32_t files_frame(const struct files *f, uint64_t key, enum shared_io_op op);
