#include "analyze/tree/restack.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text/match.h"
#include "base/mem.h"
#include "profile/profile.h"

struct shape {
	struct profile *p;
	const struct restack_options *o;
	/* By function: the frame of its group, PROFILE_NONE = none; does it match the root? */
	uint32_t *group;
	uint8_t *root;
	size_t functions;
	uint32_t module;     /* of groups */
	struct map parts;    /* frame and line to the frame of that line alone */
	struct map groups;   /* frames of groups */
};

/* --- which functions --- */

static int compile(const char *option, const char *pattern, int flags, regex_t *ret, struct err *err)
{
	char why[128];
	int r = regcomp(ret, pattern, REG_EXTENDED | flags);

	if (!r)
		return 0;
	regerror(r, ret, why, sizeof(why));
	return err_set(err, EINVAL,
		       "%s '%s' is not a regular expression: %s (put \\ before a bracket that is "
		       "meant literally)",
		       option, pattern, why);
}

/* "SLOAD=regex": the length of the name, 0 = there is none. */
static size_t name_length(const char *spec)
{
	size_t n = 0;

	while (isalnum((unsigned char)spec[n]) || (spec[n] && strchr("_-. ", spec[n])))
		n++;
	return n && spec[n] == '=' && spec[n + 1] ? n : 0;
}

/* Returns the group of a function that matches: named by the option, by the first (...), or as the regex. */
static char *group_name(const char *spec, size_t named, const char *function, const regmatch_t *match)
{
	if (named)
		return mem_strndup(spec, named);
	if (match->rm_so >= 0 && match->rm_eo > match->rm_so)
		return mem_strndup(function + match->rm_so, match->rm_eo - match->rm_so);
	return mem_strdup(spec);
}

static int find_group(struct shape *sh, const char *spec, const uint8_t *used, struct err *err)
{
	struct profile *p = sh->p;
	size_t named = name_length(spec), found = 0;
	regex_t regex;
	int r = compile("--group", named ? spec + named + 1 : spec, 0, &regex, err);

	if (r)
		return r;
	for (size_t i = 0; i < sh->functions; i++) {
		const char *name = profile_str(p, p->functions.v[i].name);
		regmatch_t match[2] = { { .rm_so = -1 }, { .rm_so = -1 } };
		_cleanup_free_ char *group = NULL;

		if (!used[i] || !match_regex(&regex, name, 2, match))
			continue;
		found++;
		if (sh->group[i] != PROFILE_NONE)
			continue;
		group = group_name(spec, named, name, &match[1]);
		sh->group[i] = profile_named_frame(p, sh->module, FRAME_USER, group);
		map_put(&sh->groups, sh->group[i], 1);
	}
	regfree(&regex);
	return found ? 0
		     : err_set(err, ENODATA,
			       "--group '%s' matches no function: try a shorter piece of its name", spec);
}

static const char *frame_name(const struct profile *p, uint32_t frame)
{
	return profile_str(p, p->functions.v[p->lines.v[p->frames.v[frame].first_line].function].name);
}

static int find_root(struct shape *sh, struct err *err)
{
	struct profile *p = sh->p;
	regex_t regex;
	int r = sh->o->root ? compile("--root", sh->o->root, REG_NOSUB, &regex, err) : 0;

	if (!sh->o->root || r)
		return r;
	for (size_t i = 0; i < sh->functions; i++)
		sh->root[i] = match_regex(&regex, profile_str(p, p->functions.v[i].name), 0, NULL) ||
			      (sh->group[i] != PROFILE_NONE &&
			       match_regex(&regex, frame_name(p, sh->group[i]), 0, NULL));
	regfree(&regex);
	return 0;
}

/* --- frames --- */

static bool is_code(const struct profile_frame *f)
{
	return f->line_count && (f->kind == FRAME_USER || f->kind == FRAME_KERNEL);
}

/* The functions of a frame, counted from the outermost. */
static uint32_t width(const struct shape *sh, const struct profile_frame *f)
{
	return sh->o->no_inline ? 1 : f->line_count;
}

static const struct profile_line *line_at(const struct shape *sh, const struct profile_frame *f, uint32_t k)
{
	return &sh->p->lines.v[f->first_line + f->line_count - 1 - k];
}

/* Makes one function of a frame a frame of its own. */
static uint32_t part_of(struct shape *sh, uint32_t frame, uint32_t k)
{
	struct profile *p = sh->p;
	struct profile_frame f = p->frames.v[frame];
	struct profile_line line = *line_at(sh, &f, k);
	uint64_t *part;

	if (sh->group[line.function] != PROFILE_NONE)
		return sh->group[line.function];
	part = map_put(&sh->parts, map_pair(frame, k), p->frames.n);
	if (*part == p->frames.n) {
		vec_push(&p->frames,
			 (struct profile_frame){ .module = f.module, .kind = f.kind, .address = f.address });
		line.inlined = false;
		profile_set_lines(p, *part, &line, 1);
	}
	return *part;
}

/* Is a frame of the stack's leaf this group's? */
static bool continues(const struct shape *sh, uint32_t stack, uint32_t frame)
{
	return stack && sh->p->stacks.v[stack].frame == frame && map_get(&sh->groups, frame);
}

/* Below the new stack: the functions of a frame from the k-th on. */
static uint32_t add_frame(struct shape *sh, uint32_t stack, uint32_t frame, uint32_t k)
{
	const struct profile_frame f = sh->p->frames.v[frame];
	bool whole = !k;

	for (uint32_t i = k; is_code(&f) && i < width(sh, &f); i++)
		whole &= sh->group[line_at(sh, &f, i)->function] == PROFILE_NONE;
	if (whole || !is_code(&f))
		return profile_stack(sh->p, stack, frame);
	for (; k < width(sh, &f); k++) {
		uint32_t part = part_of(sh, frame, k);

		if (!continues(sh, stack, part))
			stack = profile_stack(sh->p, stack, part);
	}
	return stack;
}

/* The outermost function of a frame that is a root; the frame's width = none. */
static uint32_t root_in(const struct shape *sh, uint32_t frame)
{
	const struct profile_frame *f = &sh->p->frames.v[frame];
	uint32_t k = 0;

	if (!is_code(f))
		return UINT32_MAX;
	while (k < width(sh, f) && !sh->root[line_at(sh, f, k)->function])
		k++;
	return k < width(sh, f) ? k : UINT32_MAX;
}

/* --- stacks --- */

/* Returns a byte for each node: whether it is part of a selected stack. */
static uint8_t *find_needed(const struct profile *p, const struct selection *s)
{
	uint8_t *needed = mem_alloc(p->stacks.n + 1);

	for (size_t i = 0; i < s->entries.n; i++)
		for (uint32_t n = s->entries.v[i].stack; n && !needed[n]; n = p->stacks.v[n].parent)
			needed[n] = 1;
	return needed;
}

static uint8_t *find_used(const struct profile *p, const uint8_t *needed)
{
	uint8_t *used = mem_alloc(p->functions.n + 1);

	for (size_t i = 1; i < p->stacks.n; i++) {
		const struct profile_frame *f = needed[i] ? &p->frames.v[p->stacks.v[i].frame] : NULL;

		for (uint32_t k = 0; f && is_code(f) && k < f->line_count; k++)
			used[p->lines.v[f->first_line + k].function] = 1;
	}
	return used;
}

/* Parents come before their children, also in the new stacks. */
static uint32_t *map_stacks(struct shape *sh, const uint8_t *needed)
{
	size_t n = sh->p->stacks.n;
	uint32_t *to = mem_alloc((n + 1) * sizeof(*to));

	to[0] = sh->o->root ? PROFILE_NONE : 0;
	for (size_t i = 1; i < n; i++) {
		const struct profile_node node = sh->p->stacks.v[i];
		uint32_t k;

		to[i] = PROFILE_NONE;
		if (!needed[i])
			continue;
		if (to[node.parent] != PROFILE_NONE) {
			to[i] = add_frame(sh, to[node.parent], node.frame, 0);
			continue;
		}
		k = root_in(sh, node.frame);
		if (k != UINT32_MAX)
			to[i] = add_frame(sh, 0, node.frame, k);
	}
	return to;
}

static void replace_entries(struct selection *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->entries.n; i++) {
		struct select_entry e = s->entries.v[i];

		e.stack = s->shaped[e.stack];
		if (e.stack == PROFILE_NONE) {
			s->outside.samples += e.weight.samples;
			s->outside.value += e.weight.value;
			s->outside.taken += e.weight.taken;
		} else {
			s->entries.v[kept++] = e;
		}
	}
	s->entries.n = kept;
	s->all.samples -= s->outside.samples;
	s->all.value -= s->outside.value;
	s->all.taken -= s->outside.taken;
}

int restack_apply(struct profile *p, struct selection *s, const struct restack_options *o, struct err *err)
{
	struct shape sh = { .p = p, .o = o, .functions = p->functions.n };
	_cleanup_free_ uint8_t *needed = NULL, *used = NULL;
	bool any = s->entries.n;
	int r = 0;

	if (!o->root && !(o->groups && *o->groups))
		return 0;
	needed = find_needed(p, s);
	used = find_used(p, needed);
	sh.group = mem_alloc((p->functions.n + 1) * sizeof(*sh.group));
	sh.root = mem_alloc(p->functions.n + 1);
	memset(sh.group, 0xff, (p->functions.n + 1) * sizeof(*sh.group));
	if (o->groups && *o->groups)
		sh.module = profile_add_module(
			p, &(struct profile_module){ .path = profile_string(p, RESTACK_GROUP),
						     .kind = MODULE_NONE,
						     .process = PROFILE_NONE });
	for (const char *const *g = o->groups; g && *g && !r; g++)
		r = any ? find_group(&sh, *g, used, err) : 0;
	if (!r)
		r = find_root(&sh, err);
	if (!r) {
		s->shaped = map_stacks(&sh, needed);
		s->root = o->root;
		replace_entries(s);
	}
	if (!r && any && !s->entries.n)
		r = err_set(err, ENODATA, "no function matches --root '%s': try a shorter piece of its name",
			    o->root);
	free(sh.group);
	free(sh.root);
	map_done(&sh.parts);
	map_done(&sh.groups);
	return r;
}
