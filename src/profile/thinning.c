#include "profile/thinning.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"

static const struct {
	const char *collector, *of;
} words[] = {
	{ "cpu", "ticks of the clock" },
	{ "hw", "of the usual samples" },
	{ "wait", "of the usual stacks of short waits" },
	{ "io", "of the usual stacks of calls" },
	{ "fault", "of the usual stacks of faults" },
};

void thinning_words(struct buf *b, const char *collector, uint64_t one_in)
{
	const char *of = "of the usual stacks";
	char n[32];

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(words[i].collector, collector))
			of = words[i].of;
	if (one_in <= 1)
		buf_puts(b, "all again");
	else
		buf_printf(b, "1 in %s %s", str_count(n, one_in), of);
}

double thinning_error_points(uint64_t sampled)
{
	/* A share of one half has the largest error: 1.96 √(½·½ / n). */
	return sampled ? MIN(100, 98 / sqrt(sampled)) : 100;
}

/* The dearest of those that are not out yet; n: there is none. */
static size_t dearest(const struct thinning_cost *costs, size_t n, const bool *out)
{
	size_t best = n;

	for (size_t i = 0; i < n; i++)
		if (!out[i] && costs[i].percent > 0 && (best == n || costs[i].percent > costs[best].percent))
			best = i;
	return best;
}

void thinning_advice(struct buf *b, const struct thinning_cost *costs, size_t n, double total, double limit)
{
	_cleanup_free_ bool *out = mem_alloc(MAX(n, 1) * sizeof(*out));
	_cleanup_(buf_done) struct buf names = { 0 };
	double rest = total;
	size_t i;

	while (rest > limit && (i = dearest(costs, n, out)) < n) {
		out[i] = true;
		rest -= costs[i].percent;
		buf_printf(&names, "%s%s", names.n ? " and " : "", costs[i].collector);
	}
	buf_printf(b, "To keep %.3g %%, ", limit);
	/* Without any collector there is nothing to record. */
	if (names.n && rest <= limit && dearest(costs, n, out) < n)
		buf_printf(b, "record without %s (the rest costs %.2f %%), or ", names.data, rest);
	buf_printf(b, "allow more (--max-overhead %.0f%%)", ceil(total * 1.05));
}
