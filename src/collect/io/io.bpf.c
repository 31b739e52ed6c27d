/*
 * io.bpf.c - the system calls that read, write and sync: bytes, time, file and stack of each.
 *
 * Both ends of a call are seen. At its beginning the file is looked up, for it may
 * be closed when the call returns, and the stack taken; at its end the result says
 * how many bytes it was. Calls of one kind (stack, file, way) are added up for each
 * thread within a slot of time, so that any rate is held.
 *
 * These two tracepoints are passed by every system call of the machine. The
 * number is looked at first: that costs less than to look up the process, and most
 * calls are none of these. Measured on a virtual machine of two CPUs, with the kernel's
 * statistics of BPF on: a getppid() of any program takes 465 instead of 165 ns while this
 * records, a read() of another program 650 instead of 206, of the target 1,220.
 */
#define IO_DEFINE
#include "collect/io/io.bpf.h"

/* Which arguments (from 1) are the descriptors read from and written to; 0: none. */
struct call {
	uint8_t op, ways, from, to;
};

/* The numbers of x86-64. */
static const struct call calls[] = {
	[0] = { IO_OP_read, IO_READ, 1, 0 },
	[1] = { IO_OP_write, IO_WRITE, 0, 1 },
	[17] = { IO_OP_pread64, IO_READ, 1, 0 },
	[18] = { IO_OP_pwrite64, IO_WRITE, 0, 1 },
	[19] = { IO_OP_readv, IO_READ, 1, 0 },
	[20] = { IO_OP_writev, IO_WRITE, 0, 1 },
	[26] = { IO_OP_msync, IO_SYNC, 0, 0 },
	[40] = { IO_OP_sendfile, IO_READ | IO_WRITE, 2, 1 },
	[44] = { IO_OP_sendto, IO_WRITE, 0, 1 },
	[45] = { IO_OP_recvfrom, IO_READ, 1, 0 },
	[46] = { IO_OP_sendmsg, IO_WRITE, 0, 1 },
	[47] = { IO_OP_recvmsg, IO_READ, 1, 0 },
	[74] = { IO_OP_fsync, IO_SYNC, 0, 1 },
	[75] = { IO_OP_fdatasync, IO_SYNC, 0, 1 },
	[162] = { IO_OP_sync, IO_SYNC, 0, 0 },
	[209] = { IO_OP_io_submit, 0, 0, 0 }, /* counted only: what it moves is not seen */
	[275] = { IO_OP_splice, IO_READ | IO_WRITE, 1, 3 },
	[276] = { IO_OP_tee, IO_READ | IO_WRITE, 1, 2 },
	[277] = { IO_OP_sync_file_range, IO_SYNC, 0, 1 },
	[278] = { IO_OP_vmsplice, IO_READ | IO_WRITE, 1, 1 },
	[295] = { IO_OP_preadv, IO_READ, 1, 0 },
	[296] = { IO_OP_pwritev, IO_WRITE, 0, 1 },
	[299] = { IO_OP_recvmmsg, IO_READ, 1, 0 },
	[306] = { IO_OP_syncfs, IO_SYNC, 0, 1 },
	[307] = { IO_OP_sendmmsg, IO_WRITE, 0, 1 },
	[326] = { IO_OP_copy_file_range, IO_READ | IO_WRITE, 1, 3 },
	[327] = { IO_OP_preadv2, IO_READ, 1, 0 },
	[328] = { IO_OP_pwritev2, IO_WRITE, 0, 1 },
	[426] = { IO_OP_io_uring_enter, 0, 0, 0 },
	[511] = { 0 },
};

/* By tid. */
BPF_MAP(io_threads, HASH, SHARED_MAX_THREADS, uint32_t, struct shared_io_thread);

BPF_MAP(new_io_thread, ARRAY, 1, uint32_t, struct shared_io_thread);

/* The current thread, made if its process is recorded. */
static __always_inline struct shared_io_thread *thread_here(struct shared_process **ret_process)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t tid = id, pid = id >> 32, zero = 0;
	struct shared_io_thread *t, *blank;
	struct shared_io_counts *counts;

	*ret_process = bpf_map_lookup_elem(&processes, &pid);
	if (!*ret_process)
		return NULL;
	t = bpf_map_lookup_elem(&io_threads, &tid);
	if (t && t->pid != pid) { /* the kernel gave its number out again */
		bpf_map_delete_elem(&io_threads, &tid);
		t = NULL;
	}
	if (t || pid == io_waiting_pid)
		return t;
	blank = bpf_map_lookup_elem(&new_io_thread, &zero);
	if (blank)
		bpf_map_update_elem(&io_threads, &tid, blank, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&io_threads, &tid);
	if (t) {
		t->pid = pid;
		t->tid = tid;
	} else {
		counts = io_counts_here();
		if (counts)
			counts->threads_full++;
	}
	return t;
}

static __always_inline void send_sum(struct shared_io *sum)
{
	if (!sum->count)
		return;
	io_send(sum);
	sum->count = 0;
}

static __always_inline void send_sums(struct shared_io_thread *t)
{
	for (int i = 0; i < SHARED_IO_SUMS; i++)
		send_sum(&t->sums[i]);
}

/* Adds a call to the sum of its kind in this slot of time. */
static __noinline int add_call(struct shared_io_thread *t, uint32_t way, uint64_t bytes, uint64_t ns,
			       uint32_t failed)
{
	struct shared_io *sum;
	uint32_t which;
	uint64_t file;

	if (!t)
		return 0;
	file = way == IO_READ ? t->from : t->to;
	which = unwind_hash(unwind_hash(t->stack, file), t->op << 8 | way) >> 32;
	sum = &t->sums[which & (SHARED_IO_SUMS - 1)];
	if (sum->count && (sum->stack != t->stack || sum->file != file || sum->op != t->op || sum->way != way))
		send_sum(sum);
	if (!sum->count) {
		sum->kind = RECORD_IO;
		sum->pid = t->pid;
		sum->tid = t->tid;
		sum->op = t->op;
		sum->way = way;
		sum->stack = t->stack;
		sum->file = file;
		sum->time_ns = t->slot * SHARED_SLOT_NS;
		sum->errors = 0;
		sum->bytes = 0;
		sum->ns = 0;
	}
	sum->count++;
	sum->errors += failed;
	sum->bytes += bytes;
	sum->ns += ns;
	return 0;
}

static __always_inline void start_slot(struct shared_io_thread *t, uint64_t now)
{
	uint64_t slot = now / SHARED_SLOT_NS;

	if (slot == t->slot)
		return;
	send_sums(t);
	t->slot = slot;
	t->walks = 0;
}

static __always_inline bool remembered(struct stackcache *place, uint64_t key, uint64_t *stack)
{
	struct shared_io_counts *counts;

	if (!place || !stackcache_known(place, key))
		return false;
	*stack = place->stack;
	counts = io_counts_here();
	if (counts)
		counts->remembered++;
	return true;
}

/* The stack of the call at hand: walked while calls are few, then remembered by its place and file, and where
 * those are too many, by its place alone. */
static __always_inline uint64_t find_stack(struct unwind *u, struct shared_io_thread *t, struct shared_process *p,
					   const uint64_t *regs)
{
	uint64_t coarse_key, fine_key, stack = 0;
	struct stackcache *coarse, *fine;
	uint32_t thin = io_thin & 15;

#define AT(n) regs[n]
	UNWIND_FROM(u, AT);
#undef AT
	u->record.pid = t->pid;
	coarse_key = stackcache_key(t->tid, t->op, u);
	fine_key = unwind_hash(unwind_hash(coarse_key, stackcache_callers(u->sp)), t->from ^ t->to);
	coarse = stackcache_of(coarse_key);
	fine = stackcache_of(fine_key);
	if (t->walks >= SHARED_IO_WALKS >> thin && bpf_get_prandom_u32() & ((64u << thin) - 1) &&
	    (remembered(fine, fine_key, &stack) ||
	     (t->walks >= SHARED_IO_MORE >> thin && remembered(coarse, coarse_key, &stack))))
		return stack;
	t->walks++;
	stack = io_walk(u, p, true);
	if (!stackcache_worth(u))
		return stack; /* tried again next time */
	if (coarse)
		stackcache_set(coarse, coarse_key, stack);
	if (fine)
		stackcache_set(fine, fine_key, stack);
	return stack;
}

static __always_inline uint64_t stack_of_call(struct shared_io_thread *t, struct shared_process *p, const uint64_t *regs)
{
	struct scratch *s = scratch_take(&io_scratches);
	uint64_t stack;

	if (!s) {
		io_lost_stack();
		return 0;
	}
	stack = find_stack(&s->u, t, p, regs);
	scratch_give(s);
	return stack;
}

struct found {
	struct file *file;
};

static long note_mapped(struct task_struct *task, struct vm_area_struct *vma, struct found *found)
{
	found->file = BPF_CORE_READ(vma, vm_file);
	return 0;
}

/* The file that is mapped at an address, for msync. Kernels before 5.17 cannot be asked. */
static __always_inline struct file *file_mapped(uint64_t address)
{
	struct found found = { 0 };

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
		return NULL;
	bpf_find_vma((void *)bpf_get_current_task_btf(), address, note_mapped, &found, 0);
	return found.file;
}

static __always_inline uint32_t argument(const uint64_t *regs, uint8_t which)
{
	return which == 1 ? regs[REGS_DI] : which == 2 ? regs[REGS_SI] : regs[REGS_DX];
}

enum { USER_CS_32 = 0x23, MODE_WRITE = 2 };

/* Remembers what the call at hand is about. */
static __always_inline void note_call(struct shared_io_thread *t, struct shared_process *p,
				      const struct call *call, const uint64_t *regs)
{
	struct file *from = NULL, *to = NULL;

	t->op = call->op;
	t->ways = call->ways;
	t->epoch = io_epoch;
	t->argument = regs[REGS_SI];
	if (call->from)
		from = file_of(argument(regs, call->from));
	if (call->to)
		to = call->to == call->from ? from : file_of(argument(regs, call->to));
	if (call->op == IO_OP_msync)
		to = file_mapped(regs[REGS_DI]);
	if (call->op == IO_OP_vmsplice && from) /* it fills the pipe, or empties it */
		t->ways = BPF_CORE_READ(from, f_mode) & MODE_WRITE ? IO_WRITE : IO_READ;
	t->from = file_key(from);
	t->to = from == to ? t->from : file_key(to);
	t->stack = stack_of_call(t, p, regs);
}

static __always_inline bool is_compat(const uint64_t *regs)
{
	struct shared_io_counts *counts;

	if (regs[REGS_CS] != USER_CS_32)
		return false;
	counts = io_counts_here();
	if (counts)
		counts->compat++;
	return true;
}

SEC("raw_tp/sys_enter")
int on_sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	uint64_t nr = ctx->args[1], regs[REGS_COUNT];
	struct shared_io_thread *t;
	struct shared_process *p;
	const struct call *call;

	if (nr >= sizeof(calls) / sizeof(*calls) || io_paused)
		return 0;
	call = &calls[nr];
	if (!call->ways)
		return 0;
	t = thread_here(&p);
	if (!t)
		return 0;
	t->op = 0;
	if (bpf_probe_read_kernel(regs, sizeof(regs), (void *)ctx->args[0]) || is_compat(regs))
		return 0;
	note_call(t, p, call, regs);
	t->since_ns = bpf_ktime_get_ns(); /* last: our own time is not the call's */
	return 0;
}

enum { MESSAGES_MAX = 1024, MESSAGE_BYTES = 64, MESSAGE_LENGTH_AT = 56 };

/* recvmmsg and sendmmsg give the number of messages; how long each was stands in the caller's list. */
static __noinline uint64_t bytes_of_messages(uint64_t list, uint64_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
		uint32_t length = 0;

		if (i >= count)
			break;
		bpf_probe_read_user(&length, sizeof(length),
				    (void *)(list + (uint64_t)i * MESSAGE_BYTES + MESSAGE_LENGTH_AT));
		bytes += length;
	}
	return bytes;
}

/* A call that began before the recording, or before its last pause, is looked at where it ends. */
static __always_inline bool note_late(struct shared_io_thread *t, struct shared_process *p,
				      const struct call *call, void *at)
{
	uint64_t regs[REGS_COUNT];

	if (bpf_probe_read_kernel(regs, sizeof(regs), at) || is_compat(regs))
		return false;
	note_call(t, p, call, regs);
	return true;
}

enum { RESTART_FIRST = -516, RESTART_LAST = -512 }; /* it will be made again: the signal comes first */

SEC("raw_tp/sys_exit")
int on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	uint64_t now, nr, ns = 0, bytes;
	int64_t result = ctx->args[1];
	struct shared_io_thread *t;
	struct shared_process *p;
	const struct call *call;
	bool timed;

	if (io_paused || bpf_probe_read_kernel(&nr, sizeof(nr), (uint64_t *)ctx->args[0] + REGS_ORIG_AX) ||
	    nr >= sizeof(calls) / sizeof(*calls))
		return 0;
	call = &calls[nr];
	if (!call->op)
		return 0;
	now = bpf_ktime_get_ns();
	t = thread_here(&p);
	if (!t)
		return 0;
	if (!call->ways) {
		io_note(call->op, result < 0, false, 0, 0);
		return 0;
	}
	start_slot(t, now);
	timed = t->op == call->op && t->epoch == io_epoch;
	if (timed)
		ns = now - t->since_ns;
	else if (!note_late(t, p, call, (void *)ctx->args[0]))
		return 0;
	else if (call->ways == IO_SYNC && !io_epoch)
		ns = now - io_start_ns;
	if (result < RESTART_FIRST || result > RESTART_LAST) {
		bytes = result < 0 || call->ways == IO_SYNC ? 0 : result;
		if (bytes && (call->op == IO_OP_recvmmsg || call->op == IO_OP_sendmmsg))
			bytes = bytes_of_messages(t->argument, bytes);
		io_note(call->op, result < 0, timed, bytes, ns);
		if (t->ways & IO_READ)
			add_call(t, IO_READ, bytes, ns, result < 0);
		if (t->ways & (IO_WRITE | IO_SYNC))
			add_call(t, t->ways & (IO_WRITE | IO_SYNC), bytes, ns, result < 0);
	}
	t->op = 0;
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_io_exec(struct bpf_raw_tracepoint_args *ctx)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32;

	if (pid == io_waiting_pid)
		io_waiting_pid = 0;
	return 0;
}

/* In the thread that ends: what it has not sent yet. */
SEC("raw_tp/sched_process_exit")
int on_io_exit(struct bpf_raw_tracepoint_args *ctx)
{
	uint32_t tid = bpf_get_current_pid_tgid();
	struct shared_io_thread *t = bpf_map_lookup_elem(&io_threads, &tid);

	if (!t)
		return 0;
	send_sums(t);
	bpf_map_delete_elem(&io_threads, &tid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
