/*
 * diffjson.c - the comparison for programs: all rows or the first of them, unrounded, and the verdict.
 */
#include <math.h>

#include "base/buf.h"
#include "base/json.h"
#include "export/diff/difftext.h"
#include "profile/profile.h"

/* change: percent at equal work, null where it was nothing. */
static void put_value(struct json *j, const char *key, const struct diff_value *v)
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

	json_open_object(j, key);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_real(j, numbers[i].key, numbers[i].value, 9);
	json_put_bool(j, "tested", v->tested);
	json_put_bool(j, "significant", v->significant);
	json_close(j);
}

static void put_side(struct json *j, const char *key, const struct export_job *side, const char *file)
{
	const struct profile *p = side->profile;

	json_open_object(j, key);
	json_put_string(j, "file", file);
	json_put_string(j, "target", profile_str(p, p->target));
	json_put_string(j, "host", profile_str(p, p->host));
	json_put_uints(j, { "start_wall_ns", p->start_wall_ns }, { "duration_ns", select_duration_ns(p) },
		       { "samples", side->selection->all.samples }, { "total", side->selection->all.value });
	json_close_line(j, 0);
}

static void put_row(struct json *j, const struct diff_row *r)
{
	json_open_row(j, 1);
	json_put_string(j, "name", r->name);
	json_put_string(j, "module", r->module);
	json_put_string(j, "kind",
			r->kind == IDENT_KERNEL ? "kernel" : r->kind == IDENT_UNNAMED ? "unnamed" : "user");
	put_value(j, "self", &r->self);
	put_value(j, "total", &r->total);
	json_put_uints(j, { "samples_before", r->samples_a }, { "samples_after", r->samples_b });
	json_put_bool(j, "gone", r->only_a);
	json_put_bool(j, "new", r->only_b);
	json_put_bool(j, "outside", r->outside);
	json_close(j);
}

/* Each begins a line. */
static void put_totals(struct json *j, const struct diff *d)
{
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = { { "tested", d->tested }, { "significant", d->significant },
		       { "significant_self", d->significant_self } };

	json_break(j, 0);
	json_put_string(j, "unit", d->unit);
	json_break(j, 0);
	json_put_bool(j, "normalized", d->normalized);
	json_break(j, 0);
	json_put_real(j, "scale", d->scale, 9);
	json_break(j, 0);
	json_put_bool(j, "scaled", d->scaled);
	json_break(j, 0);
	put_value(j, "whole", &d->all);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		json_break(j, 0);
		json_put_uint(j, counts[i].key, counts[i].value);
	}
	json_break(j, 0);
}

int diffjson_write(const struct diff_job *job, struct buf *out, struct err *err)
{
	const struct diff *d = job->diff;
	size_t limit = job->options.limit;
	struct json j = json_begin(out);
	_cleanup_(buf_done) struct buf verdict = { 0 };

	difftext_verdict(d, &verdict);
	json_open_object(&j, NULL);
	json_put_string(&j, "verdict", verdict.data);
	json_break(&j, 0);
	put_side(&j, "before", job->before, job->name_before);
	put_side(&j, "after", job->after, job->name_after);
	json_put_string(&j, "event", export_event(d->samples_a ? job->before : job->after));
	put_totals(&j, d);
	json_open_array(&j, "functions");
	for (size_t i = 0; i < d->rows.n && (!limit || i < limit); i++)
		put_row(&j, &d->rows.v[i]);
	json_close(&j);
	json_end_line(&j);
	return 0;
}
