/*
 * otherbuild.h - symbols of another build of the same sources, for a module that has none.
 *
 * A build-id names one build. A user who has only the stripped release may still build the same
 * sources again, or have another image of them. Its names are right where its functions are: so
 * the functions of the module (by its unwind information, or those that a capture kept of it) are
 * compared with those of the other build. It is used when nearly all of them have the same start
 * and size, and even then it names only the functions that agree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct find;

/* Of 100 functions that are compared, so many must agree, and so many at all: the few that the C library's start files
 * bring along agree in every program. */
enum { OTHERBUILD_PERCENT = 99, OTHERBUILD_LEAST = 3 };

/* Looks through the files of --symbols; takes the best one that qualifies as f->debug, and says so in f->other. The
 * entries keep how far they agreed (find.h). */
void otherbuild_search(struct find *f);
/* May this build name an address of the module? */
bool otherbuild_names(const struct find *f, uint64_t address);
/* "names of /x/reth (build-id ab12...) are used for reth: 41,210 of 41,305 functions agree in start and size" */
void otherbuild_tell(const struct find *f, char *out, size_t size);
