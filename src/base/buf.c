#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/plain.h"

static void reserve(struct buf *b, size_t extra)
{
	size_t need = b->n + extra + 1;

	if (need <= b->capacity)
		return;
	b->capacity = MAX(need, b->capacity ? b->capacity * 2 : 256);
	b->data = mem_resize(b->data, b->capacity, 1);
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void buf_add(struct buf *b, const void *data, size_t n)
{
	reserve(b, n);
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
	b->data[b->n] = 0;
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	reserve(b, n);
	va_start(ap, fmt);
	vsnprintf(b->data + b->n, n + 1, fmt, ap);
	va_end(ap);
	b->n += n;
}

/* Length of the UTF-8 sequence at s, 0 if it is not one. */
static size_t utf8_len(const unsigned char *s)
{
	unsigned c = s[0];
	size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) ||
	    (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* JSON allows terminal control characters, but people read it on a terminal: escaped it is the same text. */
static void put_json_character(struct buf *b, const char *s, size_t n)
{
	int32_t c = plain_decode(s, &n);

	if (plain_harmful(c) && c >= 0 && c <= 0xffff)
		buf_printf(b, "\\u%04x", (unsigned)c);
	else
		buf_add(b, s, n);
}

void buf_json(struct buf *b, const char *s)
{
	buf_putc(b, '"');
	while (*s) {
		unsigned char c = *s;
		size_t n = utf8_len((const unsigned char *)s);

		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20)
			buf_printf(b, "\\u%04x", c);
		else if (!n)
			buf_puts(b, "\xef\xbf\xbd");
		else if (n > 1 || c == 0x7f)
			put_json_character(b, s, n);
		else
			buf_putc(b, c);
		s += n ? n : 1;
	}
	buf_putc(b, '"');
}

void buf_xml(struct buf *b, const char *s)
{
	while (*s) {
		unsigned char c = *s;
		size_t n = utf8_len((const unsigned char *)s);

		if (c == '&')
			buf_puts(b, "&amp;");
		else if (c == '<')
			buf_puts(b, "&lt;");
		else if (c == '>')
			buf_puts(b, "&gt;");
		else if (c == '"')
			buf_puts(b, "&quot;");
		else if (c == '\'')
			buf_puts(b, "&#39;");
		else if (!n || plain_harmful(plain_decode(s, &(size_t){ 0 })))
			buf_puts(b, "\xef\xbf\xbd");
		else
			buf_add(b, s, n);
		s += n ? n : 1;
	}
}

struct reader reader_of(const void *data, size_t n)
{
	return (struct reader){ .data = data, .end = data ? n : 0 };
}

const uint8_t *reader_bytes(struct reader *r, size_t n)
{
	const uint8_t *p;

	if (r->failed || n > r->end - r->pos) {
		r->failed = true;
		return NULL;
	}
	p = r->data + r->pos;
	r->pos += n;
	return p;
}

uint64_t reader_uint(struct reader *r, unsigned bytes)
{
	const uint8_t *p = reader_bytes(r, bytes);
	uint64_t v = 0;

	if (p)
		for (unsigned i = 0; i < bytes; i++)
			v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t reader_u8(struct reader *r)
{
	if (r->failed || r->pos >= r->end) {
		r->failed = true;
		return 0;
	}
	return r->data[r->pos++];
}

uint16_t reader_u16(struct reader *r)
{
	return reader_uint(r, 2);
}

uint32_t reader_u32(struct reader *r)
{
	return reader_uint(r, 4);
}

uint64_t reader_u64(struct reader *r)
{
	return reader_uint(r, 8);
}

/* The bits of a LEB128 number; *ret_shift is how many there were, *ret_last its last byte. */
static uint64_t read_leb(struct reader *r, unsigned *ret_shift, uint8_t *ret_last)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t c;

	do {
		c = reader_u8(r);
		if (shift < 64)
			v |= (uint64_t)(c & 0x7f) << shift;
		shift += 7;
	} while (c & 0x80);
	*ret_shift = shift;
	*ret_last = c;
	return v;
}

uint64_t reader_uleb(struct reader *r)
{
	unsigned shift;
	uint8_t last;

	return read_leb(r, &shift, &last);
}

int64_t reader_sleb(struct reader *r)
{
	unsigned shift;
	uint8_t last;
	uint64_t v = read_leb(r, &shift, &last);

	if (shift < 64 && last & 0x40)
		v |= ~0ULL << shift;
	return v;
}

const char *reader_string(struct reader *r)
{
	const char *s = (const char *)r->data + r->pos;
	const char *nul;

	if (r->failed || r->pos >= r->end || !(nul = memchr(s, 0, r->end - r->pos))) {
		r->failed = true;
		return "";
	}
	r->pos += nul - s + 1;
	return s;
}

void reader_skip(struct reader *r, uint64_t n)
{
	if (r->failed || n > r->end - r->pos)
		r->failed = true;
	else
		r->pos += n;
}

void reader_seek(struct reader *r, uint64_t pos)
{
	if (r->failed || pos > r->end)
		r->failed = true;
	else
		r->pos = pos;
}
