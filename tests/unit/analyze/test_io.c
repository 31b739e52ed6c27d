/* The figures of I/O: sums, calls, filters, percentiles, and what is said of what is missing. */
#include "test.h"

#include <string.h>

#include "analyze/io.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "export/section/section.h"
#include "builder.h"
#include "jsonmembers.h"

/* main -> save -> write on two files, main -> load -> pread64 on one, fsync, failures. */
static struct profile *make(void)
{
	struct profile *p = profile_new();
	struct builder_modules modules = { 0 };
	uint32_t process, threads[2], read_event, write_event, sync_event, error_event;

	read_event = profile_add_event(p, "read", "bytes", "bytes read", 0);
	write_event = profile_add_event(p, "write", "bytes", "bytes written", 0);
	sync_event = profile_add_event(p, "sync", "ns", "time in fsync", 0);
	error_event = profile_add_event(p, "io-error", "count", "failed", 0);
	modules.program = builder_module(p, "/opt/node", MODULE_FILE);
	modules.libc = builder_module(p, "/usr/lib/libc.so.6", MODULE_FILE);
	process = profile_add_process(p, &(struct profile_process){ .pid = 7,
								   .name = profile_string(p, "node") });
	for (int i = 0; i < 2; i++)
		threads[i] = builder_thread(p, process, 7 + i, i ? "writer" : "reader");
#define LOAD "main;load;l:pread64;n:"
#define SAVE "main;save;l:__GI___libc_write;n:"
#define SAMPLE(e, t, time, s, v, n)                                                                       \
	profile_add_sample(p, &(struct profile_sample){ .event = e, .thread = threads[t], .time_ns = time, \
							.stack = builder_stack(p, &modules, 0, s), .value = v, .count = n })
	SAMPLE(read_event, 0, 0, LOAD "/data/mdbx.dat", 4096, 4);
	SAMPLE(read_event, 0, 500000000, LOAD "/data/mdbx.dat", 1024, 1);
	SAMPLE(write_event, 1, 100000000, SAVE "/data/mdbx.dat", 1000, 3);
	SAMPLE(write_event, 1, 100000000, SAVE "socket:tcp on port 8545", 24, 0);
	SAMPLE(sync_event, 1, 200000000, SAVE "/data/mdbx.dat", 7000000, 2);
	SAMPLE(error_event, 1, 100000000, SAVE "/data/mdbx.dat", 1, 1);
	p->duration_ns = 1000000000;
	p->finished = true;
	profile_count_set(p, "io.pread64.calls", 5);
	profile_count_set(p, "io.pread64.bytes", 5120);
	profile_count_set(p, "io.io_uring_enter.calls", 9);
	profile_add_histogram(p, "io.pread64 latency", "ns")->counts[10] = 5;
	profile_count_set(p, "block.nvme0n1.read.requests", 3);
	profile_count_set(p, "block.nvme0n1.read.bytes", 12288);
	profile_count_set(p, "block.nvme0n1.read.own_requests", 2);
	profile_add_histogram(p, "block.nvme0n1.read latency", "ns")->counts[16] = 3;
	return p;
}

static void sums(void **state)
{
	struct profile *p = make();
	struct io_figures f;

	assert_true(io_measure(&f, p, &(struct select_options){ .event = 0 }));
	assert_true(f.chosen);
	assert_false(f.filtered);
	assert_int_equal(f.all.read_bytes, 5120);
	assert_int_equal(f.all.read_calls, 5);
	assert_int_equal(f.all.write_bytes, 1024);
	assert_int_equal(f.all.write_calls, 4); /* a count of 0 is one call */
	assert_int_equal(f.all.sync_ns, 7000000);
	assert_int_equal(f.all.sync_calls, 2);
	assert_int_equal(f.all.errors, 1);
	assert_int_equal(f.functions.n, 2);
	assert_string_equal(f.functions.v[0].name, "load"); /* not the C library, not the file */
	assert_int_equal(f.functions.v[0].read_bytes, 5120);
	assert_string_equal(f.functions.v[1].name, "save");
	assert_int_equal(f.files.n, 2);
	assert_string_equal(f.files.v[0].name, "/data/mdbx.dat");
	assert_int_equal(f.files.v[0].read_bytes, 5120);
	assert_int_equal(f.files.v[0].write_bytes, 1000);
	assert_int_equal(f.files.v[1].write_calls, 1);
	assert_int_equal(f.operations.n, 1);
	assert_in_range(f.operations.v[0].latency.p50_ns, 1024, 2048);
	assert_int_equal(f.operations.v[0].latency.count, 5);
	assert_int_equal(f.disks.n, 1);
	assert_string_equal(f.disks.v[0].name, "nvme0n1 read");
	assert_int_equal(f.disks.v[0].own_requests, 2);
	assert_int_equal(f.remarks.n, 0); /* io_uring was recorded */
	io_done(&f);
	profile_free(p);
}

static void filters(void **state)
{
	static const char *const reader[] = { "reader", NULL };
	struct profile *p = make();
	struct io_figures f;

	assert_true(io_measure(&f, p, &(struct select_options){ .event = 1, .threads = reader }));
	assert_true(f.filtered);
	assert_int_equal(f.all.read_bytes, 5120);
	assert_int_equal(f.all.write_bytes, 0);
	io_done(&f);

	io_measure(&f, p, &(struct select_options){ .from_ns = 400000000, .to_ns = 600000000 });
	assert_int_equal(f.all.read_bytes, 1024);
	assert_int_equal(f.all.sync_calls, 0);
	assert_int_equal(f.duration_ns, 200000000);
	io_done(&f);

	io_measure(&f, p, &(struct select_options){ .function = "^save$" });
	assert_int_equal(f.all.read_bytes, 0);
	assert_int_equal(f.all.write_bytes, 1024);
	io_done(&f);
	profile_free(p);
}

static void percentiles(void **state)
{
	uint64_t counts[64] = { 0 };

	assert_int_equal(io_percentile(counts, 0.5), 0);
	counts[0] = 50;
	counts[20] = 49;
	counts[63] = 1;
	assert_in_range(io_percentile(counts, 0.25), 0, 2);
	assert_in_range(io_percentile(counts, 0.9), 1 << 20, 1 << 21);
	assert_true(io_percentile(counts, 1) >= 1ULL << 63);
}

static void write_report(struct profile *p, uint32_t event, struct buf *text, struct buf *json)
{
	struct selection s;
	struct quality q;
	struct err err = { 0 };
	struct export_job job = { .profile = p, .selection = &s, .quality = &q };

	assert_int_equal(selection_make(p, &(struct select_options){ .event = event }, &s, &err), 0);
	quality_measure(&q, p, &s);
	section_io.text(&job, text);
	put_members(json, section_io.json(&job, &j));
	quality_done(&q);
	selection_done(&s);
}

static void reports(void **state)
{
	struct profile *p = make();
	struct buf text = { 0 }, json = { 0 };

	write_report(p, 0, &text, &json);
	assert_non_null(strstr(text.data, "5.00 bytes read for each byte written; 1 call failed"));
	assert_non_null(strstr(text.data, "Files synced"));
	assert_non_null(strstr(text.data, "nvme0n1 read"));
	assert_non_null(strstr(text.data, "\n     1us  33us 1ms  34ms 1s\n"
					  "  |  @                       |  pread64\n"));
	assert_non_null(strstr(text.data, "\n  |        @                 |  nvme0n1 read\n"));
	assert_non_null(strstr(json.data, "\"latency\":[[1024,5]]"));
	assert_null(strstr(text.data, "Not in these figures"));
	assert_non_null(strstr(json.data, "{\"name\":\"/data/mdbx.dat\",\"module\":\"\",\"read_bytes\":5120"));
	assert_non_null(strstr(json.data, "\"sectors\":24"));
	text.n = json.n = 0;

	/* Bytes read and written together are I/O as well. */
	write_report(p, SELECT_IO, &text, &json);
	assert_non_null(strstr(text.data, "Files synced"));
	text.n = json.n = 0;

	profile_count_set(p, "io.uring not recorded", 1);
	write_report(p, 0, &text, &json);
	assert_non_null(strstr(text.data, "Not in these figures: the target uses io_uring"));
	text.n = json.n = 0;

	/* A report about something else has the totals only. */
	profile_add_event(p, "cpu", "ns", "", 0);
	profile_add_sample(p, &(struct profile_sample){ .event = 4, .value = 1 });
	write_report(p, 4, &text, &json);
	assert_non_null(strstr(text.data, "--what read"));
	assert_null(strstr(text.data, "Files synced"));
	buf_done(&text);
	buf_done(&json);
	profile_free(p);
}

static void nothing(void **state)
{
	struct profile *p = profile_new();
	struct io_figures f;

	profile_add_event(p, "cpu", "ns", "", 0);
	assert_false(io_measure(&f, p, &(struct select_options){ 0 }));
	io_done(&f);
	/* The event is there, but nothing happened: no division by nothing. */
	profile_add_event(p, "read", "bytes", "", 0);
	assert_false(io_measure(&f, p, &(struct select_options){ .event = 1 }));
	io_done(&f);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sums), cmocka_unit_test(filters),
					    cmocka_unit_test(percentiles), cmocka_unit_test(reports),
					    cmocka_unit_test(nothing) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
