#include "analyze/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Behind the mount points: version 1 has a folder for each controller. */
static const char *path_of(const char *folder)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/cpu,cpuacct/", "/cpu/", "/memory/", "/unified/" };

	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (str_starts(folder, roots[i]))
			folder += strlen(roots[i]) - (i > 0);
	return folder;
}

static struct groups_row *row_of(struct groups *g, const char *folder)
{
	const char *path = path_of(folder);

	for (size_t i = 0; i < g->rows.n; i++)
		if (!strcmp(g->rows.v[i].path, path))
			return &g->rows.v[i];
	vec_push(&g->rows, (struct groups_row){ .path = mem_strdup(path) });
	return &g->rows.v[g->rows.n - 1];
}

static void read_counter(struct groups *g, const char *name, uint64_t value)
{
	static const struct {
		const char *family;
		size_t at;
	} known[] = {
		{ KEY_CGROUP_CPU_QUOTA_US_OF, offsetof(struct groups_row, quota_us) },
		{ KEY_CGROUP_CPU_PERIOD_US_OF, offsetof(struct groups_row, period_us) },
		{ KEY_CGROUP_CPU_PERIODS_OF, offsetof(struct groups_row, periods) },
		{ KEY_CGROUP_CPU_THROTTLED_PERIODS_OF, offsetof(struct groups_row, throttled_periods) },
		{ KEY_CGROUP_CPU_THROTTLED_NS_OF, offsetof(struct groups_row, throttled_ns) },
		{ KEY_CGROUP_MEMORY_LIMIT_HITS_OF, offsetof(struct groups_row, limit_hits) },
		{ KEY_CGROUP_MEMORY_OOM_KILLS_OF, offsetof(struct groups_row, oom_kills) },
		{ KEY_CGROUP_MEMORY_LIMIT_BYTES_OF, offsetof(struct groups_row, limit_bytes) },
		{ KEY_CGROUP_MEMORY_HIGH_BYTES_OF, offsetof(struct groups_row, high_bytes) },
		{ KEY_CGROUP_MEMORY_MOST_BYTES_OF, offsetof(struct groups_row, most_bytes) },
		{ KEY_CGROUP_CPU_RECORDINGS_OF, offsetof(struct groups_row, cpu_recordings) },
		{ KEY_CGROUP_MEMORY_RECORDINGS_OF, offsetof(struct groups_row, memory_recordings) },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const char *folder = key_rest(known[i].family, name);

		if (folder && *folder == '/')
			*(uint64_t *)((char *)row_of(g, folder) + known[i].at) += value;
	}
}

/* Figures that are no sums become the mean of the merged recordings. */
static void level(struct groups_row *r)
{
	uint64_t cpu = MAX(r->cpu_recordings, 1), memory = MAX(r->memory_recordings, 1);

	r->quota_us /= cpu;
	r->period_us /= cpu;
	r->limit_bytes /= memory;
	r->high_bytes /= memory;
	r->most_bytes /= memory;
}

double groups_cpus(const struct groups_row *r)
{
	return r->period_us ? (double)r->quota_us / r->period_us : 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct groups_row *x = a, *y = b;
	double m = groups_cpus(x), n = groups_cpus(y);

	if (m != n)
		return !m ? 1 : !n ? -1 : m < n ? -1 : 1;
	return strcmp(x->path, y->path);
}

static bool limits(const struct groups_row *r)
{
	return r->quota_us || r->limit_bytes || r->high_bytes || r->limit_hits || r->oom_kills;
}

void groups_make(struct groups *g, const struct profile *p)
{
	size_t kept = 0;

	*g = (struct groups){ .count = profile_counter(p, KEY_RESTARTS),
			      .down_ns = profile_counter(p, KEY_RESTARTS_NOT_RUNNING_NS) };
	for (size_t i = 0; i < p->counters.n; i++)
		read_counter(g, profile_str(p, p->counters.v[i].name), p->counters.v[i].value);
	for (size_t i = 0; i < g->rows.n; i++) {
		level(&g->rows.v[i]);
		if (limits(&g->rows.v[i]))
			g->rows.v[kept++] = g->rows.v[i];
		else
			free(g->rows.v[i].path);
	}
	g->rows.n = kept;
	vec_sort(&g->rows, compare_rows);
	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].kind), "restart"))
			vec_push(&g->restarts, (struct groups_restart){ p->marks.v[i].start_ns, p->marks.v[i].end_ns,
									profile_str(p, p->marks.v[i].name) });
}

void groups_done(struct groups *g)
{
	vec_done_each(&g->rows, e, free(e->path));
	vec_done(&g->restarts);
}

char *groups_label(const char *path)
{
	enum { ID = 64, SHORT = 12 };
	char *out = mem_alloc(strlen(path) + 1), *to = out;

	for (const char *s = path; *s;) {
		size_t digits = strspn(s, "0123456789abcdef");

		if (digits == ID) {
			memcpy(to, s, SHORT);
			to += SHORT;
			s += ID;
		} else if (digits) {
			memcpy(to, s, digits);
			to += digits;
			s += digits;
		} else {
			*to++ = *s++;
		}
	}
	return out;
}
