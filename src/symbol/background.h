/*
 * background.h - names for a profile that is still being recorded, found on a thread of its own.
 *
 * Reading the symbols of a large program takes seconds, in which whoever records and draws must not stand
 * still. So the frames that are new are copied into a small profile, which the thread symbolizes as usual,
 * and the names are copied back when they are there. All calls are from one thread, the owner of the profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct background;
struct profile;
struct symbolize_options;

struct background *background_new(const struct symbolize_options *options);
/* Does not wait for what is under way. */
void background_free(struct background *b);
/* Takes names that were found into p and hands over what is new; true when there were names. p must be the
 * same from call to call. */
bool background_poll(struct background *b, struct profile *p);
/* CPU time of the child that reads for it, so far; a new one begins at 0 again. */
uint64_t background_child_cpu_ns(const struct background *b);
/* Is anything being looked for? */
bool background_busy(const struct background *b);
