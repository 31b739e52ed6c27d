/*
 * foldedmodel.c - folded stacks as a profile.
 *
 * The prefix tree of the text becomes the profile's as it is: only its names are
 * replaced by frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "folded/folded.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "folded/stacklist.h"

/* An inlined function by itself: the frame into which it was inlined is the one before it. */
static uint32_t inlined_frame(struct profile *p, const char *name)
{
	struct profile_function f = { .name = profile_string(p, name), .module = PROFILE_NONE };
	struct profile_line line = { .function = profile_function(p, &f), .inlined = true };

	vec_push(&p->frames, (struct profile_frame){ .module = PROFILE_NONE, .kind = FRAME_USER });
	profile_set_lines(p, p->frames.n - 1, &line, 1);
	return p->frames.n - 1;
}

/* A module that holds no file, but says where code of its functions came from. */
static uint32_t kind_module(struct profile *p, const char *path)
{
	uint32_t string = profile_string(p, path);

	for (uint32_t i = 0; i < p->modules.n; i++)
		if (p->modules.v[i].path == string)
			return i;
	return profile_add_module(p, &(struct profile_module){ .path = string, .kind = MODULE_NONE, .process = PROFILE_NONE });
}

/* What a mark at the end of a name says: "_[k]" of the kernel, "_[i]" inlined; "_[j]" and "_[1]" compiled while it ran, "_[0]"
 * interpreted, as async-profiler marks them. "_[w]", of a waker, stays. */
static uint32_t frame_of_name(struct profile *p, const char *name, bool kernel)
{
	_cleanup_free_ char *plain = NULL;
	size_t n = strlen(name);
	char mark = n > 4 && name[n - 1] == ']' && !memcmp(name + n - 4, "_[", 2) ? name[n - 2] : 0;

	if (mark && strchr("kij10", mark))
		name = plain = mem_strndup(name, n - 4);
	if (mark == 'k' || kernel)
		return profile_named_frame(p, PROFILE_NONE, FRAME_KERNEL, *name ? name : "[no name]");
	if (mark == 'i')
		return inlined_frame(p, name);
	return profile_named_frame(p, mark == 'j' || mark == '1' ? kind_module(p, "[jit]") : mark == '0' ? kind_module(p, "[interpreted]") : PROFILE_NONE,
				   FRAME_USER, *name ? name : "[no name]");
}

/* bcc's tools put "-" between the frames of the program and those of the kernel (-d, --delimited). */
static bool is_delimited(const struct stacklist *l)
{
	for (size_t i = 0; i < l->names.n; i++)
		if (!strcmp(strtab_get(&l->names, i), "-"))
			return true;
	return false;
}

/* Makes the tree anew without delimiters, and gives the lines their nodes in it. */
static void move_delimited(struct profile *p, struct stacklist *l)
{
	_cleanup_free_ uint32_t *nodes = mem_alloc(l->nodes.n * sizeof(*nodes));
	_cleanup_free_ bool *kernel = mem_alloc(l->nodes.n * sizeof(*kernel));

	for (size_t i = 1; i < l->nodes.n; i++) {
		const struct profile_node *n = &l->nodes.v[i];
		const char *name = strtab_get(&l->names, n->frame);

		kernel[i] = kernel[n->parent] || !strcmp(name, "-");
		nodes[i] = !strcmp(name, "-") ? nodes[n->parent]
					      : profile_stack(p, nodes[n->parent], frame_of_name(p, name, kernel[n->parent]));
	}
	for (size_t i = 0; i < l->lines.n; i++)
		l->lines.v[i].stack = nodes[l->lines.v[i].stack];
}

/* Moves the tree over. Two names may be one frame ("" and "[no name]"): two nodes are then alike, which
 * costs a little room and nothing else. */
static void move_stacks(struct profile *p, struct stacklist *l)
{
	_cleanup_free_ uint32_t *frames = NULL;

	if (is_delimited(l)) {
		move_delimited(p, l);
		return;
	}
	frames = mem_alloc(l->names.n * sizeof(*frames));
	for (size_t i = 0; i < l->names.n; i++)
		frames[i] = PROFILE_NONE;
	nodes_forget_index(&l->nodes);
	for (size_t i = 1; i < l->nodes.n; i++) {
		struct profile_node *n = &l->nodes.v[i];

		if (frames[n->frame] == PROFILE_NONE)
			frames[n->frame] = frame_of_name(p, strtab_get(&l->names, n->frame), false);
		n->frame = frames[n->frame];
	}
	nodes_done(&p->stacks);
	p->stacks = l->nodes;
	l->nodes = (struct profile_nodes){ 0 };
}

static uint32_t thread_of(struct profile *p, const struct stacklist *l, uint32_t *threads, uint32_t first)
{
	const char *name = strtab_get(&l->names, first);

	if (threads[first] == PROFILE_NONE)
		threads[first] = profile_add_thread(
			p, &(struct profile_thread){ .name = profile_string(p, *name ? name : "[no name]") });
	return threads[first];
}

/* Each count is so many samples of weight one, if that can be said. */
static bool counts_samples(const struct stacklist *l)
{
	for (size_t i = 0; i < l->lines.n; i++)
		if (l->lines.v[i].value > UINT32_MAX ||
		    (l->differential && l->lines.v[i].before != STACKLIST_NONE &&
		     l->lines.v[i].before > UINT32_MAX))
			return false;
	return !l->decimals;
}

static void add_samples(struct profile *p, const struct stacklist *l)
{
	_cleanup_free_ uint32_t *threads = mem_alloc(l->names.n * sizeof(*threads));
	_cleanup_free_ char *unit = l->decimals
	                                    ? mem_printf("count/%llu", (unsigned long long)stacklist_unit(l))
	                                    : mem_strdup("count");
	bool counts = counts_samples(l);
	uint32_t samples = profile_add_event(p, "samples", unit, "", counts), before = PROFILE_NONE;

	if (l->differential)
		before = profile_add_event(p, "before", unit, "samples of the first of two counts", counts);
	for (size_t i = 0; i < l->names.n; i++)
		threads[i] = PROFILE_NONE;
	vec_reserve(&p->samples, l->lines.n);
	for (size_t i = 0; i < l->lines.n; i++) {
		const struct stacklist_line *line = &l->lines.v[i];
		struct profile_sample s = { .thread = thread_of(p, l, threads, line->first),
			                    .stack = line->stack,
			                    .event = samples,
			                    .value = line->value,
			                    .count = counts ? line->value : 1 };

		if (s.value)
			profile_add_sample(p, &s);
		s.event = before;
		s.value = line->before;
		s.count = counts ? line->before : 1;
		if (line->before != STACKLIST_NONE && s.value)
			profile_add_sample(p, &s);
	}
}

int folded_profile(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct stacklist l;
	struct profile *p;
	uint64_t total;
	int r;

	stacklist_init(&l);
	r = folded_read(in->stream, &(struct folded_options){ .first_apart = true }, &l, err);
	if (!r && !l.lines.n && l.ignored)
		r = err_set(err, EINVAL, "no line of it is a stack with a count: \"outer;inner;leaf 123\"");
	if (!r && stacklist_total(&l, &total))
		r = err_set(err, ERANGE, "its counts add up to more than can be counted");
	if (r) {
		stacklist_done(&l);
		return r;
	}
	p = profile_new();
	p->target = profile_string(p, in->name);
	p->finished = true;
	profile_add_process(p, &(struct profile_process){ .name = p->target });
	if (l.ignored)
		profile_count(p, KEY_IMPORT_LINES_IGNORED, l.ignored);
	move_stacks(p, &l);
	add_samples(p, &l);
	stacklist_done(&l);
	*ret = p;
	return 0;
}
