/*
 * hostile.c SEED [FILE...] - a program that does at random what makes it hard to put hooks into it, for some seconds.
 *
 * By the seed it chooses some of: threads that allocate, come and go; children of fork and vfork; signals that are raised,
 * sent to threads and handled; slots of its own made writable and written; libraries loaded and unloaded; memory mapped and
 * unmapped; all descriptors closed; files put in the place of descriptors that are new; memory of our name; a filter of
 * system calls; executing itself again; and an early end. FILEs are opened, for reading and
 * if it may for writing, and given to descriptors that are not its own.
 *
 * It checks all memory that it was given, and that its children and signals come back. Ends with 0 when its time is over,
 * 3 when something was wrong with it, and says what; 7 when the seed made it end early.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

enum { KEPT = 64, FILES = 8, MOST_THREADS = 6 };

static double ends;
static int files[FILES], file_count;
static volatile sig_atomic_t came;

static void wrong(const char *what)
{
	printf("wrong: %s (%s)\n", what, strerror(errno));
	fflush(stdout);
	_exit(3);
}

static int over(void)
{
	return seconds_of(CLOCK_MONOTONIC) > ends;
}

/* --- memory that is checked --- */

static void work_once(unsigned *seed, unsigned char **kept, size_t *sizes)
{
	unsigned i = rand_r(seed) % KEPT;
	size_t size = 1 + rand_r(seed) % 1500;

	for (size_t k = 0; kept[i] && k < sizes[i]; k += 8)
		if (kept[i][k] != (unsigned char)(sizes[i] ^ i))
			wrong("memory has changed");
	switch (rand_r(seed) % 6) {
	case 0:
		kept[i] = realloc(kept[i], size);
		break;
	case 1:
		free(kept[i]);
		kept[i] = calloc(1, size);
		break;
	case 2:
		free(kept[i]);
		if (posix_memalign((void **)&kept[i], 64, size))
			kept[i] = NULL;
		break;
	default:
		free(kept[i]);
		kept[i] = malloc(size);
	}
	if (!kept[i])
		wrong("no memory");
	sizes[i] = size;
	memset(kept[i], (int)(sizes[i] ^ i), sizes[i]);
}

static void work_for(unsigned *seed, long rounds)
{
	unsigned char *kept[KEPT] = { 0 };
	size_t sizes[KEPT] = { 0 };

	for (long n = 0; n < rounds && !over(); n++)
		work_once(seed, kept, sizes);
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
}

static void *be_busy(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!over()) {
		work_for(&seed, 20000);
		usleep(rand_r(&seed) % 3000);
	}
	return NULL;
}

/* --- what a thread may do all the time --- */

static void *live_once(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	work_for(&seed, 300);
	return NULL;
}

static void *have_threads(void *argument)
{
	uintptr_t n = (uintptr_t)argument;

	while (!over()) {
		pthread_t id;

		/* There may be too many on a machine where others are at work, too. */
		if (!pthread_create(&id, NULL, live_once, (void *)n++))
			pthread_join(id, NULL);
	}
	return NULL;
}

static void *have_children(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!over()) {
		pid_t child = fork();
		int status;

		if (!child) {
			ends += 5;
			work_for(&seed, 500);
			_exit(0);
		}
		/* All descriptors may be closed and processes limited: then there is none. */
		if (child < 0)
			continue;
		if (waitpid(child, &status, 0) != child || status) {
			errno = status;
			wrong("a child did not end well");
		}
		seed++;
	}
	return NULL;
}

static void *have_vforks(void *argument)
{
	while (!over()) {
		pid_t child = vfork();
		int status;

		if (!child)
			_exit(0);
		if (child > 0 && (waitpid(child, &status, 0) != child || status))
			wrong("a child of vfork did not end well");
		usleep(500);
	}
	return argument;
}

static void on_signal(int signal)
{
	came++;
}

/* Of this thread, and seen at once. */
static void *raise_signals(void *argument)
{
	static const int list[] = { SIGUSR1, SIGUSR2, SIGTRAP, SIGWINCH, SIGURG };
	static __thread int n;

	while (!over()) {
		sig_atomic_t before = came;

		raise(list[n++ % 5]);
		if (came == before)
			wrong("a signal that was raised did not come");
	}
	return argument;
}

static void *close_descriptors(void *argument)
{
	while (!over()) {
		syscall(SYS_close_range, 3U, ~0U, 0);
		usleep(200);
	}
	return argument;
}

/* Descriptors that are not its own become its files. */
static void *exchange_descriptors(void *argument)
{
	unsigned n = 0;

	while (!over() && file_count)
		for (int fd = 3; fd < 24; fd++) {
			int known = 0;

			for (int i = 0; i < file_count; i++)
				known |= fd == files[i];
			if (!known && fcntl(fd, F_GETFD) >= 0) {
				dup2(files[n++ % file_count], fd);
				usleep(500);
				close(fd);
			}
		}
	return argument;
}

static void *map_and_unmap(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!over()) {
		size_t n = (1 + rand_r(&seed) % 64) * 4096;
		char *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			continue;
		memset(at, 1, n);
		mprotect(at, n, rand_r(&seed) % 2 ? PROT_READ : PROT_NONE);
		munmap(at, n);
	}
	return argument;
}

/* The table through which this program calls malloc: writable, as a loader leaves it, and each slot written with what it holds. */
static void *write_slots(void *argument)
{
	void **slot;

	__asm__("leaq malloc@GOTPCREL(%%rip), %0" : "=r"(slot));
	while (!over()) {
		void *page = (void *)((uintptr_t)slot & ~4095UL);

		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		__atomic_store_n(slot, __atomic_load_n(slot, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
		mprotect(page, 4096, PROT_READ);
		usleep(100);
	}
	return argument;
}

static void *load_libraries(void *argument)
{
	static const char *const names[] = { "libm.so.6", "libz.so.1", "libdl.so.2", "libresolv.so.2", "libnss_files.so.2" };
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!over()) {
		void *library = dlopen(names[rand_r(&seed) % 5], RTLD_NOW);

		usleep(rand_r(&seed) % 2000);
		if (library)
			dlclose(library);
	}
	return NULL;
}

/* Memory of our name, of any size and kind. */
static void *fake_memory(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	while (!over()) {
		int fd = memfd_create("gasflame-heap", rand_r(&seed) % 2 ? MFD_ALLOW_SEALING : 0);
		void *code, *data;

		if (fd < 0 || ftruncate(fd, rand_r(&seed) % 3 * 40000)) {
			close(fd);
			continue;
		}
		code = mmap(NULL, 4096 << rand_r(&seed) % 5, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
		close(fd);
		usleep(rand_r(&seed) % 3000);
		if (code != MAP_FAILED)
			munmap(code, 4096);
		if (data != MAP_FAILED)
			munmap(data, 4096);
	}
	return NULL;
}

/* Kills whoever makes a memfd, or maps code. */
static void *be_confined(void *argument)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		wrong("no filter");
	while (!over())
		usleep(10000);
	return argument;
}

enum { EXCHANGE, LOAD, FAKE, CLOSE };
static void *(*const habits[])(void *) = {
	exchange_descriptors, load_libraries, fake_memory, close_descriptors, be_busy, have_threads, have_children, have_vforks,
	raise_signals, map_and_unmap, write_slots, be_confined,
};
enum { HABITS = sizeof(habits) / sizeof(*habits) };

/* Some go together only for those who want to die: a library whose descriptor is exchanged while it is loaded. */
static int goes_with(unsigned habit, unsigned chosen)
{
	static const unsigned against[] = {
		[EXCHANGE] = 1U << LOAD | 1U << FAKE, [LOAD] = 1U << EXCHANGE | 1U << CLOSE, [FAKE] = 1U << EXCHANGE, [CLOSE] = 1U << LOAD,
	};

	return !(chosen & (1U << habit | (habit <= CLOSE ? against[habit] : 0)));
}

int main(int argc, char **argv)
{
	unsigned seed = (unsigned)argument(argc, argv, 1, 1), chosen = 0;
	pthread_t id;

	ends = seconds_of(CLOCK_MONOTONIC) + 1.5 + rand_r(&seed) % 100 * 0.01;
	for (int i = 2; i < argc && file_count < FILES; i++) {
		int fd = open(argv[i], O_RDWR | O_CLOEXEC);

		if (fd < 0)
			fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			files[file_count++] = fd;
	}
	for (int i = 1; i < 32; i++)
		if (i == SIGUSR1 || i == SIGUSR2 || i == SIGTRAP || i == SIGWINCH || i == SIGURG)
			signal(i, on_signal);
	say_ready();
	for (int i = 0; i < MOST_THREADS; i++) {
		unsigned habit = rand_r(&seed) % HABITS;

		if (!goes_with(habit, chosen))
			continue;
		chosen |= 1U << habit;
		if (pthread_create(&id, NULL, habits[habit], (void *)(uintptr_t)(seed | 1)))
			wrong("no thread");
		pthread_detach(id);
	}
	if (rand_r(&seed) % 8 == 0) {
		usleep(rand_r(&seed) % 1000000);
		_exit(7);
	}
	if (rand_r(&seed) % 8 == 0 && argc < FILES + 2) {
		char number[16];

		usleep(rand_r(&seed) % 1000000);
		snprintf(number, sizeof(number), "%u", rand_r(&seed));
		argv[1] = number;
		execv("/proc/self/exe", argv);
		wrong("cannot execute itself");
	}
	be_busy((void *)(uintptr_t)seed);
	return 0;
}
