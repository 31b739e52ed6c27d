/*
 * modules.h - the files whose code runs in recorded processes, one module for each file.
 *
 * A module is known by device, inode, size and time of change, so that one file
 * that many processes map is read once. Ids are small numbers from 1, never used
 * again. Executable memory without a file is a module of its process.
 *
 * Files are read on a thread (reader.h): a module has no place for code at first,
 * then it has, and some time later its unwind table is handed to the sink.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct modules;
struct processes_sink;
struct proc_mapping;
struct profile;
struct unwind_table;

struct modules *modules_new(struct profile *p, bool cached); /* see processes_new() */
/* Before modules_step() and modules_jit(). */
void modules_set_sink(struct modules *ms, const struct processes_sink *sink, void *context);
void modules_free(struct modules *ms);

/* The results of modules_of_mapping for a mapping without a file. */
enum {
	MODULES_MEMORY = 0,            /* memory without a file, or with one that cannot be opened */
	MODULES_IGNORED = 0xffffffff,  /* the kernel's own */
	MODULES_LATER = 0xfffffffe,    /* too many new files at once: ask again */
};
/* The module of a mapping of pid. A file that is new is opened, and read some time later. Where pid is gone (or 0: it is
 * not known what has it now) its parent may see the same file by the same name; 0: there is none. */
uint32_t modules_of_mapping(struct modules *ms, pid_t pid, pid_t parent, const struct proc_mapping *m);
/* The process's own module for memory without a file, *jit, made when first needed (0 = not yet). */
uint32_t modules_jit(struct modules *ms, uint32_t process, uint32_t *jit);

enum modules_place { MODULES_WAIT, MODULES_NOWHERE, MODULES_THERE };
/* Where code at an offset of a file has its place in the module; MODULES_WAIT: that is not known yet. */
enum modules_place modules_place(const struct modules *ms, uint32_t module, uint64_t offset, uint64_t *ret_address);

/* Queues a program before it is started. */
void modules_prepare(struct modules *ms, const char *path);
/* Takes what was read meanwhile; true when places became known. Never waits. */
bool modules_step(struct modules *ms);
/* Calls fn for each table that modules_step() will hand to the sink. */
void modules_each_table(const struct modules *ms, void (*fn)(void *context, const struct unwind_table *table), void *context);
/* Is anything being read? */
bool modules_busy(const struct modules *ms);
int modules_event(const struct modules *ms); /* readable when modules_step() has something to do */
uint32_t modules_profile_id(const struct modules *ms, uint32_t module);
uint32_t modules_count(const struct modules *ms); /* of those that are known to the profile */
/* The end: what is still being read is called off. */
void modules_hand_over(struct modules *ms, void (*take)(void *context, uint32_t module, int fd), void *context);
/* Copies of the descriptors that there are by now. */
void modules_copy_files(const struct modules *ms, void (*take)(void *context, uint32_t module, int fd), void *context);
