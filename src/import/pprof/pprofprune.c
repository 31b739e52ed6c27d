#include "import/pprof/pprofprune.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/pprof/pprofmodel.h"
#include "profile/profile.h"

/* glibc keeps the states that it has met, one for each character at worst: now and then it begins anew. */
enum { PATTERN_MAX = 4 << 10, GROUPS_MAX = 256, NAME_MAX_BYTES = 4 << 10, FRESH_BYTES = 64 << 10 };
/* Bytes of the regexes times bytes of the names. Measured: a hostile regex takes two seconds and 250 MB then. */
static const uint64_t work_max = 1 << 24, tame_work_max = 1ULL << 36;
enum { STAYS, GOES, GOES_BENEATH }; /* what a location is to a stack; in the last case itself stays */

/* Repeats of repeats and references back take for ever, and mean something else in another dialect. */
static bool plain(const char *regex)
{
	int groups = 0;

	if (strlen(regex) > PATTERN_MAX || strchr(regex, '{') || strstr(regex, "(?") || strstr(regex, "[["))
		return false;
	for (const char *p = regex; *p; p++) {
		groups += *p == '(';
		if (*p == '\\' && (!*++p || isalnum((unsigned char)*p)))
			return false;
	}
	return groups <= GROUPS_MAX;
}

/* "a|b.*": what repeats is the end of an alternative. Such a regex never has many states. */
static bool tame(const char *regex)
{
	int depth = 0;

	for (const char *p = regex; *p; p++) {
		if (*p == '\\')
			p++;
		else if (*p == '*' || *p == '+') {
			if (depth || p == regex || p[-1] != '.' || (p[1] && p[1] != '|'))
				return false;
		} else {
			depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
		}
	}
	return true;
}

static bool compile(regex_t *to, const char *regex)
{
	_cleanup_free_ char *whole = mem_printf("^(%s)$", regex);

	return plain(regex) && !regcomp(to, whole, REG_EXTENDED | REG_NOSUB);
}

static bool compile_both(struct pprofprune *prune)
{
	if (!compile(&prune->drop, prune->drop_text))
		return false;
	if (*prune->keep_text && !compile(&prune->keep, prune->keep_text)) {
		regfree(&prune->drop);
		return false;
	}
	return true;
}

static void free_both(struct pprofprune *prune)
{
	regfree(&prune->drop);
	if (*prune->keep_text)
		regfree(&prune->keep);
}

bool pprofprune_init(struct pprofprune *prune, const char *drop, const char *keep)
{
	*prune = (struct pprofprune){ .drop_text = drop, .keep_text = keep };
	prune->used = *drop && compile_both(prune);
	return prune->used || !*drop;
}

void pprofprune_done(struct pprofprune *prune)
{
	if (prune->used)
		free_both(prune);
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

	return strlen(text) <= NAME_MAX_BYTES && !regexec(&prune->drop, text, 0, NULL, 0) &&
	       !(*prune->keep_text && !regexec(&prune->keep, text, 0, NULL, 0));
}

/* Functions are matched once. False: there are too many of them. */
static bool match_functions(struct pprofprune *prune, const struct pprofmodel *m, uint8_t *drops)
{
	uint64_t work = 0, states = strlen(prune->drop_text) + strlen(prune->keep_text);
	uint64_t most = tame(prune->drop_text) && tame(prune->keep_text) ? tame_work_max : work_max;
	size_t fresh = 0;

	for (size_t i = 0; i < m->functions.n; i++)
		work += states * strlen(profile_str(m->p, m->functions.v[i].name));
	for (size_t i = 0; i < m->functions.n && work <= most; i++) {
		const char *name = profile_str(m->p, m->functions.v[i].name);

		drops[i] = *name && matches(prune, name);
		fresh += strlen(name);
		if (fresh < FRESH_BYTES)
			continue;
		fresh = 0;
		free_both(prune);
		prune->used = compile_both(prune);
		if (!prune->used)
			return false;
	}
	return work <= most;
}

bool pprofprune_find(struct pprofprune *prune, struct pprofmodel *m)
{
	_cleanup_free_ uint8_t *drops = mem_alloc(m->functions.n + 1);

	if (!prune->used)
		return true;
	prune->found = mem_alloc(m->locations.n + 1);
	if (!match_functions(prune, m, drops))
		return false;
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
	return true;
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
