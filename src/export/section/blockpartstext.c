#include "export/section/blockpartstext.h"

#include "analyze/blocks/blockparts.h"
#include "analyze/blocks/blocks.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"

enum { LINES = 24, INDENT = 2, SUMMED = 8 };

static void put_part(const struct block_span_part *x, uint64_t wall_ns, struct buf *out)
{
	buf_printf(out, "%10.3f ms %5.1f %%  %*s", x->ns / 1e6, str_percent(x->ns, wall_ns), (int)MIN(x->depth, 16u) * INDENT, "");
	plain_add(out, x->name);
	if (x->count > 1)
		buf_printf(out, ", %llu times", (unsigned long long)x->count);
	buf_puts(out, x->beside ? ", beside it\n" : "\n");
}

void blockpartstext_put_one(const struct blockparts *b, const struct block_row *r, struct buf *out)
{
	struct block_parts parts = { 0 };

	if (b)
		blockparts_find(b, r->start_ns, r->start_ns + r->wall_ns, r->thread, &parts);
	if (parts.list.n)
		buf_puts(out, "\nSpans in its time, by the program's own names\n");
	for (size_t i = 0; i < MIN(parts.list.n, (size_t)LINES); i++)
		put_part(&parts.list.v[i], r->wall_ns, out);
	if (parts.list.n > LINES)
		buf_printf(out, "%16s  %zu more: --json has them\n", "...", parts.list.n - LINES);
	vec_done(&parts.list);
}

void blockpartstext_put_all(const struct blockparts *b, const struct blocks *blocks, struct buf *out)
{
	struct block_parts parts = { 0 };
	uint64_t wall_ns = 0;
	size_t shown = 0;

	if (b)
		blockparts_sum(b, blocks, &parts, &wall_ns);
	for (size_t i = 0; i < parts.list.n && shown < SUMMED; i++) {
		const struct block_span_part *x = &parts.list.v[i];

		/* The outermost ones of the block's own thread: these do not overlap. */
		if (x->beside || x->depth || x->ns * 200 < wall_ns)
			continue;
		buf_puts(out, shown++ ? ", " : "Of the blocks' time, by the program's own spans: ");
		plain_add(out, x->name);
		buf_printf(out, " %.1f %%", str_percent(x->ns, wall_ns));
	}
	if (shown)
		buf_puts(out, ".\n");
	vec_done(&parts.list);
}

void blockpartsjson_put(const struct blockparts *b, const struct block_row *r, struct json *j)
{
	struct block_parts parts = { 0 };

	if (b)
		blockparts_find(b, r->start_ns, r->start_ns + r->wall_ns, r->thread, &parts);
	json_open_array(j, "spans");
	for (size_t i = 0; i < parts.list.n; i++) {
		const struct block_span_part *x = &parts.list.v[i];

		json_open_object(j, NULL);
		json_put_string(j, "name", x->name);
		json_put_bool(j, "beside", x->beside);
		json_put_uints(j, { "depth", x->depth }, { "count", x->count }, { "ns", x->ns });
		json_close(j);
	}
	json_close(j);
	vec_done(&parts.list);
}
