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

/* After the clients' sources; not yet verified against the clients themselves. phase NULL: gas; REPEATS: how often the
 * program did its work. */
#define REPEATS "runs"
static const struct {
	const char *client, *phase, *regex;
	double scale;
	bool product; /* two numbers, a rate and a time, make the gas */
} presets[] = {
	/* [METRIC] BLOCK 24443168 0x… | 0.630 Ggas/s | 59.75 ms | 442 txs | 37 Mgas (62%), and its parts. The gas at
	   the end is in whole Mgas: rate times time is more exact. */
	{ "ethrex", "block", "BLOCK [0-9]+ [^|]*\\| *[0-9.]+ Ggas/s *\\| *([0-9.]+) ms", 0 },
	{ "ethrex", NULL, "BLOCK [0-9]+ [^|]*\\| *([0-9.]+) Ggas/s *\\| *([0-9.]+) ms.*\\| *[0-9.]+ Mgas \\(", 1e6, true },
	/* [METRIC] BLOCK EXECUTION THROUGHPUT (n): x Ggas/s TIME SPENT: y ms. Gas Used: g (p%), … in gigagas */
	{ "ethrex", "block", "BLOCK EXECUTION THROUGHPUT.*TIME SPENT: ([0-9.]+) ms", 0 },
	{ "ethrex", NULL, "BLOCK EXECUTION THROUGHPUT.*Gas Used: ([0-9.]+)", 1e9 },
	{ "ethrex", "validate", "[|]- +validate: +([0-9.]+) ms", 0 },
	{ "ethrex", "exec", "[|]- +exec: +([0-9.]+) ms", 0 },
	{ "ethrex", "merkle", "[|]- +merkle: +([0-9.]+) ms", 0 },
	{ "ethrex", "store", "[|]- +store: +([0-9.]+) ms", 0 },
	/* ethrex-replay: one run, or --repeat 10 with a summary and "  # 1: prep=  1.20s exec= 59.75ms total=  1.26s". */
	{ "ethrex", "prepare", "Storage preparation finished in " DURATION, 0 },
	{ "ethrex", "pipeline", "add_block_pipeline execution time: " DURATION, 0 },
	{ "ethrex", "pipeline", "# *[0-9]+: prep= *[^ ]+ exec= *" DURATION, 0 },
	{ "ethrex", REPEATS, "=== Profiling Results \\(([0-9]+) runs\\) ===", 1 },
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

/* The bare number at s. */
static int read_number(const char *s, double *ret)
{
	_cleanup_free_ char *digits = mem_strndup(s, strspn(s, "0123456789."));

	return str_parse_number(digits, ret);
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
	l->gas_given |= phase == RUNLOG_GAS;
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
	return add_pattern(l, RUNLOG_GAS, regex, 1, err);
}

int runlog_add_preset(struct runlog *l, const char *name, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < ARRAY_LEN(presets) && !e; i++) {
		size_t phase = RUNLOG_GAS;

		if (strcmp(presets[i].client, name))
			continue;
		if (presets[i].phase && !strcmp(presets[i].phase, REPEATS)) {
			phase = RUNLOG_REPEATS;
		} else if (presets[i].phase) {
			phase = find_phase(l, presets[i].phase);
			/* Clients print the phases of a block when it is done. */
			l->phases.v[phase].inner = strcmp(presets[i].phase, "block") != 0;
			/* A build without [METRIC] lines still times the block. */
			if (!strcmp(presets[i].phase, "pipeline"))
				l->phases.v[find_phase(l, "block")].instead = phase;
		}
		e = add_pattern(l, phase, presets[i].regex, presets[i].scale, err);
		if (!e)
			l->patterns.v[l->patterns.n - 1].product = presets[i].product;
	}
	return e;
}

/* --- lines --- */

static void add_time(struct runlog *l, size_t phase, double seconds)
{
	struct runlog_phase *p = &l->phases.v[phase];

	p->seconds += seconds;
	p->matches++;
	if (l->now_ns && !p->inner && seconds * 1e9 < (double)l->now_ns)
		vec_push(&l->spans, (struct runlog_span){ phase, l->now_ns - (uint64_t)(seconds * 1e9), l->now_ns });
}

/* The first group that begins with a digit, from *at on; NULL: none. */
static const char *next_number(const regmatch_t *groups, const char *line, size_t *at)
{
	for (; *at < GROUPS; ++*at)
		if (groups[*at].rm_so >= 0 && isdigit((unsigned char)line[groups[*at].rm_so]))
			return line + groups[(*at)++].rm_so;
	return NULL;
}

static void match(struct runlog *l, const struct runlog_pattern *p, const char *line)
{
	regmatch_t groups[GROUPS];
	const char *s, *second;
	size_t at = 1;
	double x, y;

	if (!match_regex(&p->regex, line, GROUPS, groups))
		return;
	s = next_number(groups, line, &at);
	second = next_number(groups, line, &at);
	if (!s || (p->phase >= RUNLOG_REPEATS ? read_gas(s, p->scale, &x) : read_time(s, p->scale, &x))) {
		l->unclear++;
	} else if (p->phase == RUNLOG_GAS) {
		if (p->product && second && !read_number(s, &x) && !read_number(second, &y))
			x *= y * p->scale;
		l->gas += x;
		l->gas_matches++;
	} else if (p->phase == RUNLOG_REPEATS) {
		l->repeats = x >= 1 ? (uint64_t)x : 1;
	} else {
		add_time(l, p->phase, x);
	}
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

double runlog_total(const struct runlog *l, size_t phase)
{
	const struct runlog_phase *p = &l->phases.v[phase];

	if (!p->matches && p->instead)
		p = &l->phases.v[p->instead];
	return p->matches ? p->seconds : NAN;
}

double runlog_seconds(const struct runlog *l, size_t phase)
{
	return runlog_total(l, phase) / MAX(l->repeats, 1);
}

double runlog_gas(const struct runlog *l)
{
	return l->gas_matches ? l->gas / MAX(l->repeats, 1) : NAN;
}

void runlog_reset(struct runlog *l)
{
	for (size_t i = 0; i < l->phases.n; i++) {
		l->phases.v[i].seconds = 0;
		l->phases.v[i].matches = 0;
	}
	l->gas = 0;
	l->gas_matches = 0;
	l->repeats = 0;
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
