#include "serve/visitors.h"

#include <stdlib.h>

#include "base/mem.h"

/* Removes v from the list of strangers, if it is in it. */
static void take_out(struct visitors *all, struct visitor *v)
{
	if (v->known || v->leaving)
		return;
	*(v->before ? &v->before->after : &all->oldest) = v->after;
	*(v->after ? &v->after->before : &all->newest) = v->before;
	v->before = v->after = NULL;
	all->strangers--;
}

struct visitor *visitors_come(struct visitors *all, int fd, struct visitor **ret)
{
	struct visitor *v = mem_alloc(sizeof(*v)), *goes = NULL;

	if (all->strangers >= all->limit) {
		goes = all->oldest;
		take_out(all, goes);
		goes->leaving = true;
	}
	*v = (struct visitor){ .before = all->newest, .fd = fd };
	*(all->newest ? &all->newest->after : &all->oldest) = v;
	all->newest = v;
	all->strangers++;
	*ret = v;
	return goes;
}

void visitors_know(struct visitors *all, struct visitor *v)
{
	take_out(all, v);
	v->known = true;
}

void visitors_leave(struct visitors *all, struct visitor *v)
{
	if (!v)
		return;
	take_out(all, v);
	free(v);
}
