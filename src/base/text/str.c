#include "base/text/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool str_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && !strcmp(s + n - m, suffix);
}

int str_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *str_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

size_t str_distance(const char *a, const char *b)
{
	enum { MAX_LENGTH = 64 };
	uint8_t d[MAX_LENGTH + 1][MAX_LENGTH + 1];
	size_t n = strnlen(a, MAX_LENGTH), m = strnlen(b, MAX_LENGTH);

	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
			uint8_t best = d[i - 1][j - 1] + (x != y);

			best = MIN(best, MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				best = MIN(best, d[i - 2][j - 2] + 1);
			d[i][j] = best;
		}
	return d[n][m];
}

/* A plain decimal number without sign, exponent or "inf"; returns what follows it, NULL if none. */
static const char *parse_number(const char *s, double *ret)
{
	const char *p = s;

	while (isdigit((unsigned char)*p))
		p++;
	if (*p == '.')
		p++;
	while (isdigit((unsigned char)*p))
		p++;
	if (p == s || (p == s + 1 && *s == '.') || p - s > 30)
		return NULL;
	*ret = strtod(s, NULL);
	return p;
}

struct unit {
	const char *name;
	double factor;
};

static int parse_unit(const char *s, const struct unit *units, size_t n, double max, uint64_t *ret)
{
	double v;
	const char *end = parse_number(s, &v);

	if (!end)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(end, units[i].name)) {
			v *= units[i].factor;
			if (!(v <= max))
				return -EINVAL;
			*ret = (uint64_t)llround(v);
			return 0;
		}
	return -EINVAL;
}

int str_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 },
		{ "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 },
	};

	return parse_unit(s, units, ARRAY_LEN(units), 9e18, ret_ns);
}

int str_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 }, { "B", 1 }, { "K", 1 << 10 }, { "KB", 1 << 10 }, { "KiB", 1 << 10 },
		{ "M", 1 << 20 }, { "MB", 1 << 20 }, { "MiB", 1 << 20 }, { "G", 1 << 30 },
		{ "GB", 1 << 30 }, { "GiB", 1 << 30 }, { "T", 1ULL << 40 }, { "TB", 1ULL << 40 },
	};

	return parse_unit(s, units, ARRAY_LEN(units), 9e18, ret_bytes);
}

int str_parse_percent(const char *s, double *ret_percent)
{
	double v;
	const char *end = parse_number(s, &v);

	if (!end || (*end && strcmp(end, "%")) || v > 100)
		return -EINVAL;
	*ret_percent = v;
	return 0;
}

int str_parse_number(const char *s, double *ret)
{
	double v;
	const char *end = parse_number(s, &v);

	if (!end || *end)
		return -EINVAL;
	*ret = v;
	return 0;
}

int str_parse_uint(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end || errno || v < min || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

char *str_count(char out[32], uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), o = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = digits[i];
	}
	out[o] = 0;
	return out;
}

/* Three significant digits. */
static char *scaled(char out[32], double v, const char *unit)
{
	snprintf(out, 32, "%.*f %s", v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, unit);
	return out;
}

char *str_bytes(char out[32], uint64_t bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
	double v = bytes;
	size_t u = 0;

	while (v >= 999.5 && u + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		u++;
	}
	if (!u) {
		snprintf(out, 32, "%llu B", (unsigned long long)bytes);
		return out;
	}
	return scaled(out, v, units[u]);
}

char *str_duration(char out[32], uint64_t ns)
{
	double v = ns;

	if (v < 999.5)
		snprintf(out, 32, "%llu ns", (unsigned long long)ns);
	else if (v < 999.5e3)
		scaled(out, v / 1e3, "µs");
	else if (v < 999.5e6)
		scaled(out, v / 1e6, "ms");
	else
		scaled(out, v / 1e9, "s");
	return out;
}

/* The page has the same rule (ui/names.js). */
char *str_share(char out[32], double percent)
{
	double v = fabs(percent);

	if (v > 0 && v < 0.01)
		snprintf(out, 32, "%s<0.01 %%", percent < 0 ? "-" : "");
	else
		snprintf(out, 32, "%.*f %%", v >= 99.95 || !(v > 0) ? 0 : v >= 0.995 ? 1 : 2, percent);
	return out;
}

char *str_right(char out[32], const char *text, int columns)
{
	size_t bytes = strnlen(text, 31), pad;
	int used = 0;

	for (size_t i = 0; i < bytes; i++)
		used += ((unsigned char)text[i] & 0xc0) != 0x80;
	pad = used < columns ? MIN((size_t)(columns - used), 31 - bytes) : 0;
	memmove(out + pad, text, bytes);
	memset(out, ' ', pad);
	out[pad + bytes] = 0;
	return out;
}
