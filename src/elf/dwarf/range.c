/*
 * range.c - the addresses that a DIE covers: low and high pc, .debug_ranges,
 * .debug_rnglists.
 */
#include "elf/dwarf/dwarfdef.h"
#include "elf/dwarf/dwarfint.h"

static void begin_list(struct ranges_iter *it, const struct value *v)
{
	int id = it->u->version >= 5 ? SECTION_RNGLISTS : SECTION_RANGES;
	const struct dwarf_section *s = &it->f->sections[id];
	uint64_t offset = v->u;

	if (v->form == DW_FORM_rnglistx) {
		struct cursor c;
		uint64_t base = it->u->rnglists_base;

		if (base > s->n || v->u >= (s->n - base) / it->u->offset_size)
			return;
		c = (struct cursor){ s->data + base + v->u * it->u->offset_size, s->data + s->n };
		offset = base + cursor_uint(&c, it->u->offset_size);
	}
	if (offset >= s->n)
		return;
	it->c = (struct cursor){ s->data + offset, s->data + s->n };
	it->kind = it->u->version >= 5 ? RANGES_NEW : RANGES_OLD;
}

void range_begin(struct ranges_iter *it, const struct dwarf_file *f, const struct unit *u,
		 const struct die *die)
{
	const struct value *high = &die->a[ATTR_HIGH_PC];

	*it = (struct ranges_iter){ .u = u, .f = f, .base = u->low_pc, .kind = RANGES_NONE };
	if (die->a[ATTR_RANGES].form) {
		begin_list(it, &die->a[ATTR_RANGES]);
		return;
	}
	if (!high->form || !form_address(f, u, &die->a[ATTR_LOW_PC], &it->low))
		return;
	if (form_is_address(high->form)) {
		if (!form_address(f, u, high, &it->high))
			return;
	} else {
		it->high = it->low + high->u;
	}
	it->kind = RANGES_ONE;
}

/* Reads an entry of .debug_ranges into low and high. False at the end. */
static bool next_old(struct ranges_iter *it)
{
	unsigned size = it->u->address_size;
	uint64_t highest = size == 8 ? UINT64_MAX : UINT32_MAX;

	while (cursor_left(&it->c) >= 2 * size) {
		uint64_t a = cursor_uint(&it->c, size), b = cursor_uint(&it->c, size);

		if (!a && !b)
			return false;
		if (a == highest) {
			it->base = b;
			continue;
		}
		it->low = it->base + a;
		it->high = it->base + b;
		return true;
	}
	return false;
}

static uint64_t address_at(const struct ranges_iter *it, uint64_t index)
{
	struct value v = { .form = DW_FORM_addrx, .u = index };
	uint64_t address = 0;

	form_address(it->f, it->u, &v, &address);
	return address;
}

/* Reads an entry of .debug_rnglists. */
static bool next_new(struct ranges_iter *it)
{
	unsigned size = it->u->address_size;
	struct cursor *c = &it->c;

	while (c->p < c->end) {
		switch (cursor_uint(c, 1)) {
		case DW_RLE_base_addressx:
			it->base = address_at(it, cursor_uleb(c));
			continue;
		case DW_RLE_base_address:
			it->base = cursor_uint(c, size);
			continue;
		case DW_RLE_startx_endx:
			it->low = address_at(it, cursor_uleb(c));
			it->high = address_at(it, cursor_uleb(c));
			return true;
		case DW_RLE_startx_length:
			it->low = address_at(it, cursor_uleb(c));
			it->high = it->low + cursor_uleb(c);
			return true;
		case DW_RLE_offset_pair:
			it->low = it->base + cursor_uleb(c);
			it->high = it->base + cursor_uleb(c);
			return true;
		case DW_RLE_start_end:
			it->low = cursor_uint(c, size);
			it->high = cursor_uint(c, size);
			return true;
		case DW_RLE_start_length:
			it->low = cursor_uint(c, size);
			it->high = it->low + cursor_uleb(c);
			return true;
		default:
			return false;
		}
	}
	return false;
}

bool range_next(struct dwarf *d, struct ranges_iter *it, uint64_t *low, uint64_t *high)
{
	for (;;) {
		const uint8_t *before = it->c.p;
		bool more = false;

		if (it->kind == RANGES_ONE)
			more = true;
		else if (it->kind == RANGES_OLD)
			more = next_old(it);
		else if (it->kind == RANGES_NEW)
			more = next_new(it);
		if (it->kind == RANGES_ONE)
			it->kind = RANGES_NONE;
		if (!dwarf_pay(d, 1 + (it->c.p - before)) || !more)
			return false;
		/* Linkers set the ranges of discarded sections to 0 or thereabouts. */
		if (it->low >= it->high || it->low < d->text_start)
			continue;
		*low = it->low;
		*high = it->high;
		return true;
	}
}
