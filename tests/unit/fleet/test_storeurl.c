#include "test.h"

#include <errno.h>
#include <time.h>

#include "base/err.h"
#include "fleet/storeurl.h"

#define NOW 1794909600000000000ULL /* 2026-11-17 10:00:00 UTC */
#define SECOND 1000000000ULL

static struct storeurl parsed(const char *text)
{
	struct storeurl u;
	struct err err = { 0 };

	if (storeurl_parse(text, NOW, &u, &err))
		fail_msg("%s: %s", text, err.text);
	return u;
}

static void one_server(void **state)
{
	struct storeurl u = parsed("clickhouse://127.0.0.1:8123/gasflame?target=reth-1&from=-1h&to=now&timeout=250ms");

	assert_int_equal(u.shards.n, 1);
	assert_string_equal(u.shards.v[0].address, "http://127.0.0.1:8123");
	assert_string_equal(u.shards.v[0].user, "");
	assert_string_equal(u.database, "gasflame");
	assert_string_equal(u.target, "reth-1");
	assert_int_equal(u.from_ns, NOW - 3600 * SECOND);
	assert_int_equal(u.to_ns, NOW);
	assert_int_equal(u.timeout_ms, 250);
	storeurl_done(&u);
	u = parsed("https://a");
	assert_string_equal(u.shards.v[0].address, "https://a");
	assert_string_equal(u.database, "gasflame");
	assert_null(u.target);
	assert_int_equal(u.timeout_ms, STOREURL_TIMEOUT_MS);
	storeurl_done(&u);
}

static void several_targets(void **state)
{
	struct storeurl u = parsed("clickhouse://a/db?target=x&targets=reth-*&label=region%3De%26u&label=k%3Dv&release=it's");

	assert_null(u.target);
	assert_string_equal(u.targets, "reth-*");
	assert_string_equal(u.release, "it's");
	assert_int_equal(u.labels.n, 2);
	assert_string_equal(u.labels.v[0], "region=e&u");
	assert_true(storeurl_names(&u));
	storeurl_done(&u);
	/* The last one counts, and a name may have a star. */
	u = parsed("clickhouse://a/db?targets=x&target=reth-*");
	assert_null(u.targets);
	assert_string_equal(u.target, "reth-*");
	storeurl_done(&u);
	u = parsed("clickhouse://a/db?from=-1h");
	assert_false(storeurl_names(&u));
	storeurl_done(&u);
}

static void several_servers(void **state)
{
	struct storeurl u = parsed("clickhouses://w:p%40ss%2C%3A%2F@a:8443,b:8443,http://x@[::1]:8123,d/my%20db?target=a%2Cb%26c%3D../'");
	static const struct {
		const char *address, *user, *password;
	} wanted[] = {
		{ "https://a:8443", "w", "p@ss,:/" }, { "https://b:8443", "w", "p@ss,:/" }, { "http://[::1]:8123", "x", "" }, { "http://d", "x", "" },
	};

	assert_int_equal(u.shards.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(u.shards.v[i].address, wanted[i].address);
		assert_string_equal(u.shards.v[i].user, wanted[i].user);
		assert_string_equal(u.shards.v[i].password, wanted[i].password);
	}
	assert_string_equal(u.database, "my db");
	assert_string_equal(u.target, "a,b&c=../'");
	storeurl_done(&u);
	/* A full address for each, and the user of the second for the first, too. */
	u = parsed("http://a:1/db,http://u:p@b:2/db");
	assert_int_equal(u.shards.n, 2);
	assert_string_equal(u.shards.v[0].user, "u");
	assert_string_equal(u.database, "db");
	storeurl_done(&u);
}

static void refused(void **state)
{
	static const char *const bad[] = {
		"", "reth", "ftp://a/db", "clickhouse://", "clickhouse:///db", "clickhouse://a b/db", "clickhouse://a,,b/db", "clickhouse://@/db",
		"clickhouse://u%0d%0aX-Evil:1@a/db", "clickhouse://u:p%00@a/db", "clickhouse://u%4@a/db", "clickhouse://a/d%2Fb", "clickhouse://a/d%0a",
		"clickhouse://a\r\nX:1/db", "clickhouse://a/db?target=", "clickhouse://a/db?target=%", "clickhouse://a/db?target=a%00b",
		"clickhouse://a/db?who=x", "clickhouse://a/db?targets=", "clickhouse://a/db?label=x", "clickhouse://a/db?from=yesterday", "clickhouse://a/db?from=now&to=-1h", "clickhouse://a/db?timeout=0",
		"clickhouse://a/db?timeout=2h", "clickhouse://a?b@c/db",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct storeurl u;
		struct err err = { 0 };

		if (storeurl_parse(bad[i], NOW, &u, &err) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
		assert_true(*err.text);
		storeurl_done(&u);
	}
}

static void which_is_a_store(void **state)
{
	assert_true(storeurl_is("clickhouse://a/db"));
	assert_true(storeurl_is("clickhouses://a/db"));
	assert_false(storeurl_is("http://a/db"));
	assert_false(storeurl_is("clickhouse"));
	assert_false(storeurl_is("./clickhouse://a"));
}

static void hidden(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "clickhouse://u:p@a:1/db?target=x@y", "clickhouse://a:1/db?target=x@y" },
		{ "clickhouse://u:p%40@a:1,v:q@b,c/db", "clickhouse://a:1,b,c/db" },
		{ "http://u:p@x@a/db,https://v@b/db", "http://a/db,https://b/db" },
		{ "clickhouse://a:1/d@b", "clickhouse://a:1/d@b" },
		{ "clickhouse://u:p@", "clickhouse://" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128] = { 0 };
		size_t n = strlen(cases[i].text);

		memcpy(text, cases[i].text, n);
		storeurl_hide(text);
		assert_string_equal(text, cases[i].wanted);
		/* Nothing is left behind its end either. */
		for (size_t k = strlen(text); k < n; k++)
			assert_int_equal(text[k], 0);
	}
}

static void times(void **state)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} cases[] = {
		{ "now", NOW / SECOND }, { "-1h", NOW / SECOND - 3600 }, { "-90", NOW / SECOND - 90 }, { "0", 0 }, { "1794909600", 1794909600 },
		{ "@1794909600", 1794909600 }, { "2026-11-17T10:00Z", 1794909600 }, { "2026-11-17T10:00:30Z", 1794909630 },
		{ "2026-11-17 10:00:30.75Z", 1794909630 }, { "2026-11-17T12:00+02:00", 1794909600 }, { "2026-11-17T04:30:00-0530", 1794909600 },
		{ "2026-11-17Z", 1794873600 }, { "2026-11-17 13:00", 1794909600 }, { "2026-11-17T13:00:00", 1794909600 },
	};
	static const char *const bad[] = { "", "@", "-", "tomorrow", "2026-11-17T10:00X", "2026-11-17T10:00+2", "2026-13-17", "1e9", "99999999999",
					   "1969-01-01Z", "-1x", "2026-11-17T10:00+02:0a" };

	/* Local time three hours east, without a name service or files. */
	setenv("TZ", "XYZ-3", 1);
	tzset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		uint64_t ns = 1;

		if (storeurl_time(cases[i].text, NOW, &ns, &err) || ns / SECOND != cases[i].seconds)
			fail_msg("%s is %llu: %s", cases[i].text, (unsigned long long)(ns / SECOND), err.text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t ns;

		if (storeurl_time(bad[i], NOW, &ns, NULL) != -EINVAL)
			fail_msg("'%s' is taken for a time", bad[i]);
	}
}

/* All shards have about the same, and a new one takes only what it gets. */
static void shards(void **state)
{
	unsigned counts[5] = { 0 }, moved = 0;
	char name[32];

	for (unsigned i = 0; i < 5000; i++) {
		unsigned before, after;

		snprintf(name, sizeof(name), "node-%u", i);
		before = storeurl_shard_of(name, 4);
		after = storeurl_shard_of(name, 5);
		assert_true(before == after || after == 4);
		moved += before != after;
		counts[after]++;
	}
	for (unsigned i = 0; i < 5; i++)
		assert_in_range(counts[i], 850, 1150);
	assert_int_equal(moved, counts[4]);
	assert_int_equal(storeurl_shard_of("x", 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_server),
		cmocka_unit_test(several_servers), cmocka_unit_test(several_targets),
		cmocka_unit_test(refused),
		cmocka_unit_test(which_is_a_store),
		cmocka_unit_test(hidden),
		cmocka_unit_test(times),
		cmocka_unit_test(shards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
