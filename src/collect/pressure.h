/*
 * pressure.h - is the machine, or the targets' cgroup, short of CPU, disk or memory?
 *
 * Once a second, what the kernel's pressure stall information has grown by (microseconds in which some or all
 * tasks stood still for want of it), and what cgroups tell about their memory. Series of the profile:
 *
 *	pressure.memory.some         us   of the whole machine; the same for io and cpu, and .full
 *	cgroup.memory.some           us   of the cgroup of the targets (version 2)
 *	cgroup.memory.events.max     count   times its limit was hit; low, high, oom, oom_kill
 *	cgroup.memory.failcnt        count   the same in version 1
 *
 * Missing sources are counted as "pressure.no psi", "pressure.no cgroup psi", "pressure.no memory events".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pressure;
struct profile;

/* Begins with the targets' cgroups as they are now. */
struct pressure *pressure_new(struct profile *p, const pid_t *pids, size_t n, uint64_t start_mono_ns);
void pressure_tick(struct pressure *ps, uint64_t now_mono_ns);
void pressure_free(struct pressure *ps);

/* For tests. The number after "key " (PSI: in the line that starts with line) of a text of lines. */
int pressure_parse_psi(const char *text, const char *line, uint64_t *ret_us);
int pressure_parse_key(const char *text, const char *key, uint64_t *ret);
