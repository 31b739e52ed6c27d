#include "import/web/jsontext.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

struct jsontext jsontext_of(const char *data, size_t n)
{
	struct jsontext c = { .data = data, .end = n, .key = "" };

	if (n >= 3 && !memcmp(data, "\xef\xbb\xbf", 3))
		c.at = 3;
	return c;
}

void jsontext_fail(struct jsontext *c, const char *text)
{
	if (c->failed)
		return;
	c->failed = text;
	c->failed_at = c->at;
	c->at = c->end;
}

int jsontext_error(const struct jsontext *c, struct err *err)
{
	if (!c->failed)
		return 0;
	err_set(err, EINVAL, "byte %zu: %s", c->failed_at, c->failed);
	if (err)
		err->offset = c->failed_at;
	return -EINVAL;
}

static void blanks(struct jsontext *c)
{
	while (c->at < c->end && (c->data[c->at] == ' ' || c->data[c->at] == '\n' || c->data[c->at] == '\t' || c->data[c->at] == '\r'))
		c->at++;
}

char jsontext_kind(struct jsontext *c)
{
	char x;

	blanks(c);
	if (c->at >= c->end)
		return 0;
	x = c->data[c->at];
	return x == '-' || (x >= '0' && x <= '9') ? '0' : x;
}

/* --- brackets --- */

static void enter(struct jsontext *c, char bracket, const char *missing)
{
	if (jsontext_kind(c) != bracket) {
		jsontext_fail(c, c->at < c->end ? missing : "the text ends too early");
		return;
	}
	c->at++;
	c->fresh = true;
}

void jsontext_object(struct jsontext *c)
{
	enter(c, '{', "an object ({) is missing here");
}

void jsontext_list(struct jsontext *c)
{
	enter(c, '[', "a list ([) is missing here");
}

static bool more(struct jsontext *c, char bracket)
{
	bool fresh = c->fresh;

	c->fresh = false;
	if (c->failed)
		return false;
	blanks(c);
	if (c->at >= c->end) {
		jsontext_fail(c, "the text ends too early");
		return false;
	}
	if (c->data[c->at] == bracket) {
		c->at++;
		return false;
	}
	if (fresh)
		return true;
	if (c->data[c->at] != ',') {
		jsontext_fail(c, "a comma or a closing bracket is missing here");
		return false;
	}
	c->at++;
	return true;
}

bool jsontext_item(struct jsontext *c)
{
	return more(c, ']');
}

/* Goes behind the quote that ends a string; the cursor is behind the one that begins it. */
static bool end_of_string(struct jsontext *c)
{
	while (c->at < c->end) {
		const char *from = c->data + c->at, *quote = memchr(from, '"', c->end - c->at), *slash;

		if (!quote)
			break;
		slash = memchr(from, '\\', quote - from);
		if (!slash) {
			c->at = quote - c->data + 1;
			return true;
		}
		c->at = slash - c->data + 2;
	}
	c->at = MIN(c->at, c->end);
	jsontext_fail(c, "a string has no end");
	return false;
}

bool jsontext_member(struct jsontext *c)
{
	if (!more(c, '}'))
		return false;
	if (jsontext_kind(c) != '"') {
		jsontext_fail(c, "the name of a member is missing here");
		return false;
	}
	c->key = c->data + ++c->at;
	if (!end_of_string(c))
		return false;
	c->key_n = c->data + c->at - 1 - c->key;
	if (jsontext_kind(c) != ':') {
		jsontext_fail(c, "a colon is missing here");
		return false;
	}
	c->at++;
	return true;
}

bool jsontext_is(const struct jsontext *c, const char *key)
{
	return !c->failed && strlen(key) == c->key_n && !memcmp(c->key, key, c->key_n);
}

/* --- values --- */

static bool of_word(char x)
{
	return (x >= '0' && x <= '9') || (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || x == '.' || x == '-' || x == '+';
}

/* A number, true, false, null. */
static size_t word(struct jsontext *c)
{
	size_t begin = c->at;

	while (c->at < c->end && of_word(c->data[c->at]))
		c->at++;
	if (c->at == begin)
		jsontext_fail(c, c->at < c->end ? "this is no JSON any more" : "the text ends too early");
	return begin;
}

/* Brackets are counted, not compared: who reads between them does that. */
static void skip_brackets(struct jsontext *c)
{
	size_t depth = 0;

	while (c->at < c->end) {
		char x = c->data[c->at++];

		if (x == '"') {
			if (!end_of_string(c))
				return;
		} else if (x == '[' || x == '{') {
			depth++;
		} else if ((x == ']' || x == '}') && !--depth) {
			return;
		}
	}
	jsontext_fail(c, "the text ends too early");
}

void jsontext_skip(struct jsontext *c)
{
	char kind = jsontext_kind(c);

	c->fresh = false;
	if (kind == '{' || kind == '[') {
		skip_brackets(c);
	} else if (kind == '"') {
		c->at++;
		end_of_string(c);
	} else {
		word(c);
	}
}

struct jsontext_place jsontext_keep(struct jsontext *c)
{
	struct jsontext_place place = { *c, true };

	jsontext_skip(c);
	return place;
}

bool jsontext_beside(struct jsontext_place *list)
{
	return list->there && jsontext_item(&list->at);
}

/* Numbers with an exponent, which no digit needs to be exact of. */
static struct jsontext_number by_double(const char *text, unsigned decimals)
{
	double d = strtod(text, NULL) * pow(10, decimals);
	struct jsontext_number n = { .there = !isnan(d), .negative = d < 0 };

	d = fabs(d);
	n.huge = !(d < 1.8e19);
	n.value = n.huge ? UINT64_MAX : (uint64_t)(d + 0.5);
	return n;
}

static void add_digit(struct jsontext_number *n, unsigned digit)
{
	if (__builtin_mul_overflow(n->value, 10, &n->value) || __builtin_add_overflow(n->value, digit, &n->value))
		n->huge = true;
}

/* Digits are read as such: a double has too few of them for nanoseconds since 1970. */
static struct jsontext_number by_digits(const char *s, unsigned decimals)
{
	struct jsontext_number n = { .there = true, .negative = *s == '-' };
	bool up = false;

	for (s += n.negative; *s >= '0' && *s <= '9'; s++)
		add_digit(&n, *s - '0');
	if (*s == '.')
		s++;
	for (; decimals; decimals--)
		add_digit(&n, *s >= '0' && *s <= '9' ? *s++ - '0' : 0);
	up = *s >= '5' && *s <= '9';
	if (up && n.value == UINT64_MAX)
		n.huge = true;
	n.value = n.huge ? UINT64_MAX : n.value + up;
	return n;
}

struct jsontext_number jsontext_number(struct jsontext *c, unsigned decimals)
{
	struct jsontext_number none = { 0 };
	char text[48];
	size_t begin, n;

	if (jsontext_kind(c) != '0') {
		jsontext_skip(c);
		return none;
	}
	begin = word(c);
	n = MIN(c->at - begin, sizeof(text) - 1);
	memcpy(text, c->data + begin, n);
	text[n] = 0;
	return memchr(text, 'e', n) || memchr(text, 'E', n) || c->at - begin > n ? by_double(text, decimals) : by_digits(text, decimals);
}

int32_t jsontext_int(struct jsontext *c)
{
	struct jsontext_number n = jsontext_number(c, 0);

	return n.there && !n.negative && n.value < INT32_MAX ? (int32_t)n.value : -1;
}

uint32_t jsontext_uint(struct jsontext *c)
{
	int32_t n = jsontext_int(c);

	return MAX(n, 0);
}

int32_t jsontext_index(struct jsontext *c, size_t limit)
{
	struct jsontext before = *c;
	struct jsontext_number n = jsontext_number(c, 0);

	if (!n.there || (n.negative && n.value == 1))
		return -1;
	if (!n.negative && n.value < limit && n.value < INT32_MAX)
		return n.value;
	c->at = before.at;
	jsontext_fail(c, "this number is an index into a table that has fewer rows");
	return -1;
}

/* --- strings --- */

static void put_code(struct buf *out, unsigned code)
{
	char bytes[4];
	size_t n = 0;

	if (!code || (code >= 0xd800 && code <= 0xdfff))
		code = 0xfffd;
	if (code < 0x80) {
		buf_putc(out, code);
		return;
	}
	if (code >= 0x10000) {
		bytes[n++] = 0xf0 | code >> 18;
		bytes[n++] = 0x80 | (code >> 12 & 0x3f);
	} else if (code >= 0x800) {
		bytes[n++] = 0xe0 | code >> 12;
	}
	bytes[n] = n || code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6;
	n++;
	bytes[n++] = 0x80 | (code & 0x3f);
	buf_add(out, bytes, n);
}

/* Four hexadecimal digits; UINT32_MAX: there are none. */
static uint32_t four_digits(const char *s, const char *end)
{
	uint32_t code = 0;

	if (end - s < 4)
		return UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		char x = s[i] | 0x20;

		if (!(s[i] >= '0' && s[i] <= '9') && !(x >= 'a' && x <= 'f'))
			return UINT32_MAX;
		code = code << 4 | (s[i] <= '9' ? s[i] - '0' : x - 'a' + 10);
	}
	return code;
}

/* What follows a backslash; returns where the text goes on. */
static const char *put_escape(struct buf *out, const char *s, const char *end)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = s < end && *s ? strchr(from, *s) : NULL;
	uint32_t code, low;

	if (at) {
		buf_putc(out, to[at - from]);
		return s + 1;
	}
	code = s < end && *s == 'u' ? four_digits(s + 1, end) : UINT32_MAX;
	if (code == UINT32_MAX) {
		put_code(out, 0);
		return s;
	}
	s += 5;
	if (code >= 0xd800 && code < 0xdc00 && end - s >= 6 && s[0] == '\\' && s[1] == 'u' &&
	    (low = four_digits(s + 2, end)) >= 0xdc00 && low < 0xe000) {
		code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
		s += 6;
	}
	put_code(out, code);
	return s;
}

void jsontext_string(struct jsontext *c, struct buf *out)
{
	char kind = jsontext_kind(c);
	const char *s, *end;
	size_t begin;

	out->n = 0;
	buf_add(out, "", 0);
	if (kind != '"') {
		begin = c->at;
		jsontext_skip(c);
		if (kind == '0' && !c->failed)
			buf_add(out, c->data + begin, c->at - begin);
		return;
	}
	s = c->data + ++c->at;
	if (!end_of_string(c))
		return;
	end = c->data + c->at - 1;
	while (s < end) {
		size_t n = strcspn(s, "\\\""); /* the quote at the end is there */

		buf_add(out, s, MIN(n, (size_t)(end - s)));
		s += MIN(n, (size_t)(end - s));
		if (s < end && !*s) {
			put_code(out, 0);
			s++;
		} else if (s < end) {
			s = put_escape(out, s + 1, end);
		}
	}
}
