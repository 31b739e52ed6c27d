#include "elf/probe/probesites.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "elf/demangle.h"
#include "elf/file.h"
#include "elf/probe/sitesarm64.h"
#include "elf/symtab.h"

enum { MOST_CANDIDATES = 4096, MOST_CODE = 4 << 20 };

void probesites_add_out(const struct elf *elf, struct probesites *d, uint64_t address)
{
	uint64_t offset;

	if (d->trouble)
		return;
	if (d->out_count == PROBESITES_OUT)
		d->trouble = PROBESITES_MANY_OUT;
	else if (elf_address_to_offset(elf, address, &offset))
		d->out[d->out_count++] = offset;
}

/* --- names --- */

/* Returns whether the n bytes of name at offset at are within <>. A leading <…> is the type that the
 * function belongs to. */
static bool within_brackets(const char *name, size_t at)
{
	int depth = 0;

	for (size_t i = 0; i < at; i++) {
		if (name[i] == '<')
			depth++;
		else if (name[i] == '>' && (!i || name[i - 1] != '-') && depth)
			depth--;
	}
	return depth > 0;
}

/* Finds the parts before the last * in their order. Returns where the rest of the name begins, NULL = not found. */
static const char *skip_parts(const char *name, const char **pattern)
{
	const char *star;

	while ((star = strchr(*pattern, '*'))) {
		size_t n = star - *pattern;
		const char *at = n ? memmem(name, strlen(name), *pattern, n) : name;

		if (!at)
			return NULL;
		name = at + n;
		*pattern = star + 1;
	}
	return name;
}

int probesites_fit(const char *name, const char *pattern)
{
	const char *rest = skip_parts(name, &pattern);
	size_t n = strlen(pattern);
	int best = 0;

	if (!n || !rest)
		return 0;
	for (const char *s = rest; (s = strstr(s, pattern)); s++) {
		if (strchr(pattern, '<') ? 0 : within_brackets(name, s - name))
			continue;
		best = MAX(best, s[n] ? 1 : 2);
	}
	return best;
}

/* Mangled names contain identifiers verbatim: a name that lacks one of the pattern's identifiers need not
 * be demangled. */
static bool may_fit(const char *linkage, const char *pattern)
{
	for (const char *s = pattern; *s;) {
		size_t n = 0;
		char word[64];

		while (isalnum((unsigned char)s[n]) || s[n] == '_')
			n++;
		if (n > 1 && n < sizeof(word)) {
			memcpy(word, s, n);
			word[n] = 0;
			/* v0 names have a letter for these. */
			if (strcmp(word, "closure") && !strstr(linkage, word))
				return false;
		}
		s += MAX(n, (size_t)1);
	}
	return true;
}

/* The v0 mangling calls a closure {closure#1}: it gets the legacy spelling, so that one pattern matches
 * both. */
static void rename_closures(char **name)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	const char *from = *name, *at;

	if (!strstr(from, "{closure#"))
		return;
	for (; (at = strstr(from, "{closure#")); from = at + strcspn(at, "}") + 1) {
		buf_add(&out, from, at - from);
		buf_puts(&out, "{{closure}}");
		if (!strchr(at, '}'))
			return;
	}
	buf_puts(&out, from);
	free(*name);
	*name = mem_strdup(out.data);
}

/* --- candidates --- */

struct candidate {
	char *name;
	uint64_t address, size;
	uint32_t pattern;
	int fit;
	bool cold; /* a part of a function that the compiler moved elsewhere */
};

struct looking {
	const char *patterns[PROBESITES_PATTERNS];
	uint32_t pattern_count;
	uint64_t functions;
	VEC(struct candidate) found;
	int best[PROBESITES_PATTERNS];
};

static bool is_cold(const char *linkage)
{
	return strstr(linkage, ".cold") != NULL;
}

static bool see(void *context, const char *linkage, uint64_t address, uint64_t size)
{
	struct looking *l = context;
	_cleanup_free_ char *name = NULL;

	l->functions++;
	if (!address || !size || size > MOST_CODE || address + size < address)
		return true;
	for (uint32_t i = 0; i < l->pattern_count; i++) {
		int fit;

		if (!may_fit(linkage, l->patterns[i]))
			continue;
		if (!name) {
			name = demangle(linkage, 0);
			rename_closures(&name);
		}
		fit = probesites_fit(name, l->patterns[i]);
		if (!fit)
			continue;
		l->best[i] = MAX(l->best[i], fit);
		vec_push(&l->found, (struct candidate){ mem_strdup(name), address, size, i, fit, is_cold(linkage) });
		return l->found.n < MOST_CANDIDATES;
	}
	return true;
}

/* Returns the cold part of a function, NULL if it has none. */
static const struct candidate *cold_part(const struct looking *l, const struct candidate *c)
{
	for (size_t i = 0; i < l->found.n; i++)
		if (l->found.v[i].cold && !strcmp(l->found.v[i].name, c->name))
			return &l->found.v[i];
	return NULL;
}

static bool is_there(const struct probesites_info *info, const struct candidate *c)
{
	for (uint32_t i = 0; i < info->count; i++)
		if (info->list[i].address == c->address)
			return true;
	return false;
}

static int take(struct looking *l, struct elf *elf, const struct candidate *c, struct probesites_info *info, struct err *err)
{
	const struct candidate *cold = cold_part(l, c);
	struct probesites *d = &info->list[info->count];
	uint64_t cold_address = cold ? cold->address : 0, cold_size = cold ? cold->size : 0;
	bool may_be_future = str_ends(c->name, "{{closure}}");

	if (c->cold || c->fit < l->best[c->pattern] || is_there(info, c))
		return 0;
	info->matched[c->pattern]++;
	if (info->count == PROBESITES_FUNCTIONS)
		return 0;
	*d = (struct probesites){ .address = c->address, .size = c->size, .pattern = c->pattern };
	memcpy(d->name, c->name, MIN(strlen(c->name), sizeof(d->name) - 1));
	info->count++;
	if (elf->machine != EM_AARCH64)
		return probesites_read(elf, d, cold_address, cold_size, may_be_future, err);
	sitesarm64_read(elf, d, cold_address, cold_size, may_be_future);
	return 0;
}

int probesites_find(struct elf *elf, const char *text, size_t n, struct probesites_info *ret, struct err *err)
{
	struct looking l = { 0 };
	int r = 0;

	*ret = (struct probesites_info){ 0 };
	for (size_t at = 0; at < n && l.pattern_count < PROBESITES_PATTERNS;) {
		const char *end = memchr(text + at, 0, n - at);

		if (!end)
			return err_set(err, EINVAL, "a pattern has no end");
		l.patterns[l.pattern_count++] = text + at;
		at = end - text + 1;
	}
	symtab_each_function(elf, ".symtab", see, &l);
	if (!l.functions)
		symtab_each_function(elf, ".dynsym", see, &l);
	ret->functions = l.functions;
	for (size_t i = 0; i < l.found.n && !r; i++)
		r = take(&l, elf, &l.found.v[i], ret, err);
	vec_done_each(&l.found, e, free(e->name));
	return r;
}

/* --- the parent's side --- */

bool probesites_check(struct probesites_info *info)
{
	if (info->count > PROBESITES_FUNCTIONS)
		return false;
	for (uint32_t i = 0; i < info->count; i++) {
		struct probesites *d = &info->list[i];

		if (d->out_count > PROBESITES_OUT || d->future > PROBESITES_FUTURE_2ND ||
		    d->trouble >= PROBESITES_TROUBLES || d->pattern >= PROBESITES_PATTERNS || d->depth > PROBESITES_MOST_LINK ||
		    d->state > 1 << 20 || d->link > PROBESITES_MOST_LINK)
			return false;
		d->name[sizeof(d->name) - 1] = 0;
		for (char *c = d->name; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				*c = '?';
	}
	return true;
}

const char *probesites_trouble_text(uint32_t trouble)
{
	static const char *const texts[PROBESITES_TROUBLES] = {
		[PROBESITES_STEPPED_IN] = "it begins with instructions that the kernel would have to single-step",
		[PROBESITES_NO_OUT] = "it never returns",
		[PROBESITES_MANY_OUT] = "it has too many returns",
		[PROBESITES_NO_CODE] = "its code cannot be read",
		[PROBESITES_REFUSED] = "the kernel puts no probe on an instruction with which it begins or returns",
	};

	return trouble && trouble < PROBESITES_TROUBLES ? texts[trouble] : "";
}
