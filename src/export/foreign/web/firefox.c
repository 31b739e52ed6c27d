/*
 * firefox.c - a recording for the Firefox profiler: threads on one timeline, with markers for blocks and long waits.
 *
 * CPU samples and waits of a thread are one track: each row weighs its time, so that the whole is the thread's time. Every other
 * event is a track of its own, "main (faults)", with weights in its unit: what is counted in bytes or faults is no time. Version
 * 61 of the format: those after it are made of it by the profiler. Members named gasflame… are ignored there; they let
 * src/import/web/firefox.c read what it has no place for.
 */
#include <errno.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/foreign/web/foreign.h"
#include "export/foreign/web/fxstacks.h"
#include "export/samplerows.h"
#include "profile/profile.h"

enum { VERSION = 61, GECKO_VERSION = 30, MS = 1000000 };

/* Rows of a thread that are drawn together: its time, or one other event. */
struct fx_track {
	uint32_t thread, event; /* event PROFILE_NONE: its time */
	size_t first, n;        /* of order */
	bool main;              /* the first one of its process */
};

struct fx {
	const struct export_job *job;
	struct samplerows rows;
	struct fxstacks stacks;
	VEC(uint32_t) order;
	VEC(struct fx_track) tracks;
	struct map wait_rows; /* thread and begin of a wait to its row */
};

static uint32_t track_of(const struct samplerow *row)
{
	return row->role == ROLE_OTHER ? row->event : PROFILE_NONE;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct fx *x = context;
	const struct profile *p = x->job->profile;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct samplerow *r = &x->rows.list.v[i], *s = &x->rows.list.v[k];
	uint32_t pid = foreign_pid(p, r->thread), other = foreign_pid(p, s->thread);
	bool leads = p->threads.v[r->thread].tid == pid, other_leads = p->threads.v[s->thread].tid == other;

	return ORDER(pid, other) ?: ORDER(other_leads, leads) ?: ORDER(r->thread, s->thread) ?: ORDER(track_of(r) + 1, track_of(s) + 1) ?: ORDER(i, k);
}

static uint64_t wait_key(uint32_t thread, uint64_t begin_ns)
{
	return map_hash(begin_ns) ^ map_hash(thread + 0x9e3779b97f4a7c15);
}

static void group_rows(struct fx *x)
{
	const struct profile *p = x->job->profile;

	for (size_t i = 0; i < x->rows.list.n; i++)
		vec_push(&x->order, i);
	qsort_r(x->order.v, x->order.n, sizeof(*x->order.v), compare_rows, x);
	for (size_t i = 0; i < x->order.n; i++) {
		const struct samplerow *row = &x->rows.list.v[x->order.v[i]];
		struct fx_track *last = x->tracks.n ? &x->tracks.v[x->tracks.n - 1] : NULL;

		if (!last || last->event != track_of(row) || last->thread != row->thread) {
			bool main = !last || foreign_pid(p, last->thread) != foreign_pid(p, row->thread);

			vec_push(&x->tracks, (struct fx_track){ row->thread, track_of(row), i, 0, main });
			last = &x->tracks.v[x->tracks.n - 1];
		}
		last->n++;
		if (row->role == ROLE_WAIT)
			*map_put(&x->wait_rows, wait_key(row->thread, row->begin_ns), 0) = x->order.v[i];
	}
}

static const struct samplerow *row_of(const struct fx *x, const struct fx_track *t, size_t i)
{
	return &x->rows.list.v[x->order.v[t->first + i]];
}

/* --- markers --- */

struct fx_marker {
	uint64_t start_ns, end_ns;
	uint32_t name;     /* of the strings */
	uint32_t category;
	size_t mark, wake; /* of the profile; SIZE_MAX = it is none */
};

struct fx_markers {
	VEC(struct fx_marker) list;
};

static int compare_markers(const void *a, const void *b)
{
	const struct fx_marker *x = a, *y = b;

	return ORDER(x->start_ns, y->start_ns) ?: ORDER(y->end_ns, x->end_ns) ?: ORDER(x->mark, y->mark) ?: ORDER(x->wake, y->wake);
}

static bool is_within(const struct fx *x, uint64_t start_ns, uint64_t end_ns)
{
	const struct select_options *o = &x->job->selection->options;

	return end_ns >= o->from_ns && (!o->to_ns || start_ns < o->to_ns);
}

/* Marks that are about no thread, or about one that has no track, are on the first track. */
static void find_marks(struct fx *x, const struct fx_track *t, struct fx_markers *m)
{
	const struct profile *p = x->job->profile;

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *mark = &p->marks.v[i];
		bool here = mark->thread == PROFILE_NONE ? t == x->tracks.v : mark->thread == t->thread;

		if (here && is_within(x, mark->start_ns, mark->end_ns))
			vec_push(&m->list, (struct fx_marker){ mark->start_ns, mark->end_ns, strtab_add(&x->stacks.strings, profile_str(p, mark->name)), FX_OTHER, i,
							       SIZE_MAX });
	}
}

static void find_wakes(struct fx *x, const struct fx_track *t, struct fx_markers *m)
{
	const struct profile *p = x->job->profile;

	for (size_t i = 0; i < p->wakes.n; i++) {
		const struct profile_wake *w = &p->wakes.v[i];
		uint64_t *row = w->thread == t->thread ? map_get(&x->wait_rows, wait_key(w->thread, w->time_ns)) : NULL;
		uint64_t end_ns = w->time_ns + w->blocked_ns;
		_cleanup_(buf_done) struct buf name = { 0 };
		enum cause cause;

		if (!row || !is_within(x, w->time_ns, end_ns))
			continue;
		cause = x->rows.list.v[*row].cause;
		buf_printf(&name, "wait: %s", cause_name(cause));
		vec_push(&m->list, (struct fx_marker){ w->time_ns, end_ns, strtab_add(&x->stacks.strings, name.data), FX_CAUSES + cause, SIZE_MAX, i });
	}
}

static void put_mark(struct json *j, const struct profile *p, const struct profile_mark *m)
{
	bool block = !strcmp(profile_str(p, m->kind), "block");

	json_put_string(j, "type", block ? "Block" : "Span");
	json_put_string(j, "name", profile_str(p, m->name));
	json_put_string(j, "kind", profile_str(p, m->kind));
	if (m->block.known & BLOCK_NUMBER)
		json_put_uint(j, "number", m->block.number);
	if (m->block.known & BLOCK_GAS)
		json_put_uint(j, "gas", m->block.gas);
	if (m->block.known & BLOCK_TRANSACTIONS)
		json_put_uint(j, "transactions", m->block.transactions);
}

static void put_wake(struct json *j, const struct profile *p, const struct fx_marker *m)
{
	const struct profile_wake *w = &p->wakes.v[m->wake];
	bool thread = !w->waker_name && w->waker < p->threads.n;

	json_put_string(j, "type", "Wait");
	json_put_string(j, "cause", m->category >= FX_CAUSES ? cause_name(m->category - FX_CAUSES) : "");
	json_put_string(j, "waker", profile_str(p, thread ? p->threads.v[w->waker].name : w->waker_name));
	if (w->waker < p->threads.n)
		json_put_uint(j, "waker_tid", p->threads.v[w->waker].tid);
	foreign_put_decimal(j, "queue", w->queue_ns, MS);
}

static void put_markers(struct fx *x, struct json *j, const struct fx_track *t)
{
	const struct profile *p = x->job->profile;
	struct fx_markers m = { 0 };

	if (t == x->tracks.v || t->event == PROFILE_NONE)
		find_marks(x, t, &m);
	if (t->event == PROFILE_NONE)
		find_wakes(x, t, &m);
	vec_sort(&m.list, compare_markers);
	json_open_object_line(j, "markers", 0);
	json_put_uint(j, "length", m.list.n);
	json_open_array(j, "name");
	for (size_t i = 0; i < m.list.n; i++)
		json_put_uint(j, NULL, m.list.v[i].name);
	json_close(j);
	json_open_array(j, "startTime");
	for (size_t i = 0; i < m.list.n; i++)
		foreign_put_decimal(j, NULL, m.list.v[i].start_ns, MS);
	json_close(j);
	json_open_array(j, "endTime");
	for (size_t i = 0; i < m.list.n; i++)
		foreign_put_decimal(j, NULL, m.list.v[i].end_ns, MS);
	json_close(j);
	json_open_array(j, "phase");
	for (size_t i = 0; i < m.list.n; i++)
		json_put_uint(j, NULL, 1);
	json_close(j);
	json_open_array(j, "category");
	for (size_t i = 0; i < m.list.n; i++)
		json_put_uint(j, NULL, m.list.v[i].category);
	json_close(j);
	json_open_array(j, "data");
	for (size_t i = 0; i < m.list.n; i++) {
		json_open_object(j, NULL);
		if (m.list.v[i].mark != SIZE_MAX)
			put_mark(j, p, &p->marks.v[m.list.v[i].mark]);
		else
			put_wake(j, p, &m.list.v[i]);
		json_close(j);
	}
	json_close(j);
	json_close(j);
	vec_done(&m.list);
}

/* --- threads --- */

static void put_samples(struct fx *x, struct json *j, const struct fx_track *t)
{
	const struct profile *p = x->job->profile;
	const char *unit = t->event == PROFILE_NONE ? "ns" : profile_str(p, p->events.v[t->event].unit);
	uint64_t parts = !strcmp(unit, "ns") ? MS : export_unit_parts(unit);

	json_open_object_line(j, "samples", 0);
	json_put_uint(j, "length", t->n);
	json_put_string(j, "weightType", !strcmp(unit, "ns") ? "tracing-ms" : !strcmp(unit, "bytes") ? "bytes" : "samples");
	json_open_array_line(j, "stack", 0);
	for (size_t i = 0; i < t->n; i++) {
		uint32_t stack = fxstacks_of(&x->stacks, row_of(x, t, i));

		if (stack)
			json_put_uint(j, NULL, stack - 1);
		else
			json_put_null(j, NULL);
	}
	json_close(j);
	json_open_array_line(j, "time", 0);
	for (size_t i = 0; i < t->n; i++)
		foreign_put_decimal(j, NULL, row_of(x, t, i)->begin_ns, MS);
	json_close(j);
	json_open_array_line(j, "weight", 0);
	for (size_t i = 0; i < t->n; i++)
		foreign_put_decimal(j, NULL, row_of(x, t, i)->value, parts);
	json_close(j);
	if (t->event == PROFILE_NONE) {
		json_open_array_line(j, "threadCPUDelta", 0);
		for (size_t i = 0; i < t->n; i++)
			json_put_uint(j, NULL, row_of(x, t, i)->role == ROLE_CPU ? row_of(x, t, i)->value : 0);
		json_close(j);
	}
	json_open_array_line(j, "gasflameEvent", 0);
	for (size_t i = 0; i < t->n; i++)
		json_put_uint(j, NULL, row_of(x, t, i)->event);
	json_close(j);
	json_open_array_line(j, "gasflameCount", 0);
	for (size_t i = 0; i < t->n; i++)
		json_put_uint(j, NULL, row_of(x, t, i)->count);
	json_close(j);
	json_close(j);
}

static void put_thread(struct fx *x, struct json *j, const struct fx_track *t)
{
	const struct profile *p = x->job->profile;
	const struct profile_thread *thread = &p->threads.v[t->thread];
	const char *event = t->event == PROFILE_NONE ? "" : profile_str(p, p->events.v[t->event].name);
	_cleanup_(buf_done) struct buf name = { 0 }, tid = { 0 }, pid = { 0 };

	buf_puts(&name, profile_str(p, thread->name));
	buf_printf(&tid, "%u", thread->tid);
	buf_printf(&pid, "%u", foreign_pid(p, t->thread));
	if (*event) {
		buf_printf(&name, " (%s)", event);
		buf_printf(&tid, " %s", event);
	}
	json_open_row(j, 0);
	json_put_string(j, "name", name.data);
	json_put_string(j, "gasflameName", profile_str(p, thread->name));
	json_put_string(j, "processName", thread->process < p->processes.n ? profile_str(p, p->processes.v[thread->process].name) : "");
	json_put_string(j, "processType", "default");
	json_put_string(j, "pid", pid.data);
	if (*event || !thread->tid)
		json_put_string(j, "tid", tid.data);
	else
		json_put_uint(j, "tid", thread->tid);
	json_put_bool(j, "isMainThread", t->main);
	json_put_uint(j, "processStartupTime", 0);
	json_put_null(j, "processShutdownTime");
	foreign_put_decimal(j, "registerTime", thread->start_ns, MS);
	json_put_null(j, "unregisterTime");
	json_put_bool(j, "showMarkersInTimeline", true);
	json_put_strings(j, "pausedRanges", NULL, 0);
	put_samples(x, j, t);
	put_markers(x, j, t);
	json_close(j);
}

/* --- the file --- */

struct fx_field {
	const char *key, *label, *format;
};

static void put_schema(struct json *j, const char *name, const char *label, const char *describe, const struct fx_field *fields)
{
	json_open_row(j, 0);
	json_put_string(j, "name", name);
	json_put_string(j, "description", describe);
	json_put_string(j, "chartLabel", label);
	json_put_string(j, "tooltipLabel", label);
	json_put_string(j, "tableLabel", label);
	json_put_strings(j, "display", (const char *const[]){ "marker-chart", "marker-table", "timeline-overview" }, 3);
	json_open_array(j, "fields");
	for (; fields->key; fields++) {
		json_open_object(j, NULL);
		json_put_string(j, "key", fields->key);
		json_put_string(j, "label", fields->label);
		json_put_string(j, "format", fields->format);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_schemas(struct json *j)
{
	json_open_array_line(j, "markerSchema", 0);
	put_schema(j, "Block", "{marker.data.name}", "A block of the chain, from its first work to its last.",
		   (const struct fx_field[]){ { "name", "Name", "string" }, { "number", "Number", "integer" }, { "gas", "Gas", "integer" },
					      { "transactions", "Transactions", "integer" }, { 0 } });
	put_schema(j, "Span", "{marker.data.name}", "A span of time that has a name.",
		   (const struct fx_field[]){ { "name", "Name", "string" }, { "kind", "Kind", "string" }, { 0 } });
	put_schema(j, "Wait", "{marker.name}", "A long wait, and who ended it.",
		   (const struct fx_field[]){ { "cause", "Cause", "string" }, { "waker", "Woken by", "string" }, { "waker_tid", "Thread", "tid" },
					      { "queue", "Then in the run queue", "duration" }, { 0 } });
	json_close(j);
}

/* What src/import/web/firefox.c reads. */
static void put_own(struct fx *x, struct json *j)
{
	const struct profile *p = x->job->profile;

	json_open_object_line(j, "gasflame", 0);
	json_put_uints(j, { "start_wall_ns", p->start_wall_ns }, { "duration_ns", p->duration_ns });
	json_open_array(j, "events");
	for (size_t i = 0; i < p->events.n; i++) {
		const struct profile_event *e = &p->events.v[i];

		json_open_object(j, NULL);
		json_put_string(j, "name", profile_str(p, e->name));
		json_put_string(j, "unit", profile_str(p, e->unit));
		json_put_string(j, "describe", profile_str(p, e->describe));
		json_put_uint(j, "period", e->period);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_meta(struct fx *x, struct json *j)
{
	const struct profile *p = x->job->profile;
	uint32_t cpu = profile_find_event(p, "cpu", "ns");
	uint64_t interval_ns = cpu != PROFILE_NONE ? p->events.v[cpu].period : 0;

	json_open_object(j, "meta");
	json_put_uints(j, { "version", GECKO_VERSION }, { "preprocessedProfileVersion", VERSION });
	foreign_put_decimal(j, "interval", interval_ns ?: MS, MS);
	foreign_put_decimal(j, "startTime", p->start_wall_ns, MS);
	json_put_string(j, "product", profile_str(p, p->target));
	json_put_string(j, "importedFrom", "gasflame");
	json_put_string(j, "oscpu", profile_str(p, p->kernel));
	json_put_uints(j, { "processType", 0 }, { "stackwalk", 1 });
	json_put_bool(j, "symbolicated", true);
	json_put_bool(j, "usesOnlyOneStackType", true);
	json_put_bool(j, "sourceCodeIsNotOnSearchfox", true);
	json_put_bool(j, "keepProfileThreadOrder", true);
	json_open_object(j, "sampleUnits");
	json_put_string(j, "time", "ms");
	json_put_string(j, "eventDelay", "ms");
	json_put_string(j, "threadCPUDelta", "ns");
	json_close(j);
	fxstacks_put_categories(j);
	put_schemas(j);
	put_own(x, j);
	json_close_line(j, 0);
}

static void put_file(struct fx *x, struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	put_meta(x, &j);
	json_open_array(&j, "threads");
	for (size_t i = 0; i < x->tracks.n; i++)
		put_thread(x, &j, &x->tracks.v[i]);
	json_close_line(&j, 0);
	/* What the threads refer to. */
	json_open_object(&j, "shared");
	fxstacks_put_tables(&x->stacks, &j);
	json_close(&j);
	fxstacks_put_libs(&x->stacks, &j);
	json_end_line(&j);
}

int firefox_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct fx x = { .job = job };
	int r = samplerows_make(&x.rows, job, SAMPLEROWS_BY_TIME, err);

	if (!r) {
		fxstacks_init(&x.stacks, job);
		group_rows(&x);
		put_file(&x, out);
		fxstacks_done(&x.stacks);
	}
	samplerows_done(&x.rows);
	vec_done(&x.order);
	vec_done(&x.tracks);
	map_done(&x.wait_rows);
	return r;
}
