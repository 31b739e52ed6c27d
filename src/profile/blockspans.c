#include "profile/blockspans.h"

#include <string.h>

#include "base/mem.h"

static const struct {
	const char *name;
	int rank;
} names[] = {
	{ "payload_job", BLOCKSPANS_BUILDS },          /* reth: crates/payload/builder */
	{ "build_payload", BLOCKSPANS_BUILDS },        /* op-reth, xlayer-reth */
	{ "build_block", BLOCKSPANS_BUILDS },
	{ "xlayer_seq_block", BLOCKSPANS_BUILDS },   /* of X Layer's trace.log, from beginning to end */
	{ "on_new_payload", BLOCKSPANS_INSERTS },      /* reth: crates/engine/tree */
	{ "on_downloaded_block", BLOCKSPANS_INSERTS }, /* reth, while it synchronizes */
	{ "do_mine_block", BLOCKSPANS_INSERTS },       /* anvil */
	{ "add_block_pipeline", BLOCKSPANS_INSERTS },  /* ethrex */
	{ "xlayer_rpc_block", BLOCKSPANS_INSERTS },
	{ "block", BLOCKSPANS_INSERTS },               /* gasflame.h, and scripts */
};

int blockspans_rank(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].rank;
	return 0;
}
