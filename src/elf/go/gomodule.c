/*
 * gomodule.c - runtime.firstmoduledata, which says where the code and the funcdata of a program begin.
 *
 * From Go 1.18 on, the function table holds offsets; from Go 1.26 on, what they are relative to is in the
 * module's record only. A stripped program has no symbol for the record. It begins with pointers to the parts
 * of the table, which no other data has: it is searched by them. It also proves that a table is this program's
 * own, and not that of another program which it carries as data.
 *
 *	word  0        the table's header
 *	      1 4 7    pointer, length and capacity of names, units, files (3 words each)
 *	      10 13 16 values, functions (as bytes), functions (as records)
 *	      22 23    start and end of the code
 *	      34...    end, gcdata, gcbss, types, ... rodata, funcdata: depends on the version
 */
#include <elf.h>
#include <string.h>

#include "elf/file.h"
#include "elf/go/gotabint.h"

enum {
	/* up to Go 1.15: the table as bytes, the functions as records, the files */
	WORD_RECORDS_112 = 3,
	WORD_FILES_112 = 6,
	/* later */
	WORD_NAMES = 1,
	WORD_UNITS = 4,
	WORD_FILES = 7,
	WORD_VALUES = 10,
	WORD_FUNCTIONS = 13,
	WORD_RECORDS = 16,
	WORD_TEXT = 22,
	/* funcdata, by version */
	WORD_FUNCDATA_118 = 38,
	WORD_FUNCDATA_120 = 40,
	WORD_FUNCDATA_127 = 43,
	/* Go 1.27 put a length between the start of the types and their end; before, this was the end. */
	WORD_TYPES = 37,
	WORD_TYPES_LENGTH_127 = 38,
	WORD_TABLE_END_127 = 44,
};

static uint64_t word(const struct gotab *t, uint64_t module, unsigned i)
{
	uint64_t value;

	return goimage_word(&t->image, module + 8 * i, &value) ? value : 0;
}

struct pointer {
	unsigned word;
	uint64_t offset; /* of what it points to, from the header */
};

static bool points_to(const struct gotab *t, uint64_t module, const struct pointer *pointers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word(t, module, pointers[i].word) != t->address + pointers[i].offset)
			return false;
	return true;
}

static bool is_module(const struct gotab *t, uint64_t module)
{
	const struct pointer old[] = { { 0, 0 }, { WORD_RECORDS_112, t->functions.offset }, { WORD_FILES_112, t->files.offset } };
	const struct pointer pointers[] = {
		{ 0, 0 },
		{ WORD_NAMES, t->names.offset },
		{ WORD_UNITS, t->units.offset },
		{ WORD_FILES, t->files.offset },
		{ WORD_VALUES, t->values.offset },
		{ WORD_FUNCTIONS, t->functions.offset },
		{ WORD_RECORDS, t->functions.offset },
	};

	if (t->version == GOTAB_112)
		return points_to(t, module, old, ARRAY_LEN(old)) && word(t, module, WORD_RECORDS_112 + 1) == t->count + 1;
	return points_to(t, module, pointers, ARRAY_LEN(pointers)) && word(t, module, WORD_RECORDS + 1) == t->count + 1;
}

/* Go 1.20 to 1.27 have the same magic number, but not the same record. */
static unsigned funcdata_word(const struct gotab *t, uint64_t module)
{
	uint64_t end = word(t, module, WORD_TABLE_END_127);

	if (t->version == GOTAB_118)
		return WORD_FUNCDATA_118;
	if (word(t, module, WORD_TYPES_LENGTH_127) < word(t, module, WORD_TYPES) && end > t->address &&
	    end - t->address <= t->size)
		return WORD_FUNCDATA_127;
	return WORD_FUNCDATA_120;
}

static bool take_module(struct gotab *t, uint64_t module)
{
	uint64_t funcdata;
	size_t n;

	if (!is_module(t, module))
		return false;
	if (t->version < GOTAB_118)
		return true;
	t->text = word(t, module, WORD_TEXT);
	funcdata = word(t, module, funcdata_word(t, module));
	t->funcdata = goimage_at(&t->image, funcdata, &n) ? funcdata : 0;
	return true;
}

bool gomodule_find(struct gotab *t)
{
	const struct elf *elf = t->image.elf;
	uint64_t left = elf->real_bytes;

	for (size_t i = 0; i < t->image.relocations.n; i++)
		if (t->image.relocations.v[i].value == t->address && take_module(t, t->image.relocations.v[i].address))
			return true;
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		const uint8_t *data;
		size_t n;

		if (s->type != PT_LOAD || !(s->flags & PF_W) || !goimage_segment(&t->image, s, &data, &n) || n > left)
			continue;
		left -= n;
		for (size_t at = -s->address % 8; at + 8 <= n; at += 8)
			if (!memcmp(data + at, &t->address, 8) && take_module(t, s->address + at))
				return true;
	}
	return false;
}
