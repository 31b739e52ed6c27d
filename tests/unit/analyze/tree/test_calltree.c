#include "test.h"

#include "analyze/tree/calltree.h"
#include "base/clock.h"
#include "sample.h"

static struct calltree build(struct sample *s, struct calltree_options o)
{
	struct selection sel;
	struct calltree t;

	assert_int_equal(selection_make(s->p, &(struct select_options){ 0 }, &sel, NULL), 0);
	calltree_build(&t, s->p, &sel, &o);
	assert_int_equal(t.nodes.v[0].total.samples, sel.all.samples);
	assert_int_equal(t.nodes.v[0].total.value, sel.all.value);
	selection_done(&sel);
	return t;
}

/* The node at a path of names; fails the test if there is none. */
static const struct calltree_node *at(const struct calltree *t, const char *const *names)
{
	uint32_t node = 0;

	for (; *names; names++) {
		node = t->nodes.v[node].first_child;
		while (node != CALLTREE_NONE && strcmp(calltree_ident(t, node)->name, *names))
			node = t->nodes.v[node].next_sibling;
		if (node == CALLTREE_NONE)
			fail_msg("no node %s", *names);
	}
	return &t->nodes.v[node];
}

#define AT(t, ...) at(t, (const char *const[]){ __VA_ARGS__, NULL })

static void stacks_merge_from_the_root(void **state)
{
	struct sample s = sample_make();
	struct calltree t = build(&s, (struct calltree_options){ 0 });

	assert_int_equal(AT(&t, "_start")->total.samples, 1200);
	assert_int_equal(AT(&t, "_start", "main")->self.samples, 50);
	assert_int_equal(AT(&t, "_start", "main", "node::run", "node::fib")->self.samples, 100);
	assert_int_equal(AT(&t, "_start", "main", "node::run", "node::fib")->total.samples, 700);
	assert_int_equal(AT(&t, "_start", "main", "node::run", "node::fib")->total.value,
			 700ULL * SAMPLE_PERIOD_NS);
	assert_int_equal(
		AT(&t, "[truncated: no table]", "libstripped.so+0x1230", "node::callback")->self.samples, 50);
	calltree_done(&t);
	profile_free(s.p);
}

static void inlined_calls_are_frames(void **state)
{
	const char *state_root = "reth_trie::state::StateRoot<T, H>::calculate";
	const char *call_once = "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once";
	struct sample s = sample_make();
	struct calltree t = build(&s, (struct calltree_options){ 0 });

	assert_false(AT(&t, "clone3", "start_thread", call_once, state_root)->inlined);
	assert_int_equal(AT(&t, "clone3", "start_thread", call_once, state_root)->self.samples, 0);
	assert_true(AT(&t, "clone3", "start_thread", call_once, state_root, "alloy_trie::HashBuilder::update")
			    ->inlined);
	calltree_done(&t);
	t = build(&s, (struct calltree_options){ .no_inline = true });
	assert_int_equal(AT(&t, "clone3", "start_thread", call_once, state_root)->self.samples, 500);
	assert_int_equal(AT(&t, "clone3", "start_thread", call_once, state_root)->first_child, CALLTREE_NONE);
	calltree_done(&t);
	profile_free(s.p);
}

static void a_root_for_each_thread_or_process(void **state)
{
	struct sample s = sample_make();
	struct calltree t;

	sample_add(&s, builder_thread(s.p, 0, 102, "worker 1"), sample_stack(&s, "clone3"), 7);
	t = build(&s, (struct calltree_options){ .group = CALLTREE_BY_NAME });
	assert_int_equal(AT(&t, "worker 1")->total.samples, 807);
	assert_int_equal(AT(&t, "helper", "_start", "main", "node::help")->self.samples, 150);
	calltree_done(&t);
	t = build(&s, (struct calltree_options){ .group = CALLTREE_BY_THREAD });
	assert_int_equal(AT(&t, "worker 1/102", "clone3")->self.samples, 7);
	assert_int_equal(AT(&t, "worker 1/101")->total.samples, 800);
	calltree_done(&t);
	t = build(&s, (struct calltree_options){ .group = CALLTREE_BY_PROCESS });
	assert_int_equal(AT(&t, "node/100")->total.samples, 1857);
	assert_int_equal(AT(&t, "helper/200")->total.samples, 150);
	calltree_done(&t);
	profile_free(s.p);
}

static void reversed_stacks_begin_with_the_leaf(void **state)
{
	struct sample s = sample_make();
	struct calltree t =
		build(&s, (struct calltree_options){ .reverse = true, .group = CALLTREE_BY_NAME });

	assert_int_equal(AT(&t, "node::fib")->total.samples, 700);
	assert_int_equal(AT(&t, "node::fib", "node::run", "main", "_start", "main")->self.samples, 100);
	assert_int_equal(AT(&t, "core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp",
			    "alloy_trie::HashBuilder::update")->total.samples, 500);
	calltree_done(&t);
	profile_free(s.p);
}

static void siblings_are_in_the_order_of_their_names(void **state)
{
	struct sample s = sample_empty();
	struct calltree t;
	uint32_t i;

	sample_add(&s, s.main, sample_stack(&s, "b"), 1);
	sample_add(&s, s.main, sample_stack(&s, "a::b"), 2);
	sample_add(&s, s.main, sample_stack(&s, "Z"), 3);
	sample_add(&s, s.main, sample_stack(&s, "a"), 4);
	t = build(&s, (struct calltree_options){ 0 });
	i = calltree_next(&t, 0);
	assert_string_equal(calltree_ident(&t, i)->name, "Z");
	i = calltree_next(&t, i);
	assert_string_equal(calltree_ident(&t, i)->name, "a");
	i = calltree_next(&t, i);
	assert_string_equal(calltree_ident(&t, i)->name, "a::b");
	i = calltree_next(&t, i);
	assert_string_equal(calltree_ident(&t, i)->name, "b");
	assert_int_equal(calltree_next(&t, i), CALLTREE_NONE);
	calltree_done(&t);
	profile_free(s.p);
}

static void one_name_in_two_modules_is_two_functions(void **state)
{
	struct sample s = sample_empty();
	struct calltree t;

	sample_add(&s, s.main, sample_stack(&s, "init"), 1);
	sample_add(&s, s.main, sample_stack(&s, "l:init"), 2);
	t = build(&s, (struct calltree_options){ 0 });
	assert_int_equal(t.nodes.n, 3);
	calltree_done(&t);
	t = build(&s, (struct calltree_options){ .names_only = true });
	assert_int_equal(t.nodes.n, 2);
	assert_int_equal(AT(&t, "init")->self.samples, 3);
	calltree_done(&t);
	profile_free(s.p);
}

static void samples_without_a_stack_keep_their_weight(void **state)
{
	struct sample s = sample_empty();
	struct calltree t;

	sample_add(&s, s.main, 0, 5);
	t = build(&s, (struct calltree_options){ 0 });
	assert_int_equal(AT(&t, "[no stack]")->self.samples, 5);
	calltree_done(&t);
	t = build(&s, (struct calltree_options){ .group = CALLTREE_BY_NAME, .reverse = true });
	assert_int_equal(AT(&t, "[no stack]", "main")->self.samples, 5);
	calltree_done(&t);
	profile_free(s.p);
}

/* 120,000 samples on 100,000 stack nodes must be a matter of milliseconds. The limit is generous for
 * slow machines and sanitizers: what it finds is a cost that is not linear. */
static void large_profiles_are_fast(void **state)
{
	struct sample s = sample_empty();
	uint32_t functions[2000], leaves[4000], random = 1;
	struct calltree t;
	uint64_t start_ns;
	char name[64];
	size_t n = 0;

	for (size_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "crate%zu::module::function%zu", i % 40, i);
		functions[i] = profile_named_frame(s.p, s.node, FRAME_USER, name);
	}
	while (s.p->stacks.n < 100000) {
		uint32_t stack = 0;

		for (size_t depth = 0; depth < 40; depth++) {
			random = random * 1664525 + 1013904223;
			stack = profile_stack(s.p, stack, functions[(random >> 16) % (depth < 5 ? 4 : 2000)]);
		}
		leaves[n++ % 4000] = stack;
	}
	assert_true(n >= 2000 && n <= 4000);
	for (size_t i = 0; i < 120000; i++)
		sample_add(&s, i & 1 ? s.main : s.worker, leaves[i % n], 1);
	start_ns = clock_process_cpu_ns();
	t = build(&s, (struct calltree_options){ .group = CALLTREE_BY_NAME });
	print_message("%zu samples, %zu stacks -> %zu nodes: %.1f ms of CPU time\n", s.p->samples.n,
		      s.p->stacks.n, t.nodes.n, (clock_process_cpu_ns() - start_ns) / 1e6);
	assert_true(clock_process_cpu_ns() - start_ns < 3000000000);
	calltree_done(&t);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_merge_from_the_root),
		cmocka_unit_test(inlined_calls_are_frames),
		cmocka_unit_test(a_root_for_each_thread_or_process),
		cmocka_unit_test(reversed_stacks_begin_with_the_leaf),
		cmocka_unit_test(siblings_are_in_the_order_of_their_names),
		cmocka_unit_test(one_name_in_two_modules_is_two_functions),
		cmocka_unit_test(samples_without_a_stack_keep_their_weight),
		cmocka_unit_test(large_profiles_are_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
