/*
 * proc.h - readers of /proc. Everything there may vanish between two lines: -ESRCH then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct proc_mapping {
	uint64_t start, end, offset, inode;
	uint32_t device_major, device_minor;
	bool executable, writable;
	char *path; /* "" for anonymous; may end in " (deleted)"; escapes as the kernel wrote them are undone */
};
struct proc_maps {
	VEC(struct proc_mapping) list;
};

/* Pure parser of the text of a maps file, for fuzzers too; lines that do not parse are skipped and counted. */
size_t proc_maps_parse(const char *text, size_t n, struct proc_maps *ret);
/* Calls lines with whole lines of a file of /proc/PID, as many as fit, from its start to its end. */
typedef void proc_lines_fn(void *context, const char *text, size_t n);
int proc_read_lines(pid_t pid, const char *name, proc_lines_fn *lines, void *context);

int proc_maps_read(pid_t pid, bool executable_only, struct proc_maps *ret);
void proc_maps_done(struct proc_maps *m);

struct proc_ids {
	VEC(pid_t) list;
};
int proc_list(struct proc_ids *ret);               /* all processes */
int proc_threads(pid_t pid, struct proc_ids *ret); /* tids of one */
int proc_children(pid_t pid, struct proc_ids *ret); /* direct children, and theirs, all the way down */

struct proc_stat {
	char name[32]; /* comm */
	char state;
	pid_t parent;
	uint64_t cpu_ns;       /* user + system, ticks scaled */
	uint64_t start_ticks;  /* tells a reused pid apart */
	uint64_t minor_faults, major_faults;
	uint32_t threads;
	uint64_t rss_bytes;
};
int proc_stat(pid_t pid, struct proc_stat *ret);
uint64_t proc_started(pid_t pid); /* start_ticks; 0: there is no such process */
int proc_thread_stat(pid_t pid, pid_t tid, struct proc_stat *ret);
/* From schedstat: nanoseconds on the CPU and in the run queue. */
int proc_schedstat(pid_t pid, pid_t tid, uint64_t *ret_cpu_ns, uint64_t *ret_queue_ns);

struct proc_status {
	uid_t uid, euid;
	pid_t tgid, inner_pid; /* inner: as its own pid namespace sees it */
	uint64_t cap_effective;
	uint64_t vm_locked_bytes;
	int seccomp; /* 0, 1, 2 */
};
int proc_status(pid_t pid, struct proc_status *ret);

struct proc_memory {
	uint64_t rss_bytes, anon_bytes, file_bytes, shared_bytes; /* rss is the sum of the others */
	uint64_t swap_bytes;
	uint64_t page_table_bytes, peak_bytes, virtual_bytes, huge_bytes; /* peak: of rss; huge: hugetlbfs, not in rss */
	uint32_t threads;
};
int proc_memory(pid_t pid, struct proc_memory *ret);

char *proc_command(pid_t pid); /* arguments joined by spaces; "" for kernel threads; caller frees, NULL if gone */
char *proc_exe(pid_t pid);     /* link of exe without " (deleted)"; caller frees, NULL if unreadable */
