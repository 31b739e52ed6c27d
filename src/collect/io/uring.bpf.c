/*
 * uring.bpf.c - reads, writes and syncs that go through io_uring.
 *
 * A request is seen twice: where it is taken from the queue, mostly in
 * io_uring_enter, so that the stack is the submitter's; and where it is completed, by
 * whoever that is. Between the two it is known by its address in the kernel. Arguments
 * of the tracepoint of completions changed with the kernel; io.c picks the program.
 */
#include "collect/io/io.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct io_kiocb {
	struct file *file;
	uint8_t opcode;
};

#pragma clang attribute pop

/* IORING_OP_ numbers: ABI. */
static const struct {
	uint8_t op, way;
} requests[64] = {
	[1] = { IO_OP_io_uring_read, IO_READ },   /* READV */
	[2] = { IO_OP_io_uring_write, IO_WRITE }, /* WRITEV */
	[3] = { IO_OP_io_uring_sync, IO_SYNC },   /* FSYNC */
	[4] = { IO_OP_io_uring_read, IO_READ },   /* READ_FIXED */
	[5] = { IO_OP_io_uring_write, IO_WRITE }, /* WRITE_FIXED */
	[8] = { IO_OP_io_uring_sync, IO_SYNC },   /* SYNC_FILE_RANGE */
	[9] = { IO_OP_io_uring_send, IO_WRITE },  /* SENDMSG */
	[10] = { IO_OP_io_uring_recv, IO_READ },  /* RECVMSG */
	[22] = { IO_OP_io_uring_read, IO_READ },  /* READ */
	[23] = { IO_OP_io_uring_write, IO_WRITE }, /* WRITE */
	[26] = { IO_OP_io_uring_send, IO_WRITE }, /* SEND */
	[27] = { IO_OP_io_uring_recv, IO_READ },  /* RECV */
	[47] = { IO_OP_io_uring_send, IO_WRITE }, /* SEND_ZC */
	[48] = { IO_OP_io_uring_send, IO_WRITE }, /* SENDMSG_ZC */
	[49] = { IO_OP_io_uring_read, IO_READ },  /* READ_MULTISHOT */
	[58] = { IO_OP_io_uring_recv, IO_READ },  /* RECV_ZC */
	[59] = { IO_OP_io_uring_read, IO_READ },  /* READV_FIXED */
	[60] = { IO_OP_io_uring_write, IO_WRITE }, /* WRITEV_FIXED */
};

struct submitted {
	uint64_t since_ns, stack;
	uint32_t pid, tid;
	uint32_t epoch, pad;
};

BPF_MAP(uring_requests, HASH, SHARED_REQUESTS, uint64_t, struct submitted);

static __always_inline int submit(uint64_t key)
{
	uint64_t id = bpf_get_current_pid_tgid();
	struct io_kiocb *kiocb = (void *)key;
	uint32_t pid = id >> 32;
	uint8_t opcode = BPF_CORE_READ(kiocb, opcode);
	struct submitted r = { .pid = pid, .tid = id, .epoch = io_epoch };
	struct shared_io_counts *counts;
	struct shared_process *p;
	struct scratch *s;

	if (io_paused || opcode >= 64 || !requests[opcode & 63].op)
		return 0;
	p = bpf_map_lookup_elem(&processes, &pid);
	s = p ? scratch_take(&io_scratches) : NULL;
	if (!p)
		return 0;
	if (s) {
		s->u.record.pid = pid;
		r.stack = io_walk(&s->u, p, unwind_from_task(&s->u));
		scratch_give(s);
	} else {
		io_lost_stack();
	}
	r.since_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&uring_requests, &key, &r, BPF_ANY)) {
		counts = io_counts_here();
		if (counts)
			counts->requests_full++;
	}
	return 0;
}

SEC("raw_tp/io_uring_submit_req")
int on_uring_submit(struct bpf_raw_tracepoint_args *ctx)
{
	return submit(ctx->args[0]);
}

/* Its name before 6.3, with the same first argument from 6.0 on. */
SEC("raw_tp/io_uring_submit_sqe")
int on_uring_submit_old(struct bpf_raw_tracepoint_args *ctx)
{
	return submit(ctx->args[0]);
}

/* A request is over. One that is not known was not ours, or gives more than one result. */
static __always_inline int complete(uint64_t key, int64_t result)
{
	struct submitted *r = bpf_map_lookup_elem(&uring_requests, &key);
	struct io_kiocb *kiocb = (void *)key;
	struct shared_io io = { .kind = RECORD_IO, .count = 1 };
	uint64_t now = bpf_ktime_get_ns();
	struct file *file;
	uint8_t opcode;

	if (!r)
		return 0;
	opcode = BPF_CORE_READ(kiocb, opcode) & 63;
	io.op = requests[opcode].op;
	io.way = requests[opcode].way;
	io.pid = r->pid;
	io.tid = r->tid;
	io.stack = r->stack;
	io.ns = now - r->since_ns;
	io.time_ns = now;
	io.errors = result < 0;
	io.bytes = result > 0 && io.way != IO_SYNC ? result : 0;
	if (io.op && r->epoch == io_epoch && !io_paused) {
		file = BPF_CORE_READ(kiocb, file);
		io.file = file_key(file);
		if (io.file)
			file_announce(file, io.file);
		io_note(io.op, result < 0, true, io.bytes, io.ns);
		io_send(&io);
	}
	bpf_map_delete_elem(&uring_requests, &key);
	return 0;
}

/* A completion without its request: one of many of a multishot request. Its bytes are not known to be any. */
static __always_inline void note_unknown(void)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32;
	struct shared_io_counts *counts = io_counts_here();

	if (counts && bpf_map_lookup_elem(&processes, &pid))
		counts->unknown_requests++;
}

/* (ring, request, completion): the result stands in the completion, after 8 bytes. */
SEC("raw_tp/io_uring_complete")
int on_uring_complete(struct bpf_raw_tracepoint_args *ctx)
{
	int32_t result = 0;

	if (!ctx->args[1]) {
		note_unknown();
		return 0;
	}
	bpf_probe_read_kernel(&result, sizeof(result), (void *)(ctx->args[2] + 8));
	return complete(ctx->args[1], result);
}

/* (ring, request, user data, result, …), from 5.18 to 6.11 */
SEC("raw_tp/io_uring_complete")
int on_uring_complete_old(struct bpf_raw_tracepoint_args *ctx)
{
	if (!ctx->args[1]) {
		note_unknown();
		return 0;
	}
	return complete(ctx->args[1], (int32_t)ctx->args[3]);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
