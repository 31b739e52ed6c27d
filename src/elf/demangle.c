#include "elf/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/mem.h"
#include "base/text/str.h"

enum {
	NAME_LIMIT = 64 << 10,
	/* Longer than compilers write. libiberty keeps its working space on the stack, some 100 bytes for
	 * each byte of the name. */
	MANGLED_LIMIT = 8 << 10,
	/* With its own limit libiberty gives up on names of more than 1 KiB, which C++ has many of. */
	LIBRARY_LIMIT = 1 << 10,
	OUTPUT_LIMIT = 64 << 10,
};

/* libiberty hands the text over in pieces. References back into a name can double its text with every few
 * bytes, so where it grows too long we jump out: nothing is allocated on the way. */
struct text {
	char *data;
	size_t n, capacity;
	jmp_buf too_long;
};

static void take_piece(const char *piece, size_t n, void *context)
{
	struct text *t = context;

	if (!n)
		return; /* piece may be NULL then */
	if (n > OUTPUT_LIMIT - t->n)
		longjmp(t->too_long, 1);
	if (t->n + n + 1 > t->capacity) {
		t->capacity = MAX(t->n + n + 1, t->capacity * 2);
		t->data = mem_resize(t->data, t->capacity, 1);
	}
	memcpy(t->data + t->n, piece, n);
	t->n += n;
	t->data[t->n] = 0;
}

static bool all(const char *s, size_t n, int (*is)(int))
{
	for (size_t i = 0; i < n; i++)
		if (!is((unsigned char)s[i]))
			return false;
	return n > 0;
}

/* Does ".isra.0" or the like stand at s? The suffix runs to the next dot that is followed by a letter. */
static size_t suffix_length(const char *s)
{
	static const char *const words[] = { ".llvm", ".cold", ".isra", ".part", ".constprop", ".lto_priv",
					     ".localalias", ".warm", ".hot", ".unlikely", ".clone",
					     ".resolver" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if (strncmp(s, words[i], n))
			continue;
		while (s[n] == '.' && isxdigit((unsigned char)s[n + 1])) {
			size_t digits = strspn(s + n + 1, "0123456789ABCDEF");

			if (!digits || (s[n + 1 + digits] && s[n + 1 + digits] != '.'))
				break;
			n += 1 + digits;
		}
		if (!s[n] || s[n] == '.')
			return n;
	}
	return 0;
}

/* Cuts the version (but not @plt) and every suffix that a compiler appended. */
static void cut_suffixes(char *name)
{
	char *at = strchr(name, '@');

	if (at && at > name && strcmp(at, "@plt"))
		*at = 0;
	for (char *dot = *name ? strchr(name + 1, '.') : NULL; dot;) {
		/* Legacy Rust names write :: as two dots: core..clone..Clone is no suffix. */
		size_t n = dot[-1] == '.' ? 0 : suffix_length(dot);

		if (n)
			memmove(dot, dot + n, strlen(dot + n) + 1);
		dot = strchr(dot + !n, '.');
	}
}

static bool is_legacy_rust(const char *s)
{
	const char *h = strstr(s, "17h");

	for (; h; h = strstr(h + 1, "17h"))
		if (strnlen(h, 20) == 20 && all(h + 3, 16, isxdigit) && h[19] == 'E')
			return str_starts(s, "_ZN");
	return false;
}

/*
 * A v0 name may bind N lifetimes ("G", N in base 62, "_"), and libiberty counts to N even where it prints
 * nothing, so that no limit on the output stops it. No program binds thousands. This scan steps over
 * identifiers by their length; digits after a lower-case letter belong to a constant (except after u, which
 * marks an identifier).
 */
static bool binds_too_many(const char *s)
{
	char last = 0; /* the letter of the token before */

	s += 2;
	while (*s) {
		if (*s == 'G' || *s == 'B' || *s == 's') {
			size_t digits = 0;

			while (isalnum((unsigned char)s[1 + digits]))
				digits++;
			if (s[1 + digits] == '_') {
				if (*s == 'G' && digits > 2)
					return true;
				s += 2 + digits;
				last = 0;
				continue;
			}
		} else if (isdigit((unsigned char)*s) && islower((unsigned char)last) && last != 'u') {
			s += strspn(s, "0123456789abcdef");
			last = 0;
			continue;
		} else if (isdigit((unsigned char)*s)) {
			char *end;
			unsigned long n = strtoul(s, &end, 10);

			s = end + (*end == '_');
			s += strnlen(s, n);
			last = 0;
			continue;
		}
		last = *s++;
	}
	return false;
}

/* Calls the demangler for this kind of name; false when there is none or it failed. */
static bool run_library(const char *linkage, bool keep_hash, struct text *t)
{
	int options = strlen(linkage) >= LIBRARY_LIMIT ? DMGL_NO_RECURSE_LIMIT : 0;

	if (setjmp(t->too_long))
		return false;
	/* Without DMGL_VERBOSE libiberty leaves out hashes itself. */
	if (str_starts(linkage, "_R") && binds_too_many(linkage))
		return false;
	if (str_starts(linkage, "_R") || is_legacy_rust(linkage))
		return rust_demangle_callback(linkage, keep_hash ? DMGL_VERBOSE : 0, take_piece, t);
	if (str_starts(linkage, "_Z"))
		return cplus_demangle_v3_callback(linkage, DMGL_PARAMS | DMGL_ANSI | options, take_piece, t);
	return false;
}

char *demangle(const char *linkage, enum demangle_flags flags)
{
	size_t n = strnlen(linkage, NAME_LIMIT);
	char *name = mem_strndup(linkage, n);
	struct text t = { 0 };
	bool plt;

	if (!(flags & DEMANGLE_KEEP_HASH))
		cut_suffixes(name);
	if (n > MANGLED_LIMIT || name[0] != '_')
		return name;
	plt = str_ends(name, "@plt");
	if (plt)
		name[strlen(name) - 4] = 0;
	if (run_library(name, flags & DEMANGLE_KEEP_HASH, &t) && t.n) {
		free(name);
		name = t.data;
	} else {
		free(t.data);
	}
	if (plt) {
		char *with = mem_printf("%s@plt", name);

		free(name);
		name = with;
	}
	return name;
}
