#include "fleet/sql.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

/* What ends a literal, or means something in it, becomes a sequence with a backslash; so do control characters, because a
 * server's log has its statements a line each. All other bytes are themselves. */
static void put_escaped(struct buf *b, const char *s, size_t n, char quote)
{
	static const char plain[] = "\n\t\r\b\f", letters[] = "ntrbf";

	buf_putc(b, quote);
	for (size_t i = 0; i < n; i++) {
		const char *known = s[i] ? strchr(plain, s[i]) : NULL;

		if (s[i] == quote || s[i] == '\\' || s[i] == '\'')
			buf_printf(b, "\\%c", s[i]);
		else if (!s[i])
			buf_puts(b, "\\0");
		else if (known)
			buf_printf(b, "\\%c", letters[known - plain]);
		else if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			buf_printf(b, "\\x%02X", (unsigned char)s[i]);
		else
			buf_putc(b, s[i]);
	}
	buf_putc(b, quote);
}

void sql_literal_n(struct buf *b, const char *s, size_t n)
{
	put_escaped(b, s, n, '\'');
}

void sql_literal(struct buf *b, const char *s)
{
	sql_literal_n(b, s, strlen(s));
}

void sql_like(struct buf *b, const char *glob)
{
	_cleanup_(buf_done) struct buf pattern = { 0 };

	for (; *glob; glob++) {
		if (strchr("%_\\", *glob))
			buf_putc(&pattern, '\\');
		buf_putc(&pattern, *glob == '*' ? '%' : *glob == '?' ? '_' : *glob);
	}
	sql_literal_n(b, pattern.n ? pattern.data : "", pattern.n);
}

void sql_identifier(struct buf *b, const char *s)
{
	put_escaped(b, s, strlen(s), '`');
}

/* --- RowBinary: little-endian numbers, lengths as LEB128 --- */

static void put_bytes(struct buf *b, uint64_t v, unsigned n)
{
	char bytes[8];

	for (unsigned i = 0; i < n; i++)
		bytes[i] = v >> 8 * i;
	buf_add(b, bytes, n);
}

void sql_row_u8(struct buf *b, uint8_t v)
{
	put_bytes(b, v, 1);
}

void sql_row_u16(struct buf *b, uint16_t v)
{
	put_bytes(b, v, 2);
}

void sql_row_u32(struct buf *b, uint32_t v)
{
	put_bytes(b, v, 4);
}

void sql_row_u64(struct buf *b, uint64_t v)
{
	put_bytes(b, v, 8);
}

void sql_row_i64(struct buf *b, int64_t v)
{
	put_bytes(b, v, 8);
}

void sql_row_count(struct buf *b, size_t n)
{
	for (; n >= 0x80; n >>= 7)
		buf_putc(b, n | 0x80);
	buf_putc(b, n);
}

void sql_row_string(struct buf *b, const char *s)
{
	size_t n = strlen(s);

	sql_row_count(b, n);
	buf_add(b, s, n);
}
