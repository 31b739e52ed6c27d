/*
 * inline.c - the function around each wanted address and the calls inlined there.
 *
 * The DIEs of a unit are read from front to back. Only functions that cover a
 * wanted address are entered; the others, and all types and variables, are
 * skipped. LLVM compilers write no DW_AT_sibling, so skipping must be quick DIE
 * by DIE.
 */
#include "elf/dwarf/dwarfdef.h"
#include "elf/dwarf/dwarfint.h"

enum { ORIGIN_HOPS = 16, FRAME_LIMIT = 1 << 20 };

struct walk {
	struct dwarf *d;
	const struct unit *u;
	const struct abbrevs *t;
	struct point *points;
	size_t n;
	size_t left; /* points without a function */
	struct frames *frames;
};

size_t inline_lower(const struct point *points, size_t n, uint64_t address)
{
	return vec_search(i, 0, n, points[i].address < address);
}

/* Assigns to this function the points that it covers and no earlier one did. Returns how many. */
static size_t claim(struct walk *w, const struct die *die, uint64_t offset)
{
	struct ranges_iter it;
	uint64_t low, high;
	size_t claimed = 0;

	range_begin(&it, &w->d->main, w->u, die);
	while (range_next(w->d, &it, &low, &high)) {
		size_t i = inline_lower(w->points, w->n, low), first = i;

		for (; i < w->n && w->points[i].address < high; i++)
			if (!w->points[i].function) {
				w->points[i].function = offset;
				claimed++;
			}
		dwarf_pay(w->d, i - first);
	}
	w->left -= claimed;
	return claimed;
}

static uint32_t small(const struct value *v)
{
	return v->u > UINT32_MAX ? 0 : v->u;
}

/* Pushes an inlined call onto the points that it covers. Returns how many. */
static size_t stack_call(struct walk *w, const struct die *die, uint64_t offset, uint64_t function,
			 uint32_t depth)
{
	struct ranges_iter it;
	uint64_t low, high;
	size_t hit = 0;

	range_begin(&it, &w->d->main, w->u, die);
	while (range_next(w->d, &it, &low, &high)) {
		size_t i = inline_lower(w->points, w->n, low);

		for (; i < w->n && w->points[i].address < high; i++) {
			struct point *p = &w->points[i];

			if (!dwarf_pay(w->d, 1))
				return hit;
			if (p->function != function || w->frames->n >= FRAME_LIMIT)
				continue;
			/* A frame as deep or deeper belongs to a sibling that claimed the point before. */
			while (p->frame && w->frames->v[p->frame - 1].depth >= depth)
				p->frame = w->frames->v[p->frame - 1].parent;
			vec_push(w->frames, (struct frame){ .parent = p->frame, .depth = depth, .die = offset,
							    .call_file = small(&die->a[ATTR_CALL_FILE]),
							    .call_line = small(&die->a[ATTR_CALL_LINE]) });
			p->frame = w->frames->n;
			hit++;
		}
	}
	return hit;
}

/* Finds the DIE after this one and its children, if it has DW_AT_sibling. c is at its first attribute. */
static bool sibling(const struct walk *w, const struct abbrev *a, struct cursor c, const uint8_t **ret)
{
	const uint8_t *data = w->d->main.sections[SECTION_INFO].data, *start = c.p;
	uint64_t offset;

	if (!a->has_sibling)
		return false;
	cursor_skip(&c, a->sibling_at);
	offset = cursor_uint(&c, a->sibling_size);
	if (offset >= w->u->end - w->u->offset || data + w->u->offset + offset <= start)
		return false;
	*ret = data + w->u->offset + offset;
	return true;
}

/* Reads the children of a function; c is before the first of them and is left after the last. */
static void walk_function(struct walk *w, uint64_t function, struct cursor *c)
{
	const uint8_t *data = w->d->main.sections[SECTION_INFO].data, *paid = c->p;
	uint32_t depth = 1, dead = UINT32_MAX; /* DIEs at this depth or deeper cannot matter */

	while (c->p < c->end) {
		uint64_t offset = c->p - data, code = cursor_uleb(c);
		const struct abbrev *a;
		const uint8_t *after;
		bool skip = false;

		if (!code) {
			if (--depth == 0)
				break;
			if (depth < dead)
				dead = UINT32_MAX;
			continue;
		}
		a = abbrev_get(w->t, code);
		if (!a || !dwarf_pay(w->d, 1 + (c->p - paid))) {
			c->p = c->end;
			break;
		}
		paid = c->p;
		if (depth >= dead)
			skip = a->children;
		else if (a->tag == DW_TAG_inlined_subroutine) {
			struct cursor at = *c;
			struct die die;

			form_read_die(w->d, w->t, a, w->u, &at, &die);
			/* DWARF 2 cannot give the ranges of a call in pieces; its children may. */
			skip = !stack_call(w, &die, offset, function, depth) && a->has_pc;
		} else if (a->children)
			skip = a->tag != DW_TAG_lexical_block;
		if (skip && a->children && sibling(w, a, *c, &after)) {
			c->p = after;
			continue;
		}
		abbrev_skip(w->t, a, w->u, c);
		if (a->children) {
			depth++;
			if (skip && depth < dead)
				dead = depth;
		}
	}
}

/* Returns whether no function with code can be below this DIE. That holds in C and C++, where a function
 * that is declared in a class is defined outside. Where it does not, the second pass finds the functions. */
static bool may_skip_children(const struct abbrev *a)
{
	return a->tag != DW_TAG_namespace && a->tag != DW_TAG_module && a->tag != DW_TAG_compile_unit &&
	       a->tag != DW_TAG_partial_unit;
}

/* thorough: enters every DIE, also functions that are nested in functions. */
static void walk_unit(struct walk *w, bool thorough)
{
	const uint8_t *data = w->d->main.sections[SECTION_INFO].data, *paid;
	struct cursor c = unit_cursor(&w->d->main, w->u, w->u->offset + w->u->header_size);

	paid = c.p;
	while (c.p < c.end && w->left) {
		uint64_t offset = c.p - data, code = cursor_uleb(&c);
		const struct abbrev *a;
		const uint8_t *after;

		if (!code)
			continue;
		a = abbrev_get(w->t, code);
		if (!a || !dwarf_pay(w->d, 1 + (c.p - paid)))
			return;
		paid = c.p;
		if (a->tag == DW_TAG_subprogram && a->has_pc) {
			struct cursor body = c;
			struct die die;

			form_read_die(w->d, w->t, a, w->u, &body, &die);
			if (claim(w, &die, offset) && a->children) {
				struct cursor first = body;

				walk_function(w, offset, &body);
				c = thorough ? first : body;
				continue;
			}
		}
		if (!thorough && a->children && may_skip_children(a) && sibling(w, a, c, &after))
			c.p = after;
		else
			abbrev_skip(w->t, a, w->u, &c);
	}
}

void inline_find(struct dwarf *d, const struct unit *u, struct point *points, size_t n, struct frames *frames)
{
	struct walk w = { .d = d, .u = u, .t = abbrev_table(d, &d->main, u), .points = points, .n = n,
			  .left = n, .frames = frames };

	walk_unit(&w, false);
	if (w.left)
		walk_unit(&w, true);
}

/* Reads one DIE on the way to the name. False when it cannot be read. */
static bool read_named(struct dwarf *d, struct dwarf_file *f, uint64_t offset, const struct unit **ret_unit,
		       struct die *ret)
{
	const struct unit *u = unit_at(f, offset);
	const struct abbrevs *t;
	const struct abbrev *a;
	struct cursor c;

	if (!u)
		return false;
	c = unit_cursor(f, u, offset);
	abbrev_trim(f);
	t = abbrev_table(d, f, u);
	a = abbrev_get(t, cursor_uleb(&c));
	if (!a)
		return false;
	form_read_die(d, t, a, u, &c, ret);
	*ret_unit = u;
	return true;
}

struct dwarf_name inline_name(struct dwarf *d, struct dwarf_file *f, uint64_t die_offset)
{
	uint64_t key = die_offset << 1 | (f == &d->alt), offset = die_offset;
	uint64_t *known = map_get(&d->names, key);
	struct dwarf_name name = { "", "" };

	if (known)
		return d->name_list.v[*known];
	for (int hop = 0; hop < ORIGIN_HOPS && f && !*name.linkage; hop++) {
		const struct unit *u;
		struct die die;
		struct dwarf_file *next;

		if (!read_named(d, f, offset, &u, &die))
			break;
		name.linkage = form_string(d, f, u, &die.a[ATTR_LINKAGE]);
		if (!*name.name)
			name.name = form_string(d, f, u, &die.a[ATTR_NAME]);
		next = form_reference(d, f, u, &die.a[ATTR_ORIGIN], &offset);
		f = next ? next : form_reference(d, f, u, &die.a[ATTR_SPECIFICATION], &offset);
	}
	*map_put(&d->names, key, 0) = d->name_list.n;
	vec_push(&d->name_list, name);
	return name;
}
