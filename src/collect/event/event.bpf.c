/*
 * event.bpf.c - any tracepoint, software or hardware event of the kernel, with its stack.
 *
 * One program for tracepoints and one for the rest, attached as often as there are
 * events; the cookie of the attachment tells which one it is, and a map what to
 * do with it. Events are sent one by one up to a rate, and beyond it added up by
 * thread and stack: no count is lost either way. There are two maps of
 * sums: one is written while the other one, at rest for a second, is read.
 *
 * Hits that are only summed need not be unwound each time: most have the stack that
 * was found at their place before (stackcache.bpf.h). At random the stack is unwound again, and
 * becomes the stack of the place from then on: where several stacks share a place, each gets
 * its share of the hits, on average. Counts do not depend on it.
 *
 * trace_call_bpf() and the handler of perf events let no program of ours interrupt
 * another on one CPU, hence one scratch for both.
 */
#include "collect/unwind/stackcache.bpf.h"

BPF_MAP(event_scratch, PERCPU_ARRAY, 1, uint32_t, struct unwind);

BPF_MAP(event_list, ARRAY, SHARED_MAX_EVENTS, uint32_t, struct shared_event);

BPF_MAP(event_totals, PERCPU_ARRAY, SHARED_MAX_EVENTS, uint32_t, struct shared_event_totals);

/* Made in advance: sched_switch holds the lock of the run queue. */
struct event_sums {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHARED_EVENT_SUMS);
	__type(key, struct shared_event_key);
	__type(value, struct shared_event_sum);
};
struct event_sums event_sums_0 SEC(".maps"), event_sums_1 SEC(".maps");

struct rate {
	uint64_t slot, kept;
};

BPF_MAP(event_rate, ARRAY, 1, uint32_t, struct rate);

uint64_t event_limit; /* events kept one by one in a slot of time; they may come in a burst */
uint32_t event_side;  /* which map of sums is written */
uint32_t event_paused;
uint32_t event_held;   /* a process that is about to become the program to record; 0 = none */

/* The current hit, beside its stack. */
struct hit {
	uint64_t now;
	uint64_t stack;
	uint32_t pid, tid;
	uint32_t note;
	char name[16];
};

/* May this one be kept by itself? Races between CPUs make it a few more or less. */
static __always_inline bool may_keep(uint64_t now)
{
	uint64_t slot = now / SHARED_EVENT_SLOT_NS;
	uint32_t zero = 0;
	struct rate *r = bpf_map_lookup_elem(&event_rate, &zero);

	if (!r)
		return false;
	if (r->slot != slot) {
		r->slot = slot;
		r->kept = 0;
	}
	if (r->kept >= event_limit)
		return false;
	__sync_fetch_and_add(&r->kept, 1);
	return true;
}

static __always_inline bool send(const struct hit *h, uint32_t event, uint64_t value)
{
	struct shared_event_record r = { .kind = RECORD_EVENT, .event = event, .note = h->note, .pid = h->pid,
					 .tid = h->tid, .time_ns = h->now, .value = value, .stack = h->stack };

	__builtin_memcpy(r.name, h->name, sizeof(r.name));
	return !bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP);
}

static __always_inline bool add_to(void *map, const struct shared_event_key *key, const struct hit *h,
				   uint64_t value)
{
	struct shared_event_sum *s = bpf_map_lookup_elem(map, key);

	if (!s) {
		struct shared_event_sum first = { .first_ns = h->now };

		__builtin_memcpy(first.name, h->name, sizeof(first.name));
		bpf_map_update_elem(map, key, &first, BPF_NOEXIST);
		s = bpf_map_lookup_elem(map, key);
	}
	if (!s)
		return false;
	__sync_fetch_and_add(&s->count, 1);
	__sync_fetch_and_add(&s->value, value);
	return true;
}

static __always_inline bool add_up(const struct hit *h, uint32_t event, uint64_t value)
{
	struct shared_event_key key = { .stack = h->stack, .pid = h->pid, .tid = h->tid, .event = event,
					.note = h->note };

	return event_side ? add_to(&event_sums_1, &key, h, value) : add_to(&event_sums_0, &key, h, value);
}

static __always_inline void deliver(const struct hit *h, uint32_t event, uint64_t value, bool keep)
{
	struct shared_event_totals *t = bpf_map_lookup_elem(&event_totals, &event);

	if (!t)
		return;
	t->hits++;
	if ((int64_t)value < 0) {
		t->negative++;
		value = 0;
	}
	t->value += value;
	if (keep && send(h, event, value))
		return;
	if (add_up(h, event, value))
		t->summed++;
	else if (keep || !send(h, event, value))
		t->lost++;
}

/* A number of 1 to 8 bytes in the record of a tracepoint. */
static __always_inline uint64_t read_field(void *ctx, uint32_t offset, uint32_t size, bool is_signed)
{
	uint64_t v = 0;

	size &= 15;
	if (!size || size > 8)
		return 0;
	bpf_probe_read_kernel(&v, size, ctx + (offset & 0x1fff));
	if (is_signed) {
		uint32_t shift = (64 - 8 * size) & 63;

		v = (uint64_t)((int64_t)(v << shift) >> shift);
	} else if (v >> 63) {
		v >>= 1; /* no count of anything; it must not look negative */
	}
	return v;
}

static __always_inline void count_elsewhere(const struct shared_event *e)
{
	uint32_t event = e->uses[0].event;
	struct shared_event_totals *t = bpf_map_lookup_elem(&event_totals, &event);

	if (t)
		t->elsewhere++;
}

/* Whose hit it is. False: of none that is recorded. */
static __always_inline bool whose(const struct shared_event *e, struct hit *h, struct shared_process **p)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t pid = id >> 32;

	*p = NULL;
	if (e->everywhere == EVERYWHERE)
		return true;
	if (pid == event_held)
		return false;
	*p = bpf_map_lookup_elem(&processes, &pid);
	if (!*p && e->everywhere)
		return true;
	if (!*p) {
		count_elsewhere(e);
		return false;
	}
	h->pid = pid;
	h->tid = id;
	bpf_get_current_comm(h->name, sizeof(h->name));
	return true;
}

/* Walks the stack of the user registers in u, if there are any, and makes it known. Its hash. */
static __always_inline uint64_t walk(void *ctx, struct unwind *u, struct shared_process *p, bool user,
				     enum unwind_taken kernel)
{
	unwind_start(u, p, user);
	if (!p) /* nobody's: only what the kernel did */
		u->reason = REASON_COMPLETE;
	unwind_kernel(ctx, u, kernel);
	unwind_send(u, false);
	return u->record.stack;
}

/* Of places where nothing but one stack was found one hit in 64 is walked, of others one in 8. */
enum { AGAIN = 64, AGAIN_MIXED = 8, PLACE_OF_EVENTS = 1 << 16 };

static __always_inline void count_remembered(const struct shared_event *e)
{
	uint32_t event = e->uses[0].event;
	struct shared_event_totals *t = bpf_map_lookup_elem(&event_totals, &event);

	if (t)
		t->remembered++;
}

/* The stack of a hit that is only added up: that of its place, or walked. */
static __always_inline uint64_t stack_of_place(void *ctx, struct unwind *u, struct shared_process *p,
					       const struct shared_event *e, uint32_t which, enum unwind_taken kernel,
					       const struct hit *h)
{
	uint64_t key = stackcache_key(h->tid, PLACE_OF_EVENTS + which, u), stack;
	struct stackcache *place;
	bool known;

	key = unwind_hash(key, stackcache_callers(u->sp, u->saved));
	place = stackcache_of(key);
	known = place && stackcache_known(place, key);
	if (known && bpf_get_prandom_u32() & (place->mixed ? AGAIN_MIXED - 1 : AGAIN - 1)) {
		count_remembered(e);
		return place->stack;
	}
	stack = walk(ctx, u, p, true, kernel);
	if (!place || !stackcache_worth(u))
		return stack; /* tried again next time */
	if (!known) {
		stackcache_set(place, key, stack);
	} else if (place->stack != stack) {
		place->mixed = 1;
		place->stack = stack;
		place->check = key ^ stack;
	}
	return stack;
}

/* Both kinds of programs, once the user registers are in u, if there are any. */
static __always_inline void take_stack(void *ctx, struct unwind *u, struct shared_process *p,
				       const struct shared_event *e, uint32_t which, bool user,
				       enum unwind_taken kernel, bool keep, struct hit *h)
{
	if (keep || !user || !p)
		h->stack = walk(ctx, u, p, user, kernel);
	else
		h->stack = stack_of_place(ctx, u, p, e, which, kernel, h);
}

/* 0 would hide the hit from everybody else who counts this tracepoint: perf beside us would see none. */
enum { GO_ON = 1 };

SEC("tracepoint")
int on_tracepoint(void *ctx)
{
	uint32_t which = bpf_get_attach_cookie(ctx), zero = 0;
	struct shared_event *e = bpf_map_lookup_elem(&event_list, &which);
	struct unwind *u = bpf_map_lookup_elem(&event_scratch, &zero);
	struct shared_process *p;
	struct hit h = { 0 };
	bool keep;

	if (event_paused || !e || !u || !whose(e, &h, &p))
		return GO_ON;
	h.now = bpf_ktime_get_ns();
	if (e->note_size)
		h.note = read_field(ctx, e->note_offset, e->note_size, false) & SHARED_EVENT_NOTE;
	u->record.pid = h.pid;
	keep = may_keep(h.now);
	take_stack(ctx, u, p, e, which, p && unwind_from_task(u), UNWIND_TRACED, keep, &h);
	for (uint32_t i = 0; i < SHARED_EVENT_USES; i++) {
		const struct shared_event_use *use = &e->uses[i];
		uint64_t value = 1;

		if (i >= e->use_count)
			break;
		if (use->size)
			value = read_field(ctx, use->offset, use->size, use->is_signed);
		deliver(&h, use->event, value, keep);
	}
	return GO_ON;
}

SEC("perf_event")
int on_perf_event(void *ctx)
{
	uint32_t which = bpf_get_attach_cookie(ctx), zero = 0;
	struct shared_event *e = bpf_map_lookup_elem(&event_list, &which);
	struct unwind *u = bpf_map_lookup_elem(&event_scratch, &zero);
	struct shared_process *p;
	struct hit h = { 0 };
	bool in_user, user, keep;

	if (event_paused || !e || !u || !whose(e, &h, &p))
		return 0;
	h.now = bpf_ktime_get_ns();
	u->record.pid = h.pid;
	in_user = CONTEXT_IN_USER();
	if (in_user) {
		UNWIND_FROM(u, CONTEXT);
		user = true;
	} else {
		user = unwind_from_task(u);
	}
	keep = may_keep(h.now);
	take_stack(ctx, u, p, e, which, user, in_user ? UNWIND_USER_ONLY : UNWIND_INTERRUPTED, keep, &h);
	deliver(&h, e->uses[0].event, CONTEXT(CONTEXT_PERIOD), keep);
	return 0;
}

/* Earlier hits were caused by us. */
SEC("raw_tp/sched_process_exec")
int on_event_exec(struct bpf_raw_tracepoint_args *ctx)
{
	if (event_held && event_held == bpf_get_current_pid_tgid() >> 32)
		event_held = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
