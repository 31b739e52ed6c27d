/*
 * subsystemtext.c - the subsystems of a node: how much of the selection each has, on the CPU and waiting, and
 * the opcodes and precompiles of the EVM. What no pattern knows is said, with the functions that patterns
 * would help with.
 */
#include <stdio.h>

#include "analyze/select.h"
#include "analyze/subsystem/opcodes.h"
#include "analyze/subsystem/shares.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { LABELS_SHOWN = 12, REASONS_SHOWN = 3, NAME_COLUMNS = 18 };

/* False: the recording is of no node, or nothing is selected. */
static bool make(const struct export_job *job, struct subsystem_shares *s)
{
	if (!job->subsystems || !job->profile->samples.n)
		return false;
	if (subsystem_shares_make(s, job->subsystems, &job->selection->options) && s->node)
		return true;
	subsystem_shares_done(s);
	return false;
}

static const char *name_of(const struct export_job *job, const struct subsystem_share *r)
{
	return job->subsystems->table->list.v[r->subsystem].name;
}

/* --- for people --- */

static char *value_text(char out[32], const struct subsystem_shares *s, const struct export_job *job,
			uint64_t value)
{
	return s->time ? str_duration(out, value) : export_value(out, job, value);
}

/* "page fault 12.1 % (mdbx.dat), lock 3.0 %": what the waits of a subsystem, and of what it calls, were. */
static void put_waits(const struct subsystem_shares *s, const struct subsystem_share *r, struct buf *out)
{
	uint64_t left[CAUSE_COUNT];
	int shown = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		left[i] = i == CAUSE_CPU ? 0 : r->total_by[i];
	for (; shown < REASONS_SHOWN; shown++) {
		int most = 0;

		for (int i = 1; i < CAUSE_COUNT; i++)
			most = left[i] > left[most] ? i : most;
		if (left[most] * 1000 < s->all)
			break;
		buf_printf(out, "%s%s %.1f %%", shown ? ", " : "  ", cause_name(most),
			   str_percent(left[most], s->all));
		if (most == CAUSE_FAULT && r->file) {
			buf_puts(out, " (");
			cleantext_put(out, str_base_name(r->file));
			buf_putc(out, ')');
		}
		left[most] = 0;
	}
}

static void put_row(const struct export_job *job, const struct subsystem_shares *s,
		    const struct subsystem_share *r, struct buf *out)
{
	char a[32], b[32];

	buf_printf(out, "%7s %7s  ", str_share(a, str_percent(r->self, s->all)), str_share(b, str_percent(r->total, s->all)));
	if (s->time)
		buf_printf(out, "%7s %7s  ", str_share(a, str_percent(subsystem_cpu(r->self_by), s->all)),
			   str_share(b, str_percent(subsystem_waits(r->self_by), s->all)));
	buf_printf(out, "%-*s", s->time ? NAME_COLUMNS : 0, name_of(job, r));
	if (s->time)
		put_waits(s, r, out);
	while (out->data[out->n - 1] == ' ')
		out->data[--out->n] = 0;
	buf_putc(out, '\n');
}

/* Names the functions that a pattern could be made of, where they are worth it. */
static void put_unknown(const struct subsystem_shares *s, struct buf *out)
{
	uint64_t other = 0;
	int shown = 0;

	for (size_t i = 0; i < s->rows.n; i++)
		other += s->rows.v[i].subsystem == SUBSYSTEM_OTHER ? s->rows.v[i].self : 0;
	buf_printf(out, "%.1f %% are in a named subsystem.", 100 - str_percent(other, s->all));
	for (size_t i = 0; i < s->unknown.n; i++) {
		const struct unknown_share *u = &s->unknown.v[i];

		if (u->value * 200 < s->all)
			continue;
		buf_puts(out, shown++ ? ", " : " Unknown to the patterns (--subsystems): ");
		if (*u->name)
			cleantext_put(out, u->name);
		else
			buf_puts(out, "code without a name");
		buf_printf(out, " %.1f %%", str_percent(u->value, s->all));
	}
	buf_putc(out, '\n');
}

static void put_labels(const struct export_job *job, const struct subsystem_shares *s, struct buf *out)
{
	const struct subsystems *t = job->subsystems->table;
	size_t n = job->options.limit ? MIN(s->labels.n, (size_t)LABELS_SHOWN) : s->labels.n;
	char text[32], share[32];

	if (!n)
		return;
	table_title(job, out, "Opcodes and precompiles, with what they call");
	for (size_t i = 0; i < n; i++) {
		const struct label_share *l = &s->labels.v[i];

		buf_printf(out, "%7s %s  ", str_share(share, str_percent(l->value, s->all)),
			   str_right(text, value_text(text, s, job, l->value), 9));
		cleantext_put(out, t->labels.v[l->label].name);
		buf_puts(out, t->labels.v[l->label].kind == LABEL_PRECOMPILE ? " (precompile)\n" : "\n");
	}
	if (n < s->labels.n)
		buf_printf(out, "%17s  %zu more (--limit 0 shows all)\n", "...", s->labels.n - n);
}

static void put_gas(const struct export_job *job, struct buf *out)
{
	const struct opcode_costs *o = job->opcodes;
	size_t n = o ? table_shown(job, o->rows.n) : 0;
	_cleanup_(buf_done) struct buf title = { 0 };
	char blocks[32], transactions[32], time[32], gas[32], count[32];

	if (!o)
		return;
	buf_printf(&title, "Opcodes and precompiles by gas, in %s traced blocks with %s transactions", str_count(blocks, o->blocks),
		   str_count(transactions, o->transactions));
	table_title(job, out, title.data);
	buf_printf(out, "%10s %14s %14s %9s  %s\n", "time", "runs", "gas", "ns/gas", "operation");
	for (size_t i = 0; i < n; i++) {
		const struct opcode_cost *x = &o->rows.v[i];

		buf_printf(out, "%s %14s %14s ", str_right(time, x->ns ? str_duration(time, x->ns) : "-", 10), str_count(count, x->count),
			   str_count(gas, x->gas));
		if (x->ns && x->gas)
			buf_printf(out, "%9.3f  ", (double)x->ns / x->gas);
		else
			buf_printf(out, "%9s  ", "-");
		cleantext_put(out, x->name);
		buf_puts(out, x->kind == LABEL_PRECOMPILE ? " (precompile)\n" : "\n");
	}
	if (n < o->rows.n)
		buf_printf(out, "%10s  %zu more (--limit 0 shows all)\n", "...", o->rows.n - n);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	_cleanup_(buf_done) struct buf title = { 0 };
	struct subsystem_shares s;
	char text[32];

	if (!make(job, &s))
		return;
	buf_printf(&title, "By subsystem, %% of %s of %s", value_text(text, &s, job, s.all), s.name);
	table_title(job, out, title.data);
	buf_printf(out, "%7s %7s  ", "self", "total");
	if (s.time)
		buf_printf(out, "%7s %7s  %-*s  %s\n", "on CPU", "off", NAME_COLUMNS, "subsystem",
			   "waits, with what it calls");
	else
		buf_puts(out, "subsystem\n");
	for (size_t i = 0; i < s.rows.n; i++)
		put_row(job, &s, &s.rows.v[i], out);
	put_unknown(&s, out);
	put_labels(job, &s, out);
	put_gas(job, out);
	subsystem_shares_done(&s);
}

/* --- for programs --- */

static void put_causes(struct json *j, const char *key, const uint64_t by_cause[CAUSE_COUNT])
{
	json_open_object(j, key);
	for (int i = 0; i < CAUSE_COUNT; i++)
		if (by_cause[i])
			json_put_uint(j, cause_key(i), by_cause[i]);
	json_close(j);
}

/* string: how names are written: the page is read by a browser, where they must be clean. */
typedef void put_string_fn(struct json *j, const char *key, const char *value);

static void put_members(const struct export_job *job, const struct subsystem_shares *s, struct json *j,
			put_string_fn *string)
{
	const struct subsystems *t = job->subsystems->table;

	string(j, "of", s->name);
	string(j, "unit", s->unit);
	json_put_uint(j, "all", s->all);
	json_open_array(j, "rows");
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct subsystem_share *r = &s->rows.v[i];

		json_open_row(j, 1);
		string(j, "name", name_of(job, r));
		json_put_uints(j, { "self", r->self }, { "total", r->total });
		if (s->time) {
			put_causes(j, "self_by_cause", r->self_by);
			put_causes(j, "total_by_cause", r->total_by);
		}
		if (r->file)
			string(j, "fault_file", r->file);
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "operations");
	for (size_t i = 0; i < s->labels.n; i++) {
		const struct label_share *l = &s->labels.v[i];

		json_open_row(j, 1);
		string(j, "name", t->labels.v[l->label].name);
		string(j, "kind", t->labels.v[l->label].kind == LABEL_PRECOMPILE ? "precompile" : "opcode");
		json_put_uints(j, { "total", l->value }, { "samples", l->samples });
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "unknown");
	for (size_t i = 0; i < s->unknown.n; i++) {
		json_open_row(j, 1);
		string(j, "function", s->unknown.v[i].name);
		json_put_uint(j, "self", s->unknown.v[i].value);
		json_close(j);
	}
	json_close(j);
}

static void put_json_gas(const struct opcode_costs *o, struct json *j)
{
	json_open_object(j, "gas");
	json_put_uints(j, { "blocks", o->blocks }, { "transactions", o->transactions });
	json_open_array(j, "operations");
	for (size_t i = 0; i < o->rows.n; i++) {
		json_open_row(j, 1);
		json_put_string(j, "name", o->rows.v[i].name);
		json_put_string(j, "kind", o->rows.v[i].kind == LABEL_PRECOMPILE ? "precompile" : "opcode");
		json_put_uints(j, { "ns", o->rows.v[i].ns }, { "count", o->rows.v[i].count }, { "gas", o->rows.v[i].gas });
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct subsystem_shares s;

	if (!make(job, &s))
		return;
	json_open_object_line(j, "subsystems", 0);
	put_members(job, &s, j, json_put_string);
	if (job->opcodes)
		put_json_gas(job->opcodes, j);
	json_close(j);
	subsystem_shares_done(&s);
}

/* The page shows the whole recording, whatever the job selects. */
static void put_page(const struct export_job *job, struct json *j)
{
	struct export_job whole = *job;
	struct selection all = { 0 };
	struct subsystem_shares s;

	all.options = (struct select_options){ .causes = job->selection->options.causes };
	whole.selection = &all;
	if (select_event(job->profile, NULL, &all.options.event, NULL) || !make(&whole, &s)) {
		json_put_null(j, "subsystemShares");
	} else {
		json_open_object(j, "subsystemShares");
		put_members(&whole, &s, j, cleantext_json);
		json_close(j);
		subsystem_shares_done(&s);
	}
	json_break(j, 0);
}

const struct section section_subsystems = {
	.name = "subsystems", .text = put_text, .json = put_json, .page = put_page
};
