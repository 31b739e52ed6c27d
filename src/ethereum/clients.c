#include "ethereum/clients.h"

#include <string.h>

#include "base/buf.h"

#define NUMBER "(^|[^a-z_])number=\"?(?<number>[0-9][0-9,]*)"
#define HASH   "(^|[^a-z_])hash=\"?(?<hash>0x[0-9a-fA-F]+)"

const struct client_rule client_rules[] = {
	{ "reth", ROLE_BEGIN, "Received new payload from consensus engine", { NUMBER, HASH } },
	{ "reth", ROLE_DONE, "Block added to canonical chain",
	  { NUMBER, HASH, " txs=(?<txs>[0-9]+)", "gas_used=(?<gas>[0-9.]+[KMGT]?gas)", " elapsed=(?<time>[^ ]+)" } },
	{ "reth", ROLE_DONE, "Block added to fork chain", { NUMBER, HASH, " elapsed=(?<time>[^ ]+)" } },
	{ "reth", ROLE_DONE, "Slow block block.number=",
	  { NUMBER, HASH, "block\\.gas_used=(?<gas>[0-9.]+[KMGT]?(gas)?)", "block\\.tx_count=(?<txs>[0-9]+)",
	    "timing\\.total_ms=(?<ms>[0-9.]+)" } },
	{ "ethrex", ROLE_DONE, "[METRIC] BLOCK EXECUTION THROUGHPUT",
	  { "THROUGHPUT \\((?<number>[0-9]+)\\)", "TIME SPENT: (?<ms>[0-9.]+) ms", "Gas Used: (?<gas>[0-9]+)[ ,]",
	    "#Txs: (?<txs>[0-9]+)" } },
	{ "ethrex", ROLE_DONE, "[METRIC] BLOCK ",
	  { "\\[METRIC\\] BLOCK (?<number>[0-9]+) ", " (?<hash>0x[0-9a-fA-F]+)", "\\| (?<ms>[0-9.]+) ms",
	    "\\| (?<txs>[0-9]+) txs", "\\| (?<mgas>[0-9.]+) Mgas" } },
	{ "geth", ROLE_DONE, "Imported new ",
	  { NUMBER, HASH, " txs=(?<txs>[0-9,]+)", " mgas=(?<mgas>[0-9.,]+)", " elapsed=(?<time>[^ ]+)" } },
	{ "geth", ROLE_DONE, "\"msg\":\"Slow block\"",
	  { "\"number\": ?(?<number>[0-9]+)", "\"hash\": ?\"(?<hash>0x[0-9a-fA-F]+)", "\"gas_used\": ?(?<gas>[0-9]+)",
	    "\"tx_count\": ?(?<txs>[0-9]+)", "\"total_ms\": ?(?<ms>[0-9.]+)" } },
	{ "Nethermind", ROLE_DONE, "Processed ",
	  { "Processed +([0-9,]+\\.\\.\\. *)?(?<number>[0-9][0-9,]*)[^|0-9]*(\\([^)]*\\))? *\\|",
	    "\\| *(?<ms>[0-9.,]+) *ms" } },
	{ "Nethermind", ROLE_AFTER, "MGas",
	  { "(^|[^0-9.,])(?<mgas>[0-9][0-9.,]*) *MGas([^/]|$)", "\\| *(?<txs>[0-9,]+) *tx" } },
	{ "Nethermind", ROLE_CLOSE, "Block throughput", { 0 } },
	{ "Besu", ROLE_DONE, "Imported ",
	  { "Imported (empty block )?#(?<number>[0-9,]+)", "\\((?<hash>0x[0-9a-fA-F]+)", "\\| *(?<txs>[0-9,]+) tx",
	    "(?<gas>[0-9,]+) *\\( *[0-9.]+%\\) gas used", "\\| *(?<time>[0-9.,]+ *m?s) exec" } },
	{ "Erigon", ROLE_DONE, "head updated",
	  { NUMBER, HASH, " execution=(?<time>[^ ]+)", " mgas/s=(?<mgasps>[0-9.,]+)" } },
	{ "anvil", ROLE_BEGIN, "vm_mine", { "(^|: )evm_mine$" } },
	{ "anvil", ROLE_BEGIN, "anvil_mine", { "(^|: )anvil_mine$" } },
	{ "anvil", ROLE_HINT, "eth_send", { "(^|: )eth_send[A-Za-z]*Transaction[A-Za-z]*$" } },
	{ "anvil", ROLE_COUNT, "Transaction: 0x", { 0 } },
	{ "anvil", ROLE_BEFORE, "Gas used: ", { " Gas used: (?<gas>[0-9]+)$" } },
	{ "anvil", ROLE_DONE, "Block Number: ", { " Block Number: (?<number>[0-9]+)$" }, .says_all = true },
	{ "anvil", ROLE_AFTER, "Block Hash: ", { "Block Hash: (?<hash>0x[0-9a-fA-F]+)$" } },
	{ "anvil", ROLE_CLOSE, "Block Time: ", { 0 } },
	{ 0 },
};

const struct client clients[] = {
	{ "reth", "reth", false },
	{ "op-reth", "reth", false },
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

char *client_names(bool verified)
{
	struct buf b = { 0 };

	buf_puts(&b, "");
	for (const struct client *c = clients; c->name; c++)
		if (c->verified == verified)
			buf_printf(&b, "%s%s", b.n ? ", " : "", c->name);
	return b.data;
}
