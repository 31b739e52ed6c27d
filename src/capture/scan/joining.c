#include "capture/scan/joining.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "profile/profile.h"

#define NEVER UINT64_MAX
/* A pass that joins less than this share of the samples shows that most of them have no like. */
enum { LEAST_PERCENT = 5 };

static bool may_join(const struct profile *p, uint32_t event)
{
	static const char *const heap[] = { "heap", "alloc", "freed", "temporary", "peak" };

	for (size_t i = 0; i < ARRAY_LEN(heap); i++)
		if (!strcmp(profile_str(p, p->events.v[event].name), heap[i]))
			return false;
	return true;
}

void joining_restart(struct joining *j)
{
	j->seed = 88172645463325252ULL;
	j->joined = j->waiting = j->kept = j->span = 0;
	for (size_t i = 0; i < j->quanta.n; i++)
		j->quanta.v[i] = j->quanta.v[i] == NEVER ? NEVER : 0;
	free(j->slots);
	j->slots = NULL;
	j->slot_count = 0;
}

void joining_init(struct joining *j, struct profile *p, size_t most)
{
	*j = (struct joining){ .p = p, .most = most };
	for (size_t i = 0; i < p->events.n; i++)
		vec_push(&j->quanta, may_join(p, i) ? 0 : NEVER);
	joining_restart(j);
}

void joining_done(struct joining *j)
{
	free(j->slots);
	vec_done(&j->quanta);
	vec_done(&j->spans);
}

/* --- what stays as it is --- */

static int compare_spans(const void *a, const void *b)
{
	const struct joining_span *x = a, *y = b;

	return ORDER(x->start_ns, y->start_ns) ?: ORDER(x->end_ns, y->end_ns);
}

void joining_keep(struct joining *j, const struct joining_span *spans, size_t n)
{
	size_t merged = 0;

	for (size_t i = 0; i < n; i++)
		vec_push(&j->spans, spans[i]);
	vec_sort(&j->spans, compare_spans);
	for (size_t i = 0; i < j->spans.n; i++) {
		struct joining_span *last = merged ? &j->spans.v[merged - 1] : NULL, next = j->spans.v[i];

		if (last && next.start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, next.end_ns);
		else
			j->spans.v[merged++] = next;
	}
	j->spans.n = merged;
}

/* A single wait is as long as its value; a sum is at one moment. */
static bool is_kept(struct joining *j, const struct profile_sample *s)
{
	const struct joining_span *spans = j->spans.v;
	uint64_t end = s->time_ns;

	if (!j->spans.n)
		return false;
	if (s->count <= 1 && __builtin_add_overflow(s->time_ns, s->value, &end))
		end = UINT64_MAX;
	/* The first span that does not end before the sample. */
	if (j->span >= j->spans.n || spans[j->span].end_ns < s->time_ns || (j->span && spans[j->span - 1].end_ns >= s->time_ns))
		j->span = vec_search(i, 0, j->spans.n, spans[i].end_ns < s->time_ns);
	return j->span < j->spans.n && spans[j->span].start_ns <= end;
}

/* How many of the samples may be joined, or were. */
static size_t others(const struct joining *j)
{
	return j->p->samples.n - j->kept;
}

/* --- joining --- */

static uint64_t draw(struct joining *j)
{
	j->seed ^= j->seed << 13;
	j->seed ^= j->seed >> 7;
	j->seed ^= j->seed << 17;
	return j->seed;
}

/* Adds s to a sample of the same kind, if that stays within the quantum. */
static bool join(struct joining *j, struct profile_sample *to, const struct profile_sample *s)
{
	uint64_t count = (uint64_t)MAX(to->count, 1u) + MAX(s->count, 1u), value;

	if (count > UINT32_MAX || __builtin_add_overflow(to->value, s->value, &value) || value > j->quanta.v[s->event])
		return false;
	/* With a chance of its share of the value, the sum is at the new one's time. */
	if (value && draw(j) % value < s->value)
		to->time_ns = s->time_ns;
	to->value = value;
	to->count = count;
	return true;
}

static uint64_t hash_of(const struct profile_sample *s)
{
	return map_hash(map_pair(s->thread, s->stack) ^ (uint64_t)s->event << 56);
}

static struct joining_slot *slot_of(const struct joining *j, const struct profile_sample *s)
{
	const struct profile_sample *v = j->p->samples.v;
	uint64_t hash = hash_of(s);
	size_t at = hash & (j->slot_count - 1);

	for (; j->slots[at].index; at = (at + 1) & (j->slot_count - 1)) {
		const struct profile_sample *there = &v[j->slots[at].index - 1];

		if (j->slots[at].tag == hash >> 32 && there->thread == s->thread && there->stack == s->stack &&
		    there->event == s->event)
			break;
	}
	j->slots[at].tag = hash >> 32;
	return &j->slots[at];
}

/* Joins s to one that is there, or puts it at the end of the samples, which has room. */
static void put(struct joining *j, const struct profile_sample *s)
{
	struct profile *p = j->p;
	struct joining_slot *slot;

	if (is_kept(j, s)) {
		p->samples.v[p->samples.n++] = *s;
		j->kept++;
		return;
	}
	if (j->quanta.v[s->event] == NEVER || s->value > j->quanta.v[s->event] / 2) {
		p->samples.v[p->samples.n++] = *s;
		return;
	}
	slot = slot_of(j, s);
	if (slot->index && join(j, &p->samples.v[slot->index - 1], s)) {
		j->joined++;
		return;
	}
	p->samples.v[p->samples.n++] = *s;
	slot->index = p->samples.n;
}

/* The first quantum of an event: twice its mean. */
static void set_quanta(struct joining *j)
{
	const struct profile *p = j->p;
	size_t n = p->events.n;
	_cleanup_free_ double *sums = mem_alloc((n + 1) * sizeof(*sums)), *counts = mem_alloc((n + 1) * sizeof(*counts));

	for (size_t i = 0; i < p->samples.n; i++) {
		sums[p->samples.v[i].event] += p->samples.v[i].value;
		counts[p->samples.v[i].event]++;
	}
	for (size_t i = 0; i < n; i++) {
		if (j->quanta.v[i] == NEVER)
			continue;
		if (!j->quanta.v[i])
			j->quanta.v[i] = counts[i] ? 2 * sums[i] / counts[i] + 2 : 0;
		else
			j->quanta.v[i] = MIN(j->quanta.v[i], NEVER / 4) * 2;
	}
}

/* At most half of the slots are used: there is one for each sample at most. */
static void make_slots(struct joining *j)
{
	if (j->slots)
		return;
	for (j->slot_count = 1024; j->slot_count < 2 * j->most; j->slot_count *= 2)
		;
	j->slots = mem_alloc(j->slot_count * sizeof(*j->slots));
}

/* Puts all samples again. */
static void put_again(struct joining *j)
{
	struct profile *p = j->p;
	size_t n = p->samples.n;

	memset(j->slots, 0, j->slot_count * sizeof(*j->slots));
	p->samples.n = j->kept = 0;
	/* The end never overtakes the one that is read. */
	for (size_t k = 0; k < n; k++) {
		struct profile_sample s = p->samples.v[k];

		put(j, &s);
	}
}

/* Joins what is there, with larger quanta, until a quarter of the room is free. */
static void make_room(struct joining *j)
{
	struct profile *p = j->p;

	make_slots(j);
	for (size_t n = SIZE_MAX; others(j) > j->most / 4 * 3 && others(j) < n / 100 * (100 - LEAST_PERCENT);) {
		n = others(j);
		set_quanta(j);
		put_again(j);
	}
	/* More different ones than there is room for: they are all kept. */
	if (others(j) > j->most / 4 * 3) {
		j->most = others(j) / 3 * 4 + 8;
		free(j->slots);
		j->slots = NULL;
		make_slots(j);
		for (size_t i = 0; i < p->samples.n; i++)
			if (p->samples.v[i].value <= j->quanta.v[p->samples.v[i].event] / 2 && !is_kept(j, &p->samples.v[i]))
				slot_of(j, &p->samples.v[i])->index = i + 1;
	}
}

/* Asks for the memory that the batch will need: the slots, then the samples that these name. */
static void fetch_batch(const struct joining *j)
{
	size_t mask = j->slot_count - 1;

	for (size_t i = 0; i < j->waiting; i++)
		__builtin_prefetch(&j->slots[hash_of(&j->batch[i]) & mask]);
	for (size_t i = 0; i < j->waiting; i++) {
		const struct joining_slot *slot = &j->slots[hash_of(&j->batch[i]) & mask];

		if (slot->index)
			__builtin_prefetch(&j->p->samples.v[slot->index - 1]);
	}
}

void joining_finish(struct joining *j)
{
	if (j->slots)
		fetch_batch(j);
	for (size_t i = 0; i < j->waiting; i++) {
		if (others(j) >= j->most)
			make_room(j);
		vec_reserve(&j->p->samples, 1);
		if (j->slots) {
			put(j, &j->batch[i]);
			continue;
		}
		j->kept += is_kept(j, &j->batch[i]);
		profile_add_sample(j->p, &j->batch[i]);
	}
	j->waiting = 0;
}

void joining_add(struct joining *j, const struct profile_sample *s)
{
	if (!j->most) {
		profile_add_sample(j->p, s);
		return;
	}
	j->batch[j->waiting++] = *s;
	if (j->waiting == JOINING_BATCH)
		joining_finish(j);
}
