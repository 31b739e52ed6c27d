/*
 * livesource.h - a running program as a source of `top`: a session without a capture, whose last seconds are kept.
 */
#pragma once

#include <stdint.h>

#include "cmd/recording/targets.h"
#include "collect/session.h"
#include "symbol/symbolize.h"
#include "tui/look.h"

struct livesource;

struct livesource_options {
	struct targets who;            /* borrowed, as are all pointers */
	struct session_options session;
	struct symbolize_options symbols;
	uint64_t window_ns;
	uint64_t max_bytes;            /* of tables; beyond that it starts over */
};

int livesource_open(const struct livesource_options *o, struct livesource **ret, struct err *err);
void livesource_close(struct livesource *l);
void livesource_fill(struct livesource *l, struct source *ret);
