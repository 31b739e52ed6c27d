#include "import/pprof/pprofprune.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/pprof/pprofmodel.h"
#include "profile/profile.h"

enum { PATTERN_MAX = 16 << 10 };
enum { STAYS, GOES, GOES_BENEATH }; /* what a location is to a stack; in the last case itself stays */

/* Repeats of repeats and references back take for ever, and mean something else in another dialect. */
static bool plain(const char *regex)
{
	if (strlen(regex) > PATTERN_MAX || strchr(regex, '{') || strstr(regex, "(?") || strstr(regex, "[["))
		return false;
	for (const char *p = regex; *p; p++)
		if (*p == '\\' && (!*++p || isalnum((unsigned char)*p)))
			return false;
	return true;
}

static bool compile(regex_t *to, const char *regex)
{
	_cleanup_free_ char *whole = mem_printf("^(%s)$", regex);

	return plain(regex) && !regcomp(to, whole, REG_EXTENDED | REG_NOSUB);
}

bool pprofprune_init(struct pprofprune *prune, const char *drop, const char *keep)
{
	*prune = (struct pprofprune){ 0 };
	if (!*drop)
		return true;
	if (!compile(&prune->drop, drop))
		return false;
	prune->keeps = *keep && compile(&prune->keep, keep);
	prune->used = prune->keeps || !*keep;
	if (!prune->used)
		regfree(&prune->drop);
	return prune->used;
}

void pprofprune_done(struct pprofprune *prune)
{
	if (prune->used)
		regfree(&prune->drop);
	if (prune->keeps)
		regfree(&prune->keep);
	free(prune->found);
	*prune = (struct pprofprune){ 0 };
}

/* The name up to its arguments; "(anonymous namespace)" and "operator()" are part of it. */
static char *without_arguments(const char *name)
{
	static const char *const parts[] = { "(anonymous namespace)", "operator()" };
	const char *p = name + (*name == '.'), *from = p;

	while ((p = strchr(p, '('))) {
		if (str_starts(p, parts[0]))
			p += strlen(parts[0]);
		else if (p - from >= 8 && str_starts(p - 8, parts[1]))
			p += 2;
		else
			return mem_strndup(from, p - from);
	}
	return mem_strdup(from);
}

static bool matches(const struct pprofprune *prune, const char *name)
{
	_cleanup_free_ char *text = without_arguments(name);

	return !regexec(&prune->drop, text, 0, NULL, 0) && !(prune->keeps && !regexec(&prune->keep, text, 0, NULL, 0));
}

/* Functions are matched once. */
void pprofprune_find(struct pprofprune *prune, struct pprofmodel *m)
{
	_cleanup_free_ uint8_t *drops = mem_alloc(m->functions.n + 1);

	if (!prune->used)
		return;
	prune->found = mem_alloc(m->locations.n + 1);
	for (size_t i = 0; i < m->functions.n; i++)
		drops[i] = m->functions.v[i].name && matches(prune, profile_str(m->p, m->functions.v[i].name));
	for (size_t i = 0; i < m->locations.n; i++) {
		struct pproflocation *l = &m->locations.v[i];

		for (uint32_t k = l->line_count; k-- > 0 && !prune->found[i];) {
			if (!drops[m->lines.v[l->first_line + k].function])
				continue;
			prune->found[i] = k + 1 == l->line_count ? GOES : GOES_BENEATH;
			if (prune->found[i] == GOES_BENEATH) {
				l->first_line += k + 1;
				l->line_count -= k + 1;
			}
			break;
		}
	}
}

size_t pprofprune_count(const struct pprofprune *prune, const uint32_t *locations, size_t n)
{
	bool kept = false;

	while (prune->used && n-- > 0) {
		uint8_t found = prune->found[locations[n]];

		if (found == STAYS)
			kept = true;
		else if (kept)
			return found == GOES ? n + 1 : n;
	}
	return 0;
}
