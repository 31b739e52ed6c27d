/*
 * otlp.c - profiles of OpenTelemetry (package profiles.v1development): tables of a dictionary by index, one type of values a
 * profile, samples with a value for each moment.
 *
 * A profile of "samples" belongs to one of "cpu" as the types of a pprof do: observations of the same stack, attributes, place
 * in the sample and time are one sample with value and count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/map.h"
#include "import/import.h"
#include "import/pprof/otlptables.h"
#include "import/pprof/pprof.h"
#include "import/pprof/pprofmodel.h"
#include "import/pprof/pprofshape.h"
#include "import/pprof/pprofwire.h"
#include "profile/keys.h"
#include "profile/profile.h"

static const size_t limit_bytes = 1U << 30;

enum { DATA_RESOURCE = 1, DATA_DICTIONARY };

struct resource {
	uint64_t pid;
	uint32_t exe, name; /* strings of the profile */
};

struct profile_at {
	struct protobuf_field message;
	uint32_t type, resource;
};

/* From the first sample to the last one that has its number or name: the block was there for longer. */
struct block_seen {
	uint64_t first_ns, last_ns, number;
	uint32_t name; /* string of the profile; 0: it has a number */
};

struct otlp {
	struct otlptables t;
	VEC(struct block_seen) blocks;
	struct map block_index;
	VEC(struct resource) resources;
	VEC(struct profile_at) profiles;
	struct map counts; /* hash of an observation to its count */
	VEC(uint64_t) values, times, used, row;
	uint64_t first_ns, last_ns; /* since 1970 */
	const struct profile_at *at; /* that is read */
};

/* --- probe --- */

enum { V = 1 << PROTOBUF_VARINT, F = 1 << PROTOBUF_FIXED64, B = 1 << PROTOBUF_BYTES };

static const struct pprofshape key_value_shape = { .wires = { [1] = B, B, V } };
static const struct pprofshape resource_shape = { .wires = { [1] = B, V, B }, .inside = { [1] = &key_value_shape } };
static const struct pprofshape scope_shape = { .wires = { [1] = B, B, B, V } };
static const struct pprofshape type_shape = { .wires = { [1] = V, V } };
static const struct pprofshape sample_shape = { .wires = { [1] = V, V | B, V, V | B, F | B } };
static const struct pprofshape profile_shape = { .wires = { [1] = B, B, F, V, B, V, B, V, B, B, V | B },
						 .inside = { [1] = &type_shape, &sample_shape, [5] = &type_shape } };
static const struct pprofshape scopes_shape = { .wires = { [1] = B, B, B }, .inside = { [1] = &scope_shape, &profile_shape } };
static const struct pprofshape resources_shape = { .wires = { [1] = B, B, B }, .inside = { [1] = &resource_shape, &scopes_shape } };
static const struct pprofshape mapping_shape = { .wires = { [1] = V, V, V, V, V | B } };
static const struct pprofshape function_shape = { .wires = { [1] = V, V, V, V } };
static const struct pprofshape location_shape = { .wires = { [1] = V, V, B, V | B }, .inside = { [3] = &function_shape } };
static const struct pprofshape attribute_shape = { .wires = { [1] = V, B, V } };
static const struct pprofshape stack_shape = { .wires = { [1] = V | B } };
static const struct pprofshape dictionary_shape = {
	.wires = { [1] = B, B, B, B, B, B, B },
	.inside = { [1] = &mapping_shape, &location_shape, &function_shape, [6] = &attribute_shape, &stack_shape },
};
static const struct pprofshape data_shape = { .wires = { [1] = B, B }, .inside = { [1] = &resources_shape, &dictionary_shape } };

bool otlp_probe(const char *data, size_t n, bool whole)
{
	unsigned messages = 0;

	/* The data itself, a resource or the dictionary, and something in it. */
	return n > 2 && pprofshape_fits(&data_shape, (const uint8_t *)data, n, UINT64_MAX, &messages) && messages > 2;
}

/* --- resources and their profiles --- */

static int read_about(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	struct resource *to = &r->resources.v[r->resources.n - 1];
	struct profile *p = r->t.m.p;
	struct otlpattribute a;
	int e = otlptables_attribute(&r->t, f, &a);
	const char *key = e ? "" : profile_str(p, a.key);

	if (!strcmp(key, "process.pid") && a.number <= UINT32_MAX)
		to->pid = a.number;
	else if (!strcmp(key, "process.executable.path"))
		to->exe = a.text;
	else if (!strcmp(key, "process.executable.name"))
		to->name = a.text;
	else if (!strcmp(key, "service.name") && !p->target)
		p->target = a.text;
	else if (!strcmp(key, "host.name") && !p->host)
		p->host = a.text;
	return e;
}

static int read_resource(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;

	return pprofwire_each(&r->t.in, f, 1, read_about, r);
}

/* Profiles of one type, as of many processes, are one event. */
static uint32_t type_of(struct otlp *r, const char *name, const char *unit)
{
	for (size_t i = 0; i < r->t.m.types.list.n; i++)
		if (!strcmp(r->t.m.types.list.v[i].name, name) && !strcmp(r->t.m.types.list.v[i].unit, unit))
			return i;
	vec_push(&r->t.m.types.list, (struct pproftype){ .name = name, .unit = unit });
	return r->t.m.types.list.n - 1;
}

static int read_type(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	uint64_t v[3];
	uint32_t name = 0, unit = 0;
	int e = pprofwire_numbers(&r->t.in, f, v, ARRAY_LEN(v)) ?: otlptables_string(&r->t, f->data, v[1], &name);

	e = e ?: otlptables_string(&r->t, f->data, v[2], &unit);
	if (!e)
		r->profiles.v[r->profiles.n - 1].type = type_of(r, profile_str(r->t.m.p, name), profile_str(r->t.m.p, unit));
	if (!e && r->t.m.types.list.n > PPROFMODEL_TYPES)
		e = pprofwire_bad(&r->t.in, f->data, "there are more types of samples than can be read");
	return e;
}

static int find_profile(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	int e = otlptables_many(&r->t, f, r->profiles.n, "profile");

	vec_push(&r->profiles, (struct profile_at){ *f, PROFILE_NONE, r->resources.n - 1 });
	e = e ?: pprofwire_each(&r->t.in, f, 1, read_type, r);
	if (!e && r->profiles.v[r->profiles.n - 1].type == PROFILE_NONE)
		r->profiles.v[r->profiles.n - 1].type = type_of(r, "", "");
	return e;
}

static int find_scope(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;

	return pprofwire_each(&r->t.in, f, 2, find_profile, r);
}

static int find_resource(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	int e = otlptables_many(&r->t, f, r->resources.n, "resource");

	vec_push(&r->resources, (struct resource){ 0 });
	e = e ?: pprofwire_each(&r->t.in, f, 1, read_resource, r);
	return e ?: pprofwire_each(&r->t.in, f, 2, find_scope, r);
}

/* --- samples --- */

static void move_list(struct otlp *r, bool times)
{
	for (size_t i = 0; i < r->t.list.n; i++) {
		if (times)
			vec_push(&r->times, r->t.list.v[i]);
		else
			vec_push(&r->values, r->t.list.v[i]);
	}
}

/* Stack, attributes, values and times of a sample. */
static int read_parts(struct otlp *r, const struct protobuf_field *f, uint64_t *ret_stack)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;
	int e = 0;

	vec_clear(&r->values);
	vec_clear(&r->times);
	vec_clear(&r->used);
	while (!e && protobuf_next(&in, &g)) {
		vec_clear(&r->t.list);
		if (g.number == 1)
			*ret_stack = g.value;
		else if (g.number == 2 || g.number == 4 || g.number == 5)
			e = otlptables_list(&r->t, &g, g.number == 5);
		for (size_t i = 0; i < r->t.list.n && g.number == 2; i++)
			vec_push(&r->used, r->t.list.v[i]);
		if (g.number > 2)
			move_list(r, g.number == 5);
	}
	if (!e && in.failed)
		e = pprofwire_damaged(&r->t.in, f);
	if (!e && *ret_stack >= r->t.stacks.n && *ret_stack)
		e = pprofwire_bad(&r->t.in, f->data, "a sample has stack %llu, which is not there", (unsigned long long)*ret_stack);
	if (!e && r->values.n && r->times.n && r->values.n != r->times.n)
		e = pprofwire_bad(&r->t.in, f->data, "a sample has %zu values at %zu times", r->values.n, r->times.n);
	return e;
}

static void note_block(struct otlp *r, const struct otlpattribute *a)
{
	uint64_t *at = map_put(&r->block_index, a->text ? ~(uint64_t)a->text : a->number, r->blocks.n);
	struct block_seen *block;

	if (*at == r->blocks.n)
		vec_push(&r->blocks, (struct block_seen){ .first_ns = UINT64_MAX, .number = a->number, .name = a->text });
	block = &r->blocks.v[*at];
	for (size_t i = 0; i < r->times.n; i++) {
		block->first_ns = MIN(block->first_ns, r->times.v[i]);
		block->last_ns = MAX(block->last_ns, r->times.v[i]);
	}
}

/* Attributes make the thread, and tell the block. Causes are found again by the stacks. */
static int read_who(struct otlp *r, const struct protobuf_field *f, struct pprofwho *who)
{
	who->pid = r->resources.v[r->at->resource].pid;
	for (size_t i = 0; i < r->used.n; i++) {
		const struct otlpattribute *a;
		const char *key;

		if (r->used.v[i] >= r->t.attributes.n)
			return pprofwire_bad(&r->t.in, f->data, "attribute %llu is named, and there are %zu", (unsigned long long)r->used.v[i], r->t.attributes.n);
		a = &r->t.attributes.v[r->used.v[i]];
		key = profile_str(r->t.m.p, a->key);
		if (!strcmp(key, "gasflame.block") && r->times.n)
			note_block(r, a);
		else if (strcmp(key, "gasflame.cause") && !pprofwho_take(who, r->t.m.p, key, profile_str(r->t.m.p, a->text), a->number))
			profile_count(r->t.m.p, KEY_IMPORT_LABELS_IGNORED, 1);
	}
	return 0;
}

/* The same of a value and of what counts it. */
static uint64_t moment_key(const struct otlp *r, uint64_t stack, size_t i, uint32_t value_type)
{
	uint64_t parts[] = { stack, i, i < r->times.n ? r->times.v[i] : 0, value_type, r->at->resource, 0 };

	parts[5] = r->used.n ? map_hash_bytes(r->used.v, r->used.n * sizeof(*r->used.v)) : 0;
	return map_hash_bytes(parts, sizeof(parts));
}

static uint64_t value_at(const struct otlp *r, size_t i)
{
	return r->values.n ? r->values.v[i] : 1;
}

static int read_count(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	uint64_t stack = 0;
	int e = read_parts(r, f, &stack);

	for (size_t i = 0; i < MAX(r->values.n, r->times.n) && !e; i++)
		*map_put(&r->counts, moment_key(r, stack, i, r->t.m.types.list.v[r->at->type].counts), 0) = value_at(r, i);
	if (!e && r->counts.n > PPROFMODEL_SAMPLES)
		e = pprofwire_bad(&r->t.in, f->data, "there are more samples than can be read");
	return e;
}

static int read_sample(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	const struct pproftype *type = &r->t.m.types.list.v[r->at->type];
	struct pprofwho who = { 0 };
	struct pprofmodel_sample s = { .values = r->row.v };
	uint64_t stack = 0, *count;
	struct otlpstack span = { 0 };
	int e = read_parts(r, f, &stack) ?: read_who(r, f, &who);

	if (!e && stack)
		span = r->t.stacks.v[stack];
	e = e ?: pprofmodel_stack(&r->t.m, &r->t.stack_locations, span.first, span.n, &s.stack, r->t.in.err);
	if (e)
		return e;
	s.thread = pprofmodel_thread(&r->t.m, &who);
	for (size_t i = 0; i < MAX(r->values.n, r->times.n) && !e; i++) {
		r->row.v[r->at->type] = value_at(r, i);
		count = type->counted == PROFILE_NONE ? NULL : map_get(&r->counts, moment_key(r, stack, i, r->at->type));
		if (type->counted != PROFILE_NONE)
			r->row.v[type->counted] = count ? *count : 1;
		s.time_ns = r->times.n ? r->times.v[i] : 0;
		e = pprofmodel_add(&r->t.m, &s, r->t.in.err);
		if (e && r->t.in.err)
			err_prefix(r->t.in.err, "byte %zu", (size_t)(f->data - r->t.in.data));
	}
	r->row.v[r->at->type] = 0;
	if (type->counted != PROFILE_NONE)
		r->row.v[type->counted] = 0;
	return e;
}

static int read_head(struct otlp *r, const struct profile_at *at)
{
	uint32_t event = r->t.m.types.list.v[at->type].event;
	uint64_t v[7], start, duration;
	int e = pprofwire_numbers(&r->t.in, &at->message, v, ARRAY_LEN(v));

	if (e)
		return e;
	start = v[3] <= INT64_MAX ? v[3] : 0;
	duration = v[4] <= INT64_MAX ? v[4] : 0;
	if (start)
		r->first_ns = MIN(r->first_ns, start);
	r->last_ns = MAX(r->last_ns, start + duration);
	if (v[6] <= INT64_MAX && r->t.m.types.list.v[at->type].counts == PROFILE_NONE && r->t.m.types.list.v[at->type].scale == 1)
		r->t.m.p->events.v[event].period = v[6];
	return 0;
}

/* Counts before what they count. */
static int read_samples(struct otlp *r)
{
	int e = 0;

	for (size_t i = 0; i < r->t.m.types.list.n; i++)
		vec_push(&r->row, 0);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < r->profiles.n && !e; i++) {
			const struct profile_at *at = r->at = &r->profiles.v[i];
			bool counts = r->t.m.types.list.v[at->type].counts != PROFILE_NONE;

			if (!pass)
				e = read_head(r, at);
			if (!e && counts == !pass)
				e = pprofwire_each(&r->t.in, &at->message, 2, counts ? read_count : read_sample, r);
		}
	return e;
}

/* --- all --- */

static int compare_samples(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	return ORDER(x->time_ns, y->time_ns) ?: ORDER(x->event, y->event) ?: ORDER(x->thread, y->thread) ?: ORDER(x->stack, y->stack) ?:
	       ORDER(x->value, y->value) ?: ORDER(x->count, y->count);
}

/* Times since 1970 become times of the recording. */
static void set_times(struct otlp *r)
{
	struct profile *p = r->t.m.p;
	uint64_t first = UINT64_MAX;
	bool timed = false;

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].time_ns) {
			timed = true;
			first = MIN(first, p->samples.v[i].time_ns);
			r->last_ns = MAX(r->last_ns, p->samples.v[i].time_ns);
		}
	if (r->first_ns == UINT64_MAX)
		r->first_ns = first == UINT64_MAX ? 0 : first;
	/* What is before the beginning is at it. */
	for (size_t i = 0; i < p->samples.n; i++)
		p->samples.v[i].time_ns -= MIN(p->samples.v[i].time_ns, r->first_ns);
	if (timed)
		vec_sort(&p->samples, compare_samples);
	p->start_wall_ns = r->first_ns;
	p->duration_ns = r->last_ns > r->first_ns ? r->last_ns - r->first_ns : 0;
}

static void add_blocks(struct otlp *r)
{
	struct profile *p = r->t.m.p;

	for (size_t i = 0; i < r->blocks.n; i++) {
		const struct block_seen *x = &r->blocks.v[i];
		struct profile_mark mark = { .name = x->name, .kind = profile_string(p, "block"), .thread = PROFILE_NONE };
		_cleanup_free_ char *name = mem_printf("block %llu", (unsigned long long)x->number);

		if (!x->name) {
			mark.name = profile_string(p, name);
			mark.block = (struct block){ .number = x->number, .known = BLOCK_NUMBER };
		}
		mark.start_ns = x->first_ns - MIN(x->first_ns, r->first_ns);
		mark.end_ns = x->last_ns - MIN(x->last_ns, r->first_ns) + 1;
		profile_add_mark(p, &mark);
	}
}

static void name_processes(struct otlp *r)
{
	struct profile *p = r->t.m.p;

	for (size_t i = 0; i < r->resources.n; i++)
		for (size_t k = 0; k < p->processes.n; k++) {
			struct profile_process *process = &p->processes.v[k];

			if (process->pid != r->resources.v[i].pid)
				continue;
			if (r->resources.v[i].exe)
				process->exe = r->resources.v[i].exe;
			if (r->resources.v[i].name)
				process->name = r->resources.v[i].name;
			break;
		}
}

static int read_all(struct otlp *r)
{
	int e = pprofwire_each(&r->t.in, NULL, DATA_DICTIONARY, otlptables_read, &r->t);

	/* Entry 0 is none; by convention the one after it is the program. */
	e = e ?: pprofwire_each(&r->t.in, NULL, DATA_RESOURCE, find_resource, r);
	if (!e && !r->profiles.n)
		e = err_set(r->t.in.err, EINVAL, "it has no profile of OpenTelemetry, or is of an older version of it");
	if (e)
		return e;
	pproftypes_make(&r->t.m.types, r->t.m.p, 0);
	pprofmodel_prepare(&r->t.m);
	e = read_samples(r);
	if (e)
		return e;
	set_times(r);
	add_blocks(r);
	name_processes(r);
	return 0;
}

static void done(struct otlp *r)
{
	vec_done(&r->blocks);
	map_done(&r->block_index);
	vec_done(&r->resources);
	vec_done(&r->profiles);
	map_done(&r->counts);
	vec_done(&r->values);
	vec_done(&r->times);
	vec_done(&r->used);
	vec_done(&r->row);
	otlptables_done(&r->t);
}

int otlp_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct otlp r = { .t.in.err = err, .first_ns = UINT64_MAX };
	_cleanup_free_ char *data = NULL;
	int e = stream_whole(in->stream, limit_bytes, &data, &r.t.in.n, err);

	if (e)
		return e;
	r.t.in.data = (const uint8_t *)data;
	pprofmodel_init(&r.t.m, in);
	e = read_all(&r);
	if (!e)
		*ret = pprofmodel_finish(&r.t.m);
	done(&r);
	return e;
}
