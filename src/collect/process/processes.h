/*
 * processes.h - the processes that are recorded, their threads, and what is mapped where.
 *
 * Life: new -> add (the targets) -> fork, exec, dirty, exit as events come in,
 * refresh after each batch -> finish -> free. Files are opened when first seen
 * (map_files: the very file that is mapped) and kept open, so that one that is
 * deleted or replaced later still has its names. Their unwind tables are made by
 * the unprivileged child, for which nobody waits, and handed to a sink: BPF maps,
 * or the unwinder of the fallback.
 *
 * Module ids here are small numbers from 1, never used again; processes_module()
 * gives the profile's module for one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct proc_ids;
struct proc_mapping;
struct processes;
struct profile;
struct shared_code_key;
struct shared_mapping;
struct unwind_table;
struct worker_layout;

/* Receives changes. table is NULL for a module that has none. born: when the process was started, in ticks
 * as in /proc/PID/stat; a process with the pid but another time is another process. */
struct processes_sink {
	void (*announce)(void *context, uint32_t module);
	void (*table)(void *context, uint32_t module, const struct unwind_table *table);
	void (*mappings)(void *context, pid_t pid, uint64_t born, const struct shared_mapping *list, uint32_t count);
	void (*gone)(void *context, pid_t pid, uint64_t born);
	/* Which file a module is, and where its code lies; again for each name that the kernel has for the file. May be NULL. */
	void (*file)(void *context, uint32_t module, const struct shared_code_key *file, const struct worker_layout *layout);
};

/* cached: unwind tables that were made before are taken from the cache folder (tablecache.h), and new ones kept there. */
struct processes *processes_new(struct profile *p, bool cached);
/* Before any other call but processes_foresee() and processes_prepare(). */
void processes_set_sink(struct processes *ps, const struct processes_sink *sink, void *context);
/* Has the files of a process read that will be added: they are read on a thread, while others set up the sink. */
void processes_foresee(struct processes *ps, pid_t pid);
void processes_free(struct processes *ps);
/* Does the kernel side find the mappings of young processes by itself? Then less is read and handed on of them. */
void processes_set_finds_young(struct processes *ps, bool finds);
/* The moment from which times in the profile count. */
void processes_set_start(struct processes *ps, uint64_t start_mono_ns);

/* Begins with a process that runs; -ESRCH if it does not. starting: it is about to execute its program,
 * and what it maps now is of no interest. */
int processes_add(struct processes *ps, pid_t pid, bool starting, struct err *err);
/* Adds a process that is found while the recording goes on; its past is not known. main: it is a target
 * itself. False: it is known, or does not run. */
bool processes_join(struct processes *ps, pid_t pid, bool main, uint64_t mono_ns);
/* When it joined; 0: it was there from the start, or is a child of one that is recorded. */
uint64_t processes_joined_ns(const struct processes *ps, pid_t pid);
/* How many of those asked for live, as of the last look; their pids are appended to ret, which may be NULL. */
uint32_t processes_mains(const struct processes *ps, struct proc_ids *ret);
/* Does a process run the program, or have the name, of one that was asked for? */
bool processes_looks_like(const struct processes *ps, pid_t pid);
/* Has the first thread of any process ended since the last call? Then it is time to look who is alive. */
bool processes_ended(struct processes *ps);
/* Calls fn for each table of these that was read, and that the sink will get. May be called before there is a sink. */
void processes_each_table(const struct processes *ps, void (*fn)(void *context, const struct unwind_table *table), void *context);
/* Queues a program that is about to be started, so that its first samples have a table. */
void processes_prepare(struct processes *ps, const char *path);

/* Times are CLOCK_MONOTONIC. Unknown pids are ignored but by fork (of a known parent) and thread. */
void processes_fork(struct processes *ps, pid_t parent, pid_t child, uint64_t mono_ns);
/* The pid was given to a process at that moment: whoever had it before is over. */
void processes_reused(struct processes *ps, pid_t pid, uint64_t mono_ns);
void processes_exec(struct processes *ps, pid_t pid, uint64_t mono_ns);
/* Calls fn for each new executable mapping of a known process whose path contains part; NULL: no more. */
typedef void processes_map_fn(void *context, pid_t pid, const char *path);
void processes_watch_maps(struct processes *ps, const char *part, processes_map_fn *fn, void *context);
/* Applies the kernel's record of a process's new mapping. */
void processes_map(struct processes *ps, pid_t pid, const struct proc_mapping *record);
void processes_dirty(struct processes *ps, pid_t pid); /* records are not enough: all is read again, when it is time to */
void processes_dirty_all(struct processes *ps); /* events were lost */
void processes_rename(struct processes *ps, pid_t pid, pid_t tid, const char *name);
/* A thread begins with the name of the one that started it, but for one that is known already. One that has ended and
 * had the same number was another. */
void processes_thread_start(struct processes *ps, pid_t pid, pid_t tid, pid_t parent_pid, pid_t parent_tid,
			    uint64_t mono_ns);
void processes_thread_exit(struct processes *ps, pid_t pid, pid_t tid, uint64_t mono_ns);
/* Takes in what has changed. Never waits for files to be read. */
void processes_refresh(struct processes *ps);
/* The same at once, and waits for files that are being read, so long at most; false: some still are. */
bool processes_settle(struct processes *ps, uint64_t patience_ns);
int processes_event(const struct processes *ps); /* readable when a file was read: refresh then */
/* How long to wait for events at most: less where something was put off for a moment. */
int processes_timeout(const struct processes *ps, int timeout_ms);

bool processes_knows(const struct processes *ps, pid_t pid);
/* Is what has the pid now, alive or a zombie, the process that is known by it? */
bool processes_still(struct processes *ps, pid_t pid);
/* Records that were all written before this call come now. A process that is still there after the last of them was so at each: one look at it
 * does for all of them. */
void processes_begin_reading(struct processes *ps);
/* They are over. False: they have told of nothing but threads, and of names. */
bool processes_end_reading(struct processes *ps);
/* The profile's thread; made when first seen. name "": not known, it is looked up then. */
uint32_t processes_thread(struct processes *ps, pid_t pid, pid_t tid, const char *name, uint64_t mono_ns);
uint32_t processes_module(const struct processes *ps, uint32_t module);
/* Mappings of a process as they are now; NULL if it is not known. */
const struct shared_mapping *processes_mappings(const struct processes *ps, pid_t pid, uint32_t *ret_count);

/* Looks who is still alive: how many are. */
uint32_t processes_check_alive(struct processes *ps, uint64_t mono_ns);
/* CPU time that the processes have used so far since they were added. */
uint64_t processes_cpu_ns(const struct processes *ps);
/* Fills in what is only known at the end: CPU times. */
void processes_finish(struct processes *ps, uint64_t mono_ns);
/* Every file that was seen, by the profile's module; take() owns the descriptor from then on. */
void processes_hand_over(struct processes *ps, void (*take)(void *context, uint32_t module, int fd),
			 void *context);
/* The same while it goes on, with copies of the descriptors. */
void processes_copy_files(const struct processes *ps, void (*take)(void *context, uint32_t module, int fd), void *context);
/* Was a module or mapping added since the last call? Then the capture wants a flush. */
bool processes_changed(struct processes *ps);
