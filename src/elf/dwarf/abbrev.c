/*
 * abbrev.c - abbreviation tables: the attributes of a DIE, and how to skip them quickly.
 *
 * Most DIEs are only skipped. So each abbreviation is reduced, when it is read, to one fixed size
 * where that is possible, and else to a few steps.
 */
#include <stdlib.h>

#include "elf/dwarf/dwarfdef.h"
#include "elf/dwarf/dwarfint.h"

enum step_kind {
	STEP_END, STEP_LEB, STEP_STRING, STEP_BLOCK1, STEP_BLOCK2, STEP_BLOCK4, STEP_BLOCK, STEP_INDIRECT
};

enum {
	TABLE_ABBREVS = 1 << 20, /* a table with more is invalid */
	TABLE_ATTRS = 4 << 20,
	CACHE_BYTES = 32 << 20,
};

/* Returns the bytes of a form, or -1 minus the step that skips it. */
static int form_size(uint64_t form, const struct unit *u)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1: case DW_FORM_ref1: case DW_FORM_flag: case DW_FORM_strx1: case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2: case DW_FORM_ref2: case DW_FORM_strx2: case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3: case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4: case DW_FORM_ref4: case DW_FORM_strx4: case DW_FORM_addrx4: case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8: case DW_FORM_ref8: case DW_FORM_ref_sig8: case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->address_size;
	case DW_FORM_ref_addr:
		return u->version <= 2 ? u->address_size : u->offset_size;
	case DW_FORM_strp: case DW_FORM_sec_offset: case DW_FORM_line_strp: case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt: case DW_FORM_GNU_ref_alt:
		return u->offset_size;
	case DW_FORM_string:
		return -1 - STEP_STRING;
	case DW_FORM_block1:
		return -1 - STEP_BLOCK1;
	case DW_FORM_block2:
		return -1 - STEP_BLOCK2;
	case DW_FORM_block4:
		return -1 - STEP_BLOCK4;
	case DW_FORM_block: case DW_FORM_exprloc:
		return -1 - STEP_BLOCK;
	case DW_FORM_indirect:
		return -1 - STEP_INDIRECT;
	case DW_FORM_sdata: case DW_FORM_udata: case DW_FORM_ref_udata: case DW_FORM_strx: case DW_FORM_addrx:
	case DW_FORM_loclistx: case DW_FORM_rnglistx: case DW_FORM_GNU_addr_index: case DW_FORM_GNU_str_index:
		return -1 - STEP_LEB;
	default:
		return -1 - STEP_END; /* unknown: the rest of the unit cannot be read */
	}
}

static void note_attr(struct abbrev *a, uint64_t name, uint64_t form, uint64_t at, int size,
		      bool fixed_so_far)
{
	if (name == DW_AT_low_pc || name == DW_AT_ranges)
		a->has_pc = true;
	if (name == DW_AT_sibling && fixed_so_far && size > 0 && form != DW_FORM_ref_addr &&
	    form != DW_FORM_ref_sig8) {
		a->has_sibling = true;
		a->sibling_at = at;
		a->sibling_size = size;
	}
}

/* Reads the attribute list of one abbreviation. False when it cannot be used. */
static bool read_attrs(struct abbrevs *t, struct abbrev *a, const struct unit *u, struct cursor *c)
{
	uint64_t bytes = 0;

	a->attr_first = t->attrs.n;
	a->step_first = t->steps.n;
	while (c->p < c->end) {
		uint64_t name = cursor_uleb(c), form = cursor_uleb(c);
		struct attr attr = { .form = MIN(form, UINT16_MAX), .slot = form_slot(name) };
		int size;

		if (form == DW_FORM_implicit_const) {
			attr.constant = t->constants.n;
			vec_push(&t->constants, cursor_sleb(c));
		}
		if (!name && !form)
			break;
		size = form_size(form, u);
		if (size == -1 - STEP_END || t->attrs.n >= TABLE_ATTRS)
			return false;
		note_attr(a, name, form, bytes, size, t->steps.n == a->step_first);
		if (size >= 0)
			bytes += size;
		else {
			vec_push(&t->steps, (struct step){ .bytes = bytes, .then = -1 - size });
			bytes = 0;
		}
		vec_push(&t->attrs, attr);
	}
	a->attr_count = t->attrs.n - a->attr_first;
	a->fixed = ABBREV_VARIES;
	if (t->steps.n == a->step_first)
		a->fixed = bytes;
	else if (bytes)
		vec_push(&t->steps, (struct step){ .bytes = bytes, .then = STEP_END });
	a->step_count = t->steps.n - a->step_first;
	return true;
}

static struct cursor table_cursor(const struct dwarf_file *f, uint64_t offset)
{
	const struct dwarf_section *s = &f->sections[SECTION_ABBREV];
	const uint8_t *end = s->data + s->n;

	return (struct cursor){ offset < s->n ? s->data + offset : end, end };
}

static void read_table(struct dwarf *d, struct abbrevs *t, const struct dwarf_file *f, const struct unit *u)
{
	struct cursor c = table_cursor(f, u->abbrev_offset);

	t->dense = true;
	while (c.p < c.end && t->v.n < TABLE_ABBREVS) {
		const uint8_t *start = c.p;
		uint64_t code = cursor_uleb(&c);
		struct abbrev a = { 0 };

		if (!code)
			break;
		a.tag = cursor_uleb(&c);
		a.children = cursor_uint(&c, 1);
		if (!read_attrs(t, &a, u, &c) || !dwarf_pay(d, c.p - start))
			break;
		if (t->dense && code != t->v.n + 1) {
			t->dense = false;
			for (size_t i = 0; i < t->v.n; i++)
				map_put(&t->codes, i + 1, i);
		}
		if (!t->dense)
			map_put(&t->codes, code, t->v.n);
		vec_push(&t->v, a);
	}
}

static size_t table_size(const struct abbrevs *t)
{
	return sizeof(*t) + t->v.capacity * sizeof(*t->v.v) + t->attrs.capacity * sizeof(*t->attrs.v) +
	       t->steps.capacity * sizeof(*t->steps.v) + t->codes.capacity * sizeof(*t->codes.slots) +
	       t->constants.capacity * sizeof(*t->constants.v);
}

struct abbrevs *abbrev_table(struct dwarf *d, struct dwarf_file *f, const struct unit *u)
{
	/* The sizes of forms depend on the unit too. */
	uint64_t key = u->abbrev_offset << 4 | (u->address_size == 8) << 2 | (u->offset_size == 8) << 1 |
		       (u->version <= 2);
	struct abbrevs *t;

	if (f->tables && f->tables->key == key)
		return f->tables;
	t = (struct abbrevs *)(uintptr_t)*map_put(&f->table_of, key, 0);
	if (t) {
		f->tables = t;
		return t;
	}
	t = mem_alloc(sizeof(*t));
	t->key = key;
	read_table(d, t, f, u);
	f->table_bytes += table_size(t);
	*map_put(&f->table_of, key, 0) = (uintptr_t)t;
	f->tables = t;
	return t;
}

const struct abbrev *abbrev_get(const struct abbrevs *t, uint64_t code)
{
	const uint64_t *i;

	if (t->dense)
		return code - 1 < t->v.n ? &t->v.v[code - 1] : NULL;
	i = map_get(&t->codes, code);
	return i ? &t->v.v[*i] : NULL;
}

struct abbrevs *abbrev_find_one(struct dwarf *d, const struct dwarf_file *f, const struct unit *u,
				uint64_t code)
{
	struct cursor c = table_cursor(f, u->abbrev_offset);
	struct abbrevs *t = mem_alloc(sizeof(*t));
	const uint8_t *start = c.p;

	while (c.p < c.end) {
		uint64_t this = cursor_uleb(&c);
		struct abbrev a = { 0 };

		if (!this)
			break;
		a.tag = cursor_uleb(&c);
		a.children = cursor_uint(&c, 1);
		t->attrs.n = t->steps.n = t->constants.n = 0;
		if (!read_attrs(t, &a, u, &c) || !dwarf_pay(d, c.p - start))
			break;
		start = c.p;
		if (this == code) {
			vec_push(&t->v, a);
			return t;
		}
	}
	abbrev_free(t);
	return NULL;
}

void abbrev_free(struct abbrevs *t)
{
	if (!t)
		return;
	vec_done(&t->v);
	vec_done(&t->attrs);
	vec_done(&t->steps);
	vec_done(&t->constants);
	map_done(&t->codes);
	free(t);
}

void abbrev_free_all(struct dwarf_file *f)
{
	for (size_t i = 0; i < f->table_of.capacity; i++)
		if (f->table_of.slots[i].used)
			abbrev_free((struct abbrevs *)(uintptr_t)f->table_of.slots[i].value);
	map_done(&f->table_of);
	f->tables = NULL;
	f->table_bytes = 0;
}

void abbrev_trim(struct dwarf_file *f)
{
	if (f->table_bytes > CACHE_BYTES)
		abbrev_free_all(f);
}

static void skip_step(enum step_kind kind, const struct unit *u, struct cursor *c)
{
	int size;

	switch (kind) {
	case STEP_END:
		break;
	case STEP_LEB:
		cursor_skip_leb(c);
		break;
	case STEP_STRING:
		cursor_skip_string(c);
		break;
	case STEP_BLOCK1:
		cursor_skip(c, cursor_uint(c, 1));
		break;
	case STEP_BLOCK2:
		cursor_skip(c, cursor_uint(c, 2));
		break;
	case STEP_BLOCK4:
		cursor_skip(c, cursor_uint(c, 4));
		break;
	case STEP_BLOCK:
		cursor_skip(c, cursor_uleb(c));
		break;
	case STEP_INDIRECT:
		/* The data names the form; naming DW_FORM_indirect again makes no sense. */
		size = form_size(cursor_uleb(c), u);
		if (size >= 0)
			cursor_skip(c, size);
		else if (-1 - size != STEP_INDIRECT && -1 - size != STEP_END)
			skip_step(-1 - size, u, c);
		else
			c->p = c->end;
		break;
	}
}

void abbrev_skip(const struct abbrevs *t, const struct abbrev *a, const struct unit *u, struct cursor *c)
{
	if (a->fixed != ABBREV_VARIES) {
		cursor_skip(c, a->fixed);
		return;
	}
	for (uint32_t i = 0; i < a->step_count; i++) {
		const struct step *s = &t->steps.v[a->step_first + i];

		cursor_skip(c, s->bytes);
		skip_step(s->then, u, c);
	}
}
