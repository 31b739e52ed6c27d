#include "elf/probe/allocator.h"

#include <elf.h>
#include <string.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/probe/sitesarm64.h"
#include "elf/symtab.h"

enum { MOST_CODE = 1 << 20, PADDING = 15 }; /* bytes of a function, and between two */

/* All functions of one allocator that has its own names. */
#define JEMALLOC(prefix, family)                                                                                     \
	{ prefix "malloc", ALLOCATOR_SIZE, family }, { prefix "mallocx", ALLOCATOR_SIZE, family },                   \
		{ prefix "calloc", ALLOCATOR_PRODUCT, family }, { prefix "realloc", ALLOCATOR_RESIZE, family },      \
		{ prefix "rallocx", ALLOCATOR_RESIZE, family },                                                      \
		{ prefix "posix_memalign", ALLOCATOR_OUT, family },                                                  \
		{ prefix "aligned_alloc", ALLOCATOR_SIZE_2ND, family },                                              \
		{ prefix "memalign", ALLOCATOR_SIZE_2ND, family }, { prefix "valloc", ALLOCATOR_SIZE, family },      \
		{ prefix "free", ALLOCATOR_FREE, family }, { prefix "dallocx", ALLOCATOR_FREE, family },             \
		{ prefix "sdallocx", ALLOCATOR_FREE, family }, { prefix "mallctl", ALLOCATOR_CONTROL, family }

/* reallocarray, strdup and the like call malloc or realloc through a slot of the C library, where they are
 * seen. */
const struct allocator_name allocator_names[] = {
	JEMALLOC("", ""),
	{ "pvalloc", ALLOCATOR_SIZE, "" },
	{ "cfree", ALLOCATOR_FREE, "" },
	{ "free_sized", ALLOCATOR_FREE, "" },
	{ "free_aligned_sized", ALLOCATOR_FREE, "" },
	JEMALLOC("_rjem_", "jemalloc (_rjem_)"),
	JEMALLOC("je_", "jemalloc (je_)"),
	{ "mi_malloc", ALLOCATOR_SIZE, "mimalloc" },
	{ "mi_zalloc", ALLOCATOR_SIZE, "mimalloc" },
	{ "mi_calloc", ALLOCATOR_PRODUCT, "mimalloc" },
	{ "mi_realloc", ALLOCATOR_RESIZE, "mimalloc" },
	{ "mi_malloc_aligned", ALLOCATOR_SIZE, "mimalloc" },
	{ "mi_zalloc_aligned", ALLOCATOR_SIZE, "mimalloc" },
	{ "mi_realloc_aligned", ALLOCATOR_RESIZE, "mimalloc" },
	{ "mi_free", ALLOCATOR_FREE, "mimalloc" },
	{ "mi_free_size", ALLOCATOR_FREE, "mimalloc" },
	{ "mi_free_size_aligned", ALLOCATOR_FREE, "mimalloc" },
	{ "mi_free_aligned", ALLOCATOR_FREE, "mimalloc" },
	/* operator new, new[], with nothrow, alignment, both; delete alike */
	{ "_Znwm", ALLOCATOR_SIZE, "", true },
	{ "_Znam", ALLOCATOR_SIZE, "", true },
	{ "_ZnwmRKSt9nothrow_t", ALLOCATOR_SIZE, "", true },
	{ "_ZnamRKSt9nothrow_t", ALLOCATOR_SIZE, "", true },
	{ "_ZnwmSt11align_val_t", ALLOCATOR_SIZE, "", true },
	{ "_ZnamSt11align_val_t", ALLOCATOR_SIZE, "", true },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOCATOR_SIZE, "", true },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", ALLOCATOR_SIZE, "", true },
	{ "_ZdlPv", ALLOCATOR_FREE, "", true },
	{ "_ZdaPv", ALLOCATOR_FREE, "", true },
	{ "_ZdlPvm", ALLOCATOR_FREE, "", true },
	{ "_ZdaPvm", ALLOCATOR_FREE, "", true },
	{ "_ZdlPvRKSt9nothrow_t", ALLOCATOR_FREE, "", true },
	{ "_ZdaPvRKSt9nothrow_t", ALLOCATOR_FREE, "", true },
	{ "_ZdlPvSt11align_val_t", ALLOCATOR_FREE, "", true },
	{ "_ZdaPvSt11align_val_t", ALLOCATOR_FREE, "", true },
	{ "_ZdlPvmSt11align_val_t", ALLOCATOR_FREE, "", true },
	{ "_ZdaPvmSt11align_val_t", ALLOCATOR_FREE, "", true },
	{ NULL },
};

static bool find_name(const char *name, uint32_t *ret)
{
	for (uint32_t i = 0; allocator_names[i].name; i++)
		if (!strcmp(allocator_names[i].name, name)) {
			*ret = i;
			return true;
		}
	return false;
}

static void add_probe(const struct elf *elf, struct allocator_info *info, uint64_t address)
{
	for (size_t i = 0; i < elf->segment_count && info->probe_count < ALLOCATOR_PROBES; i++) {
		const struct elf_segment *s = &elf->segments[i];
		struct allocator_probe p;

		if (s->type != PT_LOAD || !(s->flags & PF_X) || address < s->address ||
		    address - s->address >= s->file_size || s->file_size - (address - s->address) < sizeof(p.code))
			continue;
		p = (struct allocator_probe){ .address = address, .offset = s->offset + (address - s->address),
					      .arm64 = elf->machine == EM_AARCH64 };
		if (p.offset < s->offset || p.offset > elf->size || elf->size - p.offset < sizeof(p.code))
			continue;
		memcpy(p.code, elf->data + p.offset, sizeof(p.code));
		for (uint32_t k = 0; k < info->probe_count; k++)
			if (info->probes[k].offset == p.offset)
				return;
		info->probes[info->probe_count++] = p;
		return;
	}
}

/* Tries each prefix that jemalloc's own functions are known to have. */
static bool is_probe(const char *name)
{
	static const char *const names[] = { "te_event_trigger", "je_te_event_trigger", "_rjem_je_te_event_trigger" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

struct seeing {
	struct elf *elf;
	struct allocator_info *info;
};

static bool see_probe(void *context, const char *name, uint64_t address)
{
	struct seeing *s = context;

	if (address && is_probe(name))
		add_probe(s->elf, s->info, address);
	return s->info->probe_count < ALLOCATOR_PROBES;
}

/* Functions that follow each other with nothing but padding between them become one range. */
static void add_own(struct allocator_info *info, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < info->own_count; i++) {
		struct allocator_range *r = &info->own[i];

		if (start > r->end + PADDING || end + PADDING < r->start)
			continue;
		r->start = MIN(r->start, start);
		r->end = MAX(r->end, end);
		return;
	}
	if (info->own_count < ALLOCATOR_OWN)
		info->own[info->own_count++] = (struct allocator_range){ start, end };
}

static bool see_own(void *context, const char *name, uint64_t address, uint64_t size)
{
	static const char *const prefixes[] = { "_rjem_", "je_" };
	uint32_t id;
	/* A function without a prefix that is between a caller and the event. */
	bool own = (find_name(name, &id) && !allocator_names[id].inside) || !strcmp(name, "do_rallocx");

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		own |= !strncmp(name, prefixes[i], strlen(prefixes[i]));
	if (own && address && size && size < MOST_CODE && address + size > address)
		add_own(context, address, address + size);
	return true;
}

static bool see_symbol(void *context, const char *name, uint64_t address)
{
	struct allocator_info *info = context;
	uint32_t id;

	if (!address || !find_name(name, &id))
		return true;
	for (uint32_t i = 0; i < info->function_count; i++)
		if (info->functions[i].address == address && info->functions[i].name == id)
			return true;
	info->functions[info->function_count++] = (struct allocator_function){ address, id, 0 };
	return info->function_count < ALLOCATOR_FUNCTIONS;
}

/* Does the loader fill a slot by the name of a function? */
static bool is_slot(unsigned machine, uint32_t type)
{
	return machine == EM_AARCH64 ? type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT :
				       type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

static void see_relocations(struct elf *elf, const struct elf_section *s, struct allocator_info *info)
{
	Elf64_Rela rela;

	if (!s->data || s->type != SHT_RELA || s->flags & SHF_COMPRESSED)
		return;
	for (size_t i = 0; i < s->file_size / sizeof(rela) && info->slot_count < ALLOCATOR_SLOTS; i++) {
		const char *name;
		uint32_t type, id;

		memcpy(&rela, s->data + i * sizeof(rela), sizeof(rela));
		type = ELF64_R_TYPE(rela.r_info);
		if (!is_slot(elf->machine, type))
			continue;
		name = plt_symbol_name(elf, s, ELF64_R_SYM(rela.r_info));
		if (name && !(rela.r_offset & 7) && find_name(name, &id))
			info->slots[info->slot_count++] = (struct allocator_function){ rela.r_offset, id, 0 };
	}
}

static void add_range(struct allocator_info *info, uint64_t start, uint64_t size)
{
	start = (start + 7) & ~7ULL;
	if (info->range_count < ALLOCATOR_RANGES && size >= 8 && start + size > start && size < 64 << 20)
		info->ranges[info->range_count++] = (struct allocator_range){ start, start + (size & ~7ULL) };
}

void allocator_find(struct elf *elf, struct allocator_info *ret)
{
	*ret = (struct allocator_info){ 0 };
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return;
	symtab_each_name(elf, ".symtab", see_symbol, ret);
	if (ret->function_count < ALLOCATOR_FUNCTIONS)
		symtab_each_name(elf, ".dynsym", see_symbol, ret);
	symtab_each_name(elf, ".symtab", see_probe, &(struct seeing){ elf, ret });
	if (ret->probe_count)
		symtab_each_function(elf, ".symtab", see_own, ret);
	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		see_relocations(elf, s, ret);
		if (s->flags & SHF_WRITE && (!strcmp(s->name, ".got") || !strcmp(s->name, ".got.plt")))
			add_range(ret, s->address, s->size);
	}
	/* Without sections: the segments that the loader writes to and then protects. */
	for (size_t i = 0; !elf->section_count && i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_GNU_RELRO)
			add_range(ret, elf->segments[i].address, elf->segments[i].memory_size);
}

unsigned allocator_probe_skip(const struct allocator_probe *probe)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return probe->arm64 || memcmp(probe->code, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
}

bool allocator_probe_cheap(const struct allocator_probe *probe)
{
	const uint8_t *c = probe->code + allocator_probe_skip(probe);
	uint32_t word;

	if (probe->arm64) {
		memcpy(&word, c, sizeof(word));
		return sitesarm64_accepted(word);
	}
	/* push of a register, also of r8 to r15; nop; jmp; call */
	return (c[0] >= 0x50 && c[0] <= 0x57) || (c[0] == 0x41 && c[1] >= 0x50 && c[1] <= 0x57) || c[0] == 0x90 ||
	       c[0] == 0xeb || c[0] == 0xe9 || c[0] == 0xe8;
}

bool allocator_check(const struct allocator_info *info)
{
	uint32_t names = 0;

	while (allocator_names[names].name)
		names++;
	if (info->function_count > ALLOCATOR_FUNCTIONS || info->slot_count > ALLOCATOR_SLOTS ||
	    info->range_count > ALLOCATOR_RANGES || info->probe_count > ALLOCATOR_PROBES || info->own_count > ALLOCATOR_OWN)
		return false;
	for (uint32_t i = 0; i < info->function_count; i++)
		if (info->functions[i].name >= names)
			return false;
	for (uint32_t i = 0; i < info->slot_count; i++)
		if (info->slots[i].name >= names || info->slots[i].address & 7)
			return false;
	for (uint32_t i = 0; i < info->range_count; i++)
		if (info->ranges[i].start & 7 || info->ranges[i].end < info->ranges[i].start ||
		    info->ranges[i].end - info->ranges[i].start > 64 << 20)
			return false;
	return true;
}
