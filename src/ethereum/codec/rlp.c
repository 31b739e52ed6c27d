#include "ethereum/codec/rlp.h"

#include <stdint.h>

#include "base/buf.h"

enum { STRING = 0x80, LIST = 0xc0, SHORT = 55 };

/* Short lengths are in the first byte; of longer ones it has the number of bytes that hold the length. */
static void put_head(struct buf *out, unsigned kind, size_t n)
{
	unsigned bytes = 0;

	if (n <= SHORT) {
		buf_putc(out, kind + n);
		return;
	}
	for (size_t left = n; left; left >>= 8)
		bytes++;
	buf_putc(out, kind + SHORT + bytes);
	while (bytes--)
		buf_putc(out, n >> 8 * bytes);
}

void rlp_put(struct buf *out, const void *data, size_t n)
{
	/* A small byte is its own encoding. */
	if (n != 1 || *(const uint8_t *)data >= STRING)
		put_head(out, STRING, n);
	if (n)
		buf_add(out, data, n);
}

void rlp_put_number(struct buf *out, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (; n && !*p; n--)
		p++;
	rlp_put(out, p, n);
}

void rlp_put_list(struct buf *out, const struct buf *items)
{
	put_head(out, LIST, items->n);
	if (items->n)
		buf_add(out, items->data, items->n);
}
