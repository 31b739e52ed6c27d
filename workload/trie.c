/*
 * trie.c - the trie of trie.h. Recursive on purpose; the folding after each inner
 * call keeps the compiler from making a loop of it.
 */
#include "trie.h"

#include <stdlib.h>

#define DEPTH (TRIE_KEY_BYTES * 2)

struct node {
	struct node *child[16];
	uint64_t value;
};

struct trie {
	struct node root;
};

static unsigned key_nibble(const uint8_t *key, unsigned depth)
{
	return depth % 2 ? key[depth / 2] & 15 : key[depth / 2] >> 4;
}

struct trie *trie_new(void)
{
	struct trie *t = calloc(1, sizeof(*t));
	if (!t)
		abort();
	return t;
}

static void node_free(struct node *n)
{
	for (int i = 0; i < 16; i++) {
		if (!n->child[i])
			continue;
		node_free(n->child[i]);
		free(n->child[i]);
	}
}

void trie_free(struct trie *t)
{
	if (!t)
		return;
	node_free(&t->root);
	free(t);
}

void trie_put(struct trie *t, const uint8_t key[TRIE_KEY_BYTES], uint64_t value)
{
	struct node *n = &t->root;
	for (unsigned depth = 0; depth < DEPTH; depth++) {
		struct node **child = &n->child[key_nibble(key, depth)];
		if (!*child && !(*child = calloc(1, sizeof(**child))))
			abort();
		n = *child;
	}
	n->value = value;
}

static __attribute__((noinline)) uint64_t node_fold(const struct node *n, const uint8_t *key,
						     unsigned depth, trie_fold_fn *fold, void *context)
{
	if (!n)
		return 0;
	if (depth == DEPTH)
		return fold(context, n->value, 0);
	unsigned nibble = key_nibble(key, depth);
	uint64_t below = node_fold(n->child[nibble], key, depth + 1, fold, context);
	return fold(context, below, nibble) ^ depth;
}

uint64_t trie_fold(const struct trie *t, const uint8_t key[TRIE_KEY_BYTES], trie_fold_fn *fold,
		   void *context)
{
	return node_fold(&t->root, key, 0, fold, context) + 1;
}
