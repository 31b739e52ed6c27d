/*
 * statusview.h - a board as people are told of it: a copy that stands still, and its figures in words. For statustext.c and statushtml.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "fleet/agent/board.h"

enum statusview_mood { STATUSVIEW_WELL, STATUSVIEW_IDLE, STATUSVIEW_BAD };

struct statusview {
	struct board *b; /* a copy, whose texts end, and are plain */
	uint64_t now_wall_ns, now_mono_ns;
	VEC(char *) troubles; /* what somebody should look at, a sentence each */
	double percent;       /* of one CPU, all processes, since the beginning */
};

void statusview_init(struct statusview *v, const struct board *b, uint64_t now_wall_ns);
void statusview_done(struct statusview *v);

bool statusview_is_target(const struct board_target *t);
bool statusview_is_sink(const struct board_sink *s);
const char *statusview_state(const struct board_target *t); /* "recording"; "unknown" */
enum statusview_mood statusview_target_mood(const struct board_target *t);
/* "delivering", "waiting", "failing", and after a failure "tried again in 12 s". */
const char *statusview_sink_state(const struct statusview *v, const struct board_sink *s, char out[48]);
enum statusview_mood statusview_sink_mood(const struct board_sink *s);
/* Of one CPU, with its BPF programs and earlier recorders, since the agent began. */
double statusview_target_percent(const struct statusview *v, const struct board_target *t);

/* "12 s", "3 min", "2 h 5 min", "4 d 2 h"; "-" where then is 0. A clock that was set back: "0 s". */
char *statusview_age(char out[32], uint64_t now_ns, uint64_t then_ns);
