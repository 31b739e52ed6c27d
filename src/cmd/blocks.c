/*
 * blocks.c - the blocks of a recording: a row each, what its time was made of, and why the slow ones are. A node's log by
 * itself has a simpler table (logblocks.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/blocks/blockparts.h"
#include "analyze/blocks/blocks.h"
#include "analyze/subsystem/shares.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/logblocks.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/analyzed.h"
#include "cmd/reading/storeargs.h"
#include "cmd/reading/subsystemio.h"
#include "export/section/blockstext.h"
#include "ethereum/clients.h"
#include "export/export.h"
#include "profile/profile.h"

enum { DEFAULT_LIMIT = 30, PAGE_BYTES = 64 << 20 };

struct blocks_command {
	const char *output;
	struct option_list own;
	struct analyzed_options load;
	struct store_choice store;
	uint64_t limit;
	const char *block, *client, *pattern;
	bool json, csv, by_time, crates, by_subsystem, html;
};

static void command_done(struct blocks_command *c)
{
	vec_done(&c->own.list);
	vec_done(&c->load.patterns.list);
	vec_done(&c->load.symbols.list);
	vec_done(&c->load.subsystems.list);
	store_choice_done(&c->store);
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
		if (b->rows.v[i].block.known & BLOCK_NUMBER && b->rows.v[i].block.number == number) {
			*ret = i;
			found = true;
		}
	return found ? 0 : err_set(err, ENODATA, "block %llu is not in this recording: without --block all are listed",
				   (unsigned long long)number);
}

static int judge_and_write(struct analyzed *l, struct buf *out, struct err *err)
{
	int r = analyzed_judge(l, err);

	l->job.options.max_bytes = PAGE_BYTES;
	return r ?: html_write(&l->job, out, err);
}

/* The page of a capture whose samples were read a part at a time: as gasflame report writes it, but with all samples of the
 * block (NULL: none) that is asked for. */
static int write_long(const struct blocks_command *c, const char *capture, const struct block_row *row, struct buf *out,
		      struct err *err)
{
	const struct capture_span span = { row ? row->start_ns : 0, row ? row->start_ns + row->wall_ns : 0 };
	struct analyzed_options load = c->load;
	struct analyzed *l = NULL;
	int r;

	load.parts = load.blocks = false;
	load.sums = true;
	load.span = row ? &span : NULL;
	r = analyzed_read(capture, &load, &l, err);
	r = r ?: judge_and_write(l, out, err);
	analyzed_free(l);
	return r;
}

/* Writes the page beside the capture; returns its absolute path. NULL: it could not be written, which is
 * reported. */
static char *write_page(const struct blocks_command *c, struct analyzed *l, const struct block_row *row, char **capture)
{
	_cleanup_free_ char *path = captureio_beside(*capture, ".html");
	_cleanup_(buf_done) struct buf out = { 0 };
	struct err err = { 0 };
	int r = l->parts ? write_long(c, *capture, row, &out, &err) : judge_and_write(l, &out, &err);

	if (!r)
		r = captureio_write_beside(path, &out, capture, 1, &err);
	if (r) {
		log_warn("no page was written: %s", err.text);
		return NULL;
	}
	return realpath(path, NULL);
}

static int write_result(const struct blocks_command *c, struct analyzed *l, const struct blocks *b, char **capture,
			struct err *err)
{
	struct blockparts *parts = blockparts_new(l->profile);
	struct blocks_job job = { .profile = l->profile, .blocks = b, .parts = parts, .capture = *capture, .limit = c->limit,
				  .by_time = c->by_time, .crates = c->crates, .by_subsystem = c->by_subsystem,
				  .subsystems = b->subsystems.n ? &l->table : NULL,
				  .columns = !c->output && isatty(STDOUT_FILENO) ? command_width() : 0 };
	_cleanup_(buf_done) struct buf out = { 0 };
	_cleanup_free_ char *page = NULL;
	size_t row = SIZE_MAX;
	int r = c->block ? find_block(b, c->block, &row, err) : 0;

	if (r < 0) {
		blockparts_free(parts);
		return r;
	}
	if ((c->block || c->html) && captureio_has_beside(*capture))
		job.page = page = write_page(c, l, c->block ? &b->rows.v[row] : NULL, capture);
	if (c->block)
		blockstext_write_one(&job, row, &out);
	else if (c->json)
		blocksjson_write(&job, &out);
	else if (c->csv)
		blockscsv_write(&job, &out);
	else
		blockstext_write(&job, &out);
	r = captureio_write(c->output, &out, capture, 1, err);
	if (!r && page && !c->block) {
		out.n = 0;
		blockstext_url(&job, SIZE_MAX, &out);
		log_info("The page: %s", out.data);
	}
	blockparts_free(parts);
	return r;
}

/* Reads the samples of some spans for the analysis. */
static int read_part(void *context, const struct blocks_span *spans, size_t n, struct err *err)
{
	_cleanup_free_ struct capture_span *wanted = mem_alloc(n * sizeof(*wanted));

	for (size_t i = 0; i < n; i++)
		wanted[i] = (struct capture_span){ spans[i].start_ns, spans[i].end_ns };
	return capture_parts_read(context, wanted, n, err);
}

static int make_blocks(const struct blocks_command *c, struct analyzed *l, bool node, struct blocks *b, struct err *err)
{
	const struct blocks_source source = { read_part, l->parts, l->parts ? capture_parts_rows(l->parts) : NULL };

	return blocks_make_from(b, l->profile, l->parts ? &source : NULL, &l->causes, c->own.list.n ? c->own.list.v : NULL,
				node ? &l->subsystems : NULL, err);
}

static int run(struct blocks_command *c, char **capture, struct err *err)
{
	struct blocks b = { 0 };
	struct analyzed *l = NULL;
	int r;
	bool node;

	r = analyzed_read(*capture, &c->load, &l, err);
	node = !r && subsystem_is_node(&l->subsystems, &l->causes);

	if (!r && c->by_subsystem && !node)
		r = err_set(err, ENODATA, "this is no node whose functions the patterns know: --subsystems names a file with others");
	if (!r)
		r = make_blocks(c, l, node, &b, err);
	if (!r && !select_has_waits(l->profile))
		log_warn("waits were not recorded (-e cpu,wait): what is not on the CPU is unknown");
	if (!r)
		r = write_result(c, l, &b, capture, err);
	blocks_done(&b);
	analyzed_free(l);
	return r;
}

/* Options that need what only a recording has, or only a log. NULL: all fit. */
static const char *find_misfit(const struct blocks_command *c, bool log)
{
	const struct {
		const char *name;
		bool is_set;
	} recordings[] = {
		{ "--block", c->block != NULL }, { "--crates", c->crates }, { "--by-subsystem", c->by_subsystem }, { "--html", c->html },
		{ "--own", c->own.list.n }, { "--patterns", c->load.patterns.list.n }, { "--symbols", c->load.symbols.list.n },
		{ "--subsystems", c->load.subsystems.list.n },
	};

	if (!log)
		return c->client ? "--log-client" : c->pattern ? "--log-pattern" : NULL;
	for (size_t i = 0; i < ARRAY_LEN(recordings); i++)
		if (recordings[i].is_set)
			return recordings[i].name;
	return NULL;
}

static int run_any(struct blocks_command *c, char **path, struct err *err)
{
	const struct logblocks_options o = { .path = path, .client = c->client, .pattern = c->pattern, .output = c->output,
					     .limit = c->limit, .by_time = c->by_time, .json = c->json, .csv = c->csv };
	bool log = logblocks_is_log(*path);
	const char *misfit = find_misfit(c, log);

	if (misfit && log)
		return err_set(err, EINVAL, "%s is for a recording, and %s is a log: record with --log first", misfit, *path);
	if (misfit)
		return err_set(err, EINVAL, "%s is for a log, and %s is none", misfit, *path);
	return log ? logblocks_run(&o, err) : run(c, path, err);
}

static int blocks(const struct command *command, int argc, char **argv)
{
	_cleanup_(command_done) struct blocks_command c = { .limit = DEFAULT_LIMIT, .load = { .blocks = true, .parts = true } };
	_cleanup_free_ char *verified = client_names(true), *others = client_names(false),
		*client_help = mem_printf("of a log: whose lines they are: %s (captured from the client), or %s (as the client's source "
					  "prints them, not yet verified); by default each block's line tells", verified, others);
	const struct option_spec options[] = {
		{ 0, "block", OPTION_STRING, &c.block, "NUMBER",
		  "one block in full: its functions, files and crates; the page is written beside the capture, and its "
		  "address opens it on this block" },
		{ 'n', "limit", OPTION_UINT, &c.limit, "ROWS", "rows of the table, 0 shows all", 0, 1000000000 },
		{ 0, "in-order", OPTION_FLAG, &c.by_time, .help = "rows as the blocks came, not the slowest first" },
		{ 0, "crates", OPTION_FLAG, &c.crates, .help =
		  "time on the CPU by crate, in place of own code, dependencies, std and the kernel" },
		{ 0, "by-subsystem", OPTION_FLAG, &c.by_subsystem, .help =
		  "the wall time by the subsystems of a node (EVM, state root, ...), on the CPU and waiting, in place of its "
		  "causes" },
		SUBSYSTEMS_OPTION(&c.load.subsystems),
		{ 0, "html", OPTION_FLAG, &c.html, .help =
		  "also write the page beside the capture, as report does, and say its address" },
		{ 0, "json", OPTION_FLAG, &c.json, .help = "everything, as JSON" },
		{ 0, "csv", OPTION_FLAG, &c.csv, .help = "a line for each block, as CSV" },
		{ 0, "log-client", OPTION_STRING, &c.client, "CLIENT", client_help },
		{ 0, "log-pattern", OPTION_STRING, &c.pattern, "REGEX",
		  "of a log: lines of your own, an extended regex with (?<number>...), and any of hash, txs, gas, mgas, ggas, "
		  "time (59.7ms), ms, us and s" },
		{ 'o', "output", OPTION_STRING, &c.output, "FILE",
		  "where to write; \"-\", the default, is the standard output" },
		STORE_OPTIONS(&c.store),
		STORE_TIMES(&c.store),
		{ 0, "own", OPTION_LIST, &c.own, "CRATE", "a crate or module that is your own, or a pattern of them" },
		{ 0, "patterns", OPTION_LIST, &c.load.patterns, "FILE",
		  "more patterns for the causes of waits, before the built-in ones (configs/patterns.conf)" },
		{ 0, "symbols", OPTION_LIST, &c.load.symbols, "PATH",
		  COMMAND_SYMBOLS },
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(command, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (command_operands.n != 1) {
		log_error("blocks reads one capture or log: name only one");
		return EXIT_USAGE;
	}
	if (c.json + c.csv + (c.block != NULL) > 1) {
		log_error("--json, --csv and --block are three forms: choose one");
		return EXIT_USAGE;
	}
	if (c.client && c.pattern) {
		log_error("--log-client and --log-pattern are two ways to say the same: choose one");
		return EXIT_USAGE;
	}
	if ((c.json || c.csv || c.block) && (c.by_time || c.crates || c.by_subsystem || c.limit != DEFAULT_LIMIT)) {
		log_error("--limit, --in-order, --crates and --by-subsystem are for the table");
		return EXIT_USAGE;
	}
	if (c.crates && c.by_subsystem) {
		log_error("--crates and --by-subsystem are two tables: choose one");
		return EXIT_USAGE;
	}
	r = run_any(&c, command_operands.v, &err);
	if (r < 0) {
		log_error("%s", err.text);
		return err.code == EINVAL ? EXIT_USAGE : EXIT_ERROR;
	}
	return EXIT_OK;
}

const struct command command_blocks = {
	.name = "blocks",
	.summary = "the blocks of a recording or a log: gas, time, what it was made of, why some are slow",
	.usage = "[options] [FILE]",
	.describe =
		"FILE is a recording, or a node's log (\"-\" is the standard input), told apart by their content. Of a log it is "
		"a row for each block: its number, gas, transactions, time and Ggas/s, as reth, op-reth, xlayer-reth, ethrex, geth, "
		"Nethermind, Besu, Erigon and anvil say it, plain, coloured, as logfmt or JSON, from a container or the journal "
		"(journalctl -o json). A line for many blocks is a row that says so; the microseconds that reth "
		"takes to insert a block which it built are not taken for the block's time.\n"
		"\n"
		"Of a recording it is a row for each block that record --log, --rpc or --mark-function found: its number, gas, transactions, wall time and "
		"Ggas/s, and what the wall time was made of along its path: the thread that was most on the CPU, and "
		"where that one waited for another thread, what that one did. On the CPU by whose code it was (own, "
		"dependencies, std with the allocator, the kernel), in the run queue, waiting for locks, the disk, "
		"page faults, the network, for conditions, pipes and sleep, idle, and unknown; these sum to the wall "
		"time. --crates has the CPU by crate, --by-subsystem the whole by subsystem: EVM, state root, Keccak, database reads, ... Beside it is what all other threads did on the CPU in the same time.\n"
		"\n"
		"Slow are the slowest fifth, if they take half again as long as the median block; they are compared "
		"with the middle half, and files are named where -e fault or io recorded them. A block that the log only ends has the time from the line that began it; one without "
		"either is a moment and has no split. Spans that the program marked itself (record --marks, --mark-function, samply's marker "
		"files, gasflame.h) are summed above the table, listed by --block, and in --json.\n"
		"\n"
		"With --store it is those of a --target and a time in a store (gasflame store --help).\n"
		"\n"
		COMMAND_NEWEST,
	.example = "gasflame blocks reth.log\n"
		   "journalctl -u reth -o json | gasflame blocks -\n"
		   "gasflame record --log reth.log --rpc http://127.0.0.1:8545 -d 60 -o reth.gasflame reth\n"
		   "gasflame blocks reth.gasflame\n"
		   "gasflame blocks --block 24443168 reth.gasflame\n"
		   "gasflame blocks --csv reth.gasflame > blocks.csv\n"
		   "gasflame blocks --store clickhouse://127.0.0.1:8123/gasflame --target reth-1 --from -1h",
	.run = blocks,
	.newest = 1,
};
