/*
 * unit.c - the headers of .debug_info and the root DIE of each unit.
 */
#include "elf/dwarf/dwarfdef.h"
#include "elf/dwarf/dwarfint.h"

enum { UNIT_LIMIT = 1 << 20 };

/* Reads the header at c into u and leaves c after it. False when the rest of the section is unreadable;
 * *usable says whether this unit is readable. */
static bool read_header(struct cursor *c, const struct dwarf_section *s, struct unit *u, bool *usable)
{
	const uint8_t *start = c->p;
	uint64_t length;
	unsigned type = DW_UT_compile;

	*u = (struct unit){ .offset = start - s->data, .offset_size = 4, .stmt_list = UINT64_MAX };
	length = cursor_uint(c, 4);
	if (length == 0xffffffff) {
		u->offset_size = 8;
		length = cursor_uint(c, 8);
	}
	if (!length || length > cursor_left(c))
		return false;
	u->end = c->p - s->data + length;
	u->version = cursor_uint(c, 2);
	if (u->version >= 5) {
		type = cursor_uint(c, 1);
		u->address_size = cursor_uint(c, 1);
		u->abbrev_offset = cursor_uint(c, u->offset_size);
	} else {
		u->abbrev_offset = cursor_uint(c, u->offset_size);
		u->address_size = cursor_uint(c, 1);
	}
	if (type == DW_UT_skeleton || type == DW_UT_split_compile)
		cursor_skip(c, 8);
	u->header_size = c->p - start;
	*usable = u->version >= 2 && u->version <= 5 && (u->address_size == 4 || u->address_size == 8) &&
		  (type == DW_UT_compile || type == DW_UT_partial) && u->abbrev_offset < UINT64_MAX >> 4 &&
		  u->offset + u->header_size < u->end;
	return true;
}

struct cursor unit_cursor(const struct dwarf_file *f, const struct unit *u, uint64_t offset)
{
	const uint8_t *data = f->sections[SECTION_INFO].data;

	if (offset < u->offset + u->header_size || offset > u->end)
		offset = u->end;
	return (struct cursor){ data + offset, data + u->end };
}

bool unit_read_root(struct dwarf *d, struct dwarf_file *f, const struct unit *u, struct die *ret)
{
	struct cursor c = unit_cursor(f, u, u->offset + u->header_size);
	uint64_t code = cursor_uleb(&c);
	struct abbrevs *one;
	bool ok;

	/* A table that many units share is read once; any other only as far as its root's entry. */
	if (f->tables && f->tables->key >> 4 == u->abbrev_offset) {
		const struct abbrevs *t = abbrev_table(d, f, u);
		const struct abbrev *a = abbrev_get(t, code);

		if (a)
			form_read_die(d, t, a, u, &c, ret);
		return a && (a->tag == DW_TAG_compile_unit || a->tag == DW_TAG_partial_unit);
	}
	one = abbrev_find_one(d, f, u, code);
	if (!one)
		return false;
	form_read_die(d, one, &one->v.v[0], u, &c, ret);
	ok = one->v.v[0].tag == DW_TAG_compile_unit || one->v.v[0].tag == DW_TAG_partial_unit;
	abbrev_free(one);
	return ok;
}

/* Takes the bases from the root first: the other attributes may need them. */
static void take_root(struct dwarf_file *f, struct unit *u, const struct die *root)
{
	const struct value *a = root->a;

	/* A unit without the attribute uses the only table, after its header. */
	u->str_offsets_base = a[ATTR_STR_OFFSETS_BASE].form ? a[ATTR_STR_OFFSETS_BASE].u :
			      u->offset_size == 8 ? 16 : 8;
	u->addr_base = a[ATTR_ADDR_BASE].form ? a[ATTR_ADDR_BASE].u : u->offset_size == 8 ? 16 : 8;
	u->rnglists_base = a[ATTR_RNGLISTS_BASE].form ? a[ATTR_RNGLISTS_BASE].u :
			   u->offset_size == 8 ? 20 : 12;
	form_address(f, u, &a[ATTR_LOW_PC], &u->low_pc);
	if (a[ATTR_STMT_LIST].form)
		u->stmt_list = a[ATTR_STMT_LIST].u;
	/* The functions of split DWARF are in another file: the skeleton's lines alone would hide inlined
	 * calls. */
	u->covers = !a[ATTR_DWO].form && (a[ATTR_RANGES].form || a[ATTR_HIGH_PC].form);
}

void unit_read_all(struct dwarf *d, struct dwarf_file *f)
{
	const struct dwarf_section *s = &f->sections[SECTION_INFO];
	struct cursor c = { s->data, s->n ? s->data + s->n : s->data };
	uint64_t last_abbrev = UINT64_MAX;

	while (c.p < c.end && f->units.n < UNIT_LIMIT && dwarf_pay(d, 16)) {
		struct unit u;
		struct die root;
		bool usable = false;

		if (!read_header(&c, s, &u, &usable))
			return;
		c.p = s->data + u.end;
		if (!usable)
			continue;
		abbrev_trim(f);
		if (u.abbrev_offset == last_abbrev)
			abbrev_table(d, f, &u);
		last_abbrev = u.abbrev_offset;
		if (!unit_read_root(d, f, &u, &root))
			continue;
		take_root(f, &u, &root);
		vec_push(&f->units, u);
	}
}

const struct unit *unit_at(const struct dwarf_file *f, uint64_t offset)
{
	size_t low = vec_search(i, 0, f->units.n, f->units.v[i].offset <= offset);

	return low && offset < f->units.v[low - 1].end ? &f->units.v[low - 1] : NULL;
}
