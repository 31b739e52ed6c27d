/*
 * taskverdict.h - sentences of the verdict about async tasks: a worker blocked by a poll, a task that starves in the queue,
 * a channel whose other end is too slow.
 */
#pragma once

struct profile;
struct select_options;
struct verdict;

/* Adds at most one sentence of each kind, with its reason, to v. o as for blockers_make(). Nothing where tasks were not
 * recorded. */
void taskverdict_add(struct verdict *v, const struct profile *p, const struct select_options *o);
