/*
 * speedscope.c - samples in their order for speedscope: a profile for each event and thread, the busiest thread first.
 *
 * Functions are frames: calls of one function at several lines are one frame, as speedscope draws them, with a line only where
 * there is one. Below a wait is a frame with its cause. Gaps between samples are not shown: the total of a profile is what was
 * measured. What speedscope has no place for is in members named "gasflame", which it ignores and src/import/web/speedscope.c
 * reads: event, thread, times, counts; and "kind" and "module" of frames.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/foreign/web/foreign.h"
#include "export/samplerows.h"
#include "profile/profile.h"

struct scope_frame {
	const char *name, *file, *module, *kind;
	uint32_t line; /* 0 = none, or several */
};

/* The rows of an event and a thread. */
struct scope_profile {
	uint64_t total;
	uint32_t event, thread;
	size_t first, n; /* of order */
};

struct scope {
	const struct export_job *job;
	struct samplerows rows;
	struct stackcalls calls;
	struct strtab keys;             /* of frames; 1 + index is the id */
	VEC(struct scope_frame) frames;
	uint32_t *first;                /* by frame of the profile: 1 + where its list of frames begins, leaf first */
	VEC(uint32_t) lists;            /* a number, and so many frames */
	VEC(uint32_t) path;
	VEC(uint32_t) order;            /* rows, by event and thread, then by time */
	VEC(struct scope_profile) profiles;
	uint32_t causes[CAUSE_COUNT];   /* 1 + frame, 0 = not made yet */
};

/* --- frames --- */

static uint32_t put_frame(struct scope *s, const struct scope_frame *f)
{
	_cleanup_(buf_done) struct buf key = { 0 };
	uint32_t id;

	buf_printf(&key, "%zu %zu %s%s%s %s", strlen(f->name), strlen(f->file), f->name, f->file, f->module, f->kind);
	id = strtab_add(&s->keys, key.data) - 1;
	if (id == s->frames.n)
		vec_push(&s->frames, *f);
	if (s->frames.v[id].line != f->line)
		s->frames.v[id].line = 0;
	return id;
}

/* The frames of a frame of the profile: a number, and so many, the leaf first. */
static const uint32_t *frames_of(struct scope *s, uint32_t frame)
{
	if (!s->first[frame]) {
		s->first[frame] = s->lists.n + 1;
		stackcalls_of_frame(&s->calls, frame);
		vec_push(&s->lists, s->calls.list.n);
		for (size_t i = 0; i < s->calls.list.n; i++) {
			const struct stackcall *c = &s->calls.list.v[i];

			vec_push(&s->lists, put_frame(s, &(struct scope_frame){ c->name, c->file, c->module, foreign_kind(c), c->line }));
		}
	}
	return &s->lists.v[s->first[frame] - 1];
}

static uint32_t cause_frame(struct scope *s, const struct samplerow *row)
{
	if (!s->causes[row->cause])
		s->causes[row->cause] = 1 + put_frame(s, &(struct scope_frame){ foreign_cause(row->cause), "", "", "cause" });
	return s->causes[row->cause] - 1;
}

/* The path of a row, leaf first. */
static void find_path(struct scope *s, const struct samplerow *row)
{
	const struct profile *p = s->job->profile;

	vec_clear(&s->path);
	if (*samplerow_cause(row))
		vec_push(&s->path, cause_frame(s, row));
	for (uint32_t at = row->stack; at; at = p->stacks.v[at].parent) {
		const uint32_t *list = frames_of(s, p->stacks.v[at].frame);

		for (uint32_t i = 1; i <= list[0]; i++)
			vec_push(&s->path, list[i]);
	}
}

static void write_frames(struct scope *s, struct json *j)
{
	json_open_object(j, "shared");
	json_open_array(j, "frames");
	for (size_t i = 0; i < s->frames.n; i++) {
		const struct scope_frame *f = &s->frames.v[i];

		json_open_row(j, 0);
		json_put_string(j, "name", f->name);
		if (*f->file)
			json_put_string(j, "file", f->file);
		if (f->line)
			json_put_uint(j, "line", f->line);
		if (*f->module)
			json_put_string(j, "module", f->module);
		if (*f->kind)
			json_put_string(j, "kind", f->kind);
		json_close(j);
	}
	json_close(j);
	json_close_line(j, 0);
}

/* --- profiles --- */

static int compare_profiles(const void *a, const void *b)
{
	const struct scope_profile *x = a, *y = b;

	return ORDER(x->event, y->event) ?: ORDER(y->total, x->total) ?: ORDER(x->thread, y->thread);
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct scope *s = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct samplerow *x = &s->rows.list.v[i], *y = &s->rows.list.v[k];

	return ORDER(x->event, y->event) ?: ORDER(x->thread, y->thread) ?: ORDER(i, k);
}

static void group_rows(struct scope *s)
{
	for (size_t i = 0; i < s->rows.list.n; i++)
		vec_push(&s->order, i);
	qsort_r(s->order.v, s->order.n, sizeof(*s->order.v), compare_rows, s);
	for (size_t i = 0; i < s->order.n; i++) {
		const struct samplerow *row = &s->rows.list.v[s->order.v[i]];
		struct scope_profile *last = s->profiles.n ? &s->profiles.v[s->profiles.n - 1] : NULL;

		if (!last || last->event != row->event || last->thread != row->thread) {
			vec_push(&s->profiles, (struct scope_profile){ .event = row->event, .thread = row->thread, .first = i });
			last = &s->profiles.v[s->profiles.n - 1];
		}
		last->total += row->value;
		last->n++;
	}
	vec_sort(&s->profiles, compare_profiles);
}

static const struct samplerow *row_of(const struct scope *s, const struct scope_profile *x, size_t i)
{
	return &s->rows.list.v[s->order.v[x->first + i]];
}

/* What speedscope has no place for. */
static void write_own(struct scope *s, struct json *j, const struct scope_profile *x)
{
	const struct profile *p = s->job->profile;
	const struct profile_event *e = &p->events.v[x->event];
	bool counts = false;

	json_open_object_line(j, "gasflame", 0);
	json_put_string(j, "event", profile_str(p, e->name));
	json_put_string(j, "unit", profile_str(p, e->unit));
	json_put_string(j, "describe", profile_str(p, e->describe));
	json_put_uint(j, "period", e->period);
	json_put_string(j, "thread", profile_str(p, p->threads.v[x->thread].name));
	json_put_uint(j, "pid", foreign_pid(p, x->thread));
	json_put_uint(j, "tid", p->threads.v[x->thread].tid);
	json_open_array(j, "times");
	for (size_t i = 0; i < x->n; i++) {
		json_put_uint(j, NULL, row_of(s, x, i)->begin_ns);
		counts |= row_of(s, x, i)->count != 1;
	}
	json_close(j);
	if (counts) {
		json_open_array(j, "counts");
		for (size_t i = 0; i < x->n; i++)
			json_put_uint(j, NULL, row_of(s, x, i)->count);
		json_close(j);
	}
	json_close(j);
}

static void write_profile(struct scope *s, struct json *j, const struct scope_profile *x)
{
	const struct profile *p = s->job->profile;
	const char *unit = profile_str(p, p->events.v[x->event].unit);
	uint64_t parts = export_unit_parts(unit);
	_cleanup_(buf_done) struct buf name = { 0 };

	foreign_thread_name(p, x->thread, &name);
	buf_printf(&name, ": %s", profile_str(p, p->events.v[x->event].name));
	json_open_row(j, 0);
	json_put_string(j, "type", "sampled");
	json_put_string(j, "name", name.data);
	json_put_string(j, "unit", !strcmp(unit, "ns") ? "nanoseconds" : !strcmp(unit, "bytes") ? "bytes" : "none");
	json_put_uint(j, "startValue", 0);
	foreign_put_decimal(j, "endValue", x->total, parts);
	json_open_array_line(j, "samples", 0);
	for (size_t i = 0; i < x->n; i++) {
		find_path(s, row_of(s, x, i));
		json_open_array(j, NULL);
		for (size_t k = s->path.n; k-- > 0;)
			json_put_uint(j, NULL, s->path.v[k]);
		json_close(j);
	}
	json_close_line(j, 0);
	json_open_array(j, "weights");
	for (size_t i = 0; i < x->n; i++)
		foreign_put_decimal(j, NULL, row_of(s, x, i)->value, parts);
	json_close(j);
	write_own(s, j, x);
	json_close(j);
}

/* The page begins with CPU time, where there is some. */
static size_t active_profile(const struct scope *s)
{
	for (size_t i = 0; i < s->profiles.n; i++)
		if (cause_role(s->job->profile, s->profiles.v[i].event) == ROLE_CPU)
			return i;
	return 0;
}

static void write_file(struct scope *s, struct buf *out)
{
	const struct profile *p = s->job->profile;
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_put_string(&j, "exporter", "gasflame");
	json_put_string(&j, "name", profile_str(p, p->target));
	json_put_uint(&j, "activeProfileIndex", active_profile(s));
	json_open_object(&j, "gasflame");
	json_put_uints(&j, { "start_wall_ns", p->start_wall_ns }, { "duration_ns", p->duration_ns });
	json_close_line(&j, 0);
	json_open_array(&j, "profiles");
	for (size_t i = 0; i < s->profiles.n; i++)
		write_profile(s, &j, &s->profiles.v[i]);
	json_close_line(&j, 0);
	write_frames(s, &j);
	json_end_line(&j);
}

int speedscope_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct scope s = { .job = job };
	int r = samplerows_make(&s.rows, job, SAMPLEROWS_BY_TIME, err);

	if (!r) {
		stackcalls_init(&s.calls, job);
		strtab_init(&s.keys);
		s.first = mem_alloc((job->profile->frames.n + 1) * sizeof(*s.first));
		group_rows(&s);
		write_file(&s, out);
		free(s.first);
		strtab_done(&s.keys);
		stackcalls_done(&s.calls);
	}
	samplerows_done(&s.rows);
	vec_done(&s.frames);
	vec_done(&s.lists);
	vec_done(&s.path);
	vec_done(&s.order);
	vec_done(&s.profiles);
	return r;
}
