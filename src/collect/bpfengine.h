/*
 * bpfengine.h - the BPF side of a session: the loaded object, the unwind tables, the ring, and
 * the events of the kernel that say what the targets map, fork and execute.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/collectors.h"

struct bpf_map;
struct bpfengine;
struct err;
struct gasflame_bpf;
struct kernelmap;
struct processes_sink;
struct session;
struct shared_mapping;
struct shared_young;
struct shared_young_mapping;

/* Loads the programs of the session's collectors, and those that follow forks and execs. */
int bpfengine_open(struct session *s, struct bpfengine **ret, struct err *err);
void bpfengine_close(struct bpfengine *e);
extern const struct processes_sink bpfengine_sink; /* its context is the struct bpfengine */

/* Tells k where our programs lie. */
void bpfengine_show_programs(struct bpfengine *e, struct kernelmap *k);
struct gasflame_bpf *bpfengine_skeleton(struct bpfengine *e);
/* Adds up an entry of a per-CPU array, a struct of 64-bit counters, over all CPUs; false: it cannot be read. */
bool bpfengine_sum(const struct bpf_map *map, uint32_t key, void *ret, size_t size);
/* Reads and empties a hash map that no program writes now: fn gets each key with its value. */
typedef void bpfengine_entry_fn(struct session *s, const void *key, const void *value);
void bpfengine_empty(struct session *s, int map, size_t key_size, size_t value_size, bpfengine_entry_fn *fn);
/* The profile's stack for a hash that a record names; PROFILE_NONE if its frames were lost. */
uint32_t bpfengine_stack(struct bpfengine *e, uint64_t hash);
/* The rule for an address of a module, for userstack_walk(): context is the struct engine. */
uint64_t bpfengine_rule(void *context, uint32_t module, uint64_t address);
/* Is the table of a module still being made? */
bool bpfengine_building(const struct bpfengine *e, uint32_t module);
/* See codemap_place(). */
bool bpfengine_place(const struct bpfengine *e, const struct shared_young_mapping *m, struct shared_mapping *ret);
/* See codemap_learn(). */
void bpfengine_learn(struct bpfengine *e, const struct shared_young *y);
/* Does the kernel side find the mappings of young processes by itself? */
bool bpfengine_finds_young(void);
/* Attaches what follows forks and execs: before the targets are looked at, so that none slips by. */
int bpfengine_follow(struct bpfengine *e, struct err *err);
/* Waits up to timeout for something to do and does it. Negative errno when the wait failed. */
int bpfengine_poll(struct bpfengine *e, int timeout_ms);
/* Reads the records that are there, and does nothing else: no system call. */
void bpfengine_consume(struct bpfengine *e);
/* Reads what is left in the rings. */
void bpfengine_drain(struct bpfengine *e);
/* A program of ours, and what it cost so far by the kernel's own statistics. */
struct bpfengine_program {
	const char *name, *section;
	uint64_t ns, runs;
};
/* Calls fn for each program that is loaded. False: the kernel keeps no statistics for us, ns and runs are 0. */
bool bpfengine_programs(struct bpfengine *e, void (*fn)(void *context, const struct bpfengine_program *p), void *context);
/* Records of a collector that were handled so far. */
uint64_t bpfengine_records(const struct bpfengine *e, enum collector_id owner);
/* How often the kernel did not run a program of ours, as the same one, or any other, was at work on that CPU. */
uint64_t bpfengine_missed(struct bpfengine *e);
/* Processes that are not recorded, since there was no room for them. */
uint64_t bpfengine_full(struct bpfengine *e);
