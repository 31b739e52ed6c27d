/*
 * owners.h - what the recorded processes belong to, for the profile: containers, pods, units.
 *
 * The commands tell first what they found by a name (owners_add: names and images are the engine's), then each process
 * that is recorded, whoever started it, is put to its owner by its control group (owners_find).
 */
#pragma once

#include <sys/types.h>

struct profile;
struct profile_process;
struct target_found;

void owners_add(struct profile *p, const struct target_found *f);
/* Fills owner and inner_pid of process, which may be a row of p. One that is gone stays as it was. */
void owners_find(struct profile *p, pid_t pid, struct profile_process *process);
