/*
 * rlp.h - writes RLP, Ethereum's encoding of byte strings and lists.
 *
 * The items of a list are written into a buffer of their own:
 *
 *	struct buf list = { 0 }, out = { 0 };
 *	rlp_put(&list, "cat", 3);
 *	rlp_put_number(&list, big_endian, 8);
 *	rlp_put_list(&out, &list);
 */
#pragma once

#include <stddef.h>

struct buf;

void rlp_put(struct buf *out, const void *data, size_t n);
/* Of big-endian bytes, without leading zeros. */
void rlp_put_number(struct buf *out, const void *data, size_t n);
void rlp_put_list(struct buf *out, const struct buf *items);
