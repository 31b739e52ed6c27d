#include "elf/go/goimage.h"

#include <elf.h>
#include <string.h>

#include "elf/budget.h"
#include "elf/file.h"

static int compare_relocations(const void *a, const void *b)
{
	const struct goimage_relocation *x = a, *y = b;

	return ORDER(x->address, y->address) ?: ORDER(x->value, y->value);
}

bool goimage_segment(const struct goimage *image, const struct elf_segment *s, const uint8_t **ret, size_t *ret_n)
{
	const struct elf *elf = image->elf;

	if (s->offset > elf->size || !elf_plausible(elf, s->file_size))
		return false;
	*ret = elf->data + s->offset;
	*ret_n = MIN(s->file_size, elf->size - s->offset);
	return true;
}

const uint8_t *goimage_at(const struct goimage *image, uint64_t address, size_t *ret_n)
{
	for (size_t i = 0; i < image->elf->segment_count; i++) {
		const struct elf_segment *s = &image->elf->segments[i];
		const uint8_t *data;
		size_t n;

		if (s->type != PT_LOAD || address < s->address || !goimage_segment(image, s, &data, &n) ||
		    address - s->address >= n)
			continue;
		*ret_n = n - (address - s->address);
		return data + (address - s->address);
	}
	return NULL;
}

/* Finds the table of relocations: its address and its size. */
static bool find_relocations(const struct goimage *image, uint64_t *ret_address, uint64_t *ret_size)
{
	uint64_t address = 0, size = 0;

	for (size_t i = 0; i < image->elf->segment_count; i++) {
		const struct elf_segment *s = &image->elf->segments[i];
		const uint8_t *data;
		size_t n;

		if (s->type != PT_DYNAMIC || !goimage_segment(image, s, &data, &n))
			continue;
		for (; n >= sizeof(Elf64_Dyn); data += sizeof(Elf64_Dyn), n -= sizeof(Elf64_Dyn)) {
			Elf64_Dyn dyn;

			memcpy(&dyn, data, sizeof(dyn));
			if (dyn.d_tag == DT_NULL)
				break;
			if (dyn.d_tag == DT_RELA)
				address = dyn.d_un.d_ptr;
			else if (dyn.d_tag == DT_RELASZ)
				size = dyn.d_un.d_val;
		}
		break;
	}
	*ret_address = address;
	*ret_size = size;
	return address && size;
}

static void read_relocations(struct goimage *image)
{
	uint32_t relative = image->elf->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	uint64_t address, size, count;
	const uint8_t *data;
	bool sorted = true;
	size_t n;

	if (!find_relocations(image, &address, &size))
		return;
	data = goimage_at(image, address, &n);
	count = data ? MIN(MIN(size, n) / sizeof(Elf64_Rela), (uint64_t)BUDGET_GO_RELOCATIONS) : 0;
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Rela r;

		memcpy(&r, data + i * sizeof(r), sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != relative)
			continue;
		if (image->relocations.n && image->relocations.v[image->relocations.n - 1].address > r.r_offset)
			sorted = false;
		vec_push(&image->relocations, (struct goimage_relocation){ r.r_offset, r.r_addend });
	}
	if (!sorted)
		vec_sort(&image->relocations, compare_relocations);
}

void goimage_init(struct goimage *image, const struct elf *elf)
{
	*image = (struct goimage){ .elf = elf };
	if (elf->type == ET_DYN)
		read_relocations(image);
}

void goimage_done(struct goimage *image)
{
	vec_done(&image->relocations);
}

bool goimage_word(const struct goimage *image, uint64_t address, uint64_t *ret)
{
	size_t at = vec_search(i, 0, image->relocations.n, image->relocations.v[i].address < address), n;
	const uint8_t *data;

	if (at < image->relocations.n && image->relocations.v[at].address == address) {
		*ret = image->relocations.v[at].value;
		return true;
	}
	data = goimage_at(image, address, &n);
	if (!data || n < sizeof(*ret))
		return false;
	memcpy(ret, data, sizeof(*ret));
	return true;
}
