#include "elf/unwind/ehframe.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

/* Encoding of pointers: the low 4 bits give the format, the next 3 the base. */
enum {
	PE_ABSPTR = 0x00, PE_ULEB = 0x01, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03, PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08, PE_SLEB = 0x09, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b, PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10, PE_ALIGNED = 0x50, PE_INDIRECT = 0x80, PE_OMIT = 0xff,
};

static uint64_t read_format(struct reader *r, uint8_t encoding)
{
	switch (encoding & 15) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SIGNED:
	case PE_SDATA8:
		return reader_u64(r);
	case PE_ULEB:
		return reader_uleb(r);
	case PE_UDATA2:
		return reader_u16(r);
	case PE_UDATA4:
		return reader_u32(r);
	case PE_SLEB:
		return reader_sleb(r);
	case PE_SDATA2:
		return (int64_t)(int16_t)reader_u16(r);
	case PE_SDATA4:
		return (int64_t)(int32_t)reader_u32(r);
	default:
		r->failed = true;
		return 0;
	}
}

/* Compilers align the address of a pointer, not its offset in the file. */
static void skip_alignment(const struct ehframe *f, struct reader *r)
{
	reader_skip(r, -(f->address + r->pos) & 7);
}

bool ehframe_pointer(const struct ehframe *f, struct reader *r, uint8_t encoding, uint64_t *ret)
{
	uint64_t base = 0;

	if (encoding == PE_OMIT)
		return false;
	if (encoding == PE_ALIGNED)
		skip_alignment(f, r);
	else if ((encoding & 0x70) == PE_PCREL)
		base = f->address + r->pos;
	else if (encoding & 0x70)
		return false;
	*ret = base + read_format(r, encoding);
	/* The loader fills in the target of an indirect pointer when the program starts. */
	return !r->failed && !(encoding & PE_INDIRECT);
}

/* The augmentation string says which fields follow the registers. False if it is unknown. */
static bool read_augmentation(const struct ehframe *f, struct reader *r, const char *letters,
			      struct ehframe_cie *cie)
{
	uint64_t size, end;

	if (letters[0] != 'z')
		return !letters[0];
	cie->sized = true;
	size = reader_uleb(r);
	if (r->failed || size > r->end - r->pos)
		return false;
	end = r->pos + size;
	for (const char *c = letters + 1; *c; c++) {
		uint8_t encoding;

		if (*c == 'R') {
			cie->encoding = reader_u8(r);
		} else if (*c == 'L') {
			reader_u8(r);
		} else if (*c == 'P') {
			encoding = reader_u8(r);
			if (encoding == PE_ALIGNED)
				skip_alignment(f, r);
			if (encoding != PE_OMIT)
				read_format(r, encoding);
		} else if (*c == 'S') {
			cie->signal = true;
		} else if (*c != 'B') {
			break; /* the size skips the fields of an unknown letter */
		}
	}
	if (r->failed || r->pos > end)
		return false;
	reader_seek(r, end);
	return true;
}

static void read_cie(const struct ehframe *f, struct reader *r, struct ehframe_cie *cie)
{
	uint8_t version = reader_u8(r);
	const char *letters = reader_string(r);

	cie->program_end = r->end;
	if (version != 1 && version != 3 && version != 4)
		return;
	/* gcc 2 put a pointer of its own there. */
	if (letters[0] == 'e' && letters[1] == 'h') {
		reader_skip(r, 8);
		letters += 2;
	}
	if (version == 4 && (reader_u8(r) != 8 || reader_u8(r) != 0))
		return; /* other pointers than 8 bytes, or segments */
	cie->code_align = reader_uleb(r);
	cie->data_align = reader_sleb(r);
	cie->return_register = version == 1 ? reader_u8(r) : reader_uleb(r);
	if (!read_augmentation(f, r, letters, cie) || r->failed)
		return;
	cie->program = r->pos;
	cie->usable = true;
}

static void read_fde(struct ehframe *f, struct reader *r, uint32_t cie_index)
{
	const struct ehframe_cie *cie = &f->cies[cie_index];
	struct ehframe_fde fde = { .cie = cie_index, .program_end = r->end };
	uint64_t size;

	if (!cie->usable || !ehframe_pointer(f, r, cie->encoding, &fde.start))
		return;
	/* The size is a number in the same format, relative to nothing. */
	size = read_format(r, cie->encoding);
	if (cie->sized)
		reader_skip(r, reader_uleb(r));
	if (r->failed || !size || __builtin_add_overflow(fde.start, size, &fde.end))
		return;
	fde.program = r->pos;
	if (f->fde_count == f->fde_capacity) {
		f->fde_capacity = f->fde_capacity ? f->fde_capacity * 2 : 64;
		f->fdes = mem_resize(f->fdes, f->fde_capacity, sizeof(*f->fdes));
	}
	f->fdes[f->fde_count++] = fde;
}

static struct ehframe_cie *add_cie(struct ehframe *f)
{
	if (f->cie_count == f->cie_capacity) {
		f->cie_capacity = f->cie_capacity ? f->cie_capacity * 2 : 16;
		f->cies = mem_resize(f->cies, f->cie_capacity, sizeof(*f->cies));
	}
	f->cies[f->cie_count] = (struct ehframe_cie){ 0 };
	return &f->cies[f->cie_count++];
}

/* Reads one entry; r ends where the entry does. cies maps the offsets of CIEs that were seen to their
 * index: an FDE may refer to no other offset, or hostile CIEs could overlap and cost quadratic time. */
static void read_entry(struct ehframe *f, struct reader *r, uint64_t start, bool wide, struct map *cies)
{
	uint64_t id_pos = r->pos, id, *cie;
	bool is_cie;

	if (f->debug_frame) {
		id = wide ? reader_u64(r) : reader_u32(r);
		is_cie = id == (wide ? UINT64_MAX : UINT32_MAX);
	} else {
		id = reader_u32(r); /* 4 bytes even after an extended length */
		is_cie = id == 0;
		id = id_pos - id;
	}
	if (r->failed)
		return;
	if (is_cie) {
		if (f->cie_count < EHFRAME_MAX_CIES) {
			*map_put(cies, start, 0) = f->cie_count;
			read_cie(f, r, add_cie(f));
		}
		return;
	}
	cie = map_get(cies, id);
	if (cie)
		read_fde(f, r, *cie);
}

void ehframe_read(struct ehframe *f)
{
	struct reader all = reader_of(f->data, MIN(f->size, (size_t)EHFRAME_MAX_BYTES));
	_cleanup_(map_done) struct map cies = { 0 };

	while (all.end - all.pos >= 4) {
		uint64_t start = all.pos, length = reader_u32(&all);
		bool wide = length == UINT32_MAX;
		struct reader entry;

		if (wide)
			length = reader_u64(&all);
		if (!length && f->stop_at_zero)
			break;
		if (all.failed || length > all.end - all.pos)
			break;
		entry = all;
		entry.end = all.pos + length;
		/* A zero ends the list that the C library registers, but linkers leave some in the middle. */
		if (length)
			read_entry(f, &entry, start, wide, &cies);
		all.pos += length;
	}
}

void ehframe_done(struct ehframe *f)
{
	free(f->cies);
	free(f->fdes);
	f->cies = NULL;
	f->fdes = NULL;
	f->cie_count = f->cie_capacity = f->fde_count = f->fde_capacity = 0;
}
