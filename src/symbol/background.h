/*
 * background.h - symbolizes a profile that is still being recorded, on a thread of its own.
 *
 * Reading the symbols of a large program takes seconds, for which neither the recorder nor the display may
 * stop. So new frames are copied into a small profile, which the thread symbolizes as usual, and the names
 * are copied back when they are ready. All calls are from one thread, the owner of the profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct background;
struct profile;
struct symbolize_options;

struct background *background_new(const struct symbolize_options *options);
/* Does not wait for work in progress. */
void background_free(struct background *b);
/* Copies finished names into p and hands over new frames; true when there were names. p must be the same
 * from call to call. */
bool background_poll(struct background *b, struct profile *p);
/* CPU time of the child that reads for it, so far; a new one begins at 0 again. */
uint64_t background_child_cpu_ns(const struct background *b);
/* Is anything being looked for? */
bool background_busy(const struct background *b);
