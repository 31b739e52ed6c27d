#include "ethereum/log/logrules.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/match.h"
#include "base/text/str.h"

enum {
	GROUPS = 12,       /* of a pattern */
	HASH_BYTES = 66,   /* 0x and 32 bytes */
	FIGURE_BYTES = 64, /* of the longest figure that is read */
};

/* The meaning of a named group. */
enum field {
	FIELD_NONE,
	FIELD_NUMBER,
	FIELD_FIRST,
	FIELD_BLOCKS,
	FIELD_HASH,
	FIELD_TXS,
	FIELD_GAS,
	FIELD_MGAS,
	FIELD_GGAS,
	FIELD_MGASPS,
	FIELD_GGASPS,
	FIELD_TIME,
	FIELD_MS,
	FIELD_US,
	FIELD_S,
};
static const char *const field_names[] = { "",     "number", "first",  "blocks", "hash", "txs", "gas", "mgas",
	                                   "ggas", "mgasps", "ggasps", "time",   "ms",   "us",  "s" };

struct logrule {
	const struct client_rule *rule;
	size_t count;
	struct {
		regex_t regex;
		enum field fields[GROUPS];
	} patterns[CLIENT_PATTERNS];
};

const struct client_rule *logrule_of(const struct logrule *r)
{
	return r->rule;
}

/* --- compiling --- */

static enum field find_field(const char *s, size_t n)
{
	for (size_t i = 1; i < ARRAY_LEN(field_names); i++)
		if (strlen(field_names[i]) == n && !strncmp(s, field_names[i], n))
			return i;
	return FIELD_NONE;
}

/* (?<name>...) is (...) for regcomp(), and the group is remembered. */
static int compile(const char *pattern, regex_t *regex, enum field *fields, struct err *err)
{
	_cleanup_(buf_done) struct buf plain = { 0 };
	unsigned group = 0;
	bool set = false;
	int r;

	buf_puts(&plain, "");
	for (const char *s = pattern; *s; s++) {
		buf_putc(&plain, *s);
		if (*s == '\\' && s[1]) {
			buf_putc(&plain, *++s);
		} else if (set) {
			set = *s != ']' || s[-1] == '[';
		} else if (*s == '[') {
			set = true;
		} else if (*s == '(' && ++group && str_starts(s + 1, "?<")) {
			size_t n = strcspn(s + 3, ">");
			enum field f = find_field(s + 3, n);

			if (!f || s[3 + n] != '>')
				return err_set(
					err, EINVAL,
					"(?<%.*s> is no part of a block: there are number, first, blocks, "
					"hash, txs, gas, mgas, ggas, mgasps, ggasps, time, ms, us and s",
					(int)MIN(n, (size_t)40), s + 3);
			if (group >= GROUPS)
				return err_set(err, EINVAL, "the pattern has more than %d groups",
				               GROUPS - 1);
			fields[group] = f;
			s += 3 + n;
		}
	}
	r = regcomp(regex, plain.data, REG_EXTENDED);
	if (r) {
		char text[160];

		regerror(r, regex, text, sizeof(text));
		return err_set(err, EINVAL, "the pattern is no extended regular expression: %s", text);
	}
	return 0;
}

int logrule_new(const struct client_rule *rule, struct logrule **ret, struct err *err)
{
	struct logrule *r = mem_alloc(sizeof(*r));

	r->rule = rule;
	for (size_t i = 0; i < CLIENT_PATTERNS && rule->patterns[i]; i++) {
		int e = compile(rule->patterns[i], &r->patterns[i].regex, r->patterns[i].fields, err);

		if (e < 0) {
			logrule_free(r);
			return e;
		}
		r->count++;
	}
	*ret = r;
	return 0;
}

void logrule_free(struct logrule *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		regfree(&r->patterns[i].regex);
	free(r);
}

/* --- matching --- */

static void set_count(struct logrule_found *f, const char *text, size_t n, uint64_t *to, uint32_t known)
{
	if (blocklog_parse_count(text, n, to) < 0)
		f->bad_figure = true;
	else
		f->said.block.known |= known;
}

static void set_time(struct logrule_found *f, char *text, double scale)
{
	double scaled;
	char *rest;

	for (char *c = text; (c = strchr(c, ','));)
		memmove(c, c + 1, strlen(c));
	scaled = strtod(text, &rest) * scale;
	f->has_time = true;
	if (*rest || !(scaled >= 0 && scaled < 9e15))
		f->bad_time = true;
	else
		f->lasted_ns = (uint64_t)(scaled + 0.5);
}

/* s: of the line, n bytes that are not 0. */
static void set_field(struct logrule_found *f, enum field field, const char *s, size_t n)
{
	struct blocklog_block *b = &f->said;
	char text[FIGURE_BYTES + 2];
	uint64_t value = 0;

	if (field == FIELD_HASH) {
		/* Short forms of a hash ("1a2b..3c4d") are no name for a block. */
		if (n == HASH_BYTES)
			memcpy(b->hash, s, n);
		return;
	}
	if (n > FIGURE_BYTES) {
		f->bad_figure = true;
		return;
	}
	memcpy(text, s, n);
	text[n] = text[n + 1] = 0;
	switch (field) {
	case FIELD_NUMBER:
		set_count(f, text, n, &b->block.number, BLOCK_NUMBER);
		break;
	case FIELD_FIRST:
		set_count(f, text, n, &b->first, 0);
		break;
	case FIELD_BLOCKS:
		set_count(f, text, n, &b->count, 0);
		break;
	case FIELD_TXS:
		set_count(f, text, n, &b->block.transactions, BLOCK_TRANSACTIONS);
		break;
	case FIELD_GAS:
		set_count(f, text, n, &b->block.gas, BLOCK_GAS);
		break;
	case FIELD_MGAS:
	case FIELD_GGAS:
		/* Mgas with its decimals is gas: the same as with the letter behind it. */
		text[n] = field == FIELD_MGAS ? 'M' : 'G';
		set_count(f, text, n + 1, &b->block.gas, BLOCK_GAS);
		break;
	case FIELD_MGASPS:
	case FIELD_GGASPS:
		text[n] = field == FIELD_MGASPS ? 'M' : 'G';
		if (!blocklog_parse_count(text, n + 1, &value))
			f->gas_per_s = value;
		break;
	case FIELD_TIME:
		f->has_time = true;
		f->bad_time |= blocklog_parse_time(text, n, &f->lasted_ns) < 0;
		break;
	case FIELD_MS:
		set_time(f, text, 1e6);
		break;
	case FIELD_US:
		set_time(f, text, 1e3);
		break;
	case FIELD_S:
		set_time(f, text, 1e9);
		break;
	case FIELD_HASH:
	case FIELD_NONE:
		break;
	}
}

/* A line for many blocks says the first of them, or how many there are. */
static void complete_group(struct logrule_found *f)
{
	struct blocklog_block *b = &f->said;

	if (b->first && b->first <= b->block.number)
		b->count = b->block.number - b->first + 1;
	else if (b->count && b->count <= b->block.number)
		b->first = b->block.number - b->count + 1;
	else
		b->count = 0;
	if (b->count <= 1) {
		b->count = 1;
		b->first = b->block.number;
	}
}

bool logrule_match(const struct logrule *r, const char *line, struct logrule_found *ret)
{
	*ret = (struct logrule_found){ 0 };
	for (size_t i = 0; i < r->count; i++) {
		regmatch_t groups[GROUPS];

		if (!match_regex(&r->patterns[i].regex, line, GROUPS, groups)) {
			if (!i)
				return false;
			continue;
		}
		for (size_t g = 1; g < GROUPS; g++)
			if (groups[g].rm_so >= 0 && groups[g].rm_eo > groups[g].rm_so &&
			    r->patterns[i].fields[g])
				set_field(ret, r->patterns[i].fields[g], line + groups[g].rm_so,
				          groups[g].rm_eo - groups[g].rm_so);
	}
	complete_group(ret);
	return true;
}
