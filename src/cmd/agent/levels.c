#include "cmd/agent/levels.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fleet/agent/agentconf.h"

/* Of the programs at a switch and at the wake-up before it, for a thread that is not recorded: measured with the kernel's statistics, which
 * take a third of it themselves. */
enum { SWITCH_NS = 200 };

char *levels_what(const struct agentconf_target *t, unsigned level)
{
	static const char *const costly[] = { "wait", "io", "fault" };
	struct buf b = { 0 };

	buf_puts(&b, "");
	for (const char *s = t->what; *s;) {
		size_t n = strcspn(s, ",");
		bool out = false;

		for (size_t i = 0; level && i < ARRAY_LEN(costly); i++)
			out |= strlen(costly[i]) == n && !strncmp(costly[i], s, n);
		if (!out && n) {
			buf_puts(&b, b.n ? "," : "");
			buf_add(&b, s, n);
		}
		s += n;
		s += *s == ',';
	}
	if (!b.n)
		buf_puts(&b, "cpu"); /* a target without any would tell nothing */
	return b.data;
}

uint64_t levels_hz(const struct agentconf_target *t, unsigned level)
{
	return MAX(1, t->hz >> (level > 1 ? level - 1 : 0));
}

double levels_wait_rate(double switches_hz)
{
	return switches_hz * SWITCH_NS / 1e9;
}

unsigned levels_first(const struct agentconf_target *t, double left, double switches_hz)
{
	_cleanup_free_ char *all = levels_what(t, 0), *less = levels_what(t, 1);

	return strcmp(all, less) && levels_wait_rate(switches_hz) > left;
}

/* What an instance would cost in addition at one level less: its waits, or twice the rate. */
static double more_rate(double rate, unsigned level, double switches_hz)
{
	return level == 1 ? levels_wait_rate(switches_hz) : rate;
}

int levels_decide(const double *rates, const unsigned *levels, int n, double allowed, double switches_hz, int room, int *ret_step)
{
	double sum = 0;
	int found = -1;

	for (int i = 0; i < n; i++)
		sum += MAX(rates[i], 0);
	*ret_step = sum > allowed ? 1 : -1;
	for (int i = 0; i < n; i++) {
		if (rates[i] < 0)
			continue;
		if (sum > allowed && levels[i] + 1 < LEVELS && (found < 0 || rates[i] > rates[found]))
			found = i;
		if (sum < allowed / 2 && room && levels[i] && sum + more_rate(rates[i], levels[i], switches_hz) < allowed &&
		    (found < 0 || rates[i] < rates[found]))
			found = i;
	}
	return found;
}
