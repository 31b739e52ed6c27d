#include "ethereum/codec/hex.h"


#include "base/buf.h"

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void hex_put(struct buf *out, const void *data, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = data;

	buf_puts(out, "0x");
	for (size_t i = 0; i < n; i++) {
		buf_putc(out, digits[p[i] >> 4]);
		buf_putc(out, digits[p[i] & 15]);
	}
}

/* The number of digits behind "0x", or -1. */
static long digits_of(const char *s)
{
	size_t n = 0;

	if (!s || s[0] != '0' || s[1] != 'x')
		return -1;
	while (digit(s[2 + n]) >= 0)
		n++;
	return s[2 + n] ? -1 : (long)n;
}

bool hex_take(const char *s, bool odd, struct buf *out)
{
	long n = digits_of(s);
	int half = 0;

	if (n < 0 || (n % 2 && !odd))
		return false;
	for (long i = 0; i < n; i++) {
		half = half << 4 | digit(s[2 + i]);
		if ((n - i) % 2) {
			buf_putc(out, half);
			half = 0;
		}
	}
	return true;
}

bool hex_number(const char *s, uint64_t *ret)
{
	long n = digits_of(s);

	if (n < 1 || n > 16)
		return false;
	*ret = 0;
	for (long i = 0; i < n; i++)
		*ret = *ret << 4 | (uint64_t)digit(s[2 + i]);
	return true;
}

bool hex_is(const char *s, size_t bytes)
{
	return digits_of(s) == (long)bytes * 2;
}
