/*
 * heapbad.c MODE [ARGUMENT] - processes that are not easy to put hooks into. Each says "ready" and goes on until it is
 * killed; each checks its own memory and ends with 3 when something is wrong with it.
 *
 *	load N       N threads that allocate, fill, check and free; signals and sleeps among them
 *	threads N    N threads that sleep, and one that works
 *	short N      as load, with threads that live for some milliseconds
 *	seccomp      works under a filter that kills whoever maps memory to execute, or makes a memfd
 *	got          exchanges its own slot of malloc all the time
 *	fork         forks children that allocate and exit; they must end with 0
 *	exec         executes itself again and again, for some seconds
 *	zombie       has a child that ended and is not waited for; "ready PID"
 *	traced       has a child that it traces; "ready PID"
 *	dlopen FILE  loads the library at a SIGUSR1, and at the next one keeps 1,000 objects of 1,000 bytes of it
 *	trap         ignores SIGTRAP
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

enum { KEPT = 64, STACK = 64 << 10 };

static volatile int short_lived;

/* The compiler would leave both out. */
static void allocate_and_free(size_t n)
{
	void *volatile object = malloc(n);

	free(object);
}

/* Allocates, fills, looks whether it is still so, frees. */
static void work_once(unsigned *seed, unsigned char **kept, size_t *sizes)
{
	unsigned i = rand_r(seed) % KEPT;

	for (size_t k = 0; kept[i] && k < sizes[i]; k += 16)
		if (kept[i][k] != (unsigned char)sizes[i])
			_exit(3);
	if (kept[i] && rand_r(seed) % 4 == 0) {
		size_t size = 1 + rand_r(seed) % 2000;

		kept[i] = realloc(kept[i], size);
		sizes[i] = size;
	} else {
		free(kept[i]);
		sizes[i] = 1 + rand_r(seed) % 1000;
		kept[i] = rand_r(seed) % 8 ? malloc(sizes[i]) : calloc(1, sizes[i]);
	}
	if (!kept[i])
		_exit(3);
	memset(kept[i], (int)sizes[i], sizes[i]);
}

static void *work(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	unsigned char *kept[KEPT] = { 0 };
	size_t sizes[KEPT] = { 0 };

	for (unsigned long n = 0; !short_lived || n < 2000; n++) {
		work_once(&seed, kept, sizes);
		if (n % 4096 == 0)
			usleep(100);
	}
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
	return NULL;
}

static void *sleep_on(void *argument)
{
	for (;;)
		pause();
	return argument;
}

static void start_threads(void *(*run)(void *), int n)
{
	pthread_attr_t attributes;
	pthread_t id;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (intptr_t i = 0; i < n; i++)
		if (pthread_create(&id, &attributes, run, (void *)(i + 1)))
			_exit(4);
}

static void live_shortly(int n)
{
	short_lived = 1;
	say_ready();
	for (;;) {
		pthread_t ids[64];

		for (intptr_t i = 0; i < n && i < 64; i++)
			if (pthread_create(&ids[i], NULL, work, (void *)(i + 1)))
				_exit(4);
		for (int i = 0; i < n && i < 64; i++)
			pthread_join(ids[i], NULL);
	}
}

static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(4);
}

/* The slot that this program itself calls malloc through, as the compiler addresses it. */
static void *own_malloc(size_t n)
{
	return calloc(1, n);
}

static void exchange_slot(void)
{
	void **slot, *old;

	__asm__("leaq malloc@GOTPCREL(%%rip), %0" : "=r"(slot));
	mprotect((void *)((uintptr_t)slot & ~4095UL), 4096, PROT_READ | PROT_WRITE);
	old = *slot;
	say_ready();
	for (unsigned long n = 0;; n++) {
		/* As loaders and sandboxes do: whatever is there now, something else. */
		*(void *volatile *)slot = n % 2 ? old : (void *)own_malloc;
		if (n % 1024 == 0)
			usleep(50);
	}
}

static void fork_on(void)
{
	say_ready();
	for (;;) {
		pid_t child = fork();
		int status;

		if (!child) {
			unsigned char *kept[KEPT] = { 0 };
			size_t sizes[KEPT] = { 0 };
			unsigned seed = 5;

			for (int i = 0; i < 20000; i++)
				work_once(&seed, kept, sizes);
			_exit(0);
		}
		allocate_and_free(100000);
		if (waitpid(child, &status, 0) != child || status)
			_exit(3);
	}
}

static void exec_on(char **argv, int left)
{
	char number[16];

	if (left == 0) {
		say_ready();
		left = 6;
	}
	for (int i = 0; i < 1000; i++)
		allocate_and_free(5000);
	for (int i = 0; i < 7000; i++) {
		allocate_and_free(5000);
		usleep(100);
	}
	snprintf(number, sizeof(number), "%d", left - 1);
	if (left == 1)
		_exit(0);
	execl("/proc/self/exe", argv[0], "exec", number, NULL);
	_exit(3);
}

static void be_parent(int traced)
{
	pid_t child = fork();

	if (!child) {
		if (!traced)
			_exit(0);
		for (;;) {
			allocate_and_free(1000);
			usleep(1000);
		}
	}
	if (traced && ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL))
		_exit(4);
	usleep(50000);
	printf("ready %d\n", child);
	fflush(stdout);
	sleep_on(NULL);
}

static void load_library(const char *file)
{
	static void *kept[1000];
	void *(*keep)(size_t);
	const struct timespec moment = { .tv_nsec = 20000000 };
	void *library;
	sigset_t go;
	int got;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	say_ready();
	while (sigtimedwait(&go, NULL, &moment) != SIGUSR1)
		allocate_and_free(100);
	library = dlopen(file, RTLD_NOW);
	keep = library ? (void *(*)(size_t))dlsym(library, "library_keep") : NULL;
	if (!keep)
		_exit(4);
	sigwait(&go, &got);
	for (int i = 0; i < 1000; i++)
		kept[i] = keep(1000);
	puts("kept");
	fflush(stdout);
	sleep_on(kept);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = (int)argument(argc, argv, 2, 0);

	/* Two that are no program of their own. */
	if (!strcmp(mode, "exec"))
		exec_on(argv, n);
	if (!strcmp(mode, "zombie") || !strcmp(mode, "traced"))
		be_parent(!strcmp(mode, "traced"));
	if (!strcmp(mode, "fork"))
		fork_on();
	if (!strcmp(mode, "dlopen"))
		load_library(argv[2]);
	if (!strcmp(mode, "short"))
		live_shortly(n);
	if (!strcmp(mode, "trap"))
		signal(SIGTRAP, SIG_IGN);
	if (!strcmp(mode, "threads"))
		start_threads(sleep_on, n);
	if (!strcmp(mode, "load") || !strcmp(mode, "got"))
		start_threads(work, n ? n : 2);
	if (!strcmp(mode, "seccomp"))
		confine();
	if (!strcmp(mode, "got"))
		exchange_slot();
	say_ready();
	work((void *)1);
	return 0;
}
