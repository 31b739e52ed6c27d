#include "elf/unwind/functions.h"

#include <elf.h>
#include <stdlib.h>

#include "base/vec.h"
#include "elf/file.h"
#include "elf/symtab.h"
#include "elf/unwind/ehframe.h"
#include "elf/unwind/unwind.h"

static int compare(const void *a, const void *b)
{
	const struct functions_range *x = a, *y = b;

	/* Of equal starts the longest comes first, and stays. */
	return ORDER(x->start, y->start) ?: ORDER(y->end, x->end);
}

static void add(struct functions *f, uint64_t start, uint64_t end)
{
	if (f->n < FUNCTIONS_MAX && start < end)
		vec_push(f, (struct functions_range){ start, end });
}

/* Linkers leave FDEs of functions that they dropped, with addresses near 0. */
static bool is_code(const struct elf *elf, uint64_t address)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && address >= s->address &&
		    address - s->address < s->memory_size)
			return true;
	}
	return false;
}

static void add_fdes(struct elf *elf, bool debug_frame, struct functions *f)
{
	struct ehframe frames = { 0 };

	if (!unwind_find_section(elf, debug_frame, &frames))
		return;
	ehframe_read(&frames);
	for (size_t i = 0; i < frames.fde_count; i++)
		if (is_code(elf, frames.fdes[i].start))
			add(f, frames.fdes[i].start, frames.fdes[i].end);
	ehframe_done(&frames);
}

static bool add_symbol(void *context, const char *name, uint64_t address, uint64_t size)
{
	if (size && address + size > address)
		add(context, address, address + size);
	return true;
}

/* Sorts, keeps one function for each start, and ends each where the next one starts. */
static void tidy(struct functions *f)
{
	size_t kept = 0;

	vec_sort(f, compare);
	for (size_t i = 0; i < f->n; i++) {
		if (kept && f->v[kept - 1].start == f->v[i].start)
			continue;
		if (kept && f->v[kept - 1].end > f->v[i].start) {
			f->v[kept - 1].end = f->v[i].start;
			f->overlapping++;
		}
		f->v[kept++] = f->v[i];
	}
	f->n = kept;
}

static uint64_t count_text(const struct elf *elf)
{
	uint64_t bytes = 0, segments = 0;

	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->flags & SHF_EXECINSTR && s->flags & SHF_ALLOC && s->data)
			bytes += s->file_size;
	}
	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			segments += MIN(elf->segments[i].file_size, elf->size);
	return bytes ? bytes : segments;
}

void functions_read(struct elf *elf, struct functions *ret)
{
	*ret = (struct functions){ .text_bytes = count_text(elf) };
	add_fdes(elf, false, ret);
	add_fdes(elf, true, ret);
	ret->from = ret->n ? FUNCTIONS_FDES : FUNCTIONS_NONE;
	if (!ret->n) {
		symtab_each_function(elf, ".symtab", add_symbol, ret);
		ret->from = ret->n ? FUNCTIONS_SYMBOLS : FUNCTIONS_NONE;
	}
	tidy(ret);
}

void functions_done(struct functions *f)
{
	vec_done(f);
}

const struct functions_range *functions_find(const struct functions *f, uint64_t address)
{
	size_t low = vec_search(i, 0, f->n, f->v[i].start <= address);

	return low && address < f->v[low - 1].end ? &f->v[low - 1] : NULL;
}

bool functions_valid(const struct functions *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].start >= f->v[i].end || (i && f->v[i].start < f->v[i - 1].end))
			return false;
	return f->from <= FUNCTIONS_SYMBOLS;
}

uint64_t functions_bytes(const struct functions *f)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->n; i++)
		bytes += f->v[i].end - f->v[i].start;
	return bytes;
}

size_t functions_agree(const struct functions *f, const struct functions *other)
{
	size_t agree = 0;

	for (size_t i = 0, k = 0; i < f->n; i++) {
		while (k < other->n && other->v[k].start < f->v[i].start)
			k++;
		agree += k < other->n && other->v[k].start == f->v[i].start && other->v[k].end == f->v[i].end;
	}
	return agree;
}

bool functions_same_at(const struct functions *f, const struct functions *other, uint64_t address)
{
	const struct functions_range *a = functions_find(f, address), *b = functions_find(other, address);

	return a && b && a->start == b->start && a->end == b->end;
}
