#include "cmd/symbols/symbolmodules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbol/find.h"

enum { NAMED_PERCENT = 99 }; /* from here on nothing is worth doing */

struct module {
	uint32_t id;
	uint64_t samples;       /* with their innermost frame in it */
	uint64_t frames, named; /* over all stacks of all samples */
};

struct modules {
	struct module *v;
	size_t n, capacity;
};

static int compare(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return ORDER(y->samples, x->samples) ?: ORDER(y->frames, x->frames) ?: ORDER(x->id, y->id);
}

static uint64_t *weigh_stacks(const struct profile *p)
{
	uint64_t *weight = mem_alloc((p->stacks.n + 1) * sizeof(*weight));

	for (size_t i = 0; i < p->samples.n; i++)
		weight[p->samples.v[i].stack] += MAX(p->samples.v[i].count, 1u);
	return weight;
}

/* Notes are about the frame above them. */
static const struct profile_frame *frame_of(const struct profile *p, uint32_t node)
{
	while (node && p->frames.v[p->stacks.v[node].frame].kind == FRAME_NOTE)
		node = p->stacks.v[node].parent;
	return node ? &p->frames.v[p->stacks.v[node].frame] : NULL;
}

static void count_modules(const struct profile *p, struct modules *ret)
{
	_cleanup_free_ struct module *all = mem_alloc((p->modules.n + 1) * sizeof(*all));
	_cleanup_free_ uint64_t *weight = weigh_stacks(p);

	for (size_t i = 1; i < p->stacks.n; i++) {
		const struct profile_frame *f = weight[i] ? frame_of(p, i) : NULL;

		if (f && f->module < p->modules.n)
			all[f->module].samples += weight[i];
	}
	/* A parent has a smaller id: from the leaves to the roots. */
	for (size_t i = p->stacks.n; i-- > 1;) {
		const struct profile_node *node = &p->stacks.v[i];
		const struct profile_frame *f = &p->frames.v[node->frame];

		weight[node->parent] += weight[i];
		if (f->module >= p->modules.n || f->kind > FRAME_KERNEL)
			continue;
		all[f->module].frames += weight[i];
		all[f->module].named += profile_frame_unnamed(p, node->frame) ? 0 : weight[i];
	}
	for (size_t i = 0; i < p->modules.n; i++) {
		all[i].id = i;
		if (all[i].frames)
			vec_push(ret, all[i]);
	}
	vec_sort(ret, compare);
}

static double named_percent(const struct module *m)
{
	return str_percent(m->named, m->frames);
}

static char *next_step(const struct profile *p, const struct module *m)
{
	const struct profile_module *x = &p->modules.v[m->id];
	char hex[41];

	if (named_percent(m) >= NAMED_PERCENT)
		return mem_strdup("");
	switch (x->kind) {
	case MODULE_FILE:
		find_hex(hex, x->build_id, x->build_id_size);
		return mem_printf("report --symbols BUILD, unstripped%s%s; gasflame symbols %s says what there is",
				  hex[0] ? ", best with build-id " : "", hex, profile_str(p, x->path));
	case MODULE_KERNEL:
		return mem_strdup("record as root, or with kernel.kptr_restrict=0");
	case MODULE_JIT:
		return mem_strdup("have the run time write a perf map (node: --perf-basic-prof)");
	default:
		return mem_strdup("");
	}
}

void symbolmodules_print(const struct profile *p, struct buf *out)
{
	struct modules list = { 0 };

	count_modules(p, &list);
	buf_puts(out, "   samples     frames    named  module\n");
	for (size_t i = 0; i < list.n; i++) {
		const struct module *m = &list.v[i];
		_cleanup_free_ char *next = next_step(p, m);
		char samples[32], frames[32];

		buf_printf(out, "%10s %10s %6.1f %%  ", str_count(samples, m->samples), str_count(frames, m->frames),
			   named_percent(m));
		plain_add(out, profile_str(p, p->modules.v[m->id].path));
		if (next[0]) {
			buf_puts(out, "\n                                  ");
			plain_add(out, next);
		}
		buf_putc(out, '\n');
	}
	if (!list.n)
		buf_puts(out, "no frames of any module were recorded\n");
	vec_done(&list);
}

void symbolmodules_json(const struct profile *p, struct json *j)
{
	struct modules list = { 0 };

	count_modules(p, &list);
	json_open_array(j, "modules");
	for (size_t i = 0; i < list.n; i++) {
		const struct profile_module *x = &p->modules.v[list.v[i].id];
		_cleanup_free_ char *next = next_step(p, &list.v[i]);
		char hex[41];

		json_open_row(j, 1);
		json_put_string(j, "path", profile_str(p, x->path));
		find_hex(hex, x->build_id, x->build_id_size);
		json_put_string(j, "build_id", hex[0] ? hex : NULL);
		json_put_uints(j, { "samples", list.v[i].samples }, { "frames", list.v[i].frames },
			       { "named_frames", list.v[i].named });
		json_put_fixed(j, "named_percent", named_percent(&list.v[i]), 1);
		json_put_string(j, "next", next[0] ? next : NULL);
		json_close(j);
	}
	json_close(j);
	vec_done(&list);
}
