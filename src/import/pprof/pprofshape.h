/*
 * pprofshape.h - do bytes look like a message of protocol buffers, of which the fields and their kinds are known?
 *
 * For probes, which have only the beginning of a file: a message may be cut, but what it claims must fit into what is around it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PPROFSHAPE_FIELDS = 16 };

struct pprofshape {
	/* By field: the wire types that it may have, a bit each; 0: there is no such field. */
	uint8_t wires[PPROFSHAPE_FIELDS];
	const struct pprofshape *inside[PPROFSHAPE_FIELDS]; /* of messages; NULL: not looked into */
};

/* Of claimed bytes the first n are there. *ret_messages counts messages of a known shape. */
bool pprofshape_fits(const struct pprofshape *shape, const uint8_t *data, size_t n, uint64_t claimed, unsigned *ret_messages);
