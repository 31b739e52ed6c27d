/*
 * stillrunning.h - checks whether the recorded process and kernel are still running. A capture may be read
 * days later, or on another machine, where the same pid and the same kernel address mean something
 * else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profile;

/* Recorded on this machine, with this kernel, since it booted. True where the profile does not say. */
bool stillrunning_kernel(const struct profile *p);
/* The pid of a process of the profile if that very process still runs; 0 if not. */
pid_t stillrunning_pid(const struct profile *p, uint32_t process);
/* A running process that maps the module, 0 = none. */
pid_t stillrunning_pid_of_module(const struct profile *p, uint32_t module);
