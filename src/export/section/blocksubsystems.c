#include "export/section/blocksubsystems.h"

#include <stdio.h>
#include <string.h>

#include "analyze/blocks/blocks.h"
#include "analyze/subsystem/subsystems.h"
#include "base/buf.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "export/section/blockstext.h"

enum { COLUMNS = 8, COLUMN = 11, LEFT_COLUMN = 7, PARTS_SHOWN = 4 };

/* Of all parts of one subsystem; names are interned. */
static uint64_t sum_of(const struct block_items *items, const char *name)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < items->n; i++)
		ns += items->v[i].name == name ? items->v[i].ns : 0;
	return ns;
}

static size_t columns(const struct blocks_job *job)
{
	return MIN(job->blocks->subsystems.n, (size_t)COLUMNS);
}

void blocksubsystems_heads(const struct blocks_job *job, struct buf *out)
{
	for (size_t i = 0; i < columns(job); i++)
		buf_printf(out, " %*.*s", COLUMN - 1, COLUMN - 1, job->blocks->subsystems.v[i].name);
	buf_printf(out, "%*s", LEFT_COLUMN, "...");
}

void blocksubsystems_shares(const struct blocks_job *job, const struct block_row *r, struct buf *out)
{
	uint64_t left = r->split ? r->wall_ns : 0;

	for (size_t i = 0; i < columns(job); i++) {
		uint64_t ns = MIN(sum_of(&r->subsystems, job->blocks->subsystems.v[i].name), left);

		left -= ns;
		blockstext_share(out, ns, r->wall_ns, COLUMN);
	}
	blockstext_share(out, left, r->wall_ns, LEFT_COLUMN);
}

void blocksubsystems_sum(const struct blocks_job *job, struct buf *out)
{
	const struct blocks *b = job->blocks;
	uint64_t wall = 0;

	for (size_t i = 0; i < b->rows.n; i++)
		wall += b->rows.v[i].split ? b->rows.v[i].wall_ns : 0;
	if (!wall || !b->subsystems.n)
		return;
	buf_puts(out, "Along their paths, by subsystem: ");
	for (size_t i = 0; i < columns(job); i++)
		buf_printf(out, "%s%s %.1f %%", i ? ", " : "", b->subsystems.v[i].name,
		           str_percent(b->subsystems.v[i].ns, wall));
	buf_puts(out, b->subsystems.n > COLUMNS ? ", ... of the wall time.\n" : " of the wall time.\n");
}

/* --- one block --- */

/* The parts of a subsystem, the largest first: items are. All of the CPU is one. */
static void put_parts(const struct block_row *r, const char *name, struct buf *out)
{
	uint64_t cpu = 0;
	int shown = 0;

	for (size_t i = 0; i < r->subsystem_totals.n; i++)
		if (r->subsystem_totals.v[i].name == name && block_part_is_cpu(r->subsystem_totals.v[i].part))
			cpu += r->subsystem_totals.v[i].ns;
	if (cpu) {
		buf_printf(out, ": %.1f on the CPU", str_percent(cpu, r->wall_ns));
		shown++;
	}
	for (size_t i = 0; i < r->subsystem_totals.n && shown < PARTS_SHOWN; i++) {
		const struct block_item *x = &r->subsystem_totals.v[i];

		if (x->name != name || block_part_is_cpu(x->part) || x->ns * 1000 < r->wall_ns)
			continue;
		buf_printf(out, "%s %.1f %s", shown++ ? "," : ":", str_percent(x->ns, r->wall_ns),
		           block_part_name(x->part));
		if (x->file) {
			buf_puts(out, " of ");
			plain_add(out, str_base_name(x->file));
		}
	}
}

void blocksubsystems_list(const struct block_row *r, struct buf *out)
{
	const struct block_items *all = &r->subsystem_totals;

	if (!all->n)
		return;
	buf_puts(out, "\nSubsystems: self, and percent of the wall time with what they call\n");
	for (size_t i = 0; i < all->n; i++) {
		bool first = true;

		for (size_t k = 0; k < i && first; k++)
			first = all->v[k].name != all->v[i].name;
		if (!first || sum_of(all, all->v[i].name) * 1000 < r->wall_ns)
			continue;
		buf_printf(out, "%10.3f ms %5.1f %%  %s %.1f %%",
		           sum_of(&r->subsystems, all->v[i].name) / 1e6,
		           str_percent(sum_of(&r->subsystems, all->v[i].name), r->wall_ns), all->v[i].name,
		           str_percent(sum_of(all, all->v[i].name), r->wall_ns));
		put_parts(r, all->v[i].name, out);
		buf_putc(out, '\n');
	}
}

/* --- for programs --- */

void blocksubsystems_csv_heads(const struct blocks_job *job, struct buf *out)
{
	for (size_t i = 0; job->subsystems && i < job->subsystems->list.n; i++) {
		_cleanup_free_ char *key = subsystem_key(job->subsystems->list.v[i].name);

		buf_printf(out, ",subsystem_%s_ns", key);
	}
}

void blocksubsystems_csv(const struct blocks_job *job, const struct block_row *r, struct buf *out)
{
	for (size_t i = 0; job->subsystems && i < job->subsystems->list.n; i++) {
		uint64_t ns = 0;

		for (size_t k = 0; k < r->subsystems.n; k++)
			if (!strcmp(r->subsystems.v[k].name, job->subsystems->list.v[i].name))
				ns += r->subsystems.v[k].ns;
		if (r->split)
			buf_printf(out, ",%llu", (unsigned long long)ns);
		else
			buf_putc(out, ',');
	}
}
