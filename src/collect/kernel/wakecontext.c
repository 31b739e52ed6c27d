#include "collect/kernel/wakecontext.h"

#include "base/vec.h"
#include "collect/kernel/kernelmap.h"
#include "profile/profile.h"

void wakecontext_done(struct wakecontext *w)
{
	map_done(&w->known);
}

/* Reads the kernel's part of a stack. *ret_beyond: the innermost node that is no part of the interrupt. */
static enum kernel_interrupt find(const struct wakecontext *w, uint32_t stack, uint32_t *ret_beyond)
{
	const struct profile *p = w->profile;
	struct interrupt_reader r = { 0 };

	*ret_beyond = 0;
	for (uint32_t s = stack; s && p->frames.v[p->stacks.v[s].frame].kind == FRAME_KERNEL; s = p->stacks.v[s].parent) {
		uint8_t name = kernelmap_class(w->kernel, p->stacks.v[s].frame);

		/* Several functions in a row enter an interrupt. What follows them was interrupted. */
		if (r.entered && !(name & KERNELNAME_ENTRY))
			break;
		interrupt_read(&r, name);
		if (name & (KERNELNAME_ENTRY | KERNELNAME_SOFTIRQ))
			*ret_beyond = p->stacks.v[s].parent;
	}
	return r.thread ? INTERRUPT_NONE : interrupt_of(&r);
}

/* The same stack without what lies beyond. */
static uint32_t cut(struct profile *p, uint32_t stack, uint32_t beyond)
{
	VEC(uint32_t) frames = { 0 };
	uint32_t made = 0;

	for (uint32_t s = stack; s && s != beyond; s = p->stacks.v[s].parent)
		vec_push(&frames, p->stacks.v[s].frame);
	for (size_t i = frames.n; i-- > 0;)
		made = profile_stack(p, made, frames.v[i]);
	vec_done(&frames);
	return made;
}

enum kernel_interrupt wakecontext_of(struct wakecontext *w, uint32_t *stack)
{
	uint64_t *known = map_get(&w->known, *stack);
	enum kernel_interrupt interrupt;
	uint32_t beyond;

	if (!known) {
		interrupt = find(w, *stack, &beyond);
		known = map_put(&w->known, *stack, 0);
		*known = (uint64_t)interrupt << 32 | (interrupt ? cut(w->profile, *stack, beyond) : *stack);
	}
	*stack = *known;
	return *known >> 32;
}
