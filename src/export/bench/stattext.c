#include "export/bench/stattext.h"

#include <math.h>
#include <stdio.h>

#include "analyze/hw.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"

enum {
	HINTS = 5,        /* functions that are named */
	HINT_PERCENT = 3, /* of the whole, from which one is worth a word */
};

/* --- all of it --- */

static void put_count(struct buf *out, const char *name, const char *value, const char *note)
{
	buf_printf(out, "  %-24s%18s%s%s\n", name, value, *note ? "   " : "", note);
}

static void put_counter(struct buf *out, enum counter k, const struct counter_value *v, double seconds)
{
	char value[32], note[96] = "";

	if (k == COUNTER_TASK_CLOCK) {
		str_right(value, str_duration(value, (uint64_t)v->value), 18);
		snprintf(note, sizeof(note), "%.2f CPUs", seconds > 0 ? v->value / 1e9 / seconds : 0);
	} else {
		str_count(value, (uint64_t)(v->value + 0.5));
		if (!counter_is_hardware(k) && seconds > 0)
			snprintf(note, sizeof(note), "%.1f a second", v->value / seconds);
		else if (v->share < 0.995)
			snprintf(note, sizeof(note), "counted %.0f %% of the time, scaled", v->share * 100);
	}
	put_count(out, counter_names[k], value, note);
}

void stattext_values(const struct counter_value *v, uint64_t time_ns, struct buf *out)
{
	bool scaled = false;

	for (size_t k = 0; k < COUNTERS; k++) {
		if (!v[k].known)
			continue;
		put_counter(out, k, &v[k], time_ns / 1e9);
		scaled |= v[k].share < 0.995;
	}
	for (size_t r = 0; r < RATIOS; r++) {
		double x = counter_ratio(v, r);
		const char *hint = isnan(x) ? NULL : counter_hint(r, x);
		char value[32];

		if (isnan(x))
			continue;
		snprintf(value, sizeof(value), r == RATIO_IPC ? "%.2f" : "%.2f %%",
			 r == RATIO_IPC ? x : x * 100);
		put_count(out, counter_ratio_names[r], value, hint ? hint : "");
	}
	if (scaled)
		buf_puts(out, "  There are more events than counters: they took turns, and what was counted "
			      "is scaled to the whole time.\n");
}

/* --- tables --- */

static const char *const ratio_heads[RATIOS] = { "IPC", "cache", "L1D", "branch", "dTLB" };
static const enum counter counted[] = { COUNTER_MINOR_FAULTS, COUNTER_MAJOR_FAULTS, COUNTER_SWITCHES,
					COUNTER_MIGRATIONS };
static const char *const counted_heads[] = { "minor", "major", "switches", "moves" };

static double ratio_of(const struct stat_table *t, const struct hw_row *row, enum counter_ratio r)
{
	return t->exact ? counter_ratio(row->values, r) : hw_ratio(row, r);
}

static bool has_ratio(const struct stat_table *t, enum counter_ratio r)
{
	return !isnan(counter_ratio(t->total->values, r));
}

static void put_heads(const struct stat_table *t, struct buf *out)
{
	if (t->phases)
		buf_printf(out, "  %6s%12s", "marks", "wall");
	buf_printf(out, "  %10s%8s", "CPU time", "share");
	for (size_t r = 0; r < RATIOS; r++)
		if (has_ratio(t, r))
			buf_printf(out, "%8s", ratio_heads[r]);
	for (size_t i = 0; i < ARRAY_LEN(counted); i++)
		if (t->total->values[counted[i]].known)
			buf_printf(out, "%11s", counted_heads[i]);
	buf_printf(out, "  %s\n", t->title);
}

/* The share of cycles, where they are known: they are the resource used. */
static double share_of(const struct stat_table *t, const struct hw_row *row)
{
	enum counter c = t->total->values[COUNTER_CYCLES].known ? COUNTER_CYCLES : COUNTER_TASK_CLOCK;

	return t->total->values[c].value > 0 ? 100 * row->values[c].value / t->total->values[c].value : 0;
}

static void put_row(const struct stat_table *t, const struct hw_row *row, struct buf *out)
{
	size_t before = out->n;
	char text[32];

	if (t->phases)
		buf_printf(out, "  %6llu%s", (unsigned long long)row->count, str_right(text, str_duration(text, row->time_ns), 12));
	if (row->values[COUNTER_TASK_CLOCK].known)
		buf_printf(out, "  %s", str_right(text, str_duration(text, (uint64_t)row->values[COUNTER_TASK_CLOCK].value), 10));
	else
		buf_printf(out, "  %10s", "-");
	buf_printf(out, "%6.1f %%", share_of(t, row));
	for (size_t r = 0; r < RATIOS; r++) {
		double x = has_ratio(t, r) ? ratio_of(t, row, r) : NAN;

		if (!has_ratio(t, r))
			continue;
		if (isnan(x))
			buf_printf(out, "%8s", "-");
		else
			buf_printf(out, r == RATIO_IPC ? "%8.2f" : "%6.1f %%", r == RATIO_IPC ? x : x * 100);
	}
	for (size_t i = 0; i < ARRAY_LEN(counted); i++)
		if (t->total->values[counted[i]].known)
			buf_printf(out, "%11s", str_count(text, (uint64_t)(row->values[counted[i]].value + 0.5)));
	buf_puts(out, "  ");
	if (t->threads)
		buf_printf(out, "%u ", row->id);
	cleantext_last(out, row->name, t->columns, out->n - before);
	buf_putc(out, '\n');
}

void stattext_table(const struct stat_table *t, struct buf *out)
{
	if (!t->n)
		return;
	buf_putc(out, '\n');
	put_heads(t, out);
	for (size_t i = 0; i < t->n; i++)
		put_row(t, &t->rows[i], out);
}

void stattext_hints(const struct hw_tables *t, struct buf *out)
{
	const struct stat_table table = { .total = &t->all };
	size_t said = 0;

	for (size_t i = 0; i < t->functions.n && said < HINTS; i++) {
		const struct hw_row *row = &t->functions.v[i];
		bool named = false;

		if (share_of(&table, row) < HINT_PERCENT)
			break;
		for (size_t r = 0; r < RATIOS; r++) {
			double x = hw_ratio(row, r);
			const char *hint = isnan(x) ? NULL : counter_hint(r, x);
			char value[32];

			if (!hint || (r == RATIO_IPC && x > 1))
				continue;
			snprintf(value, sizeof(value), r == RATIO_IPC ? "%.2f" : "%.1f %%",
				 r == RATIO_IPC ? x : x * 100);
			if (!named)
				buf_printf(out, "%s  ", said ? "" : "\n");
			if (!named)
				cleantext_last(out, row->name, 0, 0);
			buf_printf(out, "%s %s %s (%s)", named ? "," : ":", counter_ratio_names[r], value, hint);
			named = true;
		}
		if (named)
			buf_putc(out, '\n');
		said += named;
	}
}

/* --- JSON --- */

void statjson_values(const struct counter_value *v, struct json *j)
{
	json_open_object(j, "counters");
	for (size_t k = 0; k < COUNTERS; k++) {
		if (!v[k].known)
			continue;
		json_open_object(j, counter_names[k]);
		json_put_fixed(j, "value", v[k].value, 0);
		json_put_fixed(j, "counted", v[k].share, 4);
		json_close(j);
	}
	json_close(j);
	json_open_object(j, "ratios");
	for (size_t r = 0; r < RATIOS; r++) {
		double x = counter_ratio(v, r);

		if (!isnan(x))
			json_put_real(j, counter_ratio_names[r], x, 6);
	}
	json_close(j);
}

static void put_samples(const struct hw_row *row, struct json *j)
{
	json_open_object(j, "samples");
	for (size_t k = 0; k < COUNTERS; k++)
		if (row->values[k].known)
			json_put_uint(j, counter_names[k], row->samples[k]);
	json_close(j);
}

void statjson_table(const struct stat_table *t, const char *key, struct json *j)
{
	json_open_array(j, key);
	for (size_t i = 0; i < t->n; i++) {
		const struct hw_row *row = &t->rows[i];

		json_open_row(j, 0);
		json_put_string(j, "name", row->name);
		if (t->threads) {
			json_put_uints(j, { "pid", row->process }, { "tid", row->id });
		} else if (t->phases) {
			json_put_uint(j, "marks", row->count);
			json_put_fixed(j, "seconds", row->time_ns / 1e9, 9);
		} else {
			json_put_string(j, "module", row->module);
		}
		statjson_values(row->values, j);
		if (!t->exact)
			put_samples(row, j);
		json_close(j);
	}
	json_close(j);
}
