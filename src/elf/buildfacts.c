#include "elf/buildfacts.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/symtab.h"

/* Only this much of a section is searched: doctor must answer at once. */
static const size_t search_limit = 64 << 20;
enum { MOST_FUNCTIONS = 4000, PROLOGUE = 32 };

struct text {
	const char *s;
	size_t n;
};

static struct text section_text(const struct elf *elf, const char *name)
{
	const struct elf_section *s = elf_section(elf, name);

	if (!s || !s->data || s->flags & SHF_COMPRESSED)
		return (struct text){ 0 };
	return (struct text){ (const char *)s->data, MIN(s->file_size, search_limit) };
}

/* The text after a needle, NULL = it is not there; *ret_n: how much of it there is. */
static const char *after(const struct text *t, const char *needle, size_t *ret_n)
{
	size_t n = strlen(needle);
	const char *at = t->n ? memmem(t->s, t->n, needle, n) : NULL;

	if (at)
		*ret_n = t->s + t->n - (at + n);
	return at ? at + n : NULL;
}

static bool is_there(const struct text *t, const char *needle)
{
	size_t n;

	return after(t, needle, &n) != NULL;
}

/* Copies what follows a needle, as long as its bytes are letters, digits or others of more. */
static void copy_after(const struct text *t, const char *needle, const char *more, char *out, size_t size)
{
	size_t n = 0, k = 0;
	const char *s = after(t, needle, &n);

	if (!s || *out)
		return;
	while (k < n && k + 1 < size && (isalnum((unsigned char)s[k]) || (s[k] && strchr(more, s[k]))))
		k++;
	memcpy(out, s, k);
	out[k] = 0;
}

/* --- whose program --- */

/* Messages of a panic have the paths of the sources, in stripped programs, too. */
static void find_program(const struct text *t, struct buildfacts *b)
{
	static const struct {
		const char *path, *program;
	} sources[] = {
		{ "crates/engine/tree/src/", "reth" },
		{ "crates/blockchain/blockchain.rs", "ethrex" },
		{ "crates/anvil/src/eth/", "anvil" },
		{ "github.com/erigontech/erigon", "erigon" },
		{ "github.com/ethereum/go-ethereum/core", "geth" },
	};

	for (size_t i = 0; i < ARRAY_LEN(sources) && !*b->program; i++)
		if (is_there(t, sources[i].path))
			snprintf(b->program, sizeof(b->program), "%s", sources[i].program);
	if (strcmp(b->program, "reth"))
		return;
	if (is_there(t, "xlayer_") || is_there(t, "xlayer-"))
		snprintf(b->flavour, sizeof(b->flavour), "xlayer-reth");
	else if (is_there(t, "op-reth") || is_there(t, "reth_optimism_"))
		snprintf(b->flavour, sizeof(b->flavour), "op-reth");
}

/* The next text runs on behind the profile's name: only known ones can be told. */
static void find_profile(const struct text *t, struct buildfacts *b)
{
	static const char *const names[] = { "maxperf-symbols", "maxperf", "profiling", "reproducible", "release-with-debug",
					     "release", "production", "dist", "debug", "bench" };
	size_t n = 0;
	const char *s = after(t, "Build Profile: ", &n);

	for (size_t i = 0; s && i < ARRAY_LEN(names) && !*b->profile; i++)
		if (n >= strlen(names[i]) && !memcmp(s, names[i], strlen(names[i])))
			snprintf(b->profile, sizeof(b->profile), "%s", names[i]);
}

static void find_version(const struct text *t, struct buildfacts *b)
{
	char needle[40];

	/* "reth/v2.5.1-7b3432d95/x86_64-unknown-linux-gnu", as nodes name themselves to others */
	if (*b->program) {
		snprintf(needle, sizeof(needle), "%s/v", b->program);
		copy_after(t, needle, ".-+", b->version, sizeof(b->version));
		if (!strchr(b->version, '.'))
			b->version[0] = 0;
	}
	/* "Version: 1.7.1\nCommit SHA: 4072e48…", as clap's --version has it */
	if (is_there(t, "\nCommit SHA: "))
		copy_after(t, "Version: ", ".-+", b->version, sizeof(b->version));
	copy_after(t, "\nCommit SHA: ", "", b->commit, sizeof(b->commit));
	copy_after(t, "\nBuild Features: ", ",_-", b->features, sizeof(b->features));
	find_profile(t, b);
}

/* Go writes its version, and that of the main module, behind a header of 32 bytes, each after its length. */
static void find_go(const struct elf *elf, struct buildfacts *b)
{
	struct text t = section_text(elf, ".go.buildinfo");
	size_t at = 32;

	if (t.n < at + 1 || memcmp(t.s, "\xff Go buildinf:", 14) || !(t.s[15] & 2))
		return;
	for (int k = 0; k < 2; k++) {
		size_t n = 0;
		unsigned shift = 0;
		struct text one;

		for (; at < t.n && shift < 28; shift += 7) {
			n |= (size_t)(t.s[at] & 0x7f) << shift;
			if (!(t.s[at++] & 0x80))
				break;
		}
		if (n > t.n - at)
			return;
		one = (struct text){ t.s + at, n };
		at += n;
		if (!k) {
			snprintf(b->compiler, sizeof(b->compiler), "%.*s", (int)MIN(one.n, (size_t)40), one.s);
			continue;
		}
		if (is_there(&one, "mod\tgithub.com/ethereum/go-ethereum\t"))
			snprintf(b->program, sizeof(b->program), "geth");
		if (is_there(&one, "mod\tgithub.com/erigontech/erigon"))
			snprintf(b->program, sizeof(b->program), "erigon");
		copy_after(&one, "mod\tgithub.com/ethereum/go-ethereum\tv", ".-+", b->version, sizeof(b->version));
		copy_after(&one, "vcs.revision=", "", b->commit, sizeof(b->commit));
	}
}

static void find_compiler(const struct elf *elf, struct buildfacts *b)
{
	struct text t = section_text(elf, ".comment");
	char version[32] = "";

	copy_after(&t, "rustc version ", ".-", version, sizeof(version));
	if (*version && !*b->compiler)
		snprintf(b->compiler, sizeof(b->compiler), "rustc %s", version);
	if (*b->compiler)
		return;
	/* "GCC: (Debian 14.2.0-19) 14.2.0" */
	if (is_there(&t, "GCC: ("))
		copy_after(&t, ") ", ".", version, sizeof(version));
	if (*version)
		snprintf(b->compiler, sizeof(b->compiler), "GCC %s", version);
}

/* --- jemalloc --- */

struct pointers {
	uint64_t addresses[2]; /* of --with-malloc-conf, and of the program */
};

static bool see_pointer(void *context, const char *name, uint64_t address)
{
	static const char *const names[2][4] = {
		{ "config_malloc_conf", "je_config_malloc_conf", "_rjem_je_config_malloc_conf", "_rjem_config_malloc_conf" },
		{ "malloc_conf", "je_malloc_conf", "_rjem_malloc_conf", "_rjem_je_malloc_conf" },
	};
	struct pointers *p = context;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (size_t k = 0; k < ARRAY_LEN(names[0]); k++)
			if (names[i][k] && !strcmp(name, names[i][k]))
				p->addresses[i] = address;
	return true;
}

/* The bytes that the file has for an address, of data or code. */
static const char *bytes_at(const struct elf *elf, uint64_t address, size_t *ret_n)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t at = address - s->address;

		if (s->type != PT_LOAD || address < s->address || at >= s->file_size || s->offset > elf->size ||
		    at >= elf->size - s->offset)
			continue;
		*ret_n = MIN(s->file_size - at, elf->size - s->offset - at);
		return (const char *)elf->data + s->offset + at;
	}
	return NULL;
}

/* A pointer as the loader makes it: from its relocation, or as it is in a program that is not relocated. */
static uint64_t pointer_at(const struct elf *elf, uint64_t address)
{
	const struct elf_section *s = elf_section(elf, ".rela.dyn");
	uint64_t value = 0;
	Elf64_Rela rela;
	size_t n = 0;
	const char *bytes;

	for (size_t i = 0; s && s->data && s->type == SHT_RELA && !(s->flags & SHF_COMPRESSED) &&
			   i < s->file_size / sizeof(rela); i++) {
		memcpy(&rela, s->data + i * sizeof(rela), sizeof(rela));
		if (rela.r_offset == address && ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
			return rela.r_addend;
	}
	bytes = bytes_at(elf, address, &n);
	if (bytes && n >= sizeof(value))
		memcpy(&value, bytes, sizeof(value));
	return value;
}

static size_t conf_length(const char *s, size_t n)
{
	size_t k = 0;

	while (k < n && (isalnum((unsigned char)s[k]) || (s[k] && strchr("_:,.-+|", s[k]))))
		k++;
	return k < n && !s[k] ? k : 0;
}

static void add_conf(struct buildfacts *b, const char *s, size_t n)
{
	size_t have = strlen(b->malloc_conf);

	if (n && have + n + 2 < sizeof(b->malloc_conf))
		snprintf(b->malloc_conf + have, sizeof(b->malloc_conf) - have, "%s%.*s", have ? "," : "", (int)n, s);
}

static void find_conf(struct elf *elf, const struct text *t, struct buildfacts *b)
{
	static const char *const begins[] = { "prof:", "background_thread:", "dirty_decay_ms:", "narenas:", "abort_conf:", "metadata_thp:" };
	struct pointers p = { 0 };

	symtab_each_name(elf, ".symtab", see_pointer, &p);
	symtab_each_name(elf, ".dynsym", see_pointer, &p);
	for (size_t i = 0; i < ARRAY_LEN(p.addresses); i++) {
		uint64_t at = p.addresses[i] ? pointer_at(elf, p.addresses[i]) : 0;
		size_t n = 0;
		const char *s = at ? bytes_at(elf, at, &n) : NULL;

		if (s)
			add_conf(b, s, conf_length(s, MIN(n, sizeof(b->malloc_conf))));
	}
	/* Without symbols: a text that can be nothing else. */
	for (size_t i = 0; i < ARRAY_LEN(begins) && !p.addresses[0] && !p.addresses[1] && !*b->malloc_conf; i++) {
		size_t n = 0, size = strlen(begins[i]);
		const char *s = after(t, begins[i], &n);

		if (s)
			add_conf(b, s - size, conf_length(s - size, MIN(n + size, sizeof(b->malloc_conf))));
	}
}

static void find_jemalloc(struct elf *elf, const struct text *t, struct buildfacts *b)
{
	if (!is_there(t, "<jemalloc>: "))
		return;
	/* The report of leaks, which only a jemalloc with --enable-prof has. */
	b->prof = is_there(t, "<jemalloc>: Leak approximation summary") ? BUILDFACTS_PROF_YES : BUILDFACTS_PROF_NO;
	find_conf(elf, t, b);
}

/* --- frame pointers --- */

struct framed {
	struct elf *elf;
	struct buildfacts *b;
	uint64_t seen, step;
};

static bool see_function(void *context, const char *name, uint64_t address, uint64_t size)
{
	static const uint8_t frame[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push %rbp; mov %rsp, %rbp */
	struct framed *f = context;
	uint64_t n = 0;
	const uint8_t *code;

	/* Leaves need no frame. */
	if (size < 2 * PROLOGUE || f->seen++ % f->step)
		return true;
	code = elf_code_at(f->elf, address, &n);
	if (!code)
		return true;
	f->b->checked++;
	f->b->framed += memmem(code, MIN(n, (uint64_t)PROLOGUE), frame, sizeof(frame)) != NULL;
	return f->b->checked < MOST_FUNCTIONS;
}

void buildfacts_find(struct elf *elf, struct buildfacts *ret)
{
	struct text t = section_text(elf, ".rodata");
	const char *table = elf_section(elf, ".symtab") ? ".symtab" : ".dynsym";
	struct framed f = { elf, ret, 0, 1 + symtab_count_functions(elf, table) / MOST_FUNCTIONS };

	*ret = (struct buildfacts){ 0 };
	find_go(elf, ret);
	if (!*ret->compiler) {
		find_compiler(elf, ret);
		find_program(&t, ret);
		find_version(&t, ret);
	}
	find_jemalloc(elf, &t, ret);
	if (elf->machine == EM_X86_64)
		symtab_each_function(elf, table, see_function, &f);
}

static void clean(char *s, size_t size)
{
	s[size - 1] = 0;
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || (unsigned char)*s >= 0x7f)
			*s = '?';
}

void buildfacts_clean(struct buildfacts *b)
{
	clean(b->compiler, sizeof(b->compiler));
	clean(b->program, sizeof(b->program));
	clean(b->flavour, sizeof(b->flavour));
	clean(b->version, sizeof(b->version));
	clean(b->commit, sizeof(b->commit));
	clean(b->profile, sizeof(b->profile));
	clean(b->features, sizeof(b->features));
	clean(b->malloc_conf, sizeof(b->malloc_conf));
	b->prof = MIN(b->prof, (uint32_t)BUILDFACTS_PROF_YES);
	b->framed = MIN(b->framed, b->checked);
}
