/*
 * Symbol tables are made here, symbol by symbol; debug information comes from the files of the fuzzers'
 * corpus (fuzz/fixtures/make.sh says how they were made).
 */
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "elf/file.h"
#include "elf/sectionfile.h"
#include "elf/symbols.h"

/* --- answers as text: "inner nested.c:4 < outer nested.c:20" --- */

struct answers {
	char text[8][512];
	size_t count;
};

static void got(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct answers *a = context;
	struct buf b = { 0 };

	assert_in_range(index, 0, 7);
	buf_puts(&b, count ? "" : "-");
	for (size_t i = 0; i < count; i++) {
		const char *name = *calls[i].linkage ? calls[i].linkage : calls[i].name;

		buf_printf(&b, "%s%s", i ? " < " : "", name);
		if (*calls[i].file)
			buf_printf(&b, " %s:%u", calls[i].file, calls[i].line);
	}
	snprintf(a->text[index], sizeof(a->text[index]), "%s", b.data);
	buf_done(&b);
	a->count++;
}

static struct answers ask(const struct symbols_files *files, const uint64_t *addresses, size_t n)
{
	struct answers a = { 0 };
	struct symbols *s;
	struct err err;

	assert_int_equal(symbols_new(files, &s, &err), 0);
	assert_int_equal(symbols_resolve(s, addresses, n, got, &a), 0);
	assert_int_equal(a.count, n);
	symbols_free(s);
	return a;
}

static struct elf *open_corpus(const char *name)
{
	_cleanup_fd_ int fd = -1;
	struct elf *elf;
	struct err err;
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s.elf", CORPUS_DIR, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_open(fd, &elf, &err), 0);
	return elf;
}

static void check_file(struct symbols_files files, uint64_t address, const char *expected)
{
	struct answers a;

	files.scratch_fd = -1;
	a = ask(&files, &address, 1);
	assert_string_equal(a.text[0], expected);
}

static void check_corpus(const char *name, uint64_t address, const char *expected)
{
	struct elf *elf = open_corpus(name);

	check_file((struct symbols_files){ .main = elf }, address, expected);
	elf_free(elf);
}

/* --- a file with one section of code, 0x1000 to 0x2000, and a symbol table --- */

struct made {
	struct buf file, symbols, strings;
	struct elf *elf;
};

static void add_symbol(struct made *m, const char *name, unsigned type, unsigned bind, uint64_t address,
		       uint64_t size)
{
	Elf64_Sym sym = { .st_name = m->strings.n, .st_info = ELF64_ST_INFO(bind, type), .st_shndx = 1,
			  .st_value = address, .st_size = size };

	buf_add(&m->strings, name, strlen(name) + 1);
	buf_add(&m->symbols, &sym, sizeof(sym));
}

static void start_made(struct made *m)
{
	Elf64_Sym none = { 0 };

	*m = (struct made){ 0 };
	buf_add(&m->strings, "", 1);
	buf_add(&m->symbols, &none, sizeof(none));
}

static void finish_made(struct made *m)
{
	static const char names[] = "\0.text\0.symtab\0.strtab";
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN, .e_machine = EM_X86_64, .e_ehsize = sizeof(eh), .e_shnum = 5,
			  .e_shentsize = sizeof(Elf64_Shdr), .e_shstrndx = 4, .e_shoff = sizeof(eh) };
	uint64_t at = sizeof(eh) + 5 * sizeof(Elf64_Shdr);
	Elf64_Shdr sh[5] = {
		[1] = { .sh_name = 1, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = 0x1000, .sh_size = 0x1000 },
		[2] = { .sh_name = 7, .sh_type = SHT_SYMTAB, .sh_link = 3, .sh_offset = at,
			.sh_size = m->symbols.n, .sh_entsize = sizeof(Elf64_Sym) },
		[3] = { .sh_name = 15, .sh_type = SHT_STRTAB, .sh_offset = at + m->symbols.n,
			.sh_size = m->strings.n },
		[4] = { .sh_type = SHT_STRTAB, .sh_offset = at + m->symbols.n + m->strings.n,
			.sh_size = sizeof(names) },
	};

	buf_add(&m->file, &eh, sizeof(eh));
	buf_add(&m->file, sh, sizeof(sh));
	buf_add(&m->file, m->symbols.data, m->symbols.n);
	buf_add(&m->file, m->strings.data, m->strings.n);
	buf_add(&m->file, names, sizeof(names));
	assert_int_equal(elf_open_memory(m->file.data, m->file.n, &m->elf, NULL), 0);
}

static void done_made(struct made *m)
{
	elf_free(m->elf);
	buf_done(&m->file);
	buf_done(&m->symbols);
	buf_done(&m->strings);
}

static void check_made(const struct made *m, uint64_t address, const char *expected)
{
	check_file((struct symbols_files){ .main = m->elf }, address, expected);
}

static void gaps_belong_to_nobody(void **state)
{
	struct made m;

	start_made(&m);
	add_symbol(&m, "second", STT_FUNC, STB_GLOBAL, 0x1100, 0x10);
	add_symbol(&m, "first", STT_FUNC, STB_GLOBAL, 0x1000, 0x20);
	add_symbol(&m, "data", STT_OBJECT, STB_GLOBAL, 0x1040, 0x20);
	add_symbol(&m, "elsewhere", STT_FUNC, STB_GLOBAL, 0x5000, 0x20);
	finish_made(&m);
	check_made(&m, 0x1000, "first");
	check_made(&m, 0x101f, "first");
	check_made(&m, 0x1020, "-");
	check_made(&m, 0x1048, "-");
	check_made(&m, 0x10ff, "-");
	check_made(&m, 0x110f, "second");
	check_made(&m, 0x1110, "-");
	check_made(&m, 0x5000, "-");
	check_made(&m, 0, "-");
	check_made(&m, UINT64_MAX, "-");
	done_made(&m);
}

static void symbols_without_size_reach_the_next(void **state)
{
	struct made m;

	start_made(&m);
	add_symbol(&m, "bare", STT_FUNC, STB_GLOBAL, 0x1000, 0);
	add_symbol(&m, "sized", STT_FUNC, STB_GLOBAL, 0x1100, 0x80);
	add_symbol(&m, "label_in_sized", STT_NOTYPE, STB_GLOBAL, 0x1140, 0);
	add_symbol(&m, "assembly", STT_NOTYPE, STB_LOCAL, 0x1200, 0);
	add_symbol(&m, ".Llocal", STT_NOTYPE, STB_LOCAL, 0x1210, 0);
	add_symbol(&m, "last", STT_FUNC, STB_LOCAL, 0x1800, 0);
	finish_made(&m);
	check_made(&m, 0x10ff, "bare");
	check_made(&m, 0x1150, "sized");
	check_made(&m, 0x1180, "-");
	check_made(&m, 0x1220, "assembly");
	check_made(&m, 0x1fff, "last");
	check_made(&m, 0x2000, "-");
	done_made(&m);
}

static void symbols_of_other_sections_are_no_code(void **state)
{
	struct made m;
	Elf64_Sym sym;

	start_made(&m);
	add_symbol(&m, "bare", STT_FUNC, STB_GLOBAL, 0x1000, 0);
	add_symbol(&m, "offset_in_debug_info", STT_NOTYPE, STB_WEAK, 0x1100, 0);
	memcpy(&sym, m.symbols.data + 2 * sizeof(sym), sizeof(sym));
	sym.st_shndx = 3;
	memcpy(m.symbols.data + 2 * sizeof(sym), &sym, sizeof(sym));
	finish_made(&m);
	check_made(&m, 0x1200, "bare");
	done_made(&m);
}

static void the_best_alias_is_taken(void **state)
{
	struct made m;

	start_made(&m);
	add_symbol(&m, "weak", STT_FUNC, STB_WEAK, 0x1000, 0x10);
	add_symbol(&m, "__global", STT_FUNC, STB_GLOBAL, 0x1000, 0x10);
	add_symbol(&m, "local", STT_FUNC, STB_LOCAL, 0x1000, 0x10);
	add_symbol(&m, "global_long", STT_FUNC, STB_GLOBAL, 0x1000, 0x10);
	add_symbol(&m, "global_b", STT_FUNC, STB_GLOBAL, 0x1000, 0x10);
	add_symbol(&m, "global_a", STT_FUNC, STB_GLOBAL, 0x1000, 0x10);
	add_symbol(&m, "local2", STT_FUNC, STB_LOCAL, 0x1100, 0x10);
	add_symbol(&m, "weak2", STT_FUNC, STB_WEAK, 0x1100, 0x10);
	add_symbol(&m, "label", STT_NOTYPE, STB_GLOBAL, 0x1200, 0x10);
	add_symbol(&m, "function", STT_FUNC, STB_WEAK, 0x1200, 0x10);
	finish_made(&m);
	check_made(&m, 0x1008, "global_a");
	check_made(&m, 0x1108, "local2");
	check_made(&m, 0x1208, "function");
	done_made(&m);
}

static void functions_in_functions(void **state)
{
	struct made m;

	start_made(&m);
	add_symbol(&m, "around", STT_FUNC, STB_GLOBAL, 0x1000, 0x100);
	add_symbol(&m, "within", STT_FUNC, STB_GLOBAL, 0x1040, 0x10);
	add_symbol(&m, "second", STT_FUNC, STB_GLOBAL, 0x1060, 0x10);
	finish_made(&m);
	check_made(&m, 0x1039, "around");
	check_made(&m, 0x1044, "within");
	check_made(&m, 0x1050, "around");
	check_made(&m, 0x1064, "second");
	check_made(&m, 0x10ff, "around");
	check_made(&m, 0x1100, "-");
	done_made(&m);
}

static void strings_without_an_end(void **state)
{
	struct made m;

	start_made(&m);
	add_symbol(&m, "good", STT_FUNC, STB_GLOBAL, 0x1000, 0x10);
	add_symbol(&m, "bad", STT_FUNC, STB_GLOBAL, 0x1100, 0x10);
	m.strings.n--; /* the last name has no NUL */
	finish_made(&m);
	check_made(&m, 0x1000, "good");
	check_made(&m, 0x1100, "-");
	done_made(&m);
}

static void every_place_is_answered_once(void **state)
{
	const uint64_t addresses[] = { 0x4000d0, 0x10, 0x4000b0, 0x4000d0, 0x4000f0 };
	struct elf *elf = open_corpus("dwarf/gcc5");
	struct answers a = ask(&(struct symbols_files){ .main = elf, .scratch_fd = -1 }, addresses, 5);

	assert_string_equal(a.text[0], a.text[3]);
	assert_string_equal(a.text[1], "-");
	assert_string_equal(a.text[2], "outer /src/nested.c:18");
	assert_string_equal(a.text[4], "_start /src/nested.c:26");
	elf_free(elf);
}

static void plt_stubs_have_names(void **state)
{
	check_corpus("elf/plt", 0x2c0, "-");
	check_corpus("elf/plt", 0x2d0, "far_away@plt");
	check_corpus("elf/plt", 0x2ff, "also_far@plt");
	check_corpus("elf/pltsec", 0x340, "far_away@plt");
	check_corpus("elf/pltsec", 0x380, "near_by@plt");
}

static void minidebuginfo_adds_to_dynsym(void **state)
{
	struct elf *elf = open_corpus("elf/mini");
	struct symbols_info info;

	symbols_inspect(elf, &info);
	assert_true(info.minidebug && info.dynsym && !info.symtab && !info.debug_info);
	assert_int_equal(info.symbol_count, 2);
	elf_free(elf);
	check_corpus("elf/mini", 0x330, "hidden_too");
	check_corpus("elf/mini", 0x350, "visible");
}

static void every_version_of_dwarf(void **state)
{
	static const char *const gcc[] = { "dwarf/gcc2", "dwarf/gcc3", "dwarf/gcc4", "dwarf/gcc5",
					   "dwarf/gcc64", "dwarf/zlib", "dwarf/zdebug", "dwarf/zstd" };
	static const char *const clang[] = { "dwarf/clang4", "dwarf/clang5" };

	for (size_t i = 0; i < ARRAY_LEN(gcc); i++) {
		check_corpus(gcc[i], 0x4000b0, "outer /src/nested.c:18");
		check_corpus(gcc[i], 0x4000bc, "inner /src/nested.c:4 < outer /src/nested.c:20");
		check_corpus(gcc[i], 0x4000d3,
			     "inner /src/nested.c:4 < middle /src/nested.c:10 < outer /src/nested.c:19");
		check_corpus(gcc[i], 0x4000e0, "middle /src/nested.c:12 < outer /src/nested.c:19");
		check_corpus(gcc[i], 0x4000ec, "-");
	}
	for (size_t i = 0; i < ARRAY_LEN(clang); i++) {
		check_corpus(clang[i], 0x4000b0, "outer /src/nested.c:18");
		check_corpus(clang[i], 0x4000c6, "middle /src/nested.c:12 < outer /src/nested.c:19");
	}
}

static void rust_in_modules(void **state)
{
	check_corpus("dwarf/rust", 0x227,
		     "_RNvMs7_NtCsgEmfK2I1SDS_4core3numy12wrapping_mul /src/generic.rs:0 < "
		     "_ZN7generic6shapes5twice17h8363654e39fdce4dE /src/generic.rs:18 < "
		     "measure /src/generic.rs:27");
}

static void names_from_the_dwz_file(void **state)
{
	struct elf *elf = open_corpus("dwarf/dwz-one"), *alt = open_corpus("dwarf/dwz-alt");
	struct symbols_info info;

	symbols_inspect(elf, &info);
	assert_string_equal(info.altlink, "/src/dwz-alt.elf");
	assert_int_equal(info.alt_build_id_size, 20);
	check_file((struct symbols_files){ .main = elf, .alt = alt }, 0x400110,
		   "a_function_with_a_long_name /src/shared.c:11 < "
		   "another_function_with_a_long_name /src/shared.c:17 < entry_one /src/shared.c:22");
	check_file((struct symbols_files){ .main = elf, .no_dwarf = true }, 0x400110, "entry_one");
	elf_free(alt);
	elf_free(elf);
}

static void separate_debug_file(void **state)
{
	struct elf *elf = open_corpus("elf/mini"), *debug = open_corpus("elf/plt");

	/* Its symbol table is taken before the MiniDebugInfo. */
	check_file((struct symbols_files){ .main = elf, .debug = debug }, 0x300, "near_by");
	check_file((struct symbols_files){ .main = elf, .debug = debug }, 0x2e0, "near_by@plt");
	elf_free(debug);
	elf_free(elf);
}

/* The same bytes come back, and they are a mapping of the file. */
static void check_scratch(uint32_t type, const uint8_t *packed, size_t n, const uint8_t *plain,
			  size_t plain_n)
{
	char path[] = "/tmp/gasflame-test-XXXXXX";
	_cleanup_fd_ int fd = mkstemp(path);
	const uint8_t *bytes;
	struct err err;

	unlink(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(sectionfile_unpack(fd, type, packed, n, plain_n, &bytes, &err), 0);
	assert_memory_equal(bytes, plain, plain_n);
	munmap((void *)bytes, plain_n);
	assert_int_equal(lseek(fd, 0, SEEK_END), 4096 + (off_t)plain_n);
	/* More or less than it promised, or cut off. */
	assert_int_equal(sectionfile_unpack(fd, type, packed, n, plain_n - 1, &bytes, &err), -EBADMSG);
	assert_int_equal(sectionfile_unpack(fd, type, packed, n, plain_n + 1, &bytes, &err), -EBADMSG);
	assert_int_equal(sectionfile_unpack(fd, type, packed, n / 2, plain_n, &bytes, &err), -EBADMSG);
	assert_int_equal(sectionfile_unpack(fd, 99, packed, n, plain_n, &bytes, &err), -EBADMSG);
}

static void large_sections_go_to_the_scratch_file(void **state)
{
	size_t n = 3 << 20, room = n + (1 << 16), packed_n;
	uint8_t *plain = malloc(n), *packed = malloc(room);
	uLongf z = room;

	for (size_t i = 0; i < n; i++)
		plain[i] = (i * i >> 7) + i / 1000;
	assert_int_equal(compress2(packed, &z, plain, n, 1), Z_OK);
	check_scratch(ELFCOMPRESS_ZLIB, packed, z, plain, n);
	packed_n = ZSTD_compress(packed, room, plain, n, 1);
	assert_false(ZSTD_isError(packed_n));
	check_scratch(2, packed, packed_n, plain, n);
	free(plain);
	free(packed);
}

/* Files made to waste time or memory give an answer, if a poor one. */
static void hostile_files_cost_little(void **state)
{
	struct elf *elf = open_corpus("dwarf/bomb");
	const uint8_t *bytes;
	struct err err;
	size_t n;

	assert_int_equal(elf_section_bytes(elf, elf_section(elf, ".debug_info"), 1 << 30, &bytes, &n, &err),
			 -EBADMSG);
	elf_free(elf);
	check_corpus("dwarf/nest", 0x1000, "-");
	check_corpus("dwarf/siblings", 0x1000, "-");
	check_corpus("dwarf/abbrevs", 0x1000, "-");
	check_corpus("dwarf/flags", 0x1000, "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_belong_to_nobody),
		cmocka_unit_test(symbols_without_size_reach_the_next),
		cmocka_unit_test(symbols_of_other_sections_are_no_code),
		cmocka_unit_test(the_best_alias_is_taken), cmocka_unit_test(functions_in_functions),
		cmocka_unit_test(strings_without_an_end), cmocka_unit_test(every_place_is_answered_once),
		cmocka_unit_test(plt_stubs_have_names), cmocka_unit_test(minidebuginfo_adds_to_dynsym),
		cmocka_unit_test(every_version_of_dwarf), cmocka_unit_test(rust_in_modules),
		cmocka_unit_test(names_from_the_dwz_file), cmocka_unit_test(separate_debug_file),
		cmocka_unit_test(large_sections_go_to_the_scratch_file),
		cmocka_unit_test(hostile_files_cost_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
