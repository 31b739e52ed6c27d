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
