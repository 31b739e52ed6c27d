#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/memory/rss.h"
#include "base/buf.h"
#include "base/mem.h"
#include "export/section/memtext.h"
#include "profile/profile.h"
#include "jsonmembers.h"

#define SECOND 1000000000ULL

static void point(struct profile *p, const char *name, const char *unit, uint64_t time_ns, int64_t value)
{
	uint32_t id = PROFILE_NONE;

	for (size_t i = 0; i < p->series.n; i++)
		if (!strcmp(profile_str(p, p->series.v[i].name), name))
			id = i;
	profile_add_point(p, id == PROFILE_NONE ? profile_add_series(p, name, unit) : id, time_ns, value);
}

/* Three looks; the second only at the cheap figures. */
static struct profile *recording(void)
{
	static const struct {
		const char *name;
		int64_t first, last;
	} parts[] = {
		{ "mem.part.heap", 100, 1000 }, { "mem.part.anonymous", 50, 2000 },
		{ "mem.part.files", 10, 600 },  { "mem.part.shared", 0, 70 },
		{ "mem.part.stacks", 5, 30 },   { "mem.part.data", 3, 20 },
		{ "mem.part.other", 1, 4 },
	};
	struct profile *p = profile_new();

	point(p, "mem.rss", "bytes", 0, 169);
	point(p, "mem.rss", "bytes", 1 * SECOND, 9999);
	point(p, "mem.rss", "bytes", 2 * SECOND, 3724);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		point(p, parts[i].name, "bytes", 0, parts[i].first);
		point(p, parts[i].name, "bytes", 2 * SECOND, parts[i].last);
	}
	point(p, "mem.file:/b", "bytes", 2 * SECOND, 100);
	point(p, "mem.file:/a <&>\033[1m", "bytes", 2 * SECOND, 450);
	point(p, "mem.file:/gone", "bytes", 0, 10);
	point(p, "mem.processes", "count", 2 * SECOND, 1);
	point(p, "mem.threads", "count", 2 * SECOND, 3);
	point(p, "mem.faults.minor", "count", 1 * SECOND, 30);
	point(p, "mem.faults.minor", "count", 2 * SECOND, 10);
	p->duration_ns = 2 * SECOND;
	return p;
}

static const struct rss_row *row(const struct rss *r, const char *key)
{
	for (size_t i = 0; i < r->rows.n; i++)
		if (!strcmp(r->rows.v[i].key, key))
			return &r->rows.v[i];
	return NULL;
}

static void adds_up(const struct rss *r)
{
	int64_t sum = 0;

	for (size_t i = 0; i < r->rows.n; i++)
		if (r->rows.v[i].kind == RSS_PART) {
			assert_true(r->rows.v[i].bytes >= 0);
			sum += r->rows.v[i].bytes;
		}
	assert_int_equal(sum, r->rss);
}

static void parts_add_up(void **state)
{
	struct profile *p = recording();
	struct rss r;

	rss_build(&r, p, 0, 0);
	assert_true(r.recorded && r.walked);
	assert_int_equal(r.rss, 3724);
	assert_int_equal(r.looks, 3);
	adds_up(&r);
	assert_int_equal(row(&r, "heap")->bytes, 1000);
	assert_int_equal(row(&r, "file")->bytes, 450); /* the largest first */
	assert_int_equal(row(&r, "other_files")->bytes, 50);
	assert_true(rss_rate(&r, "mem.faults.minor") == 20);
	assert_true(rss_rate(&r, "nothing") < 0);
	rss_done(&r);
	/* Before the second walk: the first one. */
	rss_build(&r, p, 0, 2 * SECOND);
	assert_int_equal(r.rss, 169);
	adds_up(&r);
	rss_done(&r);
	profile_free(p);
}

static void live_heap_and_slack(void **state)
{
	struct profile *p = recording();
	struct rss r;

	point(p, "heap.live", "bytes", 2 * SECOND, 1900);
	point(p, "heap.resident", "bytes", 2 * SECOND, 1500);
	point(p, "heap.arenas", "bytes", 2 * SECOND, 2500);
	rss_build(&r, p, 0, 0);
	adds_up(&r);
	assert_int_equal(r.source, RSS_FROM_HEAP);
	assert_int_equal(row(&r, "live_heap")->bytes, 1500);
	assert_int_equal(row(&r, "slack")->bytes, 1000);
	assert_int_equal(row(&r, "anonymous")->bytes, 500);
	assert_true(row(&r, "slack")->estimate);
	assert_int_equal(r.live_bytes, 1900);
	rss_done(&r);
	/* An estimate may be more than there is: never a negative part. */
	point(p, "heap.resident", "bytes", 2 * SECOND, 999999);
	rss_build(&r, p, 0, 0);
	adds_up(&r);
	assert_int_equal(row(&r, "slack")->bytes, 0);
	rss_done(&r);
	/* Each object since the start is no estimate. */
	profile_count_set(p, "heap.from start", 1);
	rss_build(&r, p, 0, 0);
	assert_false(row(&r, "slack")->estimate);
	rss_done(&r);
	profile_free(p);
}

static void size_classes(void **state)
{
	struct profile *p = recording();
	struct rss r;

	profile_count_set(p, "heap.class.64.live", 100);
	profile_count_set(p, "heap.class.64.rounding", 10);
	profile_count_set(p, "heap.class.128.live", 50);
	profile_count_set(p, "heap.class.128.rounding", 40);
	rss_build(&r, p, 0, 0);
	assert_int_equal(r.classes.n, 2);
	assert_int_equal(r.classes.v[0].size, 128);
	assert_int_equal(r.classes.v[1].rounding_bytes, 10);
	rss_done(&r);
	profile_free(p);
}

static void statistics_of_jemalloc(void **state)
{
	struct profile *p = recording();
	struct rss r;

	point(p, "jemalloc.allocated", "bytes", 2 * SECOND, 900);
	point(p, "jemalloc.active", "bytes", 2 * SECOND, 1200);
	point(p, "jemalloc.resident", "bytes", 2 * SECOND, 1400);
	rss_build(&r, p, 0, 0);
	adds_up(&r);
	assert_int_equal(r.source, RSS_FROM_METRICS);
	assert_true(r.fragmentation > 0.2499 && r.fragmentation < 0.2501);
	assert_int_equal(row(&r, "live_heap")->bytes, 900);
	assert_int_equal(row(&r, "slack")->bytes, 500);
	rss_done(&r);
	profile_free(p);
}

static void as_text(void **state)
{
	struct profile *p = recording();
	struct buf out = { 0 };
	struct rss r;

	rss_build(&r, p, 0, 0);
	memtext_table(&r, p, &(struct memtext_options){ .columns = 80, .limit = 1 }, &out);
	assert_non_null(strstr(out.data, "= RSS"));
	assert_non_null(strstr(out.data, "█"));
	assert_null(strstr(out.data, "\033"));
	assert_null(strstr(out.data, "/b\n")); /* beyond the limit */
	buf_done(&out);
	put_members(&out, memtext_object(&r, p, 0, true, "memory", &j));
	assert_non_null(strstr(out.data, "\"rss_bytes\":3724"));
	assert_non_null(strstr(out.data, "\"minor_faults_per_second\":20.000"));
	assert_non_null(strstr(out.data, "{\"part\":\"stacks\",\"bytes\":30}"));
	assert_null(strchr(out.data, '\033'));
	buf_done(&out);
	memtext_csv_header(&out);
	memtext_csv_rows(p, SECOND, &out);
	assert_non_null(strstr(out.data, ",1.000,9999,,"));
	rss_done(&r);
	buf_done(&out);
	profile_free(p);
}

static void nothing_recorded(void **state)
{
	struct profile *p = profile_new();
	struct buf out = { 0 };
	struct rss r;

	rss_build(&r, p, 0, 0);
	assert_false(r.recorded);
	memtext_table(&r, p, &(struct memtext_options){ 0 }, &out);
	assert_int_equal(out.n, 0);
	rss_done(&r);
	/* Only status could be read. */
	point(p, "mem.rss", "bytes", 0, -5);
	rss_build(&r, p, 0, 0);
	assert_true(r.recorded && !r.walked);
	memtext_table(&r, p, &(struct memtext_options){ .columns = 20 }, &out);
	assert_non_null(strstr(out.data, "may not be read"));
	buf_done(&out);
	put_members(&out, memtext_object(&r, p, 0, true, "memory", &j));
	assert_null(strstr(out.data, "\"parts\""));
	rss_done(&r);
	buf_done(&out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),          cmocka_unit_test(live_heap_and_slack),
		cmocka_unit_test(size_classes),
		cmocka_unit_test(statistics_of_jemalloc), cmocka_unit_test(as_text),
		cmocka_unit_test(nothing_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
