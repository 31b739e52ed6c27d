/*
 * trie.h - a hexary trie in a shared library of its own, reached through the PLT.
 *
 * A key is 32 bytes, 64 nibbles, and the walk recurses once for each: stacks of
 * more than 60 frames, as in a state trie without path compression.
 */
#pragma once

#include <stdint.h>

#define TRIE_KEY_BYTES 32

struct trie;

struct trie *trie_new(void);
void trie_free(struct trie *t);
void trie_put(struct trie *t, const uint8_t key[TRIE_KEY_BYTES], uint64_t value);
/* Folds the nodes on the way to key, from the leaf up, with the caller's function. */
typedef uint64_t trie_fold_fn(void *context, uint64_t below, unsigned nibble);
uint64_t trie_fold(const struct trie *t, const uint8_t key[TRIE_KEY_BYTES], trie_fold_fn *fold,
		   void *context);
