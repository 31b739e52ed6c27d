/* Which functions and slots of an allocator a file has: of our own program and its C library; and damaged
 * answers. */
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/sanitized.h"
#include "elf/probe/allocator.h"
#include "elf/file.h"
#include "elf/worker/worker.h"

static struct worker *worker;

static bool has(const struct allocator_function *list, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(allocator_names[list[i].name].name, name))
			return true;
	return false;
}

/* The file that malloc itself is in: where the C library was loaded from. */
static int open_c_library(void)
{
	char line[512], path[512];
	FILE *f = fopen("/proc/self/maps", "re");
	int fd = -1;

	while (f && fd < 0 && fgets(line, sizeof(line), f))
		if (strstr(line, "/libc.so.6") && sscanf(line, "%*s %*s %*s %*s %*s %511s", path) == 1)
			fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f)
		fclose(f);
	return fd;
}

static void own_program(void **state)
{
	_cleanup_free_ struct allocator_info *info = NULL;
	_cleanup_fd_ int fd = -1;

#ifdef __clang__
	if (SANITIZED)
		skip(); /* clang links the allocator of ASan into the program itself */
#endif
	info = mem_alloc(sizeof(*info));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(worker_allocator(worker, fd, info, NULL), 0);
	assert_true(has(info->slots, info->slot_count, "free"));
	assert_false(has(info->functions, info->function_count, "free"));
	assert_true(info->range_count > 0);
	for (uint32_t i = 0; i < info->slot_count; i++)
		assert_int_equal(info->slots[i].address % 8, 0);
}

static void c_library(void **state)
{
	static const char *const names[] = { "malloc",         "calloc",        "realloc", "free",
					     "posix_memalign", "aligned_alloc", "memalign" };
	struct allocator_info *info = mem_alloc(sizeof(*info));
	_cleanup_fd_ int fd = open_c_library();

	if (fd < 0) {
		free(info);
		skip();
	}
	assert_int_equal(worker_allocator(worker, fd, info, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_true(has(info->functions, info->function_count, names[i]));
	free(info);
}

static void no_elf(void **state)
{
	struct allocator_info *info = mem_alloc(sizeof(*info));
	_cleanup_fd_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int none = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(worker_allocator(worker, fd, info, NULL) < 0);
	assert_true(worker_allocator(worker, none, info, NULL) < 0);
	free(info);
}

/* What a child that was taken over might answer. */
static void damaged(void **state)
{
	struct allocator_info *info = mem_alloc(sizeof(*info));

	assert_true(allocator_check(info));
	info->function_count = ALLOCATOR_FUNCTIONS + 1;
	assert_false(allocator_check(info));
	info->function_count = 1;
	info->functions[0].name = 100000;
	assert_false(allocator_check(info));
	info->functions[0].name = 0;
	info->slot_count = 1;
	info->slots[0].address = 4;
	assert_false(allocator_check(info));
	info->slots[0].address = 8;
	info->slots[0].name = UINT32_MAX;
	assert_false(allocator_check(info));
	info->slots[0].name = 0;
	assert_true(allocator_check(info));
	info->range_count = 1;
	info->ranges[0] = (struct allocator_range){ 16, 8 };
	assert_false(allocator_check(info));
	info->ranges[0] = (struct allocator_range){ 8, 1ULL << 40 };
	assert_false(allocator_check(info));
	info->ranges[0] = (struct allocator_range){ 8, 64 };
	assert_true(allocator_check(info));
	free(info);
}

/* A file of one of both machines, with a slot of each kind that the loader fills by name, and others. */
static void slots_of(uint16_t machine, const uint32_t *types, size_t n)
{
	enum { SECTIONS = 0x40, SYMBOLS = 0x200, STRINGS = 0x280, SLOTS = 0x300, SIZE = 0x400 };
	static const char text[] = "\0malloc\0free\0.dynsym\0.dynstr\0.rela.plt";
	_Alignas(8) uint8_t file[SIZE] = { 0 };
	Elf64_Ehdr *e = (void *)file;
	Elf64_Shdr *s = (void *)(file + SECTIONS);
	Elf64_Sym *symbols = (void *)(file + SYMBOLS);
	Elf64_Rela *slots = (void *)(file + SLOTS);
	struct allocator_info *info = mem_alloc(sizeof(*info));
	struct elf *elf;

	*e = (Elf64_Ehdr){ .e_type = ET_DYN, .e_machine = machine, .e_version = EV_CURRENT, .e_shoff = SECTIONS, .e_ehsize = sizeof(*e),
			   .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(*s), .e_shnum = 4, .e_shstrndx = 2 };
	memcpy(e->e_ident, ELFMAG "\2\1\1", 7);
	memcpy(file + STRINGS, text, sizeof(text));
	s[1] = (Elf64_Shdr){ .sh_name = 13, .sh_type = SHT_DYNSYM, .sh_offset = SYMBOLS, .sh_size = 3 * sizeof(*symbols), .sh_link = 2,
			     .sh_entsize = sizeof(*symbols) };
	s[2] = (Elf64_Shdr){ .sh_name = 21, .sh_type = SHT_STRTAB, .sh_offset = STRINGS, .sh_size = sizeof(text) };
	s[3] = (Elf64_Shdr){ .sh_name = 29, .sh_type = SHT_RELA, .sh_offset = SLOTS, .sh_size = n * sizeof(*slots), .sh_link = 1,
			     .sh_entsize = sizeof(*slots) };
	symbols[1] = (Elf64_Sym){ .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	symbols[2] = (Elf64_Sym){ .st_name = 8, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	for (size_t i = 0; i < n; i++)
		slots[i] = (Elf64_Rela){ .r_offset = 0x2000 + 8 * i, .r_info = ELF64_R_INFO(1 + i % 2, types[i]) };
	assert_int_equal(elf_open_memory(file, sizeof(file), &elf, NULL), 0);
	allocator_find(elf, info);
	assert_int_equal(info->function_count, 0);
	assert_int_equal(info->slot_count, 2);
	assert_int_equal(info->slots[0].address, 0x2000);
	assert_int_equal(info->slots[1].address, 0x2008);
	assert_true(has(&info->slots[0], 1, "malloc"));
	assert_true(has(&info->slots[1], 1, "free"));
	elf_free(elf);
	free(info);
}

/* The third one is of data, the fourth the other machine's. */
static void machines(void **state)
{
	static const uint32_t x86[] = { R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_RELATIVE, R_AARCH64_JUMP_SLOT };
	static const uint32_t arm64[] = { R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_RELATIVE, R_X86_64_JUMP_SLOT };

	slots_of(EM_X86_64, x86, ARRAY_LEN(x86));
	slots_of(EM_AARCH64, arm64, ARRAY_LEN(arm64));
}

/* Names are unique, or a lookup would find the wrong shape. */
static void names(void **state)
{
	for (size_t i = 0; allocator_names[i].name; i++) {
		assert_in_range(allocator_names[i].shape, 0, ALLOCATOR_CONTROL);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(allocator_names[i].name, allocator_names[k].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_program), cmocka_unit_test(c_library), cmocka_unit_test(no_elf),
		cmocka_unit_test(damaged),     cmocka_unit_test(machines),  cmocka_unit_test(names),
	};
	int r;

	worker = worker_new();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	worker_free(worker);
	return r;
}
