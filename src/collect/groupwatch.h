/*
 * groupwatch.h - the cgroups of the targets: what they grant, and how often that was not enough.
 *
 * Looks at each group once a second and at the end, and keeps, for each group by the path of its folder, the
 * counters
 *
 *	cgroup.cpu.quota_us, .period_us, .periods, .throttled periods, .throttled_ns: FOLDER
 *	cgroup.memory.limit hits, .oom kills: FOLDER
 *
 * which grew so during the recording (quota and period are what they are; a merge adds up both, and
 * their quotient stays), and the series cgroup.memory.limit, .high and .usage: FOLDER, in bytes.
 * analyze/groups.h reads them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct groupwatch;
struct session;

struct groupwatch *groupwatch_new(struct session *s);
void groupwatch_free(struct groupwatch *w); /* NULL is fine */
/* What was before does not count. Also sets session.quota, as each look does. */
void groupwatch_begin(struct groupwatch *w);
void groupwatch_look(struct groupwatch *w, uint64_t now_mono_ns);
