/* The table of live objects, what samples stand for, the peak; and the sampler that runs in the target. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "collect/heap/blob/blob.h"
#include "collect/heap/heappace.h"
#include "collect/heap/liveheap.h"

/* The blob's own code, with memory of ours in place of what follows it in a target. */
#define HIDDEN
#include "collect/heap/blob/sampler.c"
#include "collect/heap/blob/exact.c"

struct blob_local blob_local;
struct blob_fixed blob_fixed;
struct blob_shared blob_shared;

static struct liveheap_object make(uint64_t size, uint64_t time_ns, uint32_t stack)
{
	return (struct liveheap_object){ .size = size, .time_ns = time_ns, .stack = stack };
}

static void alloc(struct liveheap *h, uint64_t address, uint64_t size, uint64_t time_ns, uint32_t stack)
{
	struct liveheap_object o = make(size, time_ns, stack), old;

	assert_false(liveheap_alloc(h, 1, address, &o, &old));
}

static void weights(void **state)
{
	struct liveheap h;
	struct liveheap_object o = make(64, 0, 1), old;

	liveheap_init(&h, 512 << 10);
	liveheap_alloc(&h, 1, 0x1000, &o, &old);
	assert_in_range(o.count, 8192, 8193); /* of the smallest: the interval's bytes */
	assert_in_range(o.bytes, 512 << 10, (512 << 10) + 64);
	o = make(64 << 20, 0, 1);
	liveheap_alloc(&h, 1, 0x2000, &o, &old);
	assert_int_equal(o.count, 1); /* what is certain to be seen stands for itself */
	assert_int_equal(o.bytes, 64 << 20);
	liveheap_done(&h);
}

static void peaks(void **state)
{
	struct liveheap_object o;
	struct liveheap h;

	liveheap_init(&h, 0);
	alloc(&h, 0x1000, 100, 1, 1);
	alloc(&h, 0x2000, 50, 2, 2);
	alloc(&h, 0x3000, 7, 3, 3);
	assert_true(liveheap_free(&h, 1, 0x1000, &o));
	assert_int_equal(o.bytes, 100);
	alloc(&h, 0x4000, 60, 4, 2); /* 117: less than 157 */
	alloc(&h, 0x5000, 41, 5, 4); /* 158 */
	assert_true(liveheap_free(&h, 1, 0x2000, &o));
	assert_true(liveheap_free(&h, 1, 0x5000, &o));
	assert_false(liveheap_free(&h, 1, 0x5000, &o));
	assert_false(liveheap_free(&h, 2, 0x4000, &o)); /* another process's */
	liveheap_end_peak(&h);
	assert_int_equal(h.bytes, 67);
	assert_int_equal(h.peak_bytes, 158);
	assert_int_equal(h.peak_ns, 5);
	assert_int_equal(h.peak_objects, 4);
	assert_int_equal(h.parts.n, 4);
	assert_int_equal(h.parts.v[0].peak_bytes, 0);
	assert_int_equal(h.parts.v[1].peak_bytes, 110);
	assert_int_equal(h.parts.v[1].peak_count, 2);
	assert_int_equal(h.parts.v[2].peak_bytes, 7);
	assert_int_equal(h.parts.v[3].peak_bytes, 41);
	liveheap_done(&h);
}

/* A free that was not seen: its place is taken by another. */
static void reused(void **state)
{
	struct liveheap_object o = make(5, 1, 1), old;
	struct liveheap h;

	liveheap_init(&h, 1);
	assert_false(liveheap_alloc(&h, 1, 0x1000, &o, &old));
	o = make(9, 2, 2);
	assert_true(liveheap_alloc(&h, 1, 0x1000, &o, &old));
	assert_int_equal(old.size, 5);
	assert_int_equal(h.bytes, 9);
	assert_int_equal(h.objects.n, 1);
	liveheap_done(&h);
}

/* Against a plain list, at random. */
static void random_use(void **state)
{
	enum { PLACES = 512, TURNS = 200000 };
	static uint64_t sizes[PLACES];
	uint64_t live = 0, most = 0, seed = 7;
	struct liveheap h;

	liveheap_init(&h, 0);
	for (int i = 0; i < TURNS; i++) {
		struct liveheap_object o;
		uint32_t at;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		at = seed >> 40 & (PLACES - 1);
		if (sizes[at]) {
			assert_true(liveheap_free(&h, 1, 4096 + at * 16, &o));
			assert_int_equal(o.size, sizes[at]);
			live -= sizes[at];
			sizes[at] = 0;
		} else {
			sizes[at] = 1 + (seed >> 20 & 1023);
			alloc(&h, 4096 + at * 16, sizes[at], i, at % 7);
			live += sizes[at];
		}
		most = MAX(most, live);
		assert_int_equal(h.bytes, live);
	}
	assert_int_equal(h.peak_bytes, most);
	live = 0;
	liveheap_end_peak(&h);
	for (size_t i = 0; i < h.parts.n; i++)
		live += h.parts.v[i].peak_bytes;
	assert_int_equal(live, most);
	liveheap_done(&h);
}

/* --- the sampler --- */

static struct blob_thread *fresh_thread(uint64_t interval, uint64_t seed)
{
	struct blob_thread *t = &blob_shared.threads[1];

	memset(t, 0, sizeof(*t));
	blob_fixed.interval_bytes = interval;
	t->random = seed * 0x9e3779b97f4a7c15ULL | 1;
	for (int i = 0; i < 8; i++)
		blob_random(&t->random);
	restart(t);
	t->bytes = 0;
	return t;
}

/* Distances are exponential: their mean, and how many are beyond multiples of it. */
static void distances(void **state)
{
	enum { N = 200000, INTERVAL = 512 << 10 };
	struct blob_thread *t = fresh_thread(INTERVAL, 3);
	double sum = 0;
	int beyond[4] = { 0 };

	for (int i = 0; i < N; i++) {
		int64_t d = blob_draw(&t->random, t->interval);

		assert_true(d > 0);
		sum += d;
		for (int k = 0; k < 4; k++)
			beyond[k] += d > (int64_t)INTERVAL * (k + 1);
	}
	assert_true(fabs(sum / N / INTERVAL - 1) < 0.01);
	for (int k = 0; k < 4; k++)
		assert_true(fabs((double)beyond[k] / N - exp(-(k + 1))) < 5 * sqrt(exp(-(k + 1)) / N));
}

enum { RUNS = 300 };

struct estimates {
	double sum, squares, said; /* of all runs: bytes, squares of their errors, variances */
	double truth;              /* of one run */
};

/* Records one heap many times. rising: the interval becomes eight times as long when there are some samples, as heap.c does it. */
static struct estimates record_often(uint64_t interval, int objects, bool rising)
{
	struct estimates e = { 0 };

	for (int run = 0; run < RUNS; run++) {
		struct blob_thread *t = fresh_thread(interval, run + 1);
		struct liveheap h;

		liveheap_init(&h, interval);
		e.truth = 0;
		for (int i = 0; i < objects; i++) {
			struct liveheap_object o = make(i % 10 ? 48 : i % 100 ? 1000 : 20000, i, 1), old;

			if (rising && h.interval == interval && h.objects.n > 60)
				h.interval = blob_fixed.interval_bytes = 8 * interval;
			e.truth += o.size;
			t->countdown -= o.size;
			if (t->countdown >= 0)
				continue;
			o.interval = t->interval;
			restart(t);
			liveheap_alloc(&h, 1, 4096 + i * 16, &o, &old);
		}
		assert_int_equal(h.interval, rising ? 8 * interval : interval);
		e.sum += h.bytes;
		e.squares += (h.bytes - e.truth) * (h.bytes - e.truth);
		e.said += h.variance;
		/* The exact count that the hooks keep. */
		assert_int_equal(t->bytes + t->drawn - t->countdown, (uint64_t)e.truth);
		liveheap_done(&h);
	}
	return e;
}

static void assert_unbiased(const struct estimates *e, double tolerance)
{
	assert_true(fabs(e->sum / RUNS / e->truth - 1) < 4 * sqrt(e->squares / RUNS / RUNS) / e->truth);
	assert_true(fabs(sqrt(e->said / e->squares) - 1) < tolerance);
}

/* Estimates are unbiased, and as far off as they say. */
static void errors(void **state)
{
	struct estimates e = record_often(4096, 3000, false);

	assert_unbiased(&e, 0.15);
}

/* The interval rises in the middle: estimates stay unbiased if each sample stands for what it was drawn by. */
static void raised(void **state)
{
	struct estimates e = record_often(2048, 6000, true);

	assert_unbiased(&e, 0.2);
}

/* Looks every 100 ms; the targets use one CPU. */
static bool look(struct heappace *p, uint64_t samples, uint64_t lost, uint64_t no_room, uint64_t live)
{
	uint64_t now = p->time_ns + 100000000;
	struct heappace_seen seen = { p->last.samples + samples, p->last.lost + lost, p->last.no_room + no_room, live, now };

	assert_true(heappace_due(p, now));
	return heappace_look(p, now, &seen);
}

static void pace(void **state)
{
	struct heappace p = { 0 }, steady = { .steady = true };

	assert_false(look(&p, 5000, 100, 0, 0)); /* the first look is no rate */
	assert_false(heappace_due(&p, p.time_ns + 99999999));
	assert_false(look(&p, 500, 0, 0, 0)); /* 5,000 a second */
	assert_true(look(&p, 501, 0, 0, 0));
	assert_false(look(&p, 200, 2, 2, 5000)); /* one of a hundred */
	assert_true(look(&p, 200, 3, 0, 5000));
	assert_true(look(&p, 200, 0, 3, 5000));
	assert_false(look(&p, 200, 0, 100, 9999)); /* not again before there are twice as many */
	assert_true(look(&p, 200, 0, 100, 10000));
	p.last.cpu_ns += 99999990; /* nearly no CPU time, and few samples */
	assert_false(look(&p, 100, 0, 0, 0));
	assert_false(look(&steady, 0, 0, 0, 0));
	assert_false(look(&steady, 1000000, 0, 0, 0));
	assert_true(look(&steady, 1000000, 10001, 0, 0));
}

/* Samples are found again when they are freed, others are not; a full place is counted. */
static void table(void **state)
{
	uint64_t home = blob_home(0x10000), other = 0;

	memset(&blob_shared, 0, sizeof(blob_shared));
	blob_fixed.interval_bytes = 4096;
	assert_int_equal(keep(0x10000, 1), 1);
	assert_true(blob_shared.filter[home / 32] & 1U << home % 32);
	assert_true(blob_shared.coarse[home / 512] & 1U << home / 16 % 32);
	assert_int_equal(blob_free(0x20000), 0);
	for (uint64_t a = 0x10010; !other; a += 16)
		if (blob_home(a) == home)
			other = a;
	assert_int_equal(keep(other, 1), 1);
	assert_int_equal(keep(other, 1), 0);
	assert_int_equal(blob_shared.full, 1);
	assert_int_equal(blob_free(0x10000), 1);
	assert_true(blob_shared.filter[home / 32] & 1U << home % 32);
	assert_int_equal(blob_free(0x10000), 0);
	assert_int_equal(blob_free(other), 1);
	assert_false(blob_shared.filter[home / 32] & 1U << home % 32);
	assert_false(blob_shared.coarse[home / 512] & 1U << home / 16 % 32);
	assert_int_equal(blob_free(0), 0);
	/* A neighbour keeps the coarse bit. */
	for (uint64_t a = other = 0x10010; blob_home(a) == home || blob_home(a) / 16 != home / 16; a += 16)
		other = a + 16;
	assert_int_equal(keep(0x10000, 1) + keep(other, 1), 2);
	assert_int_equal(blob_free(0x10000), 1);
	assert_true(blob_shared.coarse[home / 512] & 1U << home / 16 % 32);
	assert_int_equal(blob_free(other), 1);
	assert_false(blob_shared.coarse[home / 512] & 1U << home / 16 % 32);
}

/* A gasflame that is gone: the hooks go to sleep. */
static void silence(void **state)
{
	int n = 0;

	memset(&blob_shared, 0, sizeof(blob_shared));
	blob_fixed.interval_bytes = 2;
	blob_local.active = BLOB_SAMPLE;
	while (blob_local.active && n < 4 * BLOB_PATIENCE)
		if (blob_alloc(0x1000 + 16ULL * n++, 1 << 20, 0, 0, 0).event)
			blob_free(0x1000 + 16ULL * (n - 1));
	assert_in_range(n, BLOB_PATIENCE, BLOB_PATIENCE + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights),    cmocka_unit_test(peaks),     cmocka_unit_test(reused),
		cmocka_unit_test(random_use), cmocka_unit_test(distances), cmocka_unit_test(errors), cmocka_unit_test(raised), cmocka_unit_test(pace),
		cmocka_unit_test(table),      cmocka_unit_test(silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
