#include "elf/demangle.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/mem.h"
#include "base/str.h"

/* libiberty's work can grow with the square of the length (substitutions, back references): what is longer
 * than any compiler writes is not worth it. */
enum { NAME_LIMIT = 64 << 10, MANGLED_LIMIT = 16 << 10, OUTPUT_LIMIT = 64 << 10 };

/* libiberty hands the text over in pieces, so its size can be bounded while it grows. */
struct text {
	char *data;
	size_t n, capacity;
	bool full;
};

static void take_piece(const char *piece, size_t n, void *context)
{
	struct text *t = context;

	if (n > OUTPUT_LIMIT - t->n) {
		t->full = true;
		n = OUTPUT_LIMIT - t->n;
	}
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
					     ".localalias", ".warm", ".hot", ".unlikely", ".clone", ".resolver" };

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
	for (char *dot = strchr(name + (*name != 0), '.'); dot;) {
		size_t n = suffix_length(dot);

		if (n)
			memmove(dot, dot + n, strlen(dot + n) + 1);
		dot = strchr(dot + !n, '.');
	}
}

/* Cuts "::h0123456789abcdef" at the end, and "[0123456789abcdef]" after a crate's name. */
static void cut_hashes(char *name)
{
	size_t n = strlen(name);
	char *out = name;

	if (n > 19 && !strncmp(name + n - 19, "::h", 3) && all(name + n - 16, 16, isxdigit))
		name[n - 19] = 0;
	for (const char *in = name; *in;) {
		const char *end = *in == '[' && in > name ? strchr(in, ']') : NULL;

		/* An array's length is not alone in its brackets ("[u8; 32]"). */
		if (end && end - in >= 9 && end - in <= 17 && all(in + 1, end - in - 1, isxdigit)) {
			in = end + 1;
			continue;
		}
		*out++ = *in++;
	}
	*out = 0;
}

static bool is_legacy_rust(const char *s)
{
	const char *h = strstr(s, "17h");

	for (; h; h = strstr(h + 1, "17h"))
		if (strnlen(h, 20) == 20 && all(h + 3, 16, isxdigit) && h[19] == 'E')
			return str_starts(s, "_ZN");
	return false;
}

/* The readable name, or NULL. */
static char *readable(const char *linkage, bool *ret_rust)
{
	struct text t = { 0 };
	int ok;

	*ret_rust = str_starts(linkage, "_R") || is_legacy_rust(linkage);
	if (*ret_rust)
		ok = rust_demangle_callback(linkage, DMGL_VERBOSE, take_piece, &t);
	else if (str_starts(linkage, "_Z"))
		ok = cplus_demangle_v3_callback(linkage, DMGL_PARAMS | DMGL_ANSI, take_piece, &t);
	else
		return NULL;
	if (!ok || !t.n || t.full) {
		free(t.data);
		return NULL;
	}
	return t.data;
}

char *demangle(const char *linkage, enum demangle_flags flags)
{
	size_t n = strnlen(linkage, NAME_LIMIT);
	char *name = mem_strndup(linkage, n), *text;
	bool rust, plt;

	if (!(flags & DEMANGLE_KEEP_HASH))
		cut_suffixes(name);
	if (n > MANGLED_LIMIT || name[0] != '_')
		return name;
	plt = str_ends(name, "@plt");
	if (plt)
		name[strlen(name) - 4] = 0;
	text = readable(name, &rust);
	if (text) {
		if (rust && !(flags & DEMANGLE_KEEP_HASH))
			cut_hashes(text);
		free(name);
		name = text;
	}
	if (plt) {
		text = mem_printf("%s@plt", name);
		free(name);
		name = text;
	}
	return name;
}
