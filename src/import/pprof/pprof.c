/*
 * pprof.c - pprof's profile.proto: tables by id, samples with a value of each type, labels.
 *
 * Messages may come in any order, so they are gone through once for each kind: strings, then what refers to them, then what
 * refers to that.
 */
#include "import/pprof/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/map.h"
#include "import/import.h"
#include "import/pproffields.h"
#include "import/pprof/pprofmodel.h"
#include "import/pprof/pprofprune.h"
#include "import/pprof/pprofshape.h"
#include "import/pprof/pprofwire.h"
#include "profile/keys.h"
#include "profile/profile.h"

static const size_t limit_bytes = 1U << 30;

struct pprof {
	struct pprofmodel m;
	struct pprofprune prune;
	struct pprofwire in;
	struct map mapping_ids, function_ids, location_ids;
	uint64_t numbers[PPROFSHAPE_FIELDS]; /* of the profile's own fields */
	uint64_t period_type;                /* string */
	VEC(uint64_t) values, list;
	struct pprofindexes locations;
};

/* --- probe --- */

enum { V = 1 << PROTOBUF_VARINT, B = 1 << PROTOBUF_BYTES };

static const struct pprofshape numbers_only = { .wires = { [1] = V, V, V, V, V, V, V, V, V, V } };
static const struct pprofshape location_shape = { .wires = { [1] = V, V, V, B, V }, .inside = { [4] = &numbers_only } };
static const struct pprofshape sample_shape = { .wires = { [1] = V | B, V | B, B }, .inside = { [3] = &numbers_only } };
static const struct pprofshape profile_shape = {
	.wires = { [1] = B, B, B, B, B, B, V, V, V, V, B, V, V | B, V, V },
	.inside = { [1] = &numbers_only, &sample_shape, &numbers_only, &location_shape, &numbers_only, [11] = &numbers_only },
};

bool pprof_probe(const char *data, size_t n, bool whole)
{
	unsigned messages = 0;

	/* The profile itself is the first message. One that is cut is one, too: the reader says where. */
	return n > 2 && pprofshape_fits(&profile_shape, (const uint8_t *)data, n, UINT64_MAX, &messages) && messages > 1;
}

/* --- messages --- */

/* The string of an index; a wrong one ends the reading. */
static int string_of(struct pprof *r, const void *at, uint64_t index, uint32_t *ret)
{
	if (index >= r->m.strings.n && index)
		return pprofwire_bad(&r->in, at, "string %llu is named, and there are %zu", (unsigned long long)index, r->m.strings.n);
	*ret = r->m.strings.n ? r->m.strings.v[index] : 0;
	return 0;
}

static int put_id(struct pprof *r, struct map *ids, const struct protobuf_field *f, const char *what, uint64_t id, uint32_t index)
{
	if (!id)
		return pprofwire_bad(&r->in, f->data, "a %s has the id 0, which is none", what);
	if (*map_put(ids, id, index) != index)
		return pprofwire_bad(&r->in, f->data, "two %ss have the id %llu", what, (unsigned long long)id);
	return index < PPROFMODEL_TABLE ? 0 : pprofwire_bad(&r->in, f->data, "there are more %ss than can be read", what);
}

static int read_string(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;

	if (r->m.strings.n >= PPROFMODEL_STRINGS)
		return pprofwire_bad(&r->in, f->data, "there are more strings than can be read");
	vec_push(&r->m.strings, pprofmodel_string(&r->m, f->data, f->n));
	return 0;
}

static int read_mapping(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;
	uint64_t v[7];
	struct pprofmapping map = { 0 };
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	e = e ?: put_id(r, &r->mapping_ids, f, "mapping", v[1], r->m.mappings.n);
	e = e ?: string_of(r, f->data, v[5], &map.file);
	e = e ?: string_of(r, f->data, v[6], &map.build_id);
	if (!e && r->m.mappings.n >= PPROFMODEL_MAPPINGS)
		e = pprofwire_bad(&r->in, f->data, "there are more mappings than can be read");
	map.start = v[2];
	map.limit = v[3];
	map.offset = v[4];
	if (!e)
		vec_push(&r->m.mappings, map);
	return e;
}

static int read_function(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;
	uint64_t v[5];
	struct pproffunction function = { 0 };
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	e = e ?: put_id(r, &r->function_ids, f, "function", v[1], r->m.functions.n);
	e = e ?: string_of(r, f->data, v[2], &function.name);
	e = e ?: string_of(r, f->data, v[3], &function.linkage);
	e = e ?: string_of(r, f->data, v[4], &function.file);
	if (!e)
		vec_push(&r->m.functions, function);
	return e;
}

static int read_line(struct pprof *r, const struct protobuf_field *f)
{
	uint64_t v[3], *function;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	if (e)
		return e;
	function = map_get(&r->function_ids, v[1]);
	if (!function)
		return pprofwire_bad(&r->in, f->data, "a line is of function %llu, which is not there", (unsigned long long)v[1]);
	if (r->m.lines.n >= 4 * (size_t)PPROFMODEL_TABLE)
		return pprofwire_bad(&r->in, f->data, "there are more lines than can be read");
	vec_push(&r->m.lines, (struct pprofline){ *function, v[2] <= UINT32_MAX ? v[2] : 0 });
	return 0;
}

static int read_location(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;
	struct reader in = protobuf_inside(f);
	struct pproflocation l = { .mapping = PROFILE_NONE, .first_line = r->m.lines.n };
	struct protobuf_field g;
	uint64_t id = 0, mapping = 0, *at;
	int e = 0;

	while (!e && protobuf_next(&in, &g)) {
		if (g.number == 1)
			id = g.value;
		else if (g.number == 2)
			mapping = g.value;
		else if (g.number == 3)
			l.address = g.value;
		else if (g.number == 4 && g.wire == PROTOBUF_BYTES)
			e = read_line(r, &g);
	}
	if (!e && in.failed)
		e = pprofwire_damaged(&r->in, f);
	e = e ?: put_id(r, &r->location_ids, f, "location", id, r->m.locations.n);
	at = mapping ? map_get(&r->mapping_ids, mapping) : NULL;
	if (!e && mapping && !at)
		e = pprofwire_bad(&r->in, f->data, "a location is in mapping %llu, which is not there", (unsigned long long)mapping);
	l.mapping = at ? *at : PROFILE_NONE;
	l.line_count = r->m.lines.n - l.first_line;
	if (!e)
		vec_push(&r->m.locations, l);
	return e;
}

/* --- types and the head --- */

static int read_type(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;
	uint64_t v[3];
	uint32_t name = 0, unit = 0;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	e = e ?: string_of(r, f->data, v[1], &name);
	e = e ?: string_of(r, f->data, v[2], &unit);
	if (!e && r->m.types.list.n >= PPROFMODEL_TYPES)
		e = pprofwire_bad(&r->in, f->data, "there are more types of samples than can be read");
	if (!e)
		vec_push(&r->m.types.list, (struct pproftype){ .name = profile_str(r->m.p, name), .unit = profile_str(r->m.p, unit) });
	return e;
}

static int read_period_type(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;
	uint64_t v[3];
	uint32_t name = 0;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v)) ?: string_of(r, f->data, v[1], &name);

	r->period_type = name;
	return e;
}

static const char *own_string(struct pprof *r, unsigned field)
{
	uint64_t index = r->numbers[field];

	return index < r->m.strings.n ? profile_str(r->m.p, r->m.strings.v[index]) : "";
}

/* By default pprof shows the last type. */
static void make_types(struct pprof *r)
{
	struct pproftypes *types = &r->m.types;
	const char *wanted = own_string(r, PROFILE_DEFAULT);
	size_t first = types->list.n - 1;
	uint32_t event;

	for (size_t i = types->list.n; i-- > 0 && *wanted;)
		if (!strcmp(types->list.v[i].name, wanted))
			first = i;
	pproftypes_make(types, r->m.p, first);
	event = pproftypes_event(types, profile_str(r->m.p, r->period_type));
	/* Only of a time each sample has the period as its value. */
	if (event != PROFILE_NONE && !strcmp(profile_str(r->m.p, r->m.p->events.v[event].unit), "ns") && r->numbers[PROFILE_PERIOD] <= INT64_MAX)
		r->m.p->events.v[event].period = r->numbers[PROFILE_PERIOD];
}

static int read_head(struct pprof *r)
{
	struct reader in = reader_of(r->in.data, r->in.n);
	struct profile *p = r->m.p;
	struct protobuf_field f;
	int e;

	while (protobuf_next(&in, &f))
		if (f.number < ARRAY_LEN(r->numbers) && f.wire == PROTOBUF_VARINT)
			r->numbers[f.number] = f.value;
	e = pprofwire_each(&r->in, NULL, PROFILE_TYPE, read_type, r);
	e = e ?: pprofwire_each(&r->in, NULL, PROFILE_PERIOD_TYPE, read_period_type, r);
	if (!e && !r->m.types.list.n)
		e = err_set(r->in.err, EINVAL, "it has no type of samples: it is no profile of pprof, or an empty one");
	if (e)
		return e;
	make_types(r);
	p->start_wall_ns = r->numbers[PROFILE_TIME] <= INT64_MAX ? r->numbers[PROFILE_TIME] : 0;
	p->duration_ns = r->numbers[PROFILE_DURATION] <= INT64_MAX ? r->numbers[PROFILE_DURATION] : 0;
	return 0;
}

/* --- samples --- */

static void add_number(void *to, uint64_t value)
{
	struct pprof *r = to;

	/* What is longer is refused by pprofmodel_stack(), or has too many values. */
	if (r->list.n <= PPROFMODEL_DEPTH)
		vec_push(&r->list, value);
}

static int read_locations(struct pprof *r, const struct protobuf_field *f)
{
	vec_clear(&r->list);
	if (!protobuf_numbers(f, add_number, r))
		return pprofwire_damaged(&r->in, f);
	for (size_t i = 0; i < r->list.n && r->locations.n <= PPROFMODEL_DEPTH; i++) {
		uint64_t *at = map_get(&r->location_ids, r->list.v[i]);

		if (!at)
			return pprofwire_bad(&r->in, f->data, "a sample has location %llu, which is not there",
				   (unsigned long long)r->list.v[i]);
		vec_push(&r->locations, *at);
	}
	return 0;
}

static int read_label(struct pprof *r, const struct protobuf_field *f, struct pprofwho *who)
{
	uint64_t v[5];
	uint32_t key = 0, text = 0;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	e = e ?: string_of(r, f->data, v[1], &key);
	e = e ?: string_of(r, f->data, v[2], &text);
	if (!e && !pprofwho_take(who, r->m.p, profile_str(r->m.p, key), profile_str(r->m.p, text), v[3]))
		profile_count(r->m.p, KEY_IMPORT_LABELS_IGNORED, 1);
	return e;
}

static int read_values(struct pprof *r, const struct protobuf_field *f)
{
	vec_clear(&r->list);
	if (!protobuf_numbers(f, add_number, r))
		return pprofwire_damaged(&r->in, f);
	for (size_t i = 0; i < r->list.n && r->values.n <= PPROFMODEL_TYPES; i++)
		vec_push(&r->values, r->list.v[i]);
	return 0;
}

static int add_sample(struct pprof *r, const struct protobuf_field *f, const struct pprofwho *who)
{
	struct pprofmodel_sample s = { 0 };
	size_t skip = pprofprune_count(&r->prune, r->locations.v, r->locations.n);
	int e;

	if (r->values.n != r->m.types.list.n)
		return pprofwire_bad(&r->in, f->data, "a sample has %zu values, and there are %zu types", r->values.n, r->m.types.list.n);
	e = pprofmodel_stack(&r->m, &r->locations, skip, r->locations.n - skip, &s.stack, r->in.err);
	if (e)
		goto out;
	s.thread = pprofmodel_thread(&r->m, who);
	s.values = r->values.v;
	e = pprofmodel_add(&r->m, &s, r->in.err);
out:
	if (e && r->in.err)
		err_prefix(r->in.err, "byte %zu", (size_t)(f->data - r->in.data));
	return e;
}

static int read_sample(void *context, const struct protobuf_field *f)
{
	struct pprof *r = context;
	struct reader in = protobuf_inside(f);
	struct pprofwho who = { 0 };
	struct protobuf_field g;
	int e = 0;

	vec_clear(&r->locations);
	vec_clear(&r->values);
	while (!e && protobuf_next(&in, &g)) {
		if (g.number == 1)
			e = read_locations(r, &g);
		else if (g.number == 2)
			e = read_values(r, &g);
		else if (g.number == 3 && g.wire == PROTOBUF_BYTES)
			e = read_label(r, &g, &who);
	}
	if (!e && in.failed)
		e = pprofwire_damaged(&r->in, f);
	return e ?: add_sample(r, f, &who);
}

/* --- all --- */

static int read_all(struct pprof *r)
{
	int e = pprofwire_each(&r->in, NULL, PROFILE_STRING, read_string, r);

	e = e ?: read_head(r);
	e = e ?: pprofwire_each(&r->in, NULL, PROFILE_MAPPING, read_mapping, r);
	e = e ?: pprofwire_each(&r->in, NULL, PROFILE_FUNCTION, read_function, r);
	e = e ?: pprofwire_each(&r->in, NULL, PROFILE_LOCATION, read_location, r);
	if (e)
		return e;
	if (!pprofprune_init(&r->prune, own_string(r, PROFILE_DROP), own_string(r, PROFILE_KEEP)) || !pprofprune_find(&r->prune, &r->m))
		profile_count(r->m.p, KEY_IMPORT_RULES_IGNORED, 1);
	pprofmodel_prepare(&r->m);
	return pprofwire_each(&r->in, NULL, PROFILE_SAMPLE, read_sample, r);
}

static void done(struct pprof *r)
{
	pprofprune_done(&r->prune);
	map_done(&r->mapping_ids);
	map_done(&r->function_ids);
	map_done(&r->location_ids);
	vec_done(&r->values);
	vec_done(&r->list);
	vec_done(&r->locations);
	pprofmodel_done(&r->m);
}

int pprof_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct pprof r = { .in.err = err };
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
