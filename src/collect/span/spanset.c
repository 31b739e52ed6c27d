#include "collect/span/spanset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "elf/probe/probesites.h"

/* By client; the first of each is the block. Read in their sources, verified against anvil only. */
static const struct {
	const char *client;
	const char *functions[6];
} known[] = {
	{ "anvil", { "do_mine_block::{{closure}}" } },
	{ "reth", { "::on_new_payload", "::validate_block_with_state", "::on_forkchoice_updated", "::on_save_blocks" } },
	{ "ethrex", { "::add_block_pipeline", "::execute_block_pipeline", "::handle_merkleization", "::store_block_with_depth" } },
};

static void add_known(struct spanset *set, size_t client, bool block, bool all)
{
	for (size_t i = 0; i < ARRAY_LEN(known[0].functions) && known[client].functions[i] && (all || !i); i++)
		vec_push(&set->patterns, (struct spanset_pattern){ .text = known[client].functions[i], .block = block && !i,
								   .optional = !all || i });
}

static int add(struct spanset *set, const char *name, bool block, struct err *err)
{
	if (strlen(name) < 3)
		return err_set(err, EINVAL, "--mark-function '%s' is too short to be a part of a function's name", name);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(name, known[i].client)) {
			add_known(set, i, block, true);
			return 0;
		}
	/* The rest of a family speaks as reth does. */
	if (!strcmp(name, "op-reth"))
		return add(set, "reth", block, err);
	vec_push(&set->patterns, (struct spanset_pattern){ .text = name, .block = block });
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
