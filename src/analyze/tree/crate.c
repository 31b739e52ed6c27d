#include "analyze/tree/crate.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tree/restack.h"
#include "analyze/tree/stdnames.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

/* Facts about a module. */
enum { FILE_PROGRAM = 1, FILE_RUST = 2, FILE_KERNEL = 4, FILE_JIT = 8, FILE_GO = 16 };

static const char *const std_crates[] = { "std", "core", "alloc", "proc_macro", "test", "std_detect",
					  "panic_unwind", "panic_abort", "compiler_builtins", "__rustc" };

static const char *const std_modules[] = { "libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "ld-2",
					   "libstdc++", "libc++", "libgcc_s", "libm.so", "libm-", "librt.",
					   "libdl.", "libresolv", "libnss_", "libmvec", "[vdso]",
					   "[vsyscall]" };

/* Words in names of programs that are no crates. */
static const char *const common_words[] = { "node", "server", "client", "main", "test", "tests", "bench",
					    "rust", "tokio", "cargo", "tool", "debug", "release", "core" };

/* Libraries in C and C++ that are linked into programs, by the beginnings of names. */
static const struct {
	const char *prefix, *library;
	enum code_kind kind;
} libraries[] = {
	{ "mdbx_", "mdbx", CODE_DEPENDENCY },
	{ "rocksdb::", "rocksdb", CODE_DEPENDENCY },
	{ "rocksdb_", "rocksdb", CODE_DEPENDENCY },
	{ "snappy::", "snappy", CODE_DEPENDENCY },
	{ "leveldb::", "leveldb", CODE_DEPENDENCY },
	{ "secp256k1_", "secp256k1", CODE_DEPENDENCY },
	{ "rustsecp256k1_", "secp256k1", CODE_DEPENDENCY },
	{ "blst_", "blst", CODE_DEPENDENCY },
	{ "ZSTD_", "zstd", CODE_DEPENDENCY },
	{ "HUF_", "zstd", CODE_DEPENDENCY },
	{ "FSE_", "zstd", CODE_DEPENDENCY },
	{ "LZ4_", "lz4", CODE_DEPENDENCY },
	{ "XXH", "xxhash", CODE_DEPENDENCY },
	{ "sqlite3", "sqlite3", CODE_DEPENDENCY },
	{ "boost::", "boost", CODE_DEPENDENCY },
	{ "__Keccak", "keccak", CODE_DEPENDENCY },
	{ "KeccakF1600", "keccak", CODE_DEPENDENCY },
	{ "KECCAK_ASM_", "keccak", CODE_DEPENDENCY },
	{ "ring_core_", "ring", CODE_DEPENDENCY },
	{ "_rjem_", "jemalloc", CODE_ALLOCATOR },
	{ "je_", "jemalloc", CODE_ALLOCATOR },
	{ "jemalloc_", "jemalloc", CODE_ALLOCATOR },
	{ "mi_", "mimalloc", CODE_ALLOCATOR },
	{ "_mi_", "mimalloc", CODE_ALLOCATOR },
	{ "tcmalloc::", "tcmalloc", CODE_ALLOCATOR },
	{ "tc_malloc", "tcmalloc", CODE_ALLOCATOR },
	{ "sn_rust_", "snmalloc", CODE_ALLOCATOR },
	{ "snmalloc::", "snmalloc", CODE_ALLOCATOR },
};

/* jemalloc's own functions without its prefix; only where functions with the prefix are seen. */
static const char *const jemalloc_parts[] = { "arena_", "tcache_", "extent_", "edata_", "ecache_", "emap_",
					      "eset_", "pac_", "hpa_", "psset_", "rtree_", "cache_bin_",
					      "malloc_mutex_", "ehooks_", "san_", "sz_", "base_alloc",
					      "base_block", "do_rallocx", "background_thread_", "imalloc",
					      "ifree", "isdalloc", "tsd_" };

/* Of the C library and the languages' glue, without the underscores before them. */
static const char *const allocator_calls[] = {
	"malloc", "free", "cfree", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign",
	"aligned_alloc", "valloc", "pvalloc", "int_malloc", "int_free", "int_realloc", "int_memalign",
	"malloc_consolidate", "unlink_chunk", "sysmalloc", "systrim", "malloc_trim", "malloc_usable_size",
	"tcache_init", "ptmalloc_init", "arena_get2", "sdallocx", "mallocx", "rallocx", "dallocx",
	"int_free_chunk", "int_free_merge_chunk", "int_free_create_chunk", "int_free_maybe_consolidate",
	"heap_max_size", "tcache_get", "tcache_put", "malloc_printerr", "alloc_perturb", "free_perturb",
};
static const char *const allocator_starts[] = { "__rust_alloc", "__rust_dealloc", "__rust_realloc",
						"__rdl_", "__rg_", "operator new", "operator delete" };
static const char *const allocator_paths[] = {
	"alloc::alloc::", "<alloc::alloc::Global ", "<alloc::alloc::Global>", "tikv_jemalloc",
	"<tikv_jemalloc", "jemallocator::", "<jemallocator::", "mimalloc::", "<mimalloc::",
	"libmimalloc_sys::", "snmalloc_rs::", "<snmalloc_rs::", "__rustc::__r",
};
static const char *const c_calls[] = {
	"memcpy", "memmove", "memset", "memcmp", "bcmp", "memchr", "strlen", "strcmp", "strncmp", "strchr",
	"memmem", "read", "write", "pread", "pread64", "pwrite", "pwrite64", "readv", "writev", "open",
	"open64", "openat", "close", "fsync", "fdatasync", "msync", "mmap", "munmap", "mprotect", "madvise",
	"poll", "ppoll", "select", "epoll_wait", "epoll_pwait", "nanosleep", "clock_nanosleep", "syscall",
	"recv", "recvfrom", "recvmsg", "send", "sendto", "sendmsg", "accept4", "sched_yield", "clone",
	"clone3", "start_thread", "start", "init", "fini", "libc_start_main", "clock_gettime", "qsort",
};

static bool is_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, list[i]))
			return true;
	return false;
}

static bool starts_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_starts(s, list[i]))
			return true;
	return false;
}

static const char *intern(struct crates *c, const char *s)
{
	return strtab_get(&c->names, strtab_add(&c->names, s));
}

/* --- paths --- */

/* Skips the sigils before a type's path: "<&mut dyn ". */
static const char *skip_sigils(const char *s)
{
	static const char *const words[] = { "mut ", "dyn ", "const ", "impl " };
	const char *before;

	do {
		before = s;
		s += strspn(s, "<&*([");
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			if (str_starts(s, words[i]))
				s += strlen(words[i]);
		if (*s == '\'') { /* a lifetime */
			const char *space = strchr(s, ' ');

			s = space ? space + 1 : s;
		}
	} while (s != before);
	return s;
}

/* The length of the crate at the beginning of a path, 0 = no path of Rust begins here. A hash that the
 * demangler left ("core[9c5f2a]::") is no part of it. */
static size_t path_crate(const char *s)
{
	size_t n = 0, end;

	if (!islower((unsigned char)*s) && *s != '_')
		return 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	end = n;
	if (s[end] == '[') {
		end += 1 + strspn(s + end + 1, "0123456789abcdef");
		if (s[end++] != ']')
			return 0;
	}
	return s[end] == ':' && s[end + 1] == ':' ? n : 0;
}

/* The trait of "<T as Trait>", where the brackets of T are closed; NULL = none. */
static const char *find_trait(const char *name)
{
	int depth = 0;

	for (const char *s = name; *s; s++) {
		if (*s == '<' || *s == '(' || *s == '[')
			depth++;
		else if (*s == ']' || *s == ')' || (*s == '>' && (s == name || s[-1] != '-')))
			depth--;
		else if (depth == 1 && str_starts(s, " as "))
			return s + 4;
		if (!depth)
			break;
	}
	return NULL;
}

/* Arguments after the name, outside of all angle brackets: C++ has them, Rust has not. */
static bool has_arguments(const char *name)
{
	int depth = 0;

	for (const char *s = name; *s; s++) {
		if (*s == '<')
			depth++;
		else if (*s == '>' && (s == name || s[-1] != '-'))
			depth--;
		else if (*s == '(' && depth <= 0)
			return true;
	}
	return false;
}

static bool is_std_crate(const char *s, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(std_crates); i++)
		if (strlen(std_crates[i]) == n && !strncmp(s, std_crates[i], n))
			return true;
	return false;
}

/* The crate of a Rust path, not terminated; *ret_n 0 = it is none. */
static const char *rust_crate(const char *name, size_t *ret_n)
{
	const char *type = skip_sigils(name), *trait = NULL;
	size_t trait_n = 0;

	*ret_n = 0;
	if (!strstr(name, "::") || has_arguments(name))
		return "";
	*ret_n = path_crate(type);
	if (*name != '<')
		return type;
	trait = find_trait(name);
	if (trait) {
		trait = skip_sigils(trait);
		trait_n = path_crate(trait);
	}
	if (trait_n && (!*ret_n || (is_std_crate(type, *ret_n) && !is_std_crate(trait, trait_n)))) {
		*ret_n = trait_n;
		return trait;
	}
	if (*ret_n)
		return type;
	*ret_n = 4; /* methods of built-in types */
	return "core";
}

/* --- C and C++ --- */

/* Strips the prefixes that the C library puts before its functions' names. */
static const char *plain_call(const char *name)
{
	if (str_starts(name, "__libc_") || str_starts(name, "__GI_"))
		name = strchr(name + 2, '_') + 1;
	name += strspn(name, "_");
	return str_starts(name, "libc_") && strcmp(name, "libc_start_main") ? name + 5 : name;
}

static bool is_allocator(const struct crates *c, const char *name)
{
	return is_any(plain_call(name), allocator_calls, ARRAY_LEN(allocator_calls)) ||
	       starts_any(name, allocator_starts, ARRAY_LEN(allocator_starts)) ||
	       starts_any(name, allocator_paths, ARRAY_LEN(allocator_paths)) ||
	       (c->jemalloc && starts_any(name, jemalloc_parts, ARRAY_LEN(jemalloc_parts)));
}

static bool is_c_call(const char *name)
{
	return str_starts(name, "pthread_") || str_starts(name, "__pthread_") ||
	       str_starts(name, "___pthread_") || str_starts(name, "__lll_") || str_ends(name, "@plt") ||
	       is_any(plain_call(name), c_calls, ARRAY_LEN(c_calls));
}

/* Index into libraries, -1 = none. A method of C++ may have its result's type before it: it is not seen. */
static int find_library(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		if (str_starts(name, libraries[i].prefix))
			return i;
	return -1;
}

/* --- modules --- */

static unsigned file_bits(struct crates *c, const char *module)
{
	uint64_t *bits = map_get(&c->files, strtab_add(&c->names, module));

	return bits ? *bits : 0;
}

static void mark_file(struct crates *c, const char *module, unsigned bits)
{
	*map_put(&c->files, strtab_add(&c->names, module), 0) |= bits;
}

static bool is_std_module(const char *module)
{
	return starts_any(str_base_name(module), std_modules, ARRAY_LEN(std_modules));
}

/* --- programs --- */

static void add_program(struct crates *c, const char *name, size_t n)
{
	char *s = mem_strndup(name, n);

	for (char *t = s; *t; t++)
		*t = *t == '-' ? '_' : tolower((unsigned char)*t);
	if (!*s || is_any(s, std_crates, ARRAY_LEN(std_crates)) ||
	    is_any(s, (const char *const *)c->programs.v, c->programs.n))
		free(s);
	else
		vec_push(&c->programs, s);
}

/* "op-reth (4242)": op_reth, and reth. */
static void add_names(struct crates *c, const char *text)
{
	size_t n;

	text = str_base_name(text);
	n = strcspn(text, " (:@");
	add_program(c, text, n);
	for (size_t at = 0, part; at < n; at += part + 1) {
		char word[16];

		part = strcspn(text + at, "-_ (:@");
		if (part == n || part < 4)
			continue;
		memcpy(word, text + at, MIN(part, sizeof(word) - 1));
		word[MIN(part, sizeof(word) - 1)] = 0;
		if (!is_any(word, common_words, ARRAY_LEN(common_words)))
			add_program(c, text + at, part);
	}
}

/* A crate, or a file, whose name may have dashes. */
static bool is_program(const struct crates *c, const char *crate)
{
	for (size_t i = 0; i < c->programs.n; i++) {
		const char *program = c->programs.v[i];
		size_t n = 0;

		while (program[n] && (crate[n] == program[n] || (crate[n] == '-' && program[n] == '_')))
			n++;
		if (!program[n] && (!crate[n] || crate[n] == '_' || crate[n] == '-'))
			return true;
	}
	return false;
}

static void look_at_function(struct crates *c, const struct profile_function *f)
{
	const struct profile *p = c->p;
	const char *name = profile_str(p, f->name);
	size_t n = path_crate(name);

	if (str_starts(name, "_rjem_") || str_starts(name, "je_"))
		c->jemalloc = true;
	if (n && !strcmp(name + n, "::main"))
		add_program(c, name, n);
	if (f->module < p->modules.n && is_std_crate(name, n) && !has_arguments(name))
		mark_file(c, profile_str(p, p->modules.v[f->module].path), FILE_RUST);
	if (f->module < p->modules.n && str_starts(name, "runtime."))
		mark_file(c, profile_str(p, p->modules.v[f->module].path), FILE_GO);
}

void crates_init(struct crates *c, const struct profile *p, const char *const *own)
{
	*c = (struct crates){ .p = p, .own = own && *own ? own : NULL };
	strtab_init(&c->names);
	for (size_t i = 0; i < p->processes.n; i++) {
		const struct profile_process *process = &p->processes.v[i];

		add_names(c, profile_str(p, process->name));
		add_names(c, profile_str(p, process->exe));
		if (process->exe)
			mark_file(c, profile_str(p, process->exe), FILE_PROGRAM);
	}
	add_names(c, profile_str(p, p->target));
	for (size_t i = 0; i < p->modules.n; i++) {
		const struct profile_module *m = &p->modules.v[i];

		if (m->kind == MODULE_KERNEL)
			mark_file(c, profile_str(p, m->path), FILE_KERNEL);
		if (m->kind == MODULE_JIT)
			mark_file(c, profile_str(p, m->path), FILE_JIT);
	}
	for (size_t i = 0; i < p->functions.n; i++)
		look_at_function(c, &p->functions.v[i]);
}

void crates_done(struct crates *c)
{
	strtab_done(&c->names);
	vec_done_each(&c->programs, e, free(*e));
	map_done(&c->files);
	*c = (struct crates){ 0 };
}

/* --- the answers --- */

static bool is_code(const struct ident *id)
{
	return id->kind == IDENT_USER || id->kind == IDENT_INLINED || id->kind == IDENT_KERNEL ||
	       id->kind == IDENT_UNNAMED;
}

const char *crate_name(struct crates *c, const struct ident *id)
{
	const char *path;
	size_t n = 0;
	int library;

	if (!is_code(id))
		return "";
	if (id->kind == IDENT_KERNEL)
		return *id->module ? intern(c, str_base_name(id->module)) : "[kernel]";
	if (id->kind == IDENT_UNNAMED)
		return intern(c, str_base_name(id->module));
	path = rust_crate(id->name, &n);
	if (n)
		return strtab_get(&c->names, strtab_add_n(&c->names, path, n));
	library = find_library(id->name);
	if (library >= 0)
		return libraries[library].library;
	if (c->jemalloc && !is_std_module(id->module) &&
	    starts_any(id->name, jemalloc_parts, ARRAY_LEN(jemalloc_parts)))
		return "jemalloc";
	return *id->module ? intern(c, str_base_name(id->module)) : "[unknown]";
}

/* Returns whether a crate matches one of the user's globs. Crates are written with _, packages with -:
 * both match. linked: C in a Rust program, such as the main that every stack begins with; a glob that
 * happens to match the program's file does not include it, only the full name does. */
static bool matches_own(const struct crates *c, const char *crate, const char *module, bool linked)
{
	for (const char *const *g = c->own; *g; g++) {
		_cleanup_free_ char *glob = mem_strdup(*g);

		if (linked && strpbrk(*g, "*?["))
			continue;
		for (char *t = glob; *t; t++)
			*t = *t == '-' ? '_' : *t;
		if (!fnmatch(*g, crate, 0) || !fnmatch(glob, crate, 0) || !fnmatch(*g, module, 0) ||
		    !fnmatch(*g, str_base_name(module), 0))
			return true;
	}
	return false;
}

/* Of a function in C, C++ or Go that no table knows. */
static enum code_kind kind_of_c(struct crates *c, const struct ident *id)
{
	unsigned bits = file_bits(c, id->module);
	bool program = bits & FILE_PROGRAM || is_program(c, str_base_name(id->module));

	if (bits & FILE_JIT)
		return CODE_OWN;
	if (bits & FILE_GO ? stdnames_is_go(id->name) : stdnames_is_cpp(id->name))
		return CODE_STD;
	if (!program)
		return CODE_DEPENDENCY;
	/* Code that calls the Rust program's main, or is linked into it. */
	if (bits & FILE_RUST)
		return !strcmp(id->name, "main") ? CODE_STD : CODE_DEPENDENCY;
	return CODE_OWN;
}

enum code_kind crate_kind(struct crates *c, const struct ident *id)
{
	const char *crate;
	bool linked;
	size_t n = 0;
	int library;

	if (!is_code(id) || !strcmp(id->module, RESTACK_GROUP))
		return CODE_OTHER;
	if (id->kind == IDENT_KERNEL || file_bits(c, id->module) & FILE_KERNEL)
		return CODE_KERNEL;
	if (id->kind == IDENT_UNNAMED)
		return is_std_module(id->module) ? CODE_STD : CODE_OTHER;
	if (is_allocator(c, id->name))
		return CODE_ALLOCATOR;
	library = find_library(id->name);
	if (library >= 0 && libraries[library].kind == CODE_ALLOCATOR)
		return CODE_ALLOCATOR;
	rust_crate(id->name, &n);
	crate = crate_name(c, id);
	/* The user's own library is not the C library, but its memcpy, linked into the program, is. */
	if (!n && library < 0 && is_c_call(id->name))
		return CODE_STD;
	linked = !n && library < 0 && file_bits(c, id->module) & FILE_RUST;
	if (c->own && matches_own(c, crate, n ? "" : id->module, linked))
		return CODE_OWN;
	if (n ? is_std_crate(crate, n) : is_std_module(id->module))
		return CODE_STD;
	if (!c->own && n && is_program(c, crate))
		return CODE_OWN;
	if (n || library >= 0 || c->own)
		return CODE_DEPENDENCY;
	return kind_of_c(c, id);
}

const char *code_kind_key(enum code_kind k)
{
	static const char *const keys[CODE_KINDS] = { "own", "dependency", "std", "allocator", "kernel",
						      "other" };

	return k < CODE_KINDS ? keys[k] : "other";
}
