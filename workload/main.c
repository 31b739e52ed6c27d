/*
 * main.c - options, threads, the timer, children, and the sums at the end.
 *
 * The main thread does no work but to start short-lived threads and to load a
 * library half-way. Temporary files are unlinked while open, so that no end
 * leaves them behind; the folder goes at the end, on SIGINT and on SIGTERM too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

/* A kind of work: its threads are named after it. pause: so that it does not drown the others. */
struct kind {
	const char *name;
	void (*unit)(struct worker *w);
	void (*done)(struct worker *w);
	int threads;       /* unless --threads says otherwise, for compute */
	unsigned pause_us; /* after each unit */
};

static struct kind kinds[] = {
	{ "compute", compute_unit, compute_done, 2, 0 },
	{ "produce", lock_produce_unit, NULL, 2, 100 },
	{ "consume", lock_consume_unit, NULL, 2, 0 },
	{ "disk", disk_unit, disk_done, 1, 500 },
	{ "alloc", alloc_unit, alloc_done, 1, 200 },
	{ "fault", fault_unit, NULL, 1, 2000 },
	{ "commit", commit_unit, disk_done, 1, 10000 },
	{ "query", query_unit, NULL, 2, 500 },
	{ "pool", pool_unit, NULL, 2, 0 },
	{ "serve", serve_unit, disk_done, 1, 0 },
	{ "ask", ask_unit, NULL, 1, 3000 },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct task {
	pthread_t thread;
	const struct kind *kind;
	struct counter_slot *slot;
	uint64_t seed;
	char name[16];
};

static struct {
	double seconds;
	uint64_t seed;
	bool quiet, with_exec, no_extras;
	int forks;
	int share; /* percent of the time for which threads compute */
	const char *counters_path;
	char folder[PATH_MAX];
} options = { .seconds = 10, .seed = 1, .share = 100 };

static volatile sig_atomic_t stopping;
static struct counters *counters;
static uint64_t handler_state[25];
static volatile sig_atomic_t handler_turns;

static double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now_s(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static void handle_stop(int signo)
{
	(void)signo;
	stopping = 1;
}

/* A bit of work in a handler, so that signal frames are in the profile. */
static void handle_timer(int signo)
{
	(void)signo;
	mix_state(handler_state, 4000);
	handler_turns++;
}

static struct counter_slot *take_slot(const char *kind)
{
	static _Atomic unsigned taken;
	unsigned i = atomic_fetch_add(&taken, 1);
	if (i >= COUNTERS_SLOTS)
		i = COUNTERS_SLOTS - 1; /* the rest share the last one */
	snprintf(counters->slot[i].kind, sizeof(counters->slot[i].kind), "%s", kind);
	return &counters->slot[i];
}

/* After each 5 ms of CPU time a thread that computes rests, where it has only a share. *since: its CPU time at the last rest. */
static void rest(double *since)
{
	double worked = seconds_of(CLOCK_THREAD_CPUTIME_ID) - *since;

	if (worked < 0.005)
		return;
	usleep((useconds_t)(worked * 1e6 * (100 - options.share) / options.share));
	*since = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static void *task_run(void *arg)
{
	struct task *t = arg;
	struct worker w = { .seed = t->seed * 0x9e3779b97f4a7c15ull | 1, .folder = options.folder };
	double since = 0;
	pthread_setname_np(pthread_self(), t->name);
	while (!stopping) {
		t->kind->unit(&w);
		atomic_fetch_add_explicit(&t->slot->units, 1, memory_order_relaxed);
		if (t->kind->pause_us)
			usleep(t->kind->pause_us);
		if (t->kind == &kinds[0] && options.share < 100)
			rest(&since);
	}
	if (t->kind->done)
		t->kind->done(&w);
	handler_state[1] ^= w.result;
	return NULL;
}

/* A thread that lives for some milliseconds. */
static void *blink_run(void *arg)
{
	struct worker w = { .seed = (uintptr_t)arg | 1 };
	pthread_setname_np(pthread_self(), "blink");
	for (int i = 0; i < 40 && !stopping; i++)
		compute_unit(&w);
	compute_done(&w);
	return NULL;
}

static void beside_self(char *path, size_t n, const char *name)
{
	char exe[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[length > 0 ? length : 0] = 0;
	snprintf(path, n, "%.3000s/%s", dirname(exe), name);
}

static void load_late(uint64_t (**ret)(uint64_t))
{
	char path[PATH_MAX];
	beside_self(path, sizeof(path), "liblate.so");
	void *library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "workload: %s\n", dlerror());
		return;
	}
	*(void **)ret = dlsym(library, "late_work");
}

static void start_timer(void)
{
	static char alternate[64 * 1024];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	sigaltstack(&stack, NULL); /* the main thread's; the others take it on their own stacks */
	struct sigaction action = { .sa_handler = handle_timer, .sa_flags = SA_RESTART | SA_ONSTACK };
	sigaction(SIGPROF, &action, NULL);
	struct itimerval every = { { 0, 20000 }, { 0, 20000 } };
	setitimer(ITIMER_PROF, &every, NULL);
}

static pid_t start_child(bool exec)
{
	struct counter_slot *slot = exec ? NULL : take_slot("child"); /* before the fork: slots are shared */
	pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	if (exec) {
		char seconds[32];
		snprintf(seconds, sizeof(seconds), "%.3f", options.seconds / 2);
		execl("/proc/self/exe", "workload-exec", "--seconds", seconds, "--quiet", "--kinds",
		      "compute", "--threads", "1", NULL);
		_exit(127);
	}
	struct worker w = { .seed = options.seed + (uint64_t)getpid() };
	double end = now_s() + options.seconds;
	while (!stopping && now_s() < end && getppid() == parent) {
		compute_unit(&w);
		atomic_fetch_add_explicit(&slot->units, 1, memory_order_relaxed);
	}
	_exit(0);
}

/* The main thread's part until the time is over. */
static void conduct(void)
{
	uint64_t (*late)(uint64_t) = NULL;
	double start = now_s(), end = start + options.seconds;
	pid_t execed = 0;
	struct counter_slot *slot = take_slot("late");
	while (!stopping && now_s() < end) {
		pthread_t blink;
		if (options.no_extras) {
			usleep(20000);
			continue;
		}
		if (pthread_create(&blink, NULL, blink_run, (void *)(uintptr_t)(now_s() * 1e6)) == 0)
			pthread_join(blink, NULL);
		if (now_s() - start > options.seconds / 2) {
			if (!late)
				load_late(&late);
			if (options.with_exec && !execed)
				execed = start_child(true);
		}
		for (int i = 0; late && i < 200; i++) {
			handler_state[2] ^= late((uint64_t)i);
			atomic_fetch_add_explicit(&slot->units, 1, memory_order_relaxed);
		}
		usleep(50000);
	}
}

static void open_counters(void)
{
	int fd = -1;
	if (options.counters_path) {
		fd = open(options.counters_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, sizeof(*counters))) {
			perror(options.counters_path);
			exit(1);
		}
	}
	counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE,
			MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (counters == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	counters->slots = COUNTERS_SLOTS;
	counters->magic = COUNTERS_MAGIC;
}

static void print_sums(double seconds)
{
	for (size_t i = 0; i < COUNTERS_SLOTS; i++) {
		const char *name = counters->slot[i].kind;
		uint64_t sum = 0;
		bool first = true;
		for (size_t j = 0; j < COUNTERS_SLOTS && name[0]; j++) {
			if (strcmp(counters->slot[j].kind, name))
				continue;
			first &= j >= i;
			sum += atomic_load(&counters->slot[j].units);
		}
		if (name[0] && first)
			printf("%-10s %10llu units %12.1f /s\n", name, (unsigned long long)sum,
			       (double)sum / seconds);
	}
	printf("%-10s %10d turns\n", "signal", (int)handler_turns);
}

/* Only these, and no timer, short-lived threads or late library. */
static void choose_kinds(const char *list)
{
	bool chosen[KINDS] = { false };
	while (*list) {
		size_t n = strcspn(list, ","), k = 0;
		while (k < KINDS && (strncmp(list, kinds[k].name, n) || kinds[k].name[n]))
			k++;
		if (k == KINDS) {
			fprintf(stderr, "workload: no such kind of work: %s\n", list);
			exit(2);
		}
		chosen[k] = true;
		list += n + (list[n] == ',');
	}
	for (size_t k = 0; k < KINDS; k++)
		kinds[k].threads = chosen[k] ? kinds[k].threads : 0;
	options.no_extras = true;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seconds", required_argument, NULL, 's' }, { "threads", required_argument, NULL, 't' },
		{ "kinds", required_argument, NULL, 'k' },   { "seed", required_argument, NULL, 'r' },
		{ "counters", required_argument, NULL, 'c' }, { "fork", required_argument, NULL, 'f' },
		{ "exec", no_argument, NULL, 'e' },          { "quiet", no_argument, NULL, 'q' },
		{ "share", required_argument, NULL, 'p' },   { "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		switch (c) {
		case 's': options.seconds = atof(optarg); break;
		case 't': kinds[0].threads = atoi(optarg); break;
		case 'k': choose_kinds(optarg); break;
		case 'r': options.seed = strtoull(optarg, NULL, 0); break;
		case 'c': options.counters_path = optarg; break;
		case 'f': options.forks = atoi(optarg); break;
		case 'e': options.with_exec = true; break;
		case 'q': options.quiet = true; break;
		case 'p': options.share = atoi(optarg); break;
		default:
			printf("usage: gasflame-workload [--seconds N] [--threads N] [--kinds compute,produce,"
			       "consume,disk,alloc,fault,commit,\n       query,pool,serve,ask] [--seed N] [--counters FILE] [--fork N] "
			       "[--exec] [--share PERCENT] [--quiet]\n");
			exit(c == 'h' ? 0 : 2);
		}
	}
	if (kinds[0].threads < 0 || kinds[0].threads > 40 || options.forks < 0 || options.forks > 16 || options.share < 1 ||
	    options.share > 100) {
		fprintf(stderr, "workload: at most 40 threads, 16 children and 100 percent\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct task tasks[COUNTERS_SLOTS];
	pid_t children[16];
	size_t n = 0;

	parse(argc, argv);
	open_counters();
	const char *base = getenv("TMPDIR");
	snprintf(options.folder, sizeof(options.folder), "%.3000s/workload-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(options.folder)) {
		perror(options.folder);
		return 1;
	}
	struct sigaction stop = { .sa_handler = handle_stop };
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Children first: forking with threads about is for those who know. */
	for (int i = 0; i < options.forks; i++)
		children[i] = start_child(false);
	if (!options.no_extras)
		start_timer();
	double start = now_s();
	for (size_t k = 0; k < KINDS; k++) {
		for (int i = 0; i < kinds[k].threads; i++) {
			struct task *t = &tasks[n++];
			t->kind = &kinds[k];
			t->slot = take_slot(t->kind->name);
			t->seed = options.seed * 1000 + n;
			snprintf(t->name, sizeof(t->name), "%s-%d", t->kind->name, i);
			errno = pthread_create(&t->thread, NULL, task_run, t);
			if (errno) {
				perror("pthread_create");
				return 1;
			}
		}
	}
	conduct();
	stopping = 1;
	lock_shutdown();
	pool_shutdown();
	for (size_t i = 0; i < n; i++)
		pthread_join(tasks[i].thread, NULL);
	for (int i = 0; i < options.forks; i++)
		kill(children[i], SIGTERM);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	rmdir(options.folder);
	if (!options.quiet)
		print_sums(now_s() - start);
	return 0;
}
