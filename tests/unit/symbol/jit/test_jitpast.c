#include "test.h"

#include "elf/symbols.h"
#include "profile/profile.h"
#include "symbol/jit/jitpast.h"

static const uint64_t ms = 1000000;

static uint32_t named(struct profile *p, uint64_t address, const char *name)
{
	uint32_t frame = profile_frame(p, 0, FRAME_USER, address);
	struct profile_function f = { .name = profile_string(p, name) };
	struct profile_line line = { .function = profile_function(p, &f) };

	profile_set_lines(p, frame, &line, 1);
	return frame;
}

static const char *name_at(const struct profile *p, uint32_t stack)
{
	const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

	return profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);
}

static struct symbols_call call(const char *name, uint32_t at_ms)
{
	return (struct symbols_call){ .name = name, .linkage = "", .file = "", .line = at_ms };
}

/* A caller and its callee, both replaced, at times of their own: A, then B from 20 ms on; c, d from 10 on, c again from 30. */
static void by_time(void **state)
{
	static const struct {
		uint64_t time_ms;
		const char *outer, *inner;
	} want[] = { { 0, "A", "c" }, { 9, "A", "c" }, { 10, "A", "d" }, { 20, "B", "d" }, { 29, "B", "d" }, { 30, "B", "c" } };
	struct profile *p = profile_new();
	struct jitpast x = { 0 };
	uint32_t root, outer, inner, stack, alone;
	size_t frames;

	profile_add_module(p, &(struct profile_module){ .kind = MODULE_JIT });
	root = named(p, 0x10, "main");
	outer = named(p, 0x1000, "B");
	inner = named(p, 0x2000, "c");
	alone = profile_stack(p, 0, root);
	stack = profile_stack(p, profile_stack(p, alone, outer), inner);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		profile_add_sample(p, &(struct profile_sample){ .time_ns = want[i].time_ms * ms, .stack = stack });
		profile_add_wake(p, &(struct profile_wake){ .time_ns = want[i].time_ms * ms, .stack = alone, .waker_stack = stack });
	}
	frames = p->frames.n;
	jitpast_add(&x, p, outer, (struct symbols_call[]){ call("A", 5), call("B", 20) }, 2);
	jitpast_add(&x, p, inner, (struct symbols_call[]){ call("c", 0), call("d", 10), call("c", 30) }, 3);
	assert_int_equal(p->frames.n, frames + 2); /* A and d: the last ones are there */
	assert_true(jitpast_apply(&x, p));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		uint32_t now = p->samples.v[i].stack;

		assert_string_equal(name_at(p, now), want[i].inner);
		assert_string_equal(name_at(p, p->stacks.v[now].parent), want[i].outer);
		assert_int_equal(p->stacks.v[p->stacks.v[now].parent].parent, alone);
		assert_int_equal(p->wakes.v[i].stack, alone);
		assert_int_equal(p->wakes.v[i].waker_stack, now);
	}
	jitpast_done(&x);
	profile_free(p);
}

static void nothing_to_do(void **state)
{
	struct profile *p = profile_new();
	struct jitpast x = { 0 };

	profile_add_sample(p, &(struct profile_sample){ .stack = profile_stack(p, 0, named(p, 1, "f")) });
	assert_true(jitpast_apply(&x, p));
	assert_int_equal(p->replaced.n, 0);
	assert_int_equal(p->samples.v[0].stack, 1);
	jitpast_done(&x);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(by_time), cmocka_unit_test(nothing_to_do) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
