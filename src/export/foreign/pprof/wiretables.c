#include "export/foreign/pprof/wiretables.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/text/plain.h"
#include "export/export.h"
#include "profile/profile.h"

uint32_t wiretables_string(struct wiretables *t, const char *s)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	plain_add(&b, s);
	return strtab_add(&t->strings, b.data ? b.data : "");
}

/* --- modules --- */

static uint32_t build_of(struct wiretables *t, const struct profile_module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "";

	for (size_t i = 0; i < MIN(m->build_id_size, sizeof(m->build_id)); i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	return strtab_add(&t->strings, hex);
}

/* Modules of one path and build-id are one: the code that each process makes at run time has a module of its own. */
static uint32_t add_module(struct wiretables *t, uint32_t path, uint32_t build_id)
{
	uint64_t *id = map_put(&t->by_path, map_pair(path, build_id), t->modules.n);

	if (*id == t->modules.n)
		vec_push(&t->modules, (struct wiretables_module){ .path = path, .build_id = build_id });
	return *id;
}

static uint32_t module_of(struct wiretables *t, uint32_t module)
{
	uint64_t *id = map_put(&t->by_module, module, 0);
	const struct profile_module *m = &t->p->modules.v[module];

	if (!*id)
		*id = add_module(t, wiretables_string(t, profile_str(t->p, m->path)), build_of(t, m));
	return *id;
}

/* A marker of the kernel has no module here: readers know the kernel by it. */
static uint32_t module_of_frame(struct wiretables *t, const struct profile_frame *f)
{
	if (f->module < t->p->modules.n && *profile_str(t->p, t->p->modules.v[f->module].path))
		return module_of(t, f->module);
	return f->kind == FRAME_KERNEL ? add_module(t, wiretables_string(t, "[kernel]"), 0) : 0;
}

/* By convention the first one is the program. */
static void add_program(struct wiretables *t)
{
	uint32_t exe = t->p->processes.n ? t->p->processes.v[0].exe : 0;

	for (size_t i = 0; i < t->p->modules.n && exe; i++)
		if (t->p->modules.v[i].path == exe) {
			module_of(t, i);
			return;
		}
}

void wiretables_init(struct wiretables *t, const struct export_job *job)
{
	*t = (struct wiretables){ .p = job->profile };
	strtab_init(&t->strings);
	stackcalls_init(&t->calls, job);
	vec_push(&t->modules, (struct wiretables_module){ 0 });
	vec_push(&t->functions, (struct wiretables_function){ 0 });
	vec_push(&t->locations, (struct wiretables_location){ 0 });
	add_program(t);
}

void wiretables_done(struct wiretables *t)
{
	strtab_done(&t->strings);
	stackcalls_done(&t->calls);
	vec_done(&t->modules);
	vec_done(&t->functions);
	vec_done(&t->lines);
	vec_done(&t->locations);
	map_done(&t->by_frame);
	map_done(&t->by_module);
	map_done(&t->by_path);
	map_done(&t->by_function);
	map_done(&t->by_part);
}

/* --- functions and locations --- */

static uint32_t function_of(struct wiretables *t, const struct stackcall *call)
{
	struct wiretables_function f = { .name = wiretables_string(t, call->name), .linkage = wiretables_string(t, call->linkage),
					 .file = wiretables_string(t, call->file) };
	uint64_t part, *id;

	if (!f.linkage)
		f.linkage = f.name;
	part = *map_put(&t->by_part, map_pair(f.name, f.linkage), t->by_part.n);
	id = map_put(&t->by_function, map_pair(part, f.file), t->functions.n);
	if (*id == t->functions.n)
		vec_push(&t->functions, f);
	return *id;
}

static void note_module(struct wiretables_module *m, const struct stackcalls *calls)
{
	for (size_t i = 0; i < calls->list.n; i++) {
		m->functions |= calls->list.v[i].kind != IDENT_UNNAMED;
		m->files |= *calls->list.v[i].file;
		m->lines |= calls->list.v[i].line;
		m->inlined |= calls->list.v[i].inlined;
	}
}

uint32_t wiretables_location(struct wiretables *t, uint32_t frame)
{
	const struct profile_frame *f = &t->p->frames.v[frame];
	uint64_t *known = map_put(&t->by_frame, frame, 0);
	struct wiretables_location l = { .address = f->address, .first_line = t->lines.n, .kernel = f->kind == FRAME_KERNEL };

	if (*known)
		return *known;
	*known = t->locations.n;
	stackcalls_of_frame(&t->calls, frame);
	l.module = module_of_frame(t, f);
	for (size_t i = 0; i < t->calls.list.n; i++)
		vec_push(&t->lines, (struct wiretables_line){ function_of(t, &t->calls.list.v[i]), t->calls.list.v[i].line });
	l.line_count = t->lines.n - l.first_line;
	note_module(&t->modules.v[l.module], &t->calls);
	vec_push(&t->locations, l);
	return t->locations.n - 1;
}

void wiretables_put_stack(struct wiretables *t, uint32_t stack, uint32_t field, struct buf *out)
{
	size_t list = protobuf_open(out, field);

	for (; stack; stack = t->p->stacks.v[stack].parent)
		protobuf_put_varint(out, wiretables_location(t, t->p->stacks.v[stack].frame));
	protobuf_close(out, list);
}

void wiretables_put_lines(const struct wiretables *t, const struct wiretables_location *l, uint32_t field, struct buf *out)
{
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct wiretables_line *line = &t->lines.v[l->first_line + i];
		size_t begin = protobuf_open(out, field);

		if (line->function)
			protobuf_put_uint(out, 1, line->function);
		if (line->line)
			protobuf_put_uint(out, 2, line->line);
		protobuf_close(out, begin);
	}
}

/* --- types --- */

char *wiretables_type(const struct profile *p, uint32_t event, bool count)
{
	static const char *const known[][3] = {
		{ "cpu", "samples", "cpu" },
		{ "heap", "inuse_objects", "inuse_space" },
		{ "alloc", "alloc_objects", "alloc_space" },
	};
	_cleanup_(buf_done) struct buf name = { 0 };
	unsigned same = 1;

	for (uint32_t i = 0; i < event; i++)
		same += p->events.v[i].name == p->events.v[event].name;
	for (size_t i = 0; i < ARRAY_LEN(known) && same == 1; i++)
		if (!strcmp(profile_str(p, p->events.v[event].name), known[i][0]))
			return mem_strdup(known[i][count ? 1 : 2]);
	plain_add(&name, profile_str(p, p->events.v[event].name));
	if (same > 1)
		buf_printf(&name, ".%u", same);
	return mem_printf("%s%s", name.data ? name.data : "", count ? "_count" : "");
}

const char *wiretables_unit(const struct profile *p, uint32_t event)
{
	const char *unit = profile_str(p, p->events.v[event].unit);

	return !strcmp(unit, "ns") ? "nanoseconds" : unit;
}

/* --- groups --- */

uint32_t wiregroups_of(struct wiregroups *g, const struct samplerow *row)
{
	uint32_t cause = *samplerow_cause(row) ? row->cause + 1 : 0;
	uint64_t place = *map_put(&g->places, map_pair(row->stack, row->thread), g->places.n);
	uint64_t label = *map_put(&g->labels, map_pair(row->block, cause), g->labels.n);
	uint64_t *id = map_put(&g->both, map_pair(place, label), g->list.n);

	if (*id == g->list.n)
		vec_push(&g->list, *row);
	return *id;
}

void wiregroups_done(struct wiregroups *g)
{
	vec_done(&g->list);
	map_done(&g->places);
	map_done(&g->labels);
	map_done(&g->both);
}
