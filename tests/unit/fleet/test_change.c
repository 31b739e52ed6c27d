/* What changed in a fleet: made-up measurements, of which it is known. */
#include "test.h"

#include <math.h>

#include "base/sanitized.h"
#include "fleet/watch/change.h"
#include "random.h"

enum { FUNCTIONS = 40, TARGETS = 5, SLOTS = 36, UNITS = TARGETS * SLOTS };

struct made {
	uint32_t target[2][UNITS];
	double value[2][FUNCTIONS][UNITS], whole[2][UNITS];
	struct change_set set;
};

static struct random rng;

/* Samples of FUNCTIONS functions in ten minutes: the load of a node goes up and down from slot to slot, nodes have their own mix, and each
 * function its own noise that lasts. factor: how much slower function 3 is after. */
static void make(struct made *m, uint64_t seed, double factor, bool same_targets)
{
	struct change_set *s = &m->set;

	*s = (struct change_set){ 0 };
	rng.state = seed;
	for (int side = 0; side < 2; side++)
		for (size_t u = 0; u < UNITS; u++) {
			uint32_t t = u / SLOTS;
			double load = exp(0.4 * random_normal(&rng));

			m->target[side][u] = same_targets || !side ? t : TARGETS + t;
			m->whole[side][u] = 0;
			for (size_t f = 0; f < FUNCTIONS; f++) {
				double mix = 1 + 0.3 * sin((double)f * 7 + t * 3);
				double rate = 2000.0 / (f + 4) * mix * load * (side && f == 3 ? factor : 1) * exp(0.03 * random_normal(&rng));
				double count = fmax(0, round(rate + sqrt(rate) * random_normal(&rng)));

				m->value[side][f][u] = count * 1e7;
				m->whole[side][u] += count * 1e7;
			}
		}
	for (size_t f = 0; f < FUNCTIONS; f++) {
		struct change_row r = { .share = true, .noise = CHANGE_NOISE_CPU };

		for (int side = 0; side < 2; side++) {
			r.value[side] = m->value[side][f];
			r.whole[side] = m->whole[side];
			for (size_t u = 0; u < UNITS; u++)
				r.samples[side] += m->value[side][f][u] / 1e7;
		}
		vec_push(&s->rows, r);
	}
	for (int side = 0; side < 2; side++)
		s->side[side] = (struct change_side){ m->target[side], UNITS };
	change_compare(s);
}

static struct made m;

/* One function is a fifth slower: that one is found, and no other, although the share of each other went down. */
static void one_changed(void **state)
{
	unsigned rounds = SANITIZED ? 5 : 50, found = 0, others = 0;

	for (unsigned seed = 1; seed <= rounds; seed++) {
		make(&m, seed, 1.2, true);
		assert_true(m.set.paired);
		found += m.set.rows.v[3].significant;
		others += m.set.significant - m.set.rows.v[3].significant;
		assert_true(fabs(change_percent(&m.set.rows.v[3], m.set.rows.v[3].delta) - 20) < 5);
		assert_true(m.set.rows.v[3].low < m.set.rows.v[3].delta && m.set.rows.v[3].high > m.set.rows.v[3].delta);
		vec_done(&m.set.rows);
	}
	print_message("a fifth slower: found in %u of %u rounds, others %u\n", found, rounds, others);
	assert_int_equal(found, rounds);
	assert_true(others <= rounds / 50 + 1);
}

/* Nothing changed: at most one round in a hundred says so (a round that finds anything is a false discovery, all of it). */
static void none_changed(void **state)
{
	unsigned rounds = SANITIZED ? 10 : 200, wrong = 0;

	for (unsigned seed = 1; seed <= rounds; seed++) {
		make(&m, seed + 1000, 1, true);
		assert_int_equal(m.set.tested, FUNCTIONS);
		wrong += m.set.significant > 0;
		vec_done(&m.set.rows);
	}
	print_message("no change: %u of %u rounds found one\n", wrong, rounds);
	assert_true(wrong <= rounds / 100 + 1);
}

/* Other nodes after than before, each with its own mix: a canary. What differs by node is no change. */
static void other_nodes(void **state)
{
	unsigned rounds = SANITIZED ? 5 : 50, wrong = 0;

	for (unsigned seed = 1; seed <= rounds; seed++) {
		make(&m, seed, 1, false);
		assert_false(m.set.paired);
		wrong += m.set.significant > 0;
		vec_done(&m.set.rows);
	}
	print_message("other nodes, no change: %u of %u rounds found one\n", wrong, rounds);
	assert_true(wrong <= rounds / 100 + 1);
}

/* A figure that is no share, as the time of blocks; a side with too little; nothing at all. */
static void figures(void **state)
{
	static double time[2][UNITS], count[2][UNITS];
	uint32_t target[UNITS];
	struct change_set s = { .side = { { target, UNITS }, { target, UNITS } } };

	rng.state = 7;
	for (size_t u = 0; u < UNITS; u++) {
		target[u] = u / SLOTS;
		for (int side = 0; side < 2; side++) {
			count[side][u] = 50;
			time[side][u] = 50 * (side ? 2e8 : 1e8) * exp(0.1 * random_normal(&rng));
		}
	}
	vec_push(&s.rows, (struct change_row){ .value = { time[0], time[1] }, .whole = { count[0], count[1] }, .noise = CHANGE_NOISE_OTHER });
	vec_push(&s.rows, (struct change_row){ .value = { time[0], time[0] }, .whole = { count[0], count[1] }, .noise = CHANGE_NOISE_OTHER });
	change_compare(&s);
	assert_true(s.rows.v[0].significant && !s.rows.v[1].significant);
	assert_true(fabs(s.rows.v[0].a - 1e8) < 2e6 && fabs(change_percent(&s.rows.v[0], s.rows.v[0].delta) - 100) < 5);
	s.side[1].n = CHANGE_UNITS_MIN - 1;
	change_compare(&s);
	assert_int_equal(s.tested, 0);
	assert_int_equal(s.significant, 0);
	s.side[0].n = s.side[1].n = 0;
	change_compare(&s);
	assert_int_equal(s.significant, 0);
	vec_done(&s.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_changed),
		cmocka_unit_test(none_changed),
		cmocka_unit_test(other_nodes),
		cmocka_unit_test(figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
