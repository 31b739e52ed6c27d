/*
 * goline.c - files, lines and inlined calls.
 *
 * A table by address gives for each instruction the index of the innermost inlined call, -1 = none. The record
 * of that call (the inline tree, one of the function's "funcdata") names the function that was inlined and an
 * instruction of the caller whose file and line are the call site; what is inlined there is the next call out.
 */
#include <string.h>

#include "base/buf.h"
#include "elf/go/gotabint.h"
#include "elf/symbols.h"

enum { VOTES = 4096 }; /* functions that decide between Go 1.12 and later */

struct call_record {
	const char *name;
	uint32_t parent; /* the instruction of the call site, from the function's entry */
};

uint32_t gotab_line(const struct gotab *t, const struct gotab_function *f, uint64_t address, const char **ret_file)
{
	int32_t file = gotab_value_at(t, f, f->pcfile, address), line = gotab_value_at(t, f, f->pcln, address);
	uint64_t at = t->version >= GOTAB_116 ? (uint64_t)f->unit + file : (uint64_t)file;
	const struct gotab_part *offsets = t->version >= GOTAB_116 ? &t->units : &t->files;
	uint32_t offset;

	*ret_file = "";
	if (file < 0 || line < 0)
		return 0;
	if (at < offsets->size / 4 && (t->version >= GOTAB_116 || at < t->file_count)) {
		memcpy(&offset, offsets->data + 4 * at, sizeof(offset));
		*ret_file = gotab_string(t->version >= GOTAB_116 ? &t->files : &t->names, offset);
	}
	return line;
}

/* Finds the address of a function's inline tree; false when it has none. */
static bool find_tree(const struct gotab *t, const struct gotab_function *f, unsigned index, uint64_t *ret)
{
	uint32_t offset;

	if (index >= f->funcdata_count)
		return false;
	if (t->version >= GOTAB_118) {
		memcpy(&offset, f->funcdata + 4 * index, sizeof(offset));
		*ret = t->funcdata + offset;
		return t->funcdata && offset != UINT32_MAX;
	}
	return goimage_word(&t->image, t->address + (f->funcdata - t->data) + 8 * index, ret) && *ret;
}

/* Reads a record of an inline tree; false when it is none. */
static bool read_record(const struct gotab *t, const struct gotab_function *f, uint64_t tree, uint32_t index,
			struct call_record *ret)
{
	size_t size = t->version >= GOTAB_120 ? 16 : 20, n;
	const uint8_t *data = goimage_at(&t->image, tree + (uint64_t)index * size, &n);
	struct reader r = reader_of(data, data ? n : 0);
	int16_t parent = -1;
	uint32_t name;

	if (t->version >= GOTAB_120) {
		reader_skip(&r, 4);
	} else {
		parent = reader_u16(&r);
		reader_skip(&r, 10); /* file and line of the call site: parent's instruction has them too */
	}
	name = reader_u32(&r);
	ret->parent = reader_u32(&r);
	ret->name = gotab_string(&t->names, name);
	/* All inlined functions are written in Go: their names have a package. */
	return !r.failed && parent < (int64_t)index && ret->parent < f->end - f->entry && (uint8_t)*ret->name > ' ' &&
	       strchr(ret->name, '.');
}

static int32_t inlined_at(const struct gotab *t, const struct gotab_function *f, uint64_t address)
{
	uint32_t table;

	if (t->tree_pcdata >= f->pcdata_count)
		return -1;
	memcpy(&table, f->pcdata + 4 * t->tree_pcdata, sizeof(table));
	return gotab_value_at(t, f, table, address);
}

void goline_choose(struct gotab *t)
{
	static const struct {
		unsigned pcdata, funcdata;
	} layouts[] = { { 2, 4 }, { 1, 2 } }; /* Go 1.13 to 1.15, and 1.12: the magic number is the same */
	size_t votes[ARRAY_LEN(layouts)] = { 0 };
	size_t best;

	t->tree_pcdata = 2;
	t->tree_funcdata = 3;
	if (t->version >= GOTAB_116)
		return;
	for (size_t i = 0; i < MIN(t->count, (size_t)VOTES); i++) {
		struct gotab_function f;
		struct call_record record;
		uint64_t tree;

		for (size_t k = 0; k < ARRAY_LEN(layouts) && gotab_get(t, i, &f); k++)
			votes[k] += find_tree(t, &f, layouts[k].funcdata, &tree) && read_record(t, &f, tree, 0, &record);
	}
	best = votes[1] > votes[0];
	t->tree_pcdata = layouts[best].pcdata;
	t->tree_funcdata = layouts[best].funcdata;
}

size_t gotab_calls(const struct gotab *t, uint64_t address, struct symbols_call *calls, size_t max)
{
	struct gotab_function f;
	int64_t before = INT64_MAX;
	size_t n = 0, i;
	uint64_t tree;
	bool inlined;

	if (!max || !gotab_find(t, address, &i) || !gotab_get(t, i, &f) || !*f.name)
		return 0;
	inlined = find_tree(t, &f, t->tree_funcdata, &tree);
	for (;;) {
		int32_t index = inlined && n + 1 < max ? inlined_at(t, &f, address) : -1;
		struct call_record record = { .name = f.name };
		struct symbols_call *call = &calls[n++];

		/* A caller has a lower index than what is inlined into it. Damaged trees could go on for ever. */
		if (index < 0 || index >= before || !read_record(t, &f, tree, index, &record)) {
			index = -1;
			record.name = f.name;
		}
		*call = (struct symbols_call){ .linkage = "", .name = record.name };
		call->line = gotab_line(t, &f, address, &call->file);
		if (index < 0)
			return n;
		before = index;
		address = f.entry + record.parent;
	}
}
