/*
 * profile.h - the model: what collectors and importers write, what analyses read.
 *
 * Everything is in append-only tables, and an id is an index into its table:
 * ids are dense, stable and cheap. The capture file (capture.h) holds the same
 * tables and is written by appending what is new; the model knows nothing of it.
 *
 *	sample -> thread -> process
 *	       -> event                what was measured, and its unit
 *	       -> stack -> frame -> module
 *	                        -> lines -> function      innermost inlined call first
 *
 * A stack is a node of a prefix tree: a node has a frame and a parent, towards
 * the outermost caller; node 0 is the empty stack. A frame is an address in a
 * module, or only a name (imported profiles). A stack that could not be unwound
 * to its end begins with a marker frame that says why (profile_truncation_frame).
 *
 * Strings are interned; string 0 is "". Pointers into tables live until the next
 * append to that table. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/block.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/nodes.h"

#define PROFILE_NONE UINT32_MAX

/* --- what was measured --- */
struct profile_event {
	uint32_t name;       /* "cpu" */
	uint32_t unit;       /* "ns", "bytes", "count" */
	uint32_t describe;   /* "CPU time, sampled at 999 Hz" */
	uint64_t period;     /* usual value of one sample, 0 = varies */
};

/* --- who --- */
struct profile_process {
	uint32_t pid, parent_pid;  /* in the namespace of the recorder */
	uint32_t name;             /* comm after the last exec seen */
	uint32_t exe, command;     /* path; command line with spaces */
	uint32_t owner;            /* 1 + index into owners, 0 = none */
	uint32_t inner_pid;        /* as its own pid namespace sees it; 0 = the same, or not known */
	uint64_t start_ns, end_ns; /* within the recording; end 0 = still alive */
};

/* The owner of processes, from their cgroup. All are strings; 0 = unknown. */
struct profile_owner {
	uint32_t kind;             /* "container", "unit" */
	uint32_t name;             /* of the container or the unit */
	uint32_t container;        /* id */
	uint32_t engine, image;    /* "docker", "tiny:1" */
	uint32_t pod;              /* Kubernetes: "namespace/pod" */
	uint32_t cgroup;           /* path of the group */
};

struct profile_thread {
	uint32_t process, tid;     /* tid 0: imported, see profile_thread_imported() */
	uint32_t name;
	uint32_t comm;             /* the kernel's name where an analysis made another (threadrole.h); else 0; never written */
	uint64_t start_ns, end_ns; /* first and last seen; end 0 = alive at the end */
	uint64_t cpu_ns;           /* CPU time during the recording, as the kernel accounts it; 0 = unknown */
	/* With the wait collector: the thread's whole time in the recording is these three. */
	uint64_t run_ns, queue_ns, blocked_ns;
};

/* --- where --- */
enum profile_module_kind {
	MODULE_FILE,      /* an ELF file */
	MODULE_KERNEL,    /* path is "[kernel]" or "[name of a kernel module]" */
	MODULE_VDSO,
	MODULE_JIT,       /* executable memory without a file; addresses are the process's */
	MODULE_NONE,      /* names without addresses: markers, imports */
};

struct profile_module {
	uint32_t path;
	enum profile_module_kind kind;
	uint32_t process;      /* JIT: whose; else PROFILE_NONE */
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0 = none */
};

struct profile_mapping {
	uint32_t process, module;
	uint64_t start, end; /* addresses in the process */
	uint64_t bias;       /* address in the process - address in the module */
	uint64_t time_ns;    /* when seen */
};

/* Where the name of a function is from. From NAMED_START on it is no name but a place, for want of one: such frames count
 * as unnamed, and symbols that turn up later replace it. */
enum profile_named {
	NAMED_SYMBOL,  /* a symbol table, debug information, a JIT's map, the kernel's list */
	NAMED_DYNAMIC, /* .dynsym of a stripped file */
	NAMED_PLT,     /* the relocation that a stub of the PLT jumps through: "memcpy@plt" */
	NAMED_BUILD,   /* another build, in which start and size of this function are the same */
	NAMED_START,   /* "reth+0x24bb400": where the function starts, by the unwind information */
	NAMED_PAGE,    /* "reth+0x24bb000 (page)": no function is known there */
	NAMED_ADDRESS, /* "[kernel]+0x1234": the address itself */
	NAMED_KINDS,
};

struct profile_function {
	uint32_t name;    /* demangled, as shown */
	uint32_t linkage; /* as in the symbol table; 0 = same as name */
	uint32_t file;    /* source file, 0 = unknown */
	uint32_t module;
	uint32_t named;   /* enum profile_named; does not tell two functions apart */
};

/* A function of a file by its unwind information, kept for sampled functions without a name: symbols of another build
 * are compared with it when the file is gone. */
struct profile_range {
	uint32_t module;
	uint64_t start, end; /* addresses in the module */
};

struct profile_line {
	uint32_t function;
	uint32_t line; /* where in it, 0 = unknown */
	bool inlined;  /* into the next line of the same frame */
};

enum profile_frame_kind {
	FRAME_USER,
	FRAME_KERNEL,
	FRAME_TRUNCATED, /* a marker: its function's name is the reason */
	FRAME_NOTE,      /* what a leaf was about, as a frame below it: a file's path, "[preempted]" */
};

struct profile_frame {
	uint32_t module;
	enum profile_frame_kind kind;
	uint64_t address;  /* in the module: an ELF virtual address, a JIT address, or in the kernel the distance from
			      where the kernel or its module begins (older captures: its address, which has the
			      highest bit set); for callers the return address - 1 */
	uint32_t first_line, line_count; /* into lines; count 0 = not symbolized */
};

struct profile_sample {
	uint64_t time_ns; /* since the start of the recording */
	uint64_t value;
	uint32_t thread, stack;
	uint32_t event;
	uint32_t count; /* how many of its kind it stands for: waits that were added up; 0 = 1 */
};

/* A long wait that somebody ended. */
struct profile_wake {
	uint64_t time_ns, blocked_ns, queue_ns;
	uint32_t thread, stack;
	uint32_t waker;       /* thread, PROFILE_NONE when it is not recorded */
	uint32_t waker_name;  /* string */
	uint32_t waker_stack;
};

/* A long await of an async task that ended. The task lay in its runtime's queue for queue_ns after that. */
struct profile_taskwake {
	uint64_t time_ns;       /* when it was woken: the await began await_ns before */
	uint64_t await_ns, queue_ns;
	uint32_t type;          /* string: the name of its type, without "task " */
	uint32_t task;          /* its number, from 1 */
	uint32_t thread;        /* that polled it next */
	uint32_t waker;         /* thread, PROFILE_NONE when it is not recorded */
	uint32_t waker_type;    /* string: of the task that the waker polled just then, 0 = none */
	uint32_t waker_task;    /* its number, 0 = none */
	uint32_t waker_stack;   /* 0 = was not taken */
};

/* A span of time that has a name: a block, a phase. */
struct profile_mark {
	uint64_t start_ns, end_ns; /* the same: a moment */
	uint32_t name, kind;       /* strings: "block 24443168", "block" */
	uint32_t thread;           /* that it is about, PROFILE_NONE = none */
	struct block block;        /* what is known of it as a block */
};

/* A slot of time whose rows were summed to keep a long recording small: one sample stands for all of an event, thread and
 * stack in it, has the slot's start as its time, and its count says of how many. Samples that had nothing to be summed
 * with keep their own time. */
struct profile_summed {
	uint64_t start_ns, end_ns; /* from start on, before end */
};

/* A value over time: memory, pressure. */
struct profile_series {
	uint32_t name, unit; /* strings */
};
struct profile_point {
	uint64_t time_ns;
	int64_t value;
	uint32_t series;
};

/* How many events fell between powers of two: counts[i] is for values from 2^i on (counts[0] also for 0). */
struct profile_histogram {
	uint32_t name, unit; /* "io.read latency", "ns" */
	uint64_t counts[64];
};

/* A counted fact about the recording ("samples.lost", "truncated.no table", "self.cpu_ns"). */
struct profile_counter {
	uint32_t name;
	uint64_t value;
};

/* The module of our own BPF programs, where a sample found one of them at work. */
#define PROFILE_OWN_MODULE "[gasflame]"

/* In a span of time one stack stands for another: code that was made at run time took the place of other code, which is
 * known only at the end (profile_replace_stacks()). */
struct profile_replaced {
	uint32_t stack, with;
	uint64_t start_ns, end_ns; /* from start on, before end */
};

/* Addresses of the kernel have all of these bits, distances in it none. */
#define PROFILE_KERNEL_HALF 0xffff800000000000ULL

struct profile_kernel_base {
	uint32_t module;
	uint64_t base;
};

struct profile {
	struct strtab strings;
	VEC(struct profile_event) events;
	VEC(struct profile_owner) owners;
	VEC(struct profile_process) processes;
	VEC(struct profile_thread) threads;
	VEC(struct profile_module) modules;
	VEC(struct profile_mapping) mappings;
	VEC(struct profile_range) ranges;
	VEC(struct profile_function) functions;
	VEC(struct profile_line) lines;
	VEC(struct profile_frame) frames;
	struct profile_nodes stacks;
	VEC(struct profile_sample) samples;
	VEC(struct profile_wake) wakes;
	VEC(struct profile_taskwake) taskwakes;
	VEC(struct profile_mark) marks;
	VEC(struct profile_summed) summed; /* by start; of each start one. Empty: all samples are as they were recorded */
	VEC(struct profile_series) series;
	VEC(struct profile_point) points;
	VEC(struct profile_histogram) histograms;
	VEC(struct profile_counter) counters;
	VEC(struct profile_replaced) replaced; /* for what is on disk already; never written itself */

	uint32_t target;        /* as the user named it */
	uint32_t host, kernel;  /* name of the machine, release */
	uint64_t start_wall_ns; /* CLOCK_REALTIME at time 0 */
	uint64_t duration_ns;
	bool finished;          /* ended normally: durations, counters and symbols are final */
	bool redacted;          /* to be written without what says whose it is (redact.h), or read so */

	/* Where modules of the kernel begin, while that is known; never written: it is nobody else's business. */
	VEC(struct profile_kernel_base) kernel_bases;

	/* Indexes, kept by the functions below. */
	struct map frame_index, function_index, named_index, counter_index, range_index;
};

struct profile *profile_new(void);
void profile_free(struct profile *p); /* NULL is fine */
void profile_freep(struct profile **p);

static inline const char *profile_str(const struct profile *p, uint32_t id)
{
	return strtab_get(&p->strings, id);
}
uint32_t profile_string(struct profile *p, const char *s);

/* Is it no thread of a system, but the outermost frame of imported stacks? Then an empty stack is whole. */
static inline bool profile_thread_imported(const struct profile *p, uint32_t thread)
{
	return thread < p->threads.n && !p->threads.v[thread].tid;
}

/* For how long it has been there at a moment of the recording; 0 if it came later. */
static inline uint64_t profile_thread_age_ns(const struct profile_thread *t, uint64_t now_ns)
{
	return now_ns > t->start_ns ? now_ns - t->start_ns : 0;
}

/* These append and return the id. */
uint32_t profile_add_event(struct profile *p, const char *name, const char *unit,
			   const char *describe, uint64_t period);
uint32_t profile_add_process(struct profile *p, const struct profile_process *process);
uint32_t profile_add_thread(struct profile *p, const struct profile_thread *thread);
uint32_t profile_add_module(struct profile *p, const struct profile_module *module);
void profile_add_mapping(struct profile *p, const struct profile_mapping *mapping);
void profile_add_sample(struct profile *p, const struct profile_sample *sample);
uint32_t profile_add_series(struct profile *p, const char *name, const char *unit);
/* The event of that name and unit (NULL: any), or PROFILE_NONE. */
uint32_t profile_find_event(const struct profile *p, const char *name, const char *unit);
/* The series of that key (keys.h), made with its unit if there is none. */
uint32_t profile_series(struct profile *p, const char *key);
void profile_add_point(struct profile *p, uint32_t series, uint64_t time_ns, int64_t value);
/* The histogram of that name, made if there is none; pointer valid until the next one is made. */
struct profile_histogram *profile_add_histogram(struct profile *p, const char *name, const char *unit);
/* The same for a key, which has the unit. */
struct profile_histogram *profile_histogram(struct profile *p, const char *key);
void profile_add_mark(struct profile *p, const struct profile_mark *mark);
void profile_add_wake(struct profile *p, const struct profile_wake *wake);
void profile_add_taskwake(struct profile *p, const struct profile_taskwake *wake);
/* In any order; of two with the same start the longer stays. */
void profile_add_summed(struct profile *p, const struct profile_summed *slot);
/* The slot that holds a moment; NULL: samples of that time are as they were recorded. */
const struct profile_summed *profile_summed_at(const struct profile *p, uint64_t time_ns);
/* The slot for which a sample stands; NULL: it is not the sum of a slot. */
static inline const struct profile_summed *profile_summed_of(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_summed *slot = p->summed.n && s->count > 1 ? profile_summed_at(p, s->time_ns) : NULL;

	return slot && slot->start_ns == s->time_ns ? slot : NULL;
}

/* The owner with that container id, or of that kind and group where it has none, made of x if there is none. 1 + index.
 */
uint32_t profile_owner(struct profile *p, const struct profile_owner *x);

/* These intern: the same arguments give the same id. */
uint32_t profile_function(struct profile *p, const struct profile_function *function);
uint32_t profile_frame(struct profile *p, uint32_t module, enum profile_frame_kind kind,
		       uint64_t address);
/* A frame that has only a name: already symbolized, module may be PROFILE_NONE. */
uint32_t profile_named_frame(struct profile *p, uint32_t module, enum profile_frame_kind kind,
			     const char *name);
uint32_t profile_truncation_frame(struct profile *p, const char *reason);
uint32_t profile_stack(struct profile *p, uint32_t parent, uint32_t frame);

/* Keeps the range of a function, once. */
void profile_add_range(struct profile *p, uint32_t module, uint64_t start, uint64_t end);
/* Has the frame no name, or only a place in place of one (NAMED_START and after)? */
bool profile_frame_unnamed(const struct profile *p, uint32_t frame);

/* Gives a frame its names: innermost first. Names that it had are dropped. */
void profile_set_lines(struct profile *p, uint32_t frame, const struct profile_line *lines,
		       uint32_t count);

/* A frame like another one, to be given another name. */
uint32_t profile_frame_again(struct profile *p, uint32_t frame);
/* Gives samples and wakes, also those of tasks, their right stacks, in memory and, with the next flush, on disk. list is sorted by stack and
 * time; once for a profile. */
void profile_replace_stacks(struct profile *p, const struct profile_replaced *list, size_t n);
/* Returns the stack to use for one that was recorded at a time. */
uint32_t profile_replaced_stack(const struct profile *p, uint32_t stack, uint64_t time_ns);

/* Where a module of the kernel begins; 0 = not known. */
void profile_set_kernel_base(struct profile *p, uint32_t module, uint64_t base);
uint64_t profile_kernel_base(const struct profile *p, uint32_t module);

/* Counters by key (keys.h). _of: of one of a family. */
void profile_count(struct profile *p, const char *key, uint64_t add);
void profile_count_of(struct profile *p, const char *family, const char *which, uint64_t add);
void profile_count_set(struct profile *p, const char *key, uint64_t value);
void profile_count_set_of(struct profile *p, const char *family, const char *which, uint64_t value);
uint64_t profile_counter(const struct profile *p, const char *key);
uint64_t profile_counter_of(const struct profile *p, const char *family, const char *which);

/*
 * Appends all of from to p. Joined are: processes of one pid and program (exe, or the name where it
 * is unknown), threads of one process, tid and name, modules of one path and build-id, functions,
 * frames, stacks; events by name and unit (different units of one name fail with -EINVAL and leave p
 * as it is; periods that differ become 0), and so are histograms, which add up; series by name and
 * unit. Counters, durations and the threads' times add up: the usual merge is of recordings of one
 * target taken one after the other, and shares of its time stay right. Times stay relative to each
 * recording's own start; start_wall_ns is the earliest. finished: all are.
 */
struct err;
int profile_merge(struct profile *p, const struct profile *from, struct err *err);

/* Does the stack begin with a truncation marker? If so *ret_reason (may be NULL) is its string id. */
bool profile_stack_truncated(const struct profile *p, uint32_t stack, uint32_t *ret_reason);
