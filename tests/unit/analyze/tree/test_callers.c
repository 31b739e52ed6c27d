/* test_callers.c - who calls, what is called, shares by crate, nearest own. The figures are those of
 * sample.h. */
#include "test.h"

#include <errno.h>

#include "analyze/tree/callers.h"
#include "analyze/tree/share.h"
#include "base/err.h"
#include "exporting.h"

struct fixture {
	struct sample s;
	struct selection sel;
	struct calltree tree;
};

static void make(struct fixture *f, struct sample s)
{
	f->s = s;
	assert_int_equal(selection_make(f->s.p, &(struct select_options){ 0 }, &f->sel, NULL), 0);
	calltree_build(&f->tree, f->s.p, &f->sel, &(struct calltree_options){ 0 });
}

static void done(struct fixture *f)
{
	calltree_done(&f->tree);
	selection_done(&f->sel);
	profile_free(f->s.p);
}

/* The tree as text, "name total/self" with a > for each level. */
static char *text_of(const struct callers *c)
{
	struct buf b = { 0 };

	for (uint32_t i = 0; i != CALLTREE_NONE; i = callers_next(c, i)) {
		for (uint32_t k = 0; k < c->nodes.v[i].depth; k++)
			buf_putc(&b, '>');
		buf_printf(&b, "%s %u/%u\n", callers_ident(c, i)->name, (unsigned)c->nodes.v[i].total.samples,
			   (unsigned)c->nodes.v[i].self.samples);
	}
	return b.data;
}

static void check(struct fixture *f, enum callers_way way, const char *pattern, unsigned matched,
		  unsigned self, const char *expected)
{
	struct callers c;
	struct err err = { 0 };
	char *text;

	if (callers_build(&c, &f->tree, way, pattern, &err))
		fail_msg("%s", err.text);
	text = text_of(&c);
	if (strcmp(text, expected))
		fail_msg("%s gives\n%s", pattern ?: "all", text);
	assert_int_equal(c.matched, matched);
	assert_int_equal(c.self.samples, self);
	free(text);
	callers_done(&c);
}

static void callers_of_a_function(void **state)
{
	struct fixture f;

	make(&f, sample_make());
	check(&f, CALLERS_OF, "HashBuilder::update", 1, 250,
	      "alloy_trie::HashBuilder::update 750/0\n"
	      ">reth_trie::state::StateRoot<T, H>::calculate 500/0\n"
	      ">><alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once 500/0\n"
	      ">>>start_thread 500/0\n"
	      ">>>>clone3 500/500\n"
	      ">start_thread 250/0\n"
	      ">>clone3 250/250\n");
	/* Recursion counts once. */
	check(&f, CALLERS_OF, "^node::fib$", 1, 700,
	      "node::fib 700/0\n>node::run 700/0\n>>main 700/0\n>>>_start 700/700\n");
	/* The outermost: begins a stack. */
	check(&f, CALLERS_OF, "^_start$", 1, 0, "_start 1200/1200\n");
	/* Several functions are one. */
	check(&f, CALLERS_OF, "ksys_write|^write$", 2, 0,
	      "write 300/0\n>node::run 300/0\n>>main 300/0\n>>>_start 300/300\n");
	done(&f);
}

static void callees_of_a_function(void **state)
{
	struct fixture f;

	make(&f, sample_make());
	check(&f, CALLEES_OF, "^node::run$", 1, 0,
	      "node::run 1000/0\n"
	      ">node::fib 700/100\n"
	      ">>node::fib 600/0\n"
	      ">>>node::fib 600/600\n"
	      ">write 300/0\n"
	      ">>entry_SYSCALL_64 300/0\n"
	      ">>>ksys_write 300/0\n"
	      ">>>>ext4_file_write_iter 300/300\n");
	check(&f, CALLEES_OF, "HashBuilder::update", 1, 250,
	      "alloy_trie::HashBuilder::update 750/250\n"
	      ">core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp 500/500\n");
	check(&f, CALLEES_OF, "node::f|node::h", 2, 850,
	      "node::fib 850/250\n>node::fib 600/0\n>>node::fib 600/600\n");
	done(&f);
}

static void the_whole_tree_by_weight(void **state)
{
	struct fixture f;

	make(&f, sample_make());
	check(&f, CALLERS_ALL, NULL, 1, 0,
	      "all 2000/0\n"
	      ">_start 1200/0\n"
	      ">>main 1200/50\n"
	      ">>>node::run 1000/0\n"
	      ">>>>node::fib 700/100\n"
	      ">>>>>node::fib 600/0\n"
	      ">>>>>>node::fib 600/600\n"
	      ">>>>write 300/0\n"
	      ">>>>>entry_SYSCALL_64 300/0\n"
	      ">>>>>>ksys_write 300/0\n"
	      ">>>>>>>ext4_file_write_iter 300/300\n"
	      ">>>node::help 150/150\n"
	      ">clone3 750/0\n"
	      ">>start_thread 750/0\n"
	      ">>><alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once 500/0\n"
	      ">>>>reth_trie::state::StateRoot<T, H>::calculate 500/0\n"
	      ">>>>>alloy_trie::HashBuilder::update 500/0\n"
	      ">>>>>>core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp 500/500\n"
	      ">>>alloy_trie::HashBuilder::update 250/250\n"
	      ">[truncated: no table] 50/0\n"
	      ">>libstripped.so+0x1230 50/0\n"
	      ">>>node::callback 50/50\n");
	done(&f);
}

static void odd_patterns(void **state)
{
	struct fixture f;
	struct callers c;
	struct err err;

	make(&f, sample_make());
	assert_int_equal(callers_build(&c, &f.tree, CALLERS_OF, "nothing", &err), -ENODATA);
	assert_non_null(strstr(err.text, "--callers 'nothing' matches no function here"));
	callers_done(&c);
	assert_int_equal(callers_build(&c, &f.tree, CALLEES_OF, "a(", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--callees 'a(' is not a regular expression"));
	callers_done(&c);
	/* Neither the root nor a marker. */
	assert_int_equal(callers_build(&c, &f.tree, CALLERS_OF, "^all$|truncated", &err), -ENODATA);
	callers_done(&c);
	check(&f, CALLERS_OF, "libstripped", 1, 0,
	      "libstripped.so+0x1230 50/0\n>[truncated: no table] 50/50\n");
	done(&f);
	make(&f, export_deep(4000));
	assert_int_equal(callers_build(&c, &f.tree, CALLEES_OF, "recurse", &err), 0);
	assert_int_equal(c.nodes.n, 4000);
	assert_int_equal(c.nodes.v[0].total.samples, 3);
	callers_done(&c);
	done(&f);
}

/* --- crates --- */

static const struct share_row *crate(const struct shares *s, const char *name)
{
	for (size_t i = 0; i < s->crates.n; i++)
		if (!strcmp(s->crates.v[i].name, name))
			return &s->crates.v[i];
	fail_msg("no crate %s", name);
	return NULL;
}

static void check_crate(const struct shares *s, const char *name, enum code_kind kind, unsigned self,
			unsigned total, unsigned outermost, unsigned nearest)
{
	const struct share_row *row = crate(s, name);

	if (row->kind != kind || row->self.samples != self || row->total.samples != total ||
	    row->outermost.samples != outermost || row->nearest.samples != nearest)
		fail_msg("%s is %s: %u %u %u %u", name, code_kind_key(row->kind), (unsigned)row->self.samples,
			 (unsigned)row->total.samples, (unsigned)row->outermost.samples,
			 (unsigned)row->nearest.samples);
}

static void shares_by_crate(void **state)
{
	static const char *const own[] = { "*_trie", "node", NULL };
	struct fixture f;
	struct shares s;

	make(&f, sample_make());
	shares_build(&s, &f.tree, NULL);
	check_crate(&s, "node", CODE_OWN, 950, 2000, 1200, 1200);
	check_crate(&s, "core", CODE_STD, 500, 500, 0, 0);
	check_crate(&s, "[kernel]", CODE_KERNEL, 300, 300, 0, 0);
	check_crate(&s, "alloy_trie", CODE_DEPENDENCY, 250, 750, 0, 0);
	check_crate(&s, "alloc", CODE_STD, 0, 500, 0, 0);
	check_crate(&s, "reth_trie", CODE_DEPENDENCY, 0, 500, 0, 0);
	assert_int_equal(s.no_own.samples, 800);
	assert_int_equal(s.all.samples, 2000);
	assert_true(s.rust);
	shares_done(&s);
	shares_build(&s, &f.tree, own);
	check_crate(&s, "alloy_trie", CODE_OWN, 250, 750, 250, 750);
	check_crate(&s, "reth_trie", CODE_OWN, 0, 500, 500, 0);
	/* The program's C functions are in a file of that name: that the user's, too. */
	check_crate(&s, "node", CODE_OWN, 950, 2000, 1250, 1250);
	assert_int_equal(s.no_own.samples, 0);
	shares_done(&s);
	done(&f);
}

static void nearest_own_callers(void **state)
{
	static const char *const own[] = { "*_trie", NULL };
	struct share_callers c;
	struct crates names;
	struct fixture f;
	struct err err;

	make(&f, sample_make());
	crates_init(&names, f.s.p, own);
	assert_int_equal(share_callers_build(&c, &names, &f.tree, "slice::cmp|ext4_", &err), 0);
	assert_int_equal(c.matched, 2);
	assert_int_equal(c.total.samples, 800);
	assert_int_equal(c.rows.n, 2);
	assert_string_equal(f.tree.idents.list.v[c.rows.v[0].ident].name, "alloy_trie::HashBuilder::update");
	assert_string_equal(c.rows.v[0].crate, "alloy_trie");
	assert_int_equal(c.rows.v[0].weight.samples, 500);
	assert_int_equal(c.rows.v[1].ident, PROFILE_NONE);
	assert_int_equal(c.rows.v[1].weight.samples, 300);
	share_callers_done(&c);
	/* A function of one's own: the next one above it. */
	assert_int_equal(share_callers_build(&c, &names, &f.tree, "HashBuilder", &err), 0);
	assert_int_equal(c.rows.n, 2);
	assert_string_equal(c.rows.v[0].crate, "reth_trie");
	assert_int_equal(c.rows.v[0].weight.samples, 500);
	assert_int_equal(c.rows.v[1].weight.samples, 250);
	share_callers_done(&c);
	assert_int_equal(share_callers_build(&c, &names, &f.tree, "nothing", &err), -ENODATA);
	share_callers_done(&c);
	crates_done(&names);
	done(&f);
}

static void nothing_is_no_harm(void **state)
{
	struct fixture f;
	struct callers c;
	struct shares s;
	struct err err;

	make(&f, (struct sample){ .p = profile_new() });
	assert_int_equal(callers_build(&c, &f.tree, CALLERS_ALL, NULL, &err), 0);
	assert_int_equal(callers_next(&c, 0), CALLTREE_NONE);
	callers_done(&c);
	shares_build(&s, &f.tree, NULL);
	assert_int_equal(s.crates.n, 0);
	shares_done(&s);
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_of_a_function),
		cmocka_unit_test(callees_of_a_function),
		cmocka_unit_test(the_whole_tree_by_weight),
		cmocka_unit_test(odd_patterns),
		cmocka_unit_test(shares_by_crate),
		cmocka_unit_test(nearest_own_callers),
		cmocka_unit_test(nothing_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
