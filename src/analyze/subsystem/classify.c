#include "analyze/subsystem/classify.h"

#include <string.h>

#include "analyze/tree/ident.h"
#include "profile/profile.h"

/* What is known of a stack: of a node that is all of its callers and itself. */
struct classifier_node {
	uint64_t all;
	uint16_t label;
	uint8_t strong, weak; /* innermost; 0 = none */
	bool unknown;         /* a function of the program that no pattern knows */
	bool kernel;          /* a function of the kernel */
};

static const uint8_t not_matched = UINT8_MAX;

void classifier_init(struct classifier *c, const struct profile *p, struct subsystems *table)
{
	*c = (struct classifier){ .p = p, .table = table };
	c->kernel = subsystems_of_name(table, "", "", true).subsystem;
	vec_push(&c->nodes, (struct classifier_node){ 0 });
}

void classifier_done(struct classifier *c)
{
	vec_done(&c->functions);
	vec_done(&c->nodes);
}

struct subsystem_use classifier_of_function(struct classifier *c, uint32_t function)
{
	const struct profile *p = c->p;
	const struct profile_function *f = &p->functions.v[function];
	const char *module = f->module < p->modules.n ? profile_str(p, p->modules.v[f->module].path) : "";

	while (c->functions.n <= function)
		vec_push(&c->functions, (struct subsystem_use){ .subsystem = not_matched });
	if (c->functions.v[function].subsystem == not_matched)
		c->functions.v[function] =
			subsystems_of_name(c->table, profile_str(p, f->name), module, false);
	return c->functions.v[function];
}

static void add_function(struct classifier *c, struct classifier_node *n, uint32_t function)
{
	struct subsystem_use use = classifier_of_function(c, function);

	if (use.label)
		n->label = use.label;
	if (!use.subsystem) {
		n->unknown = true;
	} else if (use.weak) {
		n->weak = use.subsystem;
	} else {
		n->strong = use.subsystem;
		n->all |= 1ULL << use.subsystem;
	}
}

static void add_frame(struct classifier *c, struct classifier_node *n, uint32_t frame)
{
	const struct profile *p = c->p;
	const struct profile_frame *f = &p->frames.v[frame];

	if (f->kind == FRAME_NOTE)
		return;
	if (f->kind == FRAME_KERNEL) {
		/* A marker in place of a stack, "[preempted]", is no function. */
		if (f->module < p->modules.n)
			n->kernel = true;
		else
			n->unknown = true;
		return;
	}
	if (f->kind != FRAME_USER || ident_frame_unnamed(p, frame)) {
		n->unknown = true;
		return;
	}
	for (uint32_t k = f->line_count; k-- > 0;)
		add_function(c, n, p->lines.v[f->first_line + k].function);
}

/* Parents come before their children. */
static const struct classifier_node *node_of(struct classifier *c, uint32_t stack)
{
	while (c->nodes.n <= stack) {
		const struct profile_node *at = &c->p->stacks.v[c->nodes.n];
		struct classifier_node n = c->nodes.v[at->parent];

		add_frame(c, &n, at->frame);
		vec_push(&c->nodes, n);
	}
	return &c->nodes.v[stack];
}

struct classified classifier_of(struct classifier *c, uint32_t stack)
{
	const struct classifier_node *n = node_of(c, stack);
	uint8_t found = n->strong;

	if (!found && !n->unknown)
		found = n->weak;
	if (!found && !n->unknown && n->kernel)
		found = c->kernel;
	return (struct classified){ n->all | 1ULL << found, found, n->label };
}

const char *classifier_name(struct classifier *c, uint32_t stack)
{
	return c->table->list.v[classifier_of(c, stack).subsystem].name;
}
