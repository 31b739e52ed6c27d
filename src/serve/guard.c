#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/text/str.h"
#include "serve/guard.h"

enum { MAX_CAPTURE_DIGITS = 5 };

int guard_token_make(char out[GUARD_TOKEN_CHARS + 1])
{
	unsigned char random[GUARD_TOKEN_CHARS / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return errno ? -errno : -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(out + 2 * i, 3, "%02x", random[i]);
	return 0;
}

bool guard_token_is(const char *token, const char *given, size_t n)
{
	unsigned different = 0;

	if (n != GUARD_TOKEN_CHARS)
		return false;
	for (size_t i = 0; i < GUARD_TOKEN_CHARS; i++)
		different |= (unsigned char)token[i] ^ (unsigned char)given[i];
	return !different;
}

bool guard_host(const char *host, unsigned port)
{
	static const char *const ours[] = { "127.0.0.1", "localhost" };
	char wanted[32];

	for (size_t i = 0; host && i < sizeof(ours) / sizeof(ours[0]); i++) {
		snprintf(wanted, sizeof(wanted), "%s:%u", ours[i], port);
		if (!strcasecmp(host, wanted))
			return true;
		/* Browsers leave the port of http out. */
		if (port == 80 && !strcasecmp(host, ours[i]))
			return true;
	}
	return false;
}

struct guard_route guard_path(const char *token, const char *path)
{
	const struct guard_route nothing = { GUARD_NOTHING, 0 };
	const char *given = *path == '/' ? path + 1 : path, *rest = given + strcspn(given, "/");
	char digits[MAX_CAPTURE_DIGITS + 1];
	uint64_t capture;
	size_t n;

	if (*path != '/' || !guard_token_is(token, given, rest - given))
		return nothing;
	if (!*rest)
		return (struct guard_route){ GUARD_SLASH, 0 };
	rest++;
	if (!*rest)
		return (struct guard_route){ GUARD_LIST, 0 };
	n = strspn(rest, "0123456789");
	if (!n || n > MAX_CAPTURE_DIGITS)
		return nothing;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, rest);
	if (str_parse_uint(digits, 0, UINT32_MAX, &capture))
		return nothing;
	rest += n;
	if (!*rest)
		return (struct guard_route){ GUARD_SLASH, capture };
	if (!strcmp(rest, "/"))
		return (struct guard_route){ GUARD_PAGE, capture };
	if (!strcmp(rest, "/data"))
		return (struct guard_route){ GUARD_DATA, capture };
	return nothing;
}

bool guard_version(const char *text, uint64_t *ret)
{
	uint64_t version = 0;

	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	for (; *text; text++)
		version = version << 4 | (uint64_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
	*ret = version;
	return true;
}
