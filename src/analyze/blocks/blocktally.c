#include "analyze/blocks/blocktally.h"

#include <string.h>

#include "analyze/subsystem/classify.h"
#include "analyze/tree/ownfunction.h"
#include "profile/profile.h"

enum { KEPT = 24 }; /* functions and crates of a block */

/* A part, a function and the own one above it (+ 1, 0 = none) as one number: there are fewer than 2^30 names. */
enum { NAME_BITS = 30 };
_Static_assert(BLOCK_PARTS <= 16, "four bits");

static uint64_t key_of(enum block_part part, uint32_t name, uint32_t own)
{
	return (uint64_t)part << 2 * NAME_BITS | (uint64_t)(own & ((1u << NAME_BITS) - 1)) << NAME_BITS |
	       (name & ((1u << NAME_BITS) - 1));
}

static uint32_t key_name(uint64_t key)
{
	return key & ((1u << NAME_BITS) - 1);
}

static uint32_t key_own(uint64_t key)
{
	return key >> NAME_BITS & ((1u << NAME_BITS) - 1);
}

void blocktally_init(struct blocktally *t, struct blocks *b, const struct profile *p, struct classifier *classifier)
{
	*t = (struct blocktally){ .b = b, .p = p, .classifier = classifier };
	t->subsystem_names = mem_alloc(SUBSYSTEMS_MAX * sizeof(*t->subsystem_names));
	for (size_t i = 0; i < SUBSYSTEMS_MAX; i++)
		t->subsystem_names[i] = PROFILE_NONE;
}

void blocktally_done(struct blocktally *t)
{
	map_done(&t->own);
	map_done(&t->functions);
	map_done(&t->crates);
	map_done(&t->subsystems);
	map_done(&t->subsystem_totals);
	free(t->subsystem_names);
	vec_done(&t->uses);
	vec_done(&t->kinds);
	vec_done(&t->crate_names);
}

/* --- functions --- */

/* The kind is found by comparing strings, and a function is in many stacks. */
enum code_kind blocktally_kind(struct blocktally *t, const struct ident *id)
{
	size_t at = id - t->b->idents.list.v;

	while (t->kinds.n <= at)
		vec_push(&t->kinds, 0);
	if (!t->kinds.v[at])
		t->kinds.v[at] = 1 + crate_kind(&t->b->names, id);
	return t->kinds.v[at] - 1;
}

/* The innermost function of the user's own crates, + 1; 0: there is none. */
static uint32_t own_of_stack(struct blocktally *t, uint32_t stack)
{
	uint64_t *known = map_get(&t->own, stack);
	uint32_t n, found = 0;

	if (known)
		return *known;
	for (uint32_t at = stack; at && !found; at = t->p->stacks.v[at].parent) {
		uint32_t frame = t->p->stacks.v[at].frame;
		const uint32_t *list;

		if (t->p->frames.v[frame].kind != FRAME_USER)
			continue;
		list = idents_of_frame(&t->b->idents, frame, &n);
		for (uint32_t k = n; k-- > 0 && !found;)
			if (blocktally_kind(t, &t->b->idents.list.v[list[k]]) == CODE_OWN)
				found = list[k] + 1;
	}
	*map_put(&t->own, stack, 0) = found;
	return found;
}

/* Finds the call site of a stack, and the own function that led there, if that is another one. False:
 * none. */
static bool key_of_stack(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t *ret)
{
	uint32_t site = ownfunction_of_stack(&t->b->idents, stack), own;

	if (site == OWNFUNCTION_NONE)
		return false;
	own = own_of_stack(t, stack);
	*ret = key_of(part, site, own == site + 1 ? 0 : own);
	return true;
}

void blocktally_add(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t ns)
{
	uint64_t key;

	if (key_of_stack(t, part, stack, &key))
		*map_put(&t->functions, key, 0) += ns;
}

void blocktally_add_name(struct blocktally *t, enum block_part part, const char *name, uint64_t ns)
{
	if (ns)
		*map_put(&t->functions, key_of(part, idents_add(&t->b->idents, name, "", IDENT_NOTE), 0), 0) += ns;
}

static bool is_note(const struct profile *p, uint32_t stack)
{
	return stack && p->frames.v[p->stacks.v[stack].frame].kind == FRAME_NOTE;
}

const struct ident *blocktally_leaf(struct blocktally *t, uint32_t stack)
{
	const uint32_t *list;
	uint32_t n;

	while (is_note(t->p, stack))
		stack = t->p->stacks.v[stack].parent;
	if (!stack)
		return NULL;
	list = idents_of_frame(&t->b->idents, t->p->stacks.v[stack].frame, &n);
	return &t->b->idents.list.v[list[n - 1]];
}

void blocktally_add_crate(struct blocktally *t, enum block_part part, const struct ident *leaf, uint64_t ns)
{
	size_t at = leaf - t->b->idents.list.v;

	while (t->crate_names.n <= at)
		vec_push(&t->crate_names, 0);
	if (!t->crate_names.v[at]) {
		const char *crate = crate_name(&t->b->names, leaf);

		t->crate_names.v[at] = 1 + idents_add(&t->b->idents, *crate ? crate : "[unnamed]", "", IDENT_GROUP);
	}
	*map_put(&t->crates, key_of(part, t->crate_names.v[at] - 1, 0), 0) += ns;
}

/* --- subsystems --- */

static uint64_t subsystem_key_of(struct blocktally *t, enum block_part part, unsigned subsystem)
{
	uint32_t *name = &t->subsystem_names[subsystem];

	if (*name == PROFILE_NONE)
		*name = idents_add(&t->b->idents, t->classifier->table->list.v[subsystem].name, "", IDENT_GROUP);
	return key_of(part, *name, 0);
}

void blocktally_add_subsystem(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t ns)
{
	struct classified of;

	if (!t->classifier)
		return;
	of = classifier_of(t->classifier, stack);
	*map_put(&t->subsystems, subsystem_key_of(t, part, of.subsystem), 0) += ns;
	for (unsigned i = 0; i < SUBSYSTEMS_MAX; i++)
		if (of.all >> i & 1)
			*map_put(&t->subsystem_totals, subsystem_key_of(t, part, i), 0) += ns;
}

/* --- files --- */

static void add_use(struct blocktally *t, uint64_t key, uint32_t frame, uint64_t weight)
{
	for (size_t i = 0; i < t->uses.n; i++)
		if (t->uses.v[i].function == key && t->uses.v[i].frame == frame) {
			t->uses.v[i].weight += weight;
			return;
		}
	vec_push(&t->uses, (struct blocktally_use){ key, frame, weight });
}

void blocktally_add_file(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t weight)
{
	uint32_t frame = PROFILE_NONE;
	uint64_t key, all;

	/* The outer one is the file, the inner one may be a range of it. */
	for (; is_note(t->p, stack); stack = t->p->stacks.v[stack].parent)
		frame = t->p->stacks.v[stack].frame;
	if (frame == PROFILE_NONE)
		return;
	if (key_of_stack(t, part, stack, &key))
		add_use(t, key, frame, weight);
	all = t->classifier ? classifier_of(t->classifier, stack).all : 0;
	for (unsigned i = 0; i < SUBSYSTEMS_MAX; i++)
		if (all >> i & 1)
			add_use(t, subsystem_key_of(t, part, i), frame, weight);
}

/* The file that a function used most; NULL: it is not known. */
static const char *file_used(const struct blocktally *t, uint64_t key)
{
	const struct blocktally_use *most = NULL;

	for (size_t i = 0; i < t->uses.n; i++)
		if (t->uses.v[i].function == key && (!most || t->uses.v[i].weight > most->weight))
			most = &t->uses.v[i];
	return most ? cause_frame_name(t->p, most->frame) : NULL;
}

/* --- the result --- */

static int compare_items(const void *a, const void *b)
{
	const struct block_item *x = a, *y = b;

	return ORDER(y->ns, x->ns) ?: ORDER(x->part, y->part) ?: strcmp(x->name, y->name);
}

static void take(struct blocktally *t, struct map *from, double cpu_scale, size_t most, struct block_items *to)
{
	const struct ident *names = t->b->idents.list.v;

	for (size_t i = 0; i < from->capacity; i++) {
		const struct map_slot *s = &from->slots[i];
		enum block_part part = s->key >> 2 * NAME_BITS;
		bool cpu = block_part_is_cpu(part);

		if (s->used)
			vec_push(to, (struct block_item){ .part = part, .name = names[key_name(s->key)].name,
							  .under = key_own(s->key) ? names[key_own(s->key) - 1].name :
										     NULL,
							  .file = cpu ? NULL : file_used(t, s->key),
							  .ns = s->value * (cpu ? cpu_scale : 1) });
	}
	vec_sort(to, compare_items);
	to->n = MIN(to->n, most);
	map_clear(from);
}

void blocktally_take(struct blocktally *t, double cpu_scale, struct block_row *row)
{
	take(t, &t->functions, cpu_scale, KEPT, &row->functions);
	take(t, &t->crates, cpu_scale, KEPT, &row->crates);
	take(t, &t->subsystems, cpu_scale, SIZE_MAX, &row->subsystems);
	take(t, &t->subsystem_totals, cpu_scale, SIZE_MAX, &row->subsystem_totals);
	vec_clear(&t->uses);
}

/* Names are interned: the same one is the same pointer. */
static void add_to(struct block_items *sum, const struct block_item *x)
{
	for (size_t i = 0; i < sum->n; i++)
		if (sum->v[i].name == x->name && sum->v[i].part == x->part) {
			sum->v[i].ns += x->ns;
			return;
		}
	vec_push(sum, *x);
}

void blocktally_sum(struct blocks *b)
{
	for (size_t i = 0; i < b->rows.n; i++)
		for (size_t k = 0; k < b->rows.v[i].crates.n; k++)
			add_to(&b->crates, &b->rows.v[i].crates.v[k]);
	vec_sort(&b->crates, compare_items);
	for (size_t i = 0; i < b->rows.n; i++)
		for (size_t k = 0; k < b->rows.v[i].subsystems.n; k++) {
			struct block_item x = b->rows.v[i].subsystems.v[k];

			x.part = BLOCK_UNKNOWN; /* of all parts */
			add_to(&b->subsystems, &x);
		}
	vec_sort(&b->subsystems, compare_items);
}
