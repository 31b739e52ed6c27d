/*
 * diffjson.c - the comparison for programs: all rows or the first of them, unrounded, and the verdict.
 */
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "export/diff/difftext.h"
#include "profile/profile.h"

static void put_string(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, "\"%s\":", key);
	buf_json(b, value);
}

static void put_number(struct buf *b, const char *key, double value)
{
	if (isfinite(value))
		buf_printf(b, "\"%s\":%.9g", key, value);
	else
		buf_printf(b, "\"%s\":null", key);
}

static void put_count(struct buf *b, const char *key, uint64_t value)
{
	buf_printf(b, "\"%s\":%llu", key, (unsigned long long)value);
}

static const char *truth(bool is)
{
	return is ? "true" : "false";
}

/* change: percent at equal work, null where it was nothing. */
static void put_value(struct buf *b, const char *key, const struct diff_value *v)
{
	const struct {
		const char *key;
		double value;
	} numbers[] = {
		{ "before", v->a }, { "after", v->b }, { "delta", v->delta }, { "low", v->low },
		{ "high", v->high }, { "change_percent", diff_percent(v, v->delta) },
		{ "change_low", v->a > 0 ? diff_percent(v, v->low) : NAN },
		{ "change_high", v->a > 0 ? diff_percent(v, v->high) : NAN }, { "p", v->p }, { "q", v->q },
	};

	buf_printf(b, "\"%s\":{", key);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		put_number(b, numbers[i].key, numbers[i].value);
		buf_putc(b, ',');
	}
	buf_printf(b, "\"tested\":%s,\"significant\":%s}", truth(v->tested), truth(v->significant));
}

static void put_side(struct buf *b, const char *key, const struct export_job *side, const char *file)
{
	const struct profile *p = side->profile;

	buf_printf(b, "\"%s\":{", key);
	put_string(b, "file", file);
	buf_putc(b, ',');
	put_string(b, "target", profile_str(p, p->target));
	buf_putc(b, ',');
	put_string(b, "host", profile_str(p, p->host));
	buf_putc(b, ',');
	put_count(b, "start_wall_ns", p->start_wall_ns);
	buf_putc(b, ',');
	put_count(b, "duration_ns", select_duration_ns(p));
	buf_putc(b, ',');
	put_count(b, "samples", side->selection->all.samples);
	buf_putc(b, ',');
	put_count(b, "total", side->selection->all.value);
	buf_puts(b, "},\n");
}

static void put_row(struct buf *b, const struct diff_row *r)
{
	put_string(b, "name", r->name);
	buf_putc(b, ',');
	put_string(b, "module", r->module);
	buf_printf(b, ",\"kind\":\"%s\",",
		   r->kind == IDENT_KERNEL ? "kernel" : r->kind == IDENT_UNNAMED ? "unnamed" : "user");
	put_value(b, "self", &r->self);
	buf_putc(b, ',');
	put_value(b, "total", &r->total);
	buf_putc(b, ',');
	put_count(b, "samples_before", r->samples_a);
	buf_putc(b, ',');
	put_count(b, "samples_after", r->samples_b);
	buf_printf(b, ",\"gone\":%s,\"new\":%s,\"outside\":%s", truth(r->only_a), truth(r->only_b),
		   truth(r->outside));
}

int diffjson_write(const struct diff_job *job, struct buf *out, struct err *err)
{
	const struct diff *d = job->diff;
	const struct export_job *either = d->samples_a ? job->before : job->after;
	size_t limit = job->options.limit;
	struct buf verdict = { 0 };

	difftext_verdict(d, &verdict);
	buf_puts(out, "{");
	put_string(out, "verdict", verdict.data);
	buf_puts(out, ",\n");
	put_side(out, "before", job->before, job->name_before);
	put_side(out, "after", job->after, job->name_after);
	put_string(out, "event", export_event(either));
	buf_puts(out, ",\n");
	put_string(out, "unit", d->unit);
	buf_printf(out, ",\n\"normalized\":%s,\n", truth(d->normalized));
	put_number(out, "scale", d->scale);
	buf_printf(out, ",\n\"scaled\":%s,\n", truth(d->scaled));
	put_value(out, "whole", &d->all);
	buf_puts(out, ",\n");
	put_count(out, "tested", d->tested);
	buf_puts(out, ",\n");
	put_count(out, "significant", d->significant);
	buf_puts(out, ",\n");
	put_count(out, "significant_self", d->significant_self);
	buf_puts(out, ",\n\"functions\":[");
	for (size_t i = 0; i < d->rows.n && (!limit || i < limit); i++) {
		buf_puts(out, i ? ",\n {" : "\n {");
		put_row(out, &d->rows.v[i]);
		buf_putc(out, '}');
	}
	buf_puts(out, "]}\n");
	buf_done(&verdict);
	return 0;
}
