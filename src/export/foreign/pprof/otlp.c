/*
 * otlp.c - all events as profiles of OpenTelemetry (OTLP, package profiles.v1development), for collectors and what is behind them.
 *
 * The bytes are those of ProfilesData and of ExportProfilesServiceRequest alike: a file, and the body of a request to
 * /v1development/profiles. One profile an event, and one more where its samples stand for many: how many. The first profile is
 * what a report shows first. Rows of one stack, thread, block and cause are one sample, with a value for each moment; without
 * times, with their sum.
 */
#include <errno.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/foreign/pprof/wiretables.h"
#include "profile/profile.h"

/* The tables of the dictionary, by their fields. */
enum { TABLE_MAPPING = 1, TABLE_LOCATION, TABLE_FUNCTION, TABLE_LINK, TABLE_STRING, TABLE_ATTRIBUTE, TABLE_STACK };
/* Kinds of AnyValue, by their fields. */
enum { VALUE_STRING = 1, VALUE_INT = 3 };

struct attribute {
	uint32_t key;   /* string */
	uint32_t text;  /* string */
	uint64_t number;
	bool is_number;
};

struct writing {
	const struct export_job *job;
	const struct profile *p;
	struct wiretables tables;
	struct map stack_index, attribute_keys, attribute_index;
	VEC(uint32_t) stacks;             /* of the profile; entry 0 is the empty one */
	VEC(struct attribute) attributes; /* the same */
	bool timed;
	struct buf out;
};

/* --- the dictionary --- */

static uint32_t stack_of(struct writing *w, uint32_t stack)
{
	uint64_t *id = map_put(&w->stack_index, stack, w->stacks.n);

	if (*id == w->stacks.n) {
		vec_push(&w->stacks, stack);
		for (uint32_t s = stack; s; s = w->p->stacks.v[s].parent)
			wiretables_location(&w->tables, w->p->stacks.v[s].frame);
	}
	return *id;
}

/* text NULL: it is a number. */
static uint32_t attribute_of(struct writing *w, const char *key, const char *text, uint64_t number)
{
	struct attribute a = { .key = wiretables_string(&w->tables, key), .text = text ? wiretables_string(&w->tables, text) : 0,
			       .number = number, .is_number = !text };
	uint64_t part = *map_put(&w->attribute_keys, map_pair(a.key << 1 | a.is_number, a.text), w->attribute_keys.n), *id;

	part = *map_put(&w->attribute_keys, map_pair(part, number >> 32) ^ 1ULL << 63, w->attribute_keys.n);
	id = map_put(&w->attribute_index, map_pair(part, number), w->attributes.n);
	if (*id == w->attributes.n)
		vec_push(&w->attributes, a);
	return *id;
}

/* Defaults are left out. */
static void put(struct writing *w, uint32_t field, uint64_t value)
{
	if (value)
		protobuf_put_uint(&w->out, field, value);
}

static void put_value(struct writing *w, uint32_t field, const char *text, uint64_t number)
{
	size_t begin = protobuf_open(&w->out, field);

	if (text)
		protobuf_put_string(&w->out, VALUE_STRING, text);
	else
		protobuf_put_uint(&w->out, VALUE_INT, number);
	protobuf_close(&w->out, begin);
}

static void put_mapping(struct writing *w, size_t i)
{
	const struct wiretables_module *m = &w->tables.modules.v[i];
	const char *build = strtab_get(&w->tables.strings, m->build_id);
	size_t begin = protobuf_open(&w->out, TABLE_MAPPING), list;

	if (i)
		put(w, 2, UINT64_MAX); /* all memory: addresses are of the file */
	put(w, 4, m->path);
	if (*build) {
		list = protobuf_open(&w->out, 5);
		protobuf_put_varint(&w->out, attribute_of(w, "process.executable.build_id.gnu", build, 0));
		protobuf_close(&w->out, list);
	}
	protobuf_close(&w->out, begin);
}

static void put_location(struct writing *w, size_t i)
{
	const struct wiretables_location *l = &w->tables.locations.v[i];
	size_t begin = protobuf_open(&w->out, TABLE_LOCATION), inner;

	put(w, 1, l->module);
	put(w, 2, l->address);
	wiretables_put_lines(&w->tables, l, 3, &w->out);
	if (i) {
		inner = protobuf_open(&w->out, 4);
		protobuf_put_varint(&w->out, attribute_of(w, "profile.frame.type", l->kernel ? "kernel" : "native", 0));
		protobuf_close(&w->out, inner);
	}
	protobuf_close(&w->out, begin);
}

static void put_function(struct writing *w, size_t i)
{
	const struct wiretables_function *f = &w->tables.functions.v[i];
	size_t begin = protobuf_open(&w->out, TABLE_FUNCTION);

	put(w, 1, f->name);
	put(w, 2, f->linkage);
	put(w, 3, f->file);
	protobuf_close(&w->out, begin);
}

static void put_stack(struct writing *w, size_t i)
{
	size_t begin = protobuf_open(&w->out, TABLE_STACK);

	if (i)
		wiretables_put_stack(&w->tables, w->stacks.v[i], 1, &w->out);
	protobuf_close(&w->out, begin);
}

static void put_attribute(struct writing *w, size_t i)
{
	const struct attribute *a = &w->attributes.v[i];
	size_t begin = protobuf_open(&w->out, TABLE_ATTRIBUTE);

	if (i) {
		put(w, 1, a->key);
		put_value(w, 2, a->is_number ? NULL : strtab_get(&w->tables.strings, a->text), a->number);
	}
	protobuf_close(&w->out, begin);
}

/* The last of them refer to no others: strings come last, as all put some in. */
static void put_dictionary(struct writing *w)
{
	static const char zeros[16];
	size_t begin = protobuf_open(&w->out, 2), link;

	for (size_t i = 0; i < w->stacks.n; i++)
		put_stack(w, i);
	for (size_t i = 0; i < w->tables.modules.n; i++)
		put_mapping(w, i);
	for (size_t i = 0; i < w->tables.locations.n; i++)
		put_location(w, i);
	for (size_t i = 0; i < w->tables.functions.n; i++)
		put_function(w, i);
	link = protobuf_open(&w->out, TABLE_LINK);
	protobuf_put_bytes(&w->out, 1, zeros, 16);
	protobuf_put_bytes(&w->out, 2, zeros, 8);
	protobuf_close(&w->out, link);
	for (size_t i = 0; i < w->attributes.n; i++)
		put_attribute(w, i);
	for (uint32_t i = 0; i < w->tables.strings.n; i++)
		protobuf_put_string(&w->out, TABLE_STRING, strtab_get(&w->tables.strings, i));
	protobuf_close(&w->out, begin);
}

/* --- profiles --- */

/* Rows of one event, group by group. */
struct event_rows {
	struct wiregroups groups;
	VEC(uint32_t) first; /* row of each group, as 1 + its index */
	VEC(uint32_t) last;
	uint32_t *next;      /* by row: the next one of its group */
	bool counted;        /* one of them stands for another number than 1, or for its value */
};

static void group_rows(struct event_rows *e, const struct samplerows *rows, uint32_t event)
{
	for (size_t i = 0; i < rows->list.n; i++) {
		const struct samplerow *row = &rows->list.v[i];
		uint32_t group;

		if (row->event != event)
			continue;
		e->counted |= row->count != 1 && row->count != row->value;
		group = wiregroups_of(&e->groups, row);
		if (group == e->first.n) {
			vec_push(&e->first, i + 1);
			vec_push(&e->last, i + 1);
			continue;
		}
		e->next[e->last.v[group] - 1] = i + 1;
		e->last.v[group] = i + 1;
	}
}

static void put_attributes(struct writing *w, const struct samplerow *row)
{
	const struct profile_thread *thread = &w->p->threads.v[row->thread];
	const struct profile_mark *block = row->block == PROFILE_NONE ? NULL : &w->p->marks.v[row->block];
	uint32_t pid = thread->process < w->p->processes.n ? w->p->processes.v[thread->process].pid : 0;
	size_t list = protobuf_open(&w->out, 2);

	protobuf_put_varint(&w->out, attribute_of(w, "thread.name", profile_str(w->p, thread->name), 0));
	if (thread->tid)
		protobuf_put_varint(&w->out, attribute_of(w, "thread.id", NULL, thread->tid));
	if (pid)
		protobuf_put_varint(&w->out, attribute_of(w, "process.pid", NULL, pid));
	if (*samplerow_cause(row))
		protobuf_put_varint(&w->out, attribute_of(w, "gasflame.cause", samplerow_cause(row), 0));
	if (block)
		protobuf_put_varint(&w->out, attribute_of(w, "gasflame.block", block->block.known & BLOCK_NUMBER ? NULL : profile_str(w->p, block->name),
							  block->block.number));
	protobuf_close(&w->out, list);
}

static int put_values(struct writing *w, const struct event_rows *e, const struct samplerows *rows, size_t group, bool count)
{
	size_t list = protobuf_open(&w->out, 4);
	uint64_t sum = 0;

	for (uint32_t i = e->first.v[group]; i; i = e->next[i - 1]) {
		uint64_t value = count ? rows->list.v[i - 1].count : rows->list.v[i - 1].value;

		if (value > INT64_MAX || __builtin_add_overflow(sum, value, &sum) || sum > INT64_MAX)
			return -ERANGE;
		if (w->timed)
			protobuf_put_varint(&w->out, value);
	}
	if (!w->timed)
		protobuf_put_varint(&w->out, sum);
	protobuf_close(&w->out, list);
	return 0;
}

static int put_sample(struct writing *w, const struct event_rows *e, const struct samplerows *rows, size_t group, bool count)
{
	const struct samplerow *row = &e->groups.list.v[group];
	size_t begin = protobuf_open(&w->out, 2), list;
	int r;

	put(w, 1, stack_of(w, row->stack));
	put_attributes(w, row);
	r = put_values(w, e, rows, group, count);
	if (w->timed) {
		list = protobuf_open(&w->out, 5);
		for (uint32_t i = e->first.v[group]; i; i = e->next[i - 1]) {
			uint64_t at = w->p->start_wall_ns + rows->list.v[i - 1].begin_ns;
			uint8_t bytes[8];

			for (int k = 0; k < 8; k++)
				bytes[k] = at >> 8 * k;
			buf_add(&w->out, bytes, sizeof(bytes));
		}
		protobuf_close(&w->out, list);
	}
	protobuf_close(&w->out, begin);
	return r;
}

static void put_type(struct writing *w, uint32_t field, uint32_t event, bool count)
{
	_cleanup_free_ char *name = wiretables_type(w->p, event, count);
	size_t begin = protobuf_open(&w->out, field);

	put(w, 1, wiretables_string(&w->tables, name));
	put(w, 2, wiretables_string(&w->tables, count ? "count" : wiretables_unit(w->p, event)));
	protobuf_close(&w->out, begin);
}

static int put_profile(struct writing *w, const struct event_rows *e, const struct samplerows *rows, uint32_t event, bool count)
{
	size_t begin = protobuf_open(&w->out, 2);
	int r = 0;

	put_type(w, 1, event, count);
	for (size_t i = 0; i < e->first.n && !r; i++)
		r = put_sample(w, e, rows, i, count);
	if (w->p->start_wall_ns)
		protobuf_put_fixed64(&w->out, 3, w->p->start_wall_ns);
	put(w, 4, select_duration_ns(w->p));
	if (w->p->events.v[event].period) {
		put_type(w, 5, event, false);
		put(w, 6, w->p->events.v[event].period);
	}
	protobuf_close(&w->out, begin);
	return r;
}

static int put_event(struct writing *w, const struct samplerows *rows, uint32_t event, struct err *err)
{
	struct event_rows e = { .next = mem_alloc((rows->list.n + 1) * sizeof(*e.next)) };
	int r;

	group_rows(&e, rows, event);
	r = put_profile(w, &e, rows, event, false);
	if (!r && e.counted)
		r = put_profile(w, &e, rows, event, true);
	free(e.next);
	vec_done(&e.first);
	vec_done(&e.last);
	wiregroups_done(&e.groups);
	return r ? err_set(err, ERANGE, "the values of %s add up to more than a profile of OTLP can hold",
			   profile_str(w->p, w->p->events.v[event].name)) : 0;
}

/* --- the resource --- */

/* Has the job an attribute of this name itself? n: length of the key. */
static bool is_given(const struct writing *w, size_t before, const char *key, size_t n)
{
	const char *const *list = w->job->options.resource;

	for (size_t i = 0; list && list[i] && i < before; i++)
		if (strcspn(list[i], "=") == n && !memcmp(list[i], key, n))
			return true;
	return false;
}

static void put_attribute_of_resource(struct writing *w, const char *key, const char *text, uint64_t number)
{
	_cleanup_(buf_done) struct buf plain = { 0 }, name = { 0 };
	size_t begin = protobuf_open(&w->out, 1);

	plain_add(&name, key);
	protobuf_put_string(&w->out, 1, name.n ? name.data : "");
	if (text)
		plain_add(&plain, text);
	put_value(w, 2, text ? plain.n ? plain.data : "" : NULL, number);
	protobuf_close(&w->out, begin);
}

/* "" and 0 are left out. */
static void put_about(struct writing *w, const char *key, const char *text, uint64_t number)
{
	if ((text ? *text != 0 : number != 0) && !is_given(w, SIZE_MAX, key, strlen(key)))
		put_attribute_of_resource(w, key, text, number);
}

/* Keys are unique, as OTLP demands: of two the first counts. */
static void put_given(struct writing *w)
{
	const char *const *list = w->job->options.resource;

	for (size_t i = 0; list && list[i]; i++) {
		size_t n = strcspn(list[i], "=");
		_cleanup_free_ char *key = mem_strndup(list[i], n);

		if (n && list[i][n] && !is_given(w, i, key, n))
			put_attribute_of_resource(w, key, list[i] + n + 1, 0);
	}
}

static void put_resource(struct writing *w)
{
	const struct profile_process *process = w->p->processes.n == 1 ? &w->p->processes.v[0] : NULL;
	const struct profile_owner *owner = w->p->owners.n == 1 ? &w->p->owners.v[0] : NULL;
	size_t begin = protobuf_open(&w->out, 1);

	put_given(w);
	put_about(w, "service.name", profile_str(w->p, w->p->target), 0);
	put_about(w, "host.name", profile_str(w->p, w->p->host), 0);
	put_about(w, "os.type", w->p->kernel ? "linux" : "", 0);
	put_about(w, "os.version", profile_str(w->p, w->p->kernel), 0);
	if (process) {
		put_about(w, "process.pid", NULL, process->pid);
		put_about(w, "process.executable.name", process->exe ? str_base_name(profile_str(w->p, process->exe)) : profile_str(w->p, process->name), 0);
		put_about(w, "process.executable.path", profile_str(w->p, process->exe), 0);
	}
	if (owner) {
		put_about(w, "container.id", profile_str(w->p, owner->container), 0);
		put_about(w, "container.name", owner->container ? profile_str(w->p, owner->name) : "", 0);
		put_about(w, "container.image.name", profile_str(w->p, owner->image), 0);
	}
	protobuf_close(&w->out, begin);
}

static void put_scope(struct writing *w)
{
	size_t begin = protobuf_open(&w->out, 1);

	protobuf_put_string(&w->out, 1, "gasflame");
	protobuf_close(&w->out, begin);
}

static int put_profiles(struct writing *w, const struct samplerows *rows, struct err *err)
{
	uint32_t shown = w->job->selection->options.event;
	bool there = false;
	int r = 0;

	for (size_t i = 0; i < rows->events.n; i++)
		there |= rows->events.v[i] == shown;
	if (there)
		r = put_event(w, rows, shown, err);
	for (size_t i = 0; i < rows->events.n && !r; i++)
		if (!there || rows->events.v[i] != shown)
			r = put_event(w, rows, rows->events.v[i], err);
	return r;
}

static int put_all(struct writing *w, const struct samplerows *rows, struct err *err)
{
	size_t resource = protobuf_open(&w->out, 1), scope;
	int r;

	put_resource(w);
	scope = protobuf_open(&w->out, 2);
	put_scope(w);
	r = put_profiles(w, rows, err);
	protobuf_close(&w->out, scope);
	protobuf_close(&w->out, resource);
	if (!r)
		put_dictionary(w);
	return r;
}

int otlp_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct writing w = { .job = job, .p = job->profile };
	struct samplerows rows;
	int r = samplerows_make(&rows, job, SAMPLEROWS_BY_TIME, err);

	wiretables_init(&w.tables, job);
	stack_of(&w, 0);
	vec_push(&w.attributes, (struct attribute){ 0 });
	for (size_t i = 0; i < rows.list.n; i++)
		w.timed |= job->profile->start_wall_ns && rows.list.v[i].begin_ns;
	r = r ?: put_all(&w, &rows, err);
	if (!r)
		buf_add(out, w.out.data, w.out.n);
	map_done(&w.stack_index);
	map_done(&w.attribute_keys);
	map_done(&w.attribute_index);
	vec_done(&w.stacks);
	vec_done(&w.attributes);
	wiretables_done(&w.tables);
	buf_done(&w.out);
	samplerows_done(&rows);
	return r;
}
