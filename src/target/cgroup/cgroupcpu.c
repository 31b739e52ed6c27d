#include "target/cgroup/cgroupcpu.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/cgroup/cgroupfile.h"
#include "target/cgroup/cgrouppath.h"

/* "50000 100000" or "max 100000" in one file; version 1 has a file for each, and -1 for none. */
static bool read_quota(const char *folder, int version, uint64_t *quota, uint64_t *period)
{
	_cleanup_free_ char *text = version == 2 ? cgroupfile_read(folder, "cpu.max") : NULL;
	char *end;

	if (version != 2) {
		*quota = cgroupfile_number(folder, "cpu.cfs_quota_us", 0);
		*period = cgroupfile_number(folder, "cpu.cfs_period_us", 0);
	} else {
		*quota = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
		*period = *quota ? strtoull(end, NULL, 10) : 0;
	}
	return *quota && *period;
}

static void read_stat(const char *folder, struct cgroupcpu *g)
{
	_cleanup_free_ char *stat = cgroupfile_read(folder, "cpu.stat");

	g->periods = cgroupfile_key(stat, "nr_periods");
	g->throttled_periods = cgroupfile_key(stat, "nr_throttled");
	g->throttled_ns = g->version == 2 ? cgroupfile_key(stat, "throttled_usec") * 1000 :
					    cgroupfile_key(stat, "throttled_time");
}

/* All the way up: the one with the least CPUs. */
static void read_quotas(const char *root, const char *path, struct cgroupcpu *g)
{
	_cleanup_free_ char *at = mem_strdup(path);

	for (char *slash; (slash = strrchr(at, '/')) && *at; *slash = 0) {
		_cleanup_free_ char *folder = mem_printf("%s%s", root, at);
		uint64_t quota, period;

		if (!read_quota(folder, g->version, &quota, &period) ||
		    (g->quota_us && (double)quota / period >= (double)g->quota_us / g->period_us))
			continue;
		g->quota_us = quota;
		g->period_us = period;
		read_stat(folder, g);
	}
}

int cgroupcpu_read_folder(const char *root, const char *path, int version, struct cgroupcpu *ret)
{
	_cleanup_free_ char *folder = mem_printf("%s%s", root, path);
	_cleanup_free_ char *stat = cgroupfile_read(folder, "cpu.stat");

	*ret = (struct cgroupcpu){ .version = version };
	if (!stat)
		return -ENOENT;
	ret->path = mem_strdup(folder);
	read_quotas(root, path, ret);
	return 0;
}

static int read_place(void *context, const struct cgroupfile_place *place, const char *path)
{
	return cgroupcpu_read_folder(place->root, path, place->version, context);
}

int cgroupcpu_read(pid_t pid, struct cgroupcpu *ret)
{
	static const struct cgroupfile_place places[] = {
		{ "/sys/fs/cgroup", "", 2 },
		{ "/sys/fs/cgroup/cpu", "cpu", 1 },
		{ "/sys/fs/cgroup/cpu,cpuacct", "cpu", 1 },
		{ 0 },
	};

	*ret = (struct cgroupcpu){ 0 };
	return cgroupfile_find(pid, places, read_place, ret);
}

bool cgroupcpu_hidden(pid_t pid)
{
	_cleanup_free_ char *text = cgrouppath_text(pid), *one = text ? cgroupfile_path(text, "cpu") : NULL,
			    *two = text ? cgroupfile_path(text, "") : NULL;
	const char *path = one ? one : two;
	struct cgroupcpu g;
	bool hidden = path && strcmp(path, "/") && cgroupcpu_read(pid, &g) < 0;

	if (path && strcmp(path, "/") && !hidden)
		cgroupcpu_done(&g);
	return hidden;
}

void cgroupcpu_done(struct cgroupcpu *g)
{
	free(g->path);
	g->path = NULL;
}
