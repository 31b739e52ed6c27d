#include "collect/blocks/spanjoin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

enum { MOST = 4096, WORKERS = 4, NOT_FUTURES = 64 };

enum { STATE_FRESH = 0, STATE_DONE = 1, STATE_PANICKED = 2, STATE_NONE = 0xff };

/* A span that has begun: a future between its polls, or one of the program's own. */
struct open {
	struct span span;
	uint64_t future; /* 0 = the program's own */
	struct {
		uint32_t tid;
		uint64_t ns;
	} workers[WORKERS];
};

struct spanjoin {
	spanjoin_fn *fn;
	void *context;
	VEC(struct open) open; /* few: searched from the newest on */
	uint32_t plain[NOT_FUTURES]; /* functions that looked like a future's, and are not */
	size_t plain_count;
	struct spanjoin_counts counts;
};

struct spanjoin *spanjoin_new(spanjoin_fn *fn, void *context)
{
	struct spanjoin *j = mem_alloc(sizeof(*j));

	j->fn = fn;
	j->context = context;
	return j;
}

void spanjoin_free(struct spanjoin *j)
{
	if (!j)
		return;
	vec_done(&j->open);
	free(j);
}

const struct spanjoin_counts *spanjoin_counted(const struct spanjoin *j)
{
	return &j->counts;
}

size_t spanjoin_open(const struct spanjoin *j)
{
	return j->open.n;
}

static void emit(struct spanjoin *j, const struct span *s)
{
	j->counts.spans++;
	j->fn(j->context, s);
}

static void drop(struct spanjoin *j, struct open *o)
{
	size_t i = o - j->open.v;

	memmove(o, o + 1, (j->open.n - i - 1) * sizeof(*o));
	j->open.n--;
}

static struct open *add(struct spanjoin *j, const struct open *o)
{
	if (j->open.n == MOST) {
		j->counts.replaced++;
		drop(j, j->open.v);
	}
	vec_push(&j->open, *o);
	return &j->open.v[j->open.n - 1];
}

/* --- futures --- */

static bool is_plain(const struct spanjoin *j, uint32_t function)
{
	for (size_t i = 0; i < j->plain_count; i++)
		if (j->plain[i] == function)
			return true;
	return false;
}

static struct open *find_future(struct spanjoin *j, const struct shared_span *r)
{
	for (size_t i = j->open.n; i-- > 0;) {
		struct open *o = &j->open.v[i];

		if (o->future == r->values[0] && o->span.pid == r->pid && o->span.function == r->function)
			return o;
	}
	return NULL;
}

static void add_work(struct open *o, uint32_t tid, uint64_t ns)
{
	for (size_t i = 0; i < WORKERS; i++) {
		if (o->workers[i].tid && o->workers[i].tid != tid)
			continue;
		o->workers[i].tid = tid;
		o->workers[i].ns += ns;
		return;
	}
}

static uint32_t hardest_worker(const struct open *o)
{
	size_t best = 0;

	for (size_t i = 1; i < WORKERS; i++)
		if (o->workers[i].ns > o->workers[best].ns)
			best = i;
	return o->workers[best].tid;
}

static void take_poll(struct spanjoin *j, const struct shared_span *r)
{
	uint64_t before = r->values[1], after = r->values[2];
	struct open *o = find_future(j, r);

	j->counts.polls++;
	if (before == STATE_FRESH) {
		if (o) {
			/* Its memory is another one's now. */
			j->counts.cancelled++;
			drop(j, o);
		}
		o = add(j, &(struct open){ .span = { .function = r->function, .pid = r->pid, .start_ns = r->start_ns },
					   .future = r->values[0] });
	} else if (!o) {
		j->counts.before++;
		return;
	}
	o->span.polls++;
	o->span.end_ns = r->end_ns;
	add_work(o, r->tid, r->end_ns - r->start_ns);
	if (after == STATE_DONE) {
		struct span done = o->span;

		done.tid = hardest_worker(o);
		drop(j, o);
		emit(j, &done);
	} else if (after == STATE_PANICKED) {
		j->counts.cancelled++;
		drop(j, o);
	}
}

static void take_call(struct spanjoin *j, const struct shared_span *r)
{
	uint64_t before = r->values[1], after = r->values[2];

	/* A future that was polled is never as if it had not begun. */
	if (r->values[0] && before == STATE_FRESH && after == STATE_FRESH && !is_plain(j, r->function) &&
	    j->plain_count < NOT_FUTURES)
		j->plain[j->plain_count++] = r->function;
	if (r->values[0] && before != STATE_NONE && after != STATE_NONE && !is_plain(j, r->function)) {
		take_poll(j, r);
		return;
	}
	emit(j, &(struct span){ .function = r->function, .pid = r->pid, .tid = r->tid, .start_ns = r->start_ns,
				.end_ns = r->end_ns });
}

/* --- the program's own --- */

static struct open *find_word(struct spanjoin *j, uint32_t pid, const char *name, uint64_t number)
{
	for (size_t i = j->open.n; i-- > 0;) {
		struct open *o = &j->open.v[i];

		if (!o->future && o->span.pid == pid && o->span.block.number == number && !strcmp(o->span.name, name))
			return o;
	}
	return NULL;
}

static void take_word(struct spanjoin *j, const struct shared_span *r)
{
	struct span s = { .function = UINT32_MAX, .pid = r->pid, .tid = r->tid, .start_ns = r->end_ns, .end_ns = r->end_ns,
			  .block.known = BLOCK_NUMBER, .block.number = r->values[0] };
	struct open *o;

	snprintf(s.name, sizeof(s.name), "%.*s", (int)sizeof(r->name) - 1, r->what == SPAN_BLOCK_END ? "block" : r->name);
	if (r->what == SPAN_MARK) {
		emit(j, &s);
		return;
	}
	o = find_word(j, r->pid, s.name, s.block.number);
	if (r->what == SPAN_BEGIN) {
		if (o) {
			j->counts.replaced++;
			drop(j, o);
		}
		add(j, &(struct open){ .span = s });
		return;
	}
	if (!o) {
		j->counts.before++;
		return;
	}
	s.start_ns = o->span.start_ns;
	if (r->what == SPAN_BLOCK_END) {
		s.block.gas = r->values[1];
		s.block.transactions = r->values[2];
		s.block.known |= BLOCK_GAS | BLOCK_TRANSACTIONS;
	}
	drop(j, o);
	emit(j, &s);
}

void spanjoin_take(struct spanjoin *j, const struct shared_span *r)
{
	if (r->end_ns < r->start_ns)
		return;
	if (r->what == SPAN_LEAVE)
		take_call(j, r);
	else if (r->what >= SPAN_BEGIN && r->what <= SPAN_BLOCK_END)
		take_word(j, r);
}
