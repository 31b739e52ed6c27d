/*
 * buf.h - bytes that grow at the end, and a bounds-checked reader of bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* always NUL-terminated once something was added */
	size_t n, capacity;
};

void buf_done(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* s as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void buf_json(struct buf *b, const char *s);
/* s for XML text or an attribute; control characters and bad UTF-8 become U+FFFD. */
void buf_xml(struct buf *b, const char *s);

/*
 * A reader never reads past its end: once anything did not fit, failed is set,
 * every later read gives 0, and pos stays. Check failed once, at the end.
 */
struct reader {
	const uint8_t *data;
	size_t pos, end;
	bool failed;
};

struct reader reader_of(const void *data, size_t n);
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);
uint64_t reader_uint(struct reader *r, unsigned bytes); /* 1, 2, 3, 4 or 8 */
uint64_t reader_uleb(struct reader *r);
int64_t reader_sleb(struct reader *r);
const char *reader_string(struct reader *r); /* "" when it has no end */
const uint8_t *reader_bytes(struct reader *r, size_t n); /* NULL when too short */
void reader_skip(struct reader *r, uint64_t n);
void reader_seek(struct reader *r, uint64_t pos);
static inline bool reader_more(const struct reader *r)
{
	return !r->failed && r->pos < r->end;
}
