#include "target/cgroup/cgroupmemory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "target/cgroup/cgroupfile.h"

enum { FILE_MAX = 1 << 16 };

/* Version 1 has no word for "none": a number near the largest. */
#define V1_NO_LIMIT (1ULL << 60)

static void read_version2(const char *folder, struct cgroupmemory *g)
{
	_cleanup_free_ char *stat = cgroupfile_read(folder, "memory.stat"),
			    *events = cgroupfile_read(folder, "memory.events");

	g->usage_bytes = cgroupfile_number(folder, "memory.current", 0);
	g->peak_bytes = cgroupfile_number(folder, "memory.peak", 0);
	g->swap_bytes = cgroupfile_number(folder, "memory.swap.current", 0);
	g->anon_bytes = cgroupfile_key(stat, "anon");
	g->file_bytes = cgroupfile_key(stat, "file");
	g->shmem_bytes = cgroupfile_key(stat, "shmem");
	g->kernel_bytes = cgroupfile_key(stat, "kernel");
	if (!g->kernel_bytes) /* before 5.18 */
		g->kernel_bytes = cgroupfile_key(stat, "slab") + cgroupfile_key(stat, "kernel_stack") +
				  cgroupfile_key(stat, "pagetables");
	g->scanned_pages = cgroupfile_key(stat, "pgscan");
	g->reclaimed_pages = cgroupfile_key(stat, "pgsteal");
	g->refaults = cgroupfile_key(stat, "workingset_refault*");
	g->high_hits = cgroupfile_key(events, "high");
	g->limit_hits = cgroupfile_key(events, "max");
	g->ooms = cgroupfile_key(events, "oom");
	g->oom_kills = cgroupfile_key(events, "oom_kill");
}

static void read_version1(const char *folder, struct cgroupmemory *g)
{
	_cleanup_free_ char *stat = cgroupfile_read(folder, "memory.stat"),
			    *oom = cgroupfile_read(folder, "memory.oom_control");

	g->usage_bytes = cgroupfile_number(folder, "memory.usage_in_bytes", 0);
	g->peak_bytes = cgroupfile_number(folder, "memory.max_usage_in_bytes", 0);
	g->swap_bytes = cgroupfile_key(stat, "total_swap");
	g->anon_bytes = cgroupfile_key(stat, "total_rss");
	g->file_bytes = cgroupfile_key(stat, "total_cache");
	g->shmem_bytes = cgroupfile_key(stat, "total_shmem");
	g->kernel_bytes = cgroupfile_number(folder, "memory.kmem.usage_in_bytes", 0);
	g->refaults = cgroupfile_key(stat, "total_workingset_refault*");
	g->limit_hits = cgroupfile_number(folder, "memory.failcnt", 0);
	g->oom_kills = cgroupfile_key(oom, "oom_kill");
	g->ooms = g->oom_kills;
}

static void lower(uint64_t *limit, uint64_t value)
{
	if (value < *limit)
		*limit = value;
}

/* All the way up: children live within the limits of their parents. */
static void read_limits(const char *root, const char *path, struct cgroupmemory *g)
{
	_cleanup_free_ char *at = mem_strdup(path);

	g->limit_bytes = g->swap_limit_bytes = g->high_bytes = CGROUPMEMORY_NO_LIMIT;
	for (;;) {
		_cleanup_free_ char *folder = mem_printf("%s%s", root, at);
		char *slash;

		if (g->version == 2) {
			lower(&g->limit_bytes, cgroupfile_number(folder, "memory.max", CGROUPMEMORY_NO_LIMIT));
			lower(&g->high_bytes, cgroupfile_number(folder, "memory.high", CGROUPMEMORY_NO_LIMIT));
			lower(&g->swap_limit_bytes,
			      cgroupfile_number(folder, "memory.swap.max", CGROUPMEMORY_NO_LIMIT));
		} else {
			lower(&g->limit_bytes,
			      cgroupfile_number(folder, "memory.limit_in_bytes", CGROUPMEMORY_NO_LIMIT));
			lower(&g->swap_limit_bytes,
			      cgroupfile_number(folder, "memory.memsw.limit_in_bytes", CGROUPMEMORY_NO_LIMIT));
		}
		slash = strrchr(at, '/');
		if (!slash || !*at)
			break;
		*slash = 0;
	}
	if (g->version == 1 && g->limit_bytes >= V1_NO_LIMIT)
		g->limit_bytes = CGROUPMEMORY_NO_LIMIT;
	if (g->version == 1 && g->swap_limit_bytes >= V1_NO_LIMIT)
		g->swap_limit_bytes = CGROUPMEMORY_NO_LIMIT;
}

int cgroupmemory_read_folder(const char *root, const char *path, int version, struct cgroupmemory *ret)
{
	_cleanup_free_ char *folder = mem_printf("%s%s", root, path);
	_cleanup_free_ char *usage =
		cgroupfile_read(folder, version == 2 ? "memory.current" : "memory.usage_in_bytes");

	*ret = (struct cgroupmemory){ .version = version };
	if (!usage)
		return -ENOENT;
	ret->path = mem_strdup(folder);
	version == 2 ? read_version2(folder, ret) : read_version1(folder, ret);
	read_limits(root, path, ret);
	return 0;
}

static int read_place(void *context, const struct cgroupfile_place *place, const char *path)
{
	return cgroupmemory_read_folder(place->root, path, place->version, context);
}

int cgroupmemory_read(pid_t pid, struct cgroupmemory *ret)
{
	static const struct cgroupfile_place places[] = {
		{ "/sys/fs/cgroup", "", 2 },
		{ "/sys/fs/cgroup/unified", "", 2 },
		{ "/sys/fs/cgroup/memory", "memory", 1 },
		{ 0 },
	};

	*ret = (struct cgroupmemory){ 0 };
	return cgroupfile_find(pid, places, read_place, ret);
}

void cgroupmemory_done(struct cgroupmemory *g)
{
	free(g->path);
	g->path = NULL;
}

int cgroupmemory_machine(struct cgroupmemory_machine *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = fd_read_path("/proc/vmstat", FILE_MAX, &text, NULL);

	*ret = (struct cgroupmemory_machine){ 0 };
	if (r < 0)
		return r;
	/* Counts by page type; before 5.8 only by reclaimer, which leaves out cgroups at their limit. */
	ret->reclaimed_pages = cgroupfile_key(text, "pgsteal_anon") + cgroupfile_key(text, "pgsteal_file");
	if (!ret->reclaimed_pages)
		ret->reclaimed_pages = cgroupfile_key(text, "pgsteal_kswapd") + cgroupfile_key(text, "pgsteal_direct");
	ret->stalls = cgroupfile_key(text, "allocstall*");
	return 0;
}
