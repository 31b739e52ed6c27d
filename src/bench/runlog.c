#include "bench/runlog.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text/match.h"
#include "base/text/str.h"

enum { GROUPS = 6 };

#define DURATION "([0-9.]+)(ns|\xc2\xb5s|\xce\xbcs|us|ms|s|m)"

/* After the clients' sources; not yet verified against the clients themselves. phase NULL: gas. */
static const struct {
	const char *client, *phase, *regex;
	double scale;
} presets[] = {
	/* [METRIC] BLOCK 24443168 0x… | 0.630 Ggas/s | 59.75 ms | 442 txs | 37 Mgas (62%), and what it is
	   made of */
	{ "ethrex", "block", "BLOCK [0-9]+ [^|]*\\| *[0-9.]+ Ggas/s *\\| *([0-9.]+) ms", 0 },
	{ "ethrex", NULL, "BLOCK [0-9]+ .*\\| *([0-9.]+) Mgas \\(", 0 },
	/* [METRIC] BLOCK EXECUTION THROUGHPUT (n): x Ggas/s TIME SPENT: y ms. Gas Used: g (p%), … */
	{ "ethrex", "block", "BLOCK EXECUTION THROUGHPUT.*TIME SPENT: ([0-9.]+) ms", 0 },
	{ "ethrex", NULL, "BLOCK EXECUTION THROUGHPUT.*Gas Used: ([0-9.]+)", 1 },
	{ "ethrex", "validate", "[|]- +validate: +([0-9.]+) ms", 0 },
	{ "ethrex", "exec", "[|]- +exec: +([0-9.]+) ms", 0 },
	{ "ethrex", "merkle", "[|]- +merkle: +([0-9.]+) ms", 0 },
	{ "ethrex", "store", "[|]- +store: +([0-9.]+) ms", 0 },
	{ "reth", "block", "Block added to canonical chain.* elapsed=" DURATION, 0 },
	{ "reth", NULL, "Block added to canonical chain.* gas_used=([0-9.]+)", 1 },
	{ "geth", "block", "Imported new (potential )?chain segment.* elapsed=" DURATION, 0 },
	{ "geth", NULL, "Imported new (potential )?chain segment.* mgas=([0-9.]+)", 1e6 },
};
const char *const runlog_presets[] = { "ethrex", "reth", "geth", NULL };

/* --- numbers --- */

/* Seconds in a unit at the beginning of s, 0 = there is none; *n: its length. */
static double time_unit(const char *s, size_t *n)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{ "ns", 1e-9 }, { "us", 1e-6 }, { "\xc2\xb5s", 1e-6 }, { "\xce\xbcs", 1e-6 },
		{ "ms", 1e-3 }, { "m", 60 },    { "s", 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		*n = strlen(units[i].name);
		if (!strncmp(s, units[i].name, *n) && !isalpha((unsigned char)s[*n]))
			return units[i].seconds;
	}
	*n = 0;
	return 0;
}

/* "33.1ms", "60 ms", "1m2.3s": the number at s; its text may be followed by more of the same. */
static int read_time(const char *s, double scale, double *ret)
{
	double sum = 0;

	for (int part = 0; part < 3; part++) {
		size_t n = strspn(s, "0123456789."), blank, unit;
		_cleanup_free_ char *digits = mem_strndup(s, n);
		double x, seconds;

		if (str_parse_number(digits, &x))
			return -EINVAL;
		s += n;
		blank = strspn(s, " ");
		seconds = time_unit(s + blank, &unit);
		if (!seconds)
			seconds = scale;
		if (!seconds)
			return -EINVAL;
		sum += x * seconds;
		s += blank + unit;
		if (!unit || seconds != 60)
			break;
		/* Minutes are followed by seconds; alone they are milliseconds of a line that was cut. */
		if (!isdigit((unsigned char)*s))
			return -EINVAL;
	}
	*ret = sum;
	return 0;
}

static double gas_unit(char c)
{
	return c == 'K' || c == 'k' ? 1e3 : c == 'M' ? 1e6 : c == 'G' ? 1e9 : c == 'T' ? 1e12 : 0;
}

static int read_gas(const char *s, double scale, double *ret)
{
	size_t n = strspn(s, "0123456789."), blank = strspn(s + n, " ");
	_cleanup_free_ char *digits = mem_strndup(s, n);
	double unit = gas_unit(s[n + blank]);

	if (str_parse_number(digits, ret))
		return -EINVAL;
	/* A letter alone or before "gas": "36.42Mgas", not "12 More". */
	if (unit && isalpha((unsigned char)s[n + blank + 1]) && strncmp(s + n + blank + 1, "gas", 3))
		unit = 0;
	*ret *= unit ? unit : scale;
	return 0;
}

int runlog_parse_gas(const char *s, double *ret)
{
	size_t n = strspn(s, "0123456789.");

	if (!n || (s[n] && (!gas_unit(s[n]) || s[n + 1])))
		return -EINVAL;
	return read_gas(s, 1, ret);
}

/* --- patterns --- */

static int add_pattern(struct runlog *l, size_t phase, const char *regex, double scale, struct err *err)
{
	struct runlog_pattern p = { .phase = phase, .scale = scale };
	int e = regcomp(&p.regex, regex, REG_EXTENDED);
	char why[128];

	if (e) {
		regerror(e, &p.regex, why, sizeof(why));
		return err_set(err, EINVAL, "'%s' is no regular expression: %s", regex, why);
	}
	if (!p.regex.re_nsub) {
		regfree(&p.regex);
		return err_set(err, EINVAL,
			       "'%s' has no group for the number: write ([0-9.]+) where it stands", regex);
	}
	l->gas_given |= phase == SIZE_MAX;
	vec_push(&l->patterns, p);
	return 0;
}

static size_t find_phase(struct runlog *l, const char *name)
{
	for (size_t i = 0; i < l->phases.n; i++)
		if (!strcmp(l->phases.v[i].name, name))
			return i;
	vec_push(&l->phases, (struct runlog_phase){ .name = mem_strdup(name) });
	return l->phases.n - 1;
}

int runlog_add_phase(struct runlog *l, const char *spec, struct err *err)
{
	/* Names of figures that bench has of its own. */
	static const char *const taken[] = {
		"wall", "user", "system", "waits", "preemptions", "rest", "gas"
	};
	const char *equals = strchr(spec, '=');
	size_t n = equals ? (size_t)(equals - spec) : 0;
	_cleanup_free_ char *name = mem_strndup(spec, n);

	if (!n || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") != n)
		return err_set(err, EINVAL,
			       "a phase is NAME=REGEX, its name of letters and digits: exec=TIME SPENT: "
			       "([0-9.]+) ms");
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (!strcmp(name, taken[i]))
			return err_set(err, EINVAL, "'%s' is measured anyway: give the phase another name",
				       name);
	return add_pattern(l, find_phase(l, name), equals + 1, 0, err);
}

int runlog_add_gas(struct runlog *l, const char *regex, struct err *err)
{
	return add_pattern(l, SIZE_MAX, regex, 1, err);
}

int runlog_add_preset(struct runlog *l, const char *name, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < ARRAY_LEN(presets) && !e; i++) {
		size_t phase = SIZE_MAX;

		if (strcmp(presets[i].client, name))
			continue;
		if (presets[i].phase) {
			phase = find_phase(l, presets[i].phase);
			/* Clients print the phases of a block when it is done. */
			l->phases.v[phase].inner = strcmp(presets[i].phase, "block") != 0;
		}
		e = add_pattern(l, phase, presets[i].regex, presets[i].scale, err);
	}
	return e;
}

/* --- lines --- */

static void match(struct runlog *l, const struct runlog_pattern *p, const char *line)
{
	regmatch_t groups[GROUPS];
	double x;

	if (!match_regex(&p->regex, line, GROUPS, groups))
		return;
	for (size_t i = 1; i < GROUPS; i++) {
		const char *s = groups[i].rm_so >= 0 ? line + groups[i].rm_so : "";

		if (!isdigit((unsigned char)*s))
			continue;
		if (p->phase == SIZE_MAX ? read_gas(s, p->scale, &x) : read_time(s, p->scale, &x))
			break;
		if (p->phase == SIZE_MAX) {
			l->gas += x;
			l->gas_matches++;
		} else {
			l->phases.v[p->phase].seconds += x;
			l->phases.v[p->phase].matches++;
			if (l->now_ns && !l->phases.v[p->phase].inner && x * 1e9 < (double)l->now_ns)
				vec_push(&l->spans,
					 (struct runlog_span){ p->phase, l->now_ns - (uint64_t)(x * 1e9),
							       l->now_ns });
		}
		return;
	}
	l->unclear++;
}

/* In place: escape sequences and control characters. */
static void strip_colours(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\033' && s[1] == '[') {
			for (s += 2; *s && !(*s >= '@' && *s <= '~');)
				s++;
			s += *s != 0;
		} else if ((unsigned char)*s < ' ' && *s != '\t') {
			s++;
		} else {
			*out++ = *s++;
		}
	}
	*out = 0;
}

void runlog_end(struct runlog *l)
{
	if (l->line.n) {
		strip_colours(l->line.data);
		for (size_t i = 0; i < l->patterns.n; i++)
			match(l, &l->patterns.v[i], l->line.data);
	}
	l->line.n = 0;
}

void runlog_feed(struct runlog *l, const char *text, size_t n)
{
	for (const char *end = text + n; text < end;) {
		const char *newline = memchr(text, '\n', end - text);
		size_t length = (newline ? newline : end) - text;
		size_t room = RUNLOG_LINE - l->line.n;

		buf_add(&l->line, text, MIN(length, room));
		text += length;
		if (newline) {
			runlog_end(l);
			text++;
		}
	}
}

double runlog_seconds(const struct runlog *l, size_t phase)
{
	return l->phases.v[phase].matches ? l->phases.v[phase].seconds : NAN;
}

double runlog_gas(const struct runlog *l)
{
	return l->gas_matches ? l->gas : NAN;
}

void runlog_reset(struct runlog *l)
{
	for (size_t i = 0; i < l->phases.n; i++) {
		l->phases.v[i].seconds = 0;
		l->phases.v[i].matches = 0;
	}
	l->gas = 0;
	l->gas_matches = 0;
	l->line.n = 0;
	vec_clear(&l->spans);
}

void runlog_done(struct runlog *l)
{
	for (size_t i = 0; i < l->phases.n; i++)
		free(l->phases.v[i].name);
	for (size_t i = 0; i < l->patterns.n; i++)
		regfree(&l->patterns.v[i].regex);
	vec_done(&l->phases);
	vec_done(&l->patterns);
	vec_done(&l->spans);
	buf_done(&l->line);
}
