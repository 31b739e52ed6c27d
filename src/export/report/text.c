/*
 * text.c - tables for the terminal: by function, by crate, by module, by thread, or one of the other views.
 *
 * Names are whole in a pipe and cut from the left of their path on a terminal; there, no line is longer than it is wide.
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
#include "export/report/wrap.h"
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

static struct table table_of(const struct export_job *job, struct buf *out, bool self)
{
	return (struct table){ .job = job, .out = out, .all = job->selection->all.value, .self = self };
}

static void put_functions(const struct export_job *job, const struct top *top, struct buf *out)
{
	struct table t = table_of(job, out, true);
	VEC(const char *) modules = { 0 };

	for (size_t i = 0; i < table_shown(job, top->functions.n); i++)
		vec_push(&modules, str_base_name(top->functions.v[i].module));
	t.module_columns = table_widest("module", modules.v, modules.n);
	if (table_narrow(job))
		t.module_columns = MIN(t.module_columns, NARROW_MODULE);
	table_rows(&t, "function", top->functions.v, top->functions.n);
	vec_done(&modules);
	cleantext_set_done(&t.functions);
}

static void put_modules(const struct export_job *job, const struct top *top, struct buf *out)
{
	struct table t = table_of(job, out, true);

	table_rows(&t, "module", top->modules.v, top->modules.n);
}

/* Threads of one name become one row where they are many: after this, top has no single ones. */
static void put_threads(const struct export_job *job, struct top *top, struct buf *out)
{
	struct table t = table_of(job, out, false);

	top_sum_threads(top, MANY_THREADS, job->options.order);
	table_rows(&t, "thread", top->threads.v, top->threads.n);
}

/* One of the three tables. */
static void put_one(const struct export_job *job, struct buf *out)
{
	struct top top;

	top_build(&top, job->profile, job->selection, job->options.no_inline, job->options.order);
	if (job->options.view == EXPORT_VIEW_FUNCTIONS)
		put_functions(job, &top, out);
	else if (job->options.view == EXPORT_VIEW_MODULES)
		put_modules(job, &top, out);
	else
		put_threads(job, &top, out);
	top_done(&top);
}

static void put_sections(const struct export_job *job, bool before_functions, struct buf *out)
{
	for (size_t i = 0; sections[i] && !job->selection->root; i++)
		if (sections[i]->text && sections[i]->text_before_functions == before_functions)
			sections[i]->text(job, out);
}

/* The answer first, then the groups that were asked for, the functions, then what threads waited for, and all else. */
static void put_all(const struct export_job *job, struct buf *out)
{
	struct top top;
	bool stacks = !series_only(job);

	put_sections(job, true, out);
	textshare_groups(job, out);
	if (stacks) {
		top_build(&top, job->profile, job->selection, job->options.no_inline, job->options.order);
		put_functions(job, &top, out);
	}
	put_sections(job, false, out);
	if (!stacks)
		return;
	textshare_crates(job, out, &top.tree, true);
	put_modules(job, &top, out);
	put_threads(job, &top, out);
	top_done(&top);
}

/* The one section that can be asked for by itself: that it has nothing to say is an answer. */
static void put_subsystems(const struct export_job *job, struct buf *out)
{
	size_t before = out->n;

	section_subsystems.text(job, out);
	if (out->n == before)
		buf_puts(out, "\nThis is no node whose functions the patterns know: --subsystems names a file with others.\n");
}

static int put_view(const struct export_job *job, struct buf *out, struct err *err)
{
	switch (job->options.view) {
	case EXPORT_VIEW_ALL:
		put_all(job, out);
		return 0;
	case EXPORT_VIEW_FUNCTIONS:
	case EXPORT_VIEW_MODULES:
	case EXPORT_VIEW_THREADS:
		put_one(job, out);
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

int text_write(const struct export_job *job, struct buf *out, struct err *err)
{
	size_t from = out->n;
	int r;

	put_head(job, out);
	r = put_view(job, out, err);
	wrap_lines(out, from, job->options.columns);
	return r;
}
