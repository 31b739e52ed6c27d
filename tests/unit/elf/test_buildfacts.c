/* test_buildfacts.c - what a program's file says of its build: texts as the clients have them, and odd ones. */
#include "test.h"

#include <elf.h>

#include "base/mem.h"
#include "elf/buildfacts.h"
#include "elf/file.h"

#define TEXT(s) { s, sizeof(s) - 1 }

struct part {
	const char *name;
	struct {
		const char *s;
		size_t n;
	} text;
};

/* A file that has these sections and nothing else. */
static struct buildfacts facts_of(const struct part *parts, size_t n)
{
	static _Alignas(8) unsigned char file[8192];
	Elf64_Ehdr *e = (void *)file;
	Elf64_Shdr *s = (void *)(file + 64);
	size_t at = 64 + (n + 2) * sizeof(*s), names;
	struct buildfacts b;
	struct elf *elf;

	memset(file, 0, sizeof(file));
	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS64;
	e->e_ident[EI_DATA] = ELFDATA2LSB;
	e->e_ident[EI_VERSION] = e->e_version = EV_CURRENT;
	e->e_type = ET_EXEC;
	e->e_machine = EM_X86_64;
	e->e_ehsize = sizeof(*e);
	e->e_shentsize = sizeof(*s);
	e->e_shoff = 64;
	e->e_shnum = n + 2;
	e->e_shstrndx = n + 1;
	for (size_t i = 0; i < n; i++) {
		s[i + 1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = parts[i].text.n };
		memcpy(file + at, parts[i].text.s, parts[i].text.n);
		at += parts[i].text.n;
	}
	names = at++;
	for (size_t i = 0; i < n; i++) {
		s[i + 1].sh_name = at - names;
		strcpy((char *)file + at, parts[i].name);
		at += strlen(parts[i].name) + 1;
	}
	s[n + 1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = at - names };
	assert_true(at <= sizeof(file));
	assert_int_equal(elf_open_memory(file, at, &elf, NULL), 0);
	buildfacts_find(elf, &b);
	elf_free(elf);
	buildfacts_clean(&b);
	return b;
}

static void clients_are_recognized(void **state)
{
	static const struct {
		struct part parts[2];
		const char *program, *flavour, *version, *compiler;
	} cases[] = {
		{ { { ".rodata", TEXT("…crates/engine/tree/src/persistence.rs…reth/v2.5.1-7b3432d95/x86_64…") },
		    { ".comment", TEXT("\0rustc version 1.95.0 (59807616e 2026-04-14)\0Linker: LLD") } },
		  "reth", "", "2.5.1-7b3432d95", "rustc 1.95.0" },
		{ { { ".rodata", TEXT("crates/engine/tree/src/tree/mod.rs reth_optimism_node::args Version: 1.11.3\nCommit SHA: 0a1b\n") } },
		  "reth", "op-reth", "1.11.3", "" },
		{ { { ".rodata", TEXT("crates/engine/tree/src/tree/mod.rs xlayer_builder::flashblocks op-reth") } }, "reth", "xlayer-reth", "", "" },
		{ { { ".rodata", TEXT("crates/blockchain/blockchain.rsethrex/v25.0.0-rc.2-main-5ab464b/x") } }, "ethrex", "",
		  "25.0.0-rc.2-main-5ab464b", "" },
		{ { { ".rodata", TEXT("crates/anvil/src/eth/api.rsanvil/v1") }, { ".comment", TEXT("GCC: (Debian 12.2.0-14) 12.2.0") } },
		  "anvil", "", "", "GCC 12.2.0" },
		/* Of Go its own note counts. */
		{ { { ".go.buildinfo", TEXT("\xff Go buildinf:\x08\x02" "0123456789abcdef" "\x08go1.24.2" "\x56"
					    "path\tx\nmod\tgithub.com/ethereum/go-ethereum\tv1.17.5\th1:abc\nbuild\tvcs.revision=02b73d4f\n") } },
		  "geth", "", "1.17.5", "go1.24.2" },
		{ { { ".rodata", TEXT("nothing to see") } }, "", "", "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buildfacts b = facts_of(cases[i].parts, cases[i].parts[1].name ? 2 : 1);

		if (strcmp(b.program, cases[i].program) || strcmp(b.flavour, cases[i].flavour) || strcmp(b.version, cases[i].version) ||
		    strcmp(b.compiler, cases[i].compiler))
			fail_msg("case %zu: '%s' '%s' '%s' '%s'", i, b.program, b.flavour, b.version, b.compiler);
	}
}

static void jemalloc_is_read(void **state)
{
	static const struct {
		struct part part;
		uint32_t prof;
		const char *conf;
	} cases[] = {
		{ { ".rodata", TEXT("x<jemalloc>: Error\nbackground_thread:true,dirty_decay_ms:30000,muzzy_decay_ms:30000\0y") }, BUILDFACTS_PROF_NO,
		  "background_thread:true,dirty_decay_ms:30000,muzzy_decay_ms:30000" },
		{ { ".rodata", TEXT("<jemalloc>: Leak approximation summary: ~prof:true,prof_active:true,lg_prof_sample:19\0") },
		  BUILDFACTS_PROF_YES, "prof:true,prof_active:true,lg_prof_sample:19" },
		/* No end, no configuration. */
		{ { ".rodata", TEXT("<jemalloc>: prof:true") }, BUILDFACTS_PROF_NO, "" },
		{ { ".rodata", TEXT("prof:true\0") }, BUILDFACTS_PROF_UNKNOWN, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buildfacts b = facts_of(&cases[i].part, 1);

		assert_int_equal(b.prof, cases[i].prof);
		assert_string_equal(b.malloc_conf, cases[i].conf);
	}
}

static void cut_and_odd_files_are_read_within_bounds(void **state)
{
	static const char go[] = "\xff Go buildinf:\x08\x02" "0123456789abcdef" "\xff\xff\xff\xff\xff\xff";
	static const char texts[] = "crates/anvil/src/eth/\nCommit SHA: Version: Build Profile: GCC: () rustc version ";
	struct buildfacts b = { .prof = 77, .checked = 1, .framed = 9 };

	for (size_t n = 0; n < sizeof(go); n++)
		assert_string_equal(facts_of(&(struct part){ ".go.buildinfo", { go, n } }, 1).compiler, "");
	for (size_t n = 0; n < sizeof(texts); n++) {
		facts_of(&(struct part){ ".rodata", { texts, n } }, 1);
		facts_of(&(struct part){ ".comment", { texts, n } }, 1);
	}
	memset(b.version, 0x1b, sizeof(b.version));
	buildfacts_clean(&b);
	assert_int_equal(strlen(b.version), sizeof(b.version) - 1);
	assert_null(strchr(b.version, 0x1b));
	assert_int_equal(b.prof, BUILDFACTS_PROF_YES);
	assert_int_equal(b.framed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_are_recognized),
		cmocka_unit_test(jemalloc_is_read),
		cmocka_unit_test(cut_and_odd_files_are_read_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
