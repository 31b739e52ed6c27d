#include "cmd/report/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

/* "load,execute{1,2}": at the commas that are in no bracket. */
static void split_phases(struct views *v, const char *list)
{
	int depth = 0;

	for (const char *s = list, *begin = list;; s++) {
		if (*s == '\\' && s[1]) {
			s++;
			continue;
		}
		depth += (*s && strchr("([{<", *s)) - (*s && strchr(")]}>", *s));
		if (*s && (*s != ',' || depth > 0))
			continue;
		if (s > begin) {
			vec_push(&v->phase_names.list, mem_strndup(begin, s - begin));
			vec_push(&v->phase_names.list, NULL);
			v->phase_names.list.n--;
		}
		if (!*s)
			return;
		begin = s + 1;
		depth = 0;
	}
}

static enum export_view view_of_table(const char *name)
{
	static const struct {
		const char *name;
		enum export_view view;
	} tables[] = {
		{ "functions", EXPORT_VIEW_FUNCTIONS }, { "modules", EXPORT_VIEW_MODULES },
		{ "crates", EXPORT_VIEW_CRATES },       { "threads", EXPORT_VIEW_THREADS },
		{ "groups", EXPORT_VIEW_GROUPS },       { "subsystems", EXPORT_VIEW_SUBSYSTEMS },
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (!strcmp(name, tables[i].name))
			return tables[i].view;
	return EXPORT_VIEW_ALL;
}

/* "--group subsystem" is no regex: it leaves the list. */
static int take_subsystem(struct views *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->groups.list.n; i++) {
		if (strcmp(v->groups.list.v[i], "subsystem"))
			v->groups.list.v[kept++] = v->groups.list.v[i];
		else
			v->by_subsystem = true;
	}
	if (v->by_subsystem && (kept || v->root)) {
		log_error("--group subsystem leaves no functions for %s: ask for one at a time", kept ? "another --group" : "--root");
		return -EINVAL;
	}
	v->groups.list.n = kept;
	if (v->groups.list.v)
		v->groups.list.v[kept] = NULL;
	return 0;
}

bool views_grouped(const struct views *v)
{
	return v->groups.list.n || v->by_subsystem;
}

int views_choose(struct views *v)
{
	const struct {
		bool given;
		const char *name, *pattern;
		enum export_view view;
	} choices[] = {
		{ v->table, "--table", NULL, v->table ? view_of_table(v->table) : EXPORT_VIEW_ALL },
		{ v->tree, "--tree", NULL, EXPORT_VIEW_TREE },
		{ v->callers, "--callers", v->callers, EXPORT_VIEW_CALLERS },
		{ v->callees, "--callees", v->callees, EXPORT_VIEW_CALLEES },
		{ v->nearest_own, "--nearest-own", v->nearest_own, EXPORT_VIEW_NEAREST_OWN },
		{ v->phases.list.n, "--phases", NULL, EXPORT_VIEW_PHASES },
		{ v->marks, "--marks", NULL, EXPORT_VIEW_MARKS },
	};
	const char *before = NULL;

	if (take_subsystem(v))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		if (!choices[i].given)
			continue;
		if (before) {
			log_error("%s and %s are two reports: ask for one at a time", before,
				  choices[i].name);
			return -EINVAL;
		}
		before = choices[i].name;
		v->view = choices[i].view;
		v->pattern = choices[i].pattern;
	}
	for (size_t i = 0; i < v->phases.list.n; i++)
		split_phases(v, v->phases.list.v[i]);
	if (v->phases.list.n && !v->phase_names.list.n) {
		log_error("--phases names no function: give some, with commas between them");
		return -EINVAL;
	}
	return 0;
}

bool views_given(const struct views *v)
{
	return v->view != EXPORT_VIEW_ALL;
}

static bool is_tree(enum export_view view)
{
	return view == EXPORT_VIEW_TREE || view == EXPORT_VIEW_CALLERS || view == EXPORT_VIEW_CALLEES;
}

int views_check(const struct views *v, const struct export_format *format, bool no_inline)
{
	bool tables = format->flags & EXPORT_VIEWS, stacks = tables || format->flags & EXPORT_STACKS;
	bool own = v->view == EXPORT_VIEW_ALL || v->view == EXPORT_VIEW_CRATES ||
		   v->view == EXPORT_VIEW_NEAREST_OWN;
	const struct {
		bool given, fits;
		const char *sentence;
		unsigned flags; /* the sentence goes on with the formats that have one of them */
	} checks[] = {
		{ views_given(v), tables, "this report is a table, for ", EXPORT_VIEWS },
		{ v->root, stacks, "--root is for ", EXPORT_VIEWS | EXPORT_STACKS },
		{ views_grouped(v), stacks, "--group is for ", EXPORT_VIEWS | EXPORT_STACKS },
		{ v->own.list.n, tables && own,
		  "--own is for tables by crate: use it with --table crates, --nearest-own or the whole "
		  "report" },
		{ v->percent_limit != VIEWS_PERCENT_LIMIT, is_tree(v->view),
		  "--percent-limit is for --tree, --callers and --callees; tables have --limit" },
		{ v->depth, is_tree(v->view), "--depth is for --tree, --callers and --callees" },
		{ v->view == EXPORT_VIEW_GROUPS, views_grouped(v),
		  "--table groups needs groups: say which with --group" },
		{ no_inline, v->view != EXPORT_VIEW_PHASES || v->root || views_grouped(v),
		  "--no-inline would change nothing: --phases looks for functions wherever they are" },
	};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i].given && !checks[i].fits) {
			_cleanup_free_ char *formats = checks[i].flags ? export_list(checks[i].flags, false, NULL) : NULL;

			log_error("%s%s%s", checks[i].sentence, formats ? formats : "", formats ? ": choose with --format" : "");
			return -EINVAL;
		}
	return 0;
}

void views_done(struct views *v)
{
	vec_done(&v->phases.list);
	vec_done(&v->groups.list);
	vec_done(&v->own.list);
	vec_done_each(&v->phase_names.list, e, free((char *)*e));
}
