/*
 * test_blocklog.c - lines of nodes' logs as blocks, the logs themselves, and answers of JSON-RPC.
 *
 * The lines of anvil were captured from anvil 1.7.1. Those of the other clients are in the formats that their sources
 * print, with made-up figures: not yet verified against the clients. tests/golden/logs has more of each.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "target/log/logs.h"
#include "ethereum/clients.h"
#include "ethereum/log/blocklog.h"
#include "ethereum/log/logline.h"
#include "ethereum/rpcblock.h"
#include "test.h"

#define MS 1000000ULL
#define HASH "0xf8aa5729ab6fa67dcc375e556b4bc64b48908d35aa46b35124bd1cc46edd7b39"
#define OTHER "0xbbe75a7a63b0d2a31482b0163a3cad7c788e3dc599d38030f1f13b21e80e0ad0"

struct got {
	struct blocklog_block list[128];
	size_t n, amended;
	struct blocklog_counts counts;
};

static void got_block(void *context, const struct blocklog_block *b)
{
	struct got *g = context;

	assert_true(b->start_ns <= b->end_ns);
	if (b->amends) {
		assert_true(b->order < g->n);
		g->list[b->order] = *b;
		g->amended++;
		return;
	}
	assert_true(g->n < ARRAY_LEN(g->list));
	assert_int_equal(b->order, g->n);
	g->list[g->n++] = *b;
}

/* Lines a second apart, from second 10 on. */
static struct got parse(const char *client, const char *pattern, const char *text)
{
	struct got g = { 0 };
	struct blocklog *m;
	struct err err = { 0 };
	uint64_t now = 10000 * MS;

	if (blocklog_new(client, pattern, got_block, &g, &m, &err))
		fail_msg("%s", err.text);
	for (const char *end; *text; text = *end ? end + 1 : end, now += 1000 * MS) {
		_cleanup_free_ char *line = NULL;

		end = strchrnul(text, '\n');
		line = mem_strndup(text, end - text);
		blocklog_line(m, line, end - text, now);
	}
	blocklog_flush(m);
	g.counts = *blocklog_counted(m);
	blocklog_free(m);
	return g;
}

static void assert_block(const struct blocklog_block *b, uint64_t number, int64_t gas, int64_t txs, double ms)
{
	assert_int_equal(b->block.number, number);
	assert_true(b->block.known & BLOCK_NUMBER);
	assert_int_equal(!!(b->block.known & BLOCK_GAS), gas >= 0);
	assert_int_equal(!!(b->block.known & BLOCK_TRANSACTIONS), txs >= 0);
	if (gas >= 0)
		assert_int_equal(b->block.gas, gas);
	if (txs >= 0)
		assert_int_equal(b->block.transactions, txs);
	assert_int_equal(b->timed, ms > 0);
	if ((double)(b->end_ns - b->start_ns) / MS - ms > 0.001 || (double)(b->end_ns - b->start_ns) / MS - ms < -0.001)
		fail_msg("block %llu took %llu ns, not %f ms", (unsigned long long)number,
			 (unsigned long long)(b->end_ns - b->start_ns), ms);
}

/* --- small texts --- */

static void counts_and_times_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t count, ns;
	} cases[] = {
		{ "36.42Mgas", 36420000, -1 }, { "1.10Ggas", 1100000000, -1 }, { "999gas", 999, -1 }, { "0", 0, -1 },
		{ "24,443,168", 24443168, -1 }, { "21.00Kgas", 21000, -1 }, { "1.5 Mgas", 1500000, -1 },
		{ "", -1, -1 }, { "gas", -1, -1 }, { "12x", -1, -1 }, { "-3", -1, -1 },
		{ "99999999999999999999", -1, -1 }, { "33.1ms", -1, 33100000 }, { "850\xc2\xb5s", -1, 850000 },
		{ "1.234s", -1, 1234000000 }, { "1m2.5s", -1, 62500000000 }, { "12ns", -1, 12 }, { "ms", -1, -1 },
		{ "1h1m1s", -1, 3661000000000 }, { "1m 2s", -1, 62000000000 }, { "33.1m", 33100000, -1 }, { "37.512MGas", 37512000, -1 }, { "3 ms", -1, 3000000 }, { "5.5.5ms", -1, -1 },
		{ "9999999999999h", -1, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t count = 7, ns = 7;
		int r = blocklog_parse_count(cases[i].text, strlen(cases[i].text), &count);
		int t = blocklog_parse_time(cases[i].text, strlen(cases[i].text), &ns);

		if ((cases[i].count < 0 ? r != -EINVAL : r || count != (uint64_t)cases[i].count) ||
		    (cases[i].ns < 0 ? t != -EINVAL : t || ns != (uint64_t)cases[i].ns))
			fail_msg("'%s': %d %llu, %d %llu", cases[i].text, r, (unsigned long long)count, t,
				 (unsigned long long)ns);
	}
}

static void colours_and_containers_are_stripped(void **state)
{
	static const char *const cases[][2] = {
		{ "\033[2m2026\033[0m \033[32m INFO\033[0m x", "2026  INFO x" },
		{ "cut \033[3", "cut" },
		{ "alone \033", "alone" },
		{ "{\"log\":\"a \\u001b[1mb\\u001b[0m \\\"c\\\"\\n\",\"stream\":\"stdout\"}", "a b \"c\"" },
		{ "{\"log\":\"cut \\u00", "cut u00" },
		{ "{\"log\":\"cut\\", "cut\\" },
		{ "{\"log\":\"", "" },
		{ "{\"log\":\"{\\\"msg\\\":\\\"in\\\",\\\"n\\\":1}\\n\",\"stream\":\"stdout\"}", "in n=1 " },
		{ "x {\"msg\":\"m\",\"a\":{\"b\":1,\"c\":[1,{\"d\":\"]\"}],\"e\":\"f g\"}} y", "x m a.b=1 a.e=\"f g\"  y" },
		{ "t=1 msg=\"{\\\"msg\\\":\\\"in\\\",\\\"n\\\":1}\"", "t=1 msg=\" in n=1 " },
		{ "{\"fields\":{\"message\":\"m\",\"a.b\":7,\"c\":\"7\\u00b5s\"},\"target\":\"t\"}", "m a.b=7 c=7\xc2\xb5s target=t " },
		{ "{\"_PID\":\"1\",\"F_A_B\":\"7\",\"PRIORITY\":\"6\",\"MESSAGE\":\"m\"}", "m a_b=7 " },
		{ "{\"MESSAGE\":[27,91,49,109,104, 105,27,91,48,109],\"F_N\":\"7\"}", "hi n=7 " },
		{ "{\"MESSAGE\":null,\"F_N\":\"7\"}", "null n=7 " },
		{ "{\"msg\":\"m\",\"whole\":1,\"cut\":12", "m whole=1 " },
		{ "{\"msg\":\"m\",\"cut\":\"12", "m" },
		{ "{\"msg\":\"m\",\"a\":{\"b\":1,\"c\":[1,", "m a.b=1 " },
		{ "{ no JSON } {}", "{ no JSON } {}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(buf_done) struct buf line = { 0 };

		logline_plain(&line, cases[i][0], strlen(cases[i][0]));
		assert_string_equal(line.data, cases[i][1]);
		assert_int_equal(line.n, strlen(line.data));
	}
}

/* --- clients --- */

static const char anvil_lines[] =
	"eth_accounts\neth_sendTransaction\neth_accounts\nevm_mine\nevm_mine\n\n"
	"    Transaction: 0xc7df61d82e8145d1f72200c31ea1295fb37af7e4280d2fcdc6d55c7375cae8cc\n"
	"    Contract created: 0x5FbDB2315678afecb367f032d93F642f64180aa3\n"
	"    Gas used: 58980\n\n"
	"    Transaction: 0x048ea8b66628f321102ff1a1738feb54de2d2fb7048691498f85dc2ceeb8916d\n"
	"    Contract created: 0x8464135c8F25Da09e49BC8782676a84730C318bC\n"
	"    Gas used: 117960\n\n"
	"    Block Number: 1\n    Block Hash: " HASH "\n"
	"    Block Time: \"Sun, 15 Nov 2026 08:59:39 +0000\"\n\n\n"
	"    Block Number: 2\n    Block Hash: " OTHER "\n"
	"    Block Time: \"Sun, 15 Nov 2026 08:59:39 +0000\"\n\n"
	"eth_getTransactionReceipt\neth_getTransactionCount\neth_sendTransaction\n";

static void anvil_speaks(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct got g = parse(i ? NULL : "anvil", NULL, anvil_lines);

		assert_int_equal(g.n, 2);
		/* The first may have begun before; the second was asked for meanwhile, and began when it was done. */
		assert_block(&g.list[0], 1, 117960, 2, 0);
		assert_string_equal(g.list[0].hash, HASH);
		assert_block(&g.list[1], 2, 0, 0, 5000);
		assert_string_equal(g.list[1].hash, OTHER);
		assert_string_equal(g.list[1].client, "anvil");
		assert_int_equal(g.counts.bad_lines, 0);
	}
}

/* Each transaction its own block; and gas that is no sum is added up. */
static void anvil_mines_by_itself(void **state)
{
	struct got g = parse("anvil", NULL, "    Block Number: 6\neth_sendRawTransaction\n    Transaction: 0x01\n    Gas used: 21000\n"
					    "    Block Number: 7\n    Block Time: \"x\"\n"
					    "eth_sendTransaction\n    Transaction: 0x01\n    Gas used: 21000\n"
					    "    Transaction: 0x02\n    Gas used: 21000\n    Block Number: 8\n"
					    "    Block Number: 9\n");

	assert_int_equal(g.n, 4);
	assert_block(&g.list[0], 6, 0, 0, 0);
	assert_block(&g.list[1], 7, 21000, 1, 3000);
	assert_block(&g.list[2], 8, 42000, 2, 5000);
	assert_block(&g.list[3], 9, 0, 0, 0); /* nobody asked for it: a moment */
	/* Where blocks are asked for, transactions do not begin them. */
	g = parse("anvil", NULL, "    Block Number: 6\nevm_mine\neth_sendTransaction\n    Block Number: 7\n"
				 "eth_sendTransaction\n    Block Number: 8\n");
	assert_int_equal(g.n, 3);
	assert_block(&g.list[1], 7, 0, 0, 2000);
	assert_block(&g.list[2], 8, 0, 0, 0);
}

#define RETH_DONE                                                                                       \
	"Block added to canonical chain number=24443168 hash=" HASH " peers=12 txs=442 gas_used=36.42Mgas " \
	"gas_throughput=1.10Ggas/second gas_limit=60.00Mgas full=62.0% base_fee=0.05Gwei blobs=3 "          \
	"excess_blobs=1 elapsed=33.1ms"

static void reth_speaks(void **state)
{
	static const char *const forms[] = {
		"2026-08-01T10:00:00.123456Z  INFO " RETH_DONE,
		"2026-08-01T10:00:00.123456Z  INFO reth_node_events::node: " RETH_DONE,
		"\033[2m2026-08-01T10:00:00.1Z\033[0m \033[32m INFO\033[0m Block added to canonical chain "
		"\033[3mnumber\033[0m\033[2m=\033[0m24443168 \033[3mhash\033[0m\033[2m=\033[0m" HASH
		" \033[3mpeers\033[0m\033[2m=\033[0m12 \033[3mtxs\033[0m\033[2m=\033[0m442 "
		"\033[3mgas_used\033[0m\033[2m=\033[0m36.42Mgas \033[3melapsed\033[0m\033[2m=\033[0m33.1ms",
		"Aug 01 10:00:00 host reth[77]: INFO " RETH_DONE,
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct got g = parse(i % 2 ? "op-reth" : NULL, NULL, forms[i]);

		assert_int_equal(g.n, 1);
		assert_block(&g.list[0], 24443168, 36420000, 442, 33.1);
		assert_string_equal(g.list[0].hash, HASH);
	}
}

/* The duration that a line says counts more than the line that began it; and some lines come twice. */
static void reth_repeats_itself(void **state)
{
	struct got g = parse("reth", NULL,
		"Received new payload from consensus engine number=24443168 hash=" HASH "\n" RETH_DONE "\n"
		"WARN reth::slow_block: Slow block block.number=24443168 block.hash=" HASH " block.gas_used=36420123 "
		"block.tx_count=442 timing.execution_ms=20 timing.total_ms=33.1 throughput.mgas_per_sec=1100\n"
		"Canonical chain committed number=24443168 hash=" HASH " elapsed=1.2ms\n"
		"Received new payload from consensus engine number=24443169 hash=" OTHER "\n"
		"Block added to canonical chain number=24443169 hash=" OTHER " peers=1\n"
		"Block added to fork chain number=24443168 hash=" OTHER " elapsed=850\xc2\xb5s\n"
		"Slow block block.number=24443170 block.gas_used=36420123 block.tx_count=442 timing.total_ms=33.1\n");

	assert_int_equal(g.n, 4);
	assert_block(&g.list[0], 24443168, 36420123, 442, 33.1);
	assert_block(&g.list[1], 24443169, -1, -1, 1000);
	assert_block(&g.list[2], 24443168, -1, -1, 0.85);
	assert_true(g.list[2].again);
	assert_block(&g.list[3], 24443170, 36420123, 442, 33.1);
	assert_int_equal(g.counts.merged, 1);
	assert_int_equal(g.counts.repeated, 0);
	assert_int_equal(g.counts.reorged, 1);
	assert_int_equal(g.counts.out_of_order, 1);
}

/* A slow block's line that comes when its block was handed out long ago still brings the exact gas. */
static void late_lines_amend(void **state)
{
	struct got g = parse(NULL, NULL, RETH_DONE "\n"
		"Block added to canonical chain number=24443169 hash=" OTHER " txs=1 gas_used=21.00Kgas elapsed=5ms\n"
		"WARN reth::slow_block: Slow block block.number=24443168 block.hash=" HASH " block.gas_used=36420123 "
		"block.tx_count=442 timing.commit_ms=3 timing.total_ms=36 \n"
		"WARN reth::slow_block: Slow block block.number=24443168 block.hash=" HASH " block.gas_used=36420123 "
		"block.tx_count=442 timing.commit_ms=3 timing.total_ms=36 \n");

	assert_int_equal(g.n, 2);
	assert_int_equal(g.amended, 1);
	assert_block(&g.list[0], 24443168, 36420123, 442, 33.1);
	assert_block(&g.list[1], 24443169, 21000, 1, 5);
	assert_int_equal(g.counts.merged, 1);
	assert_int_equal(g.counts.repeated, 1);
	assert_int_equal(g.counts.out_of_order, 0);
}

/* The microseconds that it takes to insert a block which was built here are not the block's time. */
static void insertions_are_no_times(void **state)
{
	struct got g = parse(NULL, NULL,
		"Block added to canonical chain number=1 hash=" HASH " txs=442 gas_used=37.51Mgas elapsed=24.507\xc2\xb5s\n"
		"Block added to canonical chain number=2 hash=" OTHER " txs=442 gas_used=1.20Ggas elapsed=1.2ms\n"
		"Block added to canonical chain number=3 txs=0 gas_used=0.00Kgas elapsed=350.1\xc2\xb5s\n");

	assert_int_equal(g.n, 3);
	assert_int_equal(g.counts.inserted, 2);
	assert_block(&g.list[0], 1, 37510000, 442, 0);
	assert_true(g.list[0].inserted);
	assert_int_equal(g.list[0].lasted_ns, 24507);
	assert_true(g.list[1].inserted);
	assert_block(&g.list[2], 3, 0, 0, 0.3501);
	assert_false(g.list[2].inserted);
}

#define GETH_DONE(number, blocks, mgas) \
	"INFO [08-01|10:00:00.123] Imported new chain segment number=" number " hash=1a2b3c..4d5e6f blocks=" blocks " txs=2 mgas=" mgas " elapsed=30ms\n"
#define GETH_SLOW(number) \
	"{\"level\":\"warn\",\"msg\":\"Slow block\",\"block\":{\"number\":" number ",\"gas_used\":1000000,\"tx_count\":1},\"timing\":{\"total_ms\":15}}\n"

/* A group whose blocks were told one by one is known; so is a block of a group. */
static void groups_are_told_apart(void **state)
{
	struct got g = parse(NULL, NULL, GETH_SLOW("11") GETH_SLOW("12") GETH_DONE("12", "2", "2.000")
					 GETH_DONE("15", "3", "9.000") GETH_SLOW("14") GETH_DONE("16", "1", "1.000"));

	assert_int_equal(g.n, 4);
	assert_block(&g.list[0], 11, 1000000, 1, 15);
	assert_block(&g.list[1], 12, 1000000, 1, 15);
	assert_block(&g.list[2], 15, 9000000, 2, 30);
	assert_int_equal(g.list[2].first, 13);
	assert_int_equal(g.list[2].count, 3);
	assert_block(&g.list[3], 16, 1000000, 2, 30);
	assert_int_equal(g.list[3].count, 1);
	assert_int_equal(g.counts.groups, 1);
	assert_int_equal(g.counts.repeated, 2);
	assert_int_equal(g.counts.out_of_order, 0);
}

/* Another client writes on: its blocks count, what the first one had begun to say does not. */
static void clients_change(void **state)
{
	struct got g = parse(NULL, NULL, "    Block Number: 5\n    Transaction: 0x01\n    Gas used: 21000\n" RETH_DONE "\n"
					 GETH_DONE("24,443,170", "1", "2.000") "    Block Number: 6\n");

	assert_int_equal(g.n, 4);
	assert_block(&g.list[1], 24443168, 36420000, 442, 33.1);
	assert_string_equal(g.list[1].client, "reth");
	assert_block(&g.list[2], 24443170, 2000000, 2, 30);
	assert_string_equal(g.list[2].client, "geth");
	assert_block(&g.list[3], 6, 0, 0, 0);
	assert_int_equal(g.counts.clients, 3);
	/* A client that the user named is the only one. */
	g = parse("geth", NULL, RETH_DONE "\n" GETH_DONE("24,443,170", "1", "2.000"));
	assert_int_equal(g.n, 1);
	assert_int_equal(g.list[0].block.number, 24443170);
}

/* Beyond 64 bits, cut, zero: counted, and the rest of the block stays. */
static void hostile_figures(void **state)
{
	struct got g = parse(NULL, NULL,
		"Block added to canonical chain number=99999999999999999999 txs=1 gas_used=1.00Mgas elapsed=1ms\n"
		"Block added to canonical chain number=1 txs=99999999999999999999 gas_used=99999999999999999999.00Ggas elapsed=1ms\n"
		"Block added to canonical chain number=2 txs=1 gas_used=1.00Mgas elapsed=0ns\n"
		"Block added to canonical chain number=3 txs=1 gas_used=1.00Mgas elapsed=3.1m\n"
		"Block added to canonical chain number=24443\n"
		"{\"fields\":{\"message\":\"Block added to canonical chain\",\"number\":24443\n"
		"{\"fields\":{\"message\":\"Block added to canonical chain\",\"number\":5,\"gas_used\":\"1.00Mg\n");

	assert_int_equal(g.n, 4);
	assert_block(&g.list[0], 1, -1, -1, 1);
	assert_block(&g.list[1], 2, 1000000, 1, 0);
	assert_block(&g.list[2], 3, 1000000, 1, 0);
	assert_block(&g.list[3], 5, -1, -1, 0);
	assert_int_equal(g.counts.bad_lines, 3);
	assert_int_equal(g.counts.bad_figures, 1);
	assert_int_equal(g.counts.bad_times, 2);
}

/* A log that is followed from its end: its beginning says what its lines of gas mean. */
static void beginnings_prime(void **state)
{
	static const char *const lines[] = { "    Transaction: 0x01", "    Gas used: 21000", "    Transaction: 0x02",
					     "    Gas used: 79980", "    Block Number: 7" };
	static const char *const banners[] = { "    1.7.1-v1.7.1 (4072e48705 2026-05-08T09:12:26.158Z)",
					       "    1.10.0-stable (4072e48705 2027-05-08T09:12:26.158Z)" };

	for (int i = 0; i < 2; i++) {
		struct got g = { 0 };
		struct blocklog *m;

		assert_int_equal(blocklog_new(NULL, NULL, got_block, &g, &m, NULL), 0);
		blocklog_prime(m, banners[i], strlen(banners[i]));
		blocklog_prime(m, lines[4], strlen(lines[4]));
		for (size_t k = 0; k < ARRAY_LEN(lines); k++)
			blocklog_line(m, lines[k], strlen(lines[k]), 1000 * MS);
		blocklog_flush(m);
		blocklog_free(m);
		assert_int_equal(g.n, 1);
		assert_block(&g.list[0], 7, i ? 100980 : 79980, 2, 0);
	}
}

/* One part of a client's log: "# NUMBER GAS TXS MS" (-1: not known, 0 ms: a moment), and lines that make this block. */
static void check_part(const char *client, const char *part)
{
	const char *lines = strchrnul(part, '\n');
	long long number, gas, txs;
	double ms;

	if (sscanf(part, "# %lld %lld %lld %lf", &number, &gas, &txs, &ms) != 4 || !*lines)
		fail_msg("%s: not '# NUMBER GAS TXS MS': %.40s", client, part);
	for (int named = 0; named < 2; named++) {
		struct got g = parse(named ? client : NULL, NULL, lines + 1);

		if (g.n != 1)
			fail_msg("%s: %zu blocks in %.60s", client, g.n, part);
		assert_block(&g.list[0], number, gas, txs, ms);
		if (named || g.list[0].client) /* a line that several clients have may not say whose it is */
			assert_string_equal(g.list[0].client, client_find(client)->rules);
	}
}

/* Each client of the table has a log in tests/golden/logs, also one that is added later. */
static void each_client_speaks(void **state)
{
	for (const struct client *c = clients; c->name; c++) {
		_cleanup_free_ char *path = mem_printf(GOLDEN_DIR "/logs/%s.log", c->name);
		char text[8192], *next;
		FILE *f = fopen(path, "re");
		size_t n;

		if (!f)
			fail_msg("%s: a client without a log", path);
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		assert_true(n < sizeof(text) - 1);
		text[n] = 0;
		next = strstr(text, "\n# ");
		assert_non_null(next);
		for (char *part = next; part; part = next) {
			next = strstr(part + 1, "\n# ");
			if (next)
				*next = 0;
			check_part(c->name, part + 1);
		}
	}
}

static void a_pattern_of_ones_own(void **state)
{
	struct got g = parse(NULL, "applied (block|slot) (?<number>[0-9]+): (?<gas>[0-9.]+[MG]?) gas in (?<us>[0-9]+)us",
			     "x applied slot 12: 1.5M gas in 2500us\nnothing\napplied block 13: 0 gas in 1us");
	struct blocklog *m = NULL;
	struct err err = { 0 };
	static const char *const bad[] = { "(?<number>[0-9]+", "no number", "(?<number>.)(?<colour>.)", "(?<number>.)(?<" };

	struct got json = parse(NULL, "\"height\": ?(?<number>[0-9]+),.*\"took\":(?<ms>[0-9]+)", "{\"height\":7,\"took\":3}\n{\"took\":3}");

	assert_int_equal(json.n, 1);
	assert_block(&json.list[0], 7, -1, -1, 3);
	json = parse(NULL, "height=(?<number>[0-9]+) took=(?<ms>[0-9]+)", "{\"msg\":\"x\",\"height\":7,\"took\":3}\nheight=8 took=4");
	assert_int_equal(json.n, 2);
	assert_block(&json.list[1], 8, -1, -1, 4);
	assert_int_equal(g.n, 2);
	assert_block(&g.list[0], 12, 1500000, -1, 2.5);
	assert_block(&g.list[1], 13, 0, -1, 0.001);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(blocklog_new(NULL, bad[i], got_block, NULL, &m, &err), -EINVAL);
	assert_int_equal(blocklog_new("nobody", NULL, got_block, NULL, &m, &err), -EINVAL);
}

/* Every line of every client cut at every byte: a block, or none, and never a wrong number. */
static void cut_lines_are_named(void **state)
{
	struct got g;
	static const char line[] = RETH_DONE;

	for (size_t n = 0; n < sizeof(line) - 1; n++) {
		_cleanup_free_ char *text = mem_printf("%s\n%.*s", RETH_DONE, (int)n, line);

		g = parse(NULL, NULL, text);
		assert_true(g.n >= 1);
		assert_int_equal(g.list[0].block.number, 24443168);
		assert_true(g.n == 1 || 24443168 / g.list[1].block.number >= 1);
	}
	g = parse("reth", NULL, "Block added to canonical chain num\n" RETH_DONE);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.counts.bad_lines, 1);
}

/* A duration longer than there was time, or than any block takes. */
static void impossible_times(void **state)
{
	struct got g = parse("reth", NULL, "Block added to canonical chain number=1 elapsed=20s\n"
					   "Block added to canonical chain number=2 elapsed=9999h\n"
					   "Block added to canonical chain number=3 elapsed=soon\n"
					   "Block added to canonical chain number=4 elapsed=1s\n");

	assert_int_equal(g.n, 4);
	assert_int_equal(g.counts.bad_times, 3);
	for (int i = 0; i < 3; i++)
		assert_block(&g.list[i], i + 1, -1, -1, 0);
	assert_block(&g.list[3], 4, -1, -1, 1000);
}

/* --- files --- */

struct read {
	char text[1024];
	size_t longest;
};

static void got_line(void *context, char *line, size_t n, uint64_t time_ns)
{
	struct read *r = context;
	size_t used = strlen(r->text);

	assert_int_equal(strlen(line), n);
	r->longest = MAX(r->longest, n);
	snprintf(r->text + used, sizeof(r->text) - used, "%.40s|", line);
}

static void put(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect(struct logs *l, const char *want)
{
	struct read r = { 0 };

	for (int i = 0; i < 20 && strcmp(r.text, want); i++)
		assert_int_equal(logs_wait(l, 10, got_line, &r), 0);
	assert_string_equal(r.text, want);
}

static void logs_are_followed(void **state)
{
	char folder[] = "/tmp/test_marklog_XXXXXX";
	_cleanup_free_ char *path = NULL, *old = NULL, *longest = mem_alloc(LOGS_LINE + 102);
	struct logs *l;
	struct err err = { 0 };
	bool missing;

	assert_non_null(mkdtemp(folder));
	path = mem_printf("%s/node.log", folder);
	old = mem_printf("%s/node.log.1", folder);
	assert_int_equal(logs_open(path, -1, &l, NULL, &err), -ENOENT);
	put(path, 0, "before\nhalf of ");
	assert_int_equal(logs_open(path, -1, &l, &missing, &err), 0);
	assert_false(missing);
	put(path, O_APPEND, "a line\nskipped\n");
	logs_skip(l);
	put(path, O_APPEND, "x\none\r\ntw");
	expect(l, "x|one|");
	put(path, O_APPEND, "o\n");
	expect(l, "two|");
	/* Rotated with something unread, and half a line that nobody ends. */
	put(path, O_APPEND, "last\nhal");
	assert_int_equal(rename(path, old), 0);
	put(path, 0, "first\n");
	expect(l, "last|first|");
	assert_int_equal(logs_counted(l)->rotated, 1);
	assert_int_equal(logs_counted(l)->unfinished, 1);
	/* Emptied and written anew. */
	put(path, O_APPEND, "more text\n");
	expect(l, "more text|");
	put(path, O_TRUNC, "new\n");
	expect(l, "new|");
	assert_int_equal(logs_counted(l)->shortened, 1);
	memset(longest, 'x', LOGS_LINE + 100);
	longest[LOGS_LINE + 100] = '\n';
	put(path, O_APPEND, longest);
	expect(l, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|");
	assert_int_equal(logs_counted(l)->too_long, 1);
	logs_close(l);
	unlink(path);
	/* Not there yet. */
	assert_int_equal(logs_open(path, -1, &l, &missing, &err), 0);
	assert_true(missing);
	expect(l, "");
	put(path, 0, "here\n");
	expect(l, "here|");
	logs_close(l);
	assert_int_equal(logs_open(folder, -1, &l, NULL, &err), -EINVAL);
	unlink(path);
	unlink(old);
	rmdir(folder);
}

static void pipes_end(void **state)
{
	struct read r = { 0 };
	struct logs *l;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(logs_open("pipe", ends[0], &l, NULL, NULL), 0);
	assert_int_equal(write(ends[1], "a\nb\0c\nd", 7), 7);
	assert_int_equal(logs_wait(l, 10, got_line, &r), 0);
	assert_string_equal(r.text, "a|b c|");
	close(ends[1]);
	assert_int_equal(logs_wait(l, 10, got_line, &r), 1);
	logs_close(l);
}

/* --- answers --- */

static void answers_are_read(void **state)
{
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"number\":\"0x12\",\"hash\":\"" HASH "\",\"gasUsed\":\"0x5208\","
		  "\"withdrawals\":[{\"number\":\"0x99\",\"x\":[1,2,{}]}],\"transactions\":[\"0x1\",\"0x2\"],\"size\":null}}", 0 },
		{ " { \"result\" : { \"transactions\" : [ ] , \"hash\" : \"" HASH "\" , \"gasUsed\" : \"0x0\" , "
		  "\"number\" : \"0x0\" , \"a\\\"b\" : -1.5e3, \"large\" : 123456789012345678901234567890 } , \"id\" : 1 } ", 0 },
		{ "{\"id\":1,\"result\":null}", -ENOENT },
		{ "{\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}", -EREMOTEIO },
		{ "", -EBADMSG }, { "<html>busy</html>", -EBADMSG }, { "{}", -EBADMSG }, { "[]", -EBADMSG },
		{ "{\"result\":\"0x12\"}", -EBADMSG }, { "{\"result\":{}}", -EBADMSG },
		{ "{\"result\":{\"number\":\"0x12345678123456781\",\"hash\":\"" HASH "\",\"gasUsed\":\"0x0\","
		  "\"transactions\":[]}}", -EBADMSG },
		{ "{\"result\":{\"number\":\"12\",\"hash\":\"" HASH "\",\"gasUsed\":\"0x0\",\"transactions\":[]}}", -EBADMSG },
		{ "{\"result\":{\"number\":\"0x12\",\"hash\":\"0x12\",\"gasUsed\":\"0x0\",\"transactions\":[]}}", -EBADMSG },
		{ "{\"result\":{\"number\":\"0x12\",\"hash\":\"" HASH "\",\"gasUsed\":\"0x0\",\"transactions\":{}}}", -EBADMSG },
	};
	struct rpcblock b;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (rpcblock_parse(cases[i].text, strlen(cases[i].text), 1, &b, NULL) != cases[i].r)
			fail_msg("case %zu", i);
	assert_int_equal(rpcblock_parse(cases[0].text, strlen(cases[0].text), 1, &b, NULL), 0);
	assert_int_equal(b.block.number, 0x12);
	assert_int_equal(b.block.gas, 21000);
	assert_int_equal(b.block.transactions, 2);
	assert_string_equal(b.hash, HASH);
	/* Cut anywhere, it is no answer. */
	for (size_t n = 0; n < strlen(cases[0].text); n++)
		assert_int_equal(rpcblock_parse(cases[0].text, n, 1, &b, NULL), -EBADMSG);
}

/* What the log itself says of the time is not believed: it may jump, back or by years. */
static void times_of_the_log_do_not_matter(void **state)
{
	struct got g = parse("reth", NULL,
			     "2026-03-29T02:59:59Z INFO Block added to canonical chain number=1 hash=" HASH " elapsed=20ms\n"
			     "2019-01-01T00:00:00Z INFO Block added to canonical chain number=2 hash=" OTHER " elapsed=30ms\n"
			     "2099-12-31T23:59:59Z INFO Block added to canonical chain number=3 elapsed=40ms\n");

	assert_int_equal(g.n, 3);
	for (size_t i = 0; i < g.n; i++) {
		assert_int_equal(g.list[i].end_ns, (10000 + 1000 * i) * MS);
		assert_int_equal(g.list[i].end_ns - g.list[i].start_ns, (20 + 10 * i) * MS);
	}
	assert_int_equal(g.counts.out_of_order, 0);
}

/* Lines that are read at once have one time: blocks of anvil among them share it, by gas. */
static void blocks_of_one_read_share_its_time(void **state)
{
	static const char *const lines[] = {
		"evm_mine", "    Block Number: 1", "    Block Hash: " HASH, "    Block Time: \"x\"", NULL,
		"evm_mine", "evm_mine", "evm_mine", NULL,
		"    Transaction: 0x1", "    Gas used: 979000", "    Block Number: 2", "    Block Hash: " OTHER, "    Block Time: \"x\"",
		"    Block Number: 3", "    Block Time: \"x\"", "    Transaction: 0x2", "    Gas used: 2979000", "    Block Number: 4",
		"    Block Time: \"x\"", NULL,
		"evm_mine", NULL, "    Block Number: 5", "    Block Time: \"x\"", NULL,
	};
	struct got g = { 0 };
	struct blocklog *m;
	uint64_t now = 1000 * MS;

	assert_int_equal(blocklog_new("anvil", NULL, got_block, &g, &m, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		_cleanup_free_ char *line = mem_strdup(lines[i] ? lines[i] : "");

		if (lines[i])
			blocklog_line(m, line, strlen(line), now);
		else
			now += 400 * MS;
	}
	blocklog_flush(m);
	g.counts = *blocklog_counted(m);
	blocklog_free(m);
	assert_int_equal(g.n, 5);
	/* 1000000, 21000 and 3000000 of 400 ms. */
	for (size_t i = 1; i < 4; i++) {
		assert_true(g.list[i].timed && g.list[i].start_ns < g.list[i].end_ns);
		assert_int_equal(g.list[i].start_ns, i == 1 ? 1400 * MS : g.list[i - 1].end_ns);
	}
	assert_int_equal(g.list[3].end_ns, 1800 * MS);
	assert_true(g.list[1].end_ns - g.list[1].start_ns > 40 * (g.list[2].end_ns - g.list[2].start_ns));
	assert_int_equal(g.counts.shared, 3);
	assert_true(g.list[4].timed);
	assert_int_equal(g.list[4].start_ns, 2200 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_times_are_read),
		cmocka_unit_test(colours_and_containers_are_stripped),
		cmocka_unit_test(blocks_of_one_read_share_its_time),
		cmocka_unit_test(times_of_the_log_do_not_matter),
		cmocka_unit_test(anvil_speaks),
		cmocka_unit_test(anvil_mines_by_itself),
		cmocka_unit_test(reth_speaks),
		cmocka_unit_test(reth_repeats_itself),
		cmocka_unit_test(each_client_speaks),
		cmocka_unit_test(a_pattern_of_ones_own),
		cmocka_unit_test(cut_lines_are_named),
		cmocka_unit_test(late_lines_amend),
		cmocka_unit_test(insertions_are_no_times),
		cmocka_unit_test(groups_are_told_apart),
		cmocka_unit_test(clients_change),
		cmocka_unit_test(hostile_figures),
		cmocka_unit_test(beginnings_prime),
		cmocka_unit_test(impossible_times),
		cmocka_unit_test(logs_are_followed),
		cmocka_unit_test(pipes_end),
		cmocka_unit_test(answers_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
