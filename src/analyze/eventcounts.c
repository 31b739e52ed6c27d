#include "analyze/eventcounts.h"

#include <stdbool.h>

#include "analyze/select.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

/* FUTEX_WAKE ends waits of others: only these begin one. */
static bool is_wait(const char *note)
{
	return str_starts(note, "FUTEX_WAIT") || str_starts(note, "FUTEX_LOCK_PI");
}

/* Returns the note at the stack's leaf, "" where there is none. */
static const char *note_of(const struct profile *p, uint32_t stack)
{
	const struct profile_frame *f;

	if (!stack || stack >= p->stacks.n)
		return "";
	f = &p->frames.v[p->stacks.v[stack].frame];
	if (f->kind != FRAME_NOTE || !f->line_count)
		return "";
	return profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name);
}

int eventcounts_make(struct eventcounts *t, const struct profile *p, const struct select_options *o, struct err *err)
{
	_cleanup_free_ uint8_t *threads = NULL;
	int r;

	*t = (struct eventcounts){ 0 };
	r = select_threads(p, o, &threads, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->events.n; i++)
		vec_push(&t->events, (struct eventcounts_event){ 0 });
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		struct eventcounts_event *e;
		uint64_t count = s->count ? s->count : 1;

		if (s->event >= t->events.n || s->thread >= p->threads.n || !threads[s->thread] ||
		    s->time_ns < o->from_ns || (o->to_ns && s->time_ns >= o->to_ns))
			continue;
		e = &t->events.v[s->event];
		e->count += count;
		e->value += s->value;
		e->waits += is_wait(note_of(p, s->stack)) ? count : 0;
	}
	return 0;
}

void eventcounts_done(struct eventcounts *t)
{
	vec_done(&t->events);
}
