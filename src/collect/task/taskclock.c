#include "collect/task/taskclock.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"

enum {
	TRIES = 8,
	NEWEST = 4,        /* pairs that are looked at one by one */
	NEAR_TICKS = 1000, /* a pair that was taken within so many is as good as any */
};

#ifdef __x86_64__
/* Is the counter invariant? Most hypervisors do not promise it, so that they may move a machine, and keep it so all the same. */
static bool is_steady(void)
{
	unsigned a, b, c, d;

	return (__get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1 << 8) || (__get_cpuid(1, &a, &b, &c, &d) && c & 1U << 31);
}

/* The kernel takes the counter off its list of clocks when it has seen it go wrong. */
int taskclock_check(struct err *err)
{
	_cleanup_free_ char *clocks = NULL;
	size_t n;

	if (!is_steady())
		return err_set(err, ENOTSUP, "this processor's time-stamp counter does not run at a constant rate, and hooks have no other "
			       "clock: -e cpu and -e wait need none");
	if (fd_read_path("/sys/devices/system/clocksource/clocksource0/available_clocksource", 4096, &clocks, &n) >= 0 &&
	    !strstr(clocks, "tsc"))
		return err_set(err, ENOTSUP, "the kernel does not trust this machine's time-stamp counter, and hooks have no other "
			       "clock: -e cpu and -e wait need none");
	return 0;
}

uint64_t taskclock_ticks(void)
{
	return __rdtsc();
}
#else
int taskclock_check(struct err *err)
{
	return err_set(err, ENOTSUP, "-e task puts hooks into its target, and there are none for this processor yet: -e cpu and -e wait need none");
}

/* arm64: its rate is constant. */
uint64_t taskclock_ticks(void)
{
	uint64_t ticks;

	asm volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#endif

void taskclock_take(struct taskclock *c)
{
	struct taskclock_pair best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int k = 0; k < TRIES && least > NEAR_TICKS; k++) {
		uint64_t before = taskclock_ticks(), ns = clock_mono_ns(), after = taskclock_ticks();

		if (after - before < least) {
			least = after - before;
			best = (struct taskclock_pair){ before + (after - before) / 2, ns };
		}
	}
	taskclock_add(c, best);
}

void taskclock_add(struct taskclock *c, struct taskclock_pair p)
{
	if (c->n && (p.ticks <= c->pairs[c->n - 1].ticks || p.ns <= c->pairs[c->n - 1].ns))
		return;
	if (c->n == TASKCLOCK_PAIRS) {
		size_t kept = TASKCLOCK_PAIRS / 4;

		for (size_t i = 0; i < kept; i++)
			c->pairs[i] = c->pairs[2 * i];
		memmove(&c->pairs[kept], &c->pairs[2 * kept], (TASKCLOCK_PAIRS - 2 * kept) * sizeof(c->pairs[0]));
		c->n -= kept;
	}
	c->pairs[c->n++] = p;
}

uint64_t taskclock_ns(const struct taskclock *c, uint64_t ticks)
{
	size_t low = 0, high = c->n - 1;
	const struct taskclock_pair *a, *b;
	int64_t ns;

	/* Nearly all that is asked for is new. */
	for (int k = 0; k < NEWEST && high - low > 1; k++) {
		if (c->pairs[high - 1].ticks <= ticks)
			low = high - 1;
		else
			high--;
	}
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (c->pairs[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	a = &c->pairs[low];
	b = &c->pairs[high];
	ns = (int64_t)((double)(int64_t)(ticks - a->ticks) * (double)(b->ns - a->ns) / (double)(b->ticks - a->ticks));
	return ns < 0 && (uint64_t)-ns > a->ns ? 0 : a->ns + ns;
}

uint64_t taskclock_span(const struct taskclock *c, uint64_t ns)
{
	const struct taskclock_pair *a = &c->pairs[0], *b = &c->pairs[c->n - 1];

	return (uint64_t)((double)ns * (double)(b->ticks - a->ticks) / (double)(b->ns - a->ns));
}
