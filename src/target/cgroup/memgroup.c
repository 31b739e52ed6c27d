#include "target/cgroup/memgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "target/cgroup/groupfile.h"

enum { FILE_MAX = 1 << 16 };

/* Version 1 has no word for "none": a number near the largest. */
#define V1_NO_LIMIT (1ULL << 60)

static void read_version2(const char *folder, struct memgroup *g)
{
	_cleanup_free_ char *stat = groupfile_read(folder, "memory.stat"),
			    *events = groupfile_read(folder, "memory.events");

	g->usage_bytes = groupfile_number(folder, "memory.current", 0);
	g->peak_bytes = groupfile_number(folder, "memory.peak", 0);
	g->swap_bytes = groupfile_number(folder, "memory.swap.current", 0);
	g->anon_bytes = groupfile_key(stat, "anon");
	g->file_bytes = groupfile_key(stat, "file");
	g->shmem_bytes = groupfile_key(stat, "shmem");
	g->kernel_bytes = groupfile_key(stat, "kernel");
	if (!g->kernel_bytes) /* before 5.18 */
		g->kernel_bytes = groupfile_key(stat, "slab") + groupfile_key(stat, "kernel_stack") +
				  groupfile_key(stat, "pagetables");
	g->scanned_pages = groupfile_key(stat, "pgscan");
	g->reclaimed_pages = groupfile_key(stat, "pgsteal");
	g->refaults = groupfile_key(stat, "workingset_refault*");
	g->high_hits = groupfile_key(events, "high");
	g->limit_hits = groupfile_key(events, "max");
	g->ooms = groupfile_key(events, "oom");
	g->oom_kills = groupfile_key(events, "oom_kill");
}

static void read_version1(const char *folder, struct memgroup *g)
{
	_cleanup_free_ char *stat = groupfile_read(folder, "memory.stat"),
			    *oom = groupfile_read(folder, "memory.oom_control");

	g->usage_bytes = groupfile_number(folder, "memory.usage_in_bytes", 0);
	g->peak_bytes = groupfile_number(folder, "memory.max_usage_in_bytes", 0);
	g->swap_bytes = groupfile_key(stat, "total_swap");
	g->anon_bytes = groupfile_key(stat, "total_rss");
	g->file_bytes = groupfile_key(stat, "total_cache");
	g->shmem_bytes = groupfile_key(stat, "total_shmem");
	g->kernel_bytes = groupfile_number(folder, "memory.kmem.usage_in_bytes", 0);
	g->refaults = groupfile_key(stat, "total_workingset_refault*");
	g->limit_hits = groupfile_number(folder, "memory.failcnt", 0);
	g->oom_kills = groupfile_key(oom, "oom_kill");
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
			lower(&g->limit_bytes, groupfile_number(folder, "memory.max", MEMGROUP_NO_LIMIT));
			lower(&g->high_bytes, groupfile_number(folder, "memory.high", MEMGROUP_NO_LIMIT));
			lower(&g->swap_limit_bytes,
			      groupfile_number(folder, "memory.swap.max", MEMGROUP_NO_LIMIT));
		} else {
			lower(&g->limit_bytes,
			      groupfile_number(folder, "memory.limit_in_bytes", MEMGROUP_NO_LIMIT));
			lower(&g->swap_limit_bytes,
			      groupfile_number(folder, "memory.memsw.limit_in_bytes", MEMGROUP_NO_LIMIT));
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
		groupfile_read(folder, version == 2 ? "memory.current" : "memory.usage_in_bytes");

	*ret = (struct memgroup){ .version = version };
	if (!usage)
		return -ENOENT;
	ret->path = mem_strdup(folder);
	version == 2 ? read_version2(folder, ret) : read_version1(folder, ret);
	read_limits(root, path, ret);
	return 0;
}

static int read_place(void *context, const struct groupfile_place *place, const char *path)
{
	return memgroup_read_folder(place->root, path, place->version, context);
}

int memgroup_read(pid_t pid, struct memgroup *ret)
{
	static const struct groupfile_place places[] = {
		{ "/sys/fs/cgroup", "", 2 },
		{ "/sys/fs/cgroup/unified", "", 2 },
		{ "/sys/fs/cgroup/memory", "memory", 1 },
		{ 0 },
	};

	*ret = (struct memgroup){ 0 };
	return groupfile_find(pid, places, read_place, ret);
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
	/* Counts by page type; before 5.8 only by reclaimer, which leaves out cgroups at their limit. */
	ret->reclaimed_pages = groupfile_key(text, "pgsteal_anon") + groupfile_key(text, "pgsteal_file");
	if (!ret->reclaimed_pages)
		ret->reclaimed_pages = groupfile_key(text, "pgsteal_kswapd") + groupfile_key(text, "pgsteal_direct");
	ret->stalls = groupfile_key(text, "allocstall*");
	return 0;
}
