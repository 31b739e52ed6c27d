#include "capturefiles.h"

#include <errno.h>

#include "capture/scan/coarse.h"
#include "capture/scan/parts.h"

enum { SECOND = 1000000000, SAMPLES = 30000, SPANS = 40 };

static uint64_t seed = 88172645463325252ULL;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* A recording of 60 s: samples of the clock, sums, single waits, some of them long, and waits with the queue behind them.
 * shuffled: in no order at all. */
static struct profile *make_recording(bool shuffled)
{
	struct profile *p = make_profile(&small);
	uint32_t wait = profile_add_event(p, "wait", "ns", "time off the CPU", 0);
	uint32_t queue = profile_add_event(p, "queue", "ns", "in the run queue", 0);

	p->samples.n = 0;
	p->duration_ns = 60ULL * SECOND;
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct profile_sample s = { .time_ns = shuffled ? draw(60ULL * SECOND) : i * 60ULL * SECOND / SAMPLES,
					    .thread = draw(p->threads.n), .stack = draw(p->stacks.n), .value = 1001001 };

		/* Some come late. */
		s.time_ns -= MIN(s.time_ns, draw(10) ? 0 : draw(SECOND));
		if (draw(3)) {
			s.event = wait;
			s.value = draw(50) ? draw(1000000) : draw(20ULL * SECOND);
			s.count = draw(3) ? 0 : 1 + draw(4);
		}
		profile_add_sample(p, &s);
		if (s.event == wait && !s.count && draw(2)) {
			s.event = queue;
			s.value = draw(5000000);
			profile_add_sample(p, &s);
		}
	}
	return p;
}

/* When the sample is, as analyses see it. */
static void span_of(const struct profile *p, size_t i, uint64_t *begin, uint64_t *end)
{
	const struct profile_sample *s = &p->samples.v[i], *before = s - 1;

	*begin = *end = s->time_ns;
	if (!s->event || s->count > 1)
		return;
	if (s->event == 2 && i && before->thread == s->thread && before->time_ns == s->time_ns && before->stack == s->stack &&
	    before->event == 1)
		*begin += before->value;
	*end = *begin + s->value;
}

/* What is in the spans, as one number that depends on the order; *ret_n: how much. */
static uint64_t hash_of(const struct profile *p, const struct capture_span *spans, size_t n, size_t *ret_n)
{
	uint64_t hash = 0;

	*ret_n = 0;
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		uint64_t begin, end;
		bool in = false;

		span_of(p, i, &begin, &end);
		for (size_t k = 0; k < n && !in; k++)
			in = begin <= spans[k].end_ns && end >= spans[k].start_ns;
		if (!in)
			continue;
		hash = map_hash(hash ^ map_hash(s->time_ns) ^ map_pair(s->thread, s->stack) ^ begin ^ s->value ^ s->count ^ s->event);
		++*ret_n;
	}
	return hash;
}

/* All parts together say what the whole says; ret: how many parts there were. */
static size_t check_parts(const char *path, uint64_t part_rows, size_t *ret_largest)
{
	const struct parts_limits limits = { .least_rows = 1000, .part_rows = part_rows };
	_cleanup_(profile_freep) struct profile *whole = load(path), *p = NULL;
	struct capture_span spans[SPANS];
	struct capture_parts *c = NULL;
	struct err err = { 0 };
	size_t parts = 0, n, m;

	for (uint64_t i = 0; i < SPANS; i++) {
		spans[i].start_ns = i * 60 * SECOND / SPANS + draw(SECOND / 2);
		spans[i].end_ns = spans[i].start_ns + draw(SECOND / 2);
	}
	assert_int_equal(parts_open(path, &limits, &c, &p, &err), 0);
	*ret_largest = 0;
	for (size_t i = 0; i < SPANS; parts++) {
		int r = capture_parts_read(c, spans + i, SPANS - i, &err);

		assert_true(r >= 1 && i + r <= SPANS);
		assert_int_equal(hash_of(p, spans + i, r, &n), hash_of(whole, spans + i, r, &m));
		assert_true(n == m && n > 0);
		*ret_largest = MAX(*ret_largest, p->samples.n);
		i += r;
	}
	for (uint32_t e = 0; e < p->events.n; e++) {
		size_t rows = 0;

		for (size_t i = 0; i < whole->samples.n; i++)
			rows += whole->samples.v[i].event == e;
		assert_int_equal(capture_parts_rows(c)[e], rows);
	}
	capture_parts_close(c);
	return parts;
}

static void parts_say_what_the_whole_says(void **state)
{
	_cleanup_free_ char *path = in_folder("parts");

	for (int shuffled = 0; shuffled < 2; shuffled++) {
		_cleanup_(profile_freep) struct profile *p = make_recording(shuffled);
		size_t parts, largest;

		save(p, path);
		parts = check_parts(path, 4000, &largest);
		/* In order, a part has little more than its own; in no order there is only one. */
		if (shuffled)
			assert_int_equal(parts, 1);
		else
			assert_true(parts > 5 && largest < 8000);
		assert_int_equal(check_parts(path, 1000000, &largest), 1);
		/* Without the recorder's sums, too. */
		tamper(path, "delete from weight");
		check_parts(path, 4000, &largest);
	}
}

static void a_short_capture_has_no_parts(void **state)
{
	_cleanup_free_ char *path = in_folder("short"), *log = in_folder("log");
	_cleanup_(profile_freep) struct profile *p = make_recording(false), *q = NULL;
	struct capture_parts *c = NULL;
	struct err err = { 0 };

	save(p, path);
	assert_int_equal(capture_parts_open(path, &c, &q, &err), -ENOTSUP);
	kill_recorder(log, 300000, 0);
	assert_int_equal(parts_open(log, &(struct parts_limits){ .part_rows = 1000 }, &c, &q, &err), -ENOTSUP);
	assert_null(c);
}

/* Sums by event, thread and what a stack is below. */
static void a_coarse_profile_has_the_same_sums(void **state)
{
	_cleanup_free_ char *path = in_folder("coarse");
	_cleanup_(profile_freep) struct profile *p = make_recording(false), *q = NULL;
	struct err err = { 0 };
	uint64_t sums[3][64] = { 0 }, counts[3] = { 0 };
	size_t kept = 0;

	save(p, path);
	assert_int_equal(capture_read_coarse(path, 20, &q, &err), 0);
	assert_true(q->samples.n < p->samples.n / 10);
	for (size_t i = 0; i < p->samples.n; i++) {
		sums[p->samples.v[i].event][p->samples.v[i].thread % 64] += p->samples.v[i].value;
		counts[p->samples.v[i].event] += MAX(p->samples.v[i].count, 1u);
	}
	for (size_t i = 0; i < q->samples.n; i++) {
		const struct profile_sample *s = &q->samples.v[i];
		uint32_t frame = q->stacks.v[s->stack].frame;

		sums[s->event][s->thread % 64] -= s->value;
		counts[s->event] -= s->count;
		assert_int_equal(s->time_ns, 0);
		kept += s->stack && q->frames.v[frame].kind != FRAME_NOTE;
	}
	for (int e = 0; e < 3; e++) {
		assert_int_equal(counts[e], 0);
		for (int i = 0; i < 64; i++)
			assert_int_equal(sums[e][i], 0);
	}
	assert_true(kept > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_say_what_the_whole_says),
		cmocka_unit_test(a_short_capture_has_no_parts),
		cmocka_unit_test(a_coarse_profile_has_the_same_sums),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
