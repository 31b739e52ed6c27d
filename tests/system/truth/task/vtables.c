/*
 * vtables.c MODE [N] - vtables like those of tokio's tasks, and calls through them of which all is known.
 *
 * Says "vtable ADDRESS POLL SCHEDULE DEALLOC ID_OFFSET" of each, the last one with functions that do nothing, and "ready".
 *
 *	obey       does what the lines on stdin say: "run N": each of THREADS threads makes N rounds, and then says what is true;
 *	           "bench N": N polls and N wakes, and what one takes; "fork": a child makes rounds and must end well, "child PID"
 *	           stays; "exec": executes itself
 *	load N     N threads make rounds until it is killed; ends with 3 when a call was lost, or made twice
 *	stay N     the same
 *	short N    the same with threads that live for some milliseconds
 *	seccomp    as load 2, under a filter that kills whoever makes a memfd, maps code, or asks for its own number
 *	hostile N  as load 2, while two more threads do what is hard on us, by the seed N
 *	older N    has a blob of another version mapped, with N slots that lead to it
 *	notsc      may not read the time-stamp counter
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

enum { TYPES = 3, THREADS = 3, PAUSE_NS = 20000 };

struct vtable;

/* As tokio has it: the state word, a link, the vtable, the owner; then the scheduler and the number. */
struct header {
	atomic_size_t state;
	void *next;
	const struct vtable *vtable;
	uint64_t owner;
	void *scheduler;
	uint64_t id;
	/* Of the future: */
	unsigned type, calls;
	struct header *wakes;  /* by its poll */
	struct header *polls;
	struct sums *sums;
};

struct vtable {
	void (*poll)(struct header *h);
	void (*schedule)(struct header *h);
	void (*dealloc)(struct header *h);
	void (*rest[4])(struct header *h);
	size_t trailer_offset, scheduler_offset, id_offset;
};

/* What a thread did: inner_ns is time within polls, outer_ns that around them. */
struct sums {
	uint64_t polls[TYPES], wakes[TYPES], deallocs[TYPES], inner_ns[TYPES], outer_ns[TYPES];
	uint64_t awaited_ns, tid, ids;
};

static atomic_uint_fast64_t last_id;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void poll_task(struct header *h)
{
	unsigned before = h->calls, type = h->type;
	struct sums *s = h->sums;
	uint64_t begin = now_ns();

	h->vtable->poll(h);
	s->outer_ns[type] += now_ns() - begin;
	if (h->calls != before + 1)
		_exit(3);
}

static void wake_task(struct header *h)
{
	unsigned before = h->calls;

	h->vtable->schedule(h);
	if (h->calls != before + 1)
		_exit(3);
}

/* --- the functions of the vtables --- */

static NOINLINE void poll_common(struct header *h, uint64_t steps)
{
	uint64_t begin = now_ns();

	h->calls++;
	h->sums->polls[h->type]++;
	spin(steps);
	if (h->wakes)
		wake_task(h->wakes);
	if (h->polls)
		poll_task(h->polls);
	h->sums->inner_ns[h->type] += now_ns() - begin;
}

static NOINLINE void poll_sleeper(struct header *h) { poll_common(h, 301); }
static NOINLINE void poll_worker(struct header *h) { poll_common(h, 2003); }
static NOINLINE void poll_outer(struct header *h) { poll_common(h, 507); }

static NOINLINE void schedule(struct header *h)
{
	h->calls++;
	h->sums->wakes[h->type]++;
}

static NOINLINE void dealloc(struct header *h)
{
	h->sums->deallocs[h->type]++;
	h->state = 2;
}

static void nothing(struct header *h) { (void)h; }

#define VTABLE(poll) { poll, schedule, dealloc, { nothing, nothing, nothing, nothing }, 256, 32, offsetof(struct header, id) }
static const struct vtable vtables[TYPES] = { VTABLE(poll_sleeper), VTABLE(poll_worker), VTABLE(poll_outer) };

/* --- rounds --- */

static void new_task(struct header *h, unsigned type, struct sums *s)
{
	*h = (struct header){ .state = 0xcc, .vtable = &vtables[type], .type = type, .sums = s, .id = ++last_id };
}

struct tasks {
	struct header of[TYPES];
};

static void make_tasks(struct tasks *t, struct sums *s)
{
	for (int i = 0; i < TYPES; i++)
		new_task(&t->of[i], i, s);
	/* The outer task wakes the sleeper, and polls the worker itself. */
	t->of[2].wakes = &t->of[0];
	t->of[2].polls = &t->of[1];
}

static void pause_for(uint64_t ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Three polls and two wakes, one of them within a poll; every fifth time the sleeper is another task. */
static void round_of(struct tasks *t, struct sums *s, uint64_t k)
{
	wake_task(&t->of[2]);
	poll_task(&t->of[2]);
	poll_task(&t->of[0]);
	if (k % 5 == 4) {
		t->of[0].vtable->dealloc(&t->of[0]);
		new_task(&t->of[0], 0, s);
	}
}

static uint64_t rounds;

static void *run(void *context)
{
	struct sums *s = context;
	struct tasks t;

	s->tid = syscall(SYS_gettid);
	make_tasks(&t, s);
	s->ids = TYPES;
	for (uint64_t k = 0; k < rounds; k++) {
		uint64_t begin = now_ns();

		pause_for(PAUSE_NS);
		s->awaited_ns += now_ns() - begin;
		round_of(&t, s, k);
		s->ids += k % 5 == 4 && k + 1 < rounds; /* the last one is not used */
	}
	return NULL;
}

static void run_all(uint64_t n)
{
	struct sums sums[THREADS] = { 0 };
	pthread_t threads[THREADS];
	uint64_t ids = 0;

	rounds = n;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, &sums[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		for (int k = 0; k < TYPES; k++)
			printf("truth %llu %d %llu %llu %llu %llu %llu\n", (unsigned long long)sums[i].tid, k,
			       (unsigned long long)sums[i].polls[k], (unsigned long long)sums[i].wakes[k],
			       (unsigned long long)sums[i].deallocs[k], (unsigned long long)sums[i].inner_ns[k],
			       (unsigned long long)sums[i].outer_ns[k]);
		ids += sums[i].ids;
	}
	printf("done %llu\n", (unsigned long long)ids);
	fflush(stdout);
}

static NOINLINE void poll_nothing(struct header *h) { __asm__ volatile("" ::"r"(h)); }
static NOINLINE void schedule_nothing(struct header *h) { __asm__ volatile("" ::"r"(h)); }
static const struct vtable empty = { poll_nothing, schedule_nothing, poll_nothing, { nothing, nothing, nothing, nothing }, 256, 32,
				     offsetof(struct header, id) };

static double ns_each(struct header *h, bool wakes, uint64_t n)
{
	const struct vtable *volatile v = h->vtable;
	double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	for (uint64_t i = 0; i < n; i++) {
		if (wakes)
			v->schedule(h);
		v->poll(h);
	}
	return (seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e9 / n;
}

/* Of polls that do nothing, and of wakes before them: what is around them. */
static void bench(uint64_t n)
{
	struct header h = { .vtable = &empty, .id = ++last_id };
	double polls = ns_each(&h, false, n), pairs = ns_each(&h, true, n);

	printf("bench %.2f %.2f\n", polls, pairs - polls);
	printf("done 0\n");
	fflush(stdout);
}

/* --- the other modes --- */

static unsigned lifetime = -1;

static void *work(void *context)
{
	struct sums s = { 0 };
	struct tasks t;
	unsigned k;

	(void)context;
	make_tasks(&t, &s);
	for (k = 0; k < lifetime; k++) {
		round_of(&t, &s, k);
		if (k % 64 == 0)
			pause_for(PAUSE_NS);
		if (s.polls[0] != k + 1 || s.polls[1] != k + 1 || s.wakes[0] != k + 1)
			_exit(3);
	}
	return NULL;
}

static void start_threads(unsigned n, void *(*function)(void *))
{
	pthread_t thread;

	for (unsigned i = 0; i < n; i++)
		pthread_create(&thread, NULL, function, NULL);
}

static void live_short(unsigned n)
{
	pthread_t threads[64];

	lifetime = 200;
	for (;;) {
		for (unsigned i = 0; i < n && i < 64; i++)
			pthread_create(&threads[i], NULL, work, NULL);
		for (unsigned i = 0; i < n && i < 64; i++)
			pthread_join(threads[i], NULL);
	}
}

/* Its hooks must do nothing: it has none of the memory. */
static void fork_child(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		lifetime = 1000;
		work(NULL);
		printf("child %d\n", getpid());
		fflush(stdout);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			lifetime = 100;
			work(NULL);
			pause_for(1000000);
		}
	}
	printf("done %d\n", child);
	fflush(stdout);
}

static void forbid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		_exit(4);
}

/* Where our memory is mapped, and how long it is; 0: nowhere. */
static char *find_rings(size_t *ret_n)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned long start, end;
	char *found = NULL;

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:gasflame-task") && strstr(line, "rw-s") && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			found = (char *)start;
			*ret_n = end - start;
		}
	if (f)
		fclose(f);
	return found;
}

/* Writes anything to the memory that we share with it, and to its slots. */
static void *be_hostile(void *context)
{
	unsigned seed = *(unsigned *)context;
	uintptr_t page = (uintptr_t)vtables & ~4095UL;

	for (;;) {
		size_t n = 0;
		char *rings = find_rings(&n);

		for (int i = 0; rings && i < 20000; i++) {
			/* Most of it is at the beginning: heads, tails, owners. */
			size_t at = rand_r(&seed) % 4 ? 256 << 10 : n;
			uint64_t value = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);

			at = ((uint64_t)rand_r(&seed) << 31 | rand_r(&seed)) % at;
			memcpy(rings + (at & ~7UL), &value, 8);
		}
		if (rand_r(&seed) % 16 == 0 && !mprotect((void *)page, 8192, PROT_READ | PROT_WRITE))
			*(void (*volatile *)(struct header *))&((struct vtable *)(uintptr_t)vtables)[0].poll = poll_sleeper;
		pause_for(rand_r(&seed) % 1000000);
	}
	return NULL;
}

/* As collect/inject/blobhead.h says: an image, and behind it magic, version and size, the image's address, the slots. */
static void map_older(uint64_t slots)
{
	int fd = memfd_create("gasflame-task", 0);
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t head[4] = { 0x62666c675461736bULL, 1, (uintptr_t)at, slots };

	if (fd < 0 || ftruncate(fd, 4096) < 0 || mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) != at)
		_exit(4);
	memcpy(at + 4096, head, sizeof(head));
}

static void say_vtable(const struct vtable *v)
{
	printf("vtable %lx %lx %lx %lx %zu\n", (unsigned long)v, (unsigned long)v->poll, (unsigned long)v->schedule,
	       (unsigned long)v->dealloc, v->id_offset);
}

static void obey(char **argv)
{
	char line[256];
	unsigned long n;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %lu", &n) == 1)
			run_all(n);
		else if (sscanf(line, "bench %lu", &n) == 1)
			bench(n);
		else if (!strcmp(line, "fork\n"))
			fork_child();
		else if (!strcmp(line, "exec\n"))
			execv("/proc/self/exe", argv);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "obey";
	unsigned n = argc > 2 ? atoi(argv[2]) : 2;

	for (int i = 0; i < TYPES; i++)
		say_vtable(&vtables[i]);
	say_vtable(&empty);
	if (!strcmp(mode, "older"))
		map_older(n);
	if (!strcmp(mode, "notsc"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (!strcmp(mode, "load") || !strcmp(mode, "stay") || !strcmp(mode, "hostile") || !strcmp(mode, "seccomp"))
		start_threads(!strcmp(mode, "hostile") ? 2 : n, work);
	if (!strcmp(mode, "seccomp"))
		forbid();
	printf("ready\n");
	fflush(stdout);
	if (!strcmp(mode, "obey"))
		obey(argv);
	else if (!strcmp(mode, "short"))
		live_short(n);
	else if (!strcmp(mode, "hostile"))
		be_hostile(&n);
	for (;;)
		pause();
}
