/*
 * blocks.c - the blocks of a recording: a row each, what its time was made of, and why the slow ones are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/files.h"
#include "export/blockstext.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { DEFAULT_LIMIT = 30 };

struct blocks_command {
	const char *output;
	struct option_list own, patterns, symbols;
	uint64_t limit;
	const char *block;
	bool json, csv, by_time;
};

static void command_done(struct blocks_command *c)
{
	vec_done(&c->own.list);
	vec_done(&c->patterns.list);
	vec_done(&c->symbols.list);
}

/* The block of that number; of several (the chain was reorganized) the last. */
static int find_block(const struct blocks *b, const char *wanted, size_t *ret, struct err *err)
{
	char *rest;
	uint64_t number = strtoull(wanted, &rest, 10);
	bool found = false;

	if (*rest || !*wanted || *wanted == '-')
		return err_set(err, EINVAL, "--block takes a number: %s", wanted);
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i].known & MARK_NUMBER && b->rows.v[i].number == number) {
			*ret = i;
			found = true;
		}
	return found ? 0 : err_set(err, ENODATA, "block %llu is not in this recording: without --block all are listed",
				   (unsigned long long)number);
}

static int write_result(const struct blocks_command *c, const struct profile *p, const struct blocks *b,
			char **capture, struct err *err)
{
	const struct blocks_job job = { .profile = p, .blocks = b, .capture = *capture, .limit = c->limit,
					.by_time = c->by_time };
	_cleanup_(buf_done) struct buf out = { 0 };
	size_t row = 0;
	int r;

	if (c->block) {
		r = find_block(b, c->block, &row, err);
		if (r < 0)
			return r;
		blockstext_write_one(&job, row, &out);
	} else if (c->json) {
		blocksjson_write(&job, &out);
	} else if (c->csv) {
		blockscsv_write(&job, &out);
	} else {
		blockstext_write(&job, &out);
	}
	return files_write(c->output, &out, capture, 1, err);
}

static bool has_waits(const struct profile *p)
{
	for (size_t i = 0; i < p->events.n; i++)
		if (cause_role(p, i) == ROLE_WAIT)
			return true;
	return false;
}

static int run(const struct blocks_command *c, char **capture, struct err *err)
{
	const struct symbolize_options names = { .paths = c->symbols.list.v };
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct patterns patterns = { 0 };
	struct causes causes = { 0 };
	struct blocks b = { 0 };
	int r = files_read_patterns(&c->patterns, &patterns, err);

	if (!r)
		r = files_read(capture, 1, &p, err);
	if (!r)
		r = files_find_names(&names, p, err);
	if (!r) {
		causes_init(&causes, p, &patterns);
		r = blocks_make(&b, p, &causes, c->own.list.n ? c->own.list.v : NULL, err);
	}
	if (!r && !has_waits(p))
		log_warn("waits were not recorded (-e cpu,wait): what is not on the CPU is unknown");
	if (!r)
		r = write_result(c, p, &b, capture, err);
	blocks_done(&b);
	causes_done(&causes);
	patterns_done(&patterns);
	return r;
}

static int blocks(const struct command *command, int argc, char **argv)
{
	_cleanup_(command_done) struct blocks_command c = { .limit = DEFAULT_LIMIT };
	const struct option_spec options[] = {
		{ 0, "block", OPTION_STRING, &c.block, "NUMBER",
		  "one block in full: its functions and crates, and how to open the page on its span" },
		{ 'n', "limit", OPTION_UINT, &c.limit, "ROWS", "rows of the table, 0 shows all", 0, 1000000000 },
		{ 0, "in-order", OPTION_FLAG, &c.by_time, .help = "rows as the blocks came, not the slowest first" },
		{ 0, "json", OPTION_FLAG, &c.json, .help = "everything, as JSON" },
		{ 0, "csv", OPTION_FLAG, &c.csv, .help = "a line for each block, as CSV" },
		{ 'o', "output", OPTION_STRING, &c.output, "FILE",
		  "where to write; \"-\", the default, is the standard output" },
		{ 0, "own", OPTION_LIST, &c.own, "CRATE", "a crate or module that is your own, or a pattern of them" },
		{ 0, "patterns", OPTION_LIST, &c.patterns, "FILE",
		  "more patterns of what waits mean, before those that are built in (configs/patterns.conf)" },
		{ 0, "symbols", OPTION_LIST, &c.symbols, "PATH",
		  "a file with symbols, or a folder of them, for code that has no names yet" },
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(command, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (argc - first != 1) {
		log_error("blocks needs one capture: `gasflame ls` lists those below this folder");
		return EXIT_USAGE;
	}
	if (c.json + c.csv + (c.block != NULL) > 1) {
		log_error("--json, --csv and --block are three forms: choose one");
		return EXIT_USAGE;
	}
	if ((c.json || c.csv || c.block) && (c.by_time || c.limit != DEFAULT_LIMIT)) {
		log_error("--limit and --in-order are for the table");
		return EXIT_USAGE;
	}
	r = run(&c, argv + first, &err);
	if (r < 0) {
		log_error("%s", err.text);
		return err.code == EINVAL ? EXIT_USAGE : EXIT_ERROR;
	}
	return EXIT_OK;
}

const struct command command_blocks = {
	.name = "blocks",
	.summary = "the blocks of a recording: gas, time, what it was made of, why some are slow",
	.usage = "[options] FILE",
	.describe =
		"A row for each block that record --log, --rpc or --mark-function found: its number, gas, transactions, wall time and "
		"Ggas/s, and what the wall time was made of along its path: the thread that was most on the CPU, and "
		"where that one waited for another thread, what that one did. On the CPU by whose code it was (own, "
		"dependencies, std with the allocator, the kernel), in the run queue, waiting for locks, the disk, "
		"page faults, the network, for conditions, pipes and sleep, idle, and unknown; these sum to the wall "
		"time. Beside it is what all other threads did on the CPU in the same time.\n"
		"\n"
		"Slow are the slowest fifth, if they take half again as long as the median block; they are compared "
		"with the middle half. A block that the log only ends has the time from the line that began it; one without "
		"either is a moment and has no split.",
	.example = "gasflame record --log reth.log --rpc http://127.0.0.1:8545 -d 60 -o reth.gasflame reth\n"
		   "gasflame blocks reth.gasflame\n"
		   "gasflame blocks --block 24443168 reth.gasflame\n"
		   "gasflame blocks --csv reth.gasflame > blocks.csv",
	.run = blocks,
};
