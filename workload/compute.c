/*
 * compute.c - work for the processor: mixing, a deep trie, sorting with a callback,
 * and an interpreter loop through function pointers.
 */
#include <stdlib.h>
#include <string.h>

#include "trie.h"
#include "workload.h"

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

void mix_state(uint64_t state[25], int rounds)
{
	for (int round = 0; round < rounds; round++) {
		uint64_t column[5];
		for (int x = 0; x < 5; x++)
			column[x] = state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^
				    state[x + 20];
		for (int i = 0; i < 25; i++)
			state[i] ^= column[(i + 4) % 5] ^ rotate(column[(i + 1) % 5], 1);
		for (int i = 0; i < 25; i++)
			state[i] = rotate(state[i], 1 + i * 7 % 63);
		for (int i = 0; i < 25; i += 5)
			for (int x = 0; x < 5; x++)
				state[i + x] ^= ~state[i + (x + 1) % 5] & state[i + (x + 2) % 5];
		state[0] ^= 0x8000000080008081ull + (uint64_t)round;
	}
}

static __attribute__((noinline)) uint64_t hash_words(uint64_t a, uint64_t b)
{
	uint64_t state[25] = { a, b };
	mix_state(state, 3);
	return state[0];
}

static uint64_t fold_node(void *context, uint64_t below, unsigned nibble)
{
	uint64_t *nodes = context;
	++*nodes;
	return hash_words(below, nibble);
}

static void make_key(uint8_t key[TRIE_KEY_BYTES], uint64_t which)
{
	uint64_t x = which * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < TRIE_KEY_BYTES; i += 8) {
		x ^= x >> 29;
		x *= 0xbf58476d1ce4e5b9ull;
		memcpy(key + i, &x, 8);
	}
}

static __attribute__((noinline)) void compute_trie(struct worker *w)
{
	uint8_t key[TRIE_KEY_BYTES];
	if (!w->trie) {
		w->trie = trie_new();
		for (uint64_t i = 0; i < 256; i++) {
			make_key(key, i);
			trie_put(w->trie, key, i);
		}
	}
	uint64_t nodes = 0;
	make_key(key, worker_random(w) % 256);
	w->result ^= trie_fold(w->trie, key, fold_node, &nodes) + nodes;
}

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static __attribute__((noinline)) void compute_sort(struct worker *w)
{
	uint64_t words[256];
	for (int i = 0; i < 256; i++)
		words[i] = worker_random(w);
	qsort(words, 256, sizeof(words[0]), compare_words);
	w->result ^= words[128];
}

static __attribute__((noinline)) void compute_mix(struct worker *w)
{
	uint64_t state[25] = { worker_random(w) };
	mix_state(state, 96);
	w->result ^= state[3];
}

/* A machine of a few operations, as an interpreter has them. */
static __attribute__((noinline)) uint64_t op_add(uint64_t a, uint64_t b)
{
	return a + b;
}
static __attribute__((noinline)) uint64_t op_multiply(uint64_t a, uint64_t b)
{
	return a * (b | 1);
}
static __attribute__((noinline)) uint64_t op_divide(uint64_t a, uint64_t b)
{
	return a / (b | 1) + b;
}
static __attribute__((noinline)) uint64_t op_hash(uint64_t a, uint64_t b)
{
	return hash_words(a, b);
}

static __attribute__((noinline)) void compute_interpret(struct worker *w)
{
	static uint64_t (*const volatile ops[])(uint64_t, uint64_t) = {
		op_add, op_multiply, op_divide, op_add, op_multiply, op_add, op_divide, op_hash,
	};
	uint64_t a = worker_random(w), b = w->result;
	for (int pc = 0; pc < 400; pc++) {
		uint64_t c = ops[(a >> 7) % 8](a, b);
		b = a ^ (uint64_t)pc;
		a = c;
	}
	w->result ^= a;
}

void compute_unit(struct worker *w)
{
	compute_mix(w);
	compute_trie(w);
	compute_sort(w);
	compute_interpret(w);
}

void compute_done(struct worker *w)
{
	trie_free(w->trie);
	w->trie = NULL;
}
