/*
 * io.bpf.c - the system calls that read, write and sync: bytes, time, file and stack of each.
 *
 * Both ends of a call are seen. At its beginning the file is looked up, for it may be closed when the call
 * returns, and the place of the call found (place.bpf.h); at its end the result says how many bytes it was.
 * Calls of one place and file are added up within a slot of time, so that any rate is held.
 *
 * Every system call of the machine passes these two tracepoints. The number is looked at first: most calls are none of
 * these, and a look at the table costs less than one at the process. What the calls of a program cost while this records
 * is in docs/measurements.md.
 */
#define IO_DEFINE
#include "collect/io/io.bpf.h"
#include "collect/io/place.bpf.h"

/* Which arguments (from 1) are the descriptors read from and written to; 0: none. */
struct call {
	uint8_t op, ways, from, to;
};

/* The numbers of x86-64, and of arm64, which has the kernel's common ones. */
#ifdef __TARGET_ARCH_arm64
#define NR(x86, arm64) arm64
#else
#define NR(x86, arm64) x86
#endif
static const struct call calls[] = {
	[NR(0, 63)] = { IO_OP_read, IO_READ, 1, 0 },
	[NR(1, 64)] = { IO_OP_write, IO_WRITE, 0, 1 },
	[NR(17, 67)] = { IO_OP_pread64, IO_READ, 1, 0 },
	[NR(18, 68)] = { IO_OP_pwrite64, IO_WRITE, 0, 1 },
	[NR(19, 65)] = { IO_OP_readv, IO_READ, 1, 0 },
	[NR(20, 66)] = { IO_OP_writev, IO_WRITE, 0, 1 },
	[NR(26, 227)] = { IO_OP_msync, IO_SYNC, 0, 0 },
	[NR(40, 71)] = { IO_OP_sendfile, IO_READ | IO_WRITE, 2, 1 },
	[NR(44, 206)] = { IO_OP_sendto, IO_WRITE, 0, 1 },
	[NR(45, 207)] = { IO_OP_recvfrom, IO_READ, 1, 0 },
	[NR(46, 211)] = { IO_OP_sendmsg, IO_WRITE, 0, 1 },
	[NR(47, 212)] = { IO_OP_recvmsg, IO_READ, 1, 0 },
	[NR(74, 82)] = { IO_OP_fsync, IO_SYNC, 0, 1 },
	[NR(75, 83)] = { IO_OP_fdatasync, IO_SYNC, 0, 1 },
	[NR(162, 81)] = { IO_OP_sync, IO_SYNC, 0, 0 },
	[NR(209, 2)] = { IO_OP_io_submit, 0, 0, 0 }, /* counted only: what it moves is not seen */
	[NR(275, 76)] = { IO_OP_splice, IO_READ | IO_WRITE, 1, 3 },
	[NR(276, 77)] = { IO_OP_tee, IO_READ | IO_WRITE, 1, 2 },
	[NR(277, 84)] = { IO_OP_sync_file_range, IO_SYNC, 0, 1 },
	[NR(278, 75)] = { IO_OP_vmsplice, IO_READ | IO_WRITE, 1, 1 },
	[NR(295, 69)] = { IO_OP_preadv, IO_READ, 1, 0 },
	[NR(296, 70)] = { IO_OP_pwritev, IO_WRITE, 0, 1 },
	[NR(299, 243)] = { IO_OP_recvmmsg, IO_READ, 1, 0 },
	[NR(306, 267)] = { IO_OP_syncfs, IO_SYNC, 0, 1 },
	[NR(307, 269)] = { IO_OP_sendmmsg, IO_WRITE, 0, 1 },
	[NR(326, 285)] = { IO_OP_copy_file_range, IO_READ | IO_WRITE, 1, 3 },
	[NR(327, 286)] = { IO_OP_preadv2, IO_READ, 1, 0 },
	[NR(328, 287)] = { IO_OP_pwritev2, IO_WRITE, 0, 1 },
	[NR(426, 426)] = { IO_OP_io_uring_enter, 0, 0, 0 },
	[511] = { 0 },
};

/* By tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHARED_MAX_THREADS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct shared_io_thread);
} io_threads SEC(".maps");

BPF_MAP(new_io_thread, ARRAY, 1, uint32_t, struct shared_io_thread);

/* A thread that makes its first call, if its process is recorded. */
static __noinline struct shared_io_thread *thread_new(uint32_t pid, uint32_t tid)
{
	struct shared_io_thread *t, *blank;
	struct shared_io_counts *counts;
	uint32_t zero = 0;

	if (!bpf_map_lookup_elem(&processes, &pid) || pid == io_waiting_pid)
		return NULL;
	blank = bpf_map_lookup_elem(&new_io_thread, &zero);
	if (blank)
		bpf_map_update_elem(&io_threads, &tid, blank, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&io_threads, &tid);
	if (t) {
		t->pid = pid;
		t->tid = tid;
		t->allowed = SHARED_IO_WALKS;
	} else {
		counts = io_counts_here();
		if (counts)
			counts->threads_full++;
	}
	return t;
}

/* The current thread, NULL where its process is not recorded. */
static __always_inline struct shared_io_thread *thread_here(void)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t tid = id, pid = id >> 32;
	struct shared_io_thread *t;

	if (!unwind_may_be_ours(pid))
		return NULL;
	t = bpf_map_lookup_elem(&io_threads, &tid);
	if (t && t->pid == pid)
		return t;
	if (t) /* the kernel gave its number out again */
		bpf_map_delete_elem(&io_threads, &tid);
	return thread_new(pid, tid);
}

/* Sends the sums of the slot of time that is over. */
static __noinline int start_slot(struct shared_io_thread *t, uint64_t now)
{
	if (!t)
		return 0;
	place_send_all(t);
	t->allowed = t->calls > PLACE_BUSY ? 0 : SHARED_IO_WALKS;
	t->slot_ns = now - now % SHARED_SLOT_NS;
	t->walks = 0;
	t->calls = 0;
	return 0;
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
	return which == 1 ? regs[REGS_CALL_1ST] : which == 2 ? regs[REGS_2ND] : regs[REGS_3RD];
}

enum { USER_CS_32 = 0x23, MODE_WRITE = 2 };

static __always_inline void moves(struct shared_io_thread *t, int which, uint8_t way, struct file *file)
{
	t->ways[which].way = way;
	t->ways[which].file = file_key(file);
	t->ways[which].handle = (uint64_t)file;
}

/* Calls that move between two files, and those that name no descriptor: msync, sync. vmsplice fills a pipe, or empties
 * it. The arguments are those of the call. */
__attribute__((noinline)) int io_find_files(struct shared_io_thread *t, uint64_t first, uint32_t from, uint32_t to)
{
	struct file *file;

	if (!t)
		return 0;
	t->ways[0].way = t->ways[1].way = 0;
	if (t->op == IO_OP_vmsplice) {
		file = file_of(first);
		if (file && !(BPF_CORE_READ(file, f_mode) & MODE_WRITE))
			moves(t, 0, IO_READ, file);
		else
			moves(t, 1, IO_WRITE, file);
	} else if (t->op == IO_OP_msync) {
		moves(t, 1, IO_SYNC, file_mapped(first));
	} else if (t->op == IO_OP_sync) {
		moves(t, 1, IO_SYNC, NULL);
	} else {
		moves(t, 0, IO_READ, file_of(from));
		moves(t, 1, IO_WRITE, file_of(to));
	}
	return 0;
}

/* Numbers of the kernel's types list_head and file. A relocation would give those of the small part that libbpf gets
 * (kernel/smallbtf.h). */
const volatile uint32_t type_of_list, type_of_file;

/* Remembers what the call at hand is about. typed: see file_of_typed(). */
static __always_inline void note_call(struct shared_io_thread *t, const struct call *call, bool typed, const uint64_t *regs)
{
	uint64_t ip = regs[REGS_IP], sp = regs[REGS_SP];
	struct file *file;
	uint32_t fd;
	uint8_t at;

	t->op = call->op;
	t->epoch = io_epoch;
	t->argument = regs[REGS_2ND];
	t->from = t->to = SHARED_IO_PLACES;
	t->walked = 0;
	if (!call->from == !call->to) {
		io_find_files(t, regs[REGS_CALL_1ST], argument(regs, call->from), argument(regs, call->to));
		if (t->ways[0].way)
			t->from = place_of(t, 0, ip, sp);
		if (t->ways[1].way)
			t->to = place_of(t, 1, ip, sp);
		return;
	}
	fd = argument(regs, call->from | call->to); /* one of them is 0 */
	t->ways[0].way = call->ways;
	if (typed) {
		file = file_of_typed(fd, type_of_list, type_of_file);
		t->ways[0].file = file_key_typed(t, file, &t->ways[0].handle);
	} else {
		file = file_of(fd);
		t->ways[0].file = file_key(file);
		t->ways[0].handle = (uint64_t)file;
	}
	at = place_of(t, 0, ip, sp);
	if (call->from)
		t->from = at;
	else
		t->to = at;
}

#ifdef __TARGET_ARCH_arm64
static __always_inline bool is_32_bit(const uint64_t *regs)
{
	return regs[REGS_MODE] & 0x10;
}
#else
struct pt_regs___io {
	unsigned long cs; /* 16 bits of it since 6.9 */
} __attribute__((preserve_access_index));

static __always_inline bool is_32_bit(const uint64_t *regs)
{
	return ((const struct pt_regs___io *)regs)->cs == USER_CS_32;
}
#endif

static __always_inline bool is_compat(const uint64_t *regs)
{
	struct shared_io_counts *counts;

	if (!is_32_bit(regs))
		return false;
	counts = io_counts_here();
	if (counts)
		counts->compat++;
	return true;
}

/* (registers, number) */
static __always_inline int enter(uint64_t *ctx, bool typed)
{
	const uint64_t *regs = (void *)ctx[0];
	struct shared_io_thread *t;
	const struct call *call;
	uint64_t nr = ctx[1];

	if (nr >= sizeof(calls) / sizeof(*calls) || io_paused)
		return 0;
	call = &calls[nr];
	if (!call->ways)
		return 0;
	t = thread_here();
	if (!t)
		return 0;
	t->op = 0;
	if (is_compat(regs))
		return 0;
	note_call(t, call, typed, regs);
	t->since_ns = bpf_ktime_get_ns(); /* last: our own time is not the call's */
	return 0;
}

SEC("tp_btf/sys_enter")
int on_sys_enter(uint64_t *ctx)
{
	return enter(ctx, true);
}

/* Before 6.3, which has no cast for files. */
SEC("tp_btf/sys_enter")
int on_sys_enter_old(uint64_t *ctx)
{
	return enter(ctx, false);
}

enum { MESSAGES_MAX = 1024, MESSAGE_BYTES = 64, MESSAGE_LENGTH_AT = 56 };

/* recvmmsg and sendmmsg give the number of messages; how long each was stands in the caller's list. */
__attribute__((noinline)) uint64_t io_bytes_of_messages(uint64_t list, uint64_t count)
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

/* Adds a finished call to the sum of its place. */
static __always_inline void add_call(struct shared_io_thread *t, uint8_t at, uint64_t bytes, uint64_t ns, bool failed)
{
	struct shared_io *sum = &t->places[at & (SHARED_IO_PLACES - 1)].sum;

	if (at >= SHARED_IO_PLACES)
		return;
	if (!sum->count) {
		sum->time_ns = t->slot_ns;
		sum->errors = 0;
		sum->bytes = 0;
		sum->ns = 0;
	}
	sum->count++;
	sum->errors += failed;
	sum->bytes += bytes;
	sum->ns += ns;
}

static __always_inline void send_one(struct shared_io_thread *t, uint8_t at, uint64_t stack, int64_t result, uint64_t ns)
{
	if (at >= SHARED_IO_PLACES)
		return;
	t->one = t->places[at & (SHARED_IO_PLACES - 1)].sum;
	t->one.time_ns = t->slot_ns;
	t->one.stack = stack;
	t->one.count = 1;
	t->one.errors = result < 0;
	t->one.bytes = result < 0 ? 0 : result;
	t->one.ns = ns;
	io_send(&t->one);
}

/*
 * A call that took long has the stack that it has, not the one that is remembered. Where the two differ it is sent by
 * itself: long calls must not decide the stack of short ones. Not 0: it was sent. result: bytes, or an error.
 */
__attribute__((noinline)) int io_send_long(struct shared_io_thread *t, int64_t result, uint64_t ns)
{
	uint64_t stack;
	uint8_t at;

	if (!t)
		return 0;
	at = t->from < SHARED_IO_PLACES ? t->from : t->to;
	stack = place_walk(t);
	if (!stack || t->places[at & (SHARED_IO_PLACES - 1)].sum.stack == stack)
		return 0;
	send_one(t, t->from, stack, result, ns);
	send_one(t, t->to, stack, result, ns);
	return 1;
}

enum { RESTART_FIRST = -516, RESTART_LAST = -512 }; /* it will be made again: the signal comes first */

/* (registers, result) */
SEC("tp_btf/sys_exit")
int on_sys_exit(uint64_t *ctx)
{
	const uint64_t *regs = (void *)ctx[0];
	int64_t result = ctx[1];
	uint64_t now, nr = regs[REGS_SYSCALL], ns = 0, bytes;
	struct shared_io_thread *t;
	const struct call *call;
	bool timed, failed;

	if (nr >= sizeof(calls) / sizeof(*calls) || io_paused)
		return 0;
	call = &calls[nr];
	if (!call->op)
		return 0;
	now = bpf_ktime_get_ns();
	t = thread_here();
	if (!t)
		return 0;
	failed = result < 0;
	if (!call->ways) {
		io_note(call->op, failed, false, 0, 0);
		return 0;
	}
	if (now - t->slot_ns >= SHARED_SLOT_NS)
		start_slot(t, now);
	timed = t->op == call->op && t->epoch == io_epoch;
	if (timed) {
		ns = now - t->since_ns;
	} else { /* it began before the recording, or before its last pause: looked at where it ends */
		if (is_compat(regs))
			return 0;
		note_call(t, call, false, regs);
		if (call->ways == IO_SYNC && !io_epoch)
			ns = now - io_start_ns;
	}
	t->op = 0;
	if (result >= RESTART_FIRST && result <= RESTART_LAST)
		return 0;
	bytes = failed || call->ways == IO_SYNC ? 0 : result;
	if (bytes && (call->op == IO_OP_recvmmsg || call->op == IO_OP_sendmmsg))
		bytes = io_bytes_of_messages(t->argument, bytes);
	io_note(call->op, failed, timed, bytes, ns);
	t->calls++;
	if (ns >= SHARED_LONG_NS && !t->walked && io_send_long(t, failed ? -1 : (int64_t)bytes, ns))
		return 0;
	add_call(t, t->from, bytes, ns, failed);
	add_call(t, t->to, bytes, ns, failed);
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
	place_send_all(t);
	bpf_map_delete_elem(&io_threads, &tid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
