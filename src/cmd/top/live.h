/*
 * live.h - a running program as a source of `top`: a session without a capture, whose last seconds are kept.
 */
#pragma once

#include <stdint.h>

#include "cmd/recording/start.h"
#include "collect/session.h"
#include "symbol/symbolize.h"
#include "tui/look.h"

struct live;

struct live_options {
	struct start who;              /* borrowed, as are all pointers */
	struct session_options session;
	struct symbolize_options symbols;
	uint64_t window_ns;
	uint64_t max_bytes;            /* of tables; beyond that it starts over */
};

int live_open(const struct live_options *o, struct live **ret, struct err *err);
void live_close(struct live *l);
void live_source(struct live *l, struct source *ret);
