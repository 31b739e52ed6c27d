/*
 * textphase.c - phases for the terminal: by functions on the stack, or by the recording's marks.
 */

#include "analyze/blocks/phases.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/table.h"
#include "export/report/view.h"
#include "profile/profile.h"

enum { THREAD_COLUMNS = 18, KIND_COLUMNS = 10 };

/* "1.234": seconds of the recording. */
static void put_time(struct buf *out, uint64_t ns)
{
	buf_printf(out, "%9.3f  ", ns / 1e9);
}

static void put_rest(struct table *t, const struct weight *w, const char *name)
{
	char count[32];

	if (!w->samples && !w->value)
		return;
	table_amount(t, w->value);
	if (table_narrow(t->job))
		buf_printf(t->out, "%29s  %s\n", "", name);
	else
		buf_printf(t->out, "%9s  %49s  %s\n", str_count(count, w->samples), "", name);
}

/* "engine", "engine and 3 more" */
static void put_thread(struct table *t, const struct profile *p, const struct phase *f)
{
	_cleanup_free_ char *text = NULL;
	const char *name = f->threads ? profile_str(p, p->threads.v[f->thread].name) : "";

	text = f->threads > 1 ? mem_printf("%.12s +%u", name, f->threads - 1) : mem_strdup(name);
	table_dim(t, text, THREAD_COLUMNS);
}

/* A small terminal has no room for the number of samples and the thread. */
static void put_phase(struct table *t, const struct phase *row)
{
	bool narrow = table_narrow(t->job);
	char count[32], share[32];

	table_amount(t, row->weight.value);
	if (!narrow)
		buf_printf(t->out, "%9s  ", str_count(count, row->weight.samples));
	buf_printf(t->out, "%7s  ", str_share(share, str_percent(row->total.value, t->all)));
	if (row->threads) {
		put_time(t->out, row->first_ns);
		put_time(t->out, row->last_ns);
	} else {
		buf_printf(t->out, "%9s  %9s  ", "never", "");
	}
	if (!narrow)
		put_thread(t, t->job->profile, row);
	table_name(t, row->name, narrow ? 50 : 61 + THREAD_COLUMNS + 2);
	buf_putc(t->out, '\n');
}

int textphase_phases(const struct export_job *job, struct buf *out, struct err *err)
{
	struct table t = { .job = job, .out = out };
	struct phases f;
	int r = phases_build(&f, job->profile, job->selection, job->options.phases, err);

	if (!r) {
		t.all = f.all.value;
		table_heading(&t, "Phases", 1, 1);
		buf_printf(out, "%17s  ", "innermost");
		if (!table_narrow(job))
			buf_printf(out, "%9s  ", table_count(job));
		buf_printf(out, "%7s  %9s  %9s  ", "total", "from s", "to s");
		if (!table_narrow(job))
			buf_printf(out, "%-*s  ", THREAD_COLUMNS, "thread");
		buf_puts(out, "phase\n");
	}
	for (size_t i = 0; !r && i < f.rows.n; i++)
		put_phase(&t, &f.rows.v[i]);
	if (!r) {
		put_rest(&t, &f.outside, "[outside of all phases]");
		put_rest(&t, &f.elsewhere, "[threads without a phase]");
	}
	phases_done(&f);
	return r;
}

/* --- marks --- */

static void put_kinds(struct table *t, const struct marks *m)
{
	bool narrow = table_narrow(t->job);
	char a[32], b[32], c[32], d[32];

	table_heading(t, "By kind of mark", 1, 1);
	buf_printf(t->out, "%17s  %9s  %9s  %9s  %s%s\n", export_event(t->job), "marks", "time", "mean",
		   narrow ? "" : "  longest  ", "kind");
	for (size_t i = 0; i < m->kinds.n; i++) {
		const struct mark_kind *k = &m->kinds.v[i];

		table_amount(t, k->weight.value);
		buf_printf(t->out, "%9s  %s  %s  ", str_count(a, k->count), str_right(b, str_duration(b, k->time_ns), 9),
			   str_right(c, str_duration(c, k->time_ns / k->count), 9));
		if (!narrow)
			buf_printf(t->out, "%s  ", str_right(d, str_duration(d, k->longest_ns), 9));
		table_name(t, *k->name ? k->name : "[no kind]", narrow ? 52 : 63);
		buf_putc(t->out, '\n');
	}
	table_amount(t, m->outside.value);
	buf_printf(t->out, "%*s[outside of all marks]\n", narrow ? 33 : 44, "");
}

static void put_marks(struct table *t, const struct marks *m)
{
	const struct profile *p = t->job->profile;
	size_t shown = table_shown(t->job, m->rows.n);
	bool narrow = table_narrow(t->job);
	char a[32];

	table_heading(t, "By mark", shown, m->rows.n);
	buf_printf(t->out, "%17s  %9s  %9s  %-*s  ", export_event(t->job), "from s", "time", KIND_COLUMNS, "kind");
	if (!narrow)
		buf_printf(t->out, "%-*s  ", THREAD_COLUMNS, "thread");
	buf_puts(t->out, "mark\n");
	for (size_t i = 0; i < shown; i++) {
		const struct mark_row *row = &m->rows.v[i];
		const struct profile_mark *mark = &p->marks.v[row->mark];
		uint32_t thread = mark->thread;

		table_amount(t, row->weight.value);
		put_time(t->out, row->start_ns);
		buf_printf(t->out, "%s  ", str_right(a, str_duration(a, row->end_ns - row->start_ns), 9));
		table_dim(t, profile_str(p, mark->kind), KIND_COLUMNS);
		if (!narrow)
			table_dim(t, thread == PROFILE_NONE ? "" : profile_str(p, p->threads.v[thread].name),
				  THREAD_COLUMNS);
		table_name(t, profile_str(p, mark->name),
			   41 + KIND_COLUMNS + 2 + (narrow ? 0 : THREAD_COLUMNS + 2));
		buf_putc(t->out, '\n');
	}
}

int textphase_marks(const struct export_job *job, struct buf *out, struct err *err)
{
	struct table t = { .job = job, .out = out };
	struct marks m;
	int r = marks_build(&m, job->profile, job->selection, err);

	if (!r) {
		t.all = m.all.value;
		put_kinds(&t, &m);
		put_marks(&t, &m);
	}
	marks_done(&m);
	return r;
}
