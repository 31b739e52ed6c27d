#include "capture/sum/sumrows.h"

#include "base/map.h"
#include "capture/sum/sumslots.h"

struct making {
	struct sumrows *r;
	struct map index; /* event, thread, stack and slot to row */
};

static uint32_t count_of(const struct profile_sample *s)
{
	return s->count ? s->count : 1;
}

static bool has_span(const struct profile_sample *s, const bool *lasts)
{
	return lasts[s->event] && s->count <= 1;
}

/* A wait, and the time in the queue after it. */
static bool is_pair(const struct profile_sample *a, const struct profile_sample *b, const bool *lasts)
{
	return has_span(a, lasts) && has_span(b, lasts) && a->thread == b->thread && a->time_ns == b->time_ns &&
	       a->stack == b->stack && a->event != b->event;
}

static uint32_t keep(struct making *m, const struct profile_sample *s)
{
	vec_push(&m->r->rows, (struct sumrow){ .s = *s, .of = 1, .partner = PROFILE_NONE });
	return m->r->rows.n - 1;
}

/* Neither the value nor the count may get more bits than the file has for it. */
static bool fits(const struct profile_sample *to, const struct profile_sample *s)
{
	return s->value <= INT64_MAX - MIN(to->value, (uint64_t)INT64_MAX) && count_of(s) <= UINT32_MAX - count_of(to);
}

/* The row to which it was added, or which it became. */
static uint32_t add(struct making *m, const struct profile_sample *s, uint64_t slot_ns)
{
	uint64_t key = map_hash(map_hash(map_pair(s->thread, s->stack)) + map_hash(slot_ns) + s->event);

	for (;; key++) {
		uint64_t *id = map_put(&m->index, key, PROFILE_NONE);
		struct sumrow *row;

		if (*id == PROFILE_NONE) {
			*id = keep(m, s);
			m->r->rows.v[*id].slot_ns = slot_ns;
			return *id;
		}
		row = &m->r->rows.v[*id];
		if (row->slot_ns != slot_ns || row->s.event != s->event || row->s.thread != s->thread || row->s.stack != s->stack)
			continue;
		if (!fits(&row->s, s))
			return keep(m, s);
		row->s.count = count_of(&row->s) + count_of(s);
		row->s.value += s->value;
		row->of++;
		return *id;
	}
}

/* One row, or two that are a pair. */
static void take(struct making *m, const struct profile_sample *s, size_t n, const struct sumslots *slots, const bool *lasts)
{
	const struct sumslot *slot = sumslots_at(slots, s->time_ns);
	uint64_t lasted = (has_span(s, lasts) ? s->value : 0) + (n > 1 ? s[1].value : 0);
	uint32_t first, second;

	if (!slot || slot->full || lasted > slot->end_ns - s->time_ns) {
		for (size_t i = 0; i < n; i++)
			keep(m, &s[i]);
		m->r->full += slot && slot->full ? n : 0;
		return;
	}
	first = add(m, s, slot->start_ns);
	if (n == 1)
		return;
	second = add(m, &s[1], slot->start_ns);
	m->r->rows.v[second].partner = first;
	m->r->rows.v[second].begin_ns = s->time_ns + s->value;
}

void sumrows_make(struct sumrows *r, const struct profile_sample *in, size_t n, const struct sumslots *slots, const bool *lasts)
{
	struct making m = { .r = r };

	*r = (struct sumrows){ 0 };
	for (size_t i = 0; i < n;) {
		size_t rows = i + 1 < n && is_pair(&in[i], &in[i + 1], lasts) ? 2 : 1;

		take(&m, &in[i], rows, slots, lasts);
		i += rows;
	}
	for (size_t i = 0; i < r->rows.n; i++) {
		struct sumrow *row = &r->rows.v[i];

		if (row->of > 1)
			row->s.time_ns = row->slot_ns;
		else if (row->partner != PROFILE_NONE && r->rows.v[row->partner].of > 1)
			row->s.time_ns = row->begin_ns; /* the wait is no longer before it */
	}
	map_done(&m.index);
}

void sumrows_done(struct sumrows *r)
{
	vec_done(&r->rows);
}
