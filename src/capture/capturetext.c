#include "capture/capturetext.h"

#include <string.h>

#include "base/mem.h"

static const char *const kinds[] = {
	[MODULE_FILE] = "file",
	[MODULE_KERNEL] = "kernel",
	[MODULE_VDSO] = "vdso",
	[MODULE_JIT] = "jit",
	[MODULE_NONE] = "none",
};

const char *capturetext_kind(enum profile_module_kind kind)
{
	return kinds[kind];
}

bool capturetext_parse_kind(const char *text, enum profile_module_kind *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!strcmp(kinds[i], text)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static const char *const sources[NAMED_KINDS] = {
	[NAMED_SYMBOL] = "symbol", [NAMED_DYNAMIC] = "dynamic", [NAMED_PLT] = "plt",         [NAMED_BUILD] = "build",
	[NAMED_START] = "start",   [NAMED_PAGE] = "page",       [NAMED_ADDRESS] = "address",
};

const char *capturetext_named(uint32_t named)
{
	return sources[named < NAMED_KINDS ? named : NAMED_ADDRESS];
}

bool capturetext_parse_named(const char *text, uint32_t *ret)
{
	for (uint32_t i = 0; i < NAMED_KINDS; i++)
		if (!strcmp(sources[i], text)) {
			*ret = i;
			return true;
		}
	return false;
}

void capturetext_hex(char *out, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool capturetext_parse_hex(const char *text, uint8_t *ret, size_t size, uint8_t *ret_n)
{
	size_t n = 0;

	for (; *text; text += 2, n++) {
		if (n == size || digit(text[0]) < 0 || digit(text[1]) < 0)
			return false;
		ret[n] = digit(text[0]) << 4 | digit(text[1]);
	}
	*ret_n = n;
	return true;
}
