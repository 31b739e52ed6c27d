/*
 * fuzz_runs.c - files of measured runs, JSON and CSV, and what a program printed.
 *
 * What is read has a value for each row and column, can be written and read again, and compared with itself.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/compare.h"
#include "bench/runlog.h"
#include "bench/runs.h"
#include "base/buf.h"
#include "export/bench/bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void check_runs(const struct runs *r)
{
	const struct runs *files[] = { r };
	const struct compare_side a = { files, 1, 0 }, b = { files, 1, r->commands.n - 1 };
	const struct compare_options o = { .floor = -1 };
	struct buf out = { 0 };
	struct comparison c;

	expect(r->rows.n && r->metrics.n && r->commands.n && r->values.n == r->rows.n * r->metrics.n);
	for (size_t i = 0; i < r->rows.n; i++)
		expect(r->rows.v[i].command < r->commands.n);
	/* Intervals are drawn ten thousand times: for a few values only. */
	if (r->values.n > 64)
		return;
	benchtext_put(r, 80, &out);
	benchcsv_put(r, &out);
	benchjson_put(r, &out);
	benchpage_put(r, &out);
	if (!compare_make(&a, &b, &o, &c, NULL)) {
		const struct compare_names names = { r->commands.v[0], r->commands.v[r->commands.n - 1] };

		comparetext_put(&c, &names, &out);
		comparemarkdown_put(&c, &names, &out);
		comparejson_put(&c, &names, &out);
		comparison_done(&c);
	}
	buf_done(&out);
}

static void check_output(const char *text, size_t size)
{
	struct runlog l = { .now_ns = 1700000000000000000 };

	for (size_t i = 0; runlog_presets[i]; i++)
		runlog_add_preset(&l, runlog_presets[i], NULL);
	runlog_feed(&l, text, size / 2);
	runlog_feed(&l, text + size / 2, size - size / 2);
	runlog_end(&l);
	for (size_t i = 0; i < l.phases.n; i++)
		expect(isnan(runlog_seconds(&l, i)) || runlog_seconds(&l, i) >= 0);
	for (size_t i = 0; i < l.spans.n; i++)
		expect(l.spans.v[i].start_ns <= l.spans.v[i].end_ns);
	runlog_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct runs r;

	memcpy(text, data, size);
	text[size] = 0;
	check_output(text, size);
	if (!runs_read(text, size, "fuzz", &r, NULL)) {
		check_runs(&r);
		runs_done(&r);
	}
	free(text);
	return 0;
}
