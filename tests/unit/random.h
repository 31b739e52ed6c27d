/* random.h - numbers that look random and are the same in every run. */
#pragma once

#include <math.h>
#include <stdint.h>

struct random {
	uint64_t state; /* any */
};

static inline uint64_t random_next(struct random *r)
{
	uint64_t x = r->state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* Above 0, below 1. */
static inline double random_unit(struct random *r)
{
	return ((double)(random_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double random_normal(struct random *r)
{
	double radius = sqrt(-2 * log(random_unit(r)));

	return radius * cos(2 * M_PI * random_unit(r));
}
