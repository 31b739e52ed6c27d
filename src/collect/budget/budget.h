/*
 * budget.h - the contract of --max-overhead: what recording costs is measured each second, by collector, and kept in the
 * capture; where it is more than allowed, collectors are thinned (control.h), and raised again when there is room.
 *
 * The cost of a collector is the run time of its BPF programs by the kernel's statistics, what each run costs beyond
 * that (surcharge.h), and our own CPU time for its records. What the recorder does besides is "own". The base is the
 * target's CPU time, with a least (struct base); what other processes lose is held against the limit apart. What the start costs is in
 * no limit; it is counted apart.
 *
 * Life: new -> start (all collectors run) -> look -> finish -> free.
 */
#pragma once

#include <stdint.h>

struct budget;
struct profile;
struct session;

struct budget *budget_new(struct session *s);
void budget_start(struct budget *b);
/* About once a second. */
void budget_look(struct budget *b, uint64_t now_mono_ns);
/* Counters into the profile. The collectors still run. */
void budget_finish(struct budget *b, uint64_t now_mono_ns);
/* The same counters as they were at the last look, into another profile. */
void budget_tally(struct budget *b, struct profile *to);
void budget_free(struct budget *b); /* NULL is fine */
