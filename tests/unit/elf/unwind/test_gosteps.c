/*
 * test_gosteps PROGRAM [ARG...] - checks the unwind rows of a Go program. tests/system/cpu/gostack.sh runs it.
 *
 *	every row          against .debug_frame of the same file, where it has one: the same CFA at every address, but
 *	                   in functions that switch stacks, of which .debug_frame knows nothing
 *	every instruction  that the first thread executes, step by step: the CFA and the caller's rbp by the row against
 *	                   what they were when the function was called
 *
 * The program stops itself (SIGSTOP) where the second half of the steps shall begin.
 */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/unwind/unwind.h"

#ifndef START_STEPS
#define START_STEPS 8000
#endif
enum { STEPS = 24000, CALLS = 1 << 16 };

static char **arguments; /* the program and its own arguments */

/* The functions that switch stacks or are roots, and the flag for the others that write the stack pointer. */
static bool is_switch(const struct gotab_function *f)
{
	static const char *const names[] = { "gogo", "runtime.asmcgocall", "runtime.callCgoMmap", "runtime.callCgoMunmap",
		"runtime.callCgoSigaction", "runtime.cgocallback", "runtime.cgocallback_gofunc", "runtime.clone",
		"runtime.goexit", "runtime.gogo", "runtime.mcall", "runtime.morestack", "runtime.mstart",
		"runtime.nanotime", "runtime.nanotime1", "runtime.rt0_go", "runtime.sigfwd", "runtime.sigreturn",
		"runtime.sigreturn__sigaction", "runtime.systemstack", "runtime.walltime", "runtime.walltime1",
		"time.now", "_rt0_amd64", "_rt0_amd64_linux" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(f->name, names[i]))
			return true;
	return f->flag & GOTAB_SP_WRITE;
}

struct go {
	char path[300];
	struct elf *elf;
	struct gotab *names;
	struct unwind_table table;
};

static void open_go(struct go *go, const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	snprintf(go->path, sizeof(go->path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(elf_open(fd, &go->elf, NULL), 0);
	assert_int_equal(gotab_open(go->elf, &go->names, NULL), 0);
	assert_int_equal(unwind_build(go->elf, &go->table, NULL), 0);
	assert_true(unwind_valid(&go->table));
}

static void close_go(struct go *go)
{
	unwind_done(&go->table);
	gotab_free(go->names);
	elf_free(go->elf);
}

/* --- every row --- */

/* Builds the table of a copy of the file whose .gopclntab is not one. */
static bool build_without(const struct go *go, struct unwind_table *ret)
{
	const struct elf_section *s = elf_section(go->elf, ".gopclntab");
	uint8_t *copy = mem_alloc(go->elf->size);
	struct elf *elf;
	bool found = elf_section(go->elf, ".debug_frame") || elf_section(go->elf, ".zdebug_frame");

	if (!s)
		s = elf_section(go->elf, ".data.rel.ro.gopclntab");
	memcpy(copy, go->elf->data, go->elf->size);
	if (s)
		memset(copy + (s->data - go->elf->data), 0, 4);
	assert_int_equal(elf_open_memory(copy, go->elf->size, &elf, NULL), 0);
	assert_int_equal(unwind_build(elf, ret, NULL), 0);
	elf_free(elf);
	free(copy);
	return s && found;
}

static uint64_t cfa_of(uint64_t rule)
{
	return rule & (0xffffffffULL << 32 | 15);
}

struct tally {
	size_t functions, rows, switches, wrong;
};

/* Compares each address of a function at which a row of either table begins. */
static void compare_function(const struct go *go, const struct unwind_table *other, const struct gotab_function *f,
			     struct tally *t)
{
	uint64_t last = 0, last_other = 0;

	t->functions++;
	for (uint64_t at = f->entry; at < f->end; at++) {
		uint64_t rule = unwind_find(&go->table, at), expected = unwind_find(other, at);

		/* .debug_frame ends before the padding. */
		if ((rule == last && expected == last_other) || RULE_CFA(expected) == RULE_NONE)
			continue;
		last = rule;
		last_other = expected;
		t->rows++;
		if (cfa_of(rule) == cfa_of(expected) &&
		    (RULE_RBP(rule) == RULE_RBP_SAME ||
		     (RULE_RBP(rule) == RULE_RBP_CFA && RULE_RBP_OFFSET(rule) == -16 && RULE_CFA_OFFSET(rule) >= 16)))
			continue;
		if (is_switch(f)) {
			t->switches++;
		} else {
			t->wrong++;
			print_message("%s at %" PRIx64 ": %016" PRIx64 ", .debug_frame has %016" PRIx64 "\n", f->name, at,
				      rule, expected);
		}
	}
}

static void compare_rows(const struct go *go)
{
	struct unwind_table other = { 0 };
	struct gotab_function f;
	struct tally t = { 0 };

	if (build_without(go, &other)) {
		for (size_t i = 0; i < gotab_count(go->names); i++) {
			assert_true(gotab_get(go->names, i, &f));
			compare_function(go, &other, &f, &t);
		}
		print_message("%s: %zu functions, %zu rows as in .debug_frame, %zu where the stack is switched, %zu wrong\n",
			      go->path, t.functions, t.rows - t.switches - t.wrong, t.switches, t.wrong);
		assert_int_equal(t.wrong, 0);
		assert_true(t.rows > 1000);
		assert_true(t.switches > 0);
	} else {
		print_message("%s has no .debug_frame, or no section for its table\n", go->path);
	}
	unwind_done(&other);
}

/* --- every instruction --- */

/* A call that was seen: the CFA, rbp at the call, and the function. */
struct call {
	uint64_t cfa, rbp;
	size_t function;
};

struct stepping {
	const struct go *go;
	pid_t pid;
	uint64_t bias;
	struct call *calls; /* by hash of the CFA */
	struct user_regs_struct before;
	size_t checked, unknown, roots, wrong, kinds[16];
};

static struct call *call_of(struct stepping *s, uint64_t cfa)
{
	return &s->calls[(cfa >> 3) * 0x9e3779b97f4a7c15ULL >> 48];
}

static bool read_word(void *context, uint64_t address, uint64_t *ret)
{
	struct iovec here = { ret, 8 }, there = { (void *)address, 8 };

	return process_vm_readv(*(pid_t *)context, &here, 1, &there, 1, 0) == 8;
}

/* Compares the caller's registers by the row with what they were. */
static void check_step(struct stepping *s, const struct user_regs_struct *u, size_t function, const char *name)
{
	struct unwind_regs regs = { .leaf = true,
				    .r = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp, u->r8, u->r9,
					   u->r10, u->r11, u->r12, u->r13, u->r14, u->r15, u->rip },
				    .fs_base = u->fs_base };
	uint64_t rule = unwind_find(&s->go->table, u->rip - s->bias), cfa, rbp;
	enum unwind_result result = unwind_step(&regs, rule, read_word, &s->pid);
	const struct call *call = call_of(s, regs.r[UNWIND_RSP]);

	s->kinds[RULE_CFA(rule)]++;
	cfa = regs.r[UNWIND_RSP];
	rbp = regs.r[UNWIND_RBP];
	if (result == UNWIND_DONE) {
		s->roots++;
	} else if (result == UNWIND_MORE && (call->cfa != cfa || call->function != function)) {
		/* Called before the first step, or on a stack that was copied since. */
		s->unknown++;
	} else if (result != UNWIND_MORE || (rbp != RULE_LOST_RBP && rbp != call->rbp)) {
		s->wrong++;
		print_message("%s at %llx: result %d, rule %016" PRIx64 ", rbp %" PRIx64 ", not %" PRIx64 "\n", name,
			      u->rip - s->bias, result, rule, rbp, call->rbp);
	} else {
		s->checked++;
	}
}

static void got_step(struct stepping *s)
{
	struct user_regs_struct u;
	struct gotab_function f;
	uint64_t ra = 0;
	size_t function;
	bool called;

	assert_int_equal(ptrace(PTRACE_GETREGS, s->pid, NULL, &u), 0);
	called = u.rsp == s->before.rsp - 8 && read_word(&s->pid, u.rsp, &ra) && ra - s->before.rip - 2 <= 5;
	s->before = u;
	if (!gotab_find(s->go->names, u.rip - s->bias, &function) || !gotab_get(s->go->names, function, &f))
		return;
	if (!strcmp(f.name, "runtime.copystack"))
		memset(s->calls, 0, CALLS * sizeof(*s->calls));
	if (called || u.rip - s->bias == f.entry)
		*call_of(s, u.rsp + 8) = (struct call){ u.rsp + 8, u.rbp, function };
	check_step(s, &u, function, f.name);
}

/* Lets the program go on with a signal for it. Returns the signal that it stopped by, -1 if it ended. */
static int go_on(struct stepping *s, int request, int pass)
{
	int status;

	assert_int_equal(ptrace(request, s->pid, NULL, pass == SIGTRAP ? 0 : pass), 0);
	assert_int_equal(waitpid(s->pid, &status, __WALL), s->pid);
	return WIFSTOPPED(status) ? WSTOPSIG(status) : -1;
}

static void step(struct stepping *s, size_t n)
{
	for (int signal = 0; n && signal >= 0; n--) {
		signal = go_on(s, PTRACE_SINGLESTEP, signal);
		if (signal >= 0)
			got_step(s);
	}
}

/* False if the program ended before it stopped itself. */
static bool run_to_stop(struct stepping *s)
{
	int signal = 0;

	do
		signal = go_on(s, PTRACE_CONT, signal);
	while (signal >= 0 && signal != SIGSTOP);
	return signal >= 0;
}

static pid_t start(void)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		setenv("GODEBUG", "asyncpreemptoff=1", 1);
		setenv("GOGC", "off", 1);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			execv(arguments[0], arguments);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL), 0);
	return pid;
}

/* What the program's addresses are higher than the file's. */
static uint64_t find_bias(const struct go *go, pid_t pid)
{
	char path[64];
	uint64_t pair[2];
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, pair, sizeof(pair)) == sizeof(pair))
		if (pair[0] == AT_ENTRY)
			return pair[1] - go->elf->entry;
	fail_msg("no entry in %s", path);
	return 0;
}

static void step_through(const struct go *go)
{
	struct stepping s = { .go = go, .pid = start(), .calls = mem_alloc(CALLS * sizeof(*s.calls)) };
	bool stopped;

	memset(s.calls, 0, CALLS * sizeof(*s.calls));
	s.bias = find_bias(go, s.pid);
	assert_int_equal(ptrace(PTRACE_GETREGS, s.pid, NULL, &s.before), 0);
	step(&s, START_STEPS);
	stopped = run_to_stop(&s);
	if (stopped)
		step(&s, STEPS);
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, __WALL);
	free(s.calls);
	print_message("%s: %zu instructions as called, %zu in frames whose call was not seen, %zu in roots, %zu wrong; "
		      "%zu by rbp, %zu by m.curg, %zu by the depth\n", go->path, s.checked, s.unknown, s.roots, s.wrong,
		      s.kinds[RULE_CFA_RBP], s.kinds[RULE_GO_CURG], s.kinds[RULE_GO_DEPTH]);
	assert_int_equal(s.wrong, 0);
	assert_true(s.checked >= 9 * s.unknown);
	assert_true(!stopped || s.checked > 5000);
	/* It was also on the thread's stack: below nanotime1 or systemstack (rbp), systemstack or morestack (m.curg). */
	assert_true(!stopped || s.kinds[RULE_CFA_RBP] > 0);
	assert_true(!stopped || s.kinds[RULE_GO_CURG] > 0);
}

/* --- the program --- */

static void test_program(void **state)
{
	struct go go = { 0 };

	open_go(&go, arguments[0]);
	compare_rows(&go);
	step_through(&go);
	close_go(&go);
	(void)state;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_program) };

	if (argc < 2) {
		fprintf(stderr, "usage: test_gosteps PROGRAM [ARG...]\n");
		return 2;
	}
	arguments = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
