#include "profiles.h"

#include "base/map.h"
#include "capture/scan/joining.h"
#include "profile/keys.h"

enum { ROWS = 200000, MOST = 4000, STACKS = 500, THREADS = 3, SECOND = 100 };

/* Sums of a profile's samples by event, thread and stack, and by event and hundredth of the time. */
struct sums {
	uint64_t values[2][THREADS][STACKS], counts[2][THREADS][STACKS];
	double times[2][SECOND];
	size_t longest; /* samples above LONG_NS */
};

enum { LONG_NS = 50000000 };

static struct sums *sums_of(const struct profile *p)
{
	struct sums *s = mem_alloc(sizeof(*s));

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *x = &p->samples.v[i];

		s->values[x->event][x->thread][x->stack] += x->value;
		s->counts[x->event][x->thread][x->stack] += x->count ?: 1;
		s->times[x->event][x->time_ns / (ROWS / SECOND)] += x->value;
		s->longest += x->value == LONG_NS;
	}
	return s;
}

/* A busy first half, and an event that is steady; half of all is of one stack. */
static struct profile *make(void)
{
	struct profile *p = profile_new();

	profile_add_event(p, "cpu", "ns", "", 1000);
	profile_add_event(p, "wait", "ns", "", 0);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct profile_sample x = { .time_ns = i, .thread = i * 7919u % THREADS, .event = i % 2, .value = 1000,
					    .stack = i % 4 < 2 ? 1 : map_hash(i) % STACKS };

		if (x.event)
			x.value = i % 20002 == 1 ? LONG_NS : i < ROWS / 2 ? 3000 : 1000;
		profile_add_sample(p, &x);
	}
	return p;
}

static struct profile *join(const struct profile *from, size_t most)
{
	struct profile *p = profile_new();
	struct joining j;

	profile_add_event(p, "cpu", "ns", "", 1000);
	profile_add_event(p, "wait", "ns", "", 0);
	joining_init(&j, p, most);
	for (size_t i = 0; i < from->samples.n; i++)
		joining_add(&j, &from->samples.v[i]);
	joining_finish(&j);
	assert_int_equal(j.joined + p->samples.n, from->samples.n);
	joining_done(&j);
	return p;
}

static void sums_stay_and_times_are_fair(void **state)
{
	_cleanup_(profile_freep) struct profile *p = make(), *q = join(p, MOST);
	_cleanup_free_ struct sums *a = sums_of(p), *b = sums_of(q);

	assert_true(q->samples.n <= MOST);
	assert_memory_equal(a->values, b->values, sizeof(a->values));
	assert_memory_equal(a->counts, b->counts, sizeof(a->counts));
	assert_int_equal(a->longest, b->longest);
	assert_true(a->longest > 5);
	/* A tenth of the time has some hundred samples of each event. Long waits are where they were. */
	for (int event = 0; event < 2; event++)
		for (int i = 0; i < SECOND; i += 10) {
			double before = 0, after = 0;

			for (int k = i; k < i + 10; k++) {
				before += a->times[event][k];
				after += b->times[event][k];
			}
			assert_true(after > before * 0.6 && after < before * 1.4);
		}
}

static void few_samples_stay_as_they_are(void **state)
{
	_cleanup_(profile_freep) struct profile *p = make(), *q = join(p, ROWS), *all = join(p, 0);

	assert_int_equal(q->samples.n, ROWS);
	assert_memory_equal(q->samples.v, p->samples.v, ROWS * sizeof(*p->samples.v));
	assert_memory_equal(all->samples.v, p->samples.v, ROWS * sizeof(*p->samples.v));
}

/* What has no like cannot be joined: the limit gives way. */
static void different_samples_are_all_kept(void **state)
{
	_cleanup_(profile_freep) struct profile *p = make(), *q = NULL;

	for (uint32_t i = 0; i < ROWS; i++)
		p->samples.v[i].stack = i;
	q = join(p, MOST);
	assert_int_equal(q->samples.n, ROWS);
}

/* Counts the samples of from that are within [from_ns, to_ns], or reach into it, and checks that p has them as they are. */
static size_t expect_kept(const struct profile *from, const struct profile *p, uint64_t from_ns, uint64_t to_ns)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < from->samples.n; i++) {
		const struct profile_sample *x = &from->samples.v[i];

		if (x->time_ns > to_ns || x->time_ns + x->value < from_ns)
			continue;
		while (at < p->samples.n && memcmp(&p->samples.v[at], x, sizeof(*x)))
			at++;
		assert_true(at < p->samples.n);
		n++;
	}
	return n;
}

static void samples_of_spans_stay(void **state)
{
	/* Given in any order, and two that are one. */
	static const struct joining_span spans[] = { { 150000, 160000 }, { 20000, 25000 }, { 24000, 30000 } };
	_cleanup_(profile_freep) struct profile *p = make(), *q = profile_new();
	_cleanup_free_ struct sums *a = sums_of(p), *b = NULL;
	struct joining j;
	size_t kept;

	profile_add_event(q, "cpu", "ns", "", 1000);
	profile_add_event(q, "wait", "ns", "", 0);
	joining_init(&j, q, MOST);
	joining_keep(&j, spans, ARRAY_LEN(spans));
	for (size_t i = 0; i < p->samples.n; i++)
		joining_add(&j, &p->samples.v[i]);
	joining_finish(&j);
	kept = expect_kept(p, q, 20000, 30000) + expect_kept(p, q, 150000, 160000);
	assert_true(kept >= 20000);
	assert_true(j.kept <= kept && j.kept + MOST >= q->samples.n);
	assert_true(j.joined > ROWS / 2);
	joining_done(&j);
	b = sums_of(q);
	assert_memory_equal(a->values, b->values, sizeof(a->values));
	assert_memory_equal(a->counts, b->counts, sizeof(a->counts));
}

static void a_capture_says_how_many_were_joined(void **state)
{
	_cleanup_free_ char *path = in_folder("joined");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *all = NULL;
	size_t n = p->samples.n;
	struct err err;

	for (size_t i = 0; i < 50 * n; i++)
		profile_add_sample(p, &(struct profile_sample){ .stack = p->samples.v[i % n].stack, .time_ns = i, .value = 7 });
	save(p, path);
	assert_int_equal(capture_read_most(path, 4 * n, &q, &err), 0);
	assert_true(q->samples.n <= 4 * n);
	assert_int_equal(q->samples.n + profile_counter(q, KEY_CAPTURE_JOINED), 51 * n);
	all = load(path);
	assert_int_equal(all->samples.n, 51 * n);
	assert_int_equal(profile_counter(all, KEY_CAPTURE_JOINED), 0);
}

enum { EACH_NS = 10000000, BEGIN_NS = 1000000000, VALUE = 7777 };

/* Samples of that value in the second second. */
static size_t within(const struct profile *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *x = &p->samples.v[i];

		n += x->value == VALUE && x->time_ns >= BEGIN_NS && x->time_ns <= 2ULL * BEGIN_NS;
	}
	return n;
}

static void a_capture_keeps_blocks(void **state)
{
	_cleanup_free_ char *path = in_folder("blocks");
	_cleanup_(profile_freep) struct profile *p = make_profile(&small), *q = NULL, *span = NULL, *none = NULL;
	size_t n = p->samples.n;
	struct err err;

	for (uint64_t i = 0; i < 100 * n + 400; i++)
		profile_add_sample(p, &(struct profile_sample){ .stack = p->samples.v[i % n].stack, .time_ns = i * EACH_NS,
								.value = VALUE });
	profile_add_mark(p, &(struct profile_mark){ .start_ns = BEGIN_NS, .end_ns = 2ULL * BEGIN_NS,
						    .name = profile_string(p, "block 1"), .kind = profile_string(p, "block"),
						    .thread = PROFILE_NONE });
	save(p, path);
	assert_int_equal(capture_read_blocks(path, 4 * n, &q, &err), 0);
	assert_int_equal(within(q), BEGIN_NS / EACH_NS + 1);
	assert_int_equal(q->samples.n + profile_counter(q, KEY_CAPTURE_JOINED), p->samples.n);
	assert_true(profile_counter(q, KEY_CAPTURE_JOINED) > 0);
	/* Of a time that somebody names, too; and without a name all are joined. */
	assert_int_equal(capture_read_span(path, 4 * n, &(struct capture_span){ BEGIN_NS, 2ULL * BEGIN_NS }, &span, &err), 0);
	assert_int_equal(within(span), BEGIN_NS / EACH_NS + 1);
	assert_true(profile_counter(span, KEY_CAPTURE_JOINED) > 0);
	assert_int_equal(capture_read_span(path, 4 * n, NULL, &none, &err), 0);
	assert_true(within(none) < BEGIN_NS / EACH_NS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_stay_and_times_are_fair),
		cmocka_unit_test(few_samples_stay_as_they_are),
		cmocka_unit_test(different_samples_are_all_kept),
		cmocka_unit_test(samples_of_spans_stay),
		cmocka_unit_test(a_capture_says_how_many_were_joined),
		cmocka_unit_test(a_capture_keeps_blocks),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
