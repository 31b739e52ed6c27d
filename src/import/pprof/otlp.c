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
#include "import/pprof/pprof.h"
#include "import/pprof/pprofmodel.h"
#include "import/pprof/pprofshape.h"
#include "import/pprof/pprofwire.h"
#include "profile/keys.h"
#include "profile/profile.h"

static const size_t limit_bytes = 1U << 30;

enum { DATA_RESOURCE = 1, DATA_DICTIONARY };
enum { TABLE_MAPPING = 1, TABLE_LOCATION, TABLE_FUNCTION, TABLE_LINK, TABLE_STRING, TABLE_ATTRIBUTE, TABLE_STACK };
enum { NUMBERS_MAX = 1 << 26 }; /* of one list */

struct attribute {
	uint32_t key, text; /* strings of the profile */
	uint64_t number;
};

struct span {
	uint32_t first, n;
};

struct resource {
	uint64_t pid;
	uint32_t exe, name; /* strings of the profile */
};

struct profile_at {
	struct protobuf_field message;
	uint32_t type, resource;
};

struct otlp {
	struct pprofmodel m;
	struct pprofwire in;
	VEC(struct attribute) attributes;
	VEC(struct span) stacks; /* into stack_locations */
	VEC(uint32_t) stack_locations;
	VEC(struct resource) resources;
	VEC(struct profile_at) profiles;
	struct map counts; /* hash of an observation to its count */
	VEC(uint64_t) list, values, times, used, row;
	uint64_t first_ns, last_ns; /* since 1970 */
	const struct profile_at *at; /* that is read */
	uint64_t started_ns;         /* of it */
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
	return n > 2 && pprofshape_fits(&data_shape, (const uint8_t *)data, n, whole ? n : UINT64_MAX, &messages) && messages > 2;
}

/* --- values --- */

static int string_of(struct otlp *r, const void *at, uint64_t index, uint32_t *ret)
{
	if (index >= r->m.strings.n && index)
		return pprofwire_bad(&r->in, at, "string %llu is named, and there are %zu", (unsigned long long)index, r->m.strings.n);
	*ret = r->m.strings.n ? r->m.strings.v[index] : 0;
	return 0;
}

static void add_number(void *to, uint64_t value)
{
	struct otlp *r = to;

	if (r->list.n < NUMBERS_MAX)
		vec_push(&r->list, value);
}

/* Appends the numbers of a repeated field to the list; of fixed ones, too. */
static int read_list(struct otlp *r, const struct protobuf_field *f, bool fixed)
{
	struct reader in = protobuf_inside(f);

	if (!fixed || f->wire != PROTOBUF_BYTES)
		in.failed = !protobuf_numbers(f, add_number, r);
	while (fixed && f->wire == PROTOBUF_BYTES && reader_more(&in)) {
		uint64_t value = reader_u64(&in);

		if (!in.failed)
			add_number(r, value);
	}
	if (r->list.n >= NUMBERS_MAX)
		return pprofwire_bad(&r->in, f->data, "a list of field %u is longer than can be read", f->number);
	return in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

/* A text or a number; lists and the like are neither. */
static int read_any(struct otlp *r, const struct protobuf_field *f, struct attribute *a)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;
	int e = 0;

	while (!e && protobuf_next(&in, &g)) {
		if (g.number == 1 && g.wire == PROTOBUF_BYTES)
			a->text = pprofmodel_string(&r->m, g.data, g.n);
		else if (g.number == 3)
			a->number = g.value;
		else if (g.number == 8)
			e = string_of(r, f->data, g.value, &a->text);
	}
	return e ?: in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

/* KeyValue, whose key is a text, and KeyValueAndUnit, whose key is a string of the dictionary. */
static int read_attribute_of(struct otlp *r, const struct protobuf_field *f, struct attribute *a)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;
	int e = 0;

	*a = (struct attribute){ 0 };
	while (!e && protobuf_next(&in, &g)) {
		if (g.number == 1 && g.wire == PROTOBUF_BYTES)
			a->key = pprofmodel_string(&r->m, g.data, g.n);
		else if (g.wire == PROTOBUF_VARINT && (g.number == 1 || (g.number == 3 && !a->key)))
			e = string_of(r, f->data, g.value, &a->key);
		else if (g.number == 2 && g.wire == PROTOBUF_BYTES)
			e = read_any(r, &g, a);
	}
	return e ?: in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

/* --- the dictionary --- */

static int read_string(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;

	if (r->m.strings.n >= PPROFMODEL_STRINGS)
		return pprofwire_bad(&r->in, f->data, "there are more strings than can be read");
	vec_push(&r->m.strings, pprofmodel_string(&r->m, f->data, f->n));
	return 0;
}

static int too_many(struct otlp *r, const struct protobuf_field *f, size_t n, const char *what)
{
	return n < PPROFMODEL_TABLE ? 0 : pprofwire_bad(&r->in, f->data, "there are more %ss than can be read", what);
}

static int read_attribute(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	struct attribute a;
	int e = too_many(r, f, r->attributes.n, "attribute") ?: read_attribute_of(r, f, &a);

	if (!e)
		vec_push(&r->attributes, a);
	return e;
}

/* Fills the list with the numbers of one field of a message. */
static int read_field(struct otlp *r, const struct protobuf_field *f, uint32_t number)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;
	int e = 0;

	vec_clear(&r->list);
	while (!e && protobuf_next(&in, &g))
		if (g.number == number)
			e = read_list(r, &g, false);
	return e ?: in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

/* The attribute of that key among those of the message's field, NULL = none. */
static int find_attribute(struct otlp *r, const struct protobuf_field *f, uint32_t number, const char *key, const struct attribute **ret)
{
	int e = read_field(r, f, number);

	*ret = NULL;
	for (size_t i = 0; i < r->list.n && !e; i++) {
		if (r->list.v[i] >= r->attributes.n)
			return pprofwire_bad(&r->in, f->data, "attribute %llu is named, and there are %zu", (unsigned long long)r->list.v[i], r->attributes.n);
		if (!strcmp(profile_str(r->m.p, r->attributes.v[r->list.v[i]].key), key))
			*ret = &r->attributes.v[r->list.v[i]];
	}
	return e;
}

static int read_mapping(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	const struct attribute *build = NULL;
	uint64_t v[5];
	uint32_t file = 0;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v)) ?: string_of(r, f->data, v[4], &file);

	e = e ?: find_attribute(r, f, 5, "process.executable.build_id.gnu", &build);
	if (!e && r->m.mappings.n >= PPROFMODEL_MAPPINGS)
		e = pprofwire_bad(&r->in, f->data, "there are more mappings than can be read");
	if (!e)
		vec_push(&r->m.mappings, (struct pprofmapping){ .start = v[1], .limit = v[2], .offset = v[3], .file = file, .build_id = build ? build->text : 0 });
	return e;
}

static int read_function(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	struct pproffunction function = { 0 };
	uint64_t v[4];
	int e = too_many(r, f, r->m.functions.n, "function") ?: pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	e = e ?: string_of(r, f->data, v[1], &function.name);
	e = e ?: string_of(r, f->data, v[2], &function.linkage);
	e = e ?: string_of(r, f->data, v[3], &function.file);
	if (!e)
		vec_push(&r->m.functions, function);
	return e;
}

static int read_line(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	uint64_t v[3];
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	if (!e && v[1] >= r->m.functions.n)
		e = pprofwire_bad(&r->in, f->data, "a line is of function %llu, which is not there", (unsigned long long)v[1]);
	e = e ?: too_many(r, f, r->m.lines.n / 4, "line");
	if (!e)
		vec_push(&r->m.lines, (struct pprofline){ v[1], v[2] <= UINT32_MAX ? v[2] : 0 });
	return e;
}

static int read_location(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	struct pproflocation l = { .first_line = r->m.lines.n };
	const struct attribute *kind = NULL;
	uint64_t v[3];
	int e = too_many(r, f, r->m.locations.n, "location") ?: pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	if (!e && v[1] >= r->m.mappings.n && v[1])
		e = pprofwire_bad(&r->in, f->data, "a location is in mapping %llu, which is not there", (unsigned long long)v[1]);
	e = e ?: pprofwire_each(&r->in, f, 3, read_line, r);
	e = e ?: find_attribute(r, f, 4, "profile.frame.type", &kind);
	if (e)
		return e;
	l.mapping = v[1] ? v[1] : PROFILE_NONE;
	l.address = v[2];
	l.line_count = r->m.lines.n - l.first_line;
	l.kernel = kind && !strcmp(profile_str(r->m.p, kind->text), "kernel");
	vec_push(&r->m.locations, l);
	return 0;
}

static int read_stack(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	struct span s = { r->stack_locations.n };
	int e = too_many(r, f, r->stacks.n, "stack") ?: read_field(r, f, 1);

	for (size_t i = 0; i < r->list.n && !e; i++) {
		if (r->list.v[i] >= r->m.locations.n)
			return pprofwire_bad(&r->in, f->data, "a stack has location %llu, which is not there", (unsigned long long)r->list.v[i]);
		if (r->list.v[i]) /* 0 is none */
			vec_push(&r->stack_locations, r->list.v[i]);
	}
	if (!e && r->stack_locations.n > PPROFMODEL_NODES)
		e = pprofwire_bad(&r->in, f->data, "its stacks are more than can be read");
	s.n = r->stack_locations.n - s.first;
	if (!e)
		vec_push(&r->stacks, s);
	return e;
}

/* In the order in which they refer to each other. */
static int read_dictionary(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	int e = pprofwire_each(&r->in, f, TABLE_STRING, read_string, r);

	e = e ?: pprofwire_each(&r->in, f, TABLE_ATTRIBUTE, read_attribute, r);
	e = e ?: pprofwire_each(&r->in, f, TABLE_MAPPING, read_mapping, r);
	e = e ?: pprofwire_each(&r->in, f, TABLE_FUNCTION, read_function, r);
	e = e ?: pprofwire_each(&r->in, f, TABLE_LOCATION, read_location, r);
	return e ?: pprofwire_each(&r->in, f, TABLE_STACK, read_stack, r);
}

/* --- resources and their profiles --- */

static int read_about(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	struct resource *to = &r->resources.v[r->resources.n - 1];
	struct profile *p = r->m.p;
	struct attribute a;
	int e = read_attribute_of(r, f, &a);
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

	return pprofwire_each(&r->in, f, 1, read_about, r);
}

/* Profiles of one type, as of many processes, are one event. */
static uint32_t type_of(struct otlp *r, const char *name, const char *unit)
{
	for (size_t i = 0; i < r->m.types.list.n; i++)
		if (!strcmp(r->m.types.list.v[i].name, name) && !strcmp(r->m.types.list.v[i].unit, unit))
			return i;
	vec_push(&r->m.types.list, (struct pproftype){ .name = name, .unit = unit });
	return r->m.types.list.n - 1;
}

static int read_type(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	uint64_t v[3];
	uint32_t name = 0, unit = 0;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v)) ?: string_of(r, f->data, v[1], &name);

	e = e ?: string_of(r, f->data, v[2], &unit);
	if (!e)
		r->profiles.v[r->profiles.n - 1].type = type_of(r, profile_str(r->m.p, name), profile_str(r->m.p, unit));
	if (!e && r->m.types.list.n > PPROFMODEL_TYPES)
		e = pprofwire_bad(&r->in, f->data, "there are more types of samples than can be read");
	return e;
}

static int find_profile(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	int e = too_many(r, f, r->profiles.n, "profile");

	vec_push(&r->profiles, (struct profile_at){ *f, PROFILE_NONE, r->resources.n - 1 });
	e = e ?: pprofwire_each(&r->in, f, 1, read_type, r);
	if (!e && r->profiles.v[r->profiles.n - 1].type == PROFILE_NONE)
		r->profiles.v[r->profiles.n - 1].type = type_of(r, "", "");
	return e;
}

static int find_scope(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;

	return pprofwire_each(&r->in, f, 2, find_profile, r);
}

static int find_resource(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	int e = too_many(r, f, r->resources.n, "resource");

	vec_push(&r->resources, (struct resource){ 0 });
	e = e ?: pprofwire_each(&r->in, f, 1, read_resource, r);
	return e ?: pprofwire_each(&r->in, f, 2, find_scope, r);
}

/* --- samples --- */

static void move_list(struct otlp *r, bool times)
{
	for (size_t i = 0; i < r->list.n; i++) {
		if (times)
			vec_push(&r->times, r->list.v[i]);
		else
			vec_push(&r->values, r->list.v[i]);
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
		vec_clear(&r->list);
		if (g.number == 1)
			*ret_stack = g.value;
		else if (g.number == 2 || g.number == 4 || g.number == 5)
			e = read_list(r, &g, g.number == 5);
		for (size_t i = 0; i < r->list.n && g.number == 2; i++)
			vec_push(&r->used, r->list.v[i]);
		if (g.number > 2)
			move_list(r, g.number == 5);
	}
	if (!e && in.failed)
		e = pprofwire_damaged(&r->in, f);
	if (!e && *ret_stack >= r->stacks.n && *ret_stack)
		e = pprofwire_bad(&r->in, f->data, "a sample has stack %llu, which is not there", (unsigned long long)*ret_stack);
	if (!e && r->values.n && r->times.n && r->values.n != r->times.n)
		e = pprofwire_bad(&r->in, f->data, "a sample has %zu values at %zu times", r->values.n, r->times.n);
	return e;
}

/* Attributes make the thread. take: count those for which there is no place. */
static int read_who(struct otlp *r, const struct protobuf_field *f, bool take, struct pprofwho *who)
{
	who->pid = r->resources.v[r->at->resource].pid;
	for (size_t i = 0; i < r->used.n; i++) {
		const struct attribute *a;

		if (r->used.v[i] >= r->attributes.n)
			return pprofwire_bad(&r->in, f->data, "attribute %llu is named, and there are %zu", (unsigned long long)r->used.v[i], r->attributes.n);
		a = &r->attributes.v[r->used.v[i]];
		if (!pprofwho_take(who, r->m.p, profile_str(r->m.p, a->key), profile_str(r->m.p, a->text), a->number) && take)
			profile_count(r->m.p, KEY_IMPORT_LABELS_IGNORED, 1);
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
		*map_put(&r->counts, moment_key(r, stack, i, r->m.types.list.v[r->at->type].counts), 0) = value_at(r, i);
	if (!e && r->counts.n > PPROFMODEL_SAMPLES)
		e = pprofwire_bad(&r->in, f->data, "there are more samples than can be read");
	return e;
}

static int read_sample(void *context, const struct protobuf_field *f)
{
	struct otlp *r = context;
	const struct pproftype *type = &r->m.types.list.v[r->at->type];
	struct pprofwho who = { 0 };
	struct pprofmodel_sample s = { .values = r->row.v };
	uint64_t stack = 0, *count;
	struct span span = { 0 };
	int e = read_parts(r, f, &stack) ?: read_who(r, f, true, &who);

	if (!e && stack)
		span = r->stacks.v[stack];
	e = e ?: pprofmodel_stack(&r->m, r->stack_locations.v + span.first, span.n, &s.stack, r->in.err);
	if (e)
		return e;
	s.thread = pprofmodel_thread(&r->m, &who);
	for (size_t i = 0; i < MAX(r->values.n, r->times.n) && !e; i++) {
		r->row.v[r->at->type] = value_at(r, i);
		count = type->counted == PROFILE_NONE ? NULL : map_get(&r->counts, moment_key(r, stack, i, r->at->type));
		if (type->counted != PROFILE_NONE)
			r->row.v[type->counted] = count ? *count : 1;
		s.time_ns = r->times.n ? r->times.v[i] : 0;
		e = pprofmodel_add(&r->m, &s, r->in.err);
		if (e && r->in.err)
			err_prefix(r->in.err, "byte %zu", (size_t)(f->data - r->in.data));
	}
	r->row.v[r->at->type] = 0;
	if (type->counted != PROFILE_NONE)
		r->row.v[type->counted] = 0;
	return e;
}

static int read_head(struct otlp *r, const struct profile_at *at)
{
	uint32_t event = r->m.types.list.v[at->type].event;
	uint64_t v[7], start, duration;
	int e = pprofwire_numbers(&r->in, &at->message, v, ARRAY_LEN(v));

	if (e)
		return e;
	start = v[3] <= INT64_MAX ? v[3] : 0;
	duration = v[4] <= INT64_MAX ? v[4] : 0;
	if (start)
		r->first_ns = MIN(r->first_ns, start);
	r->last_ns = MAX(r->last_ns, start + duration);
	if (v[6] <= INT64_MAX && r->m.types.list.v[at->type].counts == PROFILE_NONE && r->m.types.list.v[at->type].scale == 1)
		r->m.p->events.v[event].period = v[6];
	return 0;
}

/* Counts before what they count. */
static int read_samples(struct otlp *r)
{
	int e = 0;

	for (size_t i = 0; i < r->m.types.list.n; i++)
		vec_push(&r->row, 0);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < r->profiles.n && !e; i++) {
			const struct profile_at *at = r->at = &r->profiles.v[i];
			bool counts = r->m.types.list.v[at->type].counts != PROFILE_NONE;

			if (!pass)
				e = read_head(r, at);
			if (!e && counts == !pass)
				e = pprofwire_each(&r->in, &at->message, 2, counts ? read_count : read_sample, r);
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
	struct profile *p = r->m.p;
	bool timed = false;

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].time_ns) {
			timed = true;
			r->first_ns = MIN(r->first_ns, p->samples.v[i].time_ns);
			r->last_ns = MAX(r->last_ns, p->samples.v[i].time_ns);
		}
	if (r->first_ns == UINT64_MAX)
		r->first_ns = 0;
	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].time_ns)
			p->samples.v[i].time_ns -= r->first_ns;
	if (timed)
		vec_sort(&p->samples, compare_samples);
	p->start_wall_ns = r->first_ns;
	p->duration_ns = r->last_ns > r->first_ns ? r->last_ns - r->first_ns : 0;
}

static void name_processes(struct otlp *r)
{
	struct profile *p = r->m.p;

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
	int e = pprofwire_each(&r->in, NULL, DATA_DICTIONARY, read_dictionary, r);

	/* Entry 0 is none; by convention the one after it is the program. */
	e = e ?: pprofwire_each(&r->in, NULL, DATA_RESOURCE, find_resource, r);
	if (!e && !r->profiles.n)
		e = err_set(r->in.err, EINVAL, "it has no profile of OpenTelemetry, or is of an older version of it");
	if (e)
		return e;
	pproftypes_make(&r->m.types, r->m.p, 0);
	pprofmodel_prepare(&r->m);
	e = read_samples(r);
	if (e)
		return e;
	set_times(r);
	name_processes(r);
	return 0;
}

static void done(struct otlp *r)
{
	vec_done(&r->attributes);
	vec_done(&r->stacks);
	vec_done(&r->stack_locations);
	vec_done(&r->resources);
	vec_done(&r->profiles);
	map_done(&r->counts);
	vec_done(&r->list);
	vec_done(&r->values);
	vec_done(&r->times);
	vec_done(&r->used);
	vec_done(&r->row);
	pprofmodel_done(&r->m);
}

int otlp_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct otlp r = { .in.err = err, .first_ns = UINT64_MAX };
	_cleanup_free_ char *data = NULL;
	int e = stream_whole(in->stream, limit_bytes, &data, &r.in.n, err);

	if (e)
		return e;
	r.in.data = (const uint8_t *)data;
	pprofmodel_init(&r.m, in);
	e = read_all(&r);
	if (!e)
		*ret = pprofmodel_finish(&r.m);
	done(&r);
	return e;
}
