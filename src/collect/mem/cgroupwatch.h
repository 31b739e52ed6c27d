/*
 * cgroupwatch.h - the cgroups of the targets: what they grant, and how often that was not enough.
 *
 * Looks at each group once a second and at the end, and keeps counters for each, by the path of its folder:
 *
 *	cgroup.cpu.periods, .throttled periods, .throttled_ns: FOLDER	as they grew during the recording
 *	cgroup.memory.limit hits, .oom kills: FOLDER
 *	cgroup.cpu.quota_us, .period_us: FOLDER				as they are
 *	cgroup.memory.limit_bytes, .high_bytes, .most_bytes: FOLDER	(in use at a look)
 *	cgroup.cpu.recordings, cgroup.memory.recordings: FOLDER		1: where captures are merged all add up
 *
 * analyze/groups.h reads them.
 */
#pragma once


struct cgroupwatch;
struct session;

struct cgroupwatch *cgroupwatch_new(struct session *s);
void cgroupwatch_free(struct cgroupwatch *w); /* NULL is fine */
/* Earlier counts do not count. Also sets session.quota, as each look does. */
void cgroupwatch_begin(struct cgroupwatch *w);
void cgroupwatch_look(struct cgroupwatch *w);
