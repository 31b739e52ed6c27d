#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/buf.h"

struct json json_begin(struct buf *out)
{
	/* Level 0 holds the document itself: it is an array of one value, without brackets. */
	return (struct json){ .out = out, .arrays = 1, .indent = -1 };
}

void json_end(struct json *j)
{
	assert(j->depth == 1);
	json_close(j);
}

void json_end_line(struct json *j)
{
	json_end(j);
	buf_putc(j->out, '\n');
}

void json_break(struct json *j, int indent)
{
	j->indent = indent;
}

static void put_break(struct json *j)
{
	if (j->indent >= 0)
		buf_printf(j->out, "\n%*s", j->indent, "");
	j->indent = -1;
}

/* Puts the separators and the key before a value. */
static void put_key(struct json *j, const char *key)
{
	uint32_t level = (uint32_t)1 << j->depth;

	assert(!key == !!(j->arrays & level));
	if (j->filled & level) {
		assert(j->depth); /* a document is one value */
		buf_putc(j->out, ',');
	}
	j->filled |= level;
	put_break(j);
	if (key) {
		buf_json(j->out, key);
		buf_putc(j->out, ':');
	}
}

static void open_level(struct json *j, const char *key, bool array)
{
	uint32_t level;

	put_key(j, key);
	assert(j->depth < JSON_DEPTH);
	level = (uint32_t)1 << ++j->depth;
	j->arrays = array ? j->arrays | level : j->arrays & ~level;
	j->filled &= ~level;
	buf_putc(j->out, array ? '[' : '{');
}

void json_open_object(struct json *j, const char *key)
{
	open_level(j, key, false);
}

void json_open_array(struct json *j, const char *key)
{
	open_level(j, key, true);
}

void json_open_object_line(struct json *j, const char *key, int indent)
{
	json_break(j, indent);
	json_open_object(j, key);
}

void json_open_array_line(struct json *j, const char *key, int indent)
{
	json_break(j, indent);
	json_open_array(j, key);
}

void json_open_row(struct json *j, int indent)
{
	json_open_object_line(j, NULL, indent);
}

void json_close(struct json *j)
{
	assert(j->depth);
	put_break(j);
	buf_putc(j->out, j->arrays >> j->depth & 1 ? ']' : '}');
	j->depth--;
}

void json_close_line(struct json *j, int indent)
{
	json_close(j);
	json_break(j, indent);
}

void json_put_string(struct json *j, const char *key, const char *value)
{
	put_key(j, key);
	if (value)
		buf_json(j->out, value);
	else
		buf_puts(j->out, "null");
}

void json_put_strings(struct json *j, const char *key, const char *const *list, size_t n)
{
	json_open_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, NULL, list[i]);
	json_close(j);
}

/* By hand: formats with a number for each sample write a hundred million of them. */
void json_put_uint(struct json *j, const char *key, uint64_t value)
{
	char digits[20];
	size_t n = sizeof(digits);

	put_key(j, key);
	do
		digits[--n] = '0' + value % 10;
	while (value /= 10);
	buf_add(j->out, digits + n, sizeof(digits) - n);
}

void json_put_counts(struct json *j, const struct json_count *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_put_uint(j, list[i].key, list[i].value);
}

void json_put_int(struct json *j, const char *key, int64_t value)
{
	put_key(j, key);
	buf_printf(j->out, "%" PRId64, value);
}

void json_put_fixed(struct json *j, const char *key, double value, int decimals)
{
	put_key(j, key);
	buf_printf(j->out, isfinite(value) ? "%.*f" : "null", decimals, value);
}

void json_put_real(struct json *j, const char *key, double value, int digits)
{
	put_key(j, key);
	buf_printf(j->out, isfinite(value) ? "%.*g" : "null", digits, value);
}

void json_put_bool(struct json *j, const char *key, bool value)
{
	put_key(j, key);
	buf_puts(j->out, value ? "true" : "false");
}

void json_put_null(struct json *j, const char *key)
{
	json_put_string(j, key, NULL);
}

void json_put_raw(struct json *j, const char *key, const char *value, size_t n)
{
	put_key(j, key);
	buf_add(j->out, value, n);
}
