#include "collect/mem/oomwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/cgroup/limitgroup.h"

enum { RECORD_SIZE = 8192, MOST_LINES = 400, EVERY_NS = 100000000, LEAVING_NS = 1000000000 };

struct line {
	uint64_t mono_ns;
	char *text;
};

struct oomwatch {
	struct profile *profile;
	const struct limitgroup *cgroup;
	const char *name;            /* of the group, as the kernel's lines end in it */
	struct limitgroup_memory first, last;
	uint64_t looked_ns, kill_ns; /* since the recording began; kill 0 = none yet */
	uint64_t peak;
	uint32_t usage, anon, file, kernel, swap; /* series */
	int log;                     /* /dev/kmsg, -1 where it may not be read */
	VEC(struct line) lines;      /* to be kept */
	VEC(struct line) pending;    /* of a kill whose group is not named yet */
	bool in_report;
};

struct oomwatch *oomwatch_new(struct profile *p, const struct limitgroup *c)
{
	struct oomwatch *w = mem_alloc(sizeof(*w));

	w->profile = p;
	w->cgroup = c;
	w->name = str_base_name(c->path);
	limitgroup_read(c, &w->first);
	w->usage = profile_series(p, KEY_LIMIT_USAGE);
	w->anon = profile_series(p, KEY_LIMIT_ANON);
	w->file = profile_series(p, KEY_LIMIT_FILE);
	w->kernel = profile_series(p, KEY_LIMIT_KERNEL);
	w->swap = profile_series(p, KEY_LIMIT_SWAP);
	w->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (w->log >= 0)
		lseek(w->log, 0, SEEK_END);
	return w;
}

/* --- the kernel's log --- */

static void drop(struct line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(lines[i].text);
}

/* A report of the killer begins, or goes on. Traces and registers of whoever asked say nothing to a user. */
static bool is_wanted(struct oomwatch *w, const char *text)
{
	static const char *const wanted[] = { "memory: usage",
					      "memory+swap: usage",
					      "swap: usage",
					      "kmem: usage",
					      "Memory cgroup stats",
					      "anon ",
					      "file ",
					      "rss",
					      "cache",
					      "Tasks state",
					      "[",
					      "oom-kill:",
					      "Memory cgroup out of memory",
					      "oom_reaper",
					      "Tasks in " };

	if (strstr(text, "invoked oom-killer")) {
		w->in_report = true;
		return true;
	}
	for (size_t i = 0; w->in_report && i < ARRAY_LEN(wanted); i++)
		if (str_starts(text, wanted[i]))
			return true;
	return false;
}

/* "6,1234,5678901234,-;text\n SUBSYSTEM=...": the third is microseconds. */
void oomwatch_line(struct oomwatch *w, const char *record)
{
	const char *text = strchr(record, ';');
	unsigned long long us;
	struct line line;

	if (!text || sscanf(record, "%*u,%*u,%llu", &us) != 1 || !is_wanted(w, ++text))
		return;
	line = (struct line){ us * 1000, mem_strndup(text, strcspn(text, "\n")) };
	vec_push(&w->pending, line);
	if (!str_starts(text, "Memory cgroup out of memory") && w->pending.n < MOST_LINES)
		return;
	/* The end of it. Whose was it? */
	for (size_t i = 0; i < w->pending.n && str_starts(text, "Memory cgroup out of memory"); i++) {
		if (!str_starts(w->pending.v[i].text, "oom-kill:") || !strstr(w->pending.v[i].text, w->name))
			continue;
		for (size_t k = 0; k < w->pending.n && w->lines.n < MOST_LINES; k++) {
			vec_push(&w->lines, w->pending.v[k]);
			w->pending.v[k].text = NULL;
		}
		break;
	}
	drop(w->pending.v, w->pending.n);
	w->pending.n = 0;
	w->in_report = false;
}

static void read_log(struct oomwatch *w)
{
	char record[RECORD_SIZE];

	while (w->log >= 0) {
		ssize_t n = read(w->log, record, sizeof(record) - 1);

		if (n < 0 && errno == EPIPE) /* some were overwritten: go on with the next */
			continue;
		if (n <= 0)
			break;
		record[n] = 0;
		oomwatch_line(w, record);
	}
}

/* --- looking --- */

static void point(struct oomwatch *w, uint64_t time_ns)
{
	struct profile *p = w->profile;

	profile_add_point(p, w->usage, time_ns, w->last.usage);
	profile_add_point(p, w->anon, time_ns, w->last.anon);
	profile_add_point(p, w->file, time_ns, w->last.file);
	profile_add_point(p, w->kernel, time_ns, w->last.kernel);
	profile_add_point(p, w->swap, time_ns, w->last.swap);
}

void oomwatch_look(struct oomwatch *w, uint64_t time_ns)
{
	struct limitgroup_memory now;

	if (w->looked_ns && time_ns < w->looked_ns + EVERY_NS * 9 / 10)
		return;
	read_log(w);
	if (limitgroup_read(w->cgroup, &now) < 0)
		return;
	if (now.oom_kills > w->first.oom_kills && !w->kill_ns)
		w->kill_ns = MAX(time_ns, 1);
	w->peak = MAX(w->peak, MAX(now.peak, now.usage));
	w->last.oom_kills = now.oom_kills;
	w->last.hits = now.hits;
	/* The killed process is exiting, and the cgroup soon empty: the values from before count. */
	if (w->kill_ns && (time_ns < w->kill_ns + LEAVING_NS || !limitgroup_processes(w->cgroup)))
		return;
	w->looked_ns = MAX(time_ns, 1);
	w->last = now;
	point(w, time_ns);
}

static uint64_t mark_time(const struct oomwatch *w, uint64_t mono_ns, uint64_t time_ns)
{
	uint64_t start = clock_mono_ns() - time_ns;

	return mono_ns > start ? MIN(mono_ns - start, time_ns) : 0;
}

void oomwatch_finish(struct oomwatch *w, const struct limitgroup_memory *before, uint64_t time_ns)
{
	struct profile *p = w->profile;
	uint64_t kill_ns, kills;

	w->looked_ns = 0;
	w->first = *before;
	oomwatch_look(w, time_ns);
	kill_ns = w->kill_ns;
	for (size_t i = 0; i < w->lines.n; i++) {
		uint64_t at = mark_time(w, w->lines.v[i].mono_ns, time_ns);

		profile_add_mark(p, &(struct profile_mark){ .start_ns = at,
							    .end_ns = at,
							    .thread = PROFILE_NONE,
							    .kind = profile_string(p, "kernel"),
							    .name = profile_string(p, w->lines.v[i].text) });
		if (!i)
			kill_ns = at;
	}
	if (w->kill_ns)
		profile_count_set(p, KEY_LIMIT_KILLED_NS, kill_ns);
	if (w->kill_ns)
		profile_add_mark(
			p, &(struct profile_mark){ .start_ns = kill_ns,
						   .end_ns = kill_ns,
						   .thread = PROFILE_NONE,
						   .kind = profile_string(p, "oom"),
						   .name = profile_string(p, "killed at the memory limit") });
	profile_count_set(p, KEY_LIMIT_MEMORY_BYTES, w->first.limit);
	if (w->first.swap_limit != LIMITGROUP_UNLIMITED) {
		profile_count_set(p, KEY_LIMIT_SWAP_LIMITED, 1);
		profile_count_set(p, KEY_LIMIT_SWAP_BYTES, w->first.swap_limit);
	}
	kills = w->last.oom_kills - MIN(w->first.oom_kills, w->last.oom_kills);
	/* Version 1 does not count those that met the limit of memory and swap together. */
	profile_count_set(p, KEY_LIMIT_HITS, MAX(kills, w->last.hits - MIN(w->first.hits, w->last.hits)));
	profile_count_set(p, KEY_LIMIT_OOM_KILLS, kills);
	profile_count_set(p, KEY_LIMIT_PEAK_BYTES, w->peak);
	if (w->log < 0)
		profile_count_set(p, KEY_LIMIT_NO_KERNEL_LOG, 1);
}

void oomwatch_free(struct oomwatch *w)
{
	if (!w)
		return;
	drop(w->lines.v, w->lines.n);
	drop(w->pending.v, w->pending.n);
	vec_done(&w->lines);
	vec_done(&w->pending);
	fd_close(&w->log);
	free(w);
}
