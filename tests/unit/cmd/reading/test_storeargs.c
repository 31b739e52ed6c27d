#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/storeargs.h"
#include "fleet/storeurl.h"

const struct command_group command_groups[] = { { 0 } };

/* The tables that commands have: one with times of the recording and a base, as diff, and one without, as blocks. */
struct values {
	struct store_choice store;
	struct store_base base;
	struct option_moment from, to;
};

static const struct command command = { .name = "try" };

static int complete_with(struct values *v, bool diff, char **files, int n, struct command_operands *ret, struct err *err)
{
	const struct option_spec options[] = {
		STORE_OPTIONS(&v->store),
		{ 0, "from", OPTION_MOMENT, &v->from, "TIME", "" },
		{ 0, "to", OPTION_MOMENT, &v->to, "TIME", "" },
		{ 0, diff ? "base-target" : "none", OPTION_STRING, &v->base.target, "NAME", "" },
		{ 0, diff ? "base-release" : "none", OPTION_STRING, &v->base.release, "NAME", "" },
		{ 0, diff ? "base-from" : "none", OPTION_STRING, &v->base.from, "TIME", "" },
		{ 0, diff ? "base-to" : "none", OPTION_STRING, &v->base.to, "TIME", "" },
		{ 0 },
	};

	*ret = (struct command_operands){ files, n };
	*err = (struct err){ 0 };
	return storeargs_complete(&command, options, ret, err);
}

/* The last operands are those of this call: the list lives as long as the program. */
static const char *operand(const struct command_operands *o, int from_end)
{
	return o->v[o->n - from_end];
}

static void without_a_store(void **state)
{
	struct command_operands o;
	struct values v = { 0 };
	struct err err;
	char *files[] = { "a.gasflame", NULL };

	unsetenv("GASFLAME_STORE");
	assert_int_equal(complete_with(&v, false, files, 1, &o, &err), 0);
	assert_int_equal(o.n, 1);
	assert_ptr_equal(o.v, files);
	v.from = (struct option_moment){ "12.5", 12500000000 };
	assert_int_equal(complete_with(&v, false, files, 1, &o, &err), 0);
	assert_int_equal(v.from.ns, 12500000000);
	v.from.text = "2026-11-17 10:00";
	assert_int_equal(complete_with(&v, false, files, 1, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--from wants a time of the recording"));
	v = (struct values){ .store.target = "reth-1" };
	assert_int_equal(complete_with(&v, false, files, 1, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "GASFLAME_STORE"));
}

/* Whatever a name is made of, the address gives it back, and nothing else. */
static void names_come_back(void **state)
{
	static const char *const names[] = { "reth-1", "../../etc/passwd", "a&from=-1h", "it's \"x\"; drop table samples; --", "<b>&amp;#", "100% größe",
					     "\x1b[31m", "a?b=c#d", "*", "a,b@c:d/e", "\\" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct storeargs_place place = { .target = names[i], .release = names[i], .from = "100", .to = "2026-11-17T10:00:30Z", .exact = true };
		_cleanup_free_ char *address = storeargs_address("http://u:p%40@h:8123/db?timeout=5s", &place);
		struct storeurl u;
		struct err err = { 0 };

		assert_true(storeurl_is(address));
		if (storeurl_parse(address, 1, &u, &err))
			fail_msg("%s: %s", address, err.text);
		assert_string_equal(u.target, names[i]);
		assert_string_equal(u.release, names[i]);
		assert_string_equal(u.database, "db");
		assert_string_equal(u.shards.v[0].password, "p@");
		assert_int_equal(u.from_ns, 100000000000);
		assert_int_equal(u.to_ns, 1794909630000000000);
		assert_int_equal(u.timeout_ms, 5000);
		storeurl_done(&u);
	}
}

static void options_become_an_operand(void **state)
{
	char store[] = "clickhouse://u:secret@h:8123/db";
	struct command_operands o;
	struct values v = { .store = { .store = store, .target = "reth-*", .release = "v1" }, .from = { "-1h", 0 }, .to = { "30s", 30 } };
	struct err err;

	/* 30s is a time of a recording, and none of the calendar. */
	assert_int_equal(complete_with(&v, false, NULL, 0, &o, &err), -EINVAL);
	assert_true(str_starts(err.text, "--to: '30s' is no time"));
	v.to = (struct option_moment){ "now", 0 };
	v.from.ns = 5;
	snprintf(store, sizeof(store), "%s", "clickhouse://u:secret@h:8123/db");
	vec_push(&v.store.labels.list, "region=e u");
	vec_push(&v.store.labels.list, NULL);
	v.store.labels.list.n--;
	assert_int_equal(complete_with(&v, false, NULL, 0, &o, &err), 0);
	assert_string_equal(operand(&o, 1), "clickhouse://u:secret@h:8123/db?targets=reth-%2A&release=v1&label=region%3De%20u&from=-1h&to=now");
	assert_null(o.v[o.n]);
	assert_string_equal(store, "clickhouse://h:8123/db"); /* nothing of the user is left where others see it */
	assert_int_equal(v.from.ns, 0);
	/* The time of one that ends before it begins. */
	v.from.text = "now";
	v.to.text = "-1h";
	assert_int_equal(complete_with(&v, false, NULL, 0, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "before it begins"));
	store_choice_done(&v.store);
}

static void the_environment_names_a_store(void **state)
{
	struct command_operands o;
	struct values v = { .store.target = "a" };
	struct err err;

	setenv("GASFLAME_STORE", "clickhouse://e/db", 1);
	assert_int_equal(complete_with(&v, false, NULL, 0, &o, &err), 0);
	assert_string_equal(operand(&o, 1), "clickhouse://e/db?target=a");
	v.store.store = (char[]){ "clickhouse://o/db" };
	assert_int_equal(complete_with(&v, false, NULL, 0, &o, &err), 0);
	assert_string_equal(operand(&o, 1), "clickhouse://o/db?target=a");
	/* Without anything about a store it is not meant. */
	v = (struct values){ 0 };
	assert_int_equal(complete_with(&v, false, NULL, 0, &o, &err), 0);
	assert_int_equal(o.n, 0);
	unsetenv("GASFLAME_STORE");
}

static void two_sides(void **state)
{
	static const struct {
		struct store_base base;
		const char *from, *before, *after;
	} cases[] = {
		{ { .from = "-25h", .to = "-24h" }, "-1h", "?target=a&from=-25h&to=-24h", "?target=a&from=-1h" },
		{ { .from = "-2h" }, "-1h", "?target=a&from=-2h&to=-1h", "?target=a&from=-1h" },
		{ { .target = "b" }, "-1h", "?target=b&from=-1h", "?target=a&from=-1h" },
		{ { .release = "v1" }, NULL, "?target=a&release=v1", "?target=a" },
	};
	struct command_operands o;
	struct err err;
	char *file[] = { "old.gasflame", NULL };
	struct values v = { .store = { .store = (char[]){ "clickhouse://h" }, .target = "a" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		v.base = cases[i].base;
		v.from.text = cases[i].from;
		assert_int_equal(complete_with(&v, true, NULL, 0, &o, &err), 0);
		assert_int_equal(o.n, 2);
		assert_string_equal(strchr(operand(&o, 2), '?'), cases[i].before);
		assert_string_equal(strchr(operand(&o, 1), '?'), cases[i].after);
	}
	v.base = (struct store_base){ 0 };
	assert_int_equal(complete_with(&v, true, file, 1, &o, &err), 0);
	assert_string_equal(operand(&o, 2), "old.gasflame");
	assert_int_equal(complete_with(&v, true, NULL, 0, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--base-from"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_store),	cmocka_unit_test(names_come_back), cmocka_unit_test(options_become_an_operand),
		cmocka_unit_test(the_environment_names_a_store), cmocka_unit_test(two_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
