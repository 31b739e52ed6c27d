#include "base/codec/base64.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"

size_t base64_encode(char *out, const void *data, size_t n, bool url)
{
	const char *digits = url ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" :
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *s = data;
	char *at = out;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t x = (uint32_t)s[i] << 16 | (left > 1 ? s[i + 1] << 8 : 0) | (left > 2 ? s[i + 2] : 0);

		*at++ = digits[x >> 18];
		*at++ = digits[x >> 12 & 63];
		if (left > 1 || !url)
			*at++ = left > 1 ? digits[x >> 6 & 63] : '=';
		if (left > 2 || !url)
			*at++ = left > 2 ? digits[x & 63] : '=';
	}
	return at - out;
}

void base64_put(struct buf *out, const void *data, size_t n, bool url)
{
	enum { STEP = 3072 };
	char text[BASE64_SIZE(STEP)];

	for (size_t i = 0; i < n; i += STEP)
		buf_add(out, text, base64_encode(text, (const char *)data + i, MIN(n - i, (size_t)STEP), url));
}
