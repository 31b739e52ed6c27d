#include "target/log/xlayertrace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	FIELDS = 23,
	FIELD_EVENT = 7, FIELD_NAME = 8, FIELD_TIME = 11, FIELD_NUMBER = 14, FIELD_HASH = 15,
	WAITING = 256, /* blocks of which one end is known */
};

/* Of xlayer-trace-monitor's TransactionProcessId. */
enum { BUILD_START = 15032, BUILD_END = 15036, RECEIVE_END = 15060, INSERT_END = 15062 };

struct half {
	struct xlayertrace_block block;
	uint64_t order; /* when it was seen; 0 = the place is free */
};

struct xlayertrace {
	xlayertrace_fn *fn;
	void *context;
	struct half waiting[WAITING];
	uint64_t order;
	struct xlayertrace_counts counts;
};

struct field {
	const char *s;
	size_t n;
};

struct xlayertrace *xlayertrace_new(xlayertrace_fn *fn, void *context)
{
	struct xlayertrace *x = mem_alloc(sizeof(*x));

	x->fn = fn;
	x->context = context;
	return x;
}

static bool is(const struct field *f, const char *text)
{
	return f->n == strlen(text) && !memcmp(f->s, text, f->n);
}

/* How many fields there are; of more than FIELDS the last are not told. No field of ours is quoted. */
static size_t split(const char *line, size_t n, struct field fields[FIELDS])
{
	size_t count = 0;

	for (const char *s = line, *end = line + n;; s++) {
		const char *comma = memchr(s, ',', end - s);

		if (count < FIELDS)
			fields[count] = (struct field){ s, (comma ? comma : end) - s };
		count++;
		if (!comma)
			return count;
		s = comma;
	}
}

static bool parse_number(const struct field *f, uint64_t most, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (f->s[i] < '0' || f->s[i] > '9' || n > (most - (f->s[i] - '0')) / 10)
			return false;
		n = n * 10 + (f->s[i] - '0');
	}
	*ret = n;
	return f->n > 0;
}

/* The place of the block's other end, or a free one, or that of the one which has waited longest. */
static struct half *place_of(struct xlayertrace *x, uint64_t number, bool built)
{
	struct half *oldest = &x->waiting[0];

	for (size_t i = 0; i < WAITING; i++) {
		struct half *h = &x->waiting[i];

		if (h->order && h->block.number == number && h->block.built == built)
			return h;
		if (h->order < oldest->order)
			oldest = h;
	}
	x->counts.alone += oldest->order != 0;
	*oldest = (struct half){ .block = { .number = number, .built = built }, .order = ++x->order };
	return oldest;
}

static void take(struct xlayertrace *x, uint64_t event, uint64_t number, uint64_t wall_ns, const struct field *hash)
{
	bool built = event == BUILD_START || event == BUILD_END;
	struct half *h = place_of(x, number, built);
	struct xlayertrace_block *b = &h->block;

	*(event == BUILD_START || event == RECEIVE_END ? &b->start_wall_ns : &b->end_wall_ns) = wall_ns;
	if (hash->n == sizeof(b->hash) - 1 && !memcmp(hash->s, "0x", 2))
		memcpy(b->hash, hash->s, hash->n);
	if (!b->start_wall_ns || !b->end_wall_ns)
		return;
	h->order = 0;
	if (b->start_wall_ns > b->end_wall_ns) { /* the clock was set meanwhile */
		x->counts.bad++;
		return;
	}
	x->counts.blocks++;
	x->fn(x->context, b);
}

bool xlayertrace_line(struct xlayertrace *x, const char *line, size_t n)
{
	struct field f[FIELDS];
	uint64_t event, ms, number;

	if (!xlayertrace_probe(line, n))
		return false;
	x->counts.lines++;
	if (n && line[n - 1] == '\r')
		n--;
	if (split(line, n, f) != FIELDS || !parse_number(&f[FIELD_EVENT], UINT32_MAX, &event) || !f[FIELD_NAME].n) {
		x->counts.bad++;
		return true;
	}
	if (event != BUILD_START && event != BUILD_END && event != RECEIVE_END && event != INSERT_END)
		return true; /* of a transaction */
	if (!parse_number(&f[FIELD_TIME], INT64_MAX / 1000000, &ms) || !ms || !parse_number(&f[FIELD_NUMBER], INT64_MAX, &number)) {
		x->counts.bad++;
		return true;
	}
	take(x, event, number, ms * 1000000, &f[FIELD_HASH]);
	return true;
}

bool xlayertrace_probe(const char *data, size_t n)
{
	struct field f[FIELDS];
	const char *newline = memchr(data, '\n', n);
	size_t count = split(data, newline ? (size_t)(newline - data) : n, f);

	return count > 6 && is(&f[0], "X Layer") && is(&f[4], "X Layer");
}

const struct xlayertrace_counts *xlayertrace_counted(const struct xlayertrace *x)
{
	return &x->counts;
}

void xlayertrace_free(struct xlayertrace *x)
{
	free(x);
}
