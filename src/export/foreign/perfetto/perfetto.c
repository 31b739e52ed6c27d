/*
 * perfetto.c - a recording as a trace for ui.perfetto.dev and trace_processor.
 *
 * Each thread has a track with its states (threadstates.h): slices that are called by what the time was. Perfetto's own tracks of
 * thread states want context switches with the number of a CPU, which is not recorded, and they know no causes: hence slices. A
 * wake-up is an instant on the track of the waker, and a flow from it to the slice with which the woken thread goes on. Blocks
 * and phases have tracks of their own, series are counters, and samples are those of Perfetto's profiler of callstacks, a
 * session for each event. The trace's clock is the time since the recording began; a snapshot of clocks says when that was.
 *
 * Fields are those of the messages TracePacket, TrackDescriptor, TrackEvent and PerfSample of Perfetto's documentation.
 */
#include <errno.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/foreign/perfetto/perfettomarks.h"
#include "export/foreign/perfetto/perfettoseq.h"
#include "export/foreign/perfetto/perfettotracks.h"
#include "export/foreign/perfetto/threadstates.h"
#include "export/samplerows.h"
#include "profile/profile.h"

/* About 100 MB of trace. */
enum { WAITS_MAX = 500000, SAMPLES_MAX = 2000000 };

/* What is written, by time; of one time in this order: slices end before others begin, and a flow begins before it ends. */
enum item_kind {
	ITEM_STATE_END, ITEM_MARK_END, ITEM_WAKE, ITEM_WOKEN, ITEM_MARK_BEGIN, ITEM_STATE_BEGIN, ITEM_POINT, ITEM_SAMPLE,
};

struct item {
	uint64_t time_ns;
	enum item_kind kind;
	uint32_t index;
};

/* A wake-up, and the state with which its thread went on. */
struct woken {
	size_t state;
	uint32_t wake;
};

/* Samples of an event. */
struct session {
	struct perfettoseq seq;
	uint64_t samples; /* that there are */
	uint64_t one_in;  /* of so many one is written */
	uint64_t total;   /* of values so far */
	uint64_t seen;    /* samples so far, written or not */
};

struct trace {
	const struct export_job *job;
	const struct profile *p;
	struct buf *out;
	struct samplerows rows;
	struct threadstates states;
	struct perfettomarks marks;
	struct stackcalls calls;
	struct perfettoseq seq;    /* of all that is no sample */
	struct session *sessions;  /* by event of the profile */
	VEC(struct item) items;
	VEC(struct woken) woken;   /* by state */
	uint8_t *threads, *series; /* that have something in the trace */
};

static bool in_range(const struct trace *t, uint64_t time_ns)
{
	const struct select_options *o = &t->job->selection->options;

	return time_ns >= o->from_ns && (!o->to_ns || time_ns < o->to_ns);
}

/* --- what there is to write --- */

static void add_item(struct trace *t, uint64_t time_ns, enum item_kind kind, size_t index)
{
	vec_push(&t->items, (struct item){ time_ns, kind, index });
}

static void add_states(struct trace *t)
{
	for (size_t i = 0; i < t->states.list.n; i++) {
		const struct threadstate *s = &t->states.list.v[i];

		t->threads[s->thread] = 1;
		add_item(t, s->begin_ns, ITEM_STATE_BEGIN, i);
		if (s->end_ns > s->begin_ns)
			add_item(t, s->end_ns, ITEM_STATE_END, i);
	}
}

/* The thread goes on in the state that begins with the wake-up; where another state covers that moment, within it. The end of a
 * wait that was joined with others is not shown, as the wait itself. */
static void add_wakes(struct trace *t)
{
	for (size_t i = 0; i < t->p->wakes.n && t->states.whole; i++) {
		const struct profile_wake *w = &t->p->wakes.v[i];
		uint64_t time_ns = w->time_ns + w->blocked_ns;
		const struct threadstate *s = threadstates_at(&t->states, w->thread, time_ns);

		if (!s || !in_range(t, time_ns) || w->blocked_ns <= t->states.joined_ns)
			continue;
		if (s->begin_ns >= time_ns)
			vec_push(&t->woken, (struct woken){ s - t->states.list.v, i });
		else
			add_item(t, time_ns, ITEM_WOKEN, i);
		if (w->waker < t->p->threads.n) {
			t->threads[w->waker] = 1;
			add_item(t, time_ns, ITEM_WAKE, i);
		}
	}
}

static int compare_woken(const void *a, const void *b)
{
	const struct woken *x = a, *y = b;

	return ORDER(x->state, y->state) ?: ORDER(x->wake, y->wake);
}

static void add_marks(struct trace *t)
{
	for (size_t i = 0; i < t->marks.list.n; i++) {
		const struct perfettomark *m = &t->marks.list.v[i];

		if (t->marks.tracks.v[m->track].thread < t->p->threads.n)
			t->threads[t->marks.tracks.v[m->track].thread] = 1;
		add_item(t, m->begin_ns, ITEM_MARK_BEGIN, i);
		if (m->end_ns > m->begin_ns)
			add_item(t, m->end_ns, ITEM_MARK_END, i);
	}
}

static void add_points(struct trace *t)
{
	for (size_t i = 0; i < t->p->points.n; i++)
		if (in_range(t, t->p->points.v[i].time_ns)) {
			t->series[t->p->points.v[i].series] = 1;
			add_item(t, t->p->points.v[i].time_ns, ITEM_POINT, i);
		}
}

/* A sample that stands for several of a clock is written so many times: readers count samples. */
static uint64_t copies_of(const struct trace *t, const struct samplerow *row)
{
	uint64_t period = t->p->events.v[row->event].period;

	return row->count && period && row->value / row->count == period ? row->count : 1;
}

/* An event of which there are very many leaves room for the others. */
static void add_samples(struct trace *t)
{
	t->sessions = mem_alloc((t->p->events.n + 1) * sizeof(*t->sessions));
	for (size_t i = 0; i < t->rows.list.n; i++) {
		const struct samplerow *row = &t->rows.list.v[i];

		if (row->role == ROLE_WAIT || row->role == ROLE_QUEUE)
			continue;
		t->threads[row->thread] = 1;
		t->sessions[row->event].samples += copies_of(t, row);
		add_item(t, row->begin_ns, ITEM_SAMPLE, i);
	}
	for (size_t i = 0; i < t->p->events.n; i++)
		t->sessions[i].one_in = t->sessions[i].samples / (SAMPLES_MAX / MAX(t->rows.events.n, 1) + 1) + 1;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return ORDER(x->time_ns, y->time_ns) ?: ORDER(x->kind, y->kind) ?: ORDER(x->index, y->index);
}

static void collect(struct trace *t)
{
	t->threads = mem_alloc(t->p->threads.n + 1);
	t->series = mem_alloc(t->p->series.n + 1);
	add_states(t);
	add_wakes(t);
	add_marks(t);
	add_points(t);
	add_samples(t);
	vec_sort(&t->woken, compare_woken);
	vec_sort(&t->items, compare_items);
}

/* --- events of tracks --- */

enum { SLICE_BEGIN = 1, SLICE_END, INSTANT, COUNTER };
enum { EVENT_CATEGORY = 3, EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11, EVENT_VALUE = 30,
       EVENT_FLOW = 47, EVENT_FLOW_END = 48, EVENT_STACK = 56, EVENT_STACK_WEIGHT = 57 };

struct event {
	size_t packet, body;
};

static struct event open_event(struct trace *t, uint64_t time_ns, unsigned type, uint64_t track)
{
	struct event e = { .packet = perfettoseq_open(&t->seq, time_ns) };

	e.body = protobuf_open(t->out, PERFETTO_TRACK_EVENT);
	protobuf_put_uint(t->out, EVENT_TYPE, type);
	protobuf_put_uint(t->out, EVENT_TRACK, track);
	return e;
}

static void close_event(struct trace *t, struct event e)
{
	protobuf_close(t->out, e.body);
	perfettoseq_close(&t->seq, e.packet);
}

static void put_name(struct trace *t, const char *category, const char *name)
{
	protobuf_put_uint(t->out, EVENT_CATEGORY, perfettoseq_text(&t->seq, PERFETTO_CATEGORY, category));
	protobuf_put_uint(t->out, EVENT_NAME, perfettoseq_text(&t->seq, PERFETTO_EVENT_NAME, name));
}

static void put_number(struct trace *t, const char *name, uint64_t value)
{
	size_t begin = protobuf_open(t->out, EVENT_ANNOTATION);

	protobuf_put_uint(t->out, 1, perfettoseq_text(&t->seq, PERFETTO_ANNOTATION_NAME, name));
	protobuf_put_uint(t->out, 3, value);
	protobuf_close(t->out, begin);
}

static void put_text(struct trace *t, const char *name, const char *value)
{
	size_t begin = protobuf_open(t->out, EVENT_ANNOTATION);

	protobuf_put_uint(t->out, 1, perfettoseq_text(&t->seq, PERFETTO_ANNOTATION_NAME, name));
	protobuf_put_uint(t->out, 17, perfettoseq_text(&t->seq, PERFETTO_ANNOTATION_TEXT, value));
	protobuf_close(t->out, begin);
}

/* The function that the time is attributed to, and the stack. weight_ns: how much of the time is the stack's. */
static void put_stack(struct trace *t, uint32_t stack, uint64_t weight_ns)
{
	uint32_t own = ownfunction_of_stack(&t->calls.idents, stack);
	uint64_t number = perfettoseq_stack(&t->seq, stack);

	if (own != OWNFUNCTION_NONE)
		put_text(t, "function", t->calls.idents.list.v[own].name);
	if (number)
		protobuf_put_uint(t->out, EVENT_STACK, number);
	if (number && weight_ns)
		protobuf_put_double(t->out, EVENT_STACK_WEIGHT, weight_ns);
}

static const char *thread_name(const struct trace *t, uint32_t thread)
{
	return profile_str(t->p, t->p->threads.v[thread].name);
}

/* --- states --- */

static void put_shorts(struct trace *t, const struct threadstate *s)
{
	uint64_t count = 0, ns = 0;

	for (uint32_t i = 0; i < s->shorts; i++) {
		const struct threadstate_short *x = &t->states.shorts.v[s->first_short + i];
		_cleanup_free_ char *name = mem_printf("short: %s ns", threadstate_cause(x->cause));

		put_number(t, name, x->ns);
		count += x->count;
		ns += x->ns;
	}
	if (count)
		put_number(t, "short waits", count);
	if (ns && s->kind == THREADSTATE_RUNNING)
		put_number(t, "running ns", s->end_ns - s->begin_ns - MIN(ns, s->end_ns - s->begin_ns));
}

static void put_woken(struct trace *t, size_t state)
{
	size_t i = vec_search(k, 0, t->woken.n, t->woken.v[k].state < state);

	for (; i < t->woken.n && t->woken.v[i].state == state; i++) {
		const struct profile_wake *w = &t->p->wakes.v[t->woken.v[i].wake];

		put_text(t, "woken by", w->waker < t->p->threads.n ? thread_name(t, w->waker) : profile_str(t->p, w->waker_name));
		if (w->waker < t->p->threads.n)
			protobuf_put_fixed64(t->out, EVENT_FLOW_END, t->woken.v[i].wake + 1);
	}
}

static void put_block(struct trace *t, uint32_t mark)
{
	if (mark < t->p->marks.n && t->p->marks.v[mark].block.known & BLOCK_NUMBER)
		put_number(t, "block", t->p->marks.v[mark].block.number);
}

static void write_state(struct trace *t, size_t index)
{
	static const char *const categories[] = { [THREADSTATE_RUNNING] = "running", [THREADSTATE_SAMPLED] = "running",
						  [THREADSTATE_WAIT] = "wait", [THREADSTATE_QUEUE] = "queue",
						  [THREADSTATE_SUM] = "sum" };
	const struct threadstate *s = &t->states.list.v[index];
	bool waits = s->kind == THREADSTATE_WAIT || s->kind == THREADSTATE_QUEUE;
	struct event e = open_event(t, s->begin_ns, s->kind == THREADSTATE_SUM ? INSTANT : SLICE_BEGIN, perfettotrack_thread(s->thread));

	put_name(t, categories[s->kind], threadstate_name(&t->states, s));
	put_stack(t, s->stack, waits ? s->end_ns - s->begin_ns : 0);
	put_block(t, s->block);
	if (s->samples) {
		put_number(t, "samples", s->samples);
		put_number(t, "sampled ns", s->cpu_ns);
	}
	put_shorts(t, s);
	put_woken(t, index);
	close_event(t, e);
}

static void write_state_end(struct trace *t, size_t index)
{
	const struct threadstate *s = &t->states.list.v[index];

	close_event(t, open_event(t, s->end_ns, SLICE_END, perfettotrack_thread(s->thread)));
}

static void write_wake(struct trace *t, const struct item *item)
{
	const struct profile_wake *w = &t->p->wakes.v[item->index];
	bool waker = item->kind == ITEM_WAKE;
	struct event e = open_event(t, item->time_ns, INSTANT, perfettotrack_thread(waker ? w->waker : w->thread));
	const char *other = waker ? thread_name(t, w->thread) :
			    w->waker < t->p->threads.n ? thread_name(t, w->waker) : profile_str(t->p, w->waker_name);
	_cleanup_free_ char *name = mem_printf("%s %s", waker ? "wakes" : "woken by", other);

	put_name(t, "wake", name);
	if (waker)
		put_stack(t, w->waker_stack, 0);
	if (w->waker < t->p->threads.n)
		protobuf_put_fixed64(t->out, waker ? EVENT_FLOW : EVENT_FLOW_END, item->index + 1);
	close_event(t, e);
}

/* --- marks, series, samples --- */

static void write_mark(struct trace *t, const struct item *item)
{
	const struct perfettomark *m = &t->marks.list.v[item->index];
	const struct profile_mark *mark = &t->p->marks.v[m->mark];
	const struct block *b = &mark->block;
	struct event e = open_event(t, item->time_ns, item->kind == ITEM_MARK_END ? SLICE_END : m->end_ns > m->begin_ns ? SLICE_BEGIN : INSTANT,
				    perfettotrack_mark(m->track));

	if (item->kind == ITEM_MARK_BEGIN) {
		put_name(t, profile_str(t->p, mark->kind), profile_str(t->p, mark->name));
		if (b->known & BLOCK_NUMBER)
			put_number(t, "number", b->number);
		if (b->known & BLOCK_GAS)
			put_number(t, "gas", b->gas);
		if (b->known & BLOCK_TRANSACTIONS)
			put_number(t, "transactions", b->transactions);
	}
	close_event(t, e);
}

static void write_point(struct trace *t, size_t index)
{
	const struct profile_point *x = &t->p->points.v[index];
	struct event e = open_event(t, x->time_ns, COUNTER, perfettotrack_series(x->series));

	protobuf_put_uint(t->out, EVENT_VALUE, x->value);
	close_event(t, e);
}

static void write_sample_copy(struct trace *t, struct session *s, const struct samplerow *row)
{
	enum { PID = 2, TID, STACK, MODE, COUNT, MODE_KERNEL = 1, MODE_USER };
	uint32_t leaf = row->stack ? t->p->stacks.v[row->stack].frame : PROFILE_NONE;
	bool first = !s->seq.begun;
	size_t packet = perfettoseq_open(&s->seq, row->begin_ns), body;
	uint64_t stack = perfettoseq_stack(&s->seq, row->stack);

	if (first)
		perfettotrack_put_session(t->out, t->p, row->event, s->one_in);
	body = protobuf_open(t->out, PERFETTO_SAMPLE);
	protobuf_put_uint(t->out, PID, perfettotrack_pid(t->p, t->p->threads.v[row->thread].process));
	protobuf_put_uint(t->out, TID, perfettotrack_tid(t->p, row->thread));
	if (stack)
		protobuf_put_uint(t->out, STACK, stack);
	if (leaf != PROFILE_NONE)
		protobuf_put_uint(t->out, MODE, t->p->frames.v[leaf].kind == FRAME_KERNEL ? MODE_KERNEL : MODE_USER);
	protobuf_put_uint(t->out, COUNT, s->total);
	protobuf_close(t->out, body);
	perfettoseq_close(&s->seq, packet);
}

/* The count of a sample is the sum of all values up to it. */
static void write_sample(struct trace *t, size_t index)
{
	const struct samplerow *row = &t->rows.list.v[index];
	struct session *s = &t->sessions[row->event];
	uint64_t before = s->total, n = s->seen / s->one_in;

	s->seen += copies_of(t, row);
	n = s->seen / s->one_in - n;
	for (uint64_t i = 0; i < n; i++) {
		s->total = before + (unsigned __int128)row->value * (i + 1) / n;
		write_sample_copy(t, s, row);
	}
	s->total = before + row->value;
}

static void write_item(struct trace *t, const struct item *item)
{
	switch (item->kind) {
	case ITEM_STATE_END:
		write_state_end(t, item->index);
		break;
	case ITEM_STATE_BEGIN:
		write_state(t, item->index);
		break;
	case ITEM_WAKE:
	case ITEM_WOKEN:
		write_wake(t, item);
		break;
	case ITEM_MARK_BEGIN:
	case ITEM_MARK_END:
		write_mark(t, item);
		break;
	case ITEM_POINT:
		write_point(t, item->index);
		break;
	case ITEM_SAMPLE:
		write_sample(t, item->index);
		break;
	}
}

/* --- the whole --- */

static void write_trace(struct trace *t)
{
	stackcalls_init(&t->calls, t->job);
	perfettoseq_init(&t->seq, t->out, 1, &t->calls);
	for (size_t i = 0; i < t->p->events.n; i++)
		perfettoseq_init(&t->sessions[i].seq, t->out, 2 + i, &t->calls);
	perfettotrack_put_clocks(&t->seq, t->p);
	perfettotrack_put_all(&t->seq, t->p, t->threads, t->series, &t->marks);
	for (size_t i = 0; i < t->items.n; i++)
		write_item(t, &t->items.v[i]);
	for (size_t i = 0; i < t->p->events.n; i++)
		perfettoseq_done(&t->sessions[i].seq);
	perfettoseq_done(&t->seq);
	stackcalls_done(&t->calls);
}

static void done(struct trace *t)
{
	samplerows_done(&t->rows);
	threadstates_done(&t->states);
	perfettomarks_done(&t->marks);
	vec_done(&t->items);
	vec_done(&t->woken);
	free(t->threads);
	free(t->series);
	free(t->sessions);
}

/* Folded stacks and dumps of a heap have no time. */
static bool has_times(const struct trace *t)
{
	for (size_t i = 0; i < t->rows.list.n; i++)
		if (t->rows.list.v[i].begin_ns)
			return true;
	return t->p->duration_ns || !t->rows.list.n;
}

int perfetto_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct trace t = { .job = job, .p = job->profile, .out = out };
	int r = samplerows_make(&t.rows, job, SAMPLEROWS_IDLE, err);

	if (!r && !has_times(&t))
		r = err_set(err, ENODATA, "there are no times in it, of which a Perfetto trace is made: choose another format");
	if (!r)
		r = threadstates_make(&t.states, job, &t.rows, WAITS_MAX, err);
	if (!r) {
		perfettomarks_make(&t.marks, job);
		collect(&t);
		write_trace(&t);
	}
	done(&t);
	return r;
}
