/*
 * span.bpf.c - entry and return of functions, and what a program says of itself (span.c).
 *
 * A call is known by the stack pointer at its first instruction, which is the same again at its return. Of calls within each
 * other only the outermost counts. One that was left by a panic never returns: it is forgotten when its return address is
 * not where it was any more.
 */
#include "collect/scratch.bpf.h"

#include "collect/sharedspan.h"

BPF_MAP(span_probes, ARRAY, SHARED_SPAN_PROBES, uint32_t, struct shared_span_probe);

BPF_MAP(span_calls, HASH, SHARED_SPAN_OPEN, struct shared_span_key, struct shared_span_call);

BPF_MAP(span_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_span_counts);

PROBE_NO_PROGRAMS(span_no_programs);

bool span_paused;
uint64_t span_limit;                /* a second */
uint64_t span_second_ns, span_taken; /* in this one; threads may race for it, and some more be taken */

struct registers {
	uint64_t words[SHARED_SPAN_NONE + 1];
};

static __always_inline bool take_one(struct shared_span_counts *c, uint64_t now)
{
	if (now - span_second_ns >= 1000000000) {
		span_second_ns = now;
		span_taken = 0;
	}
	if (span_taken >= span_limit) {
		SCRATCH_COUNT(c->beyond);
		return false;
	}
	__sync_fetch_and_add(&span_taken, 1);
	return true;
}

static __always_inline void send(struct shared_span *r, struct shared_span_counts *c)
{
	uint64_t id = bpf_get_current_pid_tgid();

	r->kind = RECORD_SPAN;
	r->pid = id >> 32;
	r->tid = id;
	if (bpf_ringbuf_output(&ring, r, sizeof(*r), BPF_RB_NO_WAKEUP))
		SCRATCH_COUNT(c->lost);
}

static __always_inline uint64_t read_state(uint64_t future, uint32_t offset)
{
	uint8_t state = 0xff;

	if (!future || bpf_probe_read_user(&state, sizeof(state), (void *)(future + offset)))
		return 0xff;
	return state;
}

#ifdef __TARGET_ARCH_arm64
/* In x30 when the function begins; saved while it runs, perhaps signed. */
static __always_inline bool read_back(const struct registers *regs, uint64_t sp, uint64_t *ret)
{
	*ret = regs->words[REGS_LR] & pc_mask;
	return true;
}

static __always_inline bool is_under_way(const struct shared_span_call *call, uint32_t link)
{
	uint64_t back = 0;

	return link && !bpf_probe_read_user(&back, sizeof(back), (void *)(call->sp - link)) && (back & pc_mask) == call->back;
}
#else
/* On the stack. */
static __always_inline bool read_back(const struct registers *regs, uint64_t sp, uint64_t *ret)
{
	return !bpf_probe_read_user(ret, sizeof(*ret), (void *)sp);
}

static __always_inline bool is_under_way(const struct shared_span_call *call, uint32_t link)
{
	uint64_t back = 0;

	return !bpf_probe_read_user(&back, sizeof(back), (void *)call->sp) && back == call->back;
}
#endif

static __always_inline void enter(const struct shared_span_probe *p, const struct registers *regs,
				  struct shared_span_counts *c, uint64_t now)
{
	struct shared_span_key key = { bpf_get_current_pid_tgid(), p->function };
	struct shared_span_call *old = bpf_map_lookup_elem(&span_calls, &key);
	struct shared_span_call call = { .sp = regs->words[REGS_SP] + p->depth, .start_ns = now };

	if (old) {
		if (old->sp > call.sp && is_under_way(old, p->link)) {
			SCRATCH_COUNT(c->nested);
			return;
		}
		SCRATCH_COUNT(c->abandoned);
		bpf_map_delete_elem(&span_calls, &key);
	}
	if (!take_one(c, now) || !read_back(regs, call.sp, &call.back))
		return;
	if (p->words[0] < SHARED_SPAN_NONE) {
		call.future = regs->words[p->words[0] & SHARED_SPAN_NONE];
		call.state = read_state(call.future, p->state);
	}
	if (bpf_map_update_elem(&span_calls, &key, &call, BPF_ANY))
		SCRATCH_COUNT(c->lost);
}

static __always_inline void leave(const struct shared_span_probe *p, const struct registers *regs,
				  struct shared_span_counts *c, uint64_t now)
{
	struct shared_span_key key = { bpf_get_current_pid_tgid(), p->function };
	struct shared_span_call *call = bpf_map_lookup_elem(&span_calls, &key);
	struct shared_span r = { .what = SPAN_LEAVE, .function = p->function, .end_ns = now };

	if (!call || call->sp != regs->words[REGS_SP])
		return;
	r.start_ns = call->start_ns;
	r.values[0] = call->future;
	r.values[1] = call->state;
	r.values[2] = read_state(call->future, p->state);
	bpf_map_delete_elem(&span_calls, &key);
	send(&r, c);
}

/* The program speaks: a name and a number, or three numbers. */
static __always_inline void speak(const struct shared_span_probe *p, const struct registers *regs,
				  struct shared_span_counts *c, uint64_t now)
{
	struct shared_span r = { .what = p->what, .start_ns = now, .end_ns = now };
	uint64_t first = regs->words[p->words[0] & SHARED_SPAN_NONE];

	if (!take_one(c, now))
		return;
	if (p->what == SPAN_BLOCK_END) {
		r.values[0] = first;
		r.values[1] = regs->words[p->words[1] & SHARED_SPAN_NONE];
		r.values[2] = regs->words[p->words[2] & SHARED_SPAN_NONE];
	} else {
		r.values[0] = regs->words[p->words[1] & SHARED_SPAN_NONE];
		if (bpf_probe_read_user_str(r.name, sizeof(r.name), (void *)first) < 0)
			r.name[0] = 0;
	}
	send(&r, c);
}

SEC("uprobe")
int on_span(void *ctx)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32, zero = 0, which = bpf_get_attach_cookie(ctx);
	struct shared_span_probe *p = bpf_map_lookup_elem(&span_probes, &which);
	struct shared_span_counts *c = bpf_map_lookup_elem(&span_counts, &zero);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct registers regs = { 0 };
	uint64_t now = bpf_ktime_get_ns();

	PROBE_USE_TASK_STACK(ctx, span_no_programs);
	if (!p || !c || span_paused || !bpf_map_lookup_elem(&processes, &pid) ||
	    bpf_probe_read_kernel(&regs, REGS_COUNT < sizeof(regs) / 8 ? REGS_COUNT * 8 : sizeof(regs), (void *)bpf_task_pt_regs((void *)task)))
		return 0;
	SCRATCH_COUNT(c->hits);
	SCRATCH_COUNT(p->hits);
	if (p->what == SPAN_ENTER)
		enter(p, &regs, c, now);
	else if (p->what == SPAN_LEAVE)
		leave(p, &regs, c, now);
	else
		speak(p, &regs, c, now);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
