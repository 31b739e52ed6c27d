/*
 * stopped.c MODE [MS] - programs that notice when a thread of theirs was stopped and did not go on as it was.
 *
 *	rseq      two threads on one CPU count in restartable sequences; on SIGUSR1 says "counted N lost M" and ends
 *	signals   a thread that handles signals which another one sends it, and waits for each; "lost" when one does not come
 *	filter    the main thread works; another one, which waits, is under a filter that kills the process for a memfd
 *	strict    the same with seccomp's strict mode
 *	sleeper   sleeps for 20 ms again and again, and says "woken" when that took less
 *	sleeps    sleeps for 200 ms (or MS) again and again, and says "slept" each time: never, if each stop begins that anew
 *	vectors   counts with numbers in vector registers that system calls do not keep (arm64: SVE), "none" where there are none; "spoiled"
 *	vfork     is in vfork() most of the time
 *	exit      the main thread has ended, another one works
 *
 * Each says "ready" and goes on until it is killed; each ends with 3 when something is wrong.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/rseq.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

static volatile sig_atomic_t ended, handled;
static uint64_t counter __attribute__((aligned(64))), own[2] __attribute__((aligned(64)));

static void on_end(int signal)
{
	ended = 1;
}

static void on_signal(int signal)
{
	handled++;
}

/* One more, in a sequence that takes long between the reading and the writing. 0: it was interrupted. */
static NOINLINE int add_one(void)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	int done = 0;

#ifdef __x86_64__
	__asm__ volatile(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"9: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"leaq 9b(%%rip), %%rax\n"
		"movq %%rax, %[cs]\n"
		"1:\n"
		"movq %[counter], %%rax\n"
		"movl $2000, %%ecx\n"
		"7: decl %%ecx\n"
		"jnz 7b\n"
		"incq %%rax\n"
		"movq %%rax, %[counter]\n"
		"2:\n"
		"movl $1, %[done]\n"
		"jmp 5f\n"
		".long 0x53053053\n" /* RSEQ_SIG, as the C library registers it */
		"4:\n"
		"5:\n"
		: [cs] "=m"(area->rseq_cs), [counter] "+m"(counter), [done] "+r"(done)
		:
		: "rax", "rcx", "memory", "cc");
#else
	__asm__ volatile(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"9: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"adrp x9, 9b\n"
		"add x9, x9, :lo12:9b\n"
		"str x9, %[cs]\n"
		"1:\n"
		"ldr x9, %[counter]\n"
		"mov w10, #2000\n"
		"7: subs w10, w10, #1\n"
		"b.ne 7b\n"
		"add x9, x9, #1\n"
		"str x9, %[counter]\n"
		"2:\n"
		"mov %w[done], #1\n"
		"b 5f\n"
		".long 0xd428bc00\n" /* RSEQ_SIG, as the C library registers it */
		"4:\n"
		"5:\n"
		: [cs] "=m"(area->rseq_cs), [counter] "+m"(counter), [done] "+r"(done)
		:
		: "x9", "x10", "memory", "cc");
#endif
	return done;
}

static void *count(void *argument)
{
	uint64_t *mine = argument;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(4);
	while (!ended)
		*mine += add_one();
	return NULL;
}

static void count_on(void)
{
	pthread_t id;

	if (!__rseq_size) {
		puts("none");
		exit(0);
	}
	signal(SIGUSR1, on_end);
	if (pthread_create(&id, NULL, count, &own[1]))
		_exit(4);
	say_ready();
	/* Nobody waits: one of those that count is stopped. */
	count(&own[0]);
	pthread_join(id, NULL);
	printf("counted %llu lost %lld\n", (unsigned long long)counter, (long long)(own[0] + own[1] - counter));
	exit(own[0] + own[1] == counter ? 0 : 3);
}

/* --- signals --- */

static void *send_on(void *argument)
{
	for (unsigned n = 0;; n++) {
		sig_atomic_t before = handled;
		double until = seconds_of(CLOCK_MONOTONIC) + 20;

		/* A trap is what a debugger waits for, too. */
		if (pthread_kill(*(pthread_t *)argument, n % 2 ? SIGUSR2 : SIGTRAP))
			_exit(4);
		while (handled == before)
			if (seconds_of(CLOCK_MONOTONIC) > until) {
				puts("lost");
				fflush(stdout);
				_exit(3);
			}
	}
	return NULL;
}

static void be_signalled(void)
{
	static pthread_t self, other;

	self = pthread_self();
	signal(SIGUSR2, on_signal);
	signal(SIGTRAP, on_signal);
	if (pthread_create(&other, NULL, send_on, &self))
		_exit(4);
	say_ready();
	for (;;)
		__asm__ volatile("");
}

/* --- seccomp --- */

static int strict, pipes[2];

static void *be_confined(void *argument)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };
	char byte;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, strict ? SECCOMP_MODE_STRICT : SECCOMP_MODE_FILTER, &program))
		_exit(4);
	while (syscall(SYS_read, pipes[0], &byte, 1) >= 0)
		;
	return argument;
}

static void have_confined(void)
{
	pthread_t id;
	char byte = 0;

	if (pipe(pipes) || pthread_create(&id, NULL, be_confined, NULL))
		_exit(4);
	/* It has read it: it is under the filter. */
	if (write(pipes[1], &byte, 1) != 1)
		_exit(4);
	usleep(100000);
	say_ready();
	/* Works: is never found waiting, so that the other one looks better. */
	for (;;) {
		void *volatile object = malloc(100);

		free(object);
	}
}

/* --- other waits --- */

static void sleep_on(void)
{
	say_ready();
	for (;;) {
		double begin = seconds_of(CLOCK_MONOTONIC);
		struct timespec nap = { .tv_nsec = 20000000 };

		if (clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) || seconds_of(CLOCK_MONOTONIC) - begin < 0.02) {
			puts("woken");
			fflush(stdout);
			_exit(3);
		}
	}
}

static void sleep_long(int ms)
{
	say_ready();
	for (;;) {
		struct timespec nap = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

		if (!clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL))
			puts("slept");
		fflush(stdout);
	}
}

/* --- registers that a system call destroys --- */

static void count_vectors(void)
{
#ifdef __aarch64__
	uint64_t bytes, wrong = 0;

	if (!(getauxval(AT_HWCAP) & 1 << 22)) { /* HWCAP_SVE */
		puts("none");
		exit(0);
	}
	__asm__(".arch_extension sve\nrdvl %0, #1" : "=r"(bytes));
	printf("vectors of %llu bytes\n", (unsigned long long)bytes);
	say_ready();
	while (!wrong) {
		/* All parts of a vector, and of a predicate, are the same for as long as nobody changes them. */
		__asm__ volatile(
			".arch_extension sve\n"
			"ptrue p0.d\n"
			"ptrue p1.d\n"
			"mov z0.d, #7\n"
			"mov z31.d, #7\n"
			"mov w9, #20000\n"
			"1: add z0.d, z0.d, z31.d\n"
			"sub z0.d, z0.d, z31.d\n"
			"subs w9, w9, #1\n"
			"b.ne 1b\n"
			"cmpne p2.d, p0/z, z0.d, #7\n"
			"cntp %0, p0, p2.d\n"
			"cntp x9, p0, p1.d\n"
			"cntd x10\n"
			"sub x9, x9, x10\n"
			"orr %0, %0, x9\n"
			: "=r"(wrong) : : "x9", "x10", "memory", "cc");
	}
	puts("spoiled");
	fflush(stdout);
	_exit(3);
#else
	puts("none");
	exit(0);
#endif
}

static void vfork_on(void)
{
	say_ready();
	for (;;) {
		pid_t child = vfork();
		int status;

		if (!child) {
			struct timespec nap = { .tv_nsec = 50000000 };

			syscall(SYS_nanosleep, &nap, NULL);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			_exit(3);
	}
}

static void *work_on(void *argument)
{
	usleep(100000);
	say_ready();
	for (;;) {
		void *volatile object = malloc(100);

		free(object);
		usleep(100);
	}
	return argument;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t id;

	if (!strcmp(mode, "rseq"))
		count_on();
	if (!strcmp(mode, "signals"))
		be_signalled();
	strict = !strcmp(mode, "strict");
	if (strict || !strcmp(mode, "filter"))
		have_confined();
	if (!strcmp(mode, "sleeper"))
		sleep_on();
	if (!strcmp(mode, "sleeps"))
		sleep_long(argc > 2 ? atoi(argv[2]) : 200);
	if (!strcmp(mode, "vectors"))
		count_vectors();
	if (!strcmp(mode, "vfork"))
		vfork_on();
	if (!strcmp(mode, "exit") && !pthread_create(&id, NULL, work_on, NULL))
		pthread_exit(NULL);
	return 2;
}
