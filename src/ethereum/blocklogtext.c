/*
 * blocklogtext.c - the small texts in a node's log: counts, durations, colours. What blocklog.c is made of.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ethereum/blocklog.h"

/* Digits with thousands' commas and a decimal point. How many bytes, 0 = none. */
static size_t read_number(const char *s, size_t n, double *ret)
{
	double value = 0, place = 0;
	size_t i = 0;

	for (; i < n && (isdigit((unsigned char)s[i]) || (i && (s[i] == ',' || s[i] == '_')) ||
			 (s[i] == '.' && i && !place)); i++) {
		if (s[i] == '.')
			place = 1;
		if (!isdigit((unsigned char)s[i]))
			continue;
		if (place)
			value += (s[i] - '0') * (place /= 10);
		else
			value = value * 10 + (s[i] - '0');
	}
	*ret = value;
	return i;
}

int blocklog_parse_count(const char *s, size_t n, uint64_t *ret)
{
	static const char units[] = " KMGT";
	size_t i;
	double value;
	const char *unit;

	i = read_number(s, n, &value);
	if (!i)
		return -EINVAL;
	while (i < n && s[i] == ' ')
		i++;
	if (i < n && strncmp(s + i, "gas", n - i) &&
	    (unit = strchr(units + 1, toupper((unsigned char)s[i]))) && *unit) {
		for (int k = unit - units; k > 0; k--)
			value *= 1000;
		i++;
	}
	if (i < n && (n - i != 3 || strncmp(s + i, "gas", 3)))
		return -EINVAL;
	if (value > 9e15)
		return -EINVAL; /* more than a double holds: no block has it */
	*ret = (uint64_t)llround(value);
	return 0;
}

static const struct unit {
	const char *name;
	double ns;
} time_units[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "\xc2\xb5s", 1e3 }, { "\xce\xbcs", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
	{ "m", 6e10 }, { "h", 3.6e12 },
};

static const struct unit *find_unit(const char *s, size_t n)
{
	const struct unit *best = NULL;

	for (size_t i = 0; i < ARRAY_LEN(time_units); i++)
		if (strlen(time_units[i].name) <= n && !strncmp(s, time_units[i].name, strlen(time_units[i].name)) &&
		    (!best || strlen(best->name) < strlen(time_units[i].name)))
			best = &time_units[i];
	return best;
}

int blocklog_parse_time(const char *s, size_t n, uint64_t *ret_ns)
{
	double sum = 0, value;

	if (!n)
		return -EINVAL;
	while (n) {
		size_t used = read_number(s, n, &value);
		const struct unit *unit;

		if (!used)
			return -EINVAL;
		s += used;
		n -= used;
		if (n && *s == ' ') {
			s++;
			n--;
		}
		unit = find_unit(s, n);
		if (!unit)
			return -EINVAL;
		sum += value * unit->ns;
		s += strlen(unit->name);
		n -= strlen(unit->name);
	}
	if (sum > 9e15)
		return -EINVAL;
	*ret_ns = (uint64_t)llround(sum);
	return 0;
}

/* Returns the length of the escape sequence at s: ESC [ parameters letter. A truncated one extends to the
 * end. */
static size_t escape_length(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 2 || s[1] != '[')
		return 1;
	while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x40)
		i++;
	return i < n ? i + 1 : n;
}

static int hex_digit(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* \u001b and its like are one byte where they can be, and "?" elsewhere. 0: not four digits. */
static size_t unescape_hex(const char *s, size_t n, char *ret)
{
	unsigned value = 0;

	if (n < 4)
		return 0;
	for (int i = 0; i < 4; i++) {
		if (hex_digit(s[i]) < 0)
			return 0;
		value = value * 16 + hex_digit(s[i]);
	}
	*ret = value && value < 0x80 ? (char)value : '?';
	return 4;
}

/* {"log":"the line\n","stream":"stdout",...}: the line, in place. */
static size_t unwrap_container(char *line, size_t n)
{
	static const char opening[] = "{\"log\":\"";
	size_t out = 0, i = sizeof(opening) - 1;

	if (n < i || strncmp(line, opening, i))
		return n;
	while (i < n && line[i] != '"') {
		char c = line[i++];

		if (c == '\\' && i < n) {
			c = line[i++];
			if (c == 'n' || c == 'r')
				continue;
			if (c == 't')
				c = ' ';
			else if (c == 'u')
				i += unescape_hex(line + i, n - i, &c);
		}
		line[out++] = c;
	}
	line[out] = 0;
	return out;
}

size_t blocklog_plain(char *line, size_t n)
{
	size_t out = 0;

	n = unwrap_container(line, n);
	for (size_t i = 0; i < n;) {
		if (line[i] == '\033') {
			i += escape_length(line + i, n - i);
			continue;
		}
		line[out++] = line[i] == '\t' ? ' ' : line[i];
		i++;
	}
	line[out] = 0;
	return out;
}
