#include "elf/unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "elf/unwind/arm64/arm64.h"
#include "elf/unwind/cfi.h"
#include "elf/unwind/coderows.h"
#include "elf/unwind/ehframe.h"
#include "elf/file.h"
#include "elf/unwind/gorows.h"
#include "elf/unwind/pltrows.h"
#include "elf/unwind/rows.h"

enum {
	PAGE_SIZE = 1 << UNWIND_PAGE_SHIFT,
	MAX_SEGMENTS = 64,         /* no linker makes more executable segments */
	MAX_PAGES = (1 << 20) - 1, /* of one file: 4 GiB of text, so that offsets fit 32 bits */
};
#define ADDRESS_END (1ULL << 47)

/* The executable parts of a file. */
struct text {
	uint64_t base;  /* address of offset 0, on a page boundary */
	uint32_t limit; /* offsets are below it */
	unsigned count;
	struct { uint32_t start, end; } part[MAX_SEGMENTS];
};

/* An FDE, clipped to the text, and its rows: raw[next .. last], of which `next` applies now. */
struct run {
	uint32_t start, end;
	uint32_t next, last;
	uint32_t fde;
};

struct build {
	struct text text;
	struct rows_rules rules;
	VEC(struct run) runs;
	struct rows raw; /* offsets from the text's base; the run's end is implied */
	bool keep_rbx;       /* there is a function whose CFA is based on rbx */
	uint64_t plt_budget; /* rows left for PLT entries that are written out one by one */
};

/* Finds the addresses of a segment with code, without the part that is not in the file. */
static bool code_range(const struct elf *elf, const struct elf_segment *s, uint64_t *start, uint64_t *end)
{
	uint64_t size;

	if (s->type != PT_LOAD || !(s->flags & PF_X) || s->offset >= elf->size)
		return false;
	size = MIN(s->file_size, elf->size - s->offset);
	*start = s->address;
	return size && !__builtin_add_overflow(s->address, size, end) && *end <= ADDRESS_END;
}

static void find_text(const struct elf *elf, struct text *text)
{
	const uint64_t most = (uint64_t)MAX_PAGES * PAGE_SIZE;
	uint64_t start, end;

	*text = (struct text){ .base = UINT64_MAX };
	for (size_t i = 0; i < elf->segment_count; i++)
		if (code_range(elf, &elf->segments[i], &start, &end))
			text->base = MIN(text->base, start & ~(uint64_t)(PAGE_SIZE - 1));
	for (size_t i = 0; i < elf->segment_count && text->count < MAX_SEGMENTS; i++) {
		if (!code_range(elf, &elf->segments[i], &start, &end) || start - text->base >= most)
			continue;
		start -= text->base;
		end = MIN(end - text->base, most);
		text->part[text->count].start = start;
		text->part[text->count++].end = end;
		text->limit = MAX(text->limit, end);
	}
}

/* Finds the text offsets that an FDE covers; false if there are none. */
static bool clip(const struct text *text, const struct ehframe_fde *fde, struct run *ret)
{
	for (unsigned i = 0; i < text->count; i++) {
		uint64_t start = text->base + text->part[i].start, end = text->base + text->part[i].end;

		if (fde->start < start || fde->start >= end)
			continue;
		ret->start = fde->start - text->base;
		ret->end = MIN(fde->end, end) - text->base;
		return true;
	}
	return false;
}

/* Sorts by start; of runs with the same start the widest first, so that the narrowest is innermost; of
 * equal runs the last in the file first, so that the first in the file wins. */
static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(y->end, x->end) ?: ORDER(y->fde, x->fde);
}

static int add_raw(struct build *b, uint32_t offset, uint32_t rule, struct err *err)
{
	if (b->raw.n >= UNWIND_MAX_ROWS)
		return err_set(err, EFBIG, "its unwind information has more than %d rows", UNWIND_MAX_ROWS);
	vec_push(&b->raw, (struct rows_row){ .offset = offset, .rule = rule });
	return 0;
}

/* A PLT whose entries push at another byte than RULE_CFA_PLT assumes gets two rows for each entry. */
static int spell_out_plt(struct build *b, uint32_t start, uint32_t end, uint64_t rule, struct err *err)
{
	uint64_t before = rule_make(RULE_CFA_RSP, 0, 8, RULE_RBP(rule), RULE_RBP_OFFSET(rule));
	uint64_t after = rule_make(RULE_CFA_RSP, 0, 16, RULE_RBP(rule), RULE_RBP_OFFSET(rule));
	uint64_t need = ((uint64_t)(end - start) / 16 + 2) * 2;
	uint32_t at = start;
	int r;

	if (need > b->plt_budget)
		return add_raw(b, start, ROWS_UNSUPPORTED, err);
	b->plt_budget -= need;
	while (at < end) {
		bool pushed = (at & 15) >= RULE_REG(rule);
		uint32_t next = pushed ? (at | 15) + 1 : (at & ~15u) + RULE_REG(rule);

		r = add_raw(b, at, rows_rule(&b->rules, pushed ? after : before), err);
		if (r < 0)
			return r;
		at = next;
	}
	return 0;
}

/* Turns the rows of one FDE into raw ones. */
static int add_run(struct build *b, struct run *run, const struct cfi_rows *rows, struct err *err)
{
	int r = 0;

	run->next = b->raw.n;
	for (size_t i = 0; i < rows->n && r == 0; i++) {
		uint64_t rule = rows->v[i].rule, offset = (uint64_t)run->start + rows->v[i].offset, end;

		if (offset >= run->end)
			break;
		end = i + 1 < rows->n ? MIN(run->end, (uint64_t)run->start + rows->v[i + 1].offset)
		                      : run->end;
		b->keep_rbx |= RULE_CFA(rule) == RULE_CFA_REG && RULE_REG(rule) == UNWIND_RBX;
		if (RULE_CFA(rule) == RULE_CFA_PLT && RULE_REG(rule))
			r = spell_out_plt(b, offset, end, rule, err);
		else
			r = add_raw(b, offset, rows_rule(&b->rules, rule), err);
	}
	run->last = b->raw.n - 1;
	return r;
}

/* Runs every FDE's program. The states that CIEs leave are computed once. */
static int run_fdes(struct build *b, const struct ehframe *f, bool keep_rbx, struct err *err)
{
	_cleanup_free_ struct cfi_state *initial = calloc(f->cie_count ? f->cie_count : 1, sizeof(*initial));
	struct cfi_rows rows = { 0 };
	bool sorted = true;
	int r = 0;

	if (!initial)
		return err_set(err, ENOMEM, "no memory for %zu CIEs", f->cie_count);
	for (size_t i = 0; i < f->cie_count; i++)
		if (f->cies[i].usable)
			cfi_start(f, &f->cies[i], &initial[i]);
	vec_reserve(&b->runs, f->fde_count);
	for (size_t i = 0; i < f->fde_count; i++) {
		struct run run = { .fde = i };

		if (!clip(&b->text, &f->fdes[i], &run))
			continue;
		sorted = sorted && (!b->runs.n || compare_runs(&b->runs.v[b->runs.n - 1], &run) < 0);
		vec_push(&b->runs, run);
	}
	if (!sorted)
		vec_sort(&b->runs, compare_runs);
	for (size_t i = 0; i < b->runs.n && r == 0; i++) {
		const struct ehframe_fde *fde = &f->fdes[b->runs.v[i].fde];

		cfi_run(f, fde, &initial[fde->cie], keep_rbx, &rows);
		r = add_run(b, &b->runs.v[i], &rows, err);
	}
	vec_done(&rows);
	return r;
}

/* Adds the rows of run for [from, to). Calls for one run come with rising addresses. */
static void add_part(const struct build *b, struct run *run, uint32_t from, uint32_t to, struct rows *out)
{
	const struct rows_row *raw = b->raw.v;

	while (run->next < run->last && raw[run->next + 1].offset <= from)
		run->next++;
	rows_add(out, from, raw[run->next].rule);
	while (run->next < run->last && raw[run->next + 1].offset < to) {
		run->next++;
		rows_add(out, raw[run->next].offset, raw[run->next].rule);
	}
}

/* Runs may nest or overlap: at each address the one that started last counts. open is the stack of runs
 * that have begun; each is popped once, so this is linear. */
static void flatten(struct build *b, struct rows *out)
{
	VEC(uint32_t) open = { 0 };
	uint32_t at = 0;

	vec_reserve(out, b->raw.n + b->runs.n);
	for (size_t i = 0; i <= b->runs.n; i++) {
		uint32_t until = i < b->runs.n ? b->runs.v[i].start : b->text.limit;

		while (open.n && at < until) {
			struct run *top = &b->runs.v[open.v[open.n - 1]];
			uint32_t end = MIN(top->end, until);

			if (at < end)
				add_part(b, top, at, end, out);
			at = MAX(at, end);
			if (at >= top->end)
				open.n--;
		}
		if (at < until)
			rows_add(out, at, ROWS_NONE);
		at = until;
		if (i < b->runs.n)
			vec_push(&open, i);
	}
	rows_add(out, b->text.limit, ROWS_NONE);
	vec_done(&open);
}

/* Finds the unwind information when the section table was stripped: .eh_frame_hdr points to it. */
static bool find_by_header(const struct elf *elf, struct ehframe *f)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *h = &elf->segments[i];
		struct ehframe header = { .address = h->address };
		struct reader r;
		uint64_t at;
		uint8_t encoding;

		if (h->type != PT_GNU_EH_FRAME || h->offset > elf->size ||
		    h->file_size > elf->size - h->offset)
			continue;
		r = reader_of(elf->data + h->offset, h->file_size);
		header.data = r.data;
		header.size = r.end;
		if (reader_u8(&r) != 1)
			continue;
		encoding = reader_u8(&r);
		reader_skip(&r, 2);
		if (!ehframe_pointer(&header, &r, encoding, &at))
			continue;
		for (size_t j = 0; j < elf->segment_count; j++) {
			const struct elf_segment *s = &elf->segments[j];

			if (s->type != PT_LOAD || at < s->address || at - s->address >= s->file_size ||
			    s->offset > elf->size || s->file_size > elf->size - s->offset ||
			    !elf_plausible(elf, s->file_size))
				continue;
			*f = (struct ehframe){ .data = elf->data + s->offset + (at - s->address),
					       .size = s->file_size - (at - s->address), .address = at,
					       .stop_at_zero = true };
			return true;
		}
	}
	return false;
}

bool unwind_find_section(struct elf *elf, bool debug_frame, struct ehframe *f)
{
	const struct elf_section *s = elf_section(elf, debug_frame ? ".debug_frame" : ".eh_frame");

	if (!s && debug_frame)
		s = elf_section(elf, ".zdebug_frame");
	if (!s || elf_section_bytes(elf, s, EHFRAME_MAX_BYTES, &f->data, &f->size, NULL) < 0)
		return !debug_frame && !elf->section_count && find_by_header(elf, f);
	f->address = s->address;
	f->debug_frame = debug_frame;
	return true;
}

static int read_rows(struct build *b, struct elf *elf, bool debug_frame, struct rows *ret, struct err *err)
{
	struct ehframe f = { 0 };
	int r;

	if (!unwind_find_section(elf, debug_frame, &f))
		return 0;
	f.machine = elf->machine;
	ehframe_read(&f);
	b->plt_budget = f.size;
	b->raw.n = b->runs.n = 0;
	b->keep_rbx = false;
	r = run_fdes(b, &f, false, err);
	if (r == 0 && b->keep_rbx) {
		b->plt_budget = f.size;
		b->raw.n = b->runs.n = 0;
		r = run_fdes(b, &f, true, err);
	}
	if (r == 0)
		flatten(b, ret);
	ehframe_done(&f);
	return r;
}

/* Packs the rows into pages. rows begins with a covered row and ends with ROWS_NONE. */
static int pack(const struct build *b, const struct rows *rows, struct unwind_table *t, struct err *err)
{
	uint32_t first = rows->v[0].offset >> UNWIND_PAGE_SHIFT;
	uint32_t last = (rows->v[rows->n - 1].offset - 1) >> UNWIND_PAGE_SHIFT;
	uint32_t rule = ROWS_NONE;
	size_t next = 0;

	t->first_page = (b->text.base >> UNWIND_PAGE_SHIFT) + first;
	t->page_count = last - first + 1;
	if (rows->n + t->page_count > UNWIND_MAX_ROWS)
		return err_set(err, EFBIG, "its unwind table has more than %d rows", UNWIND_MAX_ROWS);
	t->pages = malloc(t->page_count * sizeof(*t->pages));
	t->rows = malloc((rows->n + t->page_count) * sizeof(*t->rows));
	if (!t->pages || !t->rows)
		return err_set(err, ENOMEM, "no memory for an unwind table of %zu rows", rows->n);
	for (uint32_t page = 0; page < t->page_count; page++) {
		uint64_t start = (uint64_t)(first + page) << UNWIND_PAGE_SHIFT;

		t->pages[page].first = t->row_count;
		if (next == rows->n || rows->v[next].offset != start)
			t->rows[t->row_count++] = rule << 16;
		for (; next < rows->n && rows->v[next].offset < start + PAGE_SIZE; next++) {
			rule = rows->v[next].rule;
			t->unsupported += rule == ROWS_UNSUPPORTED;
			t->rows[t->row_count++] = (rows->v[next].offset & (PAGE_SIZE - 1)) | rule << 16;
		}
		t->pages[page].count = t->row_count - t->pages[page].first;
	}
	return 0;
}

/* A function that returns from a signal handler ends with its system call, and in the kernel the program counter
 * stands behind that: one byte more. */
static void extend_signals(const struct build *b, struct rows *rows)
{
	for (size_t i = 1; i < rows->n; i++)
		if (RULE_CFA(b->rules.v[rows->v[i - 1].rule]) == RULE_SIGNAL && rows->v[i].rule == ROWS_NONE &&
		    rows->v[i].offset < b->text.limit && (i + 1 == rows->n || rows->v[i].offset + 1 < rows->v[i + 1].offset))
			rows->v[i].offset++;
}

static int build_rows(struct build *b, struct elf *elf, struct rows *rows, struct err *err)
{
	struct rows more = { 0 }, go = { 0 };
	int r;

	r = read_rows(b, elf, false, rows, err);
	if (r == 0)
		r = read_rows(b, elf, true, &more, err);
	if (r == 0) {
		/* A Go program has linked C code in .eh_frame. Its .debug_frame knows neither rbp nor switches of the
		 * stack. */
		gorows_read(elf, b->text.base, b->text.limit, &b->rules, &go);
		rows_fill(rows, &go);
		rows_fill(rows, &more);
		if (elf->machine == EM_AARCH64) {
			arm64_plt(elf, b->text.base, b->text.limit, &b->rules, rows);
			arm64_trampolines(elf, b->text.base, b->text.limit, &b->rules, rows);
		} else {
			pltrows_plt(elf, b->text.base, b->text.limit, &b->rules, rows);
			coderows_fill(elf, b->text.base, b->text.limit, &b->rules, rows);
		}
		pltrows_entry(elf, b->text.base, b->text.limit, &b->rules, rows);
		extend_signals(b, rows);
	}
	rows_done(&go);
	rows_done(&more);
	return r;
}

int unwind_build(struct elf *elf, struct unwind_table *ret, struct err *err)
{
	struct unwind_table t = { 0 };
	struct build b = { 0 };
	struct rows rows = { 0 };
	int r = 0;

	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return err_set(err, ENOTSUP, "unwind tables are made for x86-64 and arm64 only");
	rows_rules_init(&b.rules);
	find_text(elf, &b.text);
	if (b.text.count)
		r = build_rows(&b, elf, &rows, err);
	if (r == 0 && rows.n)
		r = pack(&b, &rows, &t, err);
	if (r == 0) {
		t.rules = b.rules.v;
		t.rule_count = b.rules.n;
		b.rules.v = NULL;
		*ret = t;
	} else {
		unwind_done(&t);
	}
	rows_rules_done(&b.rules);
	rows_done(&b.raw);
	rows_done(&rows);
	vec_done(&b.runs);
	return r;
}

void unwind_done(struct unwind_table *t)
{
	free(t->pages);
	free(t->rows);
	free(t->rules);
	*t = (struct unwind_table){ 0 };
}
