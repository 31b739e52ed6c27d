#include "test.h"

#include "analyze/memory/faults.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/section/section.h"
#include "jsonmembers.h"
#include "sample.h"

/* A recording of two seconds: reads of a file by one function, of fresh memory by another. */
struct recording {
	struct sample s;
	uint32_t major, minor, major_time, reclaims, reclaim_time;
};

static void put(struct recording *r, uint32_t event, uint32_t stack, uint64_t time_ns, uint64_t value)
{
	profile_add_sample(r->s.p, &(struct profile_sample){ .event = event, .stack = stack, .value = value,
							     .time_ns = time_ns, .thread = r->s.main });
}

static struct recording make(void)
{
	struct recording r = { .s = sample_empty() };
	struct profile *p = r.s.p;
	uint32_t get, grow, file, series;

	p->duration_ns = 2000000000;
	r.major = profile_add_event(p, "major-faults", "count", "", 0);
	r.minor = profile_add_event(p, "minor-faults", "count", "", 0);
	r.major_time = profile_add_event(p, "major-time", "ns", "", 0);
	r.reclaims = profile_add_event(p, "reclaims", "count", "", 0);
	r.reclaim_time = profile_add_event(p, "reclaim-time", "ns", "", 0);
	get = sample_stack(&r.s, "_start;main;db::get");
	grow = sample_stack(&r.s, "_start;main;cache::grow");
	file = sample_below(&r.s, get, "n:/data/a at 0x1.dat");
	put(&r, r.major, sample_below(&r.s, file, "n:a at 0x1.dat at 0x0-0x10000"), 100000000, 10);
	put(&r, r.major, sample_below(&r.s, file, "n:a at 0x1.dat at 0x10000-0x20000"), 1100000000, 20);
	put(&r, r.major, sample_below(&r.s, file, "n:a at 0x1.dat at 0x3f0000-0x400000"), 1200000000, 5);
	put(&r, r.major_time, sample_below(&r.s, file, "n:a at 0x1.dat at 0x0-0x10000"), 100000000, 3500000);
	put(&r, r.minor, file, 100000000, 65);
	put(&r, r.minor, sample_below(&r.s, grow, "n:[heap];n:[copy on write]"), 1500000000, 900);
	put(&r, r.reclaims, grow, 1500000000, 2);
	put(&r, r.reclaim_time, grow, 1500000000, 7000000);
	series = profile_add_series(p, "pressure.memory.some", "us");
	profile_add_point(p, series, 1000000000, 20000);
	profile_add_point(p, series, 2000000000, 60000);
	return r;
}

static void totals_as_the_guide_defines_them(void **state)
{
	struct recording r = make();
	struct faults f;

	faults_build(&f, r.s.p, &(struct select_options){ 0 });
	assert_true(f.recorded);
	assert_int_equal(f.all.major, 35);
	assert_int_equal(f.all.minor, 965);
	assert_int_equal(f.all.major_ns, 3500000);
	assert_int_equal(f.all.reclaims, 2);
	assert_int_equal(f.all.reclaim_ns, 7000000);
	assert_int_equal(faults_read_bytes(&f), 35 * 4096);
	assert_true(faults_hit_percent(&f) > 96.49 && faults_hit_percent(&f) < 96.51);
	assert_int_equal(faults_series_sum(&f, "pressure.memory.some"), 80000);
	assert_int_equal(faults_series_sum(&f, "pressure.io.some"), 0);
	faults_done(&f);
	profile_free(r.s.p);
}

static void by_function_and_part_of_a_file(void **state)
{
	struct recording r = make();
	struct faults f;

	faults_build(&f, r.s.p, &(struct select_options){ 0 });
	assert_int_equal(f.functions.n, 2);
	assert_string_equal(f.functions.v[0].name, "db::get");
	assert_int_equal(f.functions.v[0].weight.minor, 65);
	assert_string_equal(f.functions.v[1].name, "cache::grow");
	assert_int_equal(f.functions.v[1].weight.reclaims, 2);
	assert_int_equal(f.files.n, 2);
	assert_string_equal(f.files.v[0].name, "/data/a at 0x1.dat");
	assert_int_equal(f.files.v[0].weight.major, 35);
	assert_int_equal(f.files.v[0].ranges.n, 3);
	assert_int_equal(f.files.v[0].ranges.v[1].from, 0x10000);
	assert_int_equal(f.files.v[0].ranges.v[1].to, 0x20000);
	assert_int_equal(f.files.v[0].ranges.v[1].major, 20);
	assert_string_equal(f.files.v[1].name, "[heap]");
	assert_int_equal(f.files.v[1].weight.minor, 900);
	assert_int_equal(f.files.v[1].ranges.n, 0);
	faults_done(&f);
	profile_free(r.s.p);
}

static void a_range_of_time(void **state)
{
	struct recording r = make();
	struct faults f;

	faults_build(&f, r.s.p, &(struct select_options){ .from_ns = 1000000000, .to_ns = 1400000000 });
	assert_int_equal(f.duration_ns, 400000000);
	assert_int_equal(f.all.major, 25);
	assert_int_equal(f.all.minor, 0);
	assert_int_equal(f.all.reclaims, 0);
	assert_int_equal(faults_series_sum(&f, "pressure.memory.some"), 20000);
	faults_done(&f);
	profile_free(r.s.p);
}

/* A capture may hold anything. */
static void notes_that_are_no_ranges(void **state)
{
	static const char *const bad[] = { "x", "x at 0x", "x at 0x10-0x5", "x at 0x10-", "x at 0x1-0x2 more",
					   "" };
	struct recording r = make();
	uint32_t file = sample_stack(&r.s, "main;n:/bad");
	struct faults f;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		put(&r, r.major, sample_below(&r.s, file, "n:%s", bad[i]), 0, 1);
	put(&r, r.major, sample_below(&r.s, file, "n:x at 0x0-0xffffffffffffffff"), 0, UINT64_MAX / 2);
	faults_build(&f, r.s.p, &(struct select_options){ 0 });
	for (size_t i = 0; i < f.files.n; i++)
		if (!strcmp(f.files.v[i].name, "/bad"))
			assert_int_equal(f.files.v[i].ranges.n, 1);
	faults_done(&f);
	profile_free(r.s.p);
}

static struct buf shown(const struct profile *p, bool json)
{
	struct selection s = { 0 };
	struct export_job job = { .profile = p, .selection = &s };
	struct buf out = { 0 };

	if (json)
		put_members(&out, section_faults.json(&job, &j));
	else
		section_faults.text(&job, &out);
	buf_add(&out, "", 0);
	return out;
}

static void has(const struct buf *b, const char *text)
{
	if (!strstr(b->data, text))
		fail_msg("no '%s' in:\n%s", text, b->data);
}

static void the_report(void **state)
{
	struct recording r = make();
	struct buf b = shown(r.s.p, false);

	has(&b, "major                      35       17.5/s    3.50 ms  had to wait for the disk\n");
	has(&b, "hit rate              96.50 %");
	has(&b, "read from disk        0.14 MB");
	has(&b, "       35   3.50 ms          65      0 ns  db::get\n");
	has(&b, "       35   3.50 ms          65      0 ns  /data/a at 0x1.dat\n");
	has(&b, "|=@                                                             :|  64.0 KB each\n");
	has(&b, "        30 at 0 B - 128 KB\n");
	has(&b, "direct reclaims   2, 7.00 ms\n");
	has(&b, "Direct reclaims mean memory pressure");
	has(&b, "stalled on memory some tasks   4.00 %");
	buf_done(&b);
	b = shown(r.s.p, true);
	has(&b, "{\n\"faults\":{\"major\":35,\"minor\":965,\"major_ns\":3500000,");
	has(&b, "\"read_bytes\":143360");
	has(&b, "{\"from\":65536,\"to\":131072,\"major\":20}");
	has(&b, "\"pressure.memory.some\":80000");
	buf_done(&b);
	profile_free(r.s.p);
}

static void nothing_where_no_faults_were_recorded(void **state)
{
	struct sample s = sample_make();
	struct buf b = shown(s.p, false);

	assert_int_equal(b.n, 0);
	buf_done(&b);
	b = shown(s.p, true);
	assert_string_equal(b.data, "{}");
	buf_done(&b);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_as_the_guide_defines_them),
		cmocka_unit_test(by_function_and_part_of_a_file),
		cmocka_unit_test(a_range_of_time),
		cmocka_unit_test(notes_that_are_no_ranges),
		cmocka_unit_test(the_report),
		cmocka_unit_test(nothing_where_no_faults_were_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
