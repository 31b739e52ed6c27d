#include "import/web/firefox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "import/web/firefoxmarkers.h"
#include "import/web/firefoxtables.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

/* An event of a file of ours. */
struct fx_event {
	uint32_t event;
	unsigned decimals; /* of its values in the file */
};

struct firefox {
	struct webprofile w;
	struct fxfile file;
	struct fxtables shared;
	struct jsontext_place meta, libs, tables, threads;
	const char *cpu_unit;           /* of threadCPUDelta: "ns", "us" or "" for cycles */
	VEC(struct fx_event) events;    /* of a file of ours */
	struct err *err;
};

/* A thread of the file. */
struct fx_thread {
	struct fxtables own;
	struct fxtables *tables; /* those that its stacks are in */
	struct jsontext_place samples, allocations, js_allocations, markers;
	uint32_t name, process_name, pid, tid;
	uint32_t thread;         /* of the profile */
};

/* The columns of a table of samples. */
struct fx_samples {
	struct jsontext_place stack, time, deltas, weight, cpu, event, count;
	char type; /* of weights: 's'amples, 't'racing-ms, 'b'ytes */
};

bool firefox_probe(const char *data, size_t n, bool whole)
{
	return webprofile_holds(data, n, "\"preprocessedProfileVersion\"");
}

/* --- what the file has once --- */

static void read_categories(struct firefox *x, struct jsontext *c)
{
	for (jsontext_list(c); jsontext_item(c);) {
		enum fxcategory kind = FX_USER;

		for (jsontext_object(c); jsontext_member(c);) {
			if (!jsontext_is(c, "name")) {
				jsontext_skip(c);
				continue;
			}
			jsontext_string(c, &x->w.text);
			if (!strcmp(x->w.text.data, "Kernel"))
				kind = FX_KERNEL;
			else if (!strcmp(x->w.text.data, "Detail"))
				kind = FX_NOTE;
			else if (!strcmp(x->w.text.data, "Other"))
				kind = FX_OTHER;
			else if (!strcmp(x->w.text.data, "Idle") || str_starts(x->w.text.data, "wait: "))
				kind = FX_CAUSE;
		}
		vec_push(&x->file.categories, kind);
	}
}

static void read_units(struct firefox *x, struct jsontext *c)
{
	for (jsontext_object(c); jsontext_member(c);) {
		bool cpu = jsontext_is(c, "threadCPUDelta");

		jsontext_string(c, &x->w.text);
		if (cpu)
			x->cpu_unit = !strcmp(x->w.text.data, "ns") ? "ns" : !strcmp(x->w.text.data, "\xc2\xb5s") ? "us" : "";
	}
}

/* The events of a file of ours. */
static void read_events(struct firefox *x, struct jsontext *c)
{
	struct profile *p = x->w.p;

	for (jsontext_list(c); jsontext_item(c);) {
		uint32_t name = 0, unit = 0, describe = 0;
		uint64_t period = 0;

		for (jsontext_object(c); jsontext_member(c);) {
			uint32_t *text = jsontext_is(c, "name") ? &name : jsontext_is(c, "unit") ? &unit : jsontext_is(c, "describe") ? &describe : NULL;

			if (text) {
				jsontext_string(c, &x->w.text);
				*text = profile_string(p, x->w.text.data);
			} else if (jsontext_is(c, "period")) {
				period = jsontext_number(c, 0).value;
			} else {
				jsontext_skip(c);
			}
		}
		vec_push(&x->events, (struct fx_event){ webprofile_event(&x->w, profile_str(p, name), profile_str(p, unit), profile_str(p, describe), period),
							!strcmp(profile_str(p, unit), "ns") ? 6 : webprofile_decimals(profile_str(p, unit)) });
	}
}

static void read_own(struct firefox *x, struct jsontext *c)
{
	for (jsontext_object(c); jsontext_member(c);) {
		if (jsontext_is(c, "events")) {
			read_events(x, c);
		} else if (jsontext_is(c, "start_wall_ns")) {
			x->w.p->start_wall_ns = jsontext_number(c, 0).value;
		} else if (jsontext_is(c, "duration_ns")) {
			struct jsontext_number n = jsontext_number(c, 0);

			x->w.p->duration_ns = n.huge ? 0 : n.value;
		} else {
			jsontext_skip(c);
		}
	}
}

static int read_meta(struct firefox *x)
{
	struct jsontext *c = &x->meta.at;
	bool processed = false;

	x->cpu_unit = "us"; /* as it was before there were units */
	jsontext_object(c);
	while (jsontext_member(c)) {
		if (jsontext_is(c, "preprocessedProfileVersion")) {
			processed = jsontext_uint(c) > 0;
		} else if (jsontext_is(c, "startTime")) {
			struct jsontext_number n = jsontext_number(c, 6);

			if (n.there && !n.negative && !n.huge && !x->w.p->start_wall_ns)
				x->w.p->start_wall_ns = n.value;
		} else if (jsontext_is(c, "product")) {
			jsontext_string(c, &x->w.text);
			if (x->w.text.n)
				x->w.p->target = profile_string(x->w.p, x->w.text.data);
		} else if (jsontext_is(c, "categories") && jsontext_kind(c) == '[') {
			read_categories(x, c);
		} else if (jsontext_is(c, "sampleUnits") && jsontext_kind(c) == '{') {
			read_units(x, c);
		} else if (jsontext_is(c, "gasflame") && jsontext_kind(c) == '{') {
			x->file.own = true;
			read_own(x, c);
		} else {
			jsontext_skip(c);
		}
	}
	if (c->failed)
		return jsontext_error(c, x->err);
	return processed ? 0 : err_set(x->err, EINVAL, "it has no preprocessedProfileVersion: the Firefox profiler saves what Firefox itself wrote as "
						      "a processed profile, which is read here");
}

/* A build-id as it is written in codeId: hexadecimal. Returns its size. */
static size_t parse_hex(const char *text, uint8_t out[20])
{
	size_t n = 0;

	for (; text[0] && text[1] && n < 20; text += 2) {
		char pair[3] = { text[0], text[1] }, *end;

		out[n++] = strtoul(pair, &end, 16);
		if (*end)
			return 0;
	}
	return *text ? 0 : n;
}

static void read_lib(struct firefox *x, struct jsontext *c)
{
	uint8_t build_id[20];
	uint32_t path = 0, name = 0;
	size_t n = 0;

	for (jsontext_object(c); jsontext_member(c);) {
		bool id = jsontext_is(c, "codeId");
		uint32_t *text = jsontext_is(c, "path") ? &path : jsontext_is(c, "name") ? &name : NULL;

		if (!id && !text) {
			jsontext_skip(c);
			continue;
		}
		jsontext_string(c, &x->w.text);
		if (id)
			n = parse_hex(x->w.text.data, build_id);
		else
			*text = profile_string(x->w.p, x->w.text.data);
	}
	vec_push(&x->file.modules, frames_module(&x->w.frames, profile_str(x->w.p, path ? path : name), n ? build_id : NULL, n));
}

/* --- samples --- */

static void find_columns(struct firefox *x, struct jsontext *c, struct fx_samples *s)
{
	s->type = 's';
	jsontext_object(c);
	while (jsontext_member(c)) {
		struct jsontext_place *place = jsontext_is(c, "stack")            ? &s->stack
					       : jsontext_is(c, "time")           ? &s->time
					       : jsontext_is(c, "timeDeltas")     ? &s->deltas
					       : jsontext_is(c, "weight")         ? &s->weight
					       : jsontext_is(c, "threadCPUDelta") ? &s->cpu
					       : jsontext_is(c, "gasflameEvent")  ? &s->event
					       : jsontext_is(c, "gasflameCount")  ? &s->count
										  : NULL;

		if (place && jsontext_kind(c) == '[') {
			*place = jsontext_keep(c);
			jsontext_list(&place->at);
		} else if (jsontext_is(c, "weightType") && jsontext_kind(c) == '"') {
			jsontext_string(c, &x->w.text);
			s->type = *x->w.text.data;
		} else {
			jsontext_skip(c);
		}
	}
}

/* The next time of a table, in nanoseconds; what is before the start of the profile is at its start. */
static uint64_t next_time(struct fx_samples *s, int64_t *now)
{
	struct jsontext_place *list = s->time.there ? &s->time : &s->deltas;
	struct jsontext_number n = { 0 };
	int64_t value;

	if (jsontext_beside(list))
		n = jsontext_number(&list->at, 6);
	value = n.there ? (int64_t)MIN(n.value, (uint64_t)INT64_MAX) : 0;
	value = n.negative ? -value : value;
	if (s->time.there)
		*now = n.there ? value : *now;
	else if (__builtin_add_overflow(*now, value, now))
		*now = INT64_MAX;
	return MAX(*now, 0);
}

static uint32_t event_of(struct firefox *x, const struct fx_samples *s)
{
	if (s->type == 't')
		return webprofile_event(&x->w, "time", "ns", "", 0);
	if (s->type == 'b')
		return webprofile_event(&x->w, "bytes", "bytes", "", 0);
	return webprofile_event(&x->w, "samples", "count", "", 0);
}

static int add_value(struct firefox *x, struct profile_sample *sample, uint32_t event, struct jsontext_number value)
{
	if (!value.there || value.negative) {
		x->w.left_out++;
		return 0;
	}
	if (value.huge)
		return err_set(x->err, ERANGE, "its weights add up to more than can be counted");
	sample->event = event;
	sample->value = value.value;
	return webprofile_add(&x->w, sample, !strcmp(profile_str(x->w.p, x->w.p->events.v[event].unit), "ns") ? value.value : 0, x->err);
}

static int add_cpu(struct firefox *x, struct profile_sample *sample, struct fx_samples *s)
{
	bool cycles = !*x->cpu_unit;
	struct jsontext_number n = { 0 };

	if (jsontext_beside(&s->cpu))
		n = jsontext_number(&s->cpu.at, !strcmp(x->cpu_unit, "us") ? 3 : 0);
	if (!n.there)
		return 0;
	return add_value(x, sample,
			 cycles ? webprofile_event(&x->w, "cycles", "count", "CPU cycles between samples", 0)
				: webprofile_event(&x->w, "cpu", "ns", "CPU time between samples, as the system accounts it", 0),
			 n);
}

/* The weight of the next sample, and of which event it is. */
static struct jsontext_number next_weight(struct firefox *x, struct fx_samples *s, uint32_t *event)
{
	struct jsontext_number one = { .there = true, .value = 1 };
	int32_t own = x->file.own && jsontext_beside(&s->event) ? jsontext_index(&s->event.at, x->events.n) : -1;
	unsigned decimals = own >= 0 ? x->events.v[own].decimals : s->type == 't' ? 6 : 0;

	if (own >= 0)
		*event = x->events.v[own].event;
	if (!s->weight.there)
		return one;
	return jsontext_beside(&s->weight) ? jsontext_number(&s->weight.at, decimals) : (struct jsontext_number){ 0 };
}

static int read_samples(struct firefox *x, struct fx_thread *t)
{
	struct fx_samples s = { 0 };
	int64_t now = 0;
	int r = 0;

	find_columns(x, &t->samples.at, &s);
	while (!r && jsontext_beside(&s.stack)) {
		int32_t stack = jsontext_int(&s.stack.at);
		struct profile_sample sample = { .time_ns = next_time(&s, &now), .thread = t->thread };
		uint32_t event = PROFILE_NONE;
		struct jsontext_number weight = next_weight(x, &s, &event);

		sample.stack = fxtables_stack(t->tables, &x->shared, &x->file, stack, &s.stack.at);
		sample.count = s.count.there && jsontext_beside(&s.count) ? jsontext_uint(&s.count.at) : 0;
		if (stack < 0 && !x->file.own) {
			x->w.left_out++;
			jsontext_beside(&s.cpu) ? jsontext_skip(&s.cpu.at) : (void)0;
			continue;
		}
		if (s.stack.at.failed)
			break;
		r = add_value(x, &sample, event != PROFILE_NONE ? event : event_of(x, &s), weight);
		if (!r && !x->file.own)
			r = add_cpu(x, &sample, &s);
	}
	r = r ?: jsontext_error(&t->samples.at, x->err);
	r = r ?: s.stack.there ? jsontext_error(&s.stack.at, x->err) : 0;
	r = r ?: s.event.there ? jsontext_error(&s.event.at, x->err) : 0;
	return r ?: s.weight.there ? jsontext_error(&s.weight.at, x->err) : 0;
}

/* A table of allocations: what is freed has a negative weight. */
static int read_allocations(struct firefox *x, struct fx_thread *t, struct jsontext_place *table, const char *name)
{
	struct fx_samples s = { 0 };
	int64_t now = 0;
	int r = 0;

	if (!table->there || jsontext_kind(&table->at) != '{')
		return 0;
	find_columns(x, &table->at, &s);
	while (!r && jsontext_beside(&s.stack)) {
		int32_t stack = jsontext_int(&s.stack.at);
		struct profile_sample sample = { .time_ns = next_time(&s, &now), .thread = t->thread };
		struct jsontext_number n = { 0 };
		bool freed;

		sample.stack = fxtables_stack(t->tables, &x->shared, &x->file, stack, &s.stack.at);
		if (jsontext_beside(&s.weight))
			n = jsontext_number(&s.weight.at, 0);
		freed = n.negative;
		n.negative = false;
		if (!s.stack.at.failed)
			r = add_value(x, &sample, webprofile_event(&x->w, freed ? "freed" : name, "bytes", "", 0), n);
	}
	return r ?: s.stack.there ? jsontext_error(&s.stack.at, x->err) : jsontext_error(&table->at, x->err);
}

/* --- threads --- */

/* "1234", 1234, and "1234.1" of a profile that was merged. */
static uint32_t number_of(struct firefox *x, struct jsontext *c)
{
	unsigned long n;

	jsontext_string(c, &x->w.text);
	n = strtoul(x->w.text.data, NULL, 10);
	return n <= INT32_MAX ? n : 0;
}

static void look_at_thread(struct firefox *x, struct jsontext *c, struct fx_thread *t)
{
	jsontext_object(c);
	while (jsontext_member(c)) {
		struct jsontext_place *place = jsontext_is(c, "samples")             ? &t->samples
					       : jsontext_is(c, "nativeAllocations") ? &t->allocations
					       : jsontext_is(c, "jsAllocations")     ? &t->js_allocations
					       : jsontext_is(c, "markers")           ? &t->markers
										     : NULL;
		uint32_t *text = jsontext_is(c, "gasflameName")                        ? &t->name
				 : jsontext_is(c, "name") && !(x->file.own && t->name) ? &t->name
				 : jsontext_is(c, "processName")                       ? &t->process_name
										       : NULL;

		if (place) {
			*place = jsontext_keep(c);
		} else if (text) {
			jsontext_string(c, &x->w.text);
			*text = profile_string(x->w.p, x->w.text.data);
		} else if (jsontext_is(c, "pid")) {
			t->pid = number_of(x, c);
		} else if (jsontext_is(c, "tid")) {
			t->tid = number_of(x, c);
		} else if (!fxtables_take(&t->own, &x->file, c)) {
			jsontext_skip(c);
		}
	}
}

static int read_thread(struct firefox *x, struct jsontext *c)
{
	struct fx_thread t = { 0 };
	struct profile *p = x->w.p;
	int r;

	look_at_thread(x, c, &t);
	r = jsontext_error(c, x->err);
	if (!r) {
		t.tables = fxtables_any(&t.own) ? &t.own : &x->shared;
		t.thread = frames_thread(&x->w.frames, t.pid, t.tid, profile_str(p, t.name));
		if (t.process_name)
			p->processes.v[p->threads.v[t.thread].process].name = t.process_name;
		if (t.samples.there)
			r = read_samples(x, &t);
		r = r ?: read_allocations(x, &t, &t.allocations, "allocated");
		r = r ?: read_allocations(x, &t, &t.js_allocations, "js-allocated");
		if (!r)
			fxmarkers_read(&x->w, &t.markers, t.own.strings.n ? &t.own : &x->shared);
	}
	fxtables_done(&t.own);
	return r;
}

/* --- the file --- */

static void find_parts(struct firefox *x, struct jsontext *c)
{
	jsontext_object(c);
	while (jsontext_member(c)) {
		struct jsontext_place *place = jsontext_is(c, "meta")      ? &x->meta
					       : jsontext_is(c, "libs")    ? &x->libs
					       : jsontext_is(c, "shared")  ? &x->tables
					       : jsontext_is(c, "threads") ? &x->threads
									   : NULL;

		if (place)
			*place = jsontext_keep(c);
		else
			jsontext_skip(c); /* counters, pages, the profiler's own overhead */
	}
}

static int read_text(struct firefox *x, const char *text, size_t n)
{
	struct jsontext c = jsontext_of(text, n), *at;
	int r;

	find_parts(x, &c);
	r = jsontext_error(&c, x->err);
	if (!r && (!x->meta.there || !x->threads.there))
		r = err_set(x->err, EINVAL, "it has no \"meta\" or no \"threads\": this is no profile of the Firefox profiler");
	r = r ?: read_meta(x);
	if (r)
		return r;
	at = &x->libs.at;
	if (x->libs.there)
		for (jsontext_list(at); jsontext_item(at);)
			read_lib(x, at);
	r = x->libs.there ? jsontext_error(at, x->err) : 0;
	at = &x->tables.at;
	if (x->tables.there)
		for (jsontext_object(at); jsontext_member(at);)
			if (!fxtables_take(&x->shared, &x->file, at))
				jsontext_skip(at);
	r = r ?: x->tables.there ? jsontext_error(at, x->err) : 0;
	at = &x->threads.at;
	if (!r)
		for (jsontext_list(at); !r && jsontext_item(at);)
			r = read_thread(x, at);
	return r ?: jsontext_error(at, x->err);
}

int firefox_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct firefox x = { .err = err };
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = webprofile_text(in, &text, &n, err);

	if (r)
		return r;
	webprofile_init(&x.w, in);
	x.file.w = &x.w;
	r = read_text(&x, text, n);
	fxtables_done(&x.shared);
	vec_done(&x.file.modules);
	vec_done(&x.file.categories);
	vec_done(&x.events);
	return webprofile_end(&x.w, r, ret, err);
}
