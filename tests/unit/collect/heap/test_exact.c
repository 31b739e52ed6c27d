/* The hooks where each allocation is seen: what they read of a stack, and the ring; and sums of 10 ms. */
#include "test.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/heap/heapsums.h"
#include "collect/heap/liveheap.h"
#include "profile/profile.h"

/* The blob's own code, with memory of ours in place of what follows it in a target. */
#define HIDDEN
#define BLOB_LINKS 1
#include "collect/heap/blob/exact.c"

struct blob_fixed blob_fixed;
struct blob_local blob_local;
struct blob_shared blob_shared;

enum { WORDS = 512, PC = 0x401000, NUMBER = 77 };

/* A stack that ends where memory ends: whoever reads beyond it dies. */
static uint64_t *stack, *beyond;
static uint32_t owner_memory[16];
static struct exact_thread *thread = &blob_local.exact.threads[5];

static void prepare(void)
{
	if (!stack) {
		char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_ptr_not_equal(pages, MAP_FAILED);
		assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
		stack = (uint64_t *)pages;
		beyond = stack + WORDS;
	}
	memset(&blob_shared.exact, 0, sizeof(blob_shared.exact));
	memset(&blob_local.exact, 0, sizeof(blob_local.exact));
	memset(stack, 0xee, 4096);
	owner_memory[4] = 1234;
	blob_local.active = BLOB_EXACT;
	blob_shared.exact.identity_at = 16;
	blob_shared.exact.turns = 100000;
	thread->owner = (uint64_t)owner_memory + EXACT_BEFORE;
	thread->identity = 1234;
	thread->low = (uint64_t)stack;
	thread->top = (uint64_t)beyond;
}

static void add_rule(uint64_t pc, uint64_t rule)
{
	struct exact_rule *r = exact_rules_of(SHARED, pc);

	while (r->pc && r->pc != pc)
		r++;
	*r = (struct exact_rule){ pc, rule };
}

static void add_stack(const uint64_t *pcs, int n, uint32_t number)
{
	uint64_t hash = 0;
	struct exact_stack *s;

	for (int i = 0; i < n; i++)
		hash = exact_hash(hash, pcs[i]);
	s = exact_stacks_of(SHARED, hash);
	while (s->hash)
		s++;
	*s = (struct exact_stack){ hash, number };
}

static uint32_t find(int at, uint64_t bp)
{
	return find_stack(thread, (uint64_t)(stack + at + 1), bp, stack[at]);
}

/* Frames of 32 bytes: return addresses at 100, 104, 108, and the last one ends it. */
static void plain_stack(void)
{
	static const uint64_t pcs[] = { PC, PC + 0x10, PC + 0x20, PC + 0x30 };

	prepare();
	for (int i = 0; i < 4; i++) {
		stack[100 + 4 * i] = pcs[i];
		add_rule(pcs[i], i == 3 ? rule_make(RULE_END, 0, 0, 0, 0) : rule_make(RULE_CFA_RSP, 0, 32, RULE_RBP_SAME, 0));
	}
	add_stack(pcs, 4, NUMBER);
}

static void walks(void **state)
{
	plain_stack();
	assert_int_equal(find(100, 0), NUMBER);
	assert_int_equal(find(100, 0), NUMBER);
	/* From memory, without a rule. */
	memset(blob_shared.exact.rules, 0, sizeof(blob_shared.exact.rules));
	assert_int_equal(find(100, 7), NUMBER);
	/* A word on the way is another one. */
	stack[108] = PC + 0x40;
	assert_int_equal(find(100, 0), EXACT_NONE);
	plain_stack();
	assert_int_equal(find(104, 0), EXACT_NONE); /* not known */
	assert_int_equal(find(100, 0), NUMBER);
	/* Code was unmapped: what was remembered is not believed. */
	memset(blob_shared.exact.rules, 0, sizeof(blob_shared.exact.rules));
	blob_shared.exact.generation++;
	assert_int_equal(find(100, 0), EXACT_NONE);
}

/* The second frame has a frame pointer, which the first saved. */
static void frame_pointers(void **state)
{
	static const uint64_t pcs[] = { PC, PC + 0x10, PC + 0x20 };

	prepare();
	stack[100] = pcs[0];
	stack[103] = (uint64_t)(stack + 110); /* the saved one */
	stack[104] = pcs[1];
	stack[111] = pcs[2];
	stack[121] = pcs[2];
	add_rule(pcs[0], rule_make(RULE_CFA_RSP, 0, 32, RULE_RBP_CFA, -16));
	add_rule(pcs[1], rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16));
	add_rule(pcs[2], rule_make(RULE_END, 0, 0, 0, 0));
	add_stack(pcs, 3, NUMBER);
	assert_int_equal(find(100, 0), NUMBER);
	assert_int_equal(find(100, 0), NUMBER);
	/* It moves: the words there are as before, but the walk is another one. */
	stack[103] = (uint64_t)(stack + 120);
	assert_int_equal(find(100, 0), NUMBER);
	stack[121] = 0;
	assert_int_equal(find(100, 0), EXACT_NONE);
	/* At the leaf it is the register. */
	add_rule(pcs[0], rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16));
	stack[103] = stack[110] = (uint64_t)(stack + 110);
	assert_int_equal(find(100, (uint64_t)(stack + 103)), NUMBER);
	assert_int_equal(find(100, (uint64_t)(stack + 103)), NUMBER);
	assert_int_equal(find(100, (uint64_t)(stack + 102)), EXACT_NONE);
	/* Realigned: the end is itself in memory. */
	add_rule(pcs[0], rule_make(RULE_CFA_DEREF_RBP, 0, -8, RULE_RBP_CFA, -16));
	stack[102] = (uint64_t)(stack + 105);
	assert_int_equal(find(100, (uint64_t)(stack + 103)), NUMBER);
	stack[102] = (uint64_t)(stack + 106);
	assert_int_equal(find(100, (uint64_t)(stack + 103)), EXACT_NONE);
}

/* Frames of arm64: beside the frame pointer, by the frame pointer, by itself, and never in a register. */
static void link_registers(void **state)
{
	static const uint64_t pcs[] = { PC, PC + 0x10, PC + 0x20, PC + 0x30 };

	prepare();
	stack[100] = pcs[0]; /* given, not read */
	stack[105] = (uint64_t)(stack + 110);
	stack[106] = pcs[1];
	stack[110] = (uint64_t)(stack + 130);
	stack[111] = pcs[2];
	stack[119] = pcs[3];
	add_rule(pcs[0], rule_make_link(RULE_BASE_SP, 64, RULE_RBP_CFA, -32, RULE_LINK_BESIDE + 1));
	add_rule(pcs[1], rule_make_link(RULE_BASE_FP, 32, RULE_RBP_CFA, -32, RULE_LINK_BESIDE + 1));
	add_rule(pcs[2], rule_make_link(RULE_BASE_SP, 48, RULE_RBP_SAME, -8, RULE_LINK_CFA));
	add_rule(pcs[3], rule_make(RULE_END, 0, 0, 0, 0));
	add_stack(pcs, 4, NUMBER);
	assert_int_equal(find(100, 0), NUMBER);
	assert_int_equal(find(100, 0), NUMBER);
	/* The frame pointer that the second one uses was saved by the first: it decides. */
	stack[105] = (uint64_t)(stack + 109);
	assert_int_equal(find(100, 0), EXACT_NONE);
	stack[105] = (uint64_t)(stack + 110);
	assert_int_equal(find(100, 0), NUMBER);
	add_rule(pcs[2], rule_make_link(RULE_BASE_SP, 48, RULE_RBP_LOST, 40, RULE_LINK_BASE));
	blob_shared.exact.generation++;
	assert_int_equal(find(100, 0), NUMBER);
	/* Only a leaf has it there, and the kernel knows whether it is one. */
	add_rule(pcs[2], rule_make_link(RULE_BASE_SP, 48, RULE_RBP_SAME, 0, RULE_LINK_REGISTER));
	blob_shared.exact.generation++;
	assert_int_equal(find(100, 0), EXACT_NONE);
	/* A frame that is not above the one before. */
	add_rule(pcs[2], rule_make_link(RULE_BASE_SP, 0, RULE_RBP_SAME, -8, RULE_LINK_CFA));
	assert_int_equal(find(100, 0), EXACT_NONE);
}

/* Whatever is in registers, in rules and on the stack: nothing beyond it is read, and it ends. */
static void bounds(void **state)
{
	static const int64_t offsets[] = { 0, 8, -8, 16, 32, 4096, 1 << 20, 1 << 21, INT32_MAX, INT32_MIN, 12 };
	uint64_t seed = 11;

	prepare();
	for (int i = 0; i < 300000; i++) {
		uint64_t bp;
		int at;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		at = (int)(seed >> 33 & 0x1ff);
		bp = seed >> 60 < 2 ? seed : (uint64_t)(stack + (seed >> 50 & 0x3ff)) - 1024;
		stack[seed >> 20 & 0x1ff] = seed >> 45 & 3 ? PC + (seed >> 40 & 15) * 16 :
							      (uint64_t)(stack + (seed >> 10 & 0x3ff)) - 256;
		add_rule(PC + (seed >> 56 & 15) * 16, rule_make(seed >> 48 & 15, seed >> 4 & 15,
								 offsets[(seed >> 36) % ARRAY_LEN(offsets)], seed >> 30 & 3,
								 offsets[(seed >> 26) % ARRAY_LEN(offsets)]) |
						       (seed & 0xf000));
		find(at, bp);
		if (i % 1000 == 0)
			memset(blob_shared.exact.rules, 0, sizeof(blob_shared.exact.rules));
	}
	/* On another stack. */
	assert_int_equal(find_stack(thread, (uint64_t)beyond, 0, PC), EXACT_NONE);
	assert_int_equal(find_stack(thread, (uint64_t)&seed, 0, PC), EXACT_NONE);
	assert_int_equal(find_stack(thread, (uint64_t)(stack - 1), 0, PC), EXACT_NONE);
	thread->top = 0;
	assert_int_equal(find(100, 0), EXACT_NONE);
}

/* Another thread with the same thread pointer; and one that is not known at all. */
static void identities(void **state)
{
	uint32_t identity;

	plain_stack();
	assert_int_equal(find(100, 0), NUMBER);
	assert_true(is_same_thread(thread, &identity));
	owner_memory[4] = 1235;
	assert_false(is_same_thread(thread, &identity));
	assert_int_equal(find(100, 0), EXACT_NONE);
	assert_int_equal(thread->top, 0);
	assert_int_equal(thread->identity, 1235);
	thread->low = (uint64_t)stack;
	thread->top = (uint64_t)beyond;
	assert_int_equal(find(100, 0), NUMBER);
	blob_shared.exact.identity_at = 0;
	assert_int_equal(find(100, 0), EXACT_NONE);
	/* Within a signal's handler. */
	plain_stack();
	thread->identity = owner_memory[4];
	thread->busy = 1;
	assert_int_equal(find(100, 0), EXACT_NONE);
	thread->busy = 0;
	assert_int_equal(find(100, 0), NUMBER);
}

static void rooms(void **state)
{
	struct exact_thread *first, *other = NULL;
	uint64_t pointer = 0x7f0000001000, taken = 0;

	prepare();
	assert_null(thread_of(pointer, 0));
	first = thread_of(pointer, 1);
	assert_non_null(first);
	assert_ptr_equal(thread_of(pointer, 0), first);
	/* Those that share its place go on to the next ones, until there are none. */
	for (uint64_t p = pointer + 64; taken < EXACT_THREAD_WAYS; p += 64) {
		if ((p * 0x1e3779b1 >> 20 & (EXACT_THREADS - 1)) != (uint64_t)(first - blob_local.exact.threads))
			continue;
		taken++;
		other = thread_of(p, 1);
	}
	assert_null(other);
	assert_ptr_equal(thread_of(pointer, 1), first);
}

/* Full, and nobody reads. */
static void patience(void **state)
{
	prepare();
	for (int i = 0; i < EXACT_EVENTS; i++)
		exact_free(4096 + i);
	assert_int_equal(blob_local.active, BLOB_EXACT);
	assert_int_equal(exact_event_of(SHARED, 0)->seq, 1);
	assert_int_equal(exact_event_of(SHARED, 5)->address, 4101);
	blob_shared.exact.tail = 1;
	exact_free(1);
	assert_int_equal(exact_event_of(SHARED, 0)->seq, EXACT_EVENTS + 1);
	exact_free(2);
	assert_int_equal(blob_local.active, BLOB_PASS_ON);
	assert_int_equal(exact_event_of(SHARED, 1)->seq, 2);
	/* Who waited through the end of a recording leaves the next one alone. */
	blob_local.active = BLOB_EXACT;
	blob_shared.exact.tail = 4 * EXACT_EVENTS;
	assert_false(wait_for_room(5));
	exact_free(3);
	assert_int_equal(blob_local.active, BLOB_EXACT);
}

/* --- many threads: an address is in use by one object at a time, in the order of the tickets --- */

enum { WRITERS = 4, TURNS_EACH = 30000, ADDRESSES = 16 }; /* all of them fit into the ring */

static uint64_t begin_at[WRITERS]; /* tickets that are taken by then */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pool[ADDRESSES], pooled;

static void *write_events(void *context)
{
	while (__atomic_load_n(&SHARED->head, __ATOMIC_RELAXED) < *(const uint64_t *)context)
		sched_yield();
	for (int i = 0; i < TURNS_EACH; i++) {
		uint64_t address;
		struct blob_said said;

		pthread_mutex_lock(&pool_lock);
		address = pool[--pooled];
		pthread_mutex_unlock(&pool_lock);
		said = exact_alloc(address, 64, (uint64_t)&address, 0, PC);
		if (said.event) /* what the hooks do */
			__atomic_store_n((uint64_t *)said.event, said.seq, __ATOMIC_RELEASE);
		exact_free(address);
		pthread_mutex_lock(&pool_lock);
		pool[pooled++] = address;
		pthread_mutex_unlock(&pool_lock);
	}
	return NULL;
}

/* What gasflame does when a thread waits for the right that another one has (exactheap.c). */
static void share(void)
{
	uint64_t one = __atomic_load_n(&SHARED->only, __ATOMIC_ACQUIRE) - EXACT_ONE;

	if (one >= EXACT_THREADS || !__atomic_load_n(&SHARED->asks, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&SHARED->only, EXACT_ENDS, __ATOMIC_SEQ_CST);
	assert_int_equal(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0);
	while (*(volatile uint32_t *)&OWN->threads[one].inside)
		sched_yield();
	__atomic_store_n(&SHARED->only, EXACT_ALL, __ATOMIC_RELEASE);
}

static void write_and_read(enum exact_only only)
{
	pthread_t writers[WRITERS];
	bool live[ADDRESSES] = { 0 };
	uint64_t count = 0;

	prepare();
	SHARED->only = only;
	SHARED->turns = UINT64_MAX; /* they have to wait for us, whoever else runs here */
	for (pooled = 0; pooled < ADDRESSES; pooled++)
		pool[pooled] = pooled + 1;
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, write_events, &begin_at[i]), 0);
	for (uint64_t ticket = 0; ticket < 2 * WRITERS * TURNS_EACH; ticket++) {
		const struct exact_event *e = exact_event_of(SHARED, ticket);
		bool *at;

		while (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != ticket + 1) {
			share();
			sched_yield();
		}
		at = &live[e->address - 1];
		assert_int_equal(*at, e->what == EXACT_FREED);
		*at = !*at;
		__atomic_store_n(&blob_shared.exact.tail, ticket + 1, __ATOMIC_RELEASE);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	for (int i = 0; i < EXACT_THREADS; i++)
		count += blob_shared.exact.counts[i].count;
	assert_int_equal(count + blob_shared.exact.stray_count, WRITERS * TURNS_EACH);
}

static void order(void **state)
{
	write_and_read(EXACT_ALL);
}

/* One takes tickets without a lock until the others come: at once, or in the middle of it. */
static void alone(void **state)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	if (commands < 0 || !(commands & MEMBARRIER_CMD_GLOBAL))
		skip();
	for (int round = 0; round < 5; round++) {
		for (int i = 1; i < WRITERS; i++)
			begin_at[i] = round * 2000 + i;
		write_and_read(EXACT_FIRST);
		assert_int_equal(SHARED->only, EXACT_ALL);
	}
	memset(begin_at, 0, sizeof(begin_at));
}

/* A thread that is not known when it frees something ends it before it began; and nobody who could end it. */
static void never_alone(void **state)
{
	prepare();
	SHARED->only = EXACT_FIRST;
	exact_free(4096);
	assert_int_equal(SHARED->only, EXACT_ALL);
	assert_int_equal(exact_event_of(SHARED, 0)->seq, 1);
	SHARED->only = EXACT_ONE + 77;
	exact_free(4097);
	assert_int_equal(blob_local.active, BLOB_PASS_ON);
	assert_int_equal(SHARED->head, 1);
	assert_int_equal(SHARED->asks, 1);
}

/* --- sums --- */

static void happen(struct heapsums *sums, struct liveheap *live, uint64_t address, uint64_t size, uint64_t time_ns, uint32_t node)
{
	struct liveheap_object o = { .size = size, .time_ns = time_ns, .stack = node }, old;
	uint64_t peaks = live->peaks;

	if (size) {
		liveheap_alloc(live, 1, address, &o, &old);
		heapsums_alloc(sums, o.part, o.bytes, peaks);
	} else {
		assert_true(liveheap_free(live, 1, address, &o));
		heapsums_free(sums, o.part, o.bytes, peaks, time_ns - o.time_ns, false);
	}
}

/* Within one slot: up to 30, then down, then up to 25; what adds up to the moment of the peak is 30. */
static void peaks(void **state)
{
	struct heapsums sums = { .events = { 0, 1, 2 } };
	struct profile *p = profile_new();
	struct liveheap live;
	int64_t at_peak = 0, at_end = 0;
	uint64_t objects = 0;

	liveheap_init(&live, 0);
	happen(&sums, &live, 0x1000, 10, 1, 1);
	happen(&sums, &live, 0x2000, 20, 2, 2);
	happen(&sums, &live, 0x1000, 0, 3, 1);
	happen(&sums, &live, 0x3000, 5, 4, 1);
	heapsums_flush_now(&sums, &live, p, 5);
	happen(&sums, &live, 0x2000, 0, 6, 1);
	heapsums_flush(&sums, &live, p, 7); /* too early */
	assert_int_equal(sums.used.n, 1);
	heapsums_flush(&sums, &live, p, 5 + 10000000);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		int64_t bytes = s->event == 1 ? -(int64_t)s->value : (int64_t)s->value;

		at_end += bytes;
		at_peak += s->time_ns <= live.peak_ns ? bytes : 0;
		objects += s->event == 0 ? s->count : 0;
	}
	assert_int_equal(live.peak_bytes, 30);
	assert_int_equal(at_peak, 30);
	assert_int_equal(at_end, 5);
	assert_int_equal(objects, 3);
	assert_int_equal(profile_add_histogram(p, "heap.lifetime", "ns")->counts[1], 1); /* 2 ns */
	assert_int_equal(profile_add_histogram(p, "heap.lifetime", "ns")->counts[2], 1); /* 4 ns */
	heapsums_done(&sums);
	liveheap_done(&live);
	profile_free(p);
}

/* One allocation that is freed at once, by the short way if there is one and it may be taken. */
static bool happen_at_once(struct heapsums *sums, struct liveheap *live, uint64_t address, uint64_t size, uint64_t time_ns, bool pass)
{
	struct liveheap_object o = { .size = size, .time_ns = time_ns, .stack = 3 }, old;
	uint64_t peaks = live->peaks;
	uint32_t part;

	if (pass && liveheap_pass(live, 1, address, &o, &part)) {
		heapsums_pair(sums, part, size, peaks, 1);
		return true;
	}
	if (liveheap_alloc(live, 1, address, &o, &old))
		heapsums_free(sums, old.part, old.bytes, live->peaks, time_ns - old.time_ns, false);
	heapsums_alloc(sums, o.part, o.bytes, peaks);
	assert_true(liveheap_free(live, 1, address, &o));
	heapsums_free(sums, o.part, o.bytes, live->peaks, 1, true);
	return false;
}

/* The short way of an allocation that is freed at once leaves everything as the long one does. */
static void pairs(void **state)
{
	struct heapsums sums[2] = { { .events = { 0, 1, 2 } }, { .events = { 0, 1, 2 } } };
	struct profile *p[2] = { profile_new(), profile_new() };
	struct liveheap live[2];
	int passed = 0;

	for (int way = 0; way < 2; way++) {
		uint64_t seed = 7;

		liveheap_init(&live[way], 0);
		for (int i = 1; i < 3000; i++) {
			uint64_t address;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			address = 0x1000 + (seed >> 40 & 63) * 16;
			if (seed >> 33 & 3)
				passed += happen_at_once(&sums[way], &live[way], address, 1 + (seed >> 50), i, way);
			else if (liveheap_find(&live[way], 1, address, &(size_t){ 0 }))
				happen(&sums[way], &live[way], address, 0, i, 0);
			else
				happen(&sums[way], &live[way], address, 1 + (seed >> 50 & 1023), i, 1 + (seed >> 20 & 3));
			if (i % 500 == 0)
				heapsums_flush_now(&sums[way], &live[way], p[way], i);
		}
		heapsums_flush_now(&sums[way], &live[way], p[way], 3000);
	}
	assert_in_range(passed, 500, 2500);
	assert_int_equal(live[0].peaks, live[1].peaks);
	assert_int_equal(live[0].peak_bytes, live[1].peak_bytes);
	assert_int_equal(live[0].bytes, live[1].bytes);
	assert_int_equal(p[0]->samples.n, p[1]->samples.n);
	for (size_t i = 0; i < p[0]->samples.n; i++)
		assert_memory_equal(&p[0]->samples.v[i], &p[1]->samples.v[i], sizeof(p[0]->samples.v[i]));
	assert_memory_equal(profile_add_histogram(p[0], "heap.lifetime", "ns")->counts,
			    profile_add_histogram(p[1], "heap.lifetime", "ns")->counts, 64 * sizeof(uint64_t));
	for (int way = 0; way < 2; way++) {
		heapsums_done(&sums[way]);
		liveheap_done(&live[way]);
		profile_free(p[way]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks), cmocka_unit_test(frame_pointers), cmocka_unit_test(link_registers), cmocka_unit_test(bounds), cmocka_unit_test(identities),
		cmocka_unit_test(rooms), cmocka_unit_test(patience),       cmocka_unit_test(order),  cmocka_unit_test(peaks),
		cmocka_unit_test(alone), cmocka_unit_test(never_alone),    cmocka_unit_test(pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
