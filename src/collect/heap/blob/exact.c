/*
 * exact.c - the hooks where each allocation is seen: whose stack it is, and its event in the ring (exact.h).
 *
 * Runs in the target, as sampler.c does and under the same rules. It reads the stack of its
 * thread, and must not read anything else, whatever its registers hold: only words
 * between the hook's own frame and the end of the stack that gasflame has looked up, where a rule
 * says that a return address or a saved register is, each frame above the last.
 */
#include "blob.h"

#include "blobcode.h"
#include "elf/unwind/rule.h"

#define SHARED (&blob_shared.exact)
#define OWN    (&blob_local.exact)

/* Kept out of the way that nearly all events take, with what it needs of the stack and of registers. */
#define RARE      __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)

enum { AHEAD = 32 /* events */ };

/* A bound on the loop, whatever value another process wrote there. */
static const uint64_t most_turns = 1ULL << 31;

/* --- threads --- */

static uint32_t first_place(uint64_t pointer)
{
	return pointer * 0x1e3779b1 >> 20 & (EXACT_THREADS - 1);
}

static RARE struct exact_thread *look_for_thread(uint64_t pointer, int claim)
{
	uint32_t first = first_place(pointer);

	for (uint32_t i = 0; i < EXACT_THREAD_WAYS; i++) {
		struct exact_thread *t = &OWN->threads[(first + i) & (EXACT_THREADS - 1)];
		uint64_t none = 0;

		if (t->owner == pointer)
			return t;
		if (t->owner)
			continue;
		if (!claim)
			return 0;
		if (__atomic_compare_exchange_n(&t->owner, &none, pointer, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return t;
	}
	return 0;
}

/* The state of this thread, NULL: there is no room. claim: take a free one. */
static struct exact_thread *thread_of(uint64_t pointer, int claim)
{
	struct exact_thread *t = &OWN->threads[first_place(pointer)];

	return LIKELY(t->owner == pointer) ? t : look_for_thread(pointer, claim);
}

static uint16_t index_of(const struct exact_thread *t)
{
	return t ? t - OWN->threads : EXACT_THREADS;
}

/* Another thread may have the memory of one that has ended, with the same thread pointer. */
static int is_same_thread(const struct exact_thread *t, uint32_t *ret_identity)
{
	uint64_t at = SHARED->identity_at;

	*ret_identity = at && at <= 4096 - sizeof(*ret_identity) ? *(const uint32_t *)(t->owner - EXACT_BEFORE + at) : 0;
	return *ret_identity == t->identity;
}

static RARE int other_thread(struct exact_thread *t, uint32_t identity)
{
	t->identity = identity;
	t->era++;
	t->low = t->top = 0;
	return 0;
}

/* 0: nothing is known of it yet. */
static int begin_thread(struct exact_thread *t)
{
	uint32_t identity;

	return LIKELY(is_same_thread(t, &identity)) ? identity != 0 : other_thread(t, identity);
}

/* --- its stack --- */

struct walk {
	struct exact_memo *memo; /* gets what was read */
	uint64_t sp, top;        /* only words between them are read */
	uint64_t at, pc;         /* the frame at hand: its stack pointer, where it goes on */
	uint64_t bp, bp_at;      /* and where in the stack bp was found, 0: it is the register */
	uint64_t hash;
	uint32_t count;          /* words of the memo; beyond its size: it is of no use */
	uint8_t bp_noted;
};

static void note(struct walk *w, uint64_t address, uint64_t value)
{
	if (w->count < EXACT_WORDS)
		w->memo->words[w->count] = (struct exact_word){ address, value };
	w->count++;
}

static int read_word(const struct walk *w, uint64_t address, uint64_t *ret)
{
	if (address - w->sp > w->top - 8 - w->sp || address & 7)
		return 0;
	*ret = *(const uint64_t *)address;
	return 1;
}

/* bp decides where the walk goes: it is a part of what must be the same next time. */
static int use_bp(struct walk *w)
{
	if (w->bp == RULE_LOST_RBP)
		return 0;
	if (!w->bp_noted && w->bp_at)
		note(w, w->bp_at, w->bp);
	else if (!w->bp_at)
		w->memo->uses_bp = 1;
	w->bp_noted = 1;
	return 1;
}

static uint64_t rule_of(uint64_t pc)
{
	const struct exact_rule *r = exact_rules_of(SHARED, pc);

	for (int i = 0; i < EXACT_RULE_WAYS; i++)
		if (__atomic_load_n(&r[i].pc, __ATOMIC_ACQUIRE) == pc)
			return r[i].rule;
	return 0;
}

/* Where the frame ends; 0: that cannot be said here. */
static uint64_t frame_end(struct walk *w, uint64_t rule)
{
	uint64_t base = w->at, word;

	switch (RULE_CFA(rule)) {
	case RULE_CFA_RSP:
		return w->at + RULE_CFA_OFFSET(rule);
	case RULE_CFA_PLT:
		return w->at + 8 + (((w->pc - 1) & 15) >= 11 ? 8 : 0);
	case RULE_CFA_RBP:
		return use_bp(w) ? w->bp + RULE_CFA_OFFSET(rule) : 0;
	case RULE_CFA_DEREF_RBP:
		if (!use_bp(w))
			return 0;
		base = w->bp;
		/* fall through */
	case RULE_CFA_DEREF_RSP:
		base += RULE_CFA_OFFSET(rule);
		if (!read_word(w, base, &word))
			return 0;
		note(w, base, word);
		return word + 8 * RULE_REG(rule);
	default:
		return 0;
	}
}

static int find_bp(struct walk *w, uint64_t rule, uint64_t end)
{
	uint64_t at = end + RULE_RBP_OFFSET(rule);

	switch (RULE_RBP(rule)) {
	case RULE_RBP_SAME:
		return 1;
	case RULE_RBP_LOST:
		w->bp = RULE_LOST_RBP;
		return 1;
	case RULE_RBP_RBP:
		if (!use_bp(w))
			return 0;
		at = w->bp + RULE_RBP_OFFSET(rule);
		/* fall through */
	case RULE_RBP_CFA:
		w->bp_at = at;
		w->bp_noted = 0;
		return read_word(w, at, &w->bp);
	default:
		return 0;
	}
}

/*
 * The same where calls leave the return address in a register (RULE_LINK, arm64). That of the first frame is known already, and whoever has
 * called saved its own.
 */
static int step_link(struct walk *w, uint64_t rule)
{
	uint32_t link = RULE_LINK_OF(rule), how = RULE_RBP(rule);
	uint64_t base = w->at, end, place, pc_at;

	if (RULE_REG(rule) == RULE_BASE_FP) {
		if (!use_bp(w))
			return -1;
		base = w->bp;
	}
	end = base + RULE_CFA_OFFSET(rule);
	place = (how == RULE_RBP_RBP || link == RULE_LINK_BASE ? base : end) + RULE_RBP_OFFSET(rule);
	pc_at = link >= RULE_LINK_NEAR ? place + 8 * (link - (uint64_t)RULE_LINK_BESIDE) : place;
	if (link == RULE_LINK_REGISTER || end < w->at + 8 || end - w->at > EXACT_FRAME_BYTES || !read_word(w, pc_at, &w->pc))
		return -1;
	note(w, pc_at, w->pc);
	if (how == RULE_RBP_LOST)
		w->bp = RULE_LOST_RBP;
	if (how == RULE_RBP_CFA || how == RULE_RBP_RBP) {
		w->bp_at = place;
		w->bp_noted = 0;
		if (!read_word(w, place, &w->bp))
			return -1;
	}
	w->pc = blob_address(w->pc);
	w->at = end;
	return w->pc ? 1 : 0;
}

/* To the caller of the frame at hand. 1: there is one, 0: that was the last, -1: the kernel has to walk. */
static int step(struct walk *w)
{
	uint64_t rule = rule_of(w->pc), end;

	if (!rule)
		return -1;
	w->hash = exact_hash(w->hash, w->pc);
	if (RULE_CFA(rule) == RULE_END)
		return 0;
	if (BLOB_LINKS && RULE_CFA(rule) == RULE_LINK)
		return step_link(w, rule);
	if (RULE_CFA(rule) == RULE_FRAME_POINTER) {
		if (!use_bp(w))
			return -1;
		if (!w->bp)
			return 0;
		rule = rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16);
	}
	end = frame_end(w, rule);
	if (end < w->at + 8 || end - w->at > EXACT_FRAME_BYTES || !read_word(w, end - 8, &w->pc))
		return -1;
	note(w, end - 8, w->pc);
	if (!find_bp(w, rule, end))
		return -1;
	w->pc = blob_address(w->pc);
	w->at = end;
	return w->pc ? 1 : 0;
}

static uint32_t number_of(uint64_t hash)
{
	const struct exact_stack *s = exact_stacks_of(SHARED, hash);

	for (int i = 0; i < EXACT_STACK_WAYS; i++)
		if (__atomic_load_n(&s[i].hash, __ATOMIC_ACQUIRE) == hash)
			return s[i].number;
	return EXACT_NONE;
}

/* Each word is read only if those before it are what they were: then a walk would read it, too. */
static int is_same(const struct exact_memo *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (*(const uint64_t *)m->words[i].address != m->words[i].value)
			return 0;
	return 1;
}

static RARE uint32_t walk_stack(struct exact_memo *m, const struct exact_thread *t, uint64_t sp, uint64_t bp, uint64_t pc, uint64_t top,
				uint32_t generation)
{
	struct walk w = { .memo = m, .sp = sp, .top = top, .at = sp, .pc = pc, .bp = bp };
	uint32_t number = EXACT_NONE;
	int more = 1;

	m->sp = 0;
	m->uses_bp = 0;
	for (int i = 0; more > 0 && i < EXACT_FRAMES; i++)
		more = step(&w);
	if (!more)
		number = number_of(w.hash);
	if (number != EXACT_NONE && w.count <= EXACT_WORDS) {
		m->pc = pc;
		m->bp = bp;
		m->top = top;
		m->generation = generation;
		m->era = t->era;
		m->stack = number;
		m->count = w.count;
		m->sp = sp;
	}
	return number;
}

/* The number of the stack of whoever goes on at pc, with sp; EXACT_NONE: it is not known. */
static uint32_t find_stack(struct exact_thread *t, uint64_t sp, uint64_t bp, uint64_t pc)
{
	uint64_t top = __atomic_load_n(&t->top, __ATOMIC_ACQUIRE), low = t->low;
	uint32_t generation = SHARED->generation, number;
	struct exact_memo *m;

	/* busy: a signal came while this thread was here. */
	if (!begin_thread(t) || sp - low >= top - low || top - sp < 8 || sp & 7 || t->busy)
		return EXACT_NONE;
	t->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m = &OWN->memos[index_of(t)][((sp ^ pc) * 0x9e3779b97f4a7c15ULL >> 61) & (EXACT_MEMOS - 1)];
	if (m->sp == sp && m->pc == pc && m->top == top && m->generation == generation && m->era == t->era &&
	    (!m->uses_bp || m->bp == bp) && m->count <= EXACT_WORDS && is_same(m))
		number = m->stack;
	else
		number = walk_stack(m, t, sp, bp, pc, top, generation);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->busy = 0;
	return number;
}

/* --- the ring --- */

/* How far a ticket is ahead of what was read. Negative: it is of a recording before this one. */
static int64_t distance(uint64_t ticket)
{
	return (int64_t)(ticket - __atomic_load_n(&SHARED->tail, __ATOMIC_ACQUIRE));
}

/* None may be lost because gasflame is slow. It may also be dead: 0. */
static RARE int wait_for_room(uint64_t ticket)
{
	for (uint64_t i = 0; i < SHARED->turns && i < most_turns; i++) {
		if (distance(ticket) < EXACT_EVENTS)
			return distance(ticket) >= 0;
		if (*(volatile uint32_t *)&blob_local.active != BLOB_EXACT)
			return 0;
		exact_pause();
	}
	blob_local.active = BLOB_PASS_ON;
	return 0;
}

static uint64_t only(void)
{
	return __atomic_load_n(&SHARED->only, __ATOMIC_ACQUIRE);
}

/* While it is not for all: the first one to come has it for itself, all others wait for the end of that. 0: in vain. */
static RARE int settle(const struct exact_thread *t)
{
	uint64_t first = EXACT_FIRST;

	if (__atomic_compare_exchange_n(&SHARED->only, &first, t ? EXACT_ONE + index_of(t) : EXACT_ALL, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return 1;
	__atomic_store_n(&SHARED->asks, 1, __ATOMIC_RELEASE);
	for (uint64_t i = 0; i < SHARED->turns && i < most_turns; i++) {
		if (only() == EXACT_ALL)
			return 1;
		if (*(volatile uint32_t *)&blob_local.active != BLOB_EXACT)
			return 0;
		exact_pause();
	}
	blob_local.active = BLOB_PASS_ON;
	return 0;
}

/* Without a lock, where that is for this thread alone. A signal's handler may come in between, and do the same. */
static inline int take_alone(struct exact_thread *t, uint64_t *ret_ticket)
{
	uint32_t outer = t->inside;
	int is_ours;

	t->inside = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	is_ours = only() == EXACT_ONE + (uint64_t)index_of(t);
	if (is_ours)
		*ret_ticket = blob_add_alone(&SHARED->head);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->inside = outer;
	return is_ours;
}

static inline int take_ticket(struct exact_thread *t, uint64_t *ret_ticket)
{
	while (only() != EXACT_ALL) {
		if (LIKELY(t && take_alone(t, ret_ticket)))
			return 1;
		if (!settle(t))
			return 0;
	}
	*ret_ticket = __atomic_fetch_add(&SHARED->head, 1, __ATOMIC_ACQ_REL);
	return 1;
}

static inline struct exact_event *next_event(struct exact_thread *t, uint64_t *ret_ticket)
{
	uint64_t ticket;

	if (!LIKELY(take_ticket(t, &ticket)))
		return 0;
	*ret_ticket = ticket;
	if (!LIKELY((uint64_t)distance(ticket) < EXACT_EVENTS) && !wait_for_room(ticket))
		return 0;
	/* The line that is written soon: gasflame has read it on another processor, and a lock waits for all writes before it. */
	blob_will_write(exact_event_of(SHARED, ticket + AHEAD));
	return exact_event_of(SHARED, ticket);
}

static void count(const struct exact_thread *t, uint64_t size)
{
	if (t) {
		SHARED->counts[index_of(t)].count++;
		SHARED->counts[index_of(t)].bytes += size;
		return;
	}
	__atomic_fetch_add(&SHARED->stray_count, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&SHARED->stray_bytes, size, __ATOMIC_RELAXED);
}

struct blob_said exact_alloc(uint64_t address, uint64_t size, uint64_t sp, uint64_t bp, uint64_t pc)
{
	struct exact_thread *t = thread_of(blob_thread_pointer(), 1);
	uint32_t stack = t ? find_stack(t, sp, bp, pc) : EXACT_NONE;
	struct exact_event *e;
	uint64_t ticket;

	if (!address)
		return (struct blob_said){ 0, 0 };
	count(t, size);
	e = next_event(t, &ticket);
	if (!e)
		return (struct blob_said){ 0, 0 };
	e->address = address;
	e->size = size;
	e->rest = exact_rest(stack, index_of(t), EXACT_ALLOCATED);
	/* Said once the kernel has walked. */
	if (stack == EXACT_NONE)
		return (struct blob_said){ (uint64_t)e, ticket + 1 };
	__atomic_store_n(&e->seq, ticket + 1, __ATOMIC_RELEASE);
	return (struct blob_said){ 0, 0 };
}

void exact_free(uint64_t address)
{
	struct exact_thread *t = thread_of(blob_thread_pointer(), 0);
	struct exact_event *e;
	uint32_t identity;
	uint64_t ticket;

	e = next_event(t, &ticket);
	if (!e)
		return;
	e->address = address;
	/* Identities may have become known since this thread's last allocation, which then has none yet. */
	e->rest = exact_rest(EXACT_NONE, index_of(t && (!t->identity || is_same_thread(t, &identity)) ? t : 0), EXACT_FREED);
	__atomic_store_n(&e->seq, ticket + 1, __ATOMIC_RELEASE);
}
