/* test_restack.c - roots and groups: other stacks for a selection. The figures are those of sample.h. */
#include "test.h"

#include <errno.h>

#include "analyze/tree/restack.h"
#include "analyze/tree/top.h"
#include "base/err.h"
#include "exporting.h"

struct shaped {
	struct sample s;
	struct selection sel;
	struct top top;
};

static int apply(struct shaped *x, struct restack_options o, struct err *err)
{
	x->s = sample_make();
	assert_int_equal(selection_make(x->s.p, &(struct select_options){ 0 }, &x->sel, NULL), 0);
	return restack_apply(x->s.p, &x->sel, &o, err);
}

static void done(struct shaped *x)
{
	top_done(&x->top);
	selection_done(&x->sel);
	profile_free(x->s.p);
}

static void make(struct shaped *x, struct restack_options o)
{
	struct err err = { 0 };

	if (apply(x, o, &err))
		fail_msg("%s", err.text);
	top_build(&x->top, x->s.p, &x->sel, o.no_inline, TOP_BY_TOTAL);
}

#define GROUPS(...) .groups = (const char *const[]){ __VA_ARGS__, NULL }

static void check(const struct shaped *x, const char *name, uint64_t self, uint64_t total)
{
	size_t found = 0;

	for (size_t i = 0; i < x->top.functions.n; i++) {
		const struct top_row *row = &x->top.functions.v[i];

		if (strcmp(row->name, name))
			continue;
		found++;
		if (row->self.samples != self || row->total.samples != total)
			fail_msg("%s has %u and %u samples, not %u and %u", name, (unsigned)row->self.samples,
				 (unsigned)row->total.samples, (unsigned)self, (unsigned)total);
	}
	assert_int_equal(found, total ? 1 : 0);
}

static void shares_are_of_the_root(void **state)
{
	struct shaped x;

	make(&x, (struct restack_options){ .root = "^node::run$" });
	assert_int_equal(x.sel.all.samples, 1000);
	assert_int_equal(x.sel.outside.samples, 1000);
	assert_int_equal(x.sel.outside.value, 1000 * (uint64_t)SAMPLE_PERIOD_NS);
	check(&x, "node::run", 0, 1000);
	check(&x, "node::fib", 700, 700);
	check(&x, "ext4_file_write_iter", 300, 300);
	check(&x, "main", 0, 0);
	assert_int_equal(x.top.threads.n, 1);
	done(&x);
	/* The outermost of several that match. */
	make(&x, (struct restack_options){ .root = "fib" });
	assert_int_equal(x.sel.all.samples, 700);
	assert_int_equal(x.top.functions.n, 1);
	check(&x, "node::fib", 700, 700);
	done(&x);
}

/* The root is in the middle of a frame with three functions, and a frame of its own elsewhere. */
static void a_root_may_be_inlined(void **state)
{
	struct shaped x;

	make(&x, (struct restack_options){ .root = "HashBuilder::update" });
	assert_int_equal(x.sel.all.samples, 750);
	assert_int_equal(x.top.functions.n, 2);
	check(&x, "alloy_trie::HashBuilder::update", 250, 750);
	check(&x, "core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp", 500, 500);
	done(&x);
	make(&x, (struct restack_options){ .root = "HashBuilder::update", .no_inline = true });
	assert_int_equal(x.sel.all.samples, 250);
	done(&x);
}

static void groups_sum_under_a_name(void **state)
{
	struct shaped x;

	make(&x, (struct restack_options){ GROUPS("trie=_trie") });
	assert_int_equal(x.sel.all.samples, 2000);
	assert_int_equal(x.sel.outside.samples, 0);
	check(&x, "trie", 250, 750); /* calculate and what is inlined there are one frame */
	check(&x, "alloy_trie::HashBuilder::update", 0, 0);
	check(&x, "core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp", 500, 500);
	check(&x, "clone3", 0, 750);
	done(&x);
	/* Of the kernel and of the program; recursion is one frame. */
	make(&x, (struct restack_options){ GROUPS("w=write", "^node::(f|h)[a-z]*$") });
	check(&x, "w", 300, 300);
	check(&x, "f", 700, 700);
	check(&x, "h", 150, 150);
	done(&x);
	/* The first counts, and a regex without a name is its own. */
	make(&x, (struct restack_options){ GROUPS("fib", "all=node::") });
	check(&x, "fib", 700, 700);
	check(&x, "all", 200, 1200);
	done(&x);
	make(&x, (struct restack_options){ GROUPS("u=update"), .no_inline = true });
	check(&x, "u", 250, 250);
	check(&x, "reth_trie::state::StateRoot<T, H>::calculate", 500, 500);
	done(&x);
}

static void both_go_together(void **state)
{
	struct shaped x;

	make(&x, (struct restack_options){ .root = "^trie$", GROUPS("trie=_trie") });
	assert_int_equal(x.sel.all.samples, 750);
	assert_int_equal(x.top.functions.n, 2);
	check(&x, "trie", 250, 750);
	done(&x);
	make(&x, (struct restack_options){ .root = "node::run", GROUPS("F=fib") });
	check(&x, "node::run", 0, 1000);
	check(&x, "F", 700, 700);
	done(&x);
}

static void refused(struct restack_options o, int code, const char *sentence)
{
	struct err err = { 0 };
	struct shaped x = { 0 };

	assert_int_equal(apply(&x, o, &err), -code);
	if (!strstr(err.text, sentence))
		fail_msg("'%s' does not say '%s'", err.text, sentence);
	done(&x);
}

static void what_matches_nothing_is_an_error(void **state)
{
	struct sample s = sample_empty();
	struct selection sel;

	refused((struct restack_options){ .root = "nothing" }, ENODATA, "no function matches --root 'nothing'");
	refused((struct restack_options){ .root = "a(" }, EINVAL, "--root 'a(' is not a regular expression");
	refused((struct restack_options){ GROUPS("fib", "X=nothing") }, ENODATA,
		"--group 'X=nothing' matches no");
	refused((struct restack_options){ GROUPS("X=[") }, EINVAL, "is not a regular expression");
	/* Markers of cut stacks are no functions. */
	refused((struct restack_options){ .root = "no table" }, ENODATA, "no function matches");
	/* A recording without samples has nothing to match, and is no error. */
	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(restack_apply(s.p, &sel, &(struct restack_options){ .root = "x", GROUPS("y") }, NULL),
			 0);
	selection_done(&sel);
	profile_free(s.p);
}

static void deep_and_hostile(void **state)
{
	struct sample s = export_deep(4000);
	struct selection sel;

	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(restack_apply(s.p, &sel, &(struct restack_options){ GROUPS("one=recurse") }, NULL), 0);
	assert_int_equal(s.p->stacks.v[sel.entries.v[0].stack].parent, 0);
	selection_done(&sel);
	profile_free(s.p);
	s = export_hostile();
	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(
		restack_apply(s.p, &sel, &(struct restack_options){ .root = "script", GROUPS("(.).*") }, NULL),
		0);
	assert_int_equal(sel.all.samples, 10);
	selection_done(&sel);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_of_the_root),
		cmocka_unit_test(a_root_may_be_inlined),
		cmocka_unit_test(groups_sum_under_a_name),
		cmocka_unit_test(both_go_together),
		cmocka_unit_test(what_matches_nothing_is_an_error),
		cmocka_unit_test(deep_and_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
