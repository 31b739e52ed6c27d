#include "target/memgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

enum { FILE_MAX = 1 << 16 };

/* Version 1 has no word for "none": a number near the largest. */
#define V1_NO_LIMIT (1ULL << 60)

/* --- files --- */

static char *read_file(const char *folder, const char *name)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
	char *text = NULL;

	return fd_read_path(path, FILE_MAX, &text, NULL) < 0 ? NULL : text;
}

/* The number in a file of its own; "max" and what is not there: fallback. */
static uint64_t read_number(const char *folder, const char *name, uint64_t fallback)
{
	_cleanup_free_ char *text = read_file(folder, name);
	char *end;
	uint64_t value;

	if (!text || *text < '0' || *text > '9')
		return fallback;
	errno = 0;
	value = strtoull(text, &end, 10);
	return errno || (*end && *end != '\n') ? fallback : value;
}

/* The number behind "key " at the start of a line, 0 = none. Keys that start with it add up if it ends in
 * "*". */
static uint64_t number_of(const char *text, const char *key)
{
	size_t n = strlen(key);
	bool prefix = n && key[n - 1] == '*';
	uint64_t sum = 0;

	for (n -= prefix; text && *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *space = text + strcspn(text, " \n");

		if (*space == ' ' && !strncmp(text, key, n) && (prefix || text + n == space))
			sum += strtoull(space + 1, NULL, 10);
	}
	return sum;
}

/* --- where it is --- */

/* Is name one of those in a list with commas? */
static bool in_list(const char *list, size_t n, const char *name)
{
	size_t length = strlen(name);

	if (!length)
		return !n;
	for (size_t i = 0; i + length <= n;) {
		size_t word = strcspn(list + i, ",:");

		if (word == length && !memcmp(list + i, name, length))
			return true;
		i += word + 1;
	}
	return false;
}

/* Lines are "4:memory:/path", of version 2 "0::/path". */
char *memgroup_parse_path(const char *text, const char *controller)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *list = memchr(text, ':', n), *path;

		path = list ? memchr(list + 1, ':', text + n - list - 1) : NULL;
		if (path && in_list(list + 1, path - list - 1, controller))
			return mem_strndup(path + 1, text + n - path - 1);
		text += n + (text[n] == '\n');
	}
	return NULL;
}

/* --- what it says --- */

static void read_version2(const char *folder, struct memgroup *g)
{
	_cleanup_free_ char *stat = read_file(folder, "memory.stat"),
			    *events = read_file(folder, "memory.events");

	g->usage_bytes = read_number(folder, "memory.current", 0);
	g->peak_bytes = read_number(folder, "memory.peak", 0);
	g->swap_bytes = read_number(folder, "memory.swap.current", 0);
	g->anon_bytes = number_of(stat, "anon");
	g->file_bytes = number_of(stat, "file");
	g->shmem_bytes = number_of(stat, "shmem");
	g->kernel_bytes = number_of(stat, "kernel");
	if (!g->kernel_bytes) /* before 5.18 */
		g->kernel_bytes = number_of(stat, "slab") + number_of(stat, "kernel_stack") +
				  number_of(stat, "pagetables");
	g->scanned_pages = number_of(stat, "pgscan");
	g->reclaimed_pages = number_of(stat, "pgsteal");
	g->refaults = number_of(stat, "workingset_refault*");
	g->high_hits = number_of(events, "high");
	g->limit_hits = number_of(events, "max");
	g->ooms = number_of(events, "oom");
	g->oom_kills = number_of(events, "oom_kill");
}

static void read_version1(const char *folder, struct memgroup *g)
{
	_cleanup_free_ char *stat = read_file(folder, "memory.stat"),
			    *oom = read_file(folder, "memory.oom_control");

	g->usage_bytes = read_number(folder, "memory.usage_in_bytes", 0);
	g->peak_bytes = read_number(folder, "memory.max_usage_in_bytes", 0);
	g->swap_bytes = number_of(stat, "total_swap");
	g->anon_bytes = number_of(stat, "total_rss");
	g->file_bytes = number_of(stat, "total_cache");
	g->shmem_bytes = number_of(stat, "total_shmem");
	g->kernel_bytes = read_number(folder, "memory.kmem.usage_in_bytes", 0);
	g->refaults = number_of(stat, "total_workingset_refault*");
	g->limit_hits = read_number(folder, "memory.failcnt", 0);
	g->oom_kills = number_of(oom, "oom_kill");
	g->ooms = g->oom_kills;
}

static void lower(uint64_t *limit, uint64_t value)
{
	if (value < *limit)
		*limit = value;
}

/* All the way up: children live within the limits of their parents. */
static void read_limits(const char *root, const char *path, struct memgroup *g)
{
	_cleanup_free_ char *at = mem_strdup(path);

	g->limit_bytes = g->swap_limit_bytes = g->high_bytes = MEMGROUP_NO_LIMIT;
	for (;;) {
		_cleanup_free_ char *folder = mem_printf("%s%s", root, at);
		char *slash;

		if (g->version == 2) {
			lower(&g->limit_bytes, read_number(folder, "memory.max", MEMGROUP_NO_LIMIT));
			lower(&g->high_bytes, read_number(folder, "memory.high", MEMGROUP_NO_LIMIT));
			lower(&g->swap_limit_bytes,
			      read_number(folder, "memory.swap.max", MEMGROUP_NO_LIMIT));
		} else {
			lower(&g->limit_bytes,
			      read_number(folder, "memory.limit_in_bytes", MEMGROUP_NO_LIMIT));
			lower(&g->swap_limit_bytes,
			      read_number(folder, "memory.memsw.limit_in_bytes", MEMGROUP_NO_LIMIT));
		}
		slash = strrchr(at, '/');
		if (!slash || !*at)
			break;
		*slash = 0;
	}
	if (g->version == 1 && g->limit_bytes >= V1_NO_LIMIT)
		g->limit_bytes = MEMGROUP_NO_LIMIT;
	if (g->version == 1 && g->swap_limit_bytes >= V1_NO_LIMIT)
		g->swap_limit_bytes = MEMGROUP_NO_LIMIT;
}

int memgroup_read_folder(const char *root, const char *path, int version, struct memgroup *ret)
{
	_cleanup_free_ char *folder = mem_printf("%s%s", root, path);
	_cleanup_free_ char *usage =
		read_file(folder, version == 2 ? "memory.current" : "memory.usage_in_bytes");

	*ret = (struct memgroup){ .version = version };
	if (!usage)
		return -ENOENT;
	ret->path = mem_strdup(folder);
	version == 2 ? read_version2(folder, ret) : read_version1(folder, ret);
	read_limits(root, path, ret);
	return 0;
}

int memgroup_read(pid_t pid, struct memgroup *ret)
{
	static const struct {
		const char *root, *controller;
		int version;
	} places[] = {
		{ "/sys/fs/cgroup", "", 2 },
		{ "/sys/fs/cgroup/unified", "", 2 },
		{ "/sys/fs/cgroup/memory", "memory", 1 },
	};
	_cleanup_free_ char *file = mem_printf("/proc/%d/cgroup", (int)pid), *text = NULL;
	int r = fd_read_path(file, FILE_MAX, &text, NULL);

	*ret = (struct memgroup){ 0 };
	if (r)
		return r == -ENOENT ? -ESRCH : r;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_cleanup_free_ char *path = memgroup_parse_path(text, places[i].controller);

		/* ".." is a group outside our namespace, which no path of ours leads to. */
		if (!path || !strcmp(path, "/") || strstr(path, "/.."))
			continue;
		if (!memgroup_read_folder(places[i].root, path, places[i].version, ret))
			return 0;
	}
	return -ENOENT;
}

void memgroup_done(struct memgroup *g)
{
	free(g->path);
	g->path = NULL;
}

int memgroup_machine(struct memgroup_machine *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = fd_read_path("/proc/vmstat", FILE_MAX, &text, NULL);

	*ret = (struct memgroup_machine){ 0 };
	if (r < 0)
		return r;
	/* By what they were; before 5.8 by who did it, which leaves out groups at their limit. */
	ret->reclaimed_pages = number_of(text, "pgsteal_anon") + number_of(text, "pgsteal_file");
	if (!ret->reclaimed_pages)
		ret->reclaimed_pages = number_of(text, "pgsteal_kswapd") + number_of(text, "pgsteal_direct");
	ret->stalls = number_of(text, "allocstall*");
	return 0;
}
