/*
 * blocklogtext.c - the figures in a node's log: counts with their units, and durations.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "ethereum/log/blocklog.h"

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
	if (i < n && (n - i != 3 || strncasecmp(s + i, "gas", 3)) &&
	    (unit = strchr(units + 1, toupper((unsigned char)s[i]))) && *unit) {
		for (int k = unit - units; k > 0; k--)
			value *= 1000;
		i++;
	}
	if (i < n && (n - i != 3 || strncasecmp(s + i, "gas", 3)))
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

/* The last part is seconds or less, as all clients print it: what ends in "m" is a line that was cut within "ms". */
int blocklog_parse_time(const char *s, size_t n, uint64_t *ret_ns)
{
	const struct unit *unit = NULL;
	double sum = 0, value;

	while (n) {
		size_t used = read_number(s, n, &value);

		if (!used)
			return -EINVAL;
		s += used;
		n -= used;
		while (n && *s == ' ') {
			s++;
			n--;
		}
		unit = find_unit(s, n);
		if (!unit)
			return -EINVAL;
		sum += value * unit->ns;
		s += strlen(unit->name);
		n -= strlen(unit->name);
		while (n && *s == ' ') {
			s++;
			n--;
		}
	}
	if (!unit || unit->ns > 1e9 || sum > 9e15)
		return -EINVAL;
	*ret_ns = (uint64_t)llround(sum);
	return 0;
}
