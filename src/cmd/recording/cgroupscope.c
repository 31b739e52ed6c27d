#include "cmd/recording/cgroupscope.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "target/cgroup/cgroupfile.h"
#include "target/proc.h"

/* Made for one container or unit: it has a container's id in its name, or the name of a service. */
static bool is_whole(const char *folder)
{
	const char *name = strrchr(folder, '/');

	if (!name || str_ends(name, ".service"))
		return name;
	for (; *name; name++) {
		enum { ID = 64 };

		if (strspn(name, "0123456789abcdef") == ID)
			return true;
		name += strspn(name, "0123456789abcdef");
		if (!*name)
			break;
	}
	return false;
}

static bool has(const struct proc_ids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->list.n; i++)
		if (pids->list.v[i] == pid)
			return true;
	return false;
}

/* Were all of its processes named? Else one of several in it is meant, and not the others. */
static bool all_named(const char *folder, const struct proc_ids *pids)
{
	_cleanup_free_ char *text = cgroupfile_read(folder, "cgroup.procs");

	for (char *s = text, *end; s && *s; s = end + (*end == '\n')) {
		pid_t pid = strtol(s, &end, 10);

		if (end == s || !has(pids, pid))
			return false;
	}
	return text;
}

bool cgroupscope_is_pid(const char *name)
{
	return str_starts(name, "pid:") || strspn(name, "0123456789") == strlen(name);
}

void cgroupscope_find(const struct proc_ids *pids, char *const *names, size_t name_count, struct cgroupscope *ret)
{
	bool named = false;

	for (size_t i = 0; i < name_count; i++)
		named |= !cgroupscope_is_pid(names[i]);
	for (size_t i = 0; named && i < pids->list.n; i++) {
		char *folder = cgroupfile_folder(pids->list.v[i]);
		bool known = !folder;

		for (size_t k = 0; !known && k < ret->list.n; k++)
			known = !strcmp(ret->list.v[k], folder);
		if (known || !is_whole(folder) || !all_named(folder, pids))
			free(folder);
		else
			vec_push(&ret->list, folder);
	}
}

void cgroupscope_done(struct cgroupscope *j)
{
	vec_done_each(&j->list, e, free(*e));
}
