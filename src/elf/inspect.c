/*
 * inspect.c - finds out what a file contains: symbols, debug information, unwind
 * tables, allocator.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "elf/dynamic/dynamic.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/symbols.h"
#include "elf/symtab.h"

/* Only this much of .rodata is searched for strings: doctor must answer at once. */
static const size_t search_limit = 64 << 20;

static bool has_bytes(const struct elf *elf, const char *name)
{
	const struct elf_section *s = elf_section(elf, name);

	return s && s->data && s->file_size;
}

static bool has_debug(const struct elf *elf, const char *name)
{
	char section[64];

	snprintf(section, sizeof(section), ".debug_%s", name);
	if (has_bytes(elf, section))
		return true;
	snprintf(section, sizeof(section), ".zdebug_%s", name);
	return has_bytes(elf, section);
}

/* The file name, padded to four bytes, then its CRC. */
static void read_debuglink(const struct elf *elf, struct symbols_info *info)
{
	const struct elf_section *s = elf_section(elf, ".gnu_debuglink");
	struct reader r;
	const char *name;

	if (!s || !s->data)
		return;
	r = reader_of(s->data, s->file_size);
	name = reader_string(&r);
	reader_seek(&r, (r.pos + 3) & ~3ULL);
	info->debuglink_crc = reader_u32(&r);
	/* The link is a file name, never a path: a name with a slash is ignored. */
	if (!r.failed && !strchr(name, '/') && strlen(name) < sizeof(info->debuglink))
		snprintf(info->debuglink, sizeof(info->debuglink), "%s", name);
}

/* The path, then the build-id to the end of the section. */
static void read_altlink(const struct elf *elf, struct symbols_info *info)
{
	const struct elf_section *s = elf_section(elf, ".gnu_debugaltlink");
	struct reader r;
	const char *path;

	if (!s || !s->data)
		return;
	r = reader_of(s->data, s->file_size);
	path = reader_string(&r);
	if (r.failed || strlen(path) >= sizeof(info->altlink))
		return;
	snprintf(info->altlink, sizeof(info->altlink), "%s", path);
	info->alt_build_id_size = MIN(r.end - r.pos, sizeof(info->alt_build_id));
	memcpy(info->alt_build_id, s->data + r.pos, info->alt_build_id_size);
}

static const struct {
	const char *symbol, *allocator;
} allocator_symbols[] = {
	{ "_rjem_malloc", "jemalloc (_rjem_)" },  { "_rjem_mallocx", "jemalloc (_rjem_)" },
	{ "_rjem_je_malloc_default", "jemalloc (_rjem_)" },
	{ "je_malloc_default", "jemalloc" },       { "je_mallocx", "jemalloc" },
	{ "mallocx", "jemalloc" },                 { "malloc_stats_print", "jemalloc" },
	{ "mi_malloc", "mimalloc" },               { "_mi_malloc_generic", "mimalloc" },
	{ "tc_malloc", "tcmalloc" },               { "MallocExtension_ReleaseFreeMemory", "tcmalloc" },
	{ "TCMallocInternalMalloc", "tcmalloc" },  { "sn_rust_alloc", "snmalloc" },
};

static bool see_symbol(void *context, const char *name, uint64_t address)
{
	struct symbols_info *info = context;

	for (size_t i = 0; i < ARRAY_LEN(allocator_symbols); i++)
		if (!strcmp(name, allocator_symbols[i].symbol)) {
			snprintf(info->allocator, sizeof(info->allocator), "%s",
				 allocator_symbols[i].allocator);
			return false;
		}
	return true;
}

/* A stripped file still has its allocator's messages. */
static void search_strings(const struct elf *elf, struct symbols_info *info)
{
	static const struct {
		const char *text, *allocator;
	} strings[] = {
		{ "<jemalloc>: ", "jemalloc" },
		{ "mimalloc: ", "mimalloc" },
		{ "TCMALLOC_", "tcmalloc" },
	};
	const struct elf_section *s = elf_section(elf, ".rodata");
	size_t n;

	if (!s || !s->data || s->flags & SHF_COMPRESSED)
		return;
	n = MIN(s->file_size, search_limit);
	for (size_t i = 0; i < ARRAY_LEN(strings) && !info->allocator[0]; i++)
		if (memmem(s->data, n, strings[i].text, strlen(strings[i].text)))
			snprintf(info->allocator, sizeof(info->allocator), "%s", strings[i].allocator);
	if (!strcmp(info->allocator, "jemalloc") && memmem(s->data, n, "_RJEM_MALLOC_CONF", 17))
		snprintf(info->allocator, sizeof(info->allocator), "jemalloc (_rjem_)");
}

static void inspect_go(const struct elf *elf, struct symbols_info *info)
{
	_cleanup_(gotab_freep) struct gotab *go = NULL;

	if (gotab_open(elf, &go, NULL))
		return;
	info->go = true;
	info->go_count = gotab_count(go);
	if (!info->symtab)
		info->symbol_count = info->go_count;
}

/* A file without a section table has its exported names all the same. */
static void inspect_dynamic(const struct elf *elf, struct symbols_info *info)
{
	struct elf view;

	if (!dynamic_view(elf, &view))
		return;
	info->dynsym = has_bytes(&view, ".dynsym");
	info->dynamic_count = symtab_count_functions(&view, ".dynsym");
	dynamic_done(&view);
}

void symbols_inspect(struct elf *elf, struct symbols_info *ret)
{
	*ret = (struct symbols_info){
		.symtab = has_bytes(elf, ".symtab"),
		.dynsym = has_bytes(elf, ".dynsym"),
		.debug_line = has_debug(elf, "line"),
		.debug_info = has_debug(elf, "info"),
		.minidebug = has_bytes(elf, ".gnu_debugdata"),
		.eh_frame = has_bytes(elf, ".eh_frame"),
		.debug_frame = has_debug(elf, "frame"),
		.machine = elf->machine,
		.type = elf->type,
	};
	read_debuglink(elf, ret);
	read_altlink(elf, ret);
	ret->build_id_size = elf_build_id(elf, ret->build_id);
	ret->dynamic_count = symtab_count_functions(elf, ".dynsym");
	inspect_dynamic(elf, ret);
	ret->symbol_count = ret->symtab ? symtab_count_functions(elf, ".symtab") : ret->dynamic_count;
	inspect_go(elf, ret);
	symtab_each_name(elf, ".symtab", see_symbol, ret);
	if (!ret->allocator[0])
		symtab_each_name(elf, ".dynsym", see_symbol, ret);
	if (!ret->allocator[0])
		search_strings(elf, ret);
}
