/*
 * liveheap.h - the sampled objects of the targets: which are alive, what they stand for, and when they were most.
 *
 * An object of n bytes is sampled with the probability p = 1 - exp(-n / interval), so
 * each stands for w = n / p bytes of its kind. The interval may rise meanwhile: each object has its own. All figures here are such estimates; the variance of
 * a sum of them is the sum of w² (1 - p).
 *
 *	struct liveheap h;
 *	liveheap_init(&h, 512 << 10);
 *	liveheap_alloc(&h, pid, address, &(struct liveheap_object){ .size = 64, ... });
 *	if (liveheap_free(&h, pid, address, &object)) ...
 *	liveheap_done(&h);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct liveheap_object {
	uint64_t size;    /* as it was asked for */
	uint64_t time_ns; /* when */
	uint32_t thread, stack;
	uint32_t count;   /* objects that it stands for */
	uint64_t bytes;   /* and their bytes */
	uint64_t address;
	uint32_t pid;
	uint32_t part;    /* of its thread and stack */
	uint64_t interval; /* by which it was sampled; 0: the one of all */
};

/* The live objects of one thread and stack, and those at the peak. */
struct liveheap_part {
	uint32_t thread, stack;
	uint64_t bytes, count;
	uint64_t peak_bytes, peak_count; /* valid after liveheap_end_peak() */
	uint64_t peak;                   /* private: of which of the peaks these are */
};

struct liveheap_seen {
	uint32_t thread, stack;
	uint32_t part; /* one more than its index, 0: none */
};
enum { LIVEHEAP_SEEN = 256 };

struct liveheap {
	uint64_t interval;
	uint64_t bytes, count;               /* alive now */
	double variance;                     /* of bytes */
	uint64_t peak_bytes, peak_ns;
	uint64_t peaks;                      /* how often it was more than ever before */
	uint64_t peak_objects;               /* samples that were alive then */
	double peak_variance;
	VEC(struct liveheap_part) parts;
	VEC(struct liveheap_object) objects; /* alive, in no order */
	/* The rest is private. */
	uint32_t *slots;                     /* one more than an object's index, by its address; 0: free. At most half full */
	uint32_t slot_bits;
	struct map part_index;
	struct liveheap_seen seen[LIVEHEAP_SEEN]; /* parts that were asked for last, by a hash of both */
};

void liveheap_init(struct liveheap *h, uint64_t interval);
void liveheap_done(struct liveheap *h);

/* Fills in what the object stands for, and its part. One that is known at that address was freed unseen: true, and *ret_old. */
bool liveheap_alloc(struct liveheap *h, uint32_t pid, uint64_t address, struct liveheap_object *object,
		    struct liveheap_object *ret_old);
/* An allocation that is freed before anything else happens: nothing is kept of it but its part. False: it would be a new peak, or
 * an object is known at that address; then it has to come and go like any other. */
bool liveheap_pass(struct liveheap *h, uint32_t pid, uint64_t address, const struct liveheap_object *object, uint32_t *ret_part);
/* The object at an address, NULL: none is known. Valid, as its slot is, until the next call that changes anything. */
const struct liveheap_object *liveheap_find(const struct liveheap *h, uint32_t pid, uint64_t address, size_t *ret_slot);
/* It was freed. */
void liveheap_remove(struct liveheap *h, size_t slot);
/* Both in one, with a copy of the object. False: it is not known. */
bool liveheap_free(struct liveheap *h, uint32_t pid, uint64_t address, struct liveheap_object *ret);
/* Makes peak_bytes and peak_count of all parts those of the peak. */
void liveheap_end_peak(struct liveheap *h);
