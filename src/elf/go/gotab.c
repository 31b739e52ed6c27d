#include "elf/go/gotab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/budget.h"
#include "elf/file.h"
#include "elf/go/gotabint.h"

const char *gotab_string(const struct gotab_part *part, uint64_t offset)
{
	if (offset >= part->size ||
	    !memchr(part->data + offset, 0, MIN(part->size - offset, (uint64_t)GOTAB_NAME_LIMIT)))
		return "";
	return (const char *)part->data + offset;
}

static bool set_part(const struct gotab *t, uint64_t offset, struct gotab_part *part)
{
	if (offset > t->size)
		return false;
	*part = (struct gotab_part){ t->data + offset, t->size - offset, offset };
	return true;
}

static enum gotab_version version_of(uint32_t magic)
{
	return magic == 0xfffffffb ? GOTAB_112 : magic == 0xfffffffa ? GOTAB_116 : magic == 0xfffffff0 ? GOTAB_118 : GOTAB_120;
}

/* Up to Go 1.15 all offsets are from the header: the number of functions, the functions, then the offset of
 * the files, which begin with their number. */
static bool read_header_112(struct gotab *t, struct reader *r)
{
	uint64_t count = reader_u64(r);
	uint32_t files;

	if (count > t->size / 16)
		return false;
	t->count = count;
	reader_skip(r, 16 * count + 8);
	files = reader_u32(r);
	if (r->failed || !set_part(t, files, &t->files))
		return false;
	reader_seek(r, files);
	t->file_count = reader_u32(r);
	return !r->failed && set_part(t, 16, &t->functions) && set_part(t, 0, &t->names) &&
	       set_part(t, 0, &t->values) && set_part(t, 0, &t->units);
}

static bool read_header_116(struct gotab *t, struct reader *r)
{
	struct gotab_part *parts[] = { &t->names, &t->units, &t->files, &t->values, &t->functions };
	uint64_t at;

	t->count = reader_u64(r);
	t->file_count = reader_u64(r);
	if (t->version >= GOTAB_118) {
		at = t->address + r->pos;
		reader_skip(r, 8);
		/* The file of a PIE has a zero here, or what its relocation says. Go 1.26 left it empty. */
		if (!goimage_word(&t->image, at, &t->text))
			t->text = 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!set_part(t, reader_u64(r), parts[i]))
			return false;
	return !r->failed;
}

/* Two fields for each function, and the end of the last one. */
static size_t field_bytes(const struct gotab *t)
{
	return t->version >= GOTAB_118 ? 4 : 8;
}

static uint64_t read_entry(const struct gotab *t, size_t i)
{
	uint64_t at = 2 * i * field_bytes(t), value = 0;
	uint32_t offset;

	if (t->version >= GOTAB_118) {
		memcpy(&offset, t->functions.data + at, sizeof(offset));
		return t->text + offset;
	}
	if (!t->image.relocations.n) {
		memcpy(&value, t->functions.data + at, sizeof(value));
		return value;
	}
	goimage_word(&t->image, t->address + t->functions.offset + at, &value);
	return value;
}

/* Returns the end of the loaded code that holds address; 0 = there is none. Code is no larger than the file: the ranges of
 * all functions together, each of a byte at least, are not either. */
static uint64_t code_end(const struct elf *elf, uint64_t address)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t size = MIN(s->file_size, elf->size);

		if (s->type == PT_LOAD && s->flags & PF_X && address >= s->address && address - s->address < size &&
		    s->address + size > address)
			return s->address + size;
	}
	return 0;
}

static int read_entries(struct gotab *t, struct err *err)
{
	size_t field = field_bytes(t);

	if (!t->count || t->count >= t->functions.size / (2 * field) || !elf_plausible(t->image.elf, 2 * field * t->count))
		return err_set(err, EBADMSG, "its table of Go functions is cut off");
	if (t->count > BUDGET_GO_FUNCTIONS)
		return err_set(err, EBADMSG, "it has %zu Go functions, more than any program", t->count);
	t->entries = mem_alloc((t->count + 1) * sizeof(*t->entries));
	for (size_t i = 0; i <= t->count; i++) {
		t->entries[i] = read_entry(t, i);
		if (i && t->entries[i] < t->entries[i - 1])
			return err_set(err, EBADMSG, "its Go functions are not in the order of their addresses");
	}
	/* They ascend: all lie in the code if the first and the last do. */
	if (t->entries[t->count] > code_end(t->image.elf, t->entries[0]))
		return err_set(err, EBADMSG, "its Go functions lie outside its code");
	return 0;
}

static int read_table(struct gotab *t, struct err *err)
{
	struct reader r = reader_of(t->data, t->size);
	uint32_t magic = reader_u32(&r);
	struct gotab_function first;
	int got;

	reader_skip(&r, 2);
	t->version = version_of(magic);
	t->quantum = reader_u8(&r);
	reader_skip(&r, 1);
	if (t->quantum != (t->image.elf->machine == EM_X86_64 ? 1 : 4) ||
	    !(t->version == GOTAB_112 ? read_header_112(t, &r) : read_header_116(t, &r)))
		return err_set(err, EBADMSG, "the header of its table of Go functions is damaged");
	if ((t->version >= GOTAB_118 || !t->named) && !gomodule_find(t) && !(t->named && t->text))
		return err_set(err, EBADMSG, "the start of its Go code is not known: it has no module record");
	got = read_entries(t, err);
	if (got < 0)
		return got;
	if (!gotab_get(t, 0, &first) || !*first.name)
		return err_set(err, EBADMSG, "its first Go function has no name");
	goline_choose(t);
	return 0;
}

struct search {
	struct gotab *t;
	struct err *err;
	int result;
};

static bool try_table(void *context, const uint8_t *data, size_t size, uint64_t address, bool named)
{
	struct search *s = context;
	struct goimage image = s->t->image;

	free(s->t->entries);
	*s->t = (struct gotab){ .image = image, .named = named, .data = data, .size = size, .address = address };
	s->result = read_table(s->t, s->err);
	return !s->result;
}

int gotab_open(const struct elf *elf, struct gotab **ret, struct err *err)
{
	struct search s = { .t = mem_alloc(sizeof(*s.t)), .err = err, .result = -ENOENT };

	goimage_init(&s.t->image, elf);
	if (!gofind_each(&s.t->image, try_table, &s)) {
		gotab_free(s.t);
		return s.result == -ENOENT ? err_set(err, ENOENT, "it has no table of Go functions") : s.result;
	}
	*ret = s.t;
	return 0;
}

void gotab_free(struct gotab *t)
{
	if (!t)
		return;
	goimage_done(&t->image);
	free(t->entries);
	free(t);
}

void gotab_freep(struct gotab **t)
{
	gotab_free(*t);
}

enum gotab_version gotab_version(const struct gotab *t)
{
	return t->version;
}

size_t gotab_count(const struct gotab *t)
{
	return t->count;
}

void gotab_range(const struct gotab *t, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = t->entries[0];
	*ret_end = t->entries[t->count];
}

bool gotab_find(const struct gotab *t, uint64_t address, size_t *ret_index)
{
	/* Of several functions at one address, all but the last are empty. */
	size_t at = vec_search(i, 0, t->count + 1, t->entries[i] <= address);

	if (!at || at > t->count)
		return false;
	*ret_index = at - 1;
	return true;
}

/* Where the record of function i begins, from the start of t->functions; up to Go 1.15 from the header. */
static uint64_t record_offset(const struct gotab *t, size_t i)
{
	const uint8_t *field = t->functions.data + (2 * i + 1) * field_bytes(t);
	uint64_t wide;
	uint32_t narrow;

	if (t->version >= GOTAB_118) {
		memcpy(&narrow, field, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, field, sizeof(wide));
	return wide;
}

/* Finds the arrays behind the record: offsets of tables for pcdata, then those of funcdata, which were
 * pointers before Go 1.18. */
static void read_arrays(const struct gotab *t, struct reader *r, struct gotab_function *f)
{
	size_t size = t->version >= GOTAB_118 ? 4 : 8;

	f->pcdata = reader_bytes(r, 4ULL * f->pcdata_count);
	if (size == 8)
		reader_skip(r, -(t->address + (r->data - t->data) + r->pos) % 8);
	f->funcdata = reader_bytes(r, size * f->funcdata_count);
	if (!f->pcdata)
		f->pcdata_count = 0;
	if (!f->funcdata)
		f->funcdata_count = 0;
}

bool gotab_get(const struct gotab *t, size_t i, struct gotab_function *ret)
{
	const struct gotab_part *base = t->version == GOTAB_112 ? &t->names : &t->functions;
	struct reader r = reader_of(base->data, base->size);
	struct gotab_function f = { 0 };

	if (i >= t->count)
		return false;
	f.entry = t->entries[i];
	f.end = t->entries[i + 1];
	reader_seek(&r, record_offset(t, i));
	reader_skip(&r, t->version >= GOTAB_118 ? 4 : 8); /* its entry once more */
	f.name = gotab_string(&t->names, reader_u32(&r));
	f.args_bytes = reader_u32(&r);
	f.deferreturn = reader_u32(&r);
	f.pcsp = reader_u32(&r);
	f.pcfile = reader_u32(&r);
	f.pcln = reader_u32(&r);
	f.pcdata_count = reader_u32(&r);
	f.unit = t->version >= GOTAB_116 ? reader_u32(&r) : 0;
	f.start_line = t->version >= GOTAB_120 ? reader_u32(&r) : 0;
	f.id = reader_u8(&r);
	f.flag = t->version >= GOTAB_116 ? reader_u8(&r) : (reader_skip(&r, 1), 0);
	reader_skip(&r, 1);
	f.funcdata_count = reader_u8(&r);
	if (r.failed)
		return false;
	read_arrays(t, &r, &f);
	*ret = f;
	return true;
}
