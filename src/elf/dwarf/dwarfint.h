/*
 * dwarfint.h - what the files of the DWARF reader share. Included by them only.
 *
 *	unit.c    headers and root DIEs, which unit covers an address
 *	abbrev.c  abbreviation tables, skipping DIEs
 *	form.c    attribute values
 *	range.c   address ranges of a DIE
 *	line.c    line programs
 *	inline.c  functions and the calls inlined into them
 *	dwarf.c   ties them together
 *
 * All of it is hostile. A cursor never leaves its bytes, nothing recurses, and
 * struct dwarf has one budget of work, in bytes and steps, which every loop pays
 * into; when it is used up, what is known so far is the answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "elf/dwarf/dwarf.h"

enum dwarf_section_id {
	SECTION_INFO, SECTION_ABBREV, SECTION_LINE, SECTION_STR, SECTION_LINE_STR,
	SECTION_STR_OFFSETS, SECTION_ADDR, SECTION_RANGES, SECTION_RNGLISTS, SECTION_COUNT
};

enum { DWARF_STRING_LIMIT = 64 << 10 }; /* longer names and paths count as unknown */

struct dwarf_section {
	const uint8_t *data;
	size_t n;
};

/* --- a cursor: at the end it stays there and gives zeros --- */

struct cursor {
	const uint8_t *p, *end;
};

static inline size_t cursor_left(const struct cursor *c)
{
	return c->end - c->p;
}

static inline void cursor_skip(struct cursor *c, uint64_t n)
{
	c->p = n > cursor_left(c) ? c->end : c->p + n;
}

static inline uint64_t cursor_uint(struct cursor *c, unsigned bytes)
{
	uint64_t v = 0;

	if (bytes > cursor_left(c)) {
		c->p = c->end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)c->p[i] << (8 * i);
	c->p += bytes;
	return v;
}

static inline uint64_t cursor_uleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return v;
}

static inline int64_t cursor_sleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; c->p < c->end;) {
		uint8_t byte = *c->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (shift < 64 && byte & 0x40)
				v |= ~0ULL << shift;
			break;
		}
	}
	return v;
}

static inline void cursor_skip_leb(struct cursor *c)
{
	while (c->p < c->end && *c->p++ & 0x80)
		;
}

static inline void cursor_skip_string(struct cursor *c)
{
	const uint8_t *nul = memchr(c->p, 0, cursor_left(c));

	c->p = nul ? nul + 1 : c->end;
}

/* --- abbreviations --- */

struct attr {
	uint16_t form;
	uint8_t slot;      /* enum attr_slot; ATTR_SLOTS = not needed */
	uint32_t constant; /* index into constants, for DW_FORM_implicit_const */
};

/* Skips a number of bytes, then one value of variable size. */
struct step {
	uint32_t bytes;
	uint8_t then; /* enum step_kind */
};

struct abbrev {
	uint16_t tag;
	bool children, has_pc, has_sibling;
	uint8_t sibling_size;  /* bytes of the reference, and where it stands */
	uint32_t sibling_at;
	uint32_t fixed;        /* bytes of all attributes; ABBREV_VARIES if they vary */
	uint32_t attr_first, attr_count, step_first, step_count;
};
enum { ABBREV_VARIES = UINT32_MAX };

struct abbrevs {
	VEC(struct abbrev) v;
	VEC(struct attr) attrs;
	VEC(struct step) steps;
	VEC(int64_t) constants;
	struct map codes; /* code to index, when they are not simply 1, 2, 3 ... */
	bool dense;
	uint64_t key;
};

/* --- units and files --- */

struct unit {
	uint64_t offset, end; /* within .debug_info */
	uint64_t abbrev_offset;
	uint64_t low_pc, stmt_list; /* stmt_list UINT64_MAX = none */
	uint64_t str_offsets_base, addr_base, rnglists_base;
	uint16_t version;
	uint8_t header_size, address_size, offset_size;
	bool covers; /* the root gives the addresses that the unit covers */
};

struct dwarf_file {
	struct dwarf_section sections[SECTION_COUNT];
	VEC(struct unit) units; /* by offset */
	struct map table_of;    /* abbreviation tables read, by offset and sizes */
	struct abbrevs *tables; /* the last one used */
	size_t table_bytes;
};

struct dwarf_name {
	const char *linkage, *name;
};

struct dwarf {
	struct dwarf_file main, alt;
	bool has_alt, read; /* read: units were listed */
	uint64_t text_start; /* the linker discarded code below this address */
	int64_t work;        /* what is left of the budget */
	struct map names;    /* DIE to index of name_list */
	VEC(struct dwarf_name) name_list;
	struct strtab paths;
};

static inline bool dwarf_pay(struct dwarf *d, uint64_t steps)
{
	d->work -= MIN(steps, 1ULL << 40);
	return d->work > 0;
}

/* --- values --- */

struct value {
	uint64_t u;
	uint16_t form; /* 0 = absent */
};

/* The attributes that the reader needs. */
enum attr_slot {
	ATTR_NAME, ATTR_LINKAGE, ATTR_LOW_PC, ATTR_HIGH_PC, ATTR_RANGES, ATTR_ORIGIN, ATTR_SPECIFICATION,
	ATTR_CALL_FILE, ATTR_CALL_LINE, ATTR_STMT_LIST, ATTR_COMP_DIR, ATTR_STR_OFFSETS_BASE,
	ATTR_ADDR_BASE, ATTR_RNGLISTS_BASE, ATTR_DWO, ATTR_SLOTS
};

struct die {
	struct value a[ATTR_SLOTS];
};

/* --- one wanted address within a unit --- */

struct point {
	uint64_t address;
	size_t index;       /* the caller's */
	uint32_t file, line;
	bool has_line;
	uint64_t function;  /* offset of its DIE, 0 = none */
	uint32_t frame;     /* innermost inlined call: index + 1 into frames */
};

struct frame {
	uint32_t parent; /* index + 1 of the one around it, 0 = the function itself */
	uint32_t depth;  /* of the DIE below its function */
	uint32_t call_file, call_line;
	uint64_t die;
};

struct frames {
	struct frame *v;
	size_t n, capacity;
};

/* abbrev.c */
struct abbrevs *abbrev_table(struct dwarf *d, struct dwarf_file *f, const struct unit *u);
const struct abbrev *abbrev_get(const struct abbrevs *t, uint64_t code);
/* Reads one abbreviation only, as a table of its own; for roots. NULL when there is no such code. */
struct abbrevs *abbrev_find_one(struct dwarf *d, const struct dwarf_file *f, const struct unit *u,
				uint64_t code);
void abbrev_free(struct abbrevs *t);
void abbrev_free_all(struct dwarf_file *f);
void abbrev_trim(struct dwarf_file *f); /* when no table is in use */
void abbrev_skip(const struct abbrevs *t, const struct abbrev *a, const struct unit *u, struct cursor *c);

/* form.c */
enum attr_slot form_slot(uint64_t name);
struct value form_read(struct cursor *c, const struct unit *u, uint64_t form, int64_t constant);
void form_read_die(struct dwarf *d, const struct abbrevs *t, const struct abbrev *a, const struct unit *u,
		   struct cursor *c, struct die *ret);
const char *form_string(const struct dwarf *d, const struct dwarf_file *f, const struct unit *u,
			const struct value *v);
bool form_address(const struct dwarf_file *f, const struct unit *u, const struct value *v, uint64_t *ret);
/* Resolves a reference to a file and an offset into its .debug_info. */
struct dwarf_file *form_reference(struct dwarf *d, struct dwarf_file *f, const struct unit *u,
				  const struct value *v, uint64_t *ret);
bool form_is_address(uint16_t form);

/* range.c: ranges of a DIE, without those of code that the linker discarded */
struct ranges_iter {
	struct cursor c;
	const struct unit *u;
	const struct dwarf_file *f;
	uint64_t base, low, high;
	enum { RANGES_NONE, RANGES_ONE, RANGES_OLD, RANGES_NEW } kind;
};
void range_begin(struct ranges_iter *it, const struct dwarf_file *f, const struct unit *u,
		 const struct die *die);
bool range_next(struct dwarf *d, struct ranges_iter *it, uint64_t *low, uint64_t *high);

/* unit.c */
void unit_read_all(struct dwarf *d, struct dwarf_file *f);
/* Returns the unit that holds the DIE at offset, NULL if none does. */
const struct unit *unit_at(const struct dwarf_file *f, uint64_t offset);
bool unit_read_root(struct dwarf *d, struct dwarf_file *f, const struct unit *u, struct die *ret);
struct cursor unit_cursor(const struct dwarf_file *f, const struct unit *u, uint64_t offset);

/* line.c */
struct line_table;
struct line_table *line_open(struct dwarf *d, const struct unit *u, const struct die *root);
void line_run(struct dwarf *d, struct line_table *t, struct point *points, size_t n);
const char *line_file(struct dwarf *d, const struct line_table *t, uint32_t file);
void line_free(struct line_table *t);

/* inline.c: finds the function of each point and the calls inlined there */
void inline_find(struct dwarf *d, const struct unit *u, struct point *points, size_t n,
		 struct frames *frames);
struct dwarf_name inline_name(struct dwarf *d, struct dwarf_file *f, uint64_t die);
/* Returns the first of the sorted points that is not below address. */
size_t inline_lower(const struct point *points, size_t n, uint64_t address);
