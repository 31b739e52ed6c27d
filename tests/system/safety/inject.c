/*
 * inject.c - preloaded into gasflame by inject.py: counts its system calls and allocations by the place that they come
 * from, and lets one of them fail. x86-64 only.
 *
 * How: syscall user dispatch (prctl) makes each system call of a thread a SIGSYS, also those within libc, SQLite and
 * libbpf, which symbols that are wrapped would miss. The handler knows the stack (the place), does the call itself, or
 * gives the error instead. Nobody traces the process, so it may trace others; what it executes is not affected, and
 * its own seccomp filters apply as ever. Allocations are wrapped by name.
 *
 * From the environment:
 *	INJECT_EXE    only in this program (children may be others)
 *	INJECT_LOG    a file of sizeof(struct log), shared by all of its processes: what was counted, what was hit
 *	INJECT_FAULT  "CLASS PLACE NTH KIND": at the NTH call (from 1; +: and all after it) of the place (hexadecimal; 0: of
 *	              the class, whatever the place), KIND happens: a number: this errno; "short": half of what was
 *	              asked for is done; "kill": SIGKILL instead of the call; "stop": SIGSTOP before the call. Without it,
 *	              calls are counted only.
 *	INJECT_PARENT_ONLY  not in children: they may be traced by gasflame, to which each SIGSYS would be a stop
 *
 * A place is the hash of the return addresses on the stack: the same in each run where addresses are not random
 * (setarch -R), and whatever other threads do.
 *
 * Not seen: threads and children made by clone(CLONE_VM) other than by pthread_create and posix_spawn; the start of the program, before
 * the constructor here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
enum { DISPATCH_ON = 1, SELECT_ALLOW = 0, SELECT_BLOCK = 1 };

/* inject.py has the same list, and the layout of what follows. */
enum class { ALLOC, WRITE, OPEN, READ, PTRACE, MAP, FORK, BPF, WAIT, CLOSE, OTHER, CLASSES };
static const char *const class_names[CLASSES] = {
	"alloc", "write", "open", "read", "ptrace", "map", "fork", "bpf", "wait", "close", "other",
};

enum { ENVIRONMENT = 64, DEPTH = 30, PLACES = 1 << 14, ALLOCATION = 1000 }; /* the last: instead of a number of a system call */

struct place {
	_Atomic uint64_t hash; /* 0: free */
	uint32_t class, call, depth;
	_Atomic uint32_t count;
	uint64_t pc[DEPTH];
};

struct log {
	_Atomic uint32_t started, hits, full;
	int32_t hit_call, hit_pid;
	uint32_t pad;
	int64_t hit_argument; /* its first one: a descriptor, mostly */
	uint64_t entry;       /* where the program was loaded: its entry point */
	_Atomic uint64_t nth[CLASSES];
	struct place places[PLACES];
};

static struct {
	bool on, fault, parent_only, sticky, shortened, kills, stops;
	int class, error;
	uint64_t place, nth;
} plan;
static struct log *shared;
static _Thread_local volatile unsigned char selector __attribute__((tls_model("initial-exec")));
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

/* The only instructions that may enter the kernel by themselves. No CFI, so that the unwinder knows the second one for
 * what it is by its bytes: the return from a signal handler. */
__asm__(".pushsection .text\n"
	".globl inject_begin, inject_call, inject_restore, inject_end\n"
	".hidden inject_begin, inject_call, inject_restore, inject_end\n"
	"inject_begin:\n"
	"inject_call:\n" /* (number, six arguments on the stack of the C convention) */
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	mov 8(%rsp), %r9\n"
	"	syscall\n"
	"	ret\n"
	"	nop\n"
	"inject_restore:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	"	ud2\n"
	"inject_end:\n"
	".popsection\n");
extern char inject_begin[], inject_restore[], inject_end[];
long inject_call(long number, long a, long b, long c, long d, long e, long f);

static int class_of(long call, long first)
{
	switch (call) {
	case SYS_write: case SYS_pwrite64: case SYS_writev: case SYS_pwritev: case SYS_pwritev2: case SYS_ftruncate:
	case SYS_fsync: case SYS_fdatasync: case SYS_rename: case SYS_renameat: case SYS_renameat2: case SYS_link:
	case SYS_linkat: case SYS_unlink: case SYS_unlinkat: case SYS_mkdir: case SYS_mkdirat: case SYS_sendmsg:
	case SYS_sendto: case SYS_fchmod: case SYS_fchown: case SYS_fchownat: case SYS_fallocate: case SYS_copy_file_range:
	case SYS_sendfile: case SYS_process_vm_writev: case SYS_symlinkat: case SYS_fchmodat:
		return WRITE;
	case SYS_open: case SYS_openat: case SYS_openat2: case SYS_memfd_create: case SYS_pipe: case SYS_pipe2:
	case SYS_socket: case SYS_socketpair: case SYS_dup: case SYS_dup2: case SYS_dup3: case SYS_pidfd_open:
	case SYS_pidfd_getfd: case SYS_signalfd4: case SYS_eventfd2: case SYS_timerfd_create: case SYS_epoll_create1:
	case SYS_inotify_init1: case SYS_creat: case SYS_accept4:
		return OPEN;
	case SYS_read: case SYS_pread64: case SYS_readv: case SYS_preadv: case SYS_getdents64: case SYS_recvmsg:
	case SYS_recvfrom: case SYS_readlink: case SYS_readlinkat: case SYS_process_vm_readv:
		return READ;
	case SYS_ptrace: case SYS_wait4: case SYS_waitid: case SYS_kill: case SYS_tkill: case SYS_tgkill:
	case SYS_pidfd_send_signal:
		return PTRACE;
	case SYS_mmap: case SYS_mprotect: case SYS_mremap: case SYS_brk: case SYS_madvise:
		return MAP;
	case SYS_clone: case SYS_clone3: case SYS_fork: case SYS_vfork: case SYS_execve: case SYS_execveat:
		return FORK;
	case SYS_bpf: case SYS_perf_event_open:
		return BPF;
	case SYS_ioctl:
		return first > 2 ? BPF : OTHER; /* of perf events, mostly; a terminal's are not worth it */
	case SYS_poll: case SYS_ppoll: case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_epoll_ctl: case SYS_select:
	case SYS_pselect6: case SYS_nanosleep: case SYS_clock_nanosleep: case SYS_rt_sigtimedwait:
		return WAIT;
	case SYS_close: case SYS_close_range:
		return CLOSE;
	case SYS_rt_sigprocmask: case SYS_rt_sigaction: case SYS_rt_sigreturn: case SYS_exit: case SYS_exit_group:
	case SYS_futex: case SYS_munmap: case SYS_getpid: case SYS_gettid: case SYS_getuid: case SYS_geteuid:
	case SYS_getgid: case SYS_getegid: case SYS_sched_yield: case SYS_clock_gettime: case SYS_gettimeofday:
	case SYS_set_robust_list: case SYS_rseq: case SYS_restart_syscall: case SYS_sigaltstack: case SYS_umask:
	case SYS_getppid: case SYS_times: case SYS_time:
		return -1; /* these cannot fail, or it is not theirs to */
	default:
		return OTHER;
	}
}

struct walk {
	int skip, depth;
	uint64_t pc[DEPTH];
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *data)
{
	struct walk *w = data;
	uint64_t pc = _Unwind_GetIP(context);

	if (w->skip-- > 0)
		return _URC_NO_REASON;
	if (!pc || w->depth == DEPTH)
		return _URC_END_OF_STACK;
	w->pc[w->depth++] = pc;
	return _URC_NO_REASON;
}

static struct place *find_place(int class, long call, const struct walk *w)
{
	uint64_t h = 0xcbf29ce484222325 ^ (uint64_t)call ^ (uint64_t)class << 32;

	for (int i = 0; i < w->depth; i++) {
		h ^= w->pc[i];
		h *= 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	h |= 1;
	for (size_t i = h >> 20, tries = 0; tries < PLACES; i++, tries++) {
		struct place *p = &shared->places[i % PLACES];
		uint64_t was = 0;

		if (atomic_load(&p->hash) != h && !atomic_compare_exchange_strong(&p->hash, &was, h) && was != h)
			continue;
		if (!p->depth) {
			p->class = class;
			p->call = call;
			memcpy(p->pc, w->pc, sizeof(p->pc));
			p->depth = w->depth;
		}
		return p;
	}
	atomic_store(&shared->full, 1);
	return NULL;
}

/* Counts the call; true: it is the one. skip: frames of ours on the stack. */
static bool is_due(int class, long call, long first, int skip)
{
	struct walk w = { .skip = skip };
	uint64_t all = atomic_fetch_add(&shared->nth[class], 1) + 1, n;
	struct place *p;
	bool due;

	if (plan.fault && class != plan.class)
		return false;
	if (!plan.fault || plan.place) {
		_Unwind_Backtrace(on_frame, &w);
		p = find_place(class, call, &w);
		if (!p)
			return false;
		n = atomic_fetch_add(&p->count, 1) + 1;
		due = plan.fault && atomic_load(&p->hash) == plan.place;
	} else {
		n = all;
		due = true;
	}
	due = due && (n == plan.nth || (plan.sticky && n > plan.nth));
	if (due && !atomic_fetch_add(&shared->hits, 1)) {
		shared->hit_call = call;
		shared->hit_argument = first;
		shared->hit_pid = inject_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	}
	return due;
}

static bool takes_length(long call)
{
	return call == SYS_write || call == SYS_pwrite64 || call == SYS_read || call == SYS_pread64;
}

/* Half of it; of a file in whole pages only, as less than one is never split. */
static long shorten(const struct stat *st, long bytes)
{
	long half = bytes / 2;

	return S_ISREG(st->st_mode) && st->st_size ? half & -4096L : half;
}

/* What happens instead of a call that is due. */
static long fail(long call, const long *a)
{
	struct stat st = { 0 };
	bool file = takes_length(call) && !inject_call(SYS_fstat, a[0], (long)&st, 0, 0, 0, 0) && S_ISREG(st.st_mode);

	if (plan.kills)
		inject_call(SYS_kill, inject_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
	if (plan.stops)
		inject_call(SYS_kill, inject_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGSTOP, 0, 0, 0, 0);
	if (plan.shortened && takes_length(call) && shorten(&st, a[2]))
		return inject_call(call, a[0], a[1], shorten(&st, a[2]), a[3], a[4], a[5]);
	/* A full disk is no reason for a pipe or the terminal. */
	if (plan.sticky && plan.error == ENOSPC && takes_length(call) && !file)
		return inject_call(call, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (plan.error && call == SYS_brk) /* says where the end is, which is not where it should be */
		return inject_call(call, 0, 0, 0, 0, 0, 0);
	if (plan.error && call == SYS_close) /* it fails, and closes */
		inject_call(call, a[0], 0, 0, 0, 0, 0);
	if (plan.error)
		return -plan.error;
	return inject_call(call, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int enable(void)
{
	uint64_t mask = 1ULL << (SIGSYS - 1); /* blocked, it would kill */

	selector = SELECT_ALLOW;
	inject_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, 0, sizeof(mask), 0, 0);
	return (int)inject_call(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, (long)inject_begin,
				inject_end - inject_begin, (long)&selector, 0);
}

static uint64_t clone_flags(long call, const long *a)
{
	if (call == SYS_vfork)
		return CLONE_VM;
	if (call == SYS_clone)
		return a[0];
	return call == SYS_clone3 ? ((const struct clone_args *)a[0])->flags : 0;
}

/* Calls that would take this library's own things away: the child that parses files resets all handlers, and unmaps what it
 * shares. */
static bool is_ours(long call, const long *a)
{
	return (call == SYS_rt_sigaction && a[0] == SIGSYS) || (call == SYS_munmap && a[0] == (long)shared);
}

/* What a call changes that the return from the handler would put back. */
static void keep_state(long call, ucontext_t *u)
{
	uint64_t mask;

	if (call == SYS_rt_sigprocmask) {
		inject_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask), 0, 0);
		mask &= ~(1ULL << (SIGSYS - 1)); /* blocked, it would kill */
		memcpy(&u->uc_sigmask, &mask, sizeof(mask));
	} else if (call == SYS_sigaltstack) {
		inject_call(SYS_sigaltstack, 0, (long)&u->uc_stack, 0, 0, 0, 0);
	}
}

static void on_call(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *r = u->uc_mcontext.gregs;
	long call = info->si_syscall, a[6] = { r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9] };
	int class = class_of(call, a[0]);
	bool due;

	(void)signal;
	selector = SELECT_ALLOW;
	if (call == SYS_rt_sigreturn) { /* of another handler: there, on its stack, where it is allowed */
		r[REG_RIP] = (greg_t)inject_restore;
		selector = SELECT_BLOCK;
		return;
	}
	due = class >= 0 && !inside && is_due(class, call, a[0], 1);
	if (!due && (clone_flags(call, a) & CLONE_VM)) {
		/* The child would have no stack to return on from here: the call is made where it was, and
		 * pthread_create() and posix_spawn() below look after the rest. */
		r[REG_RAX] = call;
		r[REG_RIP] -= 2;
		return;
	}
	r[REG_RAX] = is_ours(call, a) ? 0 : due ? fail(call, a) : inject_call(call, a[0], a[1], a[2], a[3], a[4], a[5]);
	keep_state(call, u);
	if ((call == SYS_clone || call == SYS_fork) && !r[REG_RAX]) {
		plan.on = !plan.parent_only && !enable();
		if (!plan.on)
			return;
	}
	selector = SELECT_BLOCK;
}

struct start {
	void *(*run)(void *);
	void *argument;
};

static void *begin_thread(void *data)
{
	struct start s = *(struct start *)data;

	free(data);
	if (!enable())
		selector = SELECT_BLOCK;
	return s.run(s.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct start *s;
	int e;

	if (!real)
		real = dlsym(RTLD_NEXT, "pthread_create");
	if (!plan.on)
		return real(thread, attributes, run, argument);
	s = malloc(sizeof(*s));
	if (!s)
		return EAGAIN;
	*s = (struct start){ run, argument };
	e = real(thread, attributes, begin_thread, s);
	selector = SELECT_BLOCK;
	if (e)
		free(s);
	return e;
}

/* It executes gasflame again, with a few variables: ours go along. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		char *const argv[], char *const variables[])
{
	static const char *const ours[] = { "INJECT_EXE=", "INJECT_LOG=", "INJECT_FAULT=" };
	static int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
			   char *const[]);
	char *more[ENVIRONMENT];
	size_t n = 0;
	int e;

	if (!real)
		real = dlsym(RTLD_NEXT, "posix_spawn");
	for (; variables[n] && n < ENVIRONMENT - 4; n++)
		more[n] = variables[n];
	for (size_t i = 0; i < 3; i++)
		for (char **v = environ; plan.on && !plan.parent_only && *v; v++)
			if (!strncmp(*v, ours[i], strlen(ours[i])))
				more[n++] = *v;
	more[n] = NULL;
	e = real(pid, path, actions, attributes, argv, more);
	if (plan.on)
		selector = SELECT_BLOCK;
	return e;
}

static bool allocation_fails(size_t size)
{
	bool due;

	if (!plan.on || inside)
		return false;
	inside = true;
	due = is_due(ALLOC, ALLOCATION, (long)size, 2);
	if (due && plan.kills)
		inject_call(SYS_kill, inject_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
	inside = false;
	if (due)
		errno = ENOMEM;
	return due;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
	return allocation_fails(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return allocation_fails(count * size) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
	return allocation_fails(size) ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
	return allocation_fails(size) ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return allocation_fails(size) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
	void *q = allocation_fails(size) ? NULL : __libc_memalign(alignment, size);

	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

static void die(const char *why)
{
	fprintf(stderr, "inject: %s\n", why);
	_exit(125);
}

static void read_plan(const char *text)
{
	char class[16], nth[24], kind[16], *end;

	if (sscanf(text, "%15s %lx %23s %15s", class, &plan.place, nth, kind) != 4)
		die("INJECT_FAULT is CLASS PLACE NTH KIND");
	plan.class = -1;
	for (int i = 0; i < CLASSES; i++)
		if (!strcmp(class, class_names[i]))
			plan.class = i;
	plan.nth = strtoull(nth, &end, 10);
	plan.sticky = *end == '+';
	plan.shortened = !strcmp(kind, "short");
	plan.kills = !strcmp(kind, "kill");
	plan.stops = !strcmp(kind, "stop");
	plan.error = atoi(kind);
	if (plan.class < 0 || !plan.nth || (!plan.error && !plan.shortened && !plan.kills && !plan.stops))
		die("INJECT_FAULT has a class, a number or a kind that is not known");
	plan.fault = true;
}

__attribute__((constructor)) static void begin(void)
{
	const char *exe = getenv("INJECT_EXE"), *path = getenv("INJECT_LOG"), *fault = getenv("INJECT_FAULT");
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = { (void *)on_call, SA_SIGINFO | SA_NODEFER | 0x04000000 /* SA_RESTORER */, inject_restore, 0 };
	char self[4096] = "";
	int fd;

	if (!exe || !path || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || strcmp(exe, self))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("INJECT_LOG cannot be opened");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		die("INJECT_LOG cannot be mapped");
	plan.parent_only = getenv("INJECT_PARENT_ONLY");
	if (plan.parent_only) /* a program whose heap is looked at has its allocator to itself */
		unsetenv("LD_PRELOAD");
	if (fault)
		read_plan(fault);
	/* The first walk loads what it needs. */
	_Unwind_Backtrace(on_frame, &(struct walk){ 0 });
	if (inject_call(SYS_rt_sigaction, SIGSYS, (long)&action, 0, 8, 0, 0) || enable())
		die("this kernel has no syscall user dispatch");
	shared->entry = getauxval(AT_ENTRY);
	atomic_fetch_add(&shared->started, 1);
	plan.on = true;
	selector = SELECT_BLOCK;
}
