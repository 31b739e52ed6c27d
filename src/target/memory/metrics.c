#include "target/memory/metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { NAME_MOST = 4096 };

const char *const metrics_names[METRICS_KEYS] = {
	[METRICS_ALLOCATED] = "allocated", [METRICS_ACTIVE] = "active",     [METRICS_METADATA] = "metadata",
	[METRICS_RESIDENT] = "resident",   [METRICS_MAPPED] = "mapped",     [METRICS_RETAINED] = "retained",
};

/* Is word in text, between characters that are not of a word? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at++)
		if ((at == text || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[n]))
			return true;
	return false;
}

/* Returns the key of a metric name with its labels; METRICS_KEYS: none. */
static enum metrics_key key_of(const char *name)
{
	const char *behind = strstr(name, "jemalloc");

	/* Counters of allocations say the same words, and so do parts of the whole. */
	if (!behind || has_word(name, "total") || strstr(name, "arena") || strstr(name, "thread"))
		return METRICS_KEYS;
	for (int i = 0; i < METRICS_KEYS; i++)
		if (has_word(behind, metrics_names[i]))
			return i;
	return METRICS_KEYS;
}

/* The end of the name and its labels: a space that is not in quotes. */
static const char *name_end(const char *line, const char *end)
{
	bool quoted = false;
	const char *p = line;

	for (; p < end; p++) {
		if (*p == '\\' && quoted && p + 1 < end)
			p++;
		else if (*p == '"')
			quoted = !quoted;
		else if ((*p == ' ' || *p == '\t') && !quoted && (p == line || p[-1] != ','))
			break;
	}
	return p;
}

/* reth_jemalloc_active{chain="mainnet"} 1.2345e+10 */
static void parse_line(const char *line, const char *end, struct metrics *m)
{
	const char *stop = name_end(line, end);
	char name[NAME_MOST], *number_end;
	size_t n = MIN((size_t)(stop - line), sizeof(name) - 1);
	enum metrics_key key;
	double value;

	if (stop >= end)
		return;
	for (size_t i = 0; i < n; i++)
		name[i] = tolower((unsigned char)line[i]);
	name[n] = 0;
	key = key_of(name);
	if (key == METRICS_KEYS || m->known[key])
		return;
	value = strtod(stop, &number_end);
	if (number_end == stop || number_end > end || !isfinite(value) || value < 0 || value > 0x1p62)
		return;
	m->bytes[key] = value;
	m->known[key] = true;
}

bool metrics_parse(const char *text, struct metrics *ret)
{
	*ret = (struct metrics){ 0 };
	for (const char *p = text; *p;) {
		const char *end = p + strcspn(p, "\n");

		if (*p != '#')
			parse_line(p, end, ret);
		p = *end ? end + 1 : end;
	}
	for (int i = 0; i < METRICS_KEYS; i++)
		if (ret->known[i])
			return true;
	return false;
}
