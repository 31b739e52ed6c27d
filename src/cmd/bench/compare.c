/*
 * compare.c - two sides of measured runs: slower, faster, or only noise; for people, a pull request, and CI.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyze/blocks/blockruns.h"
#include "bench/compare.h"
#include "bench/runs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/input.h"
#include "cmd/reading/analyzed.h"
#include "cmd/reading/subsystemio.h"
#include "export/bench/bench.h"
#include "profile/profile.h"

enum { MAX_BYTES = 256 << 20, FILES_MAX = 64 };

struct compare {
	const char *format, *output, *metric;
	const char *a, *b;
	struct option_list subsystems;
	double floor, confidence; /* percent */
	bool json, markdown, fail_on_slower;
	struct runs files[FILES_MAX];
	size_t count;
	const struct runs *sides[2][FILES_MAX];
	uint32_t commands[2];
	char *names[2];
};

static void compare_done(struct compare *c)
{
	for (size_t i = 0; i < c->count; i++)
		runs_done(&c->files[i]);
	vec_done(&c->subsystems.list);
	free(c->names[0]);
	free(c->names[1]);
}

static int read_table(const char *path, struct runs *ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	int e = fd_read_path(path, MAX_BYTES, &text, &bytes);

	if (e < 0)
		return err_errno(err, -e, "cannot read %s", path);
	return runs_read(text, bytes, path, ret, err);
}

/* Blocks or runs of a recording, with what their time went to. */
static int read_capture(const char *path, const struct option_list *subsystems, struct runs *ret, struct err *err)
{
	const struct analyzed_options o = { .subsystems = *subsystems };
	struct analyzed *l;
	int e = analyzed_read(path, &o, &l, err);

	if (e)
		return e;
	e = blockruns_make(l->profile, &l->causes, &l->subsystems, profile_str(l->profile, l->profile->target), ret, err);
	analyzed_free(l);
	return e ? err_prefix(err, "%s", path) : 0;
}

static int read_files(struct compare *c, char **paths, int n, struct err *err)
{
	if (n > FILES_MAX)
		return err_set(err, EINVAL, "more than %d files", FILES_MAX);
	for (int i = 0; i < n; i++) {
		int e = input_is_capture(paths[i]) ? read_capture(paths[i], &c->subsystems, &c->files[i], err)
						   : read_table(paths[i], &c->files[i], err);

		if (e) {
			err->code = EBADMSG; /* the file is wrong, not the command line */
			return -EBADMSG;
		}
		c->count++;
	}
	return 0;
}

/* A command of a file: by its name, or its number from 1. */
static int find_command(const struct runs *r, const char *wanted, const char *path, uint32_t *ret,
			struct err *err)
{
	uint64_t number;

	for (size_t i = 0; i < r->commands.n; i++)
		if (!strcmp(r->commands.v[i], wanted)) {
			*ret = i;
			return 0;
		}
	if (str_parse_uint(wanted, 1, r->commands.n, &number))
		return err_set(err, EINVAL,
			       "%s has no command '%s': say its name, or its number from 1 to %zu", path,
			       wanted, r->commands.n);
	*ret = number - 1;
	return 0;
}

/* Both sides are in one file. */
static int split_file(struct compare *c, char **paths, struct err *err)
{
	const struct runs *r = &c->files[0];
	int e = 0;

	if (r->commands.n < 2)
		return err_set(err, EINVAL,
			       "%s has one command: name a second file, or run both with gasflame bench -- "
			       "A ::: B",
			       paths[0]);
	c->commands[1] = 1;
	if (r->commands.n > 2 && (!c->a || !c->b))
		return err_set(err, EINVAL, "%s has %zu commands: say with --a and --b which two", paths[0],
			       r->commands.n);
	if (c->a)
		e = find_command(r, c->a, paths[0], &c->commands[0], err);
	if (!e && c->b)
		e = find_command(r, c->b, paths[0], &c->commands[1], err);
	for (size_t i = 0; i < 2 && !e; i++) {
		c->sides[i][0] = r;
		c->names[i] = mem_strdup(r->commands.v[c->commands[i]]);
	}
	return e;
}

/* A1 B1 A2 B2 ... */
static int pair_files(struct compare *c, char **paths, struct err *err)
{
	if (c->a || c->b)
		return err_set(err, EINVAL, "--a and --b choose commands of one file, and there are %zu",
			       c->count);
	if (c->count % 2)
		return err_set(err, EINVAL, "files come in pairs, A B A B ...: there are %zu", c->count);
	for (size_t i = 0; i < c->count; i++) {
		if (c->files[i].commands.n > 1)
			return err_set(err, EINVAL,
				       "%s has several commands: compare it alone (--a and --b choose two)",
				       paths[i]);
		c->sides[i % 2][i / 2] = &c->files[i];
	}
	for (size_t i = 0; i < 2; i++)
		c->names[i] = *c->files[i].commands.v[0]
				      ? mem_printf("%s: %s", paths[i], c->files[i].commands.v[0])
				      : mem_strdup(paths[i]);
	return 0;
}

static int compare(struct compare *c, char **paths, int n, enum compare_word *ret, struct err *err)
{
	const struct compare_options o = { .floor = c->floor / 100,
					   .confidence = c->confidence / 100,
					   .metric = c->metric };
	_cleanup_(buf_done) struct buf out = { 0 };
	struct comparison made;
	int e = read_files(c, paths, n, err);

	if (!e)
		e = n == 1 ? split_file(c, paths, err) : pair_files(c, paths, err);
	if (!e) {
		const struct compare_side a = { c->sides[0], n == 1 ? 1 : c->count / 2, c->commands[0] };
		const struct compare_side b = { c->sides[1], n == 1 ? 1 : c->count / 2, c->commands[1] };

		e = compare_make(&a, &b, &o, &made, err);
	}
	if (e)
		return e;
	const struct compare_names names = { c->names[0], c->names[1] };

	if (c->json)
		comparejson_put(&made, &names, &out);
	else if (c->markdown)
		comparemarkdown_put(&made, &names, &out);
	else
		comparetext_put(&made, &names, &out);
	*ret = made.rows.v[0].verdict;
	comparison_done(&made);
	return captureio_write(c->output, &out, paths, n, err);
}

static int compare_main(const struct command *c, int argc, char **argv)
{
	struct compare s = { .floor = NAN, .confidence = 95 };
	enum compare_word word = COMPARE_UNKNOWN;
	struct err err = { 0 };
	const char *floor = NULL;
	const struct option_spec options[] = {
		{ 0, "metric", OPTION_STRING, &s.metric, "NAME",
		  "what to judge by; by default the first phase, or the wall time" },
		{ 0, "floor", OPTION_STRING, &floor, "PERCENT",
		  "a change below it is not worth a word; by default 1.2 for mean and median, 1.35 for "
		  "p90, 5 for p99" },
		{ 0, "confidence", OPTION_PERCENT, &s.confidence, "PERCENT", "of the intervals" },
		{ 0, "a", OPTION_STRING, &s.a, "COMMAND",
		  "the first side, where one file has several commands: a name or a number" },
		{ 0, "b", OPTION_STRING, &s.b, "COMMAND", "the second side" },
		SUBSYSTEMS_OPTION(&s.subsystems),
		{ 0, "fail-on-slower", OPTION_FLAG, &s.fail_on_slower,
		  .help = "end with status 7 when B is worse beyond doubt" },
		{ 0, "json", OPTION_FLAG, &s.json, .help = "JSON instead of a table" },
		{ 0, "markdown", OPTION_FLAG, &s.markdown, .help = "a table for a pull request" },
		{ 'o', "output", OPTION_STRING, &s.output, "FILE",
		  "where to; by default the standard output" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), e = 0;

	if (first < 0)
		return -first - 1;
	s.floor = -100;
	if (floor && str_parse_percent(floor, &s.floor))
		e = err_set(&err, EINVAL, "--floor wants a percentage like 2 or 0.5%%, not %s", floor);
	else if (!(s.confidence >= 50 && s.confidence <= 99.99))
		e = err_set(&err, EINVAL, "--confidence wants 50 to 99.99");
	else if (s.json && s.markdown)
		e = err_set(&err, EINVAL, "--json and --markdown are two formats: choose one");
	else if (first >= argc)
		e = err_set(&err, EINVAL, "say what to compare: gasflame compare before.json after.json");
	if (!e)
		e = compare(&s, argv + first, argc - first, &word, &err);
	compare_done(&s);
	if (e)
		return command_failed(&err);
	return s.fail_on_slower && (word == COMPARE_WORSE || word == COMPARE_MIXED) ? EXIT_SLOWER : EXIT_OK;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "compare measured runs: slower or faster, and whether that is real",
	.usage = "[options] A B [A B]... | FILE",
	.describe = "Compares what gasflame bench measured: two files, or one file in which two commands "
		    "were run in turn, which tells more. The word slower or faster is said only when the "
		    "whole interval of the change, by a bootstrap clustered by run, lies beyond a floor. "
		    "Only one figure is judged; the others stand below it to say why, at a confidence so "
		    "much higher that all of them together are as seldom wrong.\n\n"
		    "Captures are compared by their blocks (record --log; the same blocks in pairs, where both have "
		    "them), or by the runs of bench --record: the wall time, and what it went to: CPU, "
		    "allocation (the allocator's part of it), queue, lock, disk, fault, network, wait, idle; of blocks along "
		    "their paths, of runs over all threads. Nodes also have the time of each subsystem (evm, state_root, "
		    "keccak, database_reads, ...). --metric lock or --metric state_root judges by one of these.\n\n"
		    "It also reads any CSV with a line of names (columns run and block_number are "
		    "understood, *_latency is in microseconds), such as block latencies of a replay: pairs "
		    "of files, A B A B, are pairs of runs.",
	.example = "gasflame compare --fail-on-slower before.json after.json\n"
		   "gasflame compare --markdown before.gasflame after.gasflame\n"
		   "gasflame bench -n 20 -o runs.json -- ./old ::: ./new && gasflame compare --markdown "
		   "runs.json",
	.run = compare_main,
};
