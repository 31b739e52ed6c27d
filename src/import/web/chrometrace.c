#include "import/web/chrometrace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "import/import.h"
#include "import/trace/traceevents.h"
#include "import/trace/tracespans.h"
#include "import/web/chromesamples.h"
#include "import/web/chromespans.h"
#include "import/web/jsontext.h"
#include "import/web/v8profile.h"
#include "import/web/webprofile.h"
#include "profile/blockspans.h"
#include "profile/profile.h"

enum { CHUNK = 256 << 10, EVENT_BYTES = 256 << 20, MARKS = 100000 };
static const uint64_t epoch_ns = 1000000000000000000; /* 2001: no clock but the wall's is so far */

/* A span that may be a block, or one across threads. */
struct chrome_mark {
	struct trace_span span;
	uint32_t name; /* a string of the profile */
	int rank;      /* of blockspans_rank(), 0 = it is no block */
};

struct chrome {
	struct webprofile w;
	struct traceevents *events;
	struct tracespans *async;
	struct tracespans *blocks; /* B and E of names that blocks have */
	struct chromespans spans;
	struct chromesamples samples;
	VEC(struct v8profile) profiles;
	struct map processes;           /* pid to the string of its name */
	VEC(struct chrome_mark) marks;
	uint64_t first_ns;              /* the earliest time of all */
	int result;
	struct err *err;
};

bool chrometrace_probe(const char *data, size_t n, bool whole)
{
	size_t i = 0;

	if (webprofile_holds(data, n, "\"traceEvents\""))
		return true;
	while (i < n && strchr(" \t\r\n", data[i]) && data[i])
		i++;
	return i < n && data[i] == '[' && memmem(data, n, "\"ph\"", 4);
}

/* --- events --- */

/* The name of an event, whole. */
static uint32_t name_of(struct chrome *x, const struct trace_event *e)
{
	struct jsontext c;
	const char *text;
	size_t n;

	if (strlen(e->name) < TRACEEVENTS_NAME - 1 || !(text = traceevents_text(x->events, &n)))
		return profile_string(x->w.p, *e->name ? e->name : "[no name]");
	c = jsontext_of(text, n);
	for (jsontext_object(&c); jsontext_member(&c);) {
		if (!jsontext_is(&c, "name")) {
			jsontext_skip(&c);
			continue;
		}
		jsontext_string(&c, &x->w.text);
		return profile_string(x->w.p, x->w.text.data);
	}
	return profile_string(x->w.p, e->name);
}

static void keep_mark(struct chrome *x, const struct trace_span *span, uint32_t name, int rank)
{
	if (x->marks.n < MARKS)
		vec_push(&x->marks, (struct chrome_mark){ *span, name, rank });
	else
		x->w.left_out++;
}

static void got_async(void *context, const struct trace_span *span)
{
	struct chrome *x = context;
	const char *name = tracespans_name(x->async, span->name);

	keep_mark(x, span, profile_string(x->w.p, *name ? name : "[no name]"), span->block.known & BLOCK_NUMBER ? blockspans_rank(name) : 0);
}

static void got_block(void *context, const struct trace_span *span)
{
	struct chrome *x = context;

	if (span->block.known & BLOCK_NUMBER)
		keep_mark(x, span, 0, blockspans_rank(tracespans_name(x->blocks, span->name)));
}

static int take_span(struct chrome *x, const struct trace_event *e, uint32_t lane)
{
	struct trace_span span = { e->time_ns, e->time_ns + e->duration_ns, 0, lane, e->block };
	int rank = blockspans_rank(e->name);

	if (rank && e->phase != 'X')
		tracespans_take(x->blocks, e);
	switch (e->phase) {
	case 'B':
		return chromespans_begin(&x->spans, lane, e->time_ns, name_of(x, e), x->err);
	case 'E':
		return chromespans_end(&x->spans, lane, e->time_ns, *e->name ? name_of(x, e) : 0, x->err);
	default:
		if (!e->lasts || span.end_ns < e->time_ns) {
			x->w.left_out++;
			return 0;
		}
		if (rank && e->block.known & BLOCK_NUMBER)
			keep_mark(x, &span, 0, rank);
		return chromespans_whole(&x->spans, lane, e->time_ns, span.end_ns, name_of(x, e), x->err);
	}
}

static void take_metadata(struct chrome *x, const struct trace_event *e, uint32_t lane)
{
	uint32_t name = profile_string(x->w.p, e->called);

	if (!strcmp(e->name, "thread_name"))
		x->spans.lanes.v[lane].name = name;
	else if (!strcmp(e->name, "process_name"))
		*map_put(&x->processes, e->pid, 0) = name;
}

/* A piece of a profile of V8: those of one id belong together. */
static void take_v8(struct chrome *x, const struct trace_event *e)
{
	struct v8profile *v = NULL;
	const char *text;
	size_t n;
	struct jsontext c;

	text = traceevents_text(x->events, &n);
	for (size_t i = 0; i < x->profiles.n && !v; i++)
		if (x->profiles.v[i].pid == e->pid && (e->id ? x->profiles.v[i].id == e->id : x->profiles.v[i].tid == e->tid))
			v = &x->profiles.v[i];
	if (!text || (!v && x->profiles.n == 1024)) {
		x->w.left_out++;
		return;
	}
	if (!v) {
		vec_push(&x->profiles, (struct v8profile){ .pid = e->pid, .tid = e->tid, .id = e->id });
		v = &x->profiles.v[x->profiles.n - 1];
	}
	c = jsontext_of(text, n);
	for (jsontext_object(&c); jsontext_member(&c);) {
		if (!jsontext_is(&c, "args") || jsontext_kind(&c) != '{') {
			jsontext_skip(&c);
			continue;
		}
		for (jsontext_object(&c); jsontext_member(&c);)
			if (jsontext_is(&c, "data") && jsontext_kind(&c) == '{')
				v8profile_take(v, &x->w, &c);
			else
				jsontext_skip(&c);
	}
	x->w.left_out += c.failed != NULL;
}

static bool is_v8(const struct trace_event *e)
{
	return e->phase != 'B' && e->phase != 'E' && (!strcmp(e->name, "Profile") || !strcmp(e->name, "ProfileChunk") || !strcmp(e->name, "CpuProfile"));
}

static void got_event(void *context, const struct trace_event *e)
{
	struct chrome *x = context;
	uint32_t lane;
	const char *text;
	size_t n;

	if (x->result)
		return;
	lane = chromespans_lane(&x->spans, e->pid, e->tid);
	if (lane == UINT32_MAX) {
		x->result = err_set(x->err, EFBIG, "it has more than %d threads", CHROMESPANS_LANES);
		return;
	}
	if (e->phase == 'M') {
		take_metadata(x, e, lane);
	} else if (is_v8(e)) {
		take_v8(x, e);
	} else if (!e->phase || !strchr("BEXbeSFP", e->phase) || !e->timed || e->time_ns > INT64_MAX) {
		x->w.left_out++; /* flows, counters, moments, and what has no time */
	} else {
		x->first_ns = MIN(x->first_ns, e->time_ns);
		if (strchr("beSF", e->phase))
			tracespans_take(x->async, e);
		else if (e->phase != 'P')
			x->result = take_span(x, e, lane);
		else if ((text = traceevents_text(x->events, &n)))
			chromesamples_take(&x->samples, &x->w, &x->spans, text, n);
	}
}

static void got_part(void *context, const char *key, const char *text, size_t n)
{
	struct chrome *x = context;

	if (!strcmp(key, "stackFrames"))
		chromesamples_frames(&x->samples, &x->w, text, n);
	else
		chromesamples_list(&x->samples, &x->w, &x->spans, text, n);
}

/* --- the profile --- */

static void make_threads(struct chrome *x)
{
	struct profile *p = x->w.p;

	for (size_t i = 0; i < x->spans.lanes.n; i++) {
		struct chrome_lane *l = &x->spans.lanes.v[i];
		uint64_t *process = map_get(&x->processes, l->pid);
		uint32_t pid = l->pid <= INT32_MAX ? l->pid : 0, tid = l->tid <= INT32_MAX ? l->tid : 0;
		char number[32] = "";

		if (!l->name && !tid)
			snprintf(number, sizeof(number), "thread %zu", i);
		l->thread = frames_thread(&x->w.frames, pid, tid, l->name ? profile_str(p, l->name) : number);
		if (process)
			p->processes.v[p->threads.v[l->thread].process].name = *process;
	}
}

/* Of the names that stand for blocks the one that says most of it. */
static void add_marks(struct chrome *x, uint64_t zero_ns)
{
	struct profile *p = x->w.p;
	int best = 0;

	for (size_t i = 0; i < x->marks.n; i++)
		best = MAX(best, x->marks.v[i].rank);
	for (size_t i = 0; i < x->marks.n; i++) {
		const struct chrome_mark *m = &x->marks.v[i];
		struct profile_mark mark = { m->span.start_ns - zero_ns, m->span.end_ns - zero_ns, m->name, m->name, PROFILE_NONE };
		char name[40];

		if (m->span.end_ns > INT64_MAX) {
			x->w.left_out++;
			continue;
		}
		if (best && m->rank == best) {
			snprintf(name, sizeof(name), "block %llu", (unsigned long long)m->span.block.number);
			mark.name = profile_string(p, name);
			mark.kind = profile_string(p, "block");
			mark.block = m->span.block;
		} else if (!m->name) {
			continue;
		}
		profile_add_mark(p, &mark);
	}
}

static int make_profile(struct chrome *x)
{
	const struct tracespans_counts *async = tracespans_counted(x->async);
	int r = chromespans_close(&x->spans, x->err);

	for (size_t i = 0; i < x->profiles.n; i++)
		if (x->profiles.v[i].start_ns)
			x->first_ns = MIN(x->first_ns, x->profiles.v[i].start_ns);
	x->first_ns = MIN(x->first_ns, x->samples.first_ns);
	x->first_ns = x->first_ns == UINT64_MAX ? 0 : x->first_ns;
	if (x->first_ns >= epoch_ns)
		x->w.p->start_wall_ns = x->first_ns;
	x->w.left_out += async->ends + async->begins + async->open + async->odd + async->beyond;
	make_threads(x);
	if (!r && x->spans.spans.n)
		r = chromespans_add(&x->spans, webprofile_event(&x->w, "spans", "ns", "time in spans of a trace", 0), x->first_ns, x->err);
	for (size_t i = 0; i < x->profiles.n && !r; i++) {
		struct v8profile *v = &x->profiles.v[i];

		r = v8profile_add(v, &x->w, x->spans.lanes.v[chromespans_lane(&x->spans, v->pid, v->tid)].thread, x->first_ns, x->err);
	}
	r = r ?: chromesamples_add(&x->samples, &x->w, &x->spans, x->first_ns, x->err);
	if (!r)
		add_marks(x, x->first_ns);
	return r;
}

/* A trace that is cut or malformed is read up to there; *ret_broken: what was wrong. */
static int read_events(struct chrome *x, struct stream *in, struct err *broken)
{
	_cleanup_free_ char *bytes = mem_alloc(CHUNK);
	ssize_t n;

	while ((n = stream_read(in, bytes, CHUNK, x->err)) > 0 && !x->result)
		if (traceevents_feed(x->events, bytes, n, broken))
			break;
	x->w.left_out += traceevents_odd(x->events) + (broken->code != 0);
	return n < 0 ? (int)n : x->result;
}

int chrometrace_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct chrome x = { .err = err, .first_ns = UINT64_MAX };
	struct err broken = { 0 };
	int r;

	webprofile_init(&x.w, in);
	x.spans.w = &x.w;
	chromesamples_init(&x.samples);
	x.events = traceevents_new(got_event, &x);
	x.async = tracespans_new(got_async, &x);
	x.blocks = tracespans_new(got_block, &x);
	traceevents_keep(x.events, EVENT_BYTES, got_part);
	r = read_events(&x, in->stream, &broken);
	r = r ?: make_profile(&x);
	if (!r && !x.w.p->samples.n && !x.w.p->marks.n && broken.code)
		r = err_set(err, EINVAL, "%s", broken.text);
	traceevents_free(x.events);
	tracespans_free(x.async);
	tracespans_free(x.blocks);
	chromespans_done(&x.spans);
	chromesamples_done(&x.samples);
	vec_done_each(&x.profiles, v, v8profile_done(v));
	vec_done(&x.marks);
	map_done(&x.processes);
	return webprofile_end(&x.w, r, ret, err);
}
