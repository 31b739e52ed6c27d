/* Size classes as jemalloc counts them: sums, order, texts; what is said where it does not. */
#include "test.h"

#include <string.h>

#include "analyze/memory/sizeclass.h"
#include "base/buf.h"
#include "base/mem.h"
#include "export/section/classtext.h"
#include "profile/profile.h"
#include "jsonmembers.h"

static void add(struct profile *p, uint64_t size, uint64_t objects, uint64_t slabs, uint64_t held)
{
	const struct {
		const char *what;
		uint64_t value;
	} figures[] = { { "objects", objects }, { "slabs", slabs }, { "held", held } };

	for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
		_cleanup_free_ char *name = mem_printf("jemalloc.class.%llu.%s", (unsigned long long)size, figures[i].what);

		profile_count(p, name, figures[i].value);
	}
}

static struct profile *make(void)
{
	struct profile *p = profile_new();

	add(p, 64, 640, 10, 10 * 4096);         /* full */
	add(p, 320, 64, 100, 100 * 20480);      /* a hundred slabs for what would fit into one */
	add(p, 1 << 20, 3, 0, 3 << 20);         /* pages of their own */
	profile_count_set(p, "jemalloc.cached bytes", 2048);
	return p;
}

static void figures(void **state)
{
	struct profile *p = make();
	struct sizeclasses c;

	sizeclasses_read(&c, p);
	assert_int_equal(c.list.n, 3);
	assert_int_equal(c.list.v[0].size, 320); /* most waste first */
	assert_int_equal(c.list.v[1].size, 1 << 20);
	assert_int_equal(sizeclass_used(&c.list.v[0]), 20480);
	assert_int_equal(sizeclass_waste(&c.list.v[0]), 99 * 20480);
	assert_int_equal(sizeclass_waste(&c.list.v[1]), 0);
	assert_int_equal(sizeclass_used(&c.all), 640 * 64 + 64 * 320 + (3 << 20));
	assert_int_equal(c.all.held_bytes, 40960 + 2048000 + (3 << 20));
	assert_int_equal(sizeclass_waste(&c.all), 99 * 20480);
	sizeclasses_done(&c);
	profile_free(p);
}

/* Numbers of a capture are anybody's. */
static void hostile(void **state)
{
	struct profile *p = profile_new();
	struct buf text = { 0 };
	struct sizeclasses c;

	add(p, UINT64_MAX / 2, UINT64_MAX / 3, 1, 5);
	profile_count(p, "jemalloc.class.x.held", 7);
	profile_count(p, "jemalloc.class.-1.held", UINT64_MAX);
	profile_count(p, "jemalloc.class..held", UINT64_MAX); /* of no class */
	sizeclasses_read(&c, p);
	assert_int_equal(c.list.n, 3);
	for (size_t i = 0; i < c.list.n; i++)
		assert_true(sizeclass_waste(&c.list.v[i]) <= c.list.v[i].held_bytes);
	sizeclasses_done(&c);
	classtext_table(p, 0, false, &text);
	assert_non_null(text.data);
	buf_done(&text);
	profile_free(p);
}

static void texts(void **state)
{
	struct profile *p = make();
	struct buf text = { 0 }, json = { 0 };

	classtext_table(p, 2, false, &text);
	assert_non_null(strstr(text.data, "by jemalloc's own statistics"));
	assert_non_null(strstr(text.data, "         320           64    20.0 KB       100    1.95 MB   1.0 %    1.93 MB"));
	assert_non_null(strstr(text.data, "the rest of 3 classes"));
	assert_non_null(strstr(text.data, "2.00 KB of the allocated"));
	assert_null(strchr(text.data, '\033'));
	put_members(&json, classtext_json(p, &j));
	assert_non_null(strstr(json.data, "{\"size\":320,\"objects\":64,\"allocated_bytes\":20480,\"slabs\":100,"
					  "\"held_bytes\":2048000,\"used_percent\":1.00,\"waste_bytes\":2027520}"));
	buf_done(&text);
	buf_done(&json);
	profile_free(p);
}

/* Nobody said so: an estimate, called one, with the reason. */
static void estimates(void **state)
{
	struct profile *p = profile_new();
	struct buf text = { 0 }, json = { 0 };

	put_members(&json, classtext_json(p, &j));
	assert_string_equal(json.data, "{}");
	json.n = 0;
	classtext_table(p, 0, false, &text);
	assert_int_equal(text.n, 0);
	profile_count_set(p, "heap.class.128.live", 5000);
	profile_count_set(p, "heap.class.128.rounding", 600);
	classtext_table(p, 0, false, &text);
	assert_non_null(strstr(text.data, "estimated from sampled objects"));
	assert_non_null(strstr(text.data, "no statistics that can be asked for"));
	buf_done(&text);
	profile_count_set(p, "jemalloc.without stats", 1);
	classtext_table(p, 0, false, &text);
	assert_non_null(strstr(text.data, "built without statistics"));
	buf_done(&text);
	put_members(&json, classtext_json(p, &j));
	assert_non_null(strstr(json.data, "\"estimate\":true"));
	assert_non_null(strstr(json.data, "{\"size\":128,\"live_bytes\":5000,\"rounding_bytes\":600}"));
	buf_done(&json);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures),
		cmocka_unit_test(hostile),
		cmocka_unit_test(texts),
		cmocka_unit_test(estimates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
