/*
 * Stops a process at random moments, unwinds every thread with our tables and
 * our step, and compares each address with what libdw finds.
 *
 * Without arguments the target is a child that this program makes: deep calls,
 * callbacks from the C library, signal handlers on an alternate stack, PLT calls
 * and realigned frames. By hand: test_stacks PID ROUNDS for any process.
 */
#include "test.h"

#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/vec.h"
#include "elf/file.h"
#include "elf/unwind/unwind.h"

enum { MAX_FRAMES = 512, MAX_THREADS = 256, ROUNDS = 40, THREADS = 6 };

/* --- the target --- */

static volatile uint64_t sink;
static atomic_uint *working; /* threads that are in work(); the target shares it with the test */

__attribute__((noinline)) static uint64_t realigned(uint64_t n)
{
	_Alignas(64) volatile uint64_t lanes[8] = { n };

	for (int i = 1; i < 8; i++)
		lanes[i] = lanes[i - 1] * 31 + n;
	return lanes[7];
}

__attribute__((noinline)) static uint64_t sized(uint64_t n)
{
	volatile char *room = __builtin_alloca(n % 300 + 1);

	room[0] = n;
	return room[0] + realigned(n);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	sink += sized(x & 7);
	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static uint64_t descend(unsigned depth, uint64_t n)
{
	uint64_t v[64];

	if (depth)
		return descend(depth - 1, n + depth) + sized(n) + 1;
	for (unsigned i = 0; i < ARRAY_LEN(v); i++)
		v[i] = (n += 0x9e3779b97f4a7c15) * (i + 1);
	qsort(v, ARRAY_LEN(v), sizeof(v[0]), compare);
	return v[n % ARRAY_LEN(v)];
}

static void on_signal(int number)
{
	sink += descend(5, number);
}

static void *work(void *arg)
{
	unsigned kind = (uintptr_t)arg;
	stack_t stack = { .ss_sp = mem_alloc(65536), .ss_size = 65536 };
	uint64_t n = kind;
	char text[64];

	sigaltstack(&stack, NULL);
	atomic_fetch_add(working, 1);
	for (;;) {
		n += descend(kind * 7 % 60, n);
		if (kind % 3 == 0)
			raise(SIGUSR1);
		if (kind % 3 == 1)
			sink += snprintf(text, sizeof(text), "%g %" PRIu64, n / 3.0, n);
		if (kind % 3 == 2)
			usleep(n % 50);
	}
	return NULL;
}

static void target_main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &action, NULL);
	for (uintptr_t i = 1; i < THREADS; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	work((void *)THREADS);
}

/* --- our unwinder over a stopped process --- */

struct mapping {
	uint64_t start, end, offset;
	struct elf *elf; /* NULL: none or not ELF */
	struct unwind_table table;
	uint8_t *image; /* vdso */
};

struct target {
	pid_t pid;
	int mem;
	VEC(struct mapping) maps;
};

static void load_mapping(struct target *t, struct mapping *m, const char *path)
{
	if (!strcmp(path, "[vdso]")) {
		size_t n = m->end - m->start;

		m->image = mem_alloc(n);
		if (pread(t->mem, m->image, n, m->start) == (ssize_t)n)
			elf_open_memory(m->image, n, &m->elf, NULL);
	} else if (path[0] == '/') {
		char link[64];
		_cleanup_fd_ int fd = -1;

		snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, t->pid, m->start,
		         m->end);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			elf_open(fd, &m->elf, NULL);
	}
	if (m->elf)
		assert_int_equal(unwind_build(m->elf, &m->table, NULL), 0);
	assert_true(unwind_valid(&m->table));
}

static void load_mappings(struct target *t)
{
	char name[64], line[4600];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/mem", t->pid);
	t->mem = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(t->mem >= 0);
	snprintf(name, sizeof(name), "/proc/%d/maps", t->pid);
	f = fopen(name, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct mapping m = { 0 };
		char rights[8], path[4400] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4399[^\n]", &m.start,
		           &m.end, rights, &m.offset, path) < 4 ||
		    rights[2] != 'x')
			continue;
		load_mapping(t, &m, path);
		vec_push(&t->maps, m);
	}
	fclose(f);
}

static void unload_mappings(struct target *t)
{
	for (size_t i = 0; i < t->maps.n; i++) {
		unwind_done(&t->maps.v[i].table);
		elf_free(t->maps.v[i].elf);
		free(t->maps.v[i].image);
	}
	vec_done(&t->maps);
	fd_close(&t->mem);
}

static uint64_t find_rule(const struct target *t, uint64_t pc)
{
	for (size_t i = 0; i < t->maps.n; i++) {
		const struct mapping *m = &t->maps.v[i];
		uint64_t address;

		if (pc >= m->start && pc < m->end && m->elf &&
		    elf_offset_to_address(m->elf, pc - m->start + m->offset, &address))
			return unwind_find(&m->table, address);
	}
	return RULE_NONE;
}

static bool read_word(void *context, uint64_t address, uint64_t *ret)
{
	struct target *t = context;

	return pread(t->mem, ret, sizeof(*ret), address) == sizeof(*ret);
}

struct stack {
	uint64_t pc[MAX_FRAMES];
	unsigned n;
	bool complete;
	int result;
};

static void unwind_ours(struct target *t, pid_t tid, struct stack *s)
{
	struct user_regs_struct u;
	struct unwind_regs regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &u), 0);
	regs = (struct unwind_regs){ .leaf = true,
		                     .r = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
		                            u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip } };
	s->n = 0;
	do {
		s->pc[s->n++] = regs.r[UNWIND_RIP];
		s->result = unwind_step(&regs, find_rule(t, regs.r[UNWIND_RIP] - !regs.leaf), read_word, t);
	} while (s->result == UNWIND_MORE && s->n < MAX_FRAMES);
	s->complete = s->result == UNWIND_DONE;
}

/* --- libdw --- */

static int got_frame(Dwfl_Frame *frame, void *arg)
{
	struct stack *s = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || s->n == MAX_FRAMES)
		return DWARF_CB_ABORT;
	s->pc[s->n++] = pc;
	return DWARF_CB_OK;
}

static Dwfl *open_dwfl(pid_t pid)
{
	static char *no_path;
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
						  .find_debuginfo = dwfl_standard_find_debuginfo,
						  .debuginfo_path = &no_path };
	Dwfl *dwfl = dwfl_begin(&callbacks);

	assert_non_null(dwfl);
	assert_int_equal(dwfl_linux_proc_report(dwfl, pid), 0);
	assert_int_equal(dwfl_report_end(dwfl, NULL, NULL), 0);
	assert_int_equal(dwfl_linux_proc_attach(dwfl, pid, true), 0);
	return dwfl;
}

/* --- the comparison --- */

struct tally {
	unsigned stacks, equal, libdw_failed, deepest;
	uint64_t frames;
};

static unsigned list_threads(pid_t pid, pid_t *tids)
{
	char name[64];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	d = opendir(name);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && n < MAX_THREADS)
			tids[n++] = atoi(e->d_name);
	if (d)
		closedir(d);
	return n;
}

struct stopped {
	pid_t tid;
	int signal; /* that it was about to get, handed on when it goes on */
};

static bool stop_thread(pid_t tid, struct stopped *ret)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
	    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return false;
	*ret = (struct stopped){ .tid = tid,
		                 .signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status) };
	return true;
}

static void print_stack(const char *who, const struct stack *s)
{
	fprintf(stderr, "%s (%u frames, result %d):", who, s->n, s->result);
	for (unsigned i = 0; i < s->n; i++)
		fprintf(stderr, " %" PRIx64, s->pc[i]);
	fputc('\n', stderr);
}

static void compare_thread(struct target *t, Dwfl *dwfl, pid_t tid, struct tally *tally)
{
	static struct stack ours, theirs;

	unwind_ours(t, tid, &ours);
	theirs.n = 0;
	theirs.result = dwfl_getthread_frames(dwfl, tid, got_frame, &theirs);
	theirs.complete = theirs.result == 0;
	tally->stacks++;
	tally->frames += ours.n;
	tally->deepest = MAX(tally->deepest, ours.n);
	if (ours.n == theirs.n && !memcmp(ours.pc, theirs.pc, ours.n * sizeof(ours.pc[0])) && ours.complete) {
		tally->equal++;
	} else if (!theirs.complete && ours.complete && ours.n >= theirs.n &&
		   !memcmp(ours.pc, theirs.pc, theirs.n * sizeof(ours.pc[0]))) {
		tally->libdw_failed++;
	} else {
		fprintf(stderr, "thread %d differs (%s)\n", tid, dwfl_errmsg(-1));
		print_stack("ours ", &ours);
		print_stack("libdw", &theirs);
	}
}

static void run_rounds(pid_t pid, unsigned rounds, struct tally *tally)
{
	struct target t = { .pid = pid };
	struct stopped stopped[MAX_THREADS];
	pid_t tids[MAX_THREADS];
	Dwfl *dwfl;

	load_mappings(&t);
	for (unsigned round = 0; round < rounds; round++) {
		unsigned thread_count = list_threads(pid, tids), n = 0;

		for (unsigned i = 0; i < thread_count; i++)
			n += stop_thread(tids[i], &stopped[n]);
		/* libdw caches memory, so it gets a fresh start each time. */
		dwfl = open_dwfl(pid);
		for (unsigned i = 0; i < n; i++)
			compare_thread(&t, dwfl, stopped[i].tid, tally);
		dwfl_end(dwfl);
		for (unsigned i = 0; i < n; i++)
			ptrace(PTRACE_DETACH, stopped[i].tid, NULL, (void *)(uintptr_t)stopped[i].signal);
		usleep(rand() % 5000);
	}
	unload_mappings(&t);
}

/* A thread has no unwind information until it has left the C library's clone(), so that neither side can
 * unwind it: the rounds begin when all threads work. */
static void wait_for_threads(pid_t pid)
{
	int status;

	while (atomic_load(working) < THREADS) {
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		usleep(1000);
	}
}

static void stacks_equal_libdw(void **state)
{
	struct tally tally = { 0 };
	pid_t pid;
	int status;

	working = mmap(NULL, sizeof(*working), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(working, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		target_main();
	wait_for_threads(pid);
	run_rounds(pid, ROUNDS, &tally);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	munmap(working, sizeof(*working));
	print_message("%u stacks, %u equal, %" PRIu64 " frames, deepest %u\n", tally.stacks, tally.equal,
		      tally.frames, tally.deepest);
	assert_int_equal(tally.stacks, THREADS * ROUNDS);
	assert_true(tally.deepest > 40);
	assert_int_equal(tally.equal, tally.stacks);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(stacks_equal_libdw) };

	if (argc == 3) {
		struct tally tally = { 0 };

		run_rounds(atoi(argv[1]), atoi(argv[2]), &tally);
		printf("%u stacks, %u equal, %u that only libdw cuts, %" PRIu64 " frames, deepest %u\n",
		       tally.stacks, tally.equal, tally.libdw_failed, tally.frames, tally.deepest);
		return tally.equal + tally.libdw_failed != tally.stacks;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
