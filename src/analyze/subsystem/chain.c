#include "analyze/subsystem/chain.h"

#include "analyze/select.h"
#include "analyze/subsystem/classify.h"
#include "analyze/tree/ident.h"
#include "analyze/tree/restack.h"
#include "profile/profile.h"

struct chain {
	struct profile *p;
	struct classifier *c;
	uint32_t module;
	uint32_t frames[SUBSYSTEMS_MAX]; /* PROFILE_NONE = not made yet */
};

static uint32_t frame_of(struct chain *x, uint8_t subsystem)
{
	if (x->frames[subsystem] == PROFILE_NONE)
		x->frames[subsystem] =
			profile_named_frame(x->p, x->module, FRAME_USER, x->c->table->list.v[subsystem].name);
	return x->frames[subsystem];
}

/* Below the new stack: the subsystems of a frame, which is of the program. */
static uint32_t add_frame(struct chain *x, uint32_t stack, uint32_t frame)
{
	const struct profile_frame f = x->p->frames.v[frame];

	if (f.kind != FRAME_USER || ident_frame_unnamed(x->p, frame))
		return stack;
	for (uint32_t k = f.line_count; k-- > 0;) {
		struct subsystem_use use =
			classifier_of_function(x->c, x->p->lines.v[f.first_line + k].function);
		uint32_t name;

		if (!use.subsystem || use.weak)
			continue;
		name = frame_of(x, use.subsystem);
		if (!stack || x->p->stacks.v[stack].frame != name)
			stack = profile_stack(x->p, stack, name);
	}
	return stack;
}

void chain_apply(struct profile *p, struct selection *s, struct classifier *c)
{
	struct chain x = { .p = p, .c = c };
	size_t n = p->stacks.n;
	uint32_t *to = mem_alloc((n + 1) * sizeof(*to));
	_cleanup_free_ uint8_t *needed = mem_alloc(n + 1);

	x.module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, RESTACK_GROUP),
	                                                           .kind = MODULE_NONE,
	                                                           .process = PROFILE_NONE });
	for (size_t i = 0; i < ARRAY_LEN(x.frames); i++)
		x.frames[i] = PROFILE_NONE;
	for (size_t i = 0; i < s->entries.n; i++)
		for (uint32_t k = s->entries.v[i].stack; k && !needed[k]; k = p->stacks.v[k].parent)
			needed[k] = 1;
	/* Parents come before their children. */
	for (size_t i = 1; i < n; i++) {
		const struct profile_node node = p->stacks.v[i];

		to[i] = needed[i] ? add_frame(&x, to[node.parent], node.frame) : 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (to[i] || (i && !needed[i]))
			continue;
		to[i] = profile_stack(p, 0, frame_of(&x, classifier_of(c, i).subsystem));
	}
	for (size_t i = 0; i < s->entries.n; i++)
		s->entries.v[i].stack = to[s->entries.v[i].stack];
	s->shaped = to;
}
