#include "import/trace/traceevents.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

enum { TEXT = 256 }; /* of a string or a number; what is beyond is cut */

enum state {
	BETWEEN,  /* values, commas, colons and brackets */
	STRING,
	ESCAPE,   /* after a backslash */
	UNICODE,  /* within \uXXXX */
	WORD,     /* a number, true, false, null */
	ENDED,    /* the outermost bracket was closed */
	BROKEN,
};

struct traceevents {
	traceevents_fn *fn;
	void *context;
	enum state state;
	uint64_t offset; /* of the byte at hand */
	uint64_t odd;

	char kinds[TRACEEVENTS_DEPTH]; /* '[' or '{', from the outermost on */
	unsigned depth;
	unsigned list;  /* depth within the list of events; 0 = not in it */
	bool args;      /* within "args" of an event */
	bool value;     /* a colon was seen: what comes is no key */

	char key[32];   /* the last one */
	char text[TEXT];
	size_t n;
	unsigned unicode, digits;
	struct trace_event event;

	/* The text of an event or a part, where it is kept. */
	size_t kept_max; /* 0 = it is not */
	traceevents_part_fn *part;
	struct buf kept;
	unsigned kept_depth;    /* at which it ends, 1 + depth; 0 = nothing is kept just now */
	char kept_key[32];      /* of a part */
	const char *piece;      /* the bytes at hand */
	uint64_t piece_offset;
	const char *kept_from;  /* from here on they belong to it */
};

struct traceevents *traceevents_new(traceevents_fn *fn, void *context)
{
	struct traceevents *t = mem_alloc(sizeof(*t));

	t->fn = fn;
	t->context = context;
	return t;
}

void traceevents_keep(struct traceevents *t, size_t max, traceevents_part_fn *part)
{
	t->kept_max = max;
	t->part = part;
}

const char *traceevents_text(const struct traceevents *t, size_t *ret_n)
{
	*ret_n = t->kept.n;
	return t->kept.n ? t->kept.data : NULL;
}

/* --- text that is kept --- */

/* The bytes up to an offset belong to it; what is too long is kept no more. */
static void keep_until(struct traceevents *t, uint64_t offset)
{
	const char *to = t->piece + (offset - t->piece_offset);

	if (!t->kept_from)
		return;
	if (t->kept.n + (to - t->kept_from) > t->kept_max) {
		t->kept.n = 0;
		t->kept_from = NULL;
		return;
	}
	buf_add(&t->kept, t->kept_from, to - t->kept_from);
	t->kept_from = to;
}

/* A bracket is about to be opened: of an event, or of a part. */
static void keep_begin(struct traceevents *t)
{
	bool part = !t->list && t->depth == 1 && t->part && (!strcmp(t->key, "stackFrames") || !strcmp(t->key, "samples"));

	if (!t->kept_max || t->kept_depth || !(part || (t->list && t->depth == t->list)))
		return;
	memcpy(t->kept_key, t->key, sizeof(t->kept_key));
	t->kept_depth = t->depth + 1;
	t->kept.n = 0;
	t->kept_from = t->piece + (t->offset - t->piece_offset);
}

/* A bracket was closed. */
static void keep_end(struct traceevents *t)
{
	if (!t->kept_depth || t->depth + 1 != t->kept_depth)
		return;
	keep_until(t, t->offset + 1);
	t->kept_from = NULL;
	t->kept_depth = 0;
	if (!t->list && t->kept.n)
		t->part(t->context, t->kept_key, t->kept.data, t->kept.n);
}

/* --- values of an event --- */

/* "12.345" to nanoseconds, of microseconds. Digits are read as such: a double has too few of them for years. */
static bool parse_micros(const char *s, uint64_t *ret)
{
	uint64_t whole = 0, part = 0, scale = 100;
	const char *begin = s;

	for (; *s >= '0' && *s <= '9'; s++) {
		if (whole > (UINT64_MAX / 1000 - 9) / 10)
			return false;
		whole = whole * 10 + (*s - '0');
	}
	if (s == begin)
		return false;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, scale /= 10)
			part += (*s - '0') * scale;
	if (*s == 'e' || *s == 'E') {
		double d = strtod(begin, NULL) * 1000;

		if (!isfinite(d) || d < 0 || d >= 1.8e19)
			return false;
		*ret = (uint64_t)d;
		return true;
	}
	*ret = whole * 1000 + part;
	return !*s && *ret >= part;
}

/* "24443168", "0x174f8e0". */
static bool parse_count(const char *s, uint64_t *ret)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	char *end;

	if (s[0] < '0' || s[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(s, &end, hex ? 16 : 10);
	return !errno && !*end && end != s + (hex ? 2 : 0) && *ret <= INT64_MAX;
}

/* Numbers stay; of other words there is a hash, which no number of a thread is likely to be. */
static uint64_t identity(const char *s)
{
	uint64_t n;

	return parse_count(s, &n) ? n : map_hash_bytes(s, strlen(s)) | 1ULL << 63;
}

static void take_argument(struct trace_event *e, const char *key, const char *text)
{
	static const struct {
		const char *key;
		uint32_t what;
	} keys[] = {
		{ "block_num", BLOCK_NUMBER },    { "number", BLOCK_NUMBER },   { "block.number", BLOCK_NUMBER },
		{ "block_number", BLOCK_NUMBER }, { "blockNumber", BLOCK_NUMBER },
		{ "gas_used", BLOCK_GAS },        { "gasUsed", BLOCK_GAS },     { "gas", BLOCK_GAS },
		{ "txs", BLOCK_TRANSACTIONS },    { "transactions", BLOCK_TRANSACTIONS }, { "tx_count", BLOCK_TRANSACTIONS },
	};
	uint64_t n;

	if (!strcmp(key, "name"))
		memcpy(e->called, text, strnlen(text, sizeof(e->called) - 1));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].key) || e->block.known & keys[i].what || !parse_count(text, &n))
			continue;
		*(keys[i].what == BLOCK_NUMBER ? &e->block.number :
		  keys[i].what == BLOCK_GAS    ? &e->block.gas :
						 &e->block.transactions) = n;
		e->block.known |= keys[i].what;
	}
}

static void take_member(struct trace_event *e, const char *key, const char *text, bool string)
{
	if (!strcmp(key, "ph"))
		e->phase = *text && !text[1] ? *text : 0;
	else if (!strcmp(key, "ts"))
		e->timed = parse_micros(text, &e->time_ns);
	else if (!strcmp(key, "dur"))
		e->lasts = parse_micros(text, &e->duration_ns);
	else if (!strcmp(key, "pid"))
		e->pid = identity(text);
	else if (!strcmp(key, "tid"))
		e->tid = identity(text);
	else if (!strcmp(key, "id") || !strcmp(key, "bind_id"))
		e->id = identity(text);
	else if (!strcmp(key, "name") && string)
		memcpy(e->name, text, strnlen(text, sizeof(e->name) - 1));
}

/* A string or a word is whole. */
static void take(struct traceevents *t, bool string)
{
	bool object = t->depth && t->kinds[t->depth - 1] == '{';

	t->text[t->n] = 0;
	t->n = 0;
	if (object && !t->value) {
		memcpy(t->key, t->text, sizeof(t->key) - 1);
		return;
	}
	t->value = false;
	if (!t->list)
		return;
	if (t->depth == t->list)
		t->odd++;
	else if (t->depth == t->list + 1 && object)
		take_member(&t->event, t->key, t->text, string);
	else if (t->depth == t->list + 2 && object && t->args)
		take_argument(&t->event, t->key, t->text);
}

/* --- structure --- */

static int broken(struct traceevents *t, struct err *err, const char *what)
{
	t->state = BROKEN;
	err_set(err, EINVAL, "%s at byte %llu", what, (unsigned long long)t->offset);
	if (err)
		err->offset = t->offset;
	return -EINVAL;
}

static int open_bracket(struct traceevents *t, char c, struct err *err)
{
	if (t->depth == TRACEEVENTS_DEPTH)
		return broken(t, err, "brackets are nested too deeply");
	if (t->depth && t->kinds[t->depth - 1] == '{' && !t->value)
		return broken(t, err, "a bracket stands where a name belongs");
	keep_begin(t);
	if (t->list && t->depth == t->list) {
		t->event = (struct trace_event){ 0 };
		t->odd += c == '[';
	} else if (t->list && t->depth == t->list + 1) {
		t->args = c == '{' && !strcmp(t->key, "args");
	} else if (!t->list && c == '[' && (!t->depth || (t->depth == 1 && !strcmp(t->key, "traceEvents")))) {
		t->list = t->depth + 1;
	}
	t->kinds[t->depth++] = c;
	t->value = false;
	*t->key = 0;
	return 0;
}

static int close_bracket(struct traceevents *t, char c, struct err *err)
{
	if (!t->depth || t->kinds[t->depth - 1] != (c == ']' ? '[' : '{'))
		return broken(t, err, "a bracket is closed that was not opened");
	t->depth--;
	t->value = false;
	*t->key = 0;
	keep_end(t);
	if (t->list && t->depth == t->list && c == '}')
		t->fn(t->context, &t->event);
	else if (t->list && t->depth == t->list + 1)
		t->args = false;
	else if (t->depth < t->list)
		t->list = 0;
	if (!t->depth)
		t->state = ENDED;
	return 0;
}

static int between(struct traceevents *t, char c, struct err *err)
{
	switch (c) {
	case ' ': case '\t': case '\r': case '\n': case ',':
		return 0;
	case ':':
		t->value = true;
		return 0;
	case '[': case '{':
		return open_bracket(t, c, err);
	case ']': case '}':
		return close_bracket(t, c, err);
	}
	if (!t->depth)
		return broken(t, err, "this is no Chrome trace: it begins with neither [ nor {,");
	if (c == '"') {
		t->state = STRING;
		return 0;
	}
	if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && c != '-' && c != '+' && c != 'N' && c != 'I')
		return broken(t, err, "this is no JSON any more");
	t->text[0] = c;
	t->n = 1;
	t->state = WORD;
	return 0;
}

static void put(struct traceevents *t, char c)
{
	if (t->n < TEXT - 1)
		t->text[t->n++] = c;
}

static void put_unicode(struct traceevents *t, unsigned u)
{
	/* A half of a pair: the names of spans have none, and two question marks are readable. */
	if (u >= 0xd800 && u <= 0xdfff)
		u = '?';
	if (u < 0x80) {
		put(t, u ? u : ' ');
	} else if (u < 0x800) {
		put(t, 0xc0 | u >> 6);
		put(t, 0x80 | (u & 0x3f));
	} else {
		put(t, 0xe0 | u >> 12);
		put(t, 0x80 | (u >> 6 & 0x3f));
		put(t, 0x80 | (u & 0x3f));
	}
}

static int escaped(struct traceevents *t, char c, struct err *err)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/    \t";
	const char *at = c ? strchr(from, c) : NULL;

	if (c == 'u') {
		t->unicode = t->digits = 0;
		t->state = UNICODE;
		return 0;
	}
	if (!at)
		return broken(t, err, "an unknown escape is in a string");
	put(t, to[at - from]);
	t->state = STRING;
	return 0;
}

static int unicode(struct traceevents *t, char c, struct err *err)
{
	unsigned digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;

	if (digit == 16)
		return broken(t, err, "\\u is not followed by four digits");
	t->unicode = t->unicode << 4 | digit;
	if (++t->digits == 4) {
		put_unicode(t, t->unicode);
		t->state = STRING;
	}
	return 0;
}

/* The bytes of a string up to its end or a backslash, at once: most of a trace is strings. */
static size_t run_of_string(struct traceevents *t, const char *data, size_t n)
{
	const char *quote = memchr(data, '"', n);
	size_t k = quote ? (size_t)(quote - data) : n, room = TEXT - 1 - t->n;
	const char *slash = memchr(data, '\\', k);

	k = slash ? (size_t)(slash - data) : k;
	memcpy(t->text + t->n, data, MIN(k, room));
	t->n += MIN(k, room);
	return k;
}

static bool of_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '+';
}

int traceevents_feed(struct traceevents *t, const char *data, size_t n, struct err *err)
{
	uint64_t begin = t->offset;
	int r = t->state == BROKEN ? broken(t, err, "the trace is malformed") : 0;

	t->piece = data;
	t->piece_offset = begin;
	if (t->kept_from)
		t->kept_from = data;
	for (size_t i = 0; i < n && !r && t->state != ENDED; t->offset = begin + i) {
		char c = data[i];

		if (t->state == WORD && !of_word(c)) {
			take(t, false);
			t->state = BETWEEN;
		}
		switch (t->state) {
		case STRING:
			i += run_of_string(t, data + i, n - i);
			if (i == n)
				break;
			if (data[i++] == '\\') {
				t->state = ESCAPE;
			} else {
				take(t, true);
				t->state = BETWEEN;
			}
			break;
		case ESCAPE:
			r = escaped(t, c, err);
			i++;
			break;
		case UNICODE:
			r = unicode(t, c, err);
			i++;
			break;
		case WORD:
			put(t, c);
			i++;
			break;
		default:
			r = between(t, c, err);
			i++;
			break;
		}
	}
	keep_until(t, begin + n);
	return r;
}

bool traceevents_whole(const struct traceevents *t)
{
	return t->state == ENDED;
}

uint64_t traceevents_odd(const struct traceevents *t)
{
	return t->odd;
}

void traceevents_free(struct traceevents *t)
{
	if (t)
		buf_done(&t->kept);
	free(t);
}
