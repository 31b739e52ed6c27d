/*
 * text.c - tables for the terminal: by function, by crate, by module, by thread, or one of the other views.
 *
 * Names are whole in a pipe and cut from the left of their path on a terminal.
 */

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/ownertext.h"
#include "export/section/section.h"
#include "export/report/table.h"
#include "export/report/view.h"
#include "profile/profile.h"

enum {
	NARROW_MODULE = 8,
	MANY_THREADS = 50, /* of one name, that are one row */
};

/* Puts the name of the root, and its share of all. */
static void put_root(const struct selection *s, struct buf *line)
{
	uint64_t all = s->all.value + s->outside.value;

	buf_printf(line, "; below `%s` only, %.2f %% of all", s->root, str_percent(s->all.value, all));
}

/* Memory over time and the like, without anything that has a stack. */
static bool series_only(const struct export_job *job)
{
	return !job->profile->events.n && job->profile->points.n;
}

static void put_head(const struct export_job *job, struct buf *out)
{
	const char *target = profile_str(job->profile, job->profile->target);
	const char *describe = export_event_describe(job);
	struct buf line = { 0 }, clean = { 0 };
	char value[32], count[32];

	if (*target)
		buf_printf(&line, "%s, ", target);
	export_when(job, &line);
	cleantext_put(&clean, line.data);
	buf_printf(out, "%s%s%s\n", job->options.colour ? TABLE_BOLD : "", clean.data,
		   job->options.colour ? TABLE_NORMAL : "");
	line.n = clean.n = 0;
	ownertext_put(job->profile, out);
	if (series_only(job)) {
		buf_done(&line);
		buf_done(&clean);
		return;
	}
	buf_printf(&line, "%s%s%s: %s in %s %s", export_event(job), *describe ? ", " : "", describe,
		   export_value(value, job, job->selection->all.value),
		   str_count(count, job->selection->all.samples),
		   quality_noun(job->selection, job->selection->all.samples));
	if (job->selection->idle.value)
		buf_printf(&line, "; idle left out: %s (--idle takes it in)",
			   str_duration(value, job->selection->idle.value));
	if (job->selection->root)
		put_root(job->selection, &line);
	cleantext_put(&clean, line.data);
	buf_printf(out, "%s\n", clean.data);
	buf_done(&line);
	buf_done(&clean);
}

/* The tables of functions, modules and threads, all of them or one. */
static void put_top(const struct export_job *job, struct buf *out)
{
	struct table t = { .job = job, .out = out, .all = job->selection->all.value, .self = true };
	enum export_view view = job->options.view;
	VEC(const char *) modules = { 0 };
	struct top top;

	top_build(&top, job->profile, job->selection, job->options.no_inline, job->options.order);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_FUNCTIONS) {
		for (size_t i = 0; i < table_shown(job, top.functions.n); i++)
			vec_push(&modules, str_base_name(top.functions.v[i].module));
		t.module_columns = table_widest("module", modules.v, modules.n);
		if (table_narrow(job))
			t.module_columns = MIN(t.module_columns, NARROW_MODULE);
		table_rows(&t, "function", top.functions.v, top.functions.n);
		t.module_columns = 0;
	}
	if (view == EXPORT_VIEW_ALL)
		textshare_crates(job, out, &top.tree, true);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_MODULES)
		table_rows(&t, "module", top.modules.v, top.modules.n);
	t.self = false;
	top_sum_threads(&top, MANY_THREADS, job->options.order);
	if (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_THREADS)
		table_rows(&t, "thread", top.threads.v, top.threads.n);
	top_done(&top);
	vec_done(&modules);
	cleantext_set_done(&t.functions);
}

/* The one section that can be asked for by itself: that it has nothing to say is an answer. */
static void put_subsystems(const struct export_job *job, struct buf *out)
{
	size_t before = out->n;

	section_subsystems.text(job, out);
	if (out->n == before)
		buf_puts(out, "\nThis is no node whose functions the patterns know: --subsystems names a file with others.\n");
}

int text_write(const struct export_job *job, struct buf *out, struct err *err)
{
	put_head(job, out);
	switch (job->options.view) {
	case EXPORT_VIEW_ALL:
		for (size_t i = 0; sections[i] && !job->selection->root; i++)
			sections[i]->text(job, out);
		textshare_groups(job, out);
		if (!series_only(job))
			put_top(job, out);
		return 0;
	case EXPORT_VIEW_FUNCTIONS:
	case EXPORT_VIEW_MODULES:
	case EXPORT_VIEW_THREADS:
		put_top(job, out);
		return 0;
	case EXPORT_VIEW_CRATES:
		textshare_crates(job, out, NULL, false);
		return 0;
	case EXPORT_VIEW_GROUPS:
		textshare_groups(job, out);
		return 0;
	case EXPORT_VIEW_SUBSYSTEMS:
		put_subsystems(job, out);
		return 0;
	case EXPORT_VIEW_NEAREST_OWN:
		return textshare_nearest(job, out, err);
	case EXPORT_VIEW_TREE:
	case EXPORT_VIEW_CALLERS:
	case EXPORT_VIEW_CALLEES:
		return texttree_put(job, out, err);
	case EXPORT_VIEW_PHASES:
		return textphase_phases(job, out, err);
	case EXPORT_VIEW_MARKS:
		return textphase_marks(job, out, err);
	}
	return 0;
}
