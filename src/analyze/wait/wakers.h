/* wakers.h - the second half of waits.c: the wakers of the hottest sites. Only waits.c calls it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct causes_wait;
struct profile;
struct select_options;
struct waits;

/* The index of a stack at which a wait has that cause: a stack can be idle at one time and busy at another. */
size_t waits_slot(uint32_t stack, const struct causes_wait *wait);

/* Fills wakers, ran and chains of the first n sites. of_stack: waits_slot() to site, OWNFUNCTION_NONE = no wait's. */
void wakers_find(struct waits *w, const struct profile *p, const struct select_options *o,
		 const uint8_t *picked, const uint32_t *of_stack, size_t n);
