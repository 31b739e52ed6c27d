#include "collect/span/spanset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "elf/probe/probesites.h"

/*
 * The functions of each client, read in its source; only anvil's was tried on the program. A compiler may inline a
 * function that has one caller, so that none of its name is left: the alternatives of a group stand in the order of
 * preference.
 */
enum known_role {
	KNOWN_BLOCK,   /* its calls are the blocks, unless one before it was found: then they are marks */
	KNOWN_MARK,    /* its calls are marks */
	KNOWN_INSTEAD, /* as the one before it, and only where that was not found */
};

struct known_function {
	const char *text;
	enum known_role role;
};

/* foundry 1.8.0, crates/anvil/src/eth/backend/mem/mod.rs */
static const struct known_function anvil[] = {
	{ "do_mine_block::{{closure}}", KNOWN_BLOCK },
	{ 0 },
};

/* reth 2.5.1 (7b3432d) */
static const struct known_function reth[] = {
	{ "::on_new_payload", KNOWN_BLOCK },            /* engine/tree/src/tree/mod.rs: two callers */
	{ "::insert_block_or_payload", KNOWN_BLOCK },   /* the same: also what on_downloaded_block inserts */
	{ "::validate_block_with_state", KNOWN_BLOCK }, /* engine/tree/src/tree/payload_validator.rs: elapsed of the log */
	{ "::on_forkchoice_updated", KNOWN_MARK },      /* engine/tree/src/tree/mod.rs: one caller */
	{ "DatabaseProvider*::save_blocks", KNOWN_MARK }, /* storage/provider/src/providers/database/provider.rs */
	{ "::on_save_blocks", KNOWN_INSTEAD },          /* engine/tree/src/persistence.rs: one caller */
	{ "SparseTrieCacheTask*::run", KNOWN_MARK },    /* engine/tree/src/tree/state_root_strategy/sparse_trie.rs */
	{ "PrewarmCacheTask*::run", KNOWN_MARK },       /* engine/tree/src/tree/payload_processor/prewarm.rs */
	{ "::default_ethereum_payload", KNOWN_MARK },   /* ethereum/payload/src/lib.rs: builds a block */
	{ 0 },
};

/* Beside those of reth. optimism, rust/op-reth/crates/payload/src/builder.rs; okx/xlayer-reth (027edfb),
 * crates/builder/src/flashblocks/builder.rs and context.rs */
static const struct known_function op_reth[] = {
	{ "OpPayloadBuilder*::build_payload", KNOWN_MARK },
	{ "FlashblocksBuilder*::build_payload", KNOWN_MARK },
	{ "::execute_best_transactions", KNOWN_MARK },
	{ 0 },
};

/* ethrex 25.0.0-rc.2 (5ab464b) */
static const struct known_function ethrex[] = {
	{ "::add_block_pipeline_inner", KNOWN_BLOCK }, /* blockchain/blockchain.rs: four callers, import and sync among them */
	{ "::add_block_pipeline", KNOWN_INSTEAD },     /* the same: the Engine API's way; all there was before */
	{ "Blockchain*::execute_block_pipeline", KNOWN_MARK }, /* the same */
	{ "::handle_merkleization", KNOWN_MARK },      /* the same */
	{ "::handle_merkleization_bal_from_updates", KNOWN_MARK }, /* the same: with a block access list */
	{ "::warm_block", KNOWN_MARK },                /* vm/backends/levm/mod.rs */
	{ "Store*::apply_updates", KNOWN_MARK },        /* storage/store.rs */
	{ "::store_block_with_depth", KNOWN_MARK },    /* blockchain/blockchain.rs */
	{ "::build_payload_inner", KNOWN_MARK },       /* blockchain/payload.rs: builds a block */
	{ 0 },
};

static const struct {
	const char *name;
	const struct known_function *lists[2];
} known[] = {
	{ "anvil", { anvil } },
	{ "reth", { reth } },
	{ "op-reth", { reth, op_reth } },
	{ "xlayer-reth", { reth, op_reth } },
	{ "ethrex", { ethrex } },
};

static bool is_there(const struct spanset *set, const char *text)
{
	for (size_t i = 0; i < set->patterns.n; i++)
		if (!strcmp(set->patterns.v[i].text, text))
			return true;
	return false;
}

/* all: the user named the client, and its block function must be there; otherwise only what makes a block is looked for. */
static void add_known(struct spanset *set, size_t client, bool block, bool all)
{
	uint32_t group = set->groups++;

	for (size_t k = 0; k < ARRAY_LEN(known[0].lists); k++)
		for (const struct known_function *f = known[client].lists[k]; f && f->text; f++) {
			bool of_block = f->role == KNOWN_BLOCK;

			if (f->role == KNOWN_INSTEAD && set->patterns.n)
				of_block = set->patterns.v[set->patterns.n - 1].block_group;
			if ((!all && !of_block) || is_there(set, f->text))
				continue;
			if (f->role == KNOWN_MARK)
				group = set->groups++;
			vec_push(&set->patterns, (struct spanset_pattern){ .text = f->text, .group = group, .block = block && of_block,
									   .block_group = of_block, .instead = f->role == KNOWN_INSTEAD,
									   .known = true, .optional = !all || !of_block });
		}
}

static int add(struct spanset *set, const char *name, bool block, struct err *err)
{
	if (strlen(name) < 3)
		return err_set(err, EINVAL, "--mark-function '%s' is too short to be a part of a function's name", name);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(name, known[i].name)) {
			add_known(set, i, block, true);
			return 0;
		}
	vec_push(&set->patterns, (struct spanset_pattern){ .text = name, .block = block, .group = set->groups++ });
	return 0;
}

int spanset_make(struct spanset *set, const char *const *names, size_t n, bool guess, struct err *err)
{
	size_t bytes = 0;
	int r = 0;

	*set = (struct spanset){ 0 };
	for (size_t i = 0; i < n && !r; i++)
		r = add(set, names[i], !i, err);
	for (size_t i = 0; i < ARRAY_LEN(known) && !n && guess; i++)
		add_known(set, i, true, false);
	for (size_t i = 0; i < set->patterns.n; i++)
		bytes += strlen(set->patterns.v[i].text) + 1;
	if (!r && (set->patterns.n > PROBESITES_PATTERNS || bytes > PROBESITES_TEXT))
		r = err_set(err, EINVAL, "--mark-function: at most %d functions, and %d bytes of names in all",
		            PROBESITES_PATTERNS, PROBESITES_TEXT);
	if (r)
		spanset_done(set);
	return r;
}

/* An earlier pattern of the group was found, in this file or in one before. */
static bool has_better(const struct spanset *set, const struct probesites_info *info, size_t pattern)
{
	for (size_t i = 0; i < pattern; i++) {
		if (set->patterns.v[i].group != set->patterns.v[pattern].group)
			continue;
		if (set->patterns.v[i].functions)
			return true;
		for (uint32_t k = 0; k < info->count; k++)
			if (info->list[k].pattern == i && !info->list[k].trouble)
				return true;
	}
	return false;
}

enum spanset_use spanset_use(const struct spanset *set, const struct probesites_info *info, uint32_t pattern)
{
	const struct spanset_pattern *p = &set->patterns.v[pattern];
	bool better = has_better(set, info, pattern);

	if (better && p->instead)
		return SPANSET_NOT;
	return p->block && !better ? SPANSET_BLOCK : SPANSET_MARK;
}

bool spanset_found(const struct spanset *set, size_t pattern)
{
	for (size_t i = 0; i < set->patterns.n; i++)
		if (set->patterns.v[i].group == set->patterns.v[pattern].group && set->patterns.v[i].functions)
			return true;
	return false;
}

char *spanset_mark_name(const struct spanset_pattern *p, const char *name, char *out, size_t size)
{
	size_t n = 0;

	if (!strchr(p->text, '*'))
		return spanset_short_name(name, out, size);
	for (const char *s = p->text; *s && n + 1 < size; s++)
		if (*s != '*')
			out[n++] = *s;
	out[n] = 0;
	return out;
}

/* Where the last part of the path begins; what is within brackets is no part of it. */
static const char *last_part(const char *name, const char *end)
{
	int depth = 0;

	for (const char *s = end; s > name; s--) {
		if (s[-1] == '>' && (s - 1 == name || s[-2] != '-'))
			depth++;
		else if (s[-1] == '<' && depth)
			depth--;
		else if (s[-1] == ':' && !depth)
			return s;
	}
	return name;
}

char *spanset_short_name(const char *name, char *out, size_t size)
{
	static const char closure[] = "::{{closure}}";
	const char *end = name + strlen(name);
	const char *paren = strchr(name, '(');

	if (paren && paren > name)
		end = paren;
	while ((size_t)(end - name) > strlen(closure) && !strncmp(end - strlen(closure), closure, strlen(closure)))
		end -= strlen(closure);
	name = last_part(name, end);
	snprintf(out, size, "%.*s", (int)(end - name), name);
	return out;
}

void spanset_done(struct spanset *set)
{
	vec_done(&set->patterns);
}
