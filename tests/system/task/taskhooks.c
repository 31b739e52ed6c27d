/*
 * taskhooks.c HOW PROGRAM [TIMES] - puts hooks into the vtables of truth-vtables, and compares what they see with the truth.
 *
 * For "cycle" and "kill" PROGRAM may be the number of a process that runs on tokio.
 *
 * HOW: "truth": each call and its time; "life": what becomes of the hooks by fork, exec, another gasflame, a missing clock, a
 * filter; "left": leaves hooks of a process in place and prints its number, which the caller detaches and ends; "both": with the heap's hooks in the same process; "cycle": TIMES in and out of one process that works; "kill": the
 * same by a child that is killed at a random moment; "die": the target is killed; "hostile": TIMES of targets that write
 * anything to what they share with us; "bench": what a poll and a wake cost. Prints a line for each check, and ends with 1 when
 * one failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "collect/heap/implant.h"
#include "collect/task/taskimplant.h"
#include "elf/tokio/tokio.h"
#include "elf/worker/worker.h"
#include "target/proc.h"

enum { TYPES = 3, MOST_EVENTS = 1 << 20, ROOM = 4096, THREADS = 3 };

static int failures;

static bool check(bool good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
	failures += !good;
	return good;
}

static bool check_err(int r, const char *what, const struct err *err)
{
	if (r < 0)
		printf("#   %s\n", err->text);
	return check(r >= 0, what);
}

/* --- the program --- */

struct program {
	pid_t pid;
	FILE *in, *out; /* NULL: it is not ours */
	struct taskimplant_vtable v[TASKIMPLANT_VTABLES];
	size_t n;
};

static bool in_namespace; /* programs that are started have pids of their own */

static void start(struct program *p, const char *path, const char *mode, const char *argument)
{
	int to[2], from[2];
	char line[512];

	*p = (struct program){ 0 };
	if (pipe(to) < 0 || pipe(from) < 0)
		exit(1);
	fflush(stdout);
	p->pid = in_namespace ? syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0) : fork();
	if (!p->pid) {
		if (strcmp(mode, "stay") != 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl(path, path, mode, argument, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->in = fdopen(to[1], "w");
	p->out = fdopen(from[0], "r");
	setvbuf(p->out, NULL, _IONBF, 0); /* select() must see what is left */
	while (fgets(line, sizeof(line), p->out) && strcmp(line, "ready\n") != 0) {
		struct taskimplant_vtable v = { 0 };

		if (p->n <= TYPES && /* one more than types */
		    sscanf(line, "vtable %lx %lx %lx %lx %u", &v.address, &v.poll, &v.schedule, &v.dealloc, &v.id_offset) == 5)
			p->v[p->n++] = v;
	}
}

/* The vtables of a process that runs already. */
static void find(struct program *p, pid_t pid)
{
	struct worker *w = worker_new();
	struct tokio_program found = { 0 };
	struct proc_maps maps = { 0 };
	struct err err = { 0 };
	char path[64], exe[4096] = "";
	uint64_t bias = 0;
	int fd;

	*p = (struct program){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || readlink(path, exe, sizeof(exe) - 1) < 0 || worker_tokio(w, fd, -1, &found, &err) < 0 ||
	    proc_maps_read(pid, false, &maps) < 0) {
		printf("not ok - %s: %s\n", path, err.text);
		exit(1);
	}
	for (size_t i = 0; i < maps.list.n && !bias; i++)
		if (!strcmp(maps.list.v[i].path, exe) && !maps.list.v[i].offset)
			bias = maps.list.v[i].start;
	for (; p->n < found.count && p->n < TASKIMPLANT_VTABLES; p->n++) {
		const struct tokio_vtable *v = &found.vtables[p->n];

		p->v[p->n] = (struct taskimplant_vtable){ v->address + bias, v->poll + bias, v->schedule + bias, v->dealloc + bias,
							  v->id_offset };
	}
	tokio_done(&found);
	proc_maps_done(&maps);
	close(fd);
	worker_free(w);
}

static void say(struct program *p, const char *what, unsigned long n)
{
	fprintf(p->in, n ? "%s %lu\n" : "%s\n", what, n);
	fflush(p->in);
}

/* Its status, or -1: it was alive, and has been killed. */
static int end(struct program *p)
{
	int status = -1;

	if (!p->in)
		return kill(p->pid, 0) == 0 ? -1 : 0;
	if (waitpid(p->pid, &status, WNOHANG) != p->pid) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
		status = -1;
	}
	fclose(p->in);
	fclose(p->out);
	return status;
}

/* --- what we saw --- */

static struct taskimplant_event *events;
static size_t event_count;

static void read_all(struct taskimplant *t)
{
	size_t got;

	do {
		got = taskimplant_read(t, events + event_count, MIN((size_t)ROOM, MOST_EVENTS - event_count));
		event_count += got;
	} while (got == ROOM);
}

/* Reads until the program has written a line; the number in it. */
static uint64_t read_until(struct taskimplant *t, struct program *p, char *line, size_t size)
{
	struct timespec nap = { .tv_nsec = 2000000 };
	fd_set set;

	for (;;) {
		struct timeval none = { 0 };

		FD_ZERO(&set);
		FD_SET(fileno(p->out), &set);
		if (t)
			read_all(t);
		if (select(fileno(p->out) + 1, &set, NULL, NULL, &none) > 0)
			break;
		nanosleep(&nap, NULL);
	}
	return fgets(line, size, p->out) ? strlen(line) : 0;
}

struct seen {
	uint64_t polls, wakes, deallocs, poll_ns;
};

static struct seen sum(uint32_t tid, uint32_t type)
{
	struct seen s = { 0 };

	for (size_t i = 0; i < event_count; i++) {
		const struct taskimplant_event *e = &events[i];

		if (e->tid != tid || e->vtable != type)
			continue;
		s.polls += e->what == TASK_POLL;
		s.wakes += e->what == TASK_WAKE;
		s.deallocs += e->what == TASK_DEALLOC;
		s.poll_ns += e->duration_ns;
	}
	return s;
}

/* "truth TID TYPE POLLS WAKES DEALLOCS INNER OUTER". The time of a poll is between that within it and that around it. */
static void compare(const char *line)
{
	uint64_t polls, wakes, deallocs, inner, outer, slack;
	unsigned tid, type;
	struct seen s;
	char what[256];

	if (sscanf(line, "truth %u %u %lu %lu %lu %lu %lu", &tid, &type, &polls, &wakes, &deallocs, &inner, &outer) != 7)
		return;
	s = sum(tid, type);
	slack = inner / 1000 + 2 * polls; /* the clocks' own steps */
	snprintf(what, sizeof(what), "type %u of thread %u: %lu polls, %lu wakes, %lu ends, %.3f ms (%.3f … %.3f)", type, tid, s.polls,
		 s.wakes, s.deallocs, s.poll_ns / 1e6, inner / 1e6, outer / 1e6);
	check(s.polls == polls && s.wakes == wakes && s.deallocs == deallocs && s.poll_ns + slack >= inner &&
		      s.poll_ns <= outer + slack, what);
}

static uint64_t over(const struct taskimplant_event *e)
{
	return e->time_ns + e->duration_ns;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static size_t count_tasks(void)
{
	uint64_t *ids = mem_alloc((event_count + 1) * sizeof(*ids));
	size_t n = 0;

	for (size_t i = 0; i < event_count; i++)
		ids[i] = events[i].task;
	qsort(ids, event_count, sizeof(*ids), by_value);
	for (size_t i = 0; i < event_count; i++)
		n += !i || ids[i] != ids[i - 1];
	free(ids);
	return n;
}

static void check_order(uint64_t begin, uint64_t finish)
{
	bool ordered = true, within = true, inside = true, tickets = true;

	for (size_t i = 0; i < event_count; i++) {
		const struct taskimplant_event *e = &events[i];

		ordered &= !i || over(e) >= over(&events[i - 1]);
		within &= e->time_ns >= begin && over(e) <= finish;
		/* The sleeper is woken within a poll, the outer task is not. */
		if (e->what == TASK_WAKE) {
			inside &= (e->vtable == 0) == (e->waker != 0) && e->waker_vtable == (e->vtable ? UINT32_MAX : 2);
			tickets &= e->ticket && e->scale >= 1;
		}
	}
	check(ordered, "events are in the order in which they were over");
	check(within, "their times are within the recording's");
	check(inside, "a wake says which task its thread polled");
	check(tickets, "with an interval of 1 ns each wake has a ticket");
}

static void test_truth(const char *path, unsigned long times)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };
	char line[512];
	uint64_t begin, tasks = 0;

	start(&p, path, "obey", NULL);
	if (!check_err(taskimplant_open(p.pid, &t, &err), "the blob is put into a process", &err))
		return;
	check(taskimplant_stopped_ns(t) > 0, "for that a thread was stopped");
	check(taskimplant_hook(t, p.v, p.n, &err) == TYPES + 1 && taskimplant_hooked(t) == 3 * (TYPES + 1), "all slots lead to hooks");
	begin = clock_mono_ns();
	check_err(taskimplant_activate(t, 1, &err), "a recording begins", &err);
	say(&p, "run", times);
	while (read_until(t, &p, line, sizeof(line)) && sscanf(line, "done %lu", &tasks) != 1) {
		/* All threads have ended: what they wrote is there, once it is old enough. */
		struct timespec nap = { .tv_nsec = 3000000 };

		nanosleep(&nap, NULL);
		read_all(t);
		compare(line);
	}
	check_order(begin, clock_mono_ns());
	check(count_tasks() == tasks, "tasks are told apart where their addresses are the same");
	check(taskimplant_lost(t) == 0, "nothing was lost");
	check(taskimplant_unhook(t, &err) == 0 && taskimplant_hooked(t) == 0, "all slots are put back");
	taskimplant_close(t);
	say(&p, "run", 10);
	check(read_until(NULL, &p, line, sizeof(line)) > 0, "the program goes on");
	check(end(&p) == -1, "and lives");
}

/* --- life --- */

static int hook_program(struct program *p, struct taskimplant **t, struct err *err)
{
	int r = taskimplant_open(p->pid, t, err);

	return r < 0 ? r : taskimplant_hook(*t, p->v, p->n, err);
}

static void test_fork(const char *path)
{
	struct program p;
	struct taskimplant *t, *c;
	struct err err = { 0 };
	char line[512];
	pid_t child = 0;

	start(&p, path, "obey", NULL);
	if (!check_err(hook_program(&p, &t, &err), "fork: the parent is hooked", &err))
		return;
	taskimplant_activate(t, 1, &err);
	event_count = 0;
	say(&p, "fork", 0);
	while (read_until(t, &p, line, sizeof(line)) && sscanf(line, "child %d", &child) != 1)
		;
	read_all(t);
	check(child > 0 && kill(child, 0) == 0, "fork: the child works, and its hooks do nothing");
	check(event_count == 0 && taskimplant_lost(t) == 0, "fork: nothing of it is in the parent's figures");
	if (check_err(taskimplant_find(child, &c, &err), "fork: the child's hooks are found", &err)) {
		check(taskimplant_hooked(c) == 3 * (TYPES + 1) && taskimplant_unhook(c, &err) == 0 && taskimplant_hooked(c) == 0,
		      "fork: and taken out");
		taskimplant_close(c);
	}
	if (check_err(taskimplant_open(child, &c, &err), "fork: it can be attached to by itself", &err)) {
		check(taskimplant_hook(c, p.v, p.n, &err) == TYPES + 1 && taskimplant_activate(c, 0, &err) == 0, "fork: and recorded");
		for (int k = 0; k < 2000 && !event_count; k++) {
			usleep(5000);
			event_count = taskimplant_read(c, events, ROOM);
		}
		check(event_count > 0 && events[0].tid == (uint32_t)child, "fork: its events are its own");
		check(taskimplant_unhook(c, &err) == 0, "fork: and put back");
		taskimplant_close(c);
	}
	check(taskimplant_hooked(t) == 3 * (TYPES + 1), "fork: the parent's hooks are as they were");
	taskimplant_unhook(t, &err);
	taskimplant_close(t);
	end(&p);
}

static void test_exec(const char *path)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };
	char line[512];

	start(&p, path, "obey", NULL);
	if (!check_err(hook_program(&p, &t, &err), "exec: hooked", &err))
		return;
	taskimplant_activate(t, 1, &err);
	check(!taskimplant_gone(t), "exec: the hooks are there before");
	say(&p, "exec", 0);
	while (read_until(NULL, &p, line, sizeof(line)) && strcmp(line, "ready\n") != 0)
		;
	check(taskimplant_gone(t) && taskimplant_replaced(t), "exec: they went away, and it is noticed");
	taskimplant_read(t, events, ROOM);
	check(taskimplant_unhook(t, &err) == 0, "exec: nothing is left to put back");
	taskimplant_close(t);
	say(&p, "run", 10);
	check(read_until(NULL, &p, line, sizeof(line)) > 0, "exec: the new program works");
	end(&p);
}

static void test_left(const char *path)
{
	struct program p;
	struct taskimplant *t, *other;
	struct err err = { 0 };
	pid_t child;

	start(&p, path, "load", "2");
	child = fork();
	if (!child) {
		_exit(hook_program(&p, &t, &err) != TYPES + 1 || taskimplant_activate(t, 1, &err) < 0 ? 1 : 0);
	}
	waitpid(child, NULL, 0);
	if (check_err(taskimplant_find(p.pid, &t, &err), "killed: hooks that were left are found", &err)) {
		check(taskimplant_hooked(t) == 3 * (TYPES + 1), "killed: all of them");
		check(taskimplant_open(p.pid, &other, &err) == -EBUSY, "another gasflame is told so");
		taskimplant_close(t);
	}
	if (check_err(hook_program(&p, &t, &err), "killed: the next attach takes over", &err)) {
		check(taskimplant_stopped_ns(t) == 0, "killed: and stops nobody");
		check(taskimplant_hooked(t) == 3 * (TYPES + 1) && taskimplant_unhook(t, &err) == 0 && taskimplant_hooked(t) == 0,
		      "killed: and puts all back");
		taskimplant_close(t);
	}
	check(end(&p) == -1, "killed: the program lives");
}

/* For whoever detaches them; the process is not ended with us. */
static void test_leave(const char *path)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };

	start(&p, path, "stay", "2");
	if (hook_program(&p, &t, &err) == TYPES + 1 && taskimplant_activate(t, 1, &err) == 0)
		printf("%d\n", p.pid);
}

/* Vtables that hold something else are left alone. */
static void test_expected(const char *path)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };

	start(&p, path, "obey", NULL);
	p.v[1].schedule++;
	p.v[2].address = 16;
	if (check_err(taskimplant_open(p.pid, &t, &err), "expected: open", &err)) {
		check(taskimplant_hook(t, p.v, p.n, &err) == TYPES + 1 - 2, "expected: what is not as expected is not counted");
		check(taskimplant_hooked(t) <= 3 * 2 + 1, "expected: and not changed");
		check(taskimplant_unhook(t, &err) == 0, "expected: all is put back");
		taskimplant_close(t);
	}
	end(&p);
}

static void test_namespace(const char *path)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };
	char thread[64];
	bool ours = true;

	in_namespace = true;
	start(&p, path, "load", "2");
	in_namespace = false;
	if (check_err(hook_program(&p, &t, &err), "a pid namespace: hooked", &err)) {
		taskimplant_activate(t, 1, &err);
		event_count = 0;
		for (int k = 0; k < 2000 && !event_count; k++) {
			usleep(5000);
			event_count = taskimplant_read(t, events, ROOM);
		}
		for (size_t i = 0; i < event_count; i++) {
			snprintf(thread, sizeof(thread), "/proc/%d/task/%u", p.pid, events[i].tid);
			ours &= access(thread, F_OK) == 0;
		}
		check(event_count > 0 && ours, "a pid namespace: threads have the numbers that we see");
		check(taskimplant_unhook(t, &err) == 0, "a pid namespace: all is put back");
		taskimplant_close(t);
	}
	end(&p);
}

/* Another version of gasflame was here: its blob is left alone, and only in the way while slots lead to it. */
static void test_older(const char *path)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };

	start(&p, path, "older", "0");
	if (check_err(hook_program(&p, &t, &err), "another version's blob: a new one beside it", &err)) {
		check(taskimplant_unhook(t, &err) == 0, "another version's blob: all is put back");
		taskimplant_close(t);
	}
	end(&p);
	start(&p, path, "older", "1");
	check(taskimplant_open(p.pid, &t, &err) == -EPROTO, "another version's blob in use: refused");
	end(&p);
}

static void test_refused(const char *path)
{
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };

	start(&p, path, "notsc", NULL);
	check(taskimplant_open(p.pid, &t, &err) == -ENOTSUP && strstr(err.text, "time-stamp counter"), "no clock: refused, with the reason");
	check(taskimplant_find(p.pid, &t, &err) == -ENOENT, "no clock: nothing is left in it");
	check(end(&p) == -1, "no clock: it lives");
	start(&p, path, "seccomp", NULL);
	if (check_err(hook_program(&p, &t, &err), "a filter: hooked all the same", &err)) {
		taskimplant_activate(t, 1, &err);
		event_count = 0;
		for (int k = 0; k < 2000 && !event_count; k++) {
			usleep(5000);
			event_count = taskimplant_read(t, events, ROOM);
		}
		check(event_count > 0, "a filter: events come");
		check(taskimplant_unhook(t, &err) == 0, "a filter: all is put back");
		taskimplant_close(t);
	}
	check(end(&p) == -1, "a filter: it lives");
}

static void test_both(const char *path)
{
	struct program p;
	struct worker *w = worker_new();
	struct implant *heap;
	struct taskimplant *t;
	struct err err = { 0 };
	char line[512];

	start(&p, path, "obey", NULL);
	if (!check_err(hook_program(&p, &t, &err), "both: tasks", &err) ||
	    !check_err(implant_open(p.pid, w, &heap, &err), "both: heap", &err))
		return;
	check(implant_hook(heap, w, &err) > 0 && implant_activate(heap, 4096, &err) == 0, "both: the heap is hooked, too");
	check(taskimplant_activate(t, 1, &err) == 0, "both: and both record");
	event_count = 0;
	say(&p, "run", 50);
	do
		read_until(t, &p, line, sizeof(line));
	while (strncmp(line, "done", 4) != 0);
	usleep(5000);
	read_all(t);
	check(event_count == THREADS * (50 * 5 + 10) && !taskimplant_lost(t), "both: each event is there");
	check(implant_unhook(heap, &err) == 0 && taskimplant_hooked(t) == 3 * (TYPES + 1), "both: the heap's leave, the tasks' stay");
	check(taskimplant_unhook(t, &err) == 0 && implant_hooked(heap) == 0, "both: all is put back");
	implant_close(heap);
	taskimplant_close(t);
	check(end(&p) == -1, "both: it lives");
	worker_free(w);
}

/* --- many times --- */

static uint64_t longest_ns;

static int cycle(struct program *p, unsigned work_us)
{
	struct err err = { 0 };
	struct taskimplant *t;
	int r = hook_program(p, &t, &err);

	if (r >= 0 && r < (int)p->n)
		return printf("#   %d of %zu vtables are hooked\n", r, p->n);
	if (r > 0)
		r = taskimplant_activate(t, 1000, &err);
	if (r < 0)
		return printf("#   %s\n", err.text);
	longest_ns = MAX(longest_ns, taskimplant_stopped_ns(t));
	for (unsigned waited = 0; waited < work_us; waited += 500) {
		usleep(500);
		taskimplant_read(t, events, ROOM);
	}
	r = taskimplant_unhook(t, &err);
	taskimplant_close(t);
	return r ? printf("#   %s\n", err.text) : 0;
}

static int tidy(pid_t pid)
{
	struct err err = { 0 };
	struct taskimplant *t;
	int r;

	/* The child that stops threads may still be at work. */
	for (int tries = 0; tries < 1000 && (r = taskimplant_find(pid, &t, &err)) == -EBUSY; tries++)
		usleep(1000);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return printf("#   after a kill: %s\n", err.text);
	r = taskimplant_unhook(t, &err) || taskimplant_hooked(t);
	taskimplant_close(t);
	return r;
}

static int killed(struct program *p)
{
	pid_t child = fork();

	if (!child)
		_exit(cycle(p, 2000));
	usleep(random() % 8000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return tidy(p->pid);
}

static void test_many(const char *path, const char *how, unsigned long times)
{
	struct program p;
	char what[128];
	unsigned long done = 0;
	bool kills = !strcmp(how, "kill");

	if (strspn(path, "0123456789") == strlen(path))
		find(&p, atoi(path));
	else
		start(&p, path, kills ? "short" : "load", "3");
	while (done < times && !(kills ? killed(&p) : cycle(&p, 1000)) && kill(p.pid, 0) == 0)
		done++;
	snprintf(what, sizeof(what), "%s: %lu of %lu times, longest stop %lu us, %zu vtables", how, done, times, longest_ns / 1000, p.n);
	check(done == times, what);
	check(!tidy(p.pid) && end(&p) == -1, "the program lives, and nothing is left in it");
}

static int wait_limited(pid_t child, int seconds)
{
	int status = -1;

	for (int i = 0; i < seconds * 100; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

/* The target ends at a random moment; or it writes anything to what it shares with us. We must end, soon, and not crash. */
static void test_target(const char *path, bool hostile, unsigned long times)
{
	unsigned long done = 0;
	char what[128], seed[24];

	for (; done < times; done++) {
		struct program p;
		pid_t child;
		int status;

		snprintf(seed, sizeof(seed), "%lu", done + 1);
		start(&p, path, hostile ? "hostile" : "load", hostile ? seed : "2");
		child = fork();
		if (!child) {
			if (!freopen("/dev/null", "w", stdout))
				_exit(9);
			for (int k = 0; k < 3; k++)
				cycle(&p, hostile ? 20000 : 3000);
			_exit(0);
		}
		if (!hostile) {
			usleep(random() % 8000);
			kill(p.pid, SIGKILL);
		}
		status = wait_limited(child, 60);
		if (status == -1 || !WIFEXITED(status)) {
			printf("#   ours ended with %d\n", status);
			break;
		}
		status = end(&p);
		if (hostile && status != -1) {
			printf("#   it ended with %d\n", status);
			break;
		}
	}
	snprintf(what, sizeof(what), "%s targets: %lu of %lu", hostile ? "hostile" : "dying", done, times);
	check(done == times, what);
}

/* --- cost --- */

static void ask_bench(struct taskimplant *t, struct program *p, unsigned long n, double *ret_poll, double *ret_wake)
{
	char line[512];

	say(p, "bench", n);
	do {
		event_count = 0;
		read_until(t, p, line, sizeof(line));
		sscanf(line, "bench %lf %lf", ret_poll, ret_wake);
	} while (strncmp(line, "done", 4) != 0);
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_double);
	return v[n / 2];
}

/* In turns: without hooks, asleep, at work, so that a busy machine is busy for all of them. */
static void test_bench(const char *path, unsigned long times)
{
	enum { KINDS = 3, MOST = 101 };
	double poll[KINDS][MOST], wake[KINDS][MOST], d[MOST];
	struct program p;
	struct taskimplant *t;
	struct err err = { 0 };
	uint64_t lost = 0;
	unsigned long n = 8000; /* three events for each: all of them find room */

	times = MIN(times, MOST);
	start(&p, path, "obey", NULL);
	if (!check_err(taskimplant_open(p.pid, &t, &err), "bench: open", &err))
		return;
	for (unsigned long k = 0; k < times; k++) {
		ask_bench(NULL, &p, n, &poll[0][k], &wake[0][k]);
		taskimplant_hook(t, p.v, p.n, &err);
		ask_bench(NULL, &p, n, &poll[1][k], &wake[1][k]);
		taskimplant_activate(t, 1000000, &err);
		ask_bench(t, &p, n, &poll[2][k], &wake[2][k]);
		lost += taskimplant_lost(t);
		taskimplant_unhook(t, &err);
	}
	for (int kind = 1; kind < KINDS; kind++) {
		double cost[2];

		for (int what = 0; what < 2; what++) {
			for (unsigned long k = 0; k < times; k++)
				d[k] = what ? wake[kind][k] - wake[0][k] : poll[kind][k] - poll[0][k];
			cost[what] = median(d, times);
		}
		printf("bench %s: poll +%.2f ns, wake +%.2f ns\n", kind == 1 ? "asleep" : "at work", cost[0], cost[1]);
	}
	check(!lost, "bench: nothing was lost");
	taskimplant_close(t);
	end(&p);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
	unsigned long times = argc > 3 ? strtoul(argv[3], NULL, 10) : 20;

	events = mem_alloc(MOST_EVENTS * sizeof(*events));
	srandom(time(NULL));
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(how, "truth")) {
		test_truth(path, times);
	} else if (!strcmp(how, "life")) {
		test_fork(path);
		test_exec(path);
		test_left(path);
		test_expected(path);
		test_namespace(path);
		test_older(path);
		test_refused(path);
	} else if (!strcmp(how, "left")) {
		test_leave(path);
	} else if (!strcmp(how, "both")) {
		test_both(path);
	} else if (!strcmp(how, "cycle") || !strcmp(how, "kill")) {
		test_many(path, how, times);
	} else if (!strcmp(how, "die") || !strcmp(how, "hostile")) {
		test_target(path, *how == 'h', times);
	} else if (!strcmp(how, "bench")) {
		test_bench(path, times);
	} else {
		fprintf(stderr, "usage: taskhooks truth|life|left|both|cycle|kill|die|hostile|bench PROGRAM [TIMES]\n");
		return 2;
	}
	free(events);
	return failures ? 1 : 0;
}
