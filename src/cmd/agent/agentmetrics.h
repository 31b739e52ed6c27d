/*
 * agentmetrics.h - the health of an agent, from its board, as metrics.
 */
#pragma once

struct board;
struct metrics;

void agentmetrics_set(struct metrics *m, const struct board *b);
