#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/mem.h"
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

bool guard_host_six(const char *host, unsigned port)
{
	char wanted[32];

	snprintf(wanted, sizeof(wanted), "[::1]:%u", port);
	return host && (!strcmp(host, wanted) || (port == 80 && !strcmp(host, "[::1]")));
}

/* Reads digits; returns what follows, NULL = there is no number. */
static const char *read_number(const char *text, size_t *ret)
{
	size_t n = strspn(text, "0123456789");
	char digits[MAX_CAPTURE_DIGITS + 1];
	uint64_t number;

	if (!n || n > MAX_CAPTURE_DIGITS)
		return NULL;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, text);
	if (str_parse_uint(digits, 0, UINT32_MAX, &number))
		return NULL;
	*ret = number;
	return text + n;
}

bool guard_number(const char *text, size_t *ret)
{
	const char *rest = text ? read_number(text, ret) : NULL;

	return rest && !*rest;
}

struct guard_route guard_path(const char *token, const char *path)
{
	static const struct {
		const char *name;
		enum guard_kind kind;
	} below[] = { { "", GUARD_SLASH }, { "/", GUARD_PAGE }, { "/data", GUARD_DATA }, { "/first", GUARD_FIRST },
		      { "/progress", GUARD_PROGRESS } };
	static const struct {
		const char *path;
		enum guard_kind kind;
		enum guard_question question;
	} fleet[] = { { "/fleet", GUARD_SLASH, 0 }, { "/fleet/", GUARD_FLEET, 0 }, { "/fleet/open", GUARD_OPEN, 0 },
		      { "/fleet/map", GUARD_ASK, GUARD_MAP }, { "/fleet/nodes", GUARD_ASK, GUARD_NODES },
		      { "/fleet/choices", GUARD_ASK, GUARD_CHOICES } };
	const struct guard_route nothing = { .kind = GUARD_NOTHING, .before = GUARD_NONE };
	struct guard_route r = nothing;
	const char *given = *path == '/' ? path + 1 : path, *rest = given + strcspn(given, "/");

	if (*path != '/' || !guard_token_is(token, given, rest - given))
		return nothing;
	if (!*rest || !rest[1] || !strcmp(rest, "/diff")) {
		r.kind = !*rest ? GUARD_SLASH : !rest[1] ? GUARD_LIST : GUARD_DIFF;
		return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(fleet); i++)
		if (!strcmp(rest, fleet[i].path)) {
			r.kind = fleet[i].kind;
			r.question = fleet[i].question;
			return r;
		}
	rest = read_number(rest + 1, &r.capture);
	if (rest && *rest == '-') {
		r.before = r.capture;
		rest = read_number(rest + 1, &r.capture);
	}
	for (size_t i = 0; rest && i < ARRAY_LEN(below); i++)
		if (!strcmp(rest, below[i].name)) {
			r.kind = below[i].kind;
			return r;
		}
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
