/* test_subsystems.c - the table of subsystems: its words, its file, and the functions of clients that it must
 * know. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "analyze/subsystem/subsystems.h"
#include "base/buf.h"
#include "base/err.h"
#include "clientnames.h"

/* --- names and words --- */

static void names_lose_their_arguments(void **state)
{
	static const char *const names[][2] = {
		{ "a::b<C, D<E>>::f", "a::b::f" },
		{ "<a::B<T> as c::D<E>>::f<G>", "<a::B as c::D>::f" },
		{ "a::f::<1usize, b::C>", "a::f" },
		{ "a::<impl b::C for d::E<F>>::g", "a::<impl b::C for d::E>::g" },
		{ "core::ptr::drop_in_place<reth_trie::Trie>", "core::ptr::drop_in_place" },
		{ "a::f<fn(b::C) -> d::E>::g", "a::f::g" },
		{ "rocksdb::DBImpl::Get(rocksdb::Slice const&)", "rocksdb::DBImpl::Get" },
		{ "a::operator()(int)", "a::operator()" },
		{ "x/core/vm.(*EVM).Run", "x/core/vm.(*EVM).Run" },
		{ "sync.(*Pool[go.shape.int]).Get", "sync.(*Pool).Get" },
		{ "a::f.llvm.123", "a::f" },
		{ "a::f.cold", "a::f" },
		{ "f<", "f" },
		{ "f>>)", "f>>)" },
		{ "", "" },
	};
	struct buf b = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		words_plain(names[i][0], &b);
		assert_string_equal(b.data, names[i][1]);
	}
	buf_done(&b);
}

static void words_match_at_edges(void **state)
{
	static const struct {
		const char *word, *name, *part; /* part: what {} holds; NULL = no match, "" = without one */
	} words[] = {
		{ "keccak256", "alloy::keccak256", "" },
		{ "keccak256", "alloy::keccak256_cached", NULL },
		{ "keccak256", "alloy::my_keccak256", NULL },
		{ "mdbx_*", "mdbx_get", "" },
		{ "mdbx_*", "libmdbx_get", NULL },
		{ "reth_trie*", "<x as reth_trie_db::T>::f", "" },
		{ "a::*::f", "a::b::c::f", "" },
		{ "a::*::f", "a::b::fg", NULL },
		{ "^free", "free", "" },
		{ "^free", "a::free", NULL },
		{ "^a::", "<&mut a::B>::f", "" },
		{ "^a::", "<a::B as c::D>::f", "" },
		{ "x.op{}$", "x.opSload", "Sload" },
		{ "x.op{}$", "x.opSload.func1", NULL },
		{ "i::*::{}$", "i::host::sload", "sload" },
		{ "i::*::{}$", "i::host::helpers::sload", NULL },
		{ "h::Op{}Handler", "<h::OpSLoadHandler as t::H>::eval", "SLoad" },
		{ "(*ecrecover).Run", "core/vm.(*ecrecover).Run", "" },
		{ "a*b*c", "a-b-b-c", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct words w = { 0 };
		struct words_match m;
		struct err err;
		bool found;

		assert_int_equal(words_add(&w, words[i].word, 7, &err), 0);
		found = words_find(&w, words[i].name, &m);
		assert_int_equal(found, words[i].part != NULL);
		if (found) {
			assert_int_equal(m.id, 7);
			assert_int_equal(m.to - m.from, strlen(words[i].part));
			assert_memory_equal(words[i].name + m.from, words[i].part, m.to - m.from);
		}
		words_done(&w);
	}
}

static void bad_words_are_refused(void **state)
{
	static const char *const words[] = { "",   "*",   "^",  "$",    "^$",     "{}",
		                             "*a", "{}a", "a{", "a{b}", "a{}b{}", "a*b*c*d*e*f*g*h*i*j" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct words w = { 0 };
		struct err err;

		assert_int_equal(words_add(&w, words[i], 0, &err), -EINVAL);
		assert_non_null(strstr(err.text, words[i]));
		words_done(&w);
	}
}

/* --- the file --- */

static struct subsystem_use use_of(struct subsystems *t, const char *name)
{
	return subsystems_of_name(t, name, "/usr/bin/node", false);
}

static const char *subsystem_of(struct subsystems *t, const char *name)
{
	return t->list.v[use_of(t, name).subsystem].name;
}

static void a_users_table_comes_first(void **state)
{
	static const char text[] =
		"# mine\n[my part]\nabout = what I do  # here\nfunction = my::  alloy_rlp::encode_list\n"
		"weak = my::tools::\n[EVM]\nopcode MYOP = my_op\n\n";
	struct subsystems t;
	struct err err;

	subsystems_init(&t);
	assert_int_equal(subsystems_add(&t, "mine.conf", text, &err), 0);
	subsystems_add_builtin(&t);
	assert_true(t.extended);
	assert_string_equal(subsystem_of(&t, "my::f"), "my part");
	assert_string_equal(subsystem_of(&t, "alloy_rlp::encode_list"), "my part");
	assert_string_equal(subsystem_of(&t, "alloy_rlp::decode"), "RLP and JSON");
	assert_string_equal(t.list.v[1].about, "what I do");
	assert_string_equal(subsystem_of(&t, "my_op"), "EVM");
	assert_string_equal(t.labels.v[use_of(&t, "my_op").label].name, "MYOP");
	assert_string_equal(subsystem_of(&t, "nobody::knows"), "other");
	subsystems_done(&t);
}

static void a_bad_table_says_where(void **state)
{
	static const char *const tables[][2] = {
		{ "function = a", "f:1: a [name] must come before 'function'" },
		{ "[a]\nfunction =", "f:2: nothing after = for 'function'" },
		{ "[a]\nfunctions = a", "f:2: keys are" },
		{ "[a\n", "f:1: no ]" },
		{ "[]", "f:1: a subsystem needs a name" },
		{ "[other]\nfunction = a", "f:1: other is what no pattern knows" },
		{ "[\033[31m]", "f:1: names of subsystems are" },
		{ "[a]\nnonsense", "f:2: neither [name] nor key = value" },
		{ "[a]\nfunction = b\nfunction = *", "f:3: '*': a word begins" },
		{ "[a]\nopcode = b", "f:2: {} must stand" },
		{ "[a]\nfunction = b{}", "f:2: {} is for opcode" },
		{ "[a]\ngeneral = no", "f:2: general can only be yes" },
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct subsystems t;
		struct err err;

		subsystems_init(&t);
		assert_int_equal(subsystems_add(&t, "f", tables[i][0], &err), -EINVAL);
		assert_memory_equal(err.text, tables[i][1], strlen(tables[i][1]));
		subsystems_done(&t);
	}
}

static void too_many_subsystems_are_refused(void **state)
{
	struct subsystems t;
	struct buf b = { 0 };
	struct err err;

	for (int i = 0; i < SUBSYSTEMS_MAX - 1; i++)
		buf_printf(&b, "[s%d]\nfunction = f%d\n", i, i);
	subsystems_init(&t);
	assert_int_equal(subsystems_add(&t, "f", b.data, &err), 0);
	subsystems_add_builtin(&t); /* there is no room: no harm */
	assert_string_equal(subsystem_of(&t, "f62"), "s62");
	subsystems_done(&t);
	buf_puts(&b, "[one more]\n");
	subsystems_init(&t);
	assert_int_equal(subsystems_add(&t, "f", b.data, &err), -EINVAL);
	subsystems_done(&t);
	buf_done(&b);
}

/* --- the built-in table --- */

static void clients_functions_have_their_subsystem(void **state)
{
	struct subsystems t;
	struct err err;

	subsystems_init(&t);
	/* The built-in table has no mistake: read as a user's it would be told. */
	subsystems_add_builtin(&t);
	assert_int_equal(subsystems_add(&t, "f", "[kernel]\nweak = the_table_was_read_to_its_end", &err), 0);
	assert_true(subsystems_find(&t, "kernel") > 0);
	assert_true(t.list.v[subsystems_find(&t, "kernel")].general);
	for (size_t i = 0; i < ARRAY_LEN(client_names); i++) {
		const struct client_name *n = &client_names[i];
		struct subsystem_use use = use_of(&t, n->function);

		if (strcmp(t.list.v[use.subsystem].name, n->subsystem) ||
		    strcmp(t.labels.v[use.label].name, n->label) || use.weak)
			fail_msg("%s (%s): %s is %s%s, '%s', not %s, '%s'", n->client, n->source, n->function,
			         t.list.v[use.subsystem].name, use.weak ? " (weak)" : "",
			         t.labels.v[use.label].name, n->subsystem, n->label);
	}
	subsystems_done(&t);
}

static void tools_are_weak(void **state)
{
	static const char *const tools[][2] = {
		{ "tokio::runtime::park::CachedParkThread::park", "runtime" },
		{ "core::ptr::drop_in_place<reth_trie::Trie>", "runtime" },
		{ "__memmove_avx512_unaligned_erms", "runtime" },
		{ "k256::ecdsa::recover", "sender recovery" },
		{ "rustsecp256k1_v0_11_ecdsa_recover", "sender recovery" },
		{ "runtime.mcall", "runtime" },
	};
	struct subsystems t;
	struct subsystem_use kernel;

	subsystems_init(&t);
	subsystems_add_builtin(&t);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		assert_string_equal(subsystem_of(&t, tools[i][0]), tools[i][1]);
		assert_true(use_of(&t, tools[i][0]).weak);
	}
	kernel = subsystems_of_name(&t, "mdbx_get", "[ext4]", true);
	assert_string_equal(t.list.v[kernel.subsystem].name, "kernel");
	assert_string_equal(
		t.list.v[subsystems_of_name(&t, "x", "/usr/lib/librocksdb.so.9", false).subsystem].name,
		"database reads");
	assert_string_equal(subsystem_of(&t, "_rjem_malloc"), "allocator");
	assert_false(use_of(&t, "_rjem_malloc").weak);
	subsystems_done(&t);
}

static void keys_are_plain(void **state)
{
	char *key = subsystem_key("RLP and JSON");

	assert_string_equal(key, "rlp_and_json");
	free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lose_their_arguments),
		cmocka_unit_test(words_match_at_edges),
		cmocka_unit_test(bad_words_are_refused),
		cmocka_unit_test(a_users_table_comes_first),
		cmocka_unit_test(a_bad_table_says_where),
		cmocka_unit_test(too_many_subsystems_are_refused),
		cmocka_unit_test(clients_functions_have_their_subsystem),
		cmocka_unit_test(tools_are_weak),
		cmocka_unit_test(keys_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
