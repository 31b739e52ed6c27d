/*
 * heapodd.c [FILE] - allocations on stacks of all kinds: of a signal's handler, of coroutines whose stacks come and go, deeper
 * than anybody walks, of children that share the memory, and of threads that follow each other in the same memory.
 *
 * "NAME LIVE ALLOCATED CALLS" is what each function did, "thread TID BYTES" what each thread allocated. With a FILE it
 * makes it, and works on until it is killed, in thrash().
 *
 * All of it several times, with pauses: whoever learns has learned by then.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../truth.h"

enum {
	SIGNALS = 500, COROUTINES = 25, OF_EACH = 20, CHILDREN = 20, DEPTH = 600, ROUNDS = 15, THREADS = 4, OF_THREAD = 10,
	HOLD = 20, HOLD_BYTES = 250000, COROUTINE_STACK = 65536, TIMES = 4, PAUSE_US = 30000,
};

static void *kept[1 << 16];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long by_threads;

static void keep(void *object)
{
	*(volatile char *)object = 1;
	pthread_mutex_lock(&lock);
	kept[used++] = object;
	pthread_mutex_unlock(&lock);
}

NOINLINE static void in_handler(int number)
{
	keep(malloc(100));
}

/* raise() returns after the handler: no lock is held in it. */
static void signals(void)
{
	static char stack[65536];
	struct sigaction act = { .sa_handler = in_handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
	sigaction(SIGUSR1, &act, NULL);
	for (int i = 0; i < SIGNALS; i++)
		raise(SIGUSR1);
}

NOINLINE static void in_coroutine(void)
{
	for (int i = 0; i < OF_EACH; i++)
		keep(malloc(90));
}

/* Their stacks are unmapped again: whoever reads there later dies. */
static void coroutines(void)
{
	for (int i = 0; i < COROUTINES; i++) {
		void *stack = mmap(NULL, COROUTINE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ucontext_t here, there;

		getcontext(&there);
		there.uc_stack.ss_sp = stack;
		there.uc_stack.ss_size = COROUTINE_STACK;
		there.uc_link = &here;
		makecontext(&there, in_coroutine, 0);
		swapcontext(&here, &there);
		munmap(stack, COROUTINE_STACK);
	}
}

NOINLINE static void in_child(void)
{
	keep(malloc(77));
}

static void children(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = vfork();

		if (!child) {
			in_child();
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

NOINLINE static void deep(int more)
{
	if (more)
		deep(more - 1);
	else
		for (int i = 0; i < OF_EACH; i++)
			keep(malloc(40));
	__asm__ volatile("" : : : "memory");
}

NOINLINE static void *in_thread(void *argument)
{
	long size = 100 + (intptr_t)argument, bytes = 0;

	for (int i = 0; i < OF_THREAD; i++) {
		void *volatile object = malloc(64);

		free(object);
		keep(malloc(size));
		bytes += 64 + size;
	}
	pthread_mutex_lock(&lock);
	by_threads += bytes;
	printf("thread %ld %ld\n", (long)syscall(SYS_gettid), bytes);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void threads(void)
{
	for (intptr_t round = 0; round < ROUNDS; round++) {
		pthread_t ids[THREADS];

		for (int i = 0; i < THREADS; i++)
			pthread_create(&ids[i], NULL, in_thread, (void *)(THREADS * round + i));
		for (int i = 0; i < THREADS; i++)
			pthread_join(ids[i], NULL);
	}
}

/* The peak: all else is there already. */
NOINLINE static void hold(void)
{
	void *held[HOLD];

	for (int i = 0; i < HOLD; i++)
		held[i] = malloc(HOLD_BYTES);
	keep(malloc(16));
	for (int i = 0; i < HOLD; i++)
		free(held[i]);
}

NOINLINE static void thrash(void)
{
	void *volatile object = malloc(48);

	free(object);
}

static void say(const char *name, long each, long count)
{
	count *= TIMES;
	printf("%s %ld %ld %ld\n", name, each * count, each * count, count);
}

int main(int argc, char **argv)
{
	long threads_live;

	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < TIMES; i++) {
		signals();
		coroutines();
		children();
		deep(DEPTH);
		threads();
		usleep(PAUSE_US);
	}
	hold();
	say("in_handler", 100, SIGNALS);
	say("in_coroutine", 90, COROUTINES * OF_EACH);
	say("in_child", 77, CHILDREN);
	say("deep", 40, OF_EACH);
	threads_live = by_threads - 64L * OF_THREAD * THREADS * ROUNDS * TIMES;
	printf("in_thread %ld %ld %d\n", threads_live, by_threads, 2 * OF_THREAD * THREADS * ROUNDS * TIMES);
	printf("hold 16 %d %d\n", HOLD * HOLD_BYTES + 16, HOLD + 1);
	puts("done");
	if (argc > 1) {
		close(open(argv[1], O_CREAT | O_WRONLY, 0600));
		for (;;)
			thrash();
	}
	return 0;
}
