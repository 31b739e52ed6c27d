/*
 * view.h - the parts of text.c and json.c: one function a view. Only those two call them.
 *
 * Functions that can fail say why in err: an invalid regex, or one that matches nothing.
 */
#pragma once

#include <stdbool.h>

#include "analyze/tree/callers.h"

struct buf;
struct err;
struct json;
struct export_job;

/* The tree, the callers or the callees of the job; both must be given back. */
int view_tree(const struct export_job *job, struct calltree *tree, struct callers *callers, struct err *err);
/* Is a node heavy enough, and not too deep, to be shown? Its children are not if it is not. */
bool view_shows(const struct export_job *job, const struct callers *c, uint32_t node);
/* The tree of functions that shares are made of. */
void view_merged(const struct export_job *job, struct calltree *tree);

int texttree_put(const struct export_job *job, struct buf *out, struct err *err);
/* tree NULL: it is made. short_: only where it tells more than the modules, and only self and total. */
void textshare_crates(const struct export_job *job, struct buf *out, const struct calltree *tree,
		      bool short_);
/* Puts nothing without groups. */
void textshare_groups(const struct export_job *job, struct buf *out);
int textshare_nearest(const struct export_job *job, struct buf *out, struct err *err);
int textphase_phases(const struct export_job *job, struct buf *out, struct err *err);
int textphase_marks(const struct export_job *job, struct buf *out, struct err *err);

/* "user", "kernel", "unnamed"; for identities that are no function "thread", "note", "cause", "truncated",
 * "all" */
const char *view_kind(enum ident_kind kind);
/* These put members into the object that json.c has begun; a view that fails puts none. */
int jsonview_tree(const struct export_job *job, struct json *j, struct err *err);
void jsonview_crates(const struct export_job *job, struct json *j, const struct calltree *tree);
void jsonview_groups(const struct export_job *job, struct json *j);
int jsonview_nearest(const struct export_job *job, struct json *j, struct err *err);
int jsonview_phases(const struct export_job *job, struct json *j, struct err *err);
int jsonview_marks(const struct export_job *job, struct json *j, struct err *err);
