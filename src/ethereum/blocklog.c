#include "ethereum/blocklog.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text/match.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "ethereum/clients.h"

enum {
	GROUPS = 12,       /* of a pattern */
	REMEMBERED = 64,   /* blocks, to tell what comes twice */
	BEGUN = 64,        /* blocks under way at a time */
	ASKED = 8,         /* blocks after a line that began one, in which hints are not believed */
};
static const uint64_t longest_ns = 3600000000000ULL; /* no block takes an hour */

/* The meaning of a named group. */
enum field {
	FIELD_NONE, FIELD_NUMBER, FIELD_HASH, FIELD_TXS, FIELD_GAS, FIELD_MGAS, FIELD_MGASPS, FIELD_TIME,
	FIELD_MS, FIELD_US, FIELD_S,
};
static const char *const field_names[] = { "", "number", "hash", "txs", "gas", "mgas", "mgasps", "time", "ms", "us",
					   "s" };

struct compiled {
	const struct client_rule *rule;
	size_t count;
	struct {
		regex_t regex;
		enum field fields[GROUPS];
	} patterns[CLIENT_PATTERNS];
};

struct begun {
	bool numbered;
	uint64_t number, time_ns;
};

struct blocklog {
	blocklog_fn *fn;
	void *context;
	VEC(struct compiled *) rules;
	const char *client;         /* the client whose rules apply; NULL = not recognized yet */
	struct client_rule own;            /* the user's */
	struct blocklog_block open; /* a finished block that later lines may complete */
	bool is_open;
	struct blocklog_block next; /* what is known of the next block */
	bool gas_falls;             /* sums that do not grow are none */
	VEC(struct begun) begun;
	uint64_t hint_ns, last_end_ns;
	unsigned asked;             /* so many blocks more are expected to begin by a line that says so */
	struct blocklog_block seen[REMEMBERED];
	size_t seen_count;
	VEC(struct blocklog_block) group; /* whole, and seen at one time: others may be, too */
	struct blocklog_counts counts;
};

const struct blocklog_counts *blocklog_counted(const struct blocklog *m)
{
	return &m->counts;
}

/* --- patterns --- */

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
				return err_set(err, EINVAL, "(?<%.*s> is no part of a block: there are number, hash, "
					       "txs, gas, mgas, time, ms, us and s", (int)MIN(n, (size_t)40), s + 3);
			if (group >= GROUPS)
				return err_set(err, EINVAL, "the pattern has more than %d groups", GROUPS - 1);
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

static void free_compiled(struct compiled *c)
{
	for (size_t i = 0; i < c->count; i++)
		regfree(&c->patterns[i].regex);
	free(c);
}

static int add_rule(struct blocklog *m, const struct client_rule *rule, struct err *err)
{
	struct compiled *c = mem_alloc(sizeof(*c));

	c->rule = rule;
	for (size_t i = 0; i < CLIENT_PATTERNS && rule->patterns[i]; i++) {
		int r = compile(rule->patterns[i], &c->patterns[i].regex, c->patterns[i].fields, err);

		if (r < 0) {
			free_compiled(c);
			return r;
		}
		c->count++;
	}
	vec_push(&m->rules, c);
	return 0;
}

static int add_rules(struct blocklog *m, const char *client, const char *pattern, struct err *err)
{
	const struct client *known = client ? client_find(client) : NULL;
	int r = 0;

	if (pattern) {
		if (!strstr(pattern, "(?<number>"))
			return err_set(err, EINVAL, "the pattern of a block must say where its number is: "
				       "'Block (?<number>[0-9]+) in (?<ms>[0-9.]+) ms'");
		m->own = (struct client_rule){ "own", ROLE_DONE, "", { pattern } };
		return add_rule(m, &m->own, err);
	}
	if (client && !known) {
		_cleanup_free_ char *verified = client_names(true), *others = client_names(false);

		return err_set(err, EINVAL, "no lines of a client '%.60s' are known; there are: %s, %s", client, verified, others);
	}
	m->client = known ? known->rules : NULL;
	for (const struct client_rule *rule = client_rules; rule->client && r >= 0; rule++)
		if (!known || !strcmp(known->rules, rule->client))
			r = add_rule(m, rule, err);
	return r;
}

int blocklog_new(const char *client, const char *pattern, blocklog_fn *fn, void *context, struct blocklog **ret,
		 struct err *err)
{
	struct blocklog *m = mem_alloc(sizeof(*m));
	int r;

	m->fn = fn;
	m->context = context;
	r = add_rules(m, client, pattern, err);
	if (r < 0) {
		blocklog_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void blocklog_free(struct blocklog *m)
{
	if (!m)
		return;
	vec_done_each(&m->rules, e, free_compiled(*e));
	vec_done(&m->begun);
	vec_done(&m->group);
	free(m);
}

/* --- blocks --- */

static bool same_block(const struct blocklog_block *a, const struct blocklog_block *b)
{
	if (a->block.number != b->block.number)
		return false;
	if (*a->hash && *b->hash)
		return !strcmp(a->hash, b->hash);
	/* Lines about one block differ in how they round its gas. */
	if (a->block.known & b->block.known & BLOCK_GAS)
		return MAX(a->block.gas, b->block.gas) - MIN(a->block.gas, b->block.gas) <=
		       MAX(a->block.gas, b->block.gas) / 50 + 10000;
	return true;
}

/* The weight of a block when a time is shared: an empty block takes time, too. */
static double weight(const struct blocklog_block *b)
{
	return 21000.0 + (b->block.known & BLOCK_GAS ? b->block.gas : 0);
}

/*
 * Lines that were read at once have one time. Of blocks among them that begin by a line or a hint, only the
 * first has a known time: the others would take none. They followed each other, so the time is shared, by
 * gas.
 */
static void share_time(struct blocklog *m)
{
	uint64_t start, end, at;
	double all = 0, sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < m->group.n; i++) {
		all += weight(&m->group.v[i]);
		n += !m->group.v[i].timed;
	}
	if (m->group.n < 2 || !n || !m->group.v[0].timed || m->group.v[0].told)
		return;
	at = start = m->group.v[0].start_ns;
	end = m->group.v[0].end_ns;
	if (end - start < m->group.n)
		return;
	for (size_t i = 0; i < m->group.n; i++) {
		struct blocklog_block *b = &m->group.v[i];

		if (b->told)
			return;
		sum += weight(b);
		b->start_ns = at;
		b->end_ns = i + 1 < m->group.n ? MAX(at + 1, start + (uint64_t)((end - start) * (sum / all))) : end;
		b->timed = true;
		at = b->end_ns;
	}
	m->counts.shared += m->group.n;
}

/* The time has advanced: hands out the blocks of the last one. */
static void release(struct blocklog *m)
{
	share_time(m);
	for (size_t i = 0; i < m->group.n; i++)
		m->fn(m->context, &m->group.v[i]);
	m->group.n = 0;
}

/* The block is complete: it is kept until the time advances, unless it was reported before. */
static void close_block(struct blocklog *m)
{
	struct blocklog_block *b = &m->open;
	size_t known = MIN(m->seen_count, (size_t)REMEMBERED);

	if (!m->is_open)
		return;
	m->is_open = false;
	for (size_t i = 0; i < known; i++) {
		if (same_block(&m->seen[i], b)) {
			m->counts.repeated++;
			return;
		}
		b->again |= m->seen[i].block.number == b->block.number;
	}
	m->counts.reorged += b->again;
	if (known)
		m->counts.out_of_order += m->seen[(m->seen_count - 1) % REMEMBERED].block.number > b->block.number;
	m->seen[m->seen_count++ % REMEMBERED] = *b;
	m->counts.blocks++;
	if (m->group.n && (m->group.v[0].end_ns != b->end_ns || m->group.n == REMEMBERED))
		release(m);
	vec_push(&m->group, *b);
}

void blocklog_flush(struct blocklog *m)
{
	close_block(m);
	release(m);
}

static void add_begun(struct blocklog *m, const struct blocklog_block *b, uint64_t time_ns)
{
	m->asked = ASKED;
	if (m->begun.n == BEGUN) {
		memmove(m->begun.v, m->begun.v + 1, (BEGUN - 1) * sizeof(*m->begun.v));
		m->begun.n--;
	}
	vec_push(&m->begun, (struct begun){ b->block.known & BLOCK_NUMBER, b->block.number, time_ns });
}

/* When the block began, by lines before: one with its number, else the oldest of those without. The first block
 * may have begun before the log was read, and a line without a number may be about the next one. */
static bool take_begun(struct blocklog *m, uint64_t number, uint64_t *ret_ns)
{
	bool hint = !m->asked;

	m->asked -= m->asked > 0;
	for (size_t i = 0; i < m->begun.n; i++) {
		bool sure = m->begun.v[i].numbered || m->last_end_ns;

		if (m->begun.v[i].numbered && m->begun.v[i].number != number)
			continue;
		*ret_ns = m->begun.v[i].time_ns;
		m->begun.n--;
		memmove(m->begun.v + i, m->begun.v + i + 1, (m->begun.n - i) * sizeof(*m->begun.v));
		return sure;
	}
	if (!hint || !m->last_end_ns || m->hint_ns < m->last_end_ns)
		return false;
	*ret_ns = m->hint_ns;
	return true;
}

static void done(struct blocklog *m, struct blocklog_block *b, uint64_t lasted_ns, uint64_t time_ns)
{
	uint64_t start;
	bool begun = take_begun(m, b->block.number, &start);

	b->end_ns = b->start_ns = b->seen_ns = time_ns;
	if (lasted_ns && (lasted_ns > longest_ns || lasted_ns > time_ns)) {
		m->counts.bad_times++;
	} else if (lasted_ns) {
		b->start_ns = time_ns - lasted_ns;
		b->timed = b->told = true;
	} else if (begun) {
		/* A block that was requested while another one was processed begins after that one. */
		b->start_ns = MIN(MAX(start, m->last_end_ns), time_ns);
		b->timed = b->start_ns < time_ns && time_ns - b->start_ns <= longest_ns;
		if (!b->timed)
			b->start_ns = time_ns;
	}
	m->last_end_ns = time_ns;
	m->open = *b;
	m->is_open = true;
	m->next = (struct blocklog_block){ 0 };
	m->gas_falls = false;
}

/* --- lines --- */

struct found {
	struct blocklog_block said;
	uint64_t lasted_ns;
	double mgasps;
	bool bad_time;
};

static void set_field(struct found *f, enum field field, const char *s, size_t n)
{
	static const uint64_t scales[] = { [FIELD_MS] = 1000000, [FIELD_US] = 1000, [FIELD_S] = 1000000000 };
	struct blocklog_block *b = &f->said;
	char text[64];
	uint64_t value = 0;

	if (!n || n >= sizeof(text))
		return;
	memcpy(text, s, n);
	text[n] = 0;
	switch (field) {
	case FIELD_NUMBER:
		if (!blocklog_parse_count(s, n, &b->block.number))
			b->block.known |= BLOCK_NUMBER;
		break;
	case FIELD_TXS:
		if (!blocklog_parse_count(s, n, &b->block.transactions))
			b->block.known |= BLOCK_TRANSACTIONS;
		break;
	case FIELD_GAS:
	case FIELD_MGAS:
		/* Mgas with its decimals is gas: the same as with the letter behind it. */
		if (field == FIELD_MGAS)
			text[n++] = 'M';
		if (!blocklog_parse_count(text, n, &b->block.gas))
			b->block.known |= BLOCK_GAS;
		break;
	case FIELD_MGASPS:
		text[n++] = 'M';
		if (!blocklog_parse_count(text, n, &value))
			f->mgasps = value;
		break;
	case FIELD_TIME:
		f->bad_time |= blocklog_parse_time(s, n, &f->lasted_ns) < 0;
		break;
	case FIELD_MS:
	case FIELD_US:
	case FIELD_S: {
		double scaled;
		char *rest;

		for (char *c = text; (c = strchr(c, ','));)
			memmove(c, c + 1, strlen(c));
		scaled = strtod(text, &rest) * scales[field];
		if (*rest || !(scaled >= 0 && scaled < 9e15))
			f->bad_time = true;
		else
			f->lasted_ns = scaled;
		break;
	}
	case FIELD_HASH:
	case FIELD_NONE:
		break;
	}
}

static bool match(const struct compiled *c, const char *line, struct found *f)
{
	for (size_t i = 0; i < c->count; i++) {
		regmatch_t groups[GROUPS];

		if (!match_regex(&c->patterns[i].regex, line, GROUPS, groups)) {
			if (!i)
				return false;
			continue;
		}
		for (size_t g = 1; g < GROUPS; g++) {
			size_t n = groups[g].rm_eo - groups[g].rm_so;

			if (groups[g].rm_so < 0 || !c->patterns[i].fields[g])
				continue;
			/* Short forms of a hash ("1a2b..3c4d") are no name for a block. */
			if (c->patterns[i].fields[g] == FIELD_HASH && n == 66)
				memcpy(f->said.hash, line + groups[g].rm_so, n);
			set_field(f, c->patterns[i].fields[g], line + groups[g].rm_so, n);
		}
	}
	return true;
}

/* Copies the known fields of b to to; keeps the fields that are known already. */
static void tell(struct blocklog_block *to, const struct blocklog_block *b)
{
	if (b->block.known & BLOCK_GAS)
		to->block.gas = b->block.gas;
	if (b->block.known & BLOCK_TRANSACTIONS)
		to->block.transactions = b->block.transactions;
	if (*b->hash)
		memcpy(to->hash, b->hash, sizeof(to->hash));
	to->block.known |= b->block.known;
}

static void line_done(struct blocklog *m, const struct compiled *c, struct found *f, uint64_t time_ns)
{
	struct blocklog_block b = m->next;

	close_block(m);
	m->counts.bad_times += f->bad_time;
	tell(&b, &f->said);
	b.block.number = f->said.block.number;
	b.client = m->client = c->rule->client;
	if (f->mgasps && f->lasted_ns && !(b.block.known & BLOCK_GAS)) {
		double gas = f->mgasps * f->lasted_ns / 1e9;

		b.block.gas = gas < 9e15 ? (uint64_t)gas : 0;
		b.block.known |= gas < 9e15 ? BLOCK_GAS : 0;
	}
	done(m, &b, f->lasted_ns, time_ns);
}

/* Gas before a block is its sum so far, a line for each transaction; sums that do not grow are not that. */
static void line_before(struct blocklog *m, const struct blocklog_block *b)
{
	if (!(b->block.known & BLOCK_GAS))
		return;
	m->gas_falls |= m->next.block.known & BLOCK_GAS && b->block.gas <= m->next.block.gas;
	m->next.block.gas = b->block.gas;
	m->next.block.known |= BLOCK_GAS;
}

static void line_of_rule(struct blocklog *m, const struct compiled *c, struct found *f, uint64_t time_ns)
{
	switch (c->rule->role) {
	case ROLE_BEGIN:
		add_begun(m, &f->said, time_ns);
		break;
	case ROLE_HINT:
		m->hint_ns = time_ns;
		break;
	case ROLE_BEFORE:
		line_before(m, &f->said);
		break;
	case ROLE_COUNT:
		m->next.block.transactions++;
		m->next.block.known |= BLOCK_TRANSACTIONS;
		break;
	case ROLE_DONE:
		if (m->gas_falls)
			m->next.block.known &= ~BLOCK_GAS;
		if (c->rule->says_all && !m->next.block.known) {
			m->next.block.known = BLOCK_GAS | BLOCK_TRANSACTIONS;
			m->next.block.gas = m->next.block.transactions = 0;
		}
		line_done(m, c, f, time_ns);
		break;
	case ROLE_AFTER:
	case ROLE_CLOSE:
		if (m->is_open)
			tell(&m->open, &f->said);
		if (c->rule->role == ROLE_CLOSE)
			close_block(m);
		break;
	}
}

void blocklog_line(struct blocklog *m, char *line, size_t n, uint64_t time_ns)
{
	n = blocklog_plain(line, n);
	if (!n)
		return;
	if (m->group.n && m->group.v[0].end_ns != time_ns)
		release(m);
	for (size_t i = 0; i < m->rules.n; i++) {
		const struct compiled *c = m->rules.v[i];
		struct found f = { 0 };

		if ((m->client && strcmp(m->client, c->rule->client)) || !strstr(line, c->rule->needle))
			continue;
		if (c->rule->role == ROLE_HINT && m->asked)
			return; /* thousands of hints, which do not count while begin lines come */
		if (!match(c, line, &f) || (c->rule->role == ROLE_DONE && !(f.said.block.known & BLOCK_NUMBER))) {
			/* Until a client is recognized, a line with only the needle is another program's;
			 * a user's own pattern has no needle by which a cut line could be recognized. */
			m->counts.bad_lines += m->client && c->rule->role == ROLE_DONE && c->rule != &m->own;
			continue;
		}
		line_of_rule(m, c, &f, time_ns);
		return;
	}
}
