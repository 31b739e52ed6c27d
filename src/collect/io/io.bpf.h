/*
 * io.bpf.h - what the programs of the io collector share: io.bpf.c (system calls) and uring.bpf.c.
 */
#pragma once

#include "collect/io/file.bpf.h"
#include "collect/unwind/stackcache.bpf.h"
#include "collect/scratch.bpf.h"

#ifdef IO_DEFINE
#define IO_MAP
#define IO_VARIABLE
#else
#define IO_MAP extern
#define IO_VARIABLE extern
#endif

IO_MAP SCRATCH_MAP(io_scratches);

/* By enum shared_io_op. */
IO_MAP BPF_MAP(io_stats, PERCPU_ARRAY, IO_OPS, uint32_t, struct shared_io_stats);

IO_VARIABLE uint64_t io_start_ns; /* when the recording began */
IO_VARIABLE uint32_t io_waiting_pid; /* a child that we are about to run: until its exec it is ourselves */
IO_VARIABLE uint32_t io_paused;
IO_VARIABLE uint32_t io_thin; /* each step halves how many stacks are walked; calls, bytes and time stay exact */
IO_VARIABLE uint32_t io_epoch; /* goes up with each pause: a call that spans one is not whole */

static __always_inline uint32_t io_log2(uint64_t v)
{
	uint32_t r = 0;

	if (v >> 32) {
		v >>= 32;
		r = 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	return (r + (v >> 1 & 1)) & 63;
}

/* Adds a finished call to the exact figures. timed: its beginning was seen. */
static __always_inline void io_note(uint32_t op, bool failed, bool timed, uint64_t bytes, uint64_t ns)
{
	struct shared_io_stats *s = bpf_map_lookup_elem(&io_stats, &op);

	if (!s)
		return;
	s->calls++;
	s->errors += failed;
	s->bytes += bytes;
	s->ns += ns;
	if (timed)
		s->latency[io_log2(ns)]++;
}

static __always_inline void io_send(struct shared_io *io)
{
	struct shared_io_counts *counts;

	if (!bpf_ringbuf_output(&ring, io, sizeof(*io), BPF_RB_NO_WAKEUP))
		return;
	counts = io_counts_here();
	if (counts) {
		counts->lost_calls += io->count;
		counts->lost_bytes += io->bytes;
	}
}

static __always_inline void io_lost_stack(void)
{
	struct shared_io_counts *counts = io_counts_here();

	if (counts)
		counts->lost_stacks++;
}

/* Walks the stack of the registers in u and makes it known. Its hash. */
static __always_inline uint64_t io_walk(struct unwind *u, struct shared_process *p, bool user)
{
	struct shared_io_counts *counts = io_counts_here();

	/* Without the kernel: that would always be the entry of the system call. */
	unwind_start(u, p, user);
	if (unwind_send(u, false) == UNWIND_RING_FULL && counts)
		counts->lost_stacks++;
	if (counts)
		counts->walked++;
	return u->record.stack;
}
