/* Sinks without a server: addresses, options, names of files, and answers that look good. */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "fleet/sink/sinkanswer.h"
#include "fleet/sink/sinktypes.h"

static void test_open(void **state)
{
	static const struct {
		struct sink_options o;
		const char *says; /* NULL: it opens */
	} all[] = {
		{ { .url = "otlp+http://127.0.0.1:4318" }, NULL },
		{ { .url = "otlp+https://u%40x:p%3A@host/path/x", .ca_file = "/ca.pem" }, NULL },
		{ { .url = "pyroscope+http://[::1]:4040/", .tenant = "t", .token = "x" }, NULL },
		{ { .url = "prometheus+http://h", .user = "u", .password = "p" }, NULL },
		{ { .url = "s3+http://h/bucket/a/b", .user = "k", .password = "s", .region = "eu" }, NULL },
		{ { .url = "file:///var/tmp/x", .keep_bytes = 1 }, NULL },
		{ { .url = "clickhouse://a:8123,b:8123/x", .user = "u" }, NULL },
		{ { .url = NULL }, "has to begin with" },
		{ { .url = "" }, "has to begin with" },
		{ { .url = "otlp+http:/h" }, "has to begin with" },
		{ { .url = "otlp+httpx://h" }, "has to begin with" },
		{ { .url = "otlp+http://" }, "no host" },
		{ { .url = "otlp+http://u:s3cret@/x" }, "no host" },
		{ { .url = "otlp+http://h;rm/x" }, "no host" },
		{ { .url = "otlp+http://u:s3cret%zz@h" }, "%XX" },
		{ { .url = "otlp+http://h/a b" }, "path" },
		{ { .url = "otlp+http://u:s3cret@h", .token = "s3cret" }, "a token and a user" },
		{ { .url = "otlp+http://h", .token = "s3cret\r\nX: y" }, "line break" },
		{ { .url = "otlp+http://h", .user = "a:b", .password = "s3cret" }, "colon" },
		{ { .url = "otlp+http://h", .ca_file = "/x" }, "without TLS" },
		{ { .url = "otlp+http://h", .keep_ns = 1 }, "takes no limit" },
		{ { .url = "file:///x", .token = "s3cret" }, "takes no token" },
		{ { .url = "file://x" }, "no folder" },
		{ { .url = "file:///" }, "no folder" },
		{ { .url = "s3+http://h/bucket" }, "no access key" },
		{ { .url = "s3+http://k:s3cret@h/" }, "no bucket" },
		{ { .url = "s3+http://k:s3cret@h/bucket//x" }, "letters" },
		{ { .url = "s3+http://k:s3cret@h/bucket/.." }, "letters" },
		{ { .url = "s3+http://k:s3cret@h/bucket", .region = "a/b" }, "region" },
		{ { .url = "clickhouse://h", .ca_file = "/x" }, "without TLS" },
		{ { .url = "clickhouse://h", .password = "s3cret\n" }, "line break" },
		{ { .url = "clickhouse://u:s3cret@h?from=-1h" }, "for reading" },
		{ { .url = "clickhouse://h", .tenant = "x" }, "takes no tenant" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct sink *s = NULL;
		struct err err = { 0 };
		struct sink_options o = all[i].o;
		int r;

		o.name = "mine";
		r = sink_open(&o, &s, &err);
		if (r == -EOPNOTSUPP || r == -ELIBACC)
			skip(); /* a build without libcurl */
		if (all[i].says) {
			assert_int_equal(r, -EINVAL);
			if (!strstr(err.text, all[i].says) || strncmp(err.text, "sink mine: ", 11) || strstr(err.text, "s3cret"))
				fail_msg("%s: %s", o.url, err.text);
		} else {
			if (r)
				fail_msg("%s: %s", o.url, err.text);
			assert_string_equal(sink_name(s), "mine");
		}
		sink_close(s);
	}
}

static void test_paths(void **state)
{
	static const struct {
		const char *target, *path;
	} all[] = {
		{ "reth-1", "reth-1/2026-11-17/100000-42.gasflame" },
		{ "../../etc", "~2E.~2F..~2Fetc/2026-11-17/100000-42.gasflame" },
		{ ".", "~2E/2026-11-17/100000-42.gasflame" },
		{ "a'b \"c\"\n~%", "a~27b~20~22c~22~0A~7E~25/2026-11-17/100000-42.gasflame" },
		{ "", "~/2026-11-17/100000-42.gasflame" },
		{ "\xc3\xa4", "~C3~A4/2026-11-17/100000-42.gasflame" },
	};
	char longest[400], other[400];
	struct buf a = { 0 }, b = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct sink_window w = { .target = all[i].target, .start_wall_ns = 1794909600ULL * 1000000000 + 999999999, .sequence = 42 };

		a.n = 0;
		sinkname_put_path(&a, &w);
		assert_string_equal(a.data, all[i].path);
	}
	memset(longest, '/', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	memcpy(other, longest, sizeof(other));
	other[sizeof(other) - 2] = '.';
	a.n = 0;
	sinkname_put_folder(&a, longest);
	sinkname_put_folder(&b, other);
	assert_int_equal(a.n, 200);
	assert_int_equal(b.n, 200);
	assert_string_not_equal(a.data, b.data);
	buf_done(&a);
	buf_done(&b);
}

static void test_partial(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		int r;
		int64_t rejected;
		const char *message;
	} all[] = {
		{ "", 0, 0, 0, "" },
		{ "\x0a\x00", 2, 0, 0, "" },
		{ "\x0a\x04\x08\x03\x12\x00", 6, 0, 3, "" },
		{ "\x0a\x05\x12\x03" "abc", 7, 0, 0, "abc" },
		{ "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, 0, -1, "" },
		{ "\x12\x01x", 3, 0, 0, "" }, /* of a later version */
		{ "\x0a\x05\x12", 3, -EBADMSG, 0, "" },
		{ "\x0a\x02\x12\x05", 4, -EBADMSG, 0, "" },
		{ "\x08\x01", 2, -EBADMSG, 0, "" },
		{ "<html>", 6, -EBADMSG, 0, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct sinkanswer_partial p;

		assert_int_equal(sinkanswer_partial(all[i].text, all[i].n, &p), all[i].r);
		if (all[i].r)
			continue;
		assert_int_equal(p.rejected, all[i].rejected);
		assert_int_equal(p.message_n, strlen(all[i].message));
		assert_memory_equal(p.message, all[i].message, p.message_n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_open), cmocka_unit_test(test_paths), cmocka_unit_test(test_partial) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
