#include "target/resolve.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/str.h"
#include "target/cgroup/cgrouppath.h"
#include "target/initproc.h"
#include "target/processnames.h"
#include "target/systemd.h"

/* State of a search, with messages that matter only if nothing else is found. */
struct search {
	const char *name;
	struct target_found *found;
	bool forced;           /* the user asked for one kind */
	uint64_t deadline_ns;  /* of sockets, for all questions together */
	pid_t carrier;         /* only has the name in another's command line that it carries, 0 = none */
	char stopped[256];     /* "container reth-a is not running", "" = none was found */
};

/* --- pids --- */

static int find_pid(struct search *s, struct err *err)
{
	struct proc_status status;
	struct proc_stat stat;
	uint64_t pid;
	int r;

	if (str_parse_uint(s->name, 1, INT_MAX, &pid))
		return err_set(err, EINVAL, "%s is not the number of a process", s->name);
	/* A thread's number stands for its process. */
	r = proc_status(pid, &status);
	if (!r)
		r = proc_stat(status.tgid, &stat);
	if (r == -ESRCH)
		return err_set(err, ESRCH, "there is no process %d", (int)pid);
	if (r)
		return err_errno(err, -r, "cannot read /proc/%d", (int)pid);
	if (stat.state == 'Z' || stat.state == 'X')
		return err_set(err, ESRCH, "process %d (%s) has ended already", (int)pid, stat.name);
	if (status.tgid == getpid())
		return err_set(err, EINVAL, "process %d is gasflame itself", (int)pid);
	vec_push(&s->found->pids.list, status.tgid);
	return 0;
}

/* --- containers and pods --- */

/* Fails with the list of containers that the user must choose from. */
static int ambiguous(const struct search *s, const struct containers *all, struct err *err)
{
	enum { SHOWN = 4 };
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < all->list.n && i < SHOWN; i++) {
		const struct container *c = &all->list.v[i];
		_cleanup_free_ char *title = container_title(c);

		/* A pod has a name that is whole; of two containers of one name only the ids differ. */
		buf_printf(&b, "%s%s:%.*s (%s, %.40s%s%.24s)", i ? ", " : "", c->pod ? "pod" : "container",
			   c->pod ? 64 : 12, c->pod ? title : c->id, c->engine, title, *c->image ? ", image " : "", c->image);
	}
	err_set(err, ENOTUNIQ, "%s is %zu containers; name one of them: %s%s", s->name, all->list.n, b.data,
		all->list.n > SHOWN ? ", ..." : "");
	return -ENOTUNIQ;
}

static bool same_pod(const struct container *a, const struct container *b)
{
	return a->pod && b->pod && !strcmp(a->pod, b->pod) && !strcmp(a->namespace, b->namespace);
}

/* Prefers running containers to stopped ones, and whole names to prefixes of ids. */
static void drop_lesser(const struct search *s, struct containers *all)
{
	bool running = false, exact = false;
	size_t n = 0;

	for (size_t i = 0; i < all->list.n; i++) {
		running |= all->list.v[i].running;
		exact |= !strcmp(all->list.v[i].name, s->name) || !strcmp(all->list.v[i].id, s->name);
	}
	for (size_t i = 0; i < all->list.n; i++) {
		struct container *c = &all->list.v[i];
		bool is_exact = !strcmp(c->name, s->name) || !strcmp(c->id, s->name);

		if ((running && !c->running) || (exact && !is_exact))
			container_done(c);
		else
			all->list.v[n++] = *c;
	}
	all->list.n = n;
}

/* Finds the processes of one container. -ESRCH: it has stopped; -EPROTO: the engine's claim about it is
 * false. */
static int take_processes(struct search *s, const struct container *c, struct err *err)
{
	_cleanup_free_ char *title = container_title(c), *group = NULL;
	struct proc_ids pids;
	int r = cgrouppath_of(c->id, &pids);

	if (r)
		return err_errno(err, -r, "cannot list /proc");
	group = c->pid ? cgrouppath_text(c->pid) : NULL;
	if (group && !cgrouppath_has(group, c->id) && !pids.list.n && !c->hearsay)
		r = err_set(err, EPROTO,
			    "%s says that container %s is process %d, but that is not in a control group of this container: not "
			    "believed; if you know better, name the process by its pid",
			    c->engine, title, (int)c->pid);
	else if (!pids.list.n)
		r = err_set(err, ESRCH, "container %s (%s) has stopped", title, c->engine);
	for (size_t i = 0; i < pids.list.n; i++)
		vec_push(&s->found->pids.list, pids.list.v[i]);
	vec_done(&pids.list);
	return r;
}

static int take_containers(struct search *s, struct containers *all, struct err *err)
{
	int r = -ESRCH;

	drop_lesser(s, all);
	for (size_t i = 1; i < all->list.n; i++)
		if (!same_pod(&all->list.v[0], &all->list.v[i]))
			return ambiguous(s, all, err);
	if (!all->list.n)
		return -ENOENT;
	if (!all->list.v[0].running) {
		_cleanup_free_ char *title = container_title(&all->list.v[0]);

		snprintf(s->stopped, sizeof(s->stopped), "container %.100s (%s) is not running", title,
			 all->list.v[0].engine);
		return -ENOENT;
	}
	/* Some of a pod's may come and go, whichever of them the engine names first. */
	for (size_t i = 0; i < all->list.n && (!r || r == -ESRCH); i++)
		r = take_processes(s, &all->list.v[i], err);
	if (r == -ESRCH && s->found->pids.list.n)
		r = 0;
	if (r == -ESRCH) {
		snprintf(s->stopped, sizeof(s->stopped), "%.200s", err ? err->text : "");
		return -ENOENT;
	}
	if (r)
		return r;
	s->found->containers = *all;
	*all = (struct containers){ 0 };
	return 0;
}

static int find_containers(struct search *s, bool pods, struct err *err)
{
	struct container_query q = { .name = s->name, .pods = pods, .forced = s->forced,
				     .deadline_ns = s->deadline_ns, .notes = &s->found->notes };
	struct containers all;
	int r;

	if (s->forced && !(pods ? container_is_pod(s->name) : container_is_name(s->name)))
		return err_set(err, EINVAL, pods ? "\"%s\" is no name of a pod: NAMESPACE/POD or NAMESPACE/POD/CONTAINER, lower case" :
						   "\"%s\" is no name of a container: letters, digits, _ . - only", s->name);
	containers_find(&q, &all);
	r = take_containers(s, &all, err);
	containers_done(&all);
	return r;
}

static int find_container(struct search *s, struct err *err)
{
	return find_containers(s, false, err);
}

static int find_pod(struct search *s, struct err *err)
{
	return find_containers(s, true, err);
}

/* --- units --- */

static int find_unit(struct search *s, struct err *err)
{
	if (!systemd_is_unit(s->name) && !(s->forced && *s->name == '/'))
		return s->forced ? err_set(err, EINVAL, "\"%s\" is no name of a unit", s->name) : -ENOENT;
	return systemd_find_unit(s->name, &s->found->pids, err);
}

/* --- processes --- */

/* "tini -- reth" has reth in its command line, but is not the target. */
static void drop_wrappers(struct proc_ids *pids)
{
	size_t n = 0;

	for (size_t i = 0; i < pids->list.n; i++) {
		struct proc_stat s;

		if (proc_stat(pids->list.v[i], &s) || !initproc_is_wrapper(s.name))
			pids->list.v[n++] = pids->list.v[i];
	}
	if (n)
		pids->list.n = n;
}

static int find_name(struct search *s, struct err *err)
{
	struct candidates all;
	int r = candidates_read(&all);

	if (r)
		return err_errno(err, -r, "cannot list /proc");
	candidates_named(&all, s->name, &s->found->pids);
	drop_wrappers(&s->found->pids);
	candidates_done(&all);
	return s->found->pids.list.n ? 0 : -ENOENT;
}

static int find_command(struct search *s, struct err *err)
{
	struct candidates all;
	int r = candidates_read(&all);

	if (r)
		return err_errno(err, -r, "cannot list /proc");
	r = candidates_pattern(&all, s->name, &s->found->pids, s->forced ? NULL : &s->carrier, err);
	drop_wrappers(&s->found->pids);
	candidates_done(&all);
	return r ? r : s->found->pids.list.n ? 0 : -ENOENT;
}

/* In the order in which a name is tried. -ENOENT: there is none of that kind; anything else ends the search. */
static const struct {
	const char *prefix, *what;
	int (*find)(struct search *s, struct err *err);
} kinds[TARGET_KINDS] = {
	[TARGET_PID] = { "pid:", "process", find_pid },
	[TARGET_CONTAINER] = { "container:", "container", find_container },
	[TARGET_POD] = { "pod:", "pod", find_pod },
	[TARGET_UNIT] = { "unit:", "unit with processes", find_unit },
	[TARGET_NAME] = { "name:", "process", find_name },
	[TARGET_COMMAND] = { "cmd:", "command line", find_command },
};

static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

/* The kind that a prefix asks for, and the name behind it; TARGET_KINDS: none. */
static enum target_kind forced_kind(const char **name)
{
	for (int k = 0; k < TARGET_KINDS; k++)
		if (str_starts(*name, kinds[k].prefix)) {
			*name += strlen(kinds[k].prefix);
			return k;
		}
	return TARGET_KINDS;
}

/* Names of containers, for "there is"; ends in NULL. */
static void other_names(struct containers *all, const char *list[], size_t size)
{
	struct container_query q = { 0 };
	size_t n = 0;

	containers_find(&q, all);
	for (size_t i = 0; i < all->list.n && n + 1 < size; i++)
		list[n++] = all->list.v[i].pod ? all->list.v[i].pod : all->list.v[i].name;
	list[n] = NULL;
}

static int not_found(struct search *s, enum target_kind forced, struct err *err)
{
	const struct container_notes *notes = &s->found->notes;
	const char *more[256] = { NULL };
	struct containers others = { 0 };
	struct candidates all = { 0 };
	char nearest[256] = "";

	if (*s->stopped)
		return err_set(err, ESRCH, "%s%s%s", s->stopped, s->forced ? "" : ", and no process is named ",
			       s->forced ? "" : s->name);
	/* An engine that did not answer is not asked again. */
	if (!notes->list.n)
		other_names(&others, more, ARRAY_LEN(more));
	if (!candidates_read(&all))
		candidates_nearest(&all, s->name, more, nearest, sizeof(nearest));
	if (forced < TARGET_KINDS)
		err_set(err, ESRCH, "no %s is named %.100s%s%s%.200s", kinds[forced].what, s->name, nearest,
			notes->list.n ? "; " : "", notes->list.n ? notes->list.v[0].text : "");
	else if (s->carrier)
		err_set(err, ESRCH,
			"no container, pod, unit or process is named %.100s; process %d (su, sudo or sh -c) only has it as an "
			"argument: cmd:%.100s records that%s", s->name, (int)s->carrier, s->name, nearest);
	else
		err_set(err, ESRCH,
			"no container, pod, unit or process is named %.100s, and none has it in its command line%s%s%.200s", s->name,
			nearest, notes->list.n ? "; " : "", notes->list.n ? notes->list.v[0].text : "");
	candidates_done(&all);
	containers_done(&others);
	return -ESRCH;
}

static bool has_container(const struct target_found *f, const char *id)
{
	for (size_t i = 0; i < f->containers.list.n; i++)
		if (!strcmp(f->containers.list.v[i].id, id))
			return true;
	return false;
}

/* The container that a group is of, with the name that its engine knows it by. */
static void find_around(struct target_found *f, const struct cgrouppath *g)
{
	struct container_query q = { .name = g->container, .notes = &f->notes };
	struct containers all;

	containers_find(&q, &all);
	for (size_t i = 0; i < all.list.n; i++)
		vec_push(&f->containers.list, all.list.v[i]);
	vec_done(&all.list);
	if (!has_container(f, g->container))
		vec_push(&f->containers.list, (struct container){ .engine = g->engine, .id = mem_strdup(g->container),
								  .name = mem_strdup(""), .image = mem_strdup(""),
								  .running = true });
}

/* Containers of processes that were found otherwise: by a pid, a name, a unit. */
static void find_containers_around(struct target_found *f)
{
	enum { MOST = 8 }; /* each is a question to the engine */

	for (size_t i = 0; i < f->pids.list.n && f->containers.list.n < MOST; i++) {
		struct cgrouppath g;

		if (!cgrouppath_read(f->pids.list.v[i], &g) && g.container && !has_container(f, g.container))
			find_around(f, &g);
		cgrouppath_done(&g);
	}
}

/* Fills in what is known of the processes beside their pids. */
static int complete(struct target_found *f, const char *name, struct err *err)
{
	struct proc_status status;
	struct proc_stat stat;
	struct cgrouppath g;
	pid_t first = f->containers.list.n ? f->containers.list.v[0].pid : 0;

	if (f->kind == TARGET_NAME || f->kind == TARGET_COMMAND || f->kind == TARGET_PID)
		f->main_pid = f->pids.list.v[0];
	else
		f->main_pid = initproc_main(&f->pids, first);
	if (!f->main_pid)
		return err_set(err, ESRCH, "%s stopped during the search", name);
	if (!proc_stat(f->main_pid, &stat)) {
		memcpy(f->name, stat.name, sizeof(f->name));
		if (!proc_stat(stat.parent, &stat) && initproc_is_wrapper(stat.name))
			memcpy(f->wrapper, stat.name, sizeof(f->wrapper));
	}
	f->inner_pid = proc_status(f->main_pid, &status) ? f->main_pid : status.inner_pid;
	if (!cgrouppath_read(f->main_pid, &g)) {
		f->cgroup = mem_strdup(g.path);
		f->unit = mem_strdup(g.unit);
	}
	cgrouppath_done(&g);
	if (f->kind != TARGET_CONTAINER && f->kind != TARGET_POD)
		find_containers_around(f);
	return 0;
}

int target_find(const char *name, struct target_found *ret, struct err *err)
{
	struct search s = { .name = name, .found = ret,
			    .deadline_ns = clock_mono_ns() + CONTAINER_SOCKETS_MS * 1000000ULL };
	enum target_kind kind = forced_kind(&s.name);
	int r = -ENOENT;

	*ret = (struct target_found){ 0 };
	s.forced = kind < TARGET_KINDS;
	if (!*s.name)
		return err_set(err, EINVAL, "the name of the process is empty");
	if (!s.forced && is_number(s.name))
		kind = TARGET_PID;
	if (kind < TARGET_KINDS) {
		ret->kind = kind;
		r = kinds[kind].find(&s, err);
	}
	for (int k = TARGET_CONTAINER; kind == TARGET_KINDS && r == -ENOENT && k < TARGET_KINDS; k++) {
		ret->kind = k;
		r = kinds[k].find(&s, err);
	}
	if (r == -ENOENT)
		r = not_found(&s, kind, err);
	if (!r)
		r = complete(ret, s.name, err);
	if (r)
		target_found_done(ret);
	/* Users and processes chose the names, and the message may go to a terminal. */
	for (char *p = err && r ? err->text : ""; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return r;
}

int target_resolve(const char *name, struct proc_ids *ret, struct err *err)
{
	struct target_found f;
	int r = target_find(name, &f, err);

	*ret = f.pids;
	f.pids = (struct proc_ids){ 0 };
	target_found_done(&f);
	return r;
}

void target_found_done(struct target_found *f)
{
	vec_done(&f->pids.list);
	containers_done(&f->containers);
	container_notes_done(&f->notes);
	free(f->unit);
	free(f->cgroup);
	*f = (struct target_found){ 0 };
}
