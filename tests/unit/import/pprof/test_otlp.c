/* test_otlp.c - profiles of OpenTelemetry as others write them: shapes of samples, attributes, what is refused. */
#include "test.h"

#include <errno.h>

#include "base/codec/protobuf.h"
#include "import/pprof/pprof.h"
#include "importing.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { S_NONE, S_OFF, S_NS, S_PATH, S_MAIN, S_LEAF, S_TYPE, S_KERNEL, S_NAME, S_PID, S_KEY, S_WORKER, STRINGS };
static const char *const strings[STRINGS] = { "", "off_cpu", "nanoseconds", "/nowhere/app", "main", "leaf", "profile.frame.type", "kernel",
					      "thread.name", "process.pid", "process.executable.build_id.gnu", "worker" };
enum { A_NONE, A_KERNEL, A_WORKER, A_PID, A_BUILD };

static const uint64_t begin_ns = 1763200931000000000;

static void put_attribute(struct buf *b, uint64_t key, const char *text, uint64_t index, uint64_t number)
{
	size_t begin = protobuf_open(b, 6), value;

	protobuf_put_uint(b, 1, key);
	value = protobuf_open(b, 2);
	if (text)
		protobuf_put_string(b, 1, text);
	if (index)
		protobuf_put_uint(b, 8, index);
	if (number)
		protobuf_put_uint(b, 3, number);
	protobuf_close(b, value);
	protobuf_close(b, begin);
}

static void put_list(struct buf *b, uint32_t field, uint64_t one, uint64_t two)
{
	size_t begin = protobuf_open(b, field);

	protobuf_put_varint(b, one);
	if (two)
		protobuf_put_varint(b, two);
	protobuf_close(b, begin);
}

static void put_location(struct buf *b, uint64_t mapping, uint64_t address, uint64_t function, uint64_t attribute)
{
	size_t begin = protobuf_open(b, 2), line;

	protobuf_put_uint(b, 1, mapping);
	protobuf_put_uint(b, 2, address);
	line = protobuf_open(b, 3);
	protobuf_put_uint(b, 1, function);
	protobuf_put_uint(b, 2, 5);
	protobuf_close(b, line);
	if (attribute)
		put_list(b, 4, attribute, 0);
	protobuf_close(b, begin);
}

/* The parts that tests change. */
struct parts {
	uint64_t mapping, function, attribute, location, stack, used, name;
};
static const struct parts good = { 1, 2, A_KERNEL, 2, 1, A_WORKER, S_LEAF };

static void put_dictionary(struct buf *b, const struct parts *x)
{
	size_t dictionary = protobuf_open(b, 2), begin;

	for (int i = 0; i < STRINGS; i++)
		protobuf_put_string(b, 5, strings[i]);
	protobuf_close(b, protobuf_open(b, 6));
	put_attribute(b, S_TYPE, NULL, S_KERNEL, 0);
	put_attribute(b, S_NAME, "worker", 0, 0);
	put_attribute(b, S_PID, NULL, 0, 70);
	put_attribute(b, S_KEY, "abcdef", 0, 0);
	protobuf_close(b, protobuf_open(b, 1));
	begin = protobuf_open(b, 1);
	protobuf_put_uint(b, 1, 0x400000);
	protobuf_put_uint(b, 2, 0x500000);
	protobuf_put_uint(b, 4, S_PATH);
	put_list(b, 5, A_BUILD, 0);
	protobuf_close(b, begin);
	for (uint64_t i = 0; i < 3; i++) {
		begin = protobuf_open(b, 3);
		protobuf_put_uint(b, 1, !i ? 0 : i == 1 ? S_MAIN : x->name);
		protobuf_close(b, begin);
	}
	protobuf_close(b, protobuf_open(b, 2));
	put_location(b, 1, 0x400100, 1, 0);
	put_location(b, x->mapping, 0x400200, x->function, x->attribute);
	protobuf_close(b, protobuf_open(b, 7));
	begin = protobuf_open(b, 7);
	put_list(b, 1, x->location, 1);
	protobuf_close(b, begin);
	protobuf_close(b, dictionary);
}

/* Values and times, 0 = none. */
static void put_sample(struct buf *b, const struct parts *x, uint64_t v1, uint64_t v2, uint64_t t1, uint64_t t2)
{
	size_t begin = protobuf_open(b, 2), list;

	protobuf_put_uint(b, 1, x->stack);
	put_list(b, 2, x->used, A_PID);
	if (v1)
		put_list(b, 4, v1, v2);
	if (t1 && t2) {
		char bytes[16];

		memcpy(bytes, &t1, 8);
		memcpy(bytes + 8, &t2, 8);
		list = protobuf_open(b, 5);
		buf_add(b, bytes, 16);
		protobuf_close(b, list);
	} else if (t1) {
		protobuf_put_fixed64(b, 5, t1);
	}
	protobuf_close(b, begin);
}

static void put_about(struct buf *b, const char *key, const char *text)
{
	size_t begin = protobuf_open(b, 1), value;

	protobuf_put_string(b, 1, key);
	value = protobuf_open(b, 2);
	protobuf_put_string(b, 1, text);
	protobuf_close(b, value);
	protobuf_close(b, begin);
}

static struct buf make(struct parts x)
{
	struct buf b = { 0 };
	size_t resources = protobuf_open(&b, 1), begin = protobuf_open(&b, 1), scopes, profile;

	put_about(&b, "service.name", "shop");
	put_about(&b, "host.name", "box");
	put_about(&b, "deployment.environment", "test");
	protobuf_close(&b, begin);
	scopes = protobuf_open(&b, 2);
	profile = protobuf_open(&b, 2);
	begin = protobuf_open(&b, 1);
	protobuf_put_uint(&b, 1, S_OFF);
	protobuf_put_uint(&b, 2, S_NS);
	protobuf_close(&b, begin);
	put_sample(&b, &x, 10, 20, begin_ns + 300, begin_ns + 100);
	put_sample(&b, &x, 0, 0, begin_ns + 200, 0);
	put_sample(&b, &x, 7, 0, 0, 0);
	protobuf_put_fixed64(&b, 3, begin_ns);
	protobuf_put_uint(&b, 4, 1000);
	protobuf_close(&b, profile);
	protobuf_close(&b, scopes);
	protobuf_close(&b, resources);
	put_dictionary(&b, &x);
	return b;
}

static void shapes(void **state)
{
	static const struct {
		uint64_t time_ns, value;
	} wanted[] = { { 0, 7 }, { 100, 20 }, { 200, 1 }, { 300, 10 } };
	struct buf b = make(good), folded;
	struct profile *p = NULL;
	struct err err = { 0 };

	assert_true(otlp_probe(b.data, b.n, true));
	assert_ptr_equal(import_probe(b.data, b.n, true)->read, otlp_import);
	if (import_data("otlp", b.data, b.n, &p, &err))
		fail_msg("%s", err.text);
	assert_string_equal(profile_str(p, p->target), "shop");
	assert_string_equal(profile_str(p, p->host), "box");
	assert_int_equal(p->start_wall_ns, begin_ns);
	assert_int_equal(p->duration_ns, 1000);
	assert_int_equal(p->samples.n, ARRAY_LEN(wanted));
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		assert_int_equal(p->samples.v[i].time_ns, wanted[i].time_ns);
		assert_int_equal(p->samples.v[i].value, wanted[i].value);
	}
	assert_int_equal(p->processes.v[0].pid, 70);
	assert_int_equal(p->modules.v[0].build_id_size, 3);
	folded = export_all(p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME });
	assert_string_equal(folded.data, "worker;main;leaf_[k] 38\n");
	buf_done(&b);
	buf_done(&folded);
	profile_free(p);
}

static void refused(void **state)
{
	static const struct {
		struct parts x;
		const char *says;
	} cases[] = {
		{ { 9, 2, A_KERNEL, 2, 1, A_WORKER, S_LEAF }, "a location is in mapping 9" },
		{ { 1, 1ULL << 40, A_KERNEL, 2, 1, A_WORKER, S_LEAF }, "a line is of function 1099511627776" },
		{ { 1, 2, 99, 2, 1, A_WORKER, S_LEAF }, "attribute 99 is named, and there are 5" },
		{ { 1, 2, A_KERNEL, 77, 1, A_WORKER, S_LEAF }, "a stack has location 77" },
		{ { 1, 2, A_KERNEL, 2, -1, A_WORKER, S_LEAF }, "a sample has stack 18446744073709551615" },
		{ { 1, 2, A_KERNEL, 2, 1, 12, S_LEAF }, "attribute 12 is named, and there are 5" },
		{ { 1, 2, A_KERNEL, 2, 1, A_WORKER, 1ULL << 33 }, "string 8589934592 is named, and there are 12" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = make(cases[i].x);
		struct profile *p = NULL;
		struct err err = { 0 };

		assert_int_equal(import_data("otlp", b.data, b.n, &p, &err), -EINVAL);
		if (!strstr(err.text, cases[i].says) || strncmp(err.text, "byte ", 5))
			fail_msg("'%s' is not '%s'", err.text, cases[i].says);
		buf_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(shapes), cmocka_unit_test(refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
