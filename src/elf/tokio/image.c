/*
 * image.c - the words of the file that hold addresses of code, and the paths that name the version.
 *
 * A program that may lie anywhere has its pointers relocated by the loader: R_X86_64_RELATIVE in DT_RELA, or packed in
 * DT_RELR, which keeps the values in place. PT_DYNAMIC says where they are, with or without a section table. A program at
 * fixed addresses has its pointers as plain words.
 */
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "elf/file.h"
#include "elf/tokio/tokioint.h"

enum {
	MAX_POINTERS = 8 << 20, /* the largest nodes have some 500,000 */
	MAX_ENTRIES = 4096,     /* of PT_DYNAMIC; a linker makes dozens */
	MAX_CODE = 16,          /* executable segments; a linker makes one or two */
};

/* Finds the bytes of the file that are loaded at an address, up to the end of their segment. */
static const uint8_t *loaded_at(const struct elf *elf, uint64_t address, uint64_t *ret_n)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t at = address - s->address;

		if (s->type != PT_LOAD || address < s->address || at >= s->file_size || s->offset > elf->size ||
		    at >= elf->size - s->offset || !elf_plausible(elf, s->file_size))
			continue;
		*ret_n = MIN(s->file_size - at, elf->size - s->offset - at);
		return elf->data + s->offset + at;
	}
	return NULL;
}

bool image_word(const struct elf *elf, uint64_t address, uint64_t *ret)
{
	uint64_t n = 0;
	const uint8_t *p = loaded_at(elf, address, &n);

	if (!p || n < sizeof(*ret))
		return false;
	memcpy(ret, p, sizeof(*ret));
	return true;
}

/* The code of the file, while its pointers are collected. */
struct collecting {
	const struct elf *elf;
	struct functions_range code[MAX_CODE];
	size_t code_count;
	struct image_pointers *pointers;
};

static void find_code(const struct elf *elf, struct collecting *c)
{
	for (size_t i = 0; i < elf->segment_count && c->code_count < MAX_CODE; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && s->file_size <= UINT64_MAX - s->address)
			c->code[c->code_count++] = (struct functions_range){ s->address, s->address + s->file_size };
	}
}

static void add(struct collecting *c, uint64_t address, uint64_t value)
{
	for (size_t i = 0; i < c->code_count; i++)
		if (value >= c->code[i].start && value < c->code[i].end && c->pointers->n < MAX_POINTERS) {
			vec_push(c->pointers, (struct image_pointer){ address, value });
			return;
		}
}

/* --- relocations --- */

struct relocations {
	uint64_t rela, rela_bytes, relr, relr_bytes;
};

static struct relocations find_relocations(const struct elf *elf)
{
	struct relocations r = { 0 };

	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		Elf64_Dyn d;

		if (s->type != PT_DYNAMIC || s->offset > elf->size || s->file_size > elf->size - s->offset)
			continue;
		for (size_t k = 0; k < MIN(s->file_size / sizeof(d), (uint64_t)MAX_ENTRIES); k++) {
			memcpy(&d, elf->data + s->offset + k * sizeof(d), sizeof(d));
			if (d.d_tag == DT_NULL)
				break;
			if (d.d_tag == DT_RELA)
				r.rela = d.d_un.d_val;
			else if (d.d_tag == DT_RELASZ)
				r.rela_bytes = d.d_un.d_val;
			else if (d.d_tag == DT_RELR)
				r.relr = d.d_un.d_val;
			else if (d.d_tag == DT_RELRSZ)
				r.relr_bytes = d.d_un.d_val;
		}
		break;
	}
	return r;
}

static void add_rela(struct collecting *c, const struct relocations *r)
{
	uint64_t n = 0;
	const uint8_t *at = r->rela_bytes ? loaded_at(c->elf, r->rela, &n) : NULL;
	Elf64_Rela e;

	n = at ? MIN(n, r->rela_bytes) / sizeof(e) : 0;
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&e, at + i * sizeof(e), sizeof(e));
		if (ELF64_R_TYPE(e.r_info) == R_X86_64_RELATIVE)
			add(c, e.r_offset, (uint64_t)e.r_addend);
	}
}

static void add_in_place(struct collecting *c, uint64_t address)
{
	uint64_t value;

	if (image_word(c->elf, address, &value))
		add(c, address, value);
}

/* An even word is an address; each bit of an odd one stands for one of the 63 words that follow. */
static void add_relr(struct collecting *c, const struct relocations *r)
{
	uint64_t n = 0, next = 0;
	const uint8_t *at = r->relr_bytes ? loaded_at(c->elf, r->relr, &n) : NULL;

	n = at ? MIN(n, r->relr_bytes) / 8 : 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, at + i * 8, 8);
		if (!(word & 1)) {
			add_in_place(c, word);
			next = word + 8;
			continue;
		}
		for (uint64_t bits = word >> 1, k = 0; bits; bits >>= 1, k++)
			if (bits & 1)
				add_in_place(c, next + 8 * k);
		next += 63 * 8;
	}
}

/* --- fixed addresses --- */

static void add_plain(struct collecting *c)
{
	const struct elf *elf = c->elf;

	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t n = 0, first = -s->address & 7;
		const uint8_t *at = s->type == PT_LOAD && !(s->flags & PF_X) ? loaded_at(elf, s->address, &n) : NULL;

		for (uint64_t k = first; at && n >= 8 && k <= n - 8; k += 8) {
			uint64_t value;

			memcpy(&value, at + k, 8);
			if (value)
				add(c, s->address + k, value);
		}
	}
}

static int compare(const void *pa, const void *pb)
{
	const struct image_pointer *a = pa, *b = pb;

	return ORDER(a->address, b->address) ?: ORDER(a->value, b->value);
}

void image_pointers(const struct elf *elf, struct image_pointers *ret)
{
	struct collecting c = { .elf = elf, .pointers = ret };
	size_t kept = 0;

	*ret = (struct image_pointers){ 0 };
	find_code(elf, &c);
	if (elf->type == ET_DYN) {
		struct relocations r = find_relocations(elf);

		add_rela(&c, &r);
		add_relr(&c, &r);
	} else {
		add_plain(&c);
	}
	vec_sort(ret, compare);
	for (size_t i = 0; i < ret->n; i++)
		if (!kept || ret->v[kept - 1].address != ret->v[i].address)
			ret->v[kept++] = ret->v[i];
	ret->n = kept;
}

/* --- the version --- */

uint64_t tokio_version_number(const char *version)
{
	unsigned part[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		size_t n = strspn(version, "0123456789");

		if (!n || n > 3 || version[n] != (i < 2 ? '.' : 0))
			return 0;
		for (size_t k = 0; k < n; k++)
			part[i] = part[i] * 10 + (version[k] - '0');
		version += n + 1;
	}
	return part[0] * 1000000ULL + part[1] * 1000 + part[2];
}

/* Sees what follows "tokio-": the version in the path of a source file ("1.43.0/src/…"), or the name of a worker. */
static bool see_tokio(const uint8_t *p, uint64_t n, char version[32])
{
	char text[32];
	size_t k = 0;

	while (k < n && k < sizeof(text) - 1 && (isdigit(p[k]) || p[k] == '.'))
		k++;
	if (k && k < n && (p[k] == '/' || p[k] == '\\')) {
		memcpy(text, p, k);
		text[k] = 0;
		if (tokio_version_number(text) > tokio_version_number(version))
			snprintf(version, 32, "%s", text);
		return tokio_version_number(text);
	}
	/* "tokio-rt-worker", before that "tokio-runtime-worker", of which an instruction holds only eight letters. */
	return n >= 2 && p[0] == 'r' && (p[1] == 't' || p[1] == 'u');
}

bool image_version(const struct elf *elf, char ret[32])
{
	bool found = false;

	ret[0] = 0;
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t n = 0;
		const uint8_t *at = s->type == PT_LOAD ? loaded_at(elf, s->address, &n) : NULL;

		/* Short strings, such as the name of a worker, are constants of instructions: code is looked at, too. */
		while (at && n) {
			const uint8_t *hit = memmem(at, n, "tokio-", 6);

			if (!hit)
				break;
			n -= hit + 6 - at;
			at = hit + 6;
			found |= see_tokio(at, n, ret);
		}
	}
	return found;
}
