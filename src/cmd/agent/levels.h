/*
 * levels.h - what a recorder leaves out to keep the budget, and who is to leave out more. Pure: costs.c measures, instances.c acts.
 *
 * Level 0 is all that the configuration says; 1 is without waits, calls and faults; then half the rate, and a quarter.
 */
#pragma once

#include <stdint.h>

struct agentconf_target;

enum { LEVELS = 4 };

/* What is recorded at a level, and how often. Caller frees. */
char *levels_what(const struct agentconf_target *t, unsigned level);
uint64_t levels_hz(const struct agentconf_target *t, unsigned level);

/* What waits of one recorder cost at least, of one CPU: its programs run whenever any thread of the machine is switched or woken. */
double levels_wait_rate(double switches_hz);
/* The level at which a recorder begins, where so much is left for it: without waits if these alone would take more. */
unsigned levels_first(const struct agentconf_target *t, double left, double switches_hz);
/* Rates by instance (-1: not known) and their levels, and what is allowed for them together, all of one CPU. The index of
 * the instance that is to leave out more (*ret_step 1) or may record more (-1), or -1: none. room: all has been well for long. */
int levels_decide(const double *rates, const unsigned *levels, int n, double allowed, double switches_hz, int room, int *ret_step);
