#include "profile/blockspans.h"

#include <string.h>

#include "base/mem.h"

enum { INSERTS = 1, BUILDS = 2 };

static const struct {
	const char *name;
	int rank;
} names[] = {
	{ "payload_job", BUILDS },          /* reth: crates/payload/builder */
	{ "build_payload", BUILDS },        /* op-reth, xlayer-reth */
	{ "build_block", BUILDS },
	{ "on_new_payload", INSERTS },      /* reth: crates/engine/tree */
	{ "on_downloaded_block", INSERTS }, /* reth, while it synchronizes */
	{ "do_mine_block", INSERTS },       /* anvil */
	{ "add_block_pipeline", INSERTS },  /* ethrex */
	{ "block", INSERTS },               /* gasflame.h, and scripts */
};

int blockspans_rank(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].rank;
	return 0;
}
