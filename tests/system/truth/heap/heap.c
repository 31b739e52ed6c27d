/*
 * heap.c [THREADS [FILE]] - a heap of which all is known: what stays, what is freed at once, what is held for a moment.
 *
 * With a FILE it waits for that before its first allocation, and when all is done lives on until it is
 * killed. Each thread does the same in functions with telling names; "NAME LIVE ALLOCATED CALLS" is what they did
 * in sum. hold() has all its objects in all threads at the same moment: the peak.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "../truth.h"

enum {
	SMALL = 40000, SMALL_BYTES = 64,
	LARGE = 40, LARGE_BYTES = 100000,
	CHURN = 100000, CHURN_BYTES = 256,
	HOLD = 20, HOLD_BYTES = 250000,
	EACH = 1000, /* of the other forms */
	THREADS = 64,
};

static void *kept[THREADS][SMALL + LARGE + 16 * EACH];
static size_t used[THREADS];
static void *others[THREADS][EACH];
static pthread_barrier_t together;

static inline __attribute__((always_inline)) void keep(int t, void *object)
{
	*(volatile char *)object = 1;
	kept[t][used[t]++] = object;
}

NOINLINE static void keep_small(int t)
{
	for (int i = 0; i < SMALL; i++)
		keep(t, malloc(SMALL_BYTES));
}

NOINLINE static void keep_large(int t)
{
	for (int i = 0; i < LARGE; i++)
		keep(t, malloc(LARGE_BYTES));
}

NOINLINE static void churn(void)
{
	for (int i = 0; i < CHURN; i++) {
		void *volatile object = malloc(CHURN_BYTES);

		free(object);
	}
}

NOINLINE static void hold(int t)
{
	void *held[HOLD];

	for (int i = 0; i < HOLD; i++)
		held[i] = malloc(HOLD_BYTES);
	keep(t, malloc(16)); /* none of them is a thread's last */
	pthread_barrier_wait(&together);
	for (int i = 0; i < HOLD; i++)
		free(held[i]);
	pthread_barrier_wait(&together);
}

NOINLINE static void keep_calloc(int t)
{
	for (int i = 0; i < EACH; i++)
		keep(t, calloc(10, 40));
}

NOINLINE static void keep_aligned(int t)
{
	for (int i = 0; i < EACH; i++)
		keep(t, aligned_alloc(64, 640));
}

NOINLINE static void keep_memalign(int t)
{
	for (int i = 0; i < EACH; i++) {
		void *object;

		if (!posix_memalign(&object, 128, 512))
			keep(t, object);
	}
}

NOINLINE static void keep_strdup(int t)
{
	char text[100];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < EACH; i++)
		keep(t, strdup(text));
}

NOINLINE static void keep_grown(int t)
{
	for (int i = 0; i < EACH; i++)
		keep(t, realloc(malloc(100), 1000));
}

NOINLINE static void keep_shrunk(int t)
{
	for (int i = 0; i < EACH; i++)
		keep(t, realloc(malloc(5000), 700));
}

NOINLINE static void make_for_others(int t)
{
	for (int i = 0; i < EACH; i++)
		others[t][i] = malloc(300);
}

NOINLINE static void grow_of_others(int t, int threads)
{
	for (int i = 0; i < EACH; i++)
		keep(t, realloc(others[(t + 1) % threads][i], 600));
}

#ifdef HAVE_NEW
void *new_object(size_t size) __asm__("_Znwm");
void delete_object(void *object, size_t size) __asm__("_ZdlPvm");

NOINLINE static void keep_new(int t)
{
	for (int i = 0; i < EACH; i++) {
		void *volatile object = new_object(2000);

		delete_object(object, 2000);
		keep(t, new_object(48));
	}
}
#endif

#ifdef HAVE_NEW
void *new_aligned(size_t size, size_t alignment) __asm__("_ZnwmSt11align_val_t");
void delete_aligned(void *object, size_t size, size_t alignment) __asm__("_ZdlPvmSt11align_val_t");
void *new_array(size_t size, const void *nothrow) __asm__("_ZnamRKSt9nothrow_t");
void delete_array(void *object) __asm__("_ZdaPv");

NOINLINE static void keep_new_forms(int t)
{
	for (int i = 0; i < EACH; i++) {
		void *volatile aligned = new_aligned(1024, 128), *volatile array = new_array(3000, "");

		delete_aligned(aligned, 1024, 128);
		delete_array(array);
		keep(t, new_aligned(256, 64));
		keep(t, new_array(80, ""));
	}
}
#endif

#ifdef HAVE_JEMALLOC
void *mallocx(size_t size, int flags);
void *rallocx(void *object, size_t size, int flags);
void sdallocx(void *object, size_t size, int flags);

/* As Rust calls it. */
NOINLINE static void keep_mallocx(int t)
{
	for (int i = 0; i < EACH; i++) {
		void *volatile object = mallocx(900, 6); /* aligned to 64 */

		sdallocx(object, 900, 6);
		keep(t, rallocx(mallocx(320, 6), 640, 6));
	}
}
#endif

#ifdef HAVE_MIMALLOC
void *mi_malloc_aligned(size_t size, size_t alignment);
void *mi_zalloc_aligned(size_t size, size_t alignment);
void *mi_realloc_aligned(void *object, size_t size, size_t alignment);
void mi_free(void *object);

/* As Rust calls it. */
NOINLINE static void keep_mimalloc(int t)
{
	for (int i = 0; i < EACH; i++) {
		void *volatile object = mi_malloc_aligned(900, 16);

		mi_free(object);
		keep(t, mi_realloc_aligned(mi_zalloc_aligned(320, 16), 640, 16));
	}
}
#endif

static int threads;

static void *work(void *argument)
{
	int t = (int)(intptr_t)argument;

	keep_small(t);
	keep_large(t);
	churn();
	hold(t);
	keep_calloc(t);
	keep_aligned(t);
	keep_memalign(t);
	keep_strdup(t);
	keep_grown(t);
	keep_shrunk(t);
	make_for_others(t);
	pthread_barrier_wait(&together);
	grow_of_others(t, threads);
#ifdef HAVE_NEW
	keep_new(t);
	keep_new_forms(t);
#endif
#ifdef HAVE_JEMALLOC
	keep_mallocx(t);
#endif
#ifdef HAVE_MIMALLOC
	keep_mimalloc(t);
#endif
	return NULL;
}

static void say(const char *name, long live, long allocated, long calls)
{
	printf("%s %ld %ld %ld\n", name, live * threads, allocated * threads, calls * threads);
}

static void say_truth(void)
{
	say("keep_small", SMALL * SMALL_BYTES, SMALL * SMALL_BYTES, SMALL);
	say("keep_large", LARGE * LARGE_BYTES, LARGE * LARGE_BYTES, LARGE);
	say("churn", 0, (long)CHURN * CHURN_BYTES, CHURN);
	say("hold", 16, HOLD * HOLD_BYTES + 16, HOLD + 1);
	say("keep_calloc", EACH * 400, EACH * 400, EACH);
	say("keep_aligned", EACH * 640, EACH * 640, EACH);
	say("keep_memalign", EACH * 512, EACH * 512, EACH);
	say("keep_strdup", EACH * 100, EACH * 100, EACH);
	say("keep_grown", EACH * 1000, EACH * 1100, 2 * EACH);
	say("keep_shrunk", EACH * 700, EACH * 5700, 2 * EACH);
	say("make_for_others", 0, EACH * 300, EACH);
	say("grow_of_others", EACH * 600, EACH * 600, EACH);
#ifdef HAVE_NEW
	say("keep_new", EACH * 48, EACH * 2048, 2 * EACH);
	say("keep_new_forms", EACH * 336, EACH * 4360, 4 * EACH);
#endif
#ifdef HAVE_JEMALLOC
	say("keep_mallocx", EACH * 640, EACH * 1860, 3 * EACH);
#endif
#ifdef HAVE_MIMALLOC
	say("keep_mimalloc", EACH * 640, EACH * 1860, 3 * EACH);
#endif
}

int main(int argc, char **argv)
{
	const char *file = argc > 2 ? argv[2] : NULL;
	pthread_t ids[THREADS];

	threads = (int)argument(argc, argv, 1, 1);
	if (threads < 1 || threads > THREADS)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	say_ready();
	while (file && access(file, F_OK))
		usleep(10000);
	pthread_barrier_init(&together, NULL, threads);
	for (intptr_t i = 1; i < threads; i++)
		pthread_create(&ids[i], NULL, work, (void *)i);
	work((void *)0);
	for (int i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	say_truth();
	puts("done");
	while (file)
		pause();
	return 0;
}
