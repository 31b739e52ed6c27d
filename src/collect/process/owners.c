#include "collect/process/owners.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "profile/profile.h"
#include "target/cgroup/cgrouppath.h"
#include "target/resolve.h"

void owners_add(struct profile *p, const struct target_found *f)
{
	for (size_t i = 0; i < f->containers.list.n; i++) {
		const struct container *c = &f->containers.list.v[i];
		_cleanup_free_ char *pod = c->pod ? mem_printf("%s/%s", c->namespace, c->pod) : mem_strdup("");
		const char *name = c->pod && *c->part ? c->part : c->name;

		profile_owner(p, &(struct profile_owner){
					 .kind = profile_string(p, "container"),
					 .name = profile_string(p, name),
					 .container = profile_string(p, c->id),
					 .engine = profile_string(p, c->engine),
					 .image = profile_string(p, c->image),
					 .pod = profile_string(p, pod),
					 .cgroup = profile_string(p, f->cgroup && !i ? f->cgroup : ""),
				 });
	}
}

/* Finds an owner that a command has named; ids need not have the form that the paths are searched for. */
static uint32_t known_owner(const struct profile *p, const char *text)
{
	for (size_t i = 0; i < p->owners.n; i++)
		if (p->owners.v[i].container && cgrouppath_has(text, profile_str(p, p->owners.v[i].container)))
			return i + 1;
	return 0;
}

static uint32_t new_owner(struct profile *p, const char *text)
{
	uint32_t owner = 0;
	struct cgrouppath g;

	cgrouppath_parse(text, &g);
	if (g.container)
		owner = profile_owner(p, &(struct profile_owner){ .kind = profile_string(p, "container"),
								  .container = profile_string(p, g.container),
								  .engine = profile_string(p, g.engine),
								  .cgroup = profile_string(p, g.path) });
	else if (g.unit)
		owner = profile_owner(p, &(struct profile_owner){ .kind = profile_string(p, "unit"),
								  .name = profile_string(p, g.unit),
								  .cgroup = profile_string(p, g.unit_path) });
	cgrouppath_done(&g);
	return owner;
}

/* Has a process one number only? False where that cannot be seen. Its status says it, too, but all of that has to be
 * written and parsed, for each program that is started. */
static bool in_our_namespace(pid_t pid)
{
	struct stat ours, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &ours) && !stat(path, &its) && ours.st_ino == its.st_ino && ours.st_dev == its.st_dev;
}

void owners_find(struct profile *p, pid_t pid, struct profile_process *process)
{
	_cleanup_free_ char *text = cgrouppath_text(pid);
	struct proc_status status;
	uint32_t owner;

	if (!in_our_namespace(pid) && !proc_status(pid, &status) && status.inner_pid != status.tgid)
		process->inner_pid = status.inner_pid;
	if (!text)
		return;
	owner = known_owner(p, text);
	process->owner = owner ? owner : new_owner(p, text);
}
