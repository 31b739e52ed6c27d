#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "elf/budget.h"
#include "elf/packedsymbols.h"
#include "base/sanitized.h"
#include "elf/worker/inspected.h"
#include "elf/worker/worker.h"
#include "elf/worker/workerproto.h"
#include "test.h"

/* A file with these bytes, unlinked; read-only as every file that the worker gets. */
static int file_of(const void *data, size_t n)
{
	char path[] = "/tmp/test_worker-XXXXXX";
	int w = mkstemp(path), r;

	assert_true(w >= 0);
	assert_int_equal(fd_write_all(w, data, n), 0);
	r = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(r >= 0);
	unlink(path);
	close(w);
	return r;
}

static int self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The address in the ELF file of a function of ours. */
static uint64_t address_of(struct worker *w, int fd, void *function)
{
	_cleanup_free_ char *maps = NULL;
	uint64_t address = 0;

	assert_int_equal(fd_read_path("/proc/self/maps", 1 << 20, &maps, NULL), 0);
	for (char *line = maps; line && *line; line = strchr(line, '\n')) {
		unsigned long start, end, offset;

		line += *line == '\n';
		if (sscanf(line, "%lx-%lx r-xp %lx", &start, &end, &offset) == 3 &&
		    (uintptr_t)function >= start && (uintptr_t)function < end)
			assert_int_equal(worker_offset_to_address(w, fd, (uintptr_t)function - start + offset,
								  &address, NULL), 0);
	}
	assert_int_not_equal(address, 0);
	return address;
}

__attribute__((noinline)) int test_worker_landmark(int x)
{
	return x * 3 + 1;
}

static void got_one(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	char *out = context;

	assert_int_equal(index, 0);
	if (count)
		snprintf(out, 256, "%s", calls[count - 1].name);
}

/* Does the worker still do its work? */
static void assert_works(struct worker *w)
{
	_cleanup_fd_ int fd = self();
	uint64_t address = address_of(w, fd, test_worker_landmark);
	struct worker_files files = { .main = fd, .debug = -1, .alt = -1 };
	char name[256] = "";
	struct err err = { 0 };

	assert_int_equal(worker_symbolize(w, &files, &address, 1, got_one, name, &err), 0);
	assert_string_equal(name, "test_worker_landmark");
}

static void good_file(void **state)
{
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = self();
	struct unwind_table t;
	struct symbols_info info;
	struct worker_identity id;
	struct err err = { 0 };

	assert_works(w);
	assert_int_equal(worker_unwind(w, fd, &t, &err), 0);
	assert_true(t.row_count > 100);
	assert_true(unwind_valid(&t));
	assert_int_not_equal(RULE_CFA(unwind_find(&t, address_of(w, fd, test_worker_landmark))), RULE_NONE);
	unwind_done(&t);
	assert_int_equal(worker_inspect(w, fd, &info, &err), 0);
	assert_true(info.symtab && info.debug_info && info.eh_frame);
	assert_int_equal(worker_identify(w, fd, &id, &err), 0);
	assert_int_equal(id.build_id_size, info.build_id_size);
	assert_int_equal(worker_offset_to_address(w, fd, 1ULL << 40, &(uint64_t){ 0 }, &err), -ENOENT);
	worker_free(w);
}

/* What was said of a file holds until the file changes. */
static void known_file(void **state)
{
	char path[] = "/tmp/test_worker-XXXXXX";
	_cleanup_fd_ int fd = mkstemp(path), me = self(), reader = -1;
	struct symbols_info info = { 0 }, again = { 0 };
	struct worker *w = worker_new();
	struct inspected known = { 0 };
	_cleanup_free_ char *all = NULL;
	struct stat now;
	size_t n;

	assert_true(fd >= 0);
	assert_int_equal(fd_read_path("/proc/self/exe", 512 << 20, &all, &n), 0);
	assert_int_equal(fd_write_all(fd, all, n), 0);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	assert_int_equal(worker_inspect(w, reader, &info, NULL), 0);
	assert_int_equal(worker_inspect(w, reader, &again, NULL), 0);
	assert_memory_equal(&info, &again, sizeof(info));
	assert_false(inspected_find(&known, reader, &now, &again));
	inspected_put(&known, &now, &info);
	memset(&again, 0, sizeof(again));
	assert_true(inspected_find(&known, reader, &now, &again));
	assert_memory_equal(&info, &again, sizeof(info));
	assert_false(inspected_find(&known, me, &now, &again));
	/* The same size, and another content. */
	assert_int_equal(pwrite(fd, "none", 4, 0), 4);
	assert_int_equal(futimens(fd, (struct timespec[]){ now.st_atim, now.st_mtim }), 0);
	assert_false(inspected_find(&known, reader, &now, &again));
	assert_true(worker_inspect(w, reader, &again, NULL) < 0);
	inspected_done(&known);
	worker_free(w);
}

static void bad_files(void **state)
{
	struct worker *w = worker_new();
	_cleanup_free_ char *all = NULL;
	_cleanup_fd_ int me = self();
	struct unwind_table t = { 0 };
	size_t n;
	char noise[4096];

	assert_int_equal(fd_read_file(me, 64 << 20, &all, &n), 0);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = i * 7919 >> 3;
	const struct { const void *data; size_t n; } bad[] = {
		{ "", 0 }, { "\177ELF", 4 }, { noise, sizeof(noise) }, { all, 63 }, { all, 1000 },
		{ all, n / 2 },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = file_of(bad[i].data, bad[i].n);
		struct err err = { 0 };

		assert_int_equal(worker_unwind(w, fd, &t, &err), -ENOEXEC);
		assert_true(err.text[0]);
		close(fd);
	}
	assert_works(w);
	worker_free(w);
}

/* Neither a FIFO nor a device nor a folder reaches the child. */
static void no_regular_file(void **state)
{
	struct worker *w = worker_new();
	int pair[2], null = open("/dev/zero", O_RDONLY), folder = open("/", O_RDONLY | O_DIRECTORY);
	struct unwind_table t;
	struct err err = { 0 };

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(worker_unwind(w, pair[0], &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(worker_unwind(w, null, &t, &err), -EINVAL);
	assert_int_equal(worker_unwind(w, folder, &t, &err), -EINVAL);
	assert_int_equal(worker_unwind(w, -1, &t, &err), -EBADF);
	assert_works(w);
	close(pair[0]);
	close(pair[1]);
	close(null);
	close(folder);
	worker_free(w);
}

/* A memfd is open for writing; the child must get it for reading only, and does get it. */
static void writable_file(void **state)
{
	struct worker *w = worker_new();
	_cleanup_free_ char *all = NULL;
	_cleanup_fd_ int me = self(), fd = memfd_create("x", MFD_CLOEXEC);
	struct symbols_info info;
	size_t n;

	assert_int_equal(fd_read_file(me, 64 << 20, &all, &n), 0);
	assert_int_equal(fd_write_all(fd, all, n), 0);
	assert_int_equal(worker_inspect(w, fd, &info, NULL), 0);
	assert_true(info.symtab);
	worker_free(w);
}

/* Runs the child up to the end of its first mmap() of a file, cuts the file and lets the child go on. It says in
 * ready whether the child can be traced, and exits with 0 when it has cut the file. */
static _Noreturn void shrink_when_mapped(pid_t child, int fd, int ready)
{
	struct __ptrace_syscall_info info = { 0 };
	bool maps = false, traced;
	int status;

	traced = !ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACESYSGOOD) && !ptrace(PTRACE_INTERRUPT, child, 0, 0) &&
		 waitpid(child, &status, __WALL) == child;
	if (write(ready, &traced, sizeof(traced)) != sizeof(traced) || !traced)
		_exit(2);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, child, 0, 0) || waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status))
			_exit(1);
		ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			maps = info.entry.nr == SYS_mmap && !(info.entry.args[3] & MAP_ANONYMOUS);
		else if (info.op == PTRACE_SYSCALL_INFO_EXIT && maps)
			break;
	}
	status = ftruncate(fd, 0);
	ptrace(PTRACE_DETACH, child, 0, 0);
	_exit(!!status);
}

/* A file that shrinks while it is read kills the child, not us. Another process holds the child when it has mapped
 * the file, so that the moment does not depend on the scheduler. */
static void shrinking_file(void **state)
{
	struct worker *w = worker_new();
	_cleanup_free_ char *all = NULL;
	_cleanup_fd_ int me = self(), fd = memfd_create("x", MFD_CLOEXEC);
	struct unwind_table t = { 0 };
	struct err err = { 0 };
	bool traced = false;
	int pair[2], status;
	pid_t tracer;
	size_t n;

	assert_int_equal(fd_read_file(me, 64 << 20, &all, &n), 0);
	assert_int_equal(fd_write_all(fd, all, n), 0);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_works(w);
	tracer = fork();
	if (!tracer)
		shrink_when_mapped(worker_child_pid(w), fd, pair[1]);
	assert_int_equal(read(pair[0], &traced, sizeof(traced)), sizeof(traced));
	if (traced) {
		assert_int_equal(worker_unwind(w, fd, &t, &err), -EIO);
		assert_non_null(strstr(err.text, "shrank"));
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_works(w);
	worker_free(w);
	close(pair[0]);
	close(pair[1]);
	if (!traced) {
		print_message("skipped: the child cannot be traced\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Ended by somebody else while it had nothing to do: the next call has a new one. */
static void killed_child(void **state)
{
	struct worker *w = worker_new();
	siginfo_t info;
	pid_t first;

	assert_works(w);
	first = worker_child_pid(w);
	kill(first, SIGKILL);
	assert_int_equal(waitid(P_PID, first, &info, WEXITED | WNOWAIT), 0);
	assert_works(w);
	assert_int_not_equal(worker_child_pid(w), first);
	worker_free(w);
	/* And no zombie stays. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void slow_child(void **state)
{
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = self();
	struct symbols_info info;
	struct err err = { 0 };
	uint64_t start;

	assert_works(w);
	worker_set_timeout(w, 200000000);
	kill(worker_child_pid(w), SIGSTOP);
	start = clock_mono_ns();
	assert_int_equal(worker_inspect(w, fd, &info, &err), -ETIMEDOUT);
	assert_true(clock_mono_ns() - start < 20000000000);
	/* It is not tried again: no child is started, and the answer is there at once. */
	start = clock_mono_ns();
	assert_int_equal(worker_inspect(w, fd, &info, &err), -ETIMEDOUT);
	assert_int_equal(worker_child_pid(w), 0);
	assert_non_null(strstr(err.text, "gave up"));
	worker_set_timeout(w, UINT64_MAX);
	assert_works(w);
	worker_free(w);
}

static void *cancel_later(void *context)
{
	usleep(100000);
	worker_cancel(context);
	return NULL;
}

static void cancelled(void **state)
{
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = self();
	struct symbols_info info;
	uint64_t start = clock_mono_ns();
	pthread_t thread;

	assert_works(w);
	kill(worker_child_pid(w), SIGSTOP);
	assert_int_equal(pthread_create(&thread, NULL, cancel_later, w), 0);
	assert_int_equal(worker_inspect(w, fd, &info, NULL), -ECANCELED);
	pthread_join(thread, NULL);
	assert_true(clock_mono_ns() - start < 30000000000);
	assert_int_equal(worker_inspect(w, fd, &info, NULL), -ECANCELED);
	assert_int_equal(worker_child_pid(w), 0);
	worker_free(w);
}

/* --- files that cost their owner nothing --- */

static const uint64_t hole_bytes = 8ULL << 30;

/* An ELF file whose symbol table, notes and unwind information are holes of gigabytes. */
static int sparse_file(void)
{
	static const char names[] = "\0.symtab\0.eh_frame\0.strtab\0.shstrtab";
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	const Elf64_Shdr sections[] = {
		{ 0 },
		{ .sh_name = 1, .sh_type = SHT_SYMTAB, .sh_offset = 4096, .sh_size = hole_bytes, .sh_link = 3, .sh_entsize = 24 },
		{ .sh_name = 9, .sh_type = SHT_PROGBITS, .sh_offset = 4096, .sh_size = hole_bytes },
		{ .sh_name = 19, .sh_type = SHT_STRTAB, .sh_offset = 4096, .sh_size = hole_bytes },
		{ .sh_name = 27, .sh_type = SHT_STRTAB, .sh_offset = 1024, .sh_size = sizeof(names) },
	};
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 4096, .p_vaddr = 4096, .p_filesz = hole_bytes },
		{ .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = 4096, .p_filesz = hole_bytes },
	};
	const Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
				.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof(eh),
				.e_shoff = 2048, .e_ehsize = sizeof(eh), .e_phentsize = sizeof(segments[0]), .e_phnum = 2,
				.e_shentsize = sizeof(sections[0]), .e_shnum = 5, .e_shstrndx = 4 };

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096 + hole_bytes), 0);
	assert_int_equal(pwrite(fd, &eh, sizeof(eh), 0), sizeof(eh));
	assert_int_equal(pwrite(fd, segments, sizeof(segments), sizeof(eh)), sizeof(segments));
	assert_int_equal(pwrite(fd, names, sizeof(names), 1024), sizeof(names));
	assert_int_equal(pwrite(fd, sections, sizeof(sections), 2048), sizeof(sections));
	return fd;
}

static uint64_t bytes_held(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks * 512ULL;
}

/* Reading a hole of a file in memory fills it: what was read can be seen. */
static void sparse(void **state)
{
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = sparse_file();
	struct worker_files files = { .main = fd, .debug = -1, .alt = -1 };
	struct unwind_table t = { 0 };
	struct worker_layout layout;
	struct symbols_info info;
	uint64_t start = clock_mono_ns(), address = 5000;
	char name[256] = "";
	uint32_t crc;

	assert_int_equal(budget_real_bytes(fd, 4096 + hole_bytes), 4096);
	assert_int_equal(worker_inspect(w, fd, &info, NULL), 0);
	assert_false(info.symtab || info.eh_frame);
	assert_int_equal(worker_layout(w, fd, &layout, NULL), 0);
	assert_int_equal(layout.part_count, 1);
	assert_int_equal(layout.build_id_size, 0);
	assert_true(worker_layout_address(&layout, 4096, &address) && address == 4096);
	if (!worker_unwind(w, fd, &t, NULL))
		unwind_done(&t);
	assert_int_equal(worker_symbolize(w, &files, &address, 1, got_one, name, NULL), 0);
	assert_int_equal(worker_crc(w, fd, &crc, NULL), -EFBIG);
	assert_true(bytes_held(fd) < 64 << 20);
	assert_true(clock_mono_ns() - start < BUDGET_WALL_NS);
	worker_free(w);
}

static void many_sections(void **state)
{
	struct worker *w = worker_new();
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_shoff = sizeof(eh),
			  .e_ehsize = sizeof(eh), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 0 };
	Elf64_Shdr first = { .sh_size = 1000000 };
	size_t n = sizeof(eh) + 1000000 * sizeof(Elf64_Shdr);
	_cleanup_free_ char *all = mem_alloc(n);
	_cleanup_fd_ int fd = -1;
	struct symbols_info info;
	struct err err = { 0 };

	memcpy(all, &eh, sizeof(eh));
	memcpy(all + sizeof(eh), &first, sizeof(first));
	fd = file_of(all, n);
	assert_int_equal(worker_inspect(w, fd, &info, &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "1000000 sections"));
	worker_free(w);
}

static void checksum(void **state)
{
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = file_of("123456789", 9);
	uint32_t crc = 0;

	assert_int_equal(worker_crc(w, fd, &crc, NULL), 0);
	assert_int_equal(crc, 0xcbf43926);
	worker_free(w);
}

static void perf_map(void **state)
{
	const char text[] = "1000 100 first\n1000 100 second\n";
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = file_of(text, strlen(text));
	uint64_t address = 0x1010, two[] = { 2, 1 };
	char name[256] = "";

	assert_int_equal(worker_jit(w, fd, false, &address, 1, got_one, name, NULL), 0);
	assert_string_equal(name, "second");
	assert_int_equal(worker_jit(w, fd, true, &address, 1, got_one, name, NULL), -EINVAL);
	assert_int_equal(worker_jit(w, fd, false, two, 2, got_one, name, NULL), -EINVAL);
	worker_free(w);
}

/* Of a map of 10 GB the end is read; what is a hole takes neither time nor memory. */
static void perf_map_huge(void **state)
{
	const char text[] = "of a line\n1000 100 late\n";
	const off_t size = 10LL << 30;
	struct worker *w = worker_new();
	_cleanup_fd_ int fd = memfd_create("big", MFD_CLOEXEC);
	uint64_t address = 0x1010;
	char name[256] = "";
	struct stat st;

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(worker_jit(w, fd, false, &address, 1, got_one, name, NULL), 0);
	assert_string_equal(name, "");
	assert_int_equal(pwrite(fd, text, strlen(text), size), strlen(text));
	assert_int_equal(worker_jit(w, fd, false, &address, 1, got_one, name, NULL), 0);
	assert_string_equal(name, "late");
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_blocks * 512 <= 4 << 20);
	/* Little data at the start of what is read, and holes up to the end. */
	assert_int_equal(pwrite(fd, "x\n", 2, size - (64 << 20)), 2);
	assert_int_equal(worker_jit(w, fd, false, &address, 1, got_one, name, NULL), -EFBIG);
	worker_free(w);
}

/* Honest files of any size have time. */
static void budgets(void **state)
{
	assert_true(budget_cpu_ns(0, 0, 0) >= BUDGET_CPU_NS);
	assert_true(budget_cpu_ns(500 << 20, 10000, 0) >= 25000000000);
	assert_true(budget_cpu_ns(UINT64_MAX, UINT64_MAX, 0) <= BUDGET_CHILD_CPU_S * 1000000000ULL / 2);
	assert_true(budget_cpu_ns(0, 0, BUDGET_WASTED_NS + 1) < budget_cpu_ns(0, 0, 0));
}

/* --- what the child has of its parent --- */

/* Does any memory of a process hold these bytes? */
static bool memory_holds(pid_t pid, const char *bytes, size_t n)
{
	_cleanup_free_ char *maps = NULL, *piece = mem_alloc(1 << 20);
	_cleanup_fd_ int mem = -1;
	char path[64];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	assert_int_equal(fd_read_path(path, 4 << 20, &maps, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(mem >= 0);
	for (char *line = maps; line && *line && !found; line = strchr(line, '\n')) {
		unsigned long start, end;

		line += *line == '\n';
		if (sscanf(line, "%lx-%lx rw-p", &start, &end) != 2)
			continue;
		for (; start < end && !found; start += (1 << 20) - 64) {
			ssize_t r = pread(mem, piece, MIN(end - start, 1UL << 20), start);

			found = r > 0 && memmem(piece, r, bytes, n);
		}
	}
	return found;
}

static void no_memory(void **state)
{
	char *secret = mem_printf("%s-%d", "the parent keeps this to itself", getpid());
	struct worker *w = worker_new();
	_cleanup_free_ char *environment = NULL, *limits = NULL;
	char path[64];

	setenv("TEST_WORKER_TOKEN", secret, 1);
	assert_works(w);
	snprintf(path, sizeof(path), "/proc/%d/limits", worker_child_pid(w));
	assert_int_equal(fd_read_path(path, 1 << 20, &limits, NULL), 0);
	assert_non_null(strstr(limits, "Max cpu time              600                  600"));
	/* Only root may look into it, and where sanitizers are they reserve terabytes. */
	if (!geteuid() && !SANITIZED) {
		assert_true(memory_holds(getpid(), secret, strlen(secret)));
		assert_false(memory_holds(worker_child_pid(w), secret, strlen(secret)));
		snprintf(path, sizeof(path), "/proc/%d/environ", worker_child_pid(w));
		assert_int_equal(fd_read_path(path, 1 << 20, &environment, NULL), 0);
		assert_false(strstr(environment, "TEST_WORKER"));
	}
	worker_free(w);
	free(secret);
}

/* Ctrl-C reaches every process of the group: the child must live on, to name what was recorded. */
static void interrupt(void **state)
{
	struct worker *w = worker_new();
	pid_t pid;

	assert_works(w);
	pid = worker_child_pid(w);
	kill(pid, SIGINT);
	kill(pid, SIGTERM);
	assert_works(w);
	assert_int_equal(worker_child_pid(w), pid);
	worker_free(w);
}

enum trial { TRY_NOTHING, TRY_OPEN, TRY_SOCKET, TRY_EXEC, TRY_EXECUTABLE, TRY_SHARED, TRY_KILL, TRY_INHERITED,
	     TRY_MEMORY, TRY_UID };

/* In the sandbox: 0 = it may, else it was refused; or the process dies. */
static int attempt(enum trial what, int inherited, volatile int *shared)
{
	char *const argv[] = { "/bin/true", NULL };

	switch (what) {
	case TRY_NOTHING:
		return 0;
	case TRY_OPEN:
		return open("/etc/passwd", O_RDONLY) < 0;
	case TRY_SOCKET:
		return socket(AF_INET, SOCK_STREAM, 0) < 0;
	case TRY_EXEC:
		return execv(argv[0], argv) < 0;
	case TRY_EXECUTABLE:
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		       MAP_FAILED;
	case TRY_SHARED:
		*shared = 1; /* unmapped: dies of SIGSEGV */
		return 0;
	case TRY_KILL:
		return kill(getpid() + 1, 0) < 0;
	case TRY_INHERITED:
		return lseek(inherited, 0, SEEK_CUR) < 0;
	case TRY_MEMORY:
		return mmap(NULL, 2U << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		       MAP_FAILED;
	case TRY_UID:
		return syscall(SYS_setuid, 0) < 0;
	}
	return 0;
}

static int sandboxed(enum trial what)
{
	int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pair[2], inherited = self(), status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		struct err err = { 0 };

		_exit(worker_sandbox(pair[1], &err) ? 99 : attempt(what, inherited, shared));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(pair[0]);
	close(pair[1]);
	close(inherited);
	munmap(shared, 4096);
	return status;
}

static void assert_refused(enum trial what, int signal)
{
	int status = sandboxed(what);

	/* The filter for sanitizers refuses instead of killing. */
	if (SANITIZED && signal == SIGSYS) {
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 99);
	} else if (signal) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signal);
	} else {
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	}
}

static void sandbox(void **state)
{
	int status = sandboxed(TRY_NOTHING);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_refused(TRY_OPEN, SIGSYS);
	assert_refused(TRY_SOCKET, SIGSYS);
	assert_refused(TRY_EXEC, SIGSYS);
	assert_refused(TRY_UID, SIGSYS);
	assert_refused(TRY_SHARED, SIGSEGV);
	assert_refused(TRY_INHERITED, 0);
	if (!SANITIZED) {
		/* sanitizers need these themselves */
		assert_refused(TRY_EXECUTABLE, SIGSYS);
		assert_refused(TRY_KILL, SIGSYS);
		assert_refused(TRY_MEMORY, 0);
	}
}

/* Is the child really nobody, without capabilities, and not to be debugged? */
static void child_rights(void **state)
{
	struct worker *w = worker_new();
	char path[64];
	_cleanup_free_ char *status = NULL;

	assert_works(w);
	snprintf(path, sizeof(path), "/proc/%d/status", worker_child_pid(w));
	assert_int_equal(fd_read_path(path, 1 << 20, &status, NULL), 0);
	assert_non_null(strstr(status, "\nCapEff:\t0000000000000000\n"));
	assert_non_null(strstr(status, "\nCapPrm:\t0000000000000000\n"));
	assert_non_null(strstr(status, "\nNoNewPrivs:\t1\n"));
	assert_non_null(strstr(status, "\nSeccomp:\t2\n"));
	if (!geteuid())
		assert_non_null(strstr(status, "\nUid:\t65534\t65534\t65534\t65534\n"));
	worker_free(w);
}

/* What a child could send: each broken packing is refused. */
static void packed_names(void **state)
{
	const struct symbols_call calls[] = { { "_Zf", "f", "a.c", 3 }, { "", "g", "b.c", 4 } };
	struct packedsymbols_builder b;
	struct packedsymbols_header h;
	struct buf out = { 0 };
	struct packedsymbols n;
	struct symbols_call got[4];
	uint32_t at;

	packedsymbols_builder_init(&b);
	packedsymbols_builder_add(&b, 100, calls, 2);
	packedsymbols_builder_add(&b, 200, NULL, 0);
	assert_true(packedsymbols_builder_pack(&b, &out));
	assert_true(packedsymbols_open(out.data, out.n, &n));
	assert_true(packedsymbols_sorted(&n));
	assert_true(packedsymbols_find(&n, 100, &at));
	assert_int_equal(packedsymbols_calls(&n, at, got, 4), 2);
	assert_string_equal(got[0].linkage, "_Zf");
	assert_string_equal(got[1].file, "b.c");
	assert_int_equal(got[1].line, 4);
	assert_false(packedsymbols_find(&n, 101, &at));
	assert_true(packedsymbols_find(&n, 200, &at));
	assert_int_equal(packedsymbols_calls(&n, at, got, 4), 0);

	for (size_t cut = 0; cut < out.n; cut++) {
		_cleanup_free_ char *copy = mem_alloc(cut + 1);

		memcpy(copy, out.data, cut);
		assert_false(packedsymbols_open(copy, cut, &n));
	}
	/* Every 32-bit field set to something huge. */
	for (size_t i = 0; i + 4 <= sizeof(h) - 4; i += 4) {
		_cleanup_free_ char *copy = mem_alloc(out.n);

		memcpy(copy, out.data, out.n);
		memset(copy + i, 0xff, 4);
		assert_false(packedsymbols_open(copy, out.n, &n));
	}
	((struct packedsymbols_span *)(out.data + sizeof(h) + 16))->first = 1;
	assert_false(packedsymbols_open(out.data, out.n, &n));
	((struct packedsymbols_span *)(out.data + sizeof(h) + 16))->first = 0;
	out.data[out.n - 1] = 'x';
	assert_false(packedsymbols_open(out.data, out.n, &n));
	out.data[out.n - 1] = 0;
	((struct packedsymbols_call *)(out.data + sizeof(h) + 32))->file = 1000;
	assert_false(packedsymbols_open(out.data, out.n, &n));
	buf_done(&out);
	packedsymbols_builder_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_names),
		cmocka_unit_test(good_file),
		cmocka_unit_test(known_file),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(no_regular_file),
		cmocka_unit_test(writable_file),
		cmocka_unit_test(shrinking_file),
		cmocka_unit_test(killed_child),
		cmocka_unit_test(slow_child),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(sparse),
		cmocka_unit_test(many_sections),
		cmocka_unit_test(checksum),
		cmocka_unit_test(perf_map),
		cmocka_unit_test(perf_map_huge),
		cmocka_unit_test(budgets),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(interrupt),
		cmocka_unit_test(sandbox),
		cmocka_unit_test(child_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
