/*
 * form.c - attribute values: read raw, and interpreted once the unit's bases are
 * known.
 */
#include "elf/dwarf/dwarfdef.h"
#include "elf/dwarf/dwarfint.h"

static const struct {
	uint16_t name, slot;
} slots[] = {
	{ DW_AT_name, ATTR_NAME },
	{ DW_AT_linkage_name, ATTR_LINKAGE },
	{ DW_AT_MIPS_linkage_name, ATTR_LINKAGE },
	{ DW_AT_low_pc, ATTR_LOW_PC },
	{ DW_AT_high_pc, ATTR_HIGH_PC },
	{ DW_AT_ranges, ATTR_RANGES },
	{ DW_AT_abstract_origin, ATTR_ORIGIN },
	{ DW_AT_specification, ATTR_SPECIFICATION },
	{ DW_AT_call_file, ATTR_CALL_FILE },
	{ DW_AT_call_line, ATTR_CALL_LINE },
	{ DW_AT_stmt_list, ATTR_STMT_LIST },
	{ DW_AT_comp_dir, ATTR_COMP_DIR },
	{ DW_AT_str_offsets_base, ATTR_STR_OFFSETS_BASE },
	{ DW_AT_addr_base, ATTR_ADDR_BASE },
	{ DW_AT_GNU_addr_base, ATTR_ADDR_BASE },
	{ DW_AT_rnglists_base, ATTR_RNGLISTS_BASE },
	{ DW_AT_dwo_name, ATTR_DWO },
	{ DW_AT_GNU_dwo_name, ATTR_DWO },
};

enum attr_slot form_slot(uint64_t name)
{
	for (size_t i = 0; i < ARRAY_LEN(slots); i++)
		if (slots[i].name == name)
			return slots[i].slot;
	return ATTR_SLOTS;
}

struct value form_read(struct cursor *c, const struct unit *u, uint64_t form, int64_t constant)
{
	struct value v = { .form = MIN(form, UINT16_MAX) };

	if (form == DW_FORM_indirect) {
		form = cursor_uleb(c);
		v.form = MIN(form, UINT16_MAX);
	}
	switch (form) {
	case DW_FORM_flag_present:
		v.u = 1;
		break;
	case DW_FORM_implicit_const:
		v.u = constant;
		break;
	case DW_FORM_data1: case DW_FORM_ref1: case DW_FORM_flag: case DW_FORM_strx1: case DW_FORM_addrx1:
		v.u = cursor_uint(c, 1);
		break;
	case DW_FORM_data2: case DW_FORM_ref2: case DW_FORM_strx2: case DW_FORM_addrx2:
		v.u = cursor_uint(c, 2);
		break;
	case DW_FORM_strx3: case DW_FORM_addrx3:
		v.u = cursor_uint(c, 3);
		break;
	case DW_FORM_data4: case DW_FORM_ref4: case DW_FORM_strx4: case DW_FORM_addrx4: case DW_FORM_ref_sup4:
		v.u = cursor_uint(c, 4);
		break;
	case DW_FORM_data8: case DW_FORM_ref8: case DW_FORM_ref_sig8: case DW_FORM_ref_sup8:
		v.u = cursor_uint(c, 8);
		break;
	case DW_FORM_data16:
		cursor_skip(c, 16);
		break;
	case DW_FORM_addr:
		v.u = cursor_uint(c, u->address_size);
		break;
	case DW_FORM_ref_addr:
		v.u = cursor_uint(c, u->version <= 2 ? u->address_size : u->offset_size);
		break;
	case DW_FORM_strp: case DW_FORM_sec_offset: case DW_FORM_line_strp: case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt: case DW_FORM_GNU_ref_alt:
		v.u = cursor_uint(c, u->offset_size);
		break;
	case DW_FORM_string:
		v.u = (uintptr_t)c->p; /* form_string() checks that it lies in a section */
		cursor_skip_string(c);
		break;
	case DW_FORM_block1:
		cursor_skip(c, cursor_uint(c, 1));
		break;
	case DW_FORM_block2:
		cursor_skip(c, cursor_uint(c, 2));
		break;
	case DW_FORM_block4:
		cursor_skip(c, cursor_uint(c, 4));
		break;
	case DW_FORM_block: case DW_FORM_exprloc:
		cursor_skip(c, cursor_uleb(c));
		break;
	case DW_FORM_sdata:
		v.u = cursor_sleb(c);
		break;
	case DW_FORM_udata: case DW_FORM_ref_udata: case DW_FORM_strx: case DW_FORM_addrx:
	case DW_FORM_loclistx: case DW_FORM_rnglistx: case DW_FORM_GNU_addr_index: case DW_FORM_GNU_str_index:
		v.u = cursor_uleb(c);
		break;
	default:
		v.form = 0;
		c->p = c->end;
	}
	return v;
}

void form_read_die(struct dwarf *d, const struct abbrevs *t, const struct abbrev *a, const struct unit *u,
		   struct cursor *c, struct die *ret)
{
	*ret = (struct die){ 0 };
	if (!dwarf_pay(d, a->attr_count))
		return;
	for (uint32_t i = 0; i < a->attr_count; i++) {
		const struct attr *attr = &t->attrs.v[a->attr_first + i];
		int64_t constant = attr->form == DW_FORM_implicit_const ? t->constants.v[attr->constant] : 0;
		struct value v = form_read(c, u, attr->form, constant);

		if (attr->slot < ATTR_SLOTS)
			ret->a[attr->slot] = v;
	}
}

static const char *string_in(const struct dwarf_section *s, uint64_t offset)
{
	size_t left;

	if (offset >= s->n)
		return "";
	left = MIN(s->n - offset, DWARF_STRING_LIMIT);
	return memchr(s->data + offset, 0, left) ? (const char *)s->data + offset : "";
}

/* Reads entry index of an array of entries of size bytes that begins at base. */
static bool indexed(const struct dwarf_section *s, uint64_t base, uint64_t index, unsigned size,
		    uint64_t *ret)
{
	struct cursor c;

	if (base > s->n || index >= (s->n - base) / size)
		return false;
	c = (struct cursor){ s->data + base + index * size, s->data + s->n };
	*ret = cursor_uint(&c, size);
	return true;
}

const char *form_string(const struct dwarf *d, const struct dwarf_file *f, const struct unit *u,
			const struct value *v)
{
	uint64_t offset;

	switch (v->form) {
	case DW_FORM_string:
		/* An inline string stays where it was read: in .debug_info or in a line table's header. */
		for (int i = SECTION_INFO; i <= SECTION_LINE; i++) {
			const struct dwarf_section *s = &f->sections[i];
			uintptr_t start = (uintptr_t)s->data;

			if (v->u >= start && v->u - start < s->n)
				return string_in(s, v->u - start);
		}
		return "";
	case DW_FORM_strp:
		return string_in(&f->sections[SECTION_STR], v->u);
	case DW_FORM_line_strp:
		return string_in(&f->sections[SECTION_LINE_STR], v->u);
	case DW_FORM_GNU_strp_alt: case DW_FORM_strp_sup:
		return d->has_alt && f == &d->main ? string_in(&d->alt.sections[SECTION_STR], v->u) : "";
	case DW_FORM_strx: case DW_FORM_strx1: case DW_FORM_strx2: case DW_FORM_strx3: case DW_FORM_strx4:
		if (indexed(&f->sections[SECTION_STR_OFFSETS], u->str_offsets_base, v->u, u->offset_size,
			    &offset))
			return string_in(&f->sections[SECTION_STR], offset);
		return "";
	}
	return "";
}

bool form_is_address(uint16_t form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

bool form_address(const struct dwarf_file *f, const struct unit *u, const struct value *v, uint64_t *ret)
{
	if (v->form == DW_FORM_addr) {
		*ret = v->u;
		return true;
	}
	return form_is_address(v->form) &&
	       indexed(&f->sections[SECTION_ADDR], u->addr_base, v->u, u->address_size, ret);
}

struct dwarf_file *form_reference(struct dwarf *d, struct dwarf_file *f, const struct unit *u,
				  const struct value *v, uint64_t *ret)
{
	switch (v->form) {
	case DW_FORM_ref1: case DW_FORM_ref2: case DW_FORM_ref4: case DW_FORM_ref8: case DW_FORM_ref_udata:
		if (v->u >= u->end - u->offset)
			return NULL;
		*ret = u->offset + v->u;
		return f;
	case DW_FORM_ref_addr:
		*ret = v->u;
		return f;
	case DW_FORM_GNU_ref_alt: case DW_FORM_ref_sup4: case DW_FORM_ref_sup8:
		*ret = v->u;
		return d->has_alt ? &d->alt : NULL;
	}
	return NULL;
}
