/*
 * views.h - the options of `gasflame report` that choose what its tables are about. Only report.c uses it.
 */
#pragma once

#include <stdbool.h>

#include "cmd/cmd.h"
#include "export/export.h"

#define VIEWS_PERCENT_LIMIT 0.5

struct views {
	const char *table, *callers, *callees, *nearest_own, *root;
	struct option_list phases, groups, own;
	bool tree, marks;
	bool by_subsystem; /* --group subsystem, which is no group of functions; set by views_choose() */
	double percent_limit;
	uint64_t depth;
	/* Made by views_choose(). */
	enum export_view view;
	const char *pattern;
	struct option_list phase_names; /* one regex each; owns them */
};

/* 0, or -EINVAL after it was said which two do not go together. */
int views_choose(struct views *v);
/* Checks whether the options fit this format. -EINVAL after a message. */
int views_check(const struct views *v, const struct export_format *format, bool no_inline);
/* Returns whether one of them was given. Then the format is text unless another is chosen. */
bool views_given(const struct views *v);
/* Are names of groups or subsystems in place of functions? */
bool views_grouped(const struct views *v);
void views_done(struct views *v);
