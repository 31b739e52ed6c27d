/*
 * spans - marks its own work with gasflame.h, calls functions that others mark, and says how long each took by its own
 * clock.
 *
 *	truth-spans words ROUNDS      spans of its own, moments, blocks; some end on another thread
 *	truth-spans functions ROUNDS  calls of marked_work(), marked_deep() (recursive) and marked_escape() (never returns)
 *	truth-spans futures ROUNDS    a future of Rust's shape, polled three times each by two threads in turn
 *	truth-spans often SECONDS     a function that is called as often as can be
 *	truth-spans cost ROUNDS       the time of one call of marked_small(), of a mark, and of nothing
 *
 * Waits for a line on stdin, or its end, and then, for each span: "span NAME NUMBER NANOSECONDS".
 */
#include <gasflame.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <string.h>

#include "../truth.h"

static volatile uint64_t sum; /* so that nothing is left out */

/* Two registers that a function has to keep for its caller. */
#ifdef __aarch64__
#define KEPT_1 "x19"
#define KEPT_2 "x20"
#else
#define KEPT_1 "rbx"
#define KEPT_2 "r12"
#endif

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void nap_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static void say_span(const char *name, uint64_t number, uint64_t ns)
{
	printf("span %s %llu %llu\n", name, (unsigned long long)number, (unsigned long long)ns);
}

/* --- words --- */

static sem_t handed, taken;
static uint64_t handed_number, ended_ns;

static void *ender(void *unused)
{
	for (;;) {
		sem_wait(&handed);
		GASFLAME_SPAN_END("passed on", handed_number);
		ended_ns = now_ns();
		sem_post(&taken);
	}
	return unused;
}

static void words(uint64_t rounds)
{
	pthread_t t;

	sem_init(&handed, 0, 0);
	sem_init(&taken, 0, 0);
	pthread_create(&t, NULL, ender, NULL);
	for (uint64_t i = 0; i < rounds; i++) {
		char name[32];
		uint64_t start = now_ns();

		GASFLAME_SPAN_BEGIN("block", 1000 + i);
		spin(200000 + i % 7 * 50000);
		nap_us(1000);
		GASFLAME_BLOCK_END(1000 + i, 21000 * i, i);
		say_span("block", 1000 + i, now_ns() - start);

		start = now_ns();
		GASFLAME_SPAN_BEGIN("passed on", i);
		nap_us(500);
		handed_number = i;
		sem_post(&handed);
		sem_wait(&taken);
		say_span("passed-on", i, ended_ns - start);

		/* A name that is made, and one that is not there at all. */
		snprintf(name, sizeof(name), "made %c", 'a' + (int)(i % 3));
		GASFLAME_MARK(name, i);
	}
	GASFLAME_MARK((const char *)8, 1);
	GASFLAME_SPAN_END("never begun", 1);
	GASFLAME_SPAN_BEGIN("never ended", 1);
}

/* --- functions --- */

NOINLINE uint64_t marked_work(uint64_t n, long us)
{
	uint64_t x = spin(100000 + n % 5 * 40000);

	if (n % 3 == 1)
		return x;
	nap_us(us);
	return n % 3 ? x : x + spin(20000);
}

NOINLINE uint64_t marked_deep(uint64_t depth)
{
	uint64_t x = spin(30000);

	__asm__ volatile("" ::: "memory");
	return depth ? x + marked_deep(depth - 1) + 1 : x;
}

static jmp_buf escape;

NOINLINE uint64_t marked_escape(uint64_t n)
{
	uint64_t x = spin(20000);

	__asm__ volatile("" ::: "memory", KEPT_1);
	if (n % 2)
		longjmp(escape, 1);
	return x + spin(10000);
}

NOINLINE uint64_t marked_small(uint64_t n)
{
	/* Registers that must be kept: the function begins with a push. */
	__asm__ volatile("" ::: KEPT_1, KEPT_2, "memory");
	return spin(n);
}

/* No frame: it begins with an instruction that cannot be emulated. */
NOINLINE uint64_t marked_leaf(uint64_t n)
{
	return n * 3 + 1;
}

static void *call_functions(void *context)
{
	uint64_t rounds = *(uint64_t *)context;

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t start = now_ns();

		sum += marked_work(i, 300);
		say_span("marked_work", i, now_ns() - start);
		start = now_ns();
		sum += marked_deep(5);
		say_span("marked_deep", i, now_ns() - start);
	}
	return NULL;
}

static void functions(uint64_t rounds)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, call_functions, &rounds);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (volatile uint64_t i = 0; i < rounds; i++) {
		uint64_t start = now_ns();

		if (setjmp(escape))
			continue;
		sum += marked_escape(i);
		say_span("marked_escape", i, now_ns() - start);
	}
}

/* --- futures --- */

struct future {
	uint64_t first[9];
	uint64_t number;
	uint8_t state; /* as rustc numbers them: 0 not begun, 1 done, from 3 on it waits */
};

enum { PENDING, READY };

int poll_future(struct future *f, void *context) __asm__("_ZN5truth5later28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE");

NOINLINE int poll_future(struct future *f, void *context)
{
	switch (f->state) {
	case 0:
		f->first[0] = spin(50000);
		__asm__ volatile("" ::: "memory", KEPT_1, KEPT_2);
		f->state = 3;
		return PENDING;
	case 3:
		f->first[1] += spin(30000);
		f->state = 4;
		return PENDING;
	case 4:
		f->first[2] += spin(20000);
		f->state = 1;
		return READY;
	default:
		abort();
	}
}

static struct future future;
static sem_t turns[2];
static uint64_t rounds_left, began_ns;

static void *poller(void *which)
{
	int me = which != NULL;

	for (;;) {
		sem_wait(&turns[me]);
		if (!rounds_left)
			break;
		if (!future.state)
			began_ns = now_ns();
		if (poll_future(&future, which) == READY) {
			say_span("later", future.number, now_ns() - began_ns);
			rounds_left--;
			/* The same place again, at once: as in a loop that awaits. */
			future = (struct future){ .number = future.number + 1 };
		}
		nap_us(200);
		sem_post(&turns[!me]);
	}
	sem_post(&turns[!me]);
	return NULL;
}

static void futures(uint64_t rounds)
{
	pthread_t threads[2];

	rounds_left = rounds;
	sem_init(&turns[0], 0, 1);
	sem_init(&turns[1], 0, 0);
	pthread_create(&threads[0], NULL, poller, NULL);
	pthread_create(&threads[1], NULL, poller, &future);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void cost(uint64_t rounds)
{
	uint64_t start = now_ns(), calls, marks;

	for (uint64_t i = 0; i < rounds; i++)
		sum += marked_small(10);
	calls = now_ns() - start;
	start = now_ns();
	for (uint64_t i = 0; i < rounds; i++)
		GASFLAME_MARK("cost", i);
	marks = now_ns() - start;
	printf("cost call %.1f mark %.1f\n", (double)calls / rounds, (double)marks / rounds);
}

static void often(double seconds)
{
	double end = seconds_of(CLOCK_MONOTONIC) + seconds;

	while (seconds_of(CLOCK_MONOTONIC) < end)
		sum += marked_small(100);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "words";
	double n = argument(argc, argv, 2, 20);
	char line[16];

	say_ready();
	(void)!fgets(line, sizeof(line), stdin);
	if (!strcmp(what, "words"))
		words(n);
	else if (!strcmp(what, "functions"))
		functions(n);
	else if (!strcmp(what, "futures"))
		futures(n);
	else if (!strcmp(what, "cost"))
		cost(n);
	else
		often(n);
	puts("done");
	fflush(stdout);
	/* Until the recording is over. */
	return fgets(line, sizeof(line), stdin) ? 0 : (int)marked_leaf(0) - 1;
}
