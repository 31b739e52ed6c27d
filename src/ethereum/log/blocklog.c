#include "ethereum/log/blocklog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "ethereum/clients.h"
#include "ethereum/log/logline.h"
#include "ethereum/log/logrules.h"

enum {
	REMEMBERED = 64,   /* blocks, to tell what comes twice */
	BEGUN = 64,        /* blocks under way at a time */
	ASKED = 8,         /* blocks after a line that began one, in which hints are not believed */
	LEAST_GAS = 21000, /* of a transaction */
	SUMS_LIKELY = 2,   /* pieces of evidence that lines of gas are sums */
};
static const uint64_t longest_ns = 3600000000000ULL; /* no block takes an hour */
/* A block that is executed takes longer, and does less: faster than that, only its insertion was timed. */
static const uint64_t insertion_ns = 100000, insertion_gas_per_ns = 50;

/* How the lines before a block tell its gas. */
enum gas_lines { GAS_UNKNOWN, GAS_SUMS, GAS_EACH };

struct begun {
	bool numbered;
	uint64_t number, time_ns;
};

struct blocklog {
	blocklog_fn *fn;
	void *context;
	VEC(struct logrule *) rules;
	bool named;                 /* the client is the user's choice: no other is listened to */
	const char *client;         /* the client that speaks; NULL = not recognized yet */
	struct client_rule own;     /* the user's */
	struct buf text;            /* the line, plain */
	struct blocklog_block open; /* a finished block that later lines may complete */
	bool is_open;
	struct blocklog_block next; /* what is known of the next block */
	struct {
		uint64_t first, last, sum, step; /* step: by which it grew last */
		unsigned n;
	} gas;                      /* of the lines before the next block */
	enum gas_lines gas_lines;
	unsigned gas_evidence;      /* that they are sums */
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

/* --- its life --- */

static int add_rule(struct blocklog *m, const struct client_rule *rule, struct err *err)
{
	struct logrule *r = NULL;
	int e = logrule_new(rule, &r, err);

	if (!e)
		vec_push(&m->rules, r);
	return e;
}

static int add_rules(struct blocklog *m, const char *client, const char *pattern, struct err *err)
{
	const struct client *known = client ? client_find(client) : NULL;
	int r = 0;

	if (pattern) {
		if (!strstr(pattern, "(?<number>"))
			return err_set(err, EINVAL, "the pattern of a block must say where its number is: "
				       "'Block (?<number>[0-9]+) in (?<ms>[0-9.]+) ms'");
		m->own = (struct client_rule){ "own", LINE_DONE, "", { pattern }, .vague = true };
		return add_rule(m, &m->own, err);
	}
	if (client && !known) {
		_cleanup_free_ char *verified = client_names(true), *others = client_names(false);

		return err_set(err, EINVAL, "no lines of a client '%.60s' are known; there are: %s, %s", client, verified, others);
	}
	m->named = known;
	m->client = known ? known->rules : NULL;
	for (const struct client_rule *rule = client_rules; rule->needle && r >= 0; rule++)
		if (!known || !rule->client || !strcmp(known->rules, rule->client))
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
	vec_done_each(&m->rules, e, logrule_free(*e));
	vec_done(&m->begun);
	vec_done(&m->group);
	buf_done(&m->text);
	free(m);
}

/* --- blocks --- */

static bool same_block(const struct blocklog_block *a, const struct blocklog_block *b)
{
	if (a->block.number != b->block.number || a->count != b->count)
		return false;
	if (*a->hash && *b->hash)
		return !strcmp(a->hash, b->hash);
	/* Lines about one block differ in how they round its gas. */
	if (a->block.known & b->block.known & BLOCK_GAS)
		return MAX(a->block.gas, b->block.gas) - MIN(a->block.gas, b->block.gas) <=
		       MAX(a->block.gas, b->block.gas) / 50 + 10000;
	return true;
}

/* Adds what another line says about the same block. The line about a slow block has exact gas; its time leaves out what
 * the client's own has. */
static void merge(struct blocklog_block *to, const struct blocklog_block *b)
{
	bool exact = b->slow && !to->slow;

	if (b->block.known & BLOCK_GAS && (exact || !(to->block.known & BLOCK_GAS)))
		to->block.gas = b->block.gas;
	if (b->block.known & BLOCK_TRANSACTIONS && (exact || !(to->block.known & BLOCK_TRANSACTIONS)))
		to->block.transactions = b->block.transactions;
	to->block.known |= b->block.known;
	if (!*to->hash)
		memcpy(to->hash, b->hash, sizeof(to->hash));
	if (!to->client)
		to->client = b->client;
	if (b->lasted_ns && (!to->lasted_ns || (b->own && !to->own && !b->inserted))) {
		to->lasted_ns = b->lasted_ns;
		to->inserted = b->inserted;
	}
	if (b->timed && (!to->told || (b->own && !to->own))) {
		to->timed = b->timed;
		to->told = b->told;
		to->start_ns = b->start_ns;
		to->end_ns = b->end_ns;
		to->seen_ns = b->seen_ns;
	}
	to->own |= b->own;
	to->slow |= b->slow;
}

/* Is the line of another kind than those that told of the block so far? */
static bool tells_more(const struct blocklog_block *known, const struct blocklog_block *b)
{
	return (b->own && !known->own) || (b->slow && !known->slow);
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

/* A line for a block that is closed: what it says goes to the block, which may have been handed out. */
static void amend(struct blocklog *m, struct blocklog_block *known, const struct blocklog_block *b)
{
	struct blocklog_block again;

	if (!tells_more(known, b)) {
		m->counts.repeated++;
		return;
	}
	m->counts.merged++;
	merge(known, b);
	for (size_t i = 0; i < m->group.n; i++)
		if (m->group.v[i].order == known->order) {
			merge(&m->group.v[i], b);
			return;
		}
	again = *known;
	again.amends = true;
	m->fn(m->context, &again);
}

/* Were all blocks of this group reported one by one, or is this one part of a group? */
static bool is_covered(const struct blocklog *m, const struct blocklog_block *b, size_t known)
{
	uint64_t n = 0;

	for (size_t i = 0; i < known; i++) {
		const struct blocklog_block *s = &m->seen[i];

		if (b->count == 1 && s->count > 1 && b->block.number >= s->first && b->block.number <= s->block.number)
			return true;
		n += s->count == 1 && s->block.number >= b->first && s->block.number <= b->block.number;
	}
	return b->count > 1 && n >= b->count;
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
			amend(m, &m->seen[i], b);
			return;
		}
		b->again |= m->seen[i].block.number == b->block.number && m->seen[i].count == b->count;
	}
	if (is_covered(m, b, known)) {
		m->counts.repeated++;
		return;
	}
	m->counts.reorged += b->again;
	if (known)
		m->counts.out_of_order += m->seen[(m->seen_count - 1) % REMEMBERED].block.number > b->block.number;
	b->order = m->counts.blocks++;
	m->counts.groups += b->count > 1;
	m->counts.inserted += b->inserted;
	m->seen[m->seen_count++ % REMEMBERED] = *b;
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

/* The span of a block: as long as its line says, or from the line that began it. */
static void set_span(struct blocklog *m, struct blocklog_block *b, uint64_t time_ns)
{
	uint64_t start;
	bool begun = take_begun(m, b->block.number, &start);

	b->end_ns = b->start_ns = b->seen_ns = time_ns;
	if (b->lasted_ns && !b->inserted) {
		b->start_ns = time_ns - b->lasted_ns;
		b->timed = b->told = true;
	} else if (begun) {
		/* A block that was requested while another one was processed begins after that one. */
		b->start_ns = MIN(MAX(start, m->last_end_ns), time_ns);
		b->timed = b->start_ns < time_ns && time_ns - b->start_ns <= longest_ns;
		if (!b->timed)
			b->start_ns = time_ns;
	}
}

/* A block, as one line says it. When a block is open, and this is the same, both make one. */
static void done(struct blocklog *m, struct blocklog_block *b, uint64_t time_ns)
{
	if (m->is_open && same_block(&m->open, b)) {
		if (tells_more(&m->open, b))
			m->counts.merged++;
		else
			m->counts.repeated++;
		set_span(m, b, time_ns);
		merge(&m->open, b);
	} else {
		close_block(m);
		set_span(m, b, time_ns);
		m->open = *b;
		m->is_open = true;
	}
	m->last_end_ns = time_ns;
}

/* --- lines --- */

/* Copies the known fields of b to to; the others stay as they are. */
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

static void forget_next(struct blocklog *m)
{
	m->next = (struct blocklog_block){ 0 };
	memset(&m->gas, 0, sizeof(m->gas));
}

/* The lines after this one are of another client: what was said of its next block is no more. */
static void change_client(struct blocklog *m, const char *client)
{
	if (m->client && !strcmp(m->client, client))
		return;
	if (m->client) {
		m->counts.clients++;
		close_block(m);
		forget_next(m);
		m->begun.n = 0;
		m->hint_ns = m->asked = 0;
	}
	m->client = client;
}

/* Gas that is missing, or rounds to nothing, follows from the time and the gas per second, if the line has them. */
static void derive_gas(struct blocklog_block *b, const struct logrule_found *f)
{
	double gas = f->gas_per_s * f->lasted_ns / 1e9;

	if ((b->block.known & BLOCK_GAS && b->block.gas) || !(gas >= 1 && gas < 9e15))
		return;
	b->block.gas = (uint64_t)(gas + 0.5);
	b->block.known |= BLOCK_GAS;
}

static void set_duration(struct blocklog *m, const struct client_rule *rule, struct blocklog_block *b,
			 const struct logrule_found *f, uint64_t time_ns)
{
	if (f->has_time && (f->bad_time || !f->lasted_ns || f->lasted_ns > longest_ns || f->lasted_ns > time_ns)) {
		m->counts.bad_times++;
		return;
	}
	b->lasted_ns = f->lasted_ns;
	b->inserted = rule->insertion && b->lasted_ns &&
		      (b->lasted_ns < insertion_ns || (b->block.known & BLOCK_GAS && b->block.gas / b->lasted_ns >= insertion_gas_per_ns));
}

/* Whose line is it, where several clients have the same? By how it is written, else by the lines before. */
static const char *find_speaker(const struct blocklog *m)
{
	for (size_t i = 0; i < m->rules.n && !m->named; i++) {
		const struct client_rule *rule = logrule_of(m->rules.v[i]);
		struct logrule_found f;

		if (rule->role == LINE_DRESS && strstr(m->text.data, rule->needle) &&
		    logrule_match(m->rules.v[i], m->text.data, &f))
			return rule->client;
	}
	return m->client;
}

static void take_gas(struct blocklog *m);

static void line_done(struct blocklog *m, const struct client_rule *rule, struct logrule_found *f, uint64_t time_ns)
{
	struct blocklog_block b = { 0 };

	if (rule->client) {
		change_client(m, rule->client);
		take_gas(m);
		if (rule->says_all && !m->next.block.known)
			m->next.block.known = BLOCK_GAS | BLOCK_TRANSACTIONS;
		b = m->next;
		forget_next(m);
	}
	m->counts.bad_figures += f->bad_figure;
	tell(&b, &f->said);
	b.block.number = f->said.block.number;
	b.first = f->said.first;
	b.count = f->said.count;
	b.client = rule->client ? rule->client : find_speaker(m);
	b.own = rule->client;
	b.slow = !rule->client;
	derive_gas(&b, f);
	set_duration(m, rule, &b, f, time_ns);
	done(m, &b, time_ns);
}

/*
 * A line for each transaction before its block: its gas, or the sum so far, by the client's version. Where that is not
 * known, a value that falls, or grows by less than a transaction costs, is no sum. Values that grow by more may be either;
 * they are the more likely sums, the more there are, and above all where they grow by what was there before.
 */
static void line_before(struct blocklog *m, uint64_t gas)
{
	uint64_t step = gas - m->gas.last;

	if (m->gas.n && gas < m->gas.last + LEAST_GAS) {
		if (m->gas_lines == GAS_UNKNOWN)
			m->gas_lines = GAS_EACH;
	} else if (m->gas.n && m->gas_evidence < SUMS_LIKELY) {
		m->gas_evidence += step == LEAST_GAS || step == m->gas.first || step == m->gas.step ? 2 : 1;
	}
	m->gas.step = m->gas.n ? step : 0;
	m->gas.first = m->gas.n ? m->gas.first : gas;
	m->gas.last = gas;
	m->gas.sum += gas;
	m->gas.n++;
}

static void take_gas(struct blocklog *m)
{
	bool sums = m->gas_lines == GAS_SUMS || (m->gas_lines == GAS_UNKNOWN && m->gas_evidence >= SUMS_LIKELY);

	if (!m->gas.n)
		return;
	m->next.block.gas = sums ? m->gas.last : m->gas.sum;
	m->next.block.known |= BLOCK_GAS;
}

static void line_of_rule(struct blocklog *m, const struct client_rule *rule, struct logrule_found *f, uint64_t time_ns)
{
	switch (rule->role) {
	case LINE_BEGIN:
		add_begun(m, &f->said, time_ns);
		break;
	case LINE_HINT:
		m->hint_ns = time_ns;
		break;
	case LINE_BEFORE:
		if (f->said.block.known & BLOCK_GAS)
			line_before(m, f->said.block.gas);
		break;
	case LINE_COUNT:
		m->next.block.transactions++;
		m->next.block.known |= BLOCK_TRANSACTIONS;
		break;
	case LINE_DONE:
		line_done(m, rule, f, time_ns);
		break;
	case LINE_AFTER:
	case LINE_CLOSE:
		if (m->is_open && m->open.slow)
			f->said.block.known &= ~m->open.block.known; /* its figures are exact */
		if (m->is_open)
			tell(&m->open, &f->said);
		if (rule->role == LINE_CLOSE)
			close_block(m);
		break;
	case LINE_SUMS:
	case LINE_EACH:
		m->gas_lines = rule->role == LINE_SUMS ? GAS_SUMS : GAS_EACH;
		break;
	case LINE_OTHER:
	case LINE_DRESS:
		break;
	}
}

/* A line that ends a block counts whoever spoke before; all others belong to the client that speaks. */
static bool applies(const struct blocklog *m, const struct client_rule *rule)
{
	if (rule->role == LINE_DRESS)
		return false;
	return rule->role == LINE_DONE || rule->role == LINE_OTHER || !rule->client || !m->client ||
	       !strcmp(m->client, rule->client);
}

static void make_plain(struct blocklog *m, const char *line, size_t n)
{
	m->text.n = 0;
	logline_plain(&m->text, line, n);
}

/* A user's own pattern may be about the JSON itself. */
static void line_of_users(struct blocklog *m, const char *line, size_t n, uint64_t time_ns)
{
	struct logrule_found f;
	bool fits = logrule_match(m->rules.v[0], m->text.data, &f);

	if (!fits) {
		m->text.n = 0;
		logline_uncoloured(&m->text, line, n);
		fits = logrule_match(m->rules.v[0], m->text.data, &f);
	}
	if (fits && f.said.block.known & BLOCK_NUMBER)
		line_done(m, &m->own, &f, time_ns);
	else
		m->counts.bad_lines += fits;
}

void blocklog_line(struct blocklog *m, const char *line, size_t n, uint64_t time_ns)
{
	make_plain(m, line, n);
	if (!m->text.n)
		return;
	if (m->group.n && m->group.v[0].end_ns != time_ns)
		release(m);
	if (m->own.needle) {
		line_of_users(m, line, n, time_ns);
		return;
	}
	for (size_t i = 0; i < m->rules.n; i++) {
		const struct client_rule *rule = logrule_of(m->rules.v[i]);
		struct logrule_found f;

		if (!applies(m, rule) || !strstr(m->text.data, rule->needle))
			continue;
		if (rule->role == LINE_HINT && m->asked)
			return; /* thousands of hints, which do not count while begin lines come */
		if (!logrule_match(m->rules.v[i], m->text.data, &f)) {
			/* Until a client is recognized, a line with only the needle is another program's. */
			m->counts.bad_lines += rule->role == LINE_DONE && !rule->vague && m->client &&
					       !strcmp(m->client, rule->client);
			continue;
		}
		if (rule->role == LINE_DONE && !(f.said.block.known & BLOCK_NUMBER)) {
			m->counts.bad_lines++;
			return;
		}
		line_of_rule(m, rule, &f, time_ns);
		return;
	}
}

void blocklog_prime(struct blocklog *m, const char *line, size_t n)
{
	struct logrule_found f;

	make_plain(m, line, n);
	for (size_t i = 0; i < m->rules.n; i++) {
		const struct client_rule *rule = logrule_of(m->rules.v[i]);

		if ((rule->role == LINE_SUMS || rule->role == LINE_EACH) && strstr(m->text.data, rule->needle) &&
		    logrule_match(m->rules.v[i], m->text.data, &f))
			line_of_rule(m, rule, &f, 0);
	}
}
