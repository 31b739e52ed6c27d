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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_stay_and_times_are_fair),
		cmocka_unit_test(few_samples_stay_as_they_are),
		cmocka_unit_test(different_samples_are_all_kept),
		cmocka_unit_test(a_capture_says_how_many_were_joined),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
