#include "export/foreign/perfetto/perfettoseq.h"

#include "base/codec/protobuf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "export/samplerows.h"
#include "profile/profile.h"

enum { FIELD_PACKET = 1, CLEARED = 1, NEEDS_STATE = 2 };

/* Fields of the tables, which have all the same form: a number (1) and a text (2). */
static const uint8_t text_fields[PERFETTO_TEXTS] = {
	[PERFETTO_CATEGORY] = 1, [PERFETTO_EVENT_NAME] = 2, [PERFETTO_ANNOTATION_NAME] = 3, [PERFETTO_ANNOTATION_TEXT] = 29,
	[PERFETTO_FUNCTION] = 5, [PERFETTO_PATH] = 17, [PERFETTO_SOURCE] = 18,
};
enum { TABLE_FRAMES = 6, TABLE_STACKS = 7, TABLE_BUILD_IDS = 16, TABLE_MAPPINGS = 19 };

void perfettoseq_init(struct perfettoseq *s, struct buf *out, uint32_t id, struct stackcalls *calls)
{
	*s = (struct perfettoseq){ .out = out, .id = id, .calls = calls };
	for (int i = 0; i < PERFETTO_TEXTS; i++)
		strtab_init(&s->texts[i]);
}

void perfettoseq_done(struct perfettoseq *s)
{
	for (int i = 0; i < PERFETTO_TEXTS; i++)
		strtab_done(&s->texts[i]);
	map_done(&s->frames);
	map_done(&s->stacks);
	map_done(&s->modules);
	buf_done(&s->interned);
}

size_t perfettoseq_open(struct perfettoseq *s, uint64_t time_ns)
{
	size_t packet = protobuf_open(s->out, FIELD_PACKET);

	if (time_ns != PERFETTO_UNTIMED)
		protobuf_put_uint(s->out, PERFETTO_TIMESTAMP, time_ns);
	protobuf_put_uint(s->out, PERFETTO_SEQUENCE, s->id);
	protobuf_put_uint(s->out, PERFETTO_FLAGS, s->begun ? NEEDS_STATE : CLEARED | NEEDS_STATE);
	s->begun = true;
	return packet;
}

void perfettoseq_close(struct perfettoseq *s, size_t packet)
{
	if (s->interned.n)
		protobuf_put_bytes(s->out, PERFETTO_INTERNED, s->interned.data, s->interned.n);
	s->interned.n = 0;
	protobuf_close(s->out, packet);
}

void perfettoseq_put_name(struct buf *b, uint32_t field, const char *name)
{
	size_t begin = protobuf_open(b, field);

	cleantext_put(b, name);
	protobuf_close(b, begin);
}

uint64_t perfettoseq_text(struct perfettoseq *s, enum perfetto_text kind, const char *text)
{
	size_t known = s->texts[kind].n, entry;
	uint32_t id = strtab_add(&s->texts[kind], text);

	if (!id) /* means that there is none */
		return perfettoseq_text(s, kind, "[no name]");
	if (id < known)
		return id;
	entry = protobuf_open(&s->interned, text_fields[kind]);
	protobuf_put_uint(&s->interned, 1, id);
	perfettoseq_put_name(&s->interned, 2, text);
	protobuf_close(&s->interned, entry);
	return id;
}

/* --- call stacks --- */

/* Paths are lists of parts, before each of which the reader puts a slash; the kernel is known by its name. */
static const char *shown_path(const struct profile_module *m, const char *path)
{
	if (m->kind == MODULE_KERNEL && str_starts(path, "[kernel"))
		return "kernel";
	return *path == '/' ? path + 1 : path;
}

static uint64_t intern_module(struct perfettoseq *s, uint32_t module)
{
	const struct profile *p = s->calls->idents.p;
	const struct profile_module *m = module < p->modules.n ? &p->modules.v[module] : NULL;
	size_t known = s->modules.n, entry;
	uint64_t number = *map_put(&s->modules, module, known + 1), path = 0;

	if (s->modules.n == known)
		return number;
	if (m && *profile_str(p, m->path))
		path = perfettoseq_text(s, PERFETTO_PATH, shown_path(m, profile_str(p, m->path)));
	if (m && m->build_id_size) {
		entry = protobuf_open(&s->interned, TABLE_BUILD_IDS);
		protobuf_put_uint(&s->interned, 1, number);
		protobuf_put_bytes(&s->interned, 2, m->build_id, m->build_id_size);
		protobuf_close(&s->interned, entry);
	}
	entry = protobuf_open(&s->interned, TABLE_MAPPINGS);
	protobuf_put_uint(&s->interned, 1, number);
	if (m && m->build_id_size)
		protobuf_put_uint(&s->interned, 2, number);
	if (path)
		protobuf_put_uint(&s->interned, 7, path);
	protobuf_close(&s->interned, entry);
	return number;
}

/* nth: of the inlined calls of its frame. */
static uint64_t intern_frame(struct perfettoseq *s, const struct stackcall *call, uint32_t nth)
{
	const struct profile *p = s->calls->idents.p;
	size_t known = s->frames.n, entry;
	uint64_t number = *map_put(&s->frames, map_pair(call->frame, nth), known + 1), name, module, source;

	if (s->frames.n == known)
		return number;
	name = perfettoseq_text(s, PERFETTO_FUNCTION, call->name);
	module = intern_module(s, p->frames.v[call->frame].module);
	source = *call->file ? perfettoseq_text(s, PERFETTO_SOURCE, call->file) : 0;
	entry = protobuf_open(&s->interned, TABLE_FRAMES);
	protobuf_put_uint(&s->interned, 1, number);
	protobuf_put_uint(&s->interned, 2, name);
	protobuf_put_uint(&s->interned, 3, module);
	protobuf_put_uint(&s->interned, 4, call->address);
	if (source)
		protobuf_put_uint(&s->interned, 5, source);
	if (call->line)
		protobuf_put_uint(&s->interned, 6, call->line);
	protobuf_close(&s->interned, entry);
	return number;
}

uint64_t perfettoseq_stack(struct perfettoseq *s, uint32_t stack)
{
	size_t known = s->stacks.n, n;
	_cleanup_free_ uint64_t *frames = NULL;
	uint64_t number;
	size_t entry;

	if (!stack)
		return 0;
	number = *map_put(&s->stacks, stack, known + 1);
	if (s->stacks.n == known)
		return number;
	stackcalls_of(s->calls, stack);
	n = s->calls->list.n;
	frames = mem_alloc(n * sizeof(*frames) + 1);
	for (size_t i = 0, nth = 0; i < n; i++) {
		nth = i && s->calls->list.v[i - 1].inlined && s->calls->list.v[i - 1].frame == s->calls->list.v[i].frame ? nth + 1 : 0;
		frames[i] = intern_frame(s, &s->calls->list.v[i], nth);
	}
	entry = protobuf_open(&s->interned, TABLE_STACKS);
	protobuf_put_uint(&s->interned, 1, number);
	while (n-- > 0)
		protobuf_put_uint(&s->interned, 2, frames[n]); /* the outermost first */
	protobuf_close(&s->interned, entry);
	return number;
}
