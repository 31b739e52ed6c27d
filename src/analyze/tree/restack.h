/*
 * restack.h - other stacks for a selection: shares of one function, and functions summed under one name.
 *
 *	static const char *const groups[] = { "SLOAD=op_sload", NULL };
 *	struct restack_options o = { .root = "add_block", .groups = groups };
 *	r = restack_apply(p, &selection, &o, &err);
 *
 * With a root each stack begins with its outermost function that matches, and those without one are left out:
 * all shares are of that function then. A group is a name in place of the functions that match; calls within
 * one group are one frame. The account, causes and quality are of the stacks as they were: measure the
 * quality before.
 */
#pragma once

#include <stdbool.h>

struct err;
struct profile;
struct selection;

/* The module of functions that stand for a group. */
#define RESTACK_GROUP "[group]"

struct restack_options {
	const char *root;          /* extended regex, matches names of functions and groups; NULL = none */
	/* NULL-terminated, the first that matches counts: "NAME=REGEX", or a regex alone, whose first (...)
	 * is the name. Without both the regex itself is. */
	const char *const *groups;
	bool no_inline;            /* inlined calls are no functions */
};

/*
 * Gives the entries of s their new stacks, which are appended to the profile, with the frames that they need;
 * s->all is the rest, s->outside the part not below the root. -EINVAL: a bad regex. -ENODATA: a regex that
 * matches nothing in the selection. The strings must outlive s.
 */
int restack_apply(struct profile *p, struct selection *s, const struct restack_options *o, struct err *err);
