#include "cmd/ps/psrows.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/cgroup/cgrouppath.h"
#include "target/initproc.h"

/* A process, at both looks. */
struct seen {
	pid_t pid;
	size_t row;
	uint64_t cpu_ns, time_ns;
	struct proc_stat stat;
	char *command, *cgrouppath_text;
	struct cgrouppath group;
};

struct census {
	VEC(struct seen) list;
	struct containers containers;
};

const char *ps_kind_name(enum ps_kind kind)
{
	static const char *const names[] = { "container", "pod", "unit", "process" };

	return names[kind];
}

const char *ps_symbols_name(enum ps_symbols symbols)
{
	static const char *const names[] = { "?", "none", "exported", "elsewhere", "yes", "debug" };

	return names[symbols];
}

/* Of all of its threads, to the nanosecond: ticks are too coarse for a fraction of a second. */
static uint64_t cpu_time(pid_t pid, const struct proc_stat *s)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return s->cpu_ns;
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static bool is_kernel_thread(pid_t pid, const char *command)
{
	_cleanup_free_ char *exe = *command ? mem_strdup("") : proc_exe(pid);

	return !exe;
}

static int census_read(struct census *c)
{
	struct proc_ids all;
	int r = proc_list(&all);

	for (size_t i = 0; !r && i < all.list.n; i++) {
		struct seen s = { .pid = all.list.v[i] };

		if (s.pid == getpid() || proc_stat(s.pid, &s.stat) || s.stat.state == 'Z' || s.stat.state == 'X')
			continue;
		s.command = proc_command(s.pid);
		if (!s.command || is_kernel_thread(s.pid, s.command) || !(s.cgrouppath_text = cgrouppath_text(s.pid))) {
			free(s.command);
			continue;
		}
		s.time_ns = clock_mono_ns();
		s.cpu_ns = cpu_time(s.pid, &s.stat);
		cgrouppath_parse(s.cgrouppath_text, &s.group);
		vec_push(&c->list, s);
	}
	vec_done(&all.list);
	return r;
}

static void census_done(struct census *c)
{
	vec_done_each(&c->list, e, free(e->command); free(e->cgrouppath_text); cgrouppath_done(&e->group));
	containers_done(&c->containers);
}

/* --- rows --- */

static char *copy(const char *s)
{
	return mem_strdup(s ? s : "");
}

/* Finds the engines' entry for the container of a process. */
static struct container *container_of(const struct census *c, const struct seen *s)
{
	for (size_t i = 0; i < c->containers.list.n; i++) {
		struct container *x = &c->containers.list.v[i];

		/* Most ids are of the form that the path was searched for already. */
		if (s->group.container ? !strcmp(s->group.container, x->id) : cgrouppath_has(s->cgrouppath_text, x->id))
			return x;
	}
	return NULL;
}

static bool row_is(const struct ps_row *row, const char *id, const struct seen *s)
{
	if (id)
		return row->container.id && !strcmp(row->container.id, id);
	return s->group.unit && row->unit_path && !strcmp(row->unit_path, s->group.unit_path);
}

static void container_row(struct ps_row *row, const struct container *known, const struct seen *s)
{
	const struct container *c = known ? known : &(struct container){ .engine = s->group.engine, .id = s->group.container };

	row->container = (struct container){ .engine = c->engine, .id = mem_strdup(c->id), .name = copy(c->name),
					     .image = copy(c->image), .namespace = mem_strdup(c->namespace),
					     .pod = mem_strdup(c->pod), .part = c->pod ? copy(c->part) : NULL, .pid = c->pid };
	row->kind = c->pod ? PS_POD : PS_CONTAINER;
	row->name = container_title(&row->container);
	row->target = c->pod ? mem_printf("pod:%s", row->name) :
			       mem_printf("container:%s", *row->container.name ? row->container.name : c->id);
}

static void new_row(struct psrows *rows, const struct container *known, const struct seen *s)
{
	struct ps_row row = { .kind = PS_PROCESS };

	if (known || s->group.container) {
		container_row(&row, known, s);
	} else if (s->group.unit) {
		row.kind = PS_UNIT;
		row.name = mem_strdup(s->group.unit);
		row.unit_path = mem_strdup(s->group.unit_path);
		row.target = mem_printf("unit:%s", row.unit_path);
	} else {
		row.name = mem_strdup(s->stat.name);
		row.target = mem_printf("pid:%d", (int)s->pid);
	}
	vec_push(&rows->list, row);
}

/* The row of a process, made if it is the first there. */
static size_t row_of(struct psrows *rows, const struct census *c, const struct seen *s)
{
	const struct container *known = container_of(c, s);
	const char *id = known ? known->id : s->group.container;

	if (id || s->group.unit)
		for (size_t i = 0; i < rows->list.n; i++)
			if (row_is(&rows->list.v[i], id, s))
				return i;
	new_row(rows, known, s);
	return rows->list.n - 1;
}

static void process_row(struct psrows *rows, const struct seen *s)
{
	struct ps_row row = { .kind = PS_PROCESS, .name = mem_strdup(s->stat.name),
			      .target = mem_printf("pid:%d", (int)s->pid) };

	vec_push(&row.pids.list, s->pid);
	vec_push(&rows->list, row);
}

static void add_process(struct ps_row *row, const struct seen *s)
{
	struct proc_stat now;
	uint64_t cpu, elapsed;

	if (proc_stat(s->pid, &now) || now.start_ticks != s->stat.start_ticks)
		return;
	cpu = cpu_time(s->pid, &now);
	elapsed = clock_mono_ns() - s->time_ns;
	if (cpu > s->cpu_ns && elapsed)
		row->cpu_percent += 100.0 * (cpu - s->cpu_ns) / elapsed;
	row->rss_bytes += now.rss_bytes;
	row->threads += now.threads;
}

static int busiest_first(const void *a, const void *b)
{
	const struct ps_row *x = a, *y = b;

	return ORDER(y->cpu_percent, x->cpu_percent) ?: ORDER(y->rss_bytes, x->rss_bytes) ?: x->pid - y->pid;
}

static void row_done(struct ps_row *row)
{
	free(row->name);
	free(row->target);
	free(row->unit_path);
	free(row->command);
	container_done(&row->container);
	vec_done(&row->pids.list);
}

/* The main process of each row; rows whose processes are all gone are dropped. */
static void find_mains(struct psrows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->list.n; i++) {
		struct ps_row *row = &rows->list.v[i];
		struct proc_status status;

		row->pid = initproc_main(&row->pids, row->container.pid);
		if (row->pid) {
			row->inner_pid = proc_status(row->pid, &status) ? row->pid : status.inner_pid;
			row->command = proc_command(row->pid);
			rows->list.v[n++] = *row;
		} else {
			row_done(row);
		}
	}
	rows->list.n = n;
}

static void wait_until(uint64_t when_ns)
{
	uint64_t now = clock_mono_ns();

	if (now < when_ns)
		poll(NULL, 0, (int)((when_ns - now) / 1000000) + 1);
}

int psrows_read(uint64_t interval_ns, bool all, struct psrows *ret)
{
	struct container_query q = { .notes = &ret->notes };
	uint64_t start = clock_mono_ns();
	struct census c = { 0 };
	int r;

	*ret = (struct psrows){ 0 };
	r = census_read(&c);
	containers_find(&q, &c.containers);
	for (size_t i = 0; i < c.list.n; i++) {
		struct seen *s = &c.list.v[i];

		s->row = row_of(ret, &c, s);
		vec_push(&ret->list.v[s->row].pids.list, s->pid);
	}
	wait_until(start + interval_ns);
	for (size_t i = 0; i < c.list.n; i++) {
		const struct seen *s = &c.list.v[i];

		add_process(&ret->list.v[s->row], s);
		if (all && ret->list.v[s->row].kind != PS_PROCESS) {
			process_row(ret, s);
			add_process(&ret->list.v[ret->list.n - 1], s);
		}
	}
	census_done(&c);
	find_mains(ret);
	vec_sort(&ret->list, busiest_first);
	return r;
}

void psrows_filter(struct psrows *rows, char *const *words, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->list.n; i++) {
		struct ps_row *row = &rows->list.v[i];
		bool keep = !n;

		for (size_t k = 0; k < n; k++)
			keep |= strcasestr(row->name, words[k]) || (row->command && strcasestr(row->command, words[k])) ||
				(row->container.image && strcasestr(row->container.image, words[k]));
		if (keep) {
			rows->list.v[kept++] = *row;
		} else {
			row_done(row);
		}
	}
	rows->list.n = kept;
}

void psrows_done(struct psrows *rows)
{
	vec_done_each(&rows->list, e, row_done(e));
	container_notes_done(&rows->notes);
}
