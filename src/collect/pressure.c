#include "collect/pressure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "base/vec.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/cgroup/cgroupfile.h"

enum { FILE_MAX = 1 << 16, MOST_CGROUPS = 16 };

/* A growing number, in a file that is read again each second. */
struct gauge {
	char *path;
	enum gauge_kind { GAUGE_PSI, GAUGE_KEY, GAUGE_PLAIN } kind;
	const char *key; /* the line's first word */
	uint32_t series;
	uint64_t last;
};

struct pressure {
	struct profile *profile;
	uint64_t start_mono_ns;
	VEC(struct gauge) gauges;
	VEC(char *) cgroups; /* folders that are watched already */
};

/* --- what the files say --- */

/* The line that starts with word and a space; NULL = none. */
static const char *find_line(const char *text, const char *word)
{
	size_t n = strlen(word);

	while (*text) {
		if (!strncmp(text, word, n) && text[n] == ' ')
			return text + n + 1;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return NULL;
}

static int parse_number(const char *s, uint64_t *ret)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -EBADMSG;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	return errno || (*end && *end != '\n' && *end != ' ') ? -EBADMSG : 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
int pressure_parse_psi(const char *text, const char *line, uint64_t *ret_us)
{
	const char *at = find_line(text, line), *total;

	if (!at)
		return -ENOENT;
	total = strstr(at, "total=");
	if (!total || total > at + strcspn(at, "\n"))
		return -EBADMSG;
	return parse_number(total + strlen("total="), ret_us);
}

int pressure_parse_key(const char *text, const char *key, uint64_t *ret)
{
	const char *at = find_line(text, key);

	return at ? parse_number(at, ret) : -ENOENT;
}

static int read_gauge(const struct gauge *g, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = fd_read_path(g->path, FILE_MAX, &text, &n);

	if (r < 0)
		return r;
	switch (g->kind) {
	case GAUGE_PSI:
		return pressure_parse_psi(text, g->key, ret);
	case GAUGE_KEY:
		return pressure_parse_key(text, g->key, ret);
	case GAUGE_PLAIN:
		return parse_number(text, ret);
	}
	return -EINVAL;
}

/* --- what is watched --- */

/* Watches a number if it is there. Several cgroups share a series: what each grew by is a point of it. */
static bool watch(struct pressure *ps, enum gauge_kind kind, const char *folder, const char *file,
		  const char *key, const char *series)
{
	struct gauge g = { .kind = kind, .key = key, .path = mem_printf("%s/%s", folder, file) };

	if (read_gauge(&g, &g.last) < 0) {
		free(g.path);
		return false;
	}
	g.series = profile_series(ps->profile, series);
	vec_push(&ps->gauges, g);
	return true;
}

/* Folder: of files called memory (the machine's) or memory.pressure (a cgroup's). */
static bool watch_psi(struct pressure *ps, const char *folder, bool cgroup)
{
	static const struct {
		const char *resource, *line, *machine, *cgroup;
	} psi[] = {
		{ "cpu", "some", KEY_PRESSURE_CPU_SOME, KEY_CGROUP_CPU_SOME },
		{ "cpu", "full", KEY_PRESSURE_CPU_FULL, KEY_CGROUP_CPU_FULL },
		{ "io", "some", KEY_PRESSURE_IO_SOME, KEY_CGROUP_IO_SOME },
		{ "io", "full", KEY_PRESSURE_IO_FULL, KEY_CGROUP_IO_FULL },
		{ "memory", "some", KEY_PRESSURE_MEMORY_SOME, KEY_CGROUP_MEMORY_SOME },
		{ "memory", "full", KEY_PRESSURE_MEMORY_FULL, KEY_CGROUP_MEMORY_FULL },
	};
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(psi); i++) {
		_cleanup_free_ char *file = mem_printf("%s%s", psi[i].resource, cgroup ? ".pressure" : "");

		any |= watch(ps, GAUGE_PSI, folder, file, psi[i].line, cgroup ? psi[i].cgroup : psi[i].machine);
	}
	return any;
}

static bool watch_memory_events(struct pressure *ps, const char *folder)
{
	static const char *const words[] = { "low", "high", "max", "oom", "oom_kill" };
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		_cleanup_free_ char *series = key_of(KEY_CGROUP_MEMORY_EVENTS_OF, words[i]);

		any |= watch(ps, GAUGE_KEY, folder, "memory.events", words[i], series);
	}
	return any;
}

/* Is this folder new? It is remembered. */
static bool new_folder(struct pressure *ps, const char *folder)
{
	for (size_t i = 0; i < ps->cgroups.n; i++)
		if (!strcmp(ps->cgroups.v[i], folder))
			return false;
	if (ps->cgroups.n >= MOST_CGROUPS)
		return false;
	vec_push(&ps->cgroups, mem_strdup(folder));
	return true;
}

/* Version 2, alone or beside version 1, then version 1. */
static void watch_cgroups(struct pressure *ps, const char *text, bool *psi, bool *events)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	_cleanup_free_ char *unified = cgroupfile_path(text, "");
	_cleanup_free_ char *memory = cgroupfile_path(text, "memory");

	for (size_t i = 0; unified && i < ARRAY_LEN(roots); i++) {
		_cleanup_free_ char *folder = mem_printf("%s%s", roots[i], unified);

		/* The root cgroup is the machine, and has no files of its own. */
		if (!strcmp(unified, "/") || !new_folder(ps, folder))
			continue;
		*psi |= watch_psi(ps, folder, true);
		*events |= watch_memory_events(ps, folder);
	}
	if (memory) {
		_cleanup_free_ char *folder = mem_printf("/sys/fs/cgroup/memory%s", memory);

		if (new_folder(ps, folder))
			*events |= watch(ps, GAUGE_PLAIN, folder, "memory.failcnt", NULL,
					 KEY_CGROUP_MEMORY_FAILCNT);
	}
}

struct pressure *pressure_new(struct profile *p, const pid_t *pids, size_t n, uint64_t start_mono_ns)
{
	struct pressure *ps = mem_alloc(sizeof(*ps));
	bool psi = false, events = false;

	ps->profile = p;
	ps->start_mono_ns = start_mono_ns;
	if (!watch_psi(ps, "/proc/pressure", false))
		profile_count_set(p, KEY_PRESSURE_NO_PSI, 1);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *path = mem_printf("/proc/%d/cgroup", (int)pids[i]), *text = NULL;
		size_t length;

		if (fd_read_path(path, FILE_MAX, &text, &length) >= 0)
			watch_cgroups(ps, text, &psi, &events);
	}
	if (!psi)
		profile_count_set(p, KEY_PRESSURE_NO_CGROUP_PSI, 1);
	if (!events)
		profile_count_set(p, KEY_PRESSURE_NO_MEMORY_EVENTS, 1);
	return ps;
}

void pressure_tick(struct pressure *ps, uint64_t now)
{
	for (size_t i = 0; i < ps->gauges.n; i++) {
		struct gauge *g = &ps->gauges.v[i];
		uint64_t value;

		if (read_gauge(g, &value) < 0) /* the cgroup is gone, and the targets with it */
			continue;
		profile_add_point(ps->profile, g->series,
				  now > ps->start_mono_ns ? now - ps->start_mono_ns : 0,
				  value > g->last ? value - g->last : 0);
		g->last = value;
	}
}

void pressure_free(struct pressure *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->gauges.n; i++)
		free(ps->gauges.v[i].path);
	for (size_t i = 0; i < ps->cgroups.n; i++)
		free(ps->cgroups.v[i]);
	vec_done(&ps->gauges);
	vec_done(&ps->cgroups);
	free(ps);
}
