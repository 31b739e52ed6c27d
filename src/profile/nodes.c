#include "profile/nodes.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

enum { FIRST_SLOTS = 256 };

struct nodes_slot {
	uint32_t node; /* 0 = free: node 0 is never looked for */
	uint32_t tag;  /* of the hash: other nodes are passed over without a look at them */
};

void nodes_init(struct profile_nodes *t)
{
	*t = (struct profile_nodes){ 0 };
	vec_push(t, (struct profile_node){ .parent = 0, .frame = UINT32_MAX });
	t->indexed = 1;
}

void nodes_forget_index(struct profile_nodes *t)
{
	mem_free_large(t->slots, t->slot_count * sizeof(*t->slots));
	t->slots = NULL;
	t->slot_count = 0;
	t->indexed = t->n ? 1 : 0;
}

void nodes_done(struct profile_nodes *t)
{
	nodes_forget_index(t);
	vec_done(t);
}

static uint64_t hash_of(uint32_t parent, uint32_t frame)
{
	return map_hash(map_pair(parent, frame));
}

/* Where the node is, or a free slot for it. */
static struct nodes_slot *find(const struct profile_nodes *t, uint64_t hash, uint32_t parent, uint32_t frame)
{
	size_t mask = t->slot_count - 1, i = hash & mask;

	for (; t->slots[i].node; i = (i + 1) & mask) {
		const struct profile_node *n = &t->v[t->slots[i].node];

		if (t->slots[i].tag == hash >> 32 && n->parent == parent && n->frame == frame)
			break;
	}
	return &t->slots[i];
}

/* Room for n more. At most five eighths full: most look-ups end at the first slot, and the table stays small.
 */
static void make_room(struct profile_nodes *t, size_t n)
{
	size_t count = t->slot_count ? t->slot_count : FIRST_SLOTS;

	if (t->indexed == t->n && t->n + n <= t->slot_count / 8 * 5)
		return;
	while (t->n + n > count / 8 * 5)
		count *= 2;
	if (count != t->slot_count) {
		nodes_forget_index(t);
		t->slot_count = count;
		t->slots = mem_alloc_large(count * sizeof(*t->slots));
	}
	for (; t->indexed < t->n; t->indexed++) {
		const struct profile_node *node = &t->v[t->indexed];
		uint64_t hash = hash_of(node->parent, node->frame);
		size_t at = hash & (t->slot_count - 1);

		/* Not compared: were there two of a kind, the first would be the one that is found. */
		while (t->slots[at].node)
			at = (at + 1) & (t->slot_count - 1);
		t->slots[at] = (struct nodes_slot){ t->indexed, hash >> 32 };
	}
}

void nodes_expect(struct profile_nodes *t, size_t n)
{
	if (n > t->n)
		make_room(t, n - t->n);
}

static uint32_t put(struct profile_nodes *t, uint64_t hash, uint32_t parent, uint32_t frame)
{
	struct nodes_slot *slot = find(t, hash, parent, frame);

	if (!slot->node) {
		*slot = (struct nodes_slot){ t->n, hash >> 32 };
		vec_push(t, (struct profile_node){ .parent = parent, .frame = frame });
		t->indexed = t->n;
	}
	return slot->node;
}

uint32_t nodes_put(struct profile_nodes *t, uint32_t parent, uint32_t frame)
{
	make_room(t, 1);
	return put(t, hash_of(parent, frame), parent, frame);
}

void nodes_put_many(struct profile_nodes *t, const uint32_t *parents, const uint32_t *frames, uint32_t *ret,
		    size_t n)
{
	enum { TOGETHER = 32 };
	uint64_t hashes[TOGETHER];

	make_room(t, n);
	for (size_t from = 0, some; from < n; from += some) {
		some = MIN(n - from, (size_t)TOGETHER);
		for (size_t i = 0; i < some; i++) {
			hashes[i] = hash_of(parents[from + i], frames[from + i]);
			__builtin_prefetch(&t->slots[hashes[i] & (t->slot_count - 1)]);
		}
		for (size_t i = 0; i < some; i++)
			__builtin_prefetch(&t->v[t->slots[hashes[i] & (t->slot_count - 1)].node]);
		for (size_t i = 0; i < some; i++)
			ret[from + i] = put(t, hashes[i], parents[from + i], frames[from + i]);
	}
}
