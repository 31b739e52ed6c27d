/*
 * modules.h - the files whose code runs in recorded processes, one module for each file.
 *
 * A module is known by device, inode, size and time of change, so that one file
 * that many processes map is read once. Ids are small numbers from 1, never used
 * again. Executable memory without a file is a module of its process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct modules;
struct processes_sink;
struct proc_mapping;
struct profile;
struct worker;

struct modules *modules_new(struct profile *p, struct worker *w, const struct processes_sink *sink,
			    void *context);
void modules_free(struct modules *ms);

/* The module of a mapping of pid and its bias; opens and reads the file if it is new. *jit is the process's
 * own module for memory without a file, made when first needed (0 = not yet). 0 = this has no module. */
uint32_t modules_of_mapping(struct modules *ms, pid_t pid, uint32_t process, const struct proc_mapping *m,
			    uint32_t *jit, uint64_t *ret_bias);
/* Reads a program before it is started. */
void modules_prepare(struct modules *ms, const char *path);
/* Tells the sink of the tables that were put off by modules_of_mapping. */
void modules_load_tables(struct modules *ms);
uint32_t modules_profile_id(const struct modules *ms, uint32_t module);
uint32_t modules_count(const struct modules *ms);
void modules_hand_over(struct modules *ms, void (*take)(void *context, uint32_t module, int fd), void *context);
