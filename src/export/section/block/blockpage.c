/*
 * blockpage.c - the blocks of a recording, for the page's table (docs/page-format.md). The report has none: `gasflame
 * blocks` is their table in the terminal.
 */
#include "analyze/blocks/blocks.h"
#include "analyze/select.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { FUNCTIONS = 6 }; /* of a slow block: what explains it, and a few more */

static void put_known(struct json *j, const char *key, const struct block_row *r, uint32_t bit, uint64_t value)
{
	if (r->block.known & bit)
		json_put_uint(j, key, value);
}

/* The page has the names of parts once, so a row has its times by number. */
static void put_split(struct json *j, const struct block_row *r)
{
	if (!r->split)
		return;
	json_open_array(j, "ns");
	for (int i = 0; i < BLOCK_PARTS; i++)
		json_put_uint(j, NULL, r->ns[i]);
	json_close(j);
	json_put_uints(j, { "followedNs", r->followed_ns }, { "parallelNs", r->parallel_ns });
}

static void put_functions(struct json *j, const struct block_row *r)
{
	json_open_array(j, "functions");
	for (size_t i = 0; i < MIN(r->functions.n, (size_t)FUNCTIONS); i++) {
		const struct block_item *f = &r->functions.v[i];

		json_open_object(j, NULL);
		json_put_uints(j, { "part", f->part }, { "ns", f->ns });
		cleantext_json(j, "name", f->name);
		if (f->under)
			cleantext_json(j, "under", f->under);
		if (f->file)
			cleantext_json(j, "file", f->file);
		json_close(j);
	}
	json_close(j);
}

static void put_row(struct json *j, const struct profile *p, const struct block_row *r)
{
	json_open_row(j, 0);
	cleantext_json(j, "name", r->name);
	put_known(j, "number", r, BLOCK_NUMBER, r->block.number);
	put_known(j, "gas", r, BLOCK_GAS, r->block.gas);
	put_known(j, "transactions", r, BLOCK_TRANSACTIONS, r->block.transactions);
	json_put_uints(j, { "count", block_group_count(r->name) }, { "startNs", r->start_ns }, { "wallNs", r->wall_ns });
	if (r->thread < p->threads.n)
		json_put_uint(j, "tid", p->threads.v[r->thread].tid);
	put_split(j, r);
	if (r->typical)
		json_put_bool(j, "typical", true);
	if (r->slow) {
		json_put_bool(j, "byGas", r->by_gas);
		cleantext_json(j, "reason", r->reason);
		put_functions(j, r);
	}
	json_close(j);
}

static void put_parts(struct json *j)
{
	json_open_array(j, "parts");
	for (int i = 0; i < BLOCK_PARTS; i++) {
		json_open_object(j, NULL);
		json_put_string(j, "key", block_part_key(i));
		json_put_string(j, "name", block_part_name(i));
		json_close(j);
	}
	json_close(j);
}

static void put_page(const struct export_job *job, struct json *j)
{
	struct causes *causes = job->selection->options.causes;
	struct blocks b = { 0 };

	if (!causes || blocks_make(&b, job->profile, causes, job->options.own, NULL, NULL)) {
		json_put_null(j, "blocks");
	} else {
		json_open_object(j, "blocks");
		json_put_uints(j, { "medianNs", b.median_ns }, { "typicalNs", b.typical_ns }, { "typicalGas", b.typical_gas });
		cleantext_json(j, "difference", b.difference ? b.difference : "");
		put_parts(j);
		json_open_array(j, "rows");
		for (size_t i = 0; i < b.rows.n; i++)
			put_row(j, job->profile, &b.rows.v[i]);
		json_close(j);
		json_close(j);
	}
	blocks_done(&b);
	json_break(j, 0);
}

const struct section section_blocks = { .name = "blocks", .page = put_page };
