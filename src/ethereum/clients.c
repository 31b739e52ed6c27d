#include "ethereum/clients.h"

#include <string.h>

#include "base/buf.h"

/* A figure that nothing follows may have been cut. */
#define NUMBER "(^| )number=\"?(?<number>[0-9][0-9,]*)[^0-9,]"
#define HASH   "(^| )hash=\"?(?<hash>0x[0-9a-fA-F]+)"
#define TXS    " txs=\"?(?<txs>[0-9][0-9,]*)[^0-9,]"
/* "33.1ms", "\"850.123µs\"", "1m2.5s", "1m 2s" */
#define TIME   "\"?(?<time>[^ \",|]+( [0-9.]+m?s)*)"

const struct client_rule client_rules[] = {
	/* reth, geth and Nethermind share this line's members; plain, as JSON, and as JSON in a string. */
	{ NULL, LINE_DONE, "Slow block",
	  { " block[._]number=\"?(?<number>[0-9]+)[^0-9]", " block[._]hash=\"?(?<hash>0x[0-9a-fA-F]+)",
	    " block[._]gas_used=\"?(?<gas>[0-9][0-9.]*([KMGT]?[gG]as)?)[\" ]", " block[._]tx_count=\"?(?<txs>[0-9]+)[^0-9]",
	    " timing[._]total_ms=\"?(?<ms>[0-9.]+)([^0-9.]|$)" }, .vague = true },
	{ "Nethermind", LINE_DRESS, " parallel_execution=", { 0 } },
	{ "Nethermind", LINE_DRESS, " | ", { "^[0-9]{1,2} [A-Z][a-z]{2} [0-9:]{8} \\| " } },
	{ "geth", LINE_DRESS, "lvl=", { "(^| )t=[^ ]+ lvl=" } },
	{ "geth", LINE_DRESS, "|", { "^(INFO|WARN|ERROR|DEBUG|TRACE|CRIT) *\\[[0-9]{2}-[0-9]{2}\\|" } },
	{ "reth", LINE_DRESS, "reth", { "(reth::slow_block|target=\"?reth)" } },
	{ "reth", LINE_DRESS, "block_number=", { 0 } },
	{ "reth", LINE_DRESS, "Slow block block.number=", { "(^|Z) +(TRACE|DEBUG|INFO|WARN|ERROR) " } },
	{ "reth", LINE_BEGIN, "Received new payload from consensus engine", { NUMBER, HASH } },
	{ "reth", LINE_BEGIN, "Received block from consensus engine", { NUMBER, HASH } },
	{ "reth", LINE_DONE, "Block added to canonical chain",
	  { NUMBER, HASH, TXS, " (gas_used|gas|mgas)=\"?(?<gas>[0-9.]+ ?[KMGT]?[gG]as)", " elapsed=" TIME },
	  .insertion = true },
	{ "reth", LINE_DONE, "Block added to fork chain", { NUMBER, HASH, " elapsed=" TIME } },
	{ "ethrex", LINE_OTHER, "THROUGHPUT: ", { 0 } }, /* of a block that is built, or, long ago, one without a number */
	{ "ethrex", LINE_DONE, "[METRIC] BLOCK EXECUTION THROUGHPUT",
	  { "THROUGHPUT \\((?<number>[0-9]+)\\)", "TIME SPENT: (?<ms>[0-9.]+) ms", "Gas Used: (?<ggas>[0-9]+\\.[0-9]+) ",
	    "Gas Used: (?<gas>[0-9]+)[ ,]", "#Txs: (?<txs>[0-9]+)[^0-9]", " (?<ggasps>[0-9.]+) Ggas/s" } },
	{ "ethrex", LINE_DONE, "[METRIC] BLOCK ",
	  { "\\[METRIC\\] BLOCK (?<number>[0-9]+) ", " (?<hash>0x[0-9a-fA-F]+)", "\\| (?<ms>[0-9.]+) ms",
	    "\\| (?<txs>[0-9]+) txs", "\\| (?<mgas>[0-9.]+) Mgas", "\\| (?<ggasps>[0-9.]+) Ggas/s" } },
#define GETH                                                                                                       \
	{ NUMBER, HASH, " blocks=\"?(?<blocks>[0-9][0-9,]*)[^0-9,]", TXS, " mgas=\"?(?<mgas>[0-9][0-9.,]*)[^0-9.,]", " elapsed=" TIME }
	{ "geth", LINE_DONE, "Imported new chain segment", GETH },
	{ "geth", LINE_DONE, "Imported new potential chain segment", GETH },
	{ "Nethermind", LINE_DONE, "Processed ",
	  { "Processed +((?<first>[0-9][0-9,]*) *\\.\\.\\. *)?(?<number>[0-9][0-9,]*)[^|0-9]*(\\([^)]*\\))? *\\|.* ?ms",
	    "\\| *(?<ms>[0-9][0-9.,]*) *ms", " mgasps +(?<mgasps>[0-9.]+)" }, .vague = true },
	{ "Nethermind", LINE_AFTER, "MGas",
	  { "Block.*[^0-9.,](?<mgas>[0-9][0-9.,]*) *MGas([^/]|$)", "\\| *(?<txs>[0-9,]+) *tx" } },
	{ "Nethermind", LINE_CLOSE, "Block throughput", { 0 } },
	{ "Besu", LINE_DONE, "Imported ",
	  { "Imported +(empty block|block)? *#(?<number>[0-9][0-9,]*) +[(/]", "\\((?<hash>0x[0-9a-fA-F]+)",
	    "[|/] *(?<txs>[0-9][0-9,]*) tx", "(?<gas>[0-9][0-9,]*) *\\( *[0-9.,]+%\\) gas", "\\| *(?<time>[0-9.,]+ *m?s) exec",
	    "\\) in (?<time>[0-9.,]+s)" }, .vague = true },
	/* Of the chains whose validators log like this; a payload for the engine, "Produced #7  (0x…)|", is no block yet. */
	{ "Besu", LINE_DONE, "Produced ",
	  { "Produced +(and imported )?(empty block|block)? *#(?<number>[0-9][0-9,]*) +/", "\\((?<hash>0x[0-9a-fA-F]+)",
	    "/ *(?<txs>[0-9][0-9,]*) tx", "(?<gas>[0-9][0-9,]*) *\\( *[0-9.,]+%\\) gas", "\\) in (?<time>[0-9.,]+s)" },
	  .vague = true },
#define ERIGON                                                                                                     \
	{ "(^| )number=\"?(?<number>[0-9]+)([^0-9]|$)", HASH, " execution=" TIME, "[^ge] mgas/s=\"?(?<mgasps>[0-9.,]+)[^0-9.,]" }
	{ "Erigon", LINE_DONE, "head validated", ERIGON },
	{ "Erigon", LINE_DONE, "head updated", ERIGON },
	{ "anvil", LINE_SUMS, " (", { "(^|  )(0\\.[0-9]+|1\\.[0-7])\\.[0-9]+(-[^ ]*)? \\([0-9a-f]{7,} 20[0-9]{2}-" } },
	{ "anvil", LINE_EACH, " (",
	  { "(^|  )(1\\.([89]|[1-9][0-9]+)|[2-9][0-9]*\\.[0-9]+)\\.[0-9]+(-[^ ]*)? \\([0-9a-f]{7,} 20[0-9]{2}-" } },
	{ "anvil", LINE_BEGIN, "vm_mine", { "(^|: )evm_mine$" } },
	{ "anvil", LINE_BEGIN, "anvil_mine", { "(^|: )anvil_mine$" } },
	{ "anvil", LINE_HINT, "eth_send", { "(^|: )eth_send[A-Za-z]*Transaction[A-Za-z]*$" } },
	{ "anvil", LINE_COUNT, "Transaction: 0x", { "(^|  )Transaction: 0x[0-9a-f]+$" } },
	{ "anvil", LINE_BEFORE, "Gas used: ", { "(^|  )Gas used: (?<gas>[0-9]+)$" } },
	{ "anvil", LINE_DONE, "Block Number: ", { "(^|  )Block Number: (?<number>[0-9]+)$" }, .says_all = true },
	{ "anvil", LINE_AFTER, "Block Hash: ", { "Block Hash: (?<hash>0x[0-9a-fA-F]+)$" } },
	{ "anvil", LINE_CLOSE, "Block Time: ", { 0 } },
	{ 0 },
};

const struct client clients[] = {
	{ "reth", "reth", false },
	{ "op-reth", "reth", false },
	{ "xlayer-reth", "reth", false },
	{ "ethrex", "ethrex", false },
	{ "geth", "geth", false },
	{ "nethermind", "Nethermind", false },
	{ "besu", "Besu", false },
	{ "erigon", "Erigon", false },
	{ "anvil", "anvil", true },
	{ 0 },
};

const struct client *client_find(const char *name)
{
	for (const struct client *c = clients; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

const char *client_of_rules(const char *rules)
{
	for (const struct client *c = clients; c->name; c++)
		if (!strcmp(c->rules, rules))
			return c->name;
	return rules;
}

char *client_names(bool verified)
{
	struct buf b = { 0 };

	buf_puts(&b, "");
	for (const struct client *c = clients; c->name; c++)
		if (c->verified == verified)
			buf_printf(&b, "%s%s", b.n ? ", " : "", c->name);
	return b.data;
}
