#include "import/pprof/otlptables.h"

#include <string.h>

#include "base/codec/protobuf.h"
#include "profile/profile.h"

enum { TABLE_MAPPING = 1, TABLE_LOCATION, TABLE_FUNCTION, TABLE_LINK, TABLE_STRING, TABLE_ATTRIBUTE, TABLE_STACK };
enum { NUMBERS_MAX = 1 << 26 }; /* of one list */

void otlptables_done(struct otlptables *r)
{
	vec_done(&r->attributes);
	vec_done(&r->stacks);
	vec_done(&r->stack_locations);
	vec_done(&r->list);
	pprofmodel_done(&r->m);
}

/* --- values --- */

int otlptables_string(struct otlptables *r, const void *at, uint64_t index, uint32_t *ret)
{
	if (index >= r->m.strings.n && index)
		return pprofwire_bad(&r->in, at, "string %llu is named, and there are %zu", (unsigned long long)index, r->m.strings.n);
	*ret = r->m.strings.n ? r->m.strings.v[index] : 0;
	return 0;
}

static void add_number(void *to, uint64_t value)
{
	struct otlptables *r = to;

	if (r->list.n < NUMBERS_MAX)
		vec_push(&r->list, value);
}

int otlptables_list(struct otlptables *r, const struct protobuf_field *f, bool fixed)
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
static int read_any(struct otlptables *r, const struct protobuf_field *f, struct otlpattribute *a)
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
			e = otlptables_string(r, f->data, g.value, &a->text);
	}
	return e ?: in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

int otlptables_attribute(struct otlptables *r, const struct protobuf_field *f, struct otlpattribute *a)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;
	int e = 0;

	*a = (struct otlpattribute){ 0 };
	while (!e && protobuf_next(&in, &g)) {
		if (g.number == 1 && g.wire == PROTOBUF_BYTES)
			a->key = pprofmodel_string(&r->m, g.data, g.n);
		else if (g.wire == PROTOBUF_VARINT && (g.number == 1 || (g.number == 3 && !a->key)))
			e = otlptables_string(r, f->data, g.value, &a->key);
		else if (g.number == 2 && g.wire == PROTOBUF_BYTES)
			e = read_any(r, &g, a);
	}
	return e ?: in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

/* --- the dictionary --- */

static int read_string(void *context, const struct protobuf_field *f)
{
	struct otlptables *r = context;

	if (r->m.strings.n >= PPROFMODEL_STRINGS)
		return pprofwire_bad(&r->in, f->data, "there are more strings than can be read");
	vec_push(&r->m.strings, pprofmodel_string(&r->m, f->data, f->n));
	return 0;
}

int otlptables_many(struct otlptables *r, const struct protobuf_field *f, size_t n, const char *what)
{
	return n < PPROFMODEL_TABLE ? 0 : pprofwire_bad(&r->in, f->data, "there are more %ss than can be read", what);
}

static int read_attribute(void *context, const struct protobuf_field *f)
{
	struct otlptables *r = context;
	struct otlpattribute a;
	int e = otlptables_many(r, f, r->attributes.n, "attribute") ?: otlptables_attribute(r, f, &a);

	if (!e)
		vec_push(&r->attributes, a);
	return e;
}

/* Fills the list with the numbers of one field of a message. */
static int read_field(struct otlptables *r, const struct protobuf_field *f, uint32_t number)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;
	int e = 0;

	vec_clear(&r->list);
	while (!e && protobuf_next(&in, &g))
		if (g.number == number)
			e = otlptables_list(r, &g, false);
	return e ?: in.failed ? pprofwire_damaged(&r->in, f) : 0;
}

/* The attribute of that key among those of the message's field, NULL = none. */
static int find_attribute(struct otlptables *r, const struct protobuf_field *f, uint32_t number, const char *key, const struct otlpattribute **ret)
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
	struct otlptables *r = context;
	const struct otlpattribute *build = NULL;
	uint64_t v[5];
	uint32_t file = 0;
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v)) ?: otlptables_string(r, f->data, v[4], &file);

	e = e ?: find_attribute(r, f, 5, "process.executable.build_id.gnu", &build);
	if (!e && r->m.mappings.n >= PPROFMODEL_MAPPINGS)
		e = pprofwire_bad(&r->in, f->data, "there are more mappings than can be read");
	if (!e)
		vec_push(&r->m.mappings, (struct pprofmapping){ .start = v[1], .limit = v[2], .offset = v[3], .file = file, .build_id = build ? build->text : 0 });
	return e;
}

static int read_function(void *context, const struct protobuf_field *f)
{
	struct otlptables *r = context;
	struct pproffunction function = { 0 };
	uint64_t v[4];
	int e = otlptables_many(r, f, r->m.functions.n, "function") ?: pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	e = e ?: otlptables_string(r, f->data, v[1], &function.name);
	e = e ?: otlptables_string(r, f->data, v[2], &function.linkage);
	e = e ?: otlptables_string(r, f->data, v[3], &function.file);
	if (!e)
		vec_push(&r->m.functions, function);
	return e;
}

static int read_line(void *context, const struct protobuf_field *f)
{
	struct otlptables *r = context;
	uint64_t v[3];
	int e = pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

	if (!e && v[1] >= r->m.functions.n)
		e = pprofwire_bad(&r->in, f->data, "a line is of function %llu, which is not there", (unsigned long long)v[1]);
	e = e ?: otlptables_many(r, f, r->m.lines.n / 4, "line");
	if (!e)
		vec_push(&r->m.lines, (struct pprofline){ v[1], v[2] <= UINT32_MAX ? v[2] : 0 });
	return e;
}

static int read_location(void *context, const struct protobuf_field *f)
{
	struct otlptables *r = context;
	struct pproflocation l = { .first_line = r->m.lines.n };
	const struct otlpattribute *kind = NULL;
	uint64_t v[3];
	int e = otlptables_many(r, f, r->m.locations.n, "location") ?: pprofwire_numbers(&r->in, f, v, ARRAY_LEN(v));

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
	struct otlptables *r = context;
	struct otlpstack s = { r->stack_locations.n };
	int e = otlptables_many(r, f, r->stacks.n, "stack") ?: read_field(r, f, 1);

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
int otlptables_read(void *tables, const struct protobuf_field *f)
{
	struct otlptables *r = tables;
	int e = pprofwire_each(&r->in, f, TABLE_STRING, read_string, r);

	e = e ?: pprofwire_each(&r->in, f, TABLE_ATTRIBUTE, read_attribute, r);
	e = e ?: pprofwire_each(&r->in, f, TABLE_MAPPING, read_mapping, r);
	e = e ?: pprofwire_each(&r->in, f, TABLE_FUNCTION, read_function, r);
	e = e ?: pprofwire_each(&r->in, f, TABLE_LOCATION, read_location, r);
	return e ?: pprofwire_each(&r->in, f, TABLE_STACK, read_stack, r);
}
