#include "import/text/jsonl.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/lines.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/frames.h"
#include "import/import.h"
#include "profile/profile.h"

static const char format[] = "gasflame-jsonl";

#define LONGEST (8ULL << 30) /* bytes of text */

struct reading {
	struct profile *p;
	struct frames frames;
	struct lines lines;
	struct err *err;
	VEC(uint64_t) totals;           /* of each event */
	uint64_t last_ns;               /* where the last sample ends */
	VEC(struct frames_call) calls;  /* of one frame */
};

#define fail(r, code, fmt, ...) \
	err_set((r)->err, code, "line %llu: " fmt, (unsigned long long)(r)->lines.number, ##__VA_ARGS__)

bool jsonl_probe(const char *data, size_t n, bool whole)
{
	const char *end = memchr(data, '\n', n);
	size_t line = end ? (size_t)(end - data) : n;

	return n && *data == '{' && memmem(data, MIN(line, 200), "\"gasflame-jsonl\"", strlen("\"gasflame-jsonl\""));
}

/* --- members --- */

/* "" where there is none. */
static int text_of(struct reading *r, const json_t *from, const char *key, const char **ret)
{
	const json_t *value = json_object_get(from, key);

	*ret = json_string_value(value) ? json_string_value(value) : "";
	return value && !json_is_string(value) && !json_is_null(value) ? fail(r, EINVAL, "\"%s\" is no text", key) : 0;
}

/* 0 where there is none. */
static int number_of(struct reading *r, const json_t *from, const char *key, uint64_t most, uint64_t *ret)
{
	const json_t *value = json_object_get(from, key);

	*ret = 0;
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most)
		return fail(r, EINVAL, "\"%s\" is no number from 0 to %llu", key, (unsigned long long)most);
	*ret = json_integer_value(value);
	return 0;
}

/* --- the first line --- */

static uint32_t add_event(struct reading *r, const char *name, const char *unit, const char *describe, uint64_t period)
{
	uint32_t event = profile_find_event(r->p, name, unit);

	if (event != PROFILE_NONE)
		return event;
	vec_push(&r->totals, 0);
	return profile_add_event(r->p, name, unit, describe, period);
}

static int read_event(struct reading *r, const json_t *from)
{
	const char *name, *unit, *describe;
	uint64_t period;
	int e = text_of(r, from, "name", &name) ?: text_of(r, from, "unit", &unit) ?: text_of(r, from, "describe", &describe) ?:
		number_of(r, from, "period", INT64_MAX, &period);

	if (!e)
		add_event(r, name, unit, describe, period);
	return e;
}

static int read_head(struct reading *r, const json_t *from)
{
	const char *name, *target, *host, *kernel;
	struct profile *p = r->p;
	uint64_t version;
	json_t *event;
	size_t i;
	int e = text_of(r, from, "format", &name) ?: number_of(r, from, "version", INT64_MAX, &version) ?:
		text_of(r, from, "target", &target) ?: text_of(r, from, "host", &host) ?: text_of(r, from, "kernel", &kernel) ?:
		number_of(r, from, "start_wall_ns", INT64_MAX, &p->start_wall_ns) ?:
		number_of(r, from, "duration_ns", INT64_MAX, &p->duration_ns);

	if (e)
		return e;
	if (strcmp(name, format))
		return fail(r, EINVAL, "its \"format\" is not \"%s\"", format);
	if (version != 1)
		return fail(r, ENOTSUP, "version %llu of the format is not known", (unsigned long long)version);
	if (*target)
		p->target = profile_string(p, target);
	p->host = profile_string(p, host);
	p->kernel = profile_string(p, kernel);
	json_array_foreach(json_object_get(from, "events"), i, event) {
		e = read_event(r, event);
		if (e)
			return e;
	}
	return 0;
}

/* --- stacks --- */

/* "[truncated: no table]" is the marker "no table". */
static uint32_t truncation(struct profile *p, const char *name)
{
	static const char before[] = "[truncated: ";
	_cleanup_free_ char *reason = NULL;

	if (!str_starts(name, before) || !str_ends(name, "]"))
		return profile_truncation_frame(p, name);
	reason = mem_strndup(name + strlen(before), strlen(name) - strlen(before) - 1);
	return profile_truncation_frame(p, reason);
}

/* A place for want of a name: symbols that turn up later replace it. */
static uint32_t unnamed(struct profile *p, uint32_t module, enum profile_frame_kind kind, uint64_t address, const char *name)
{
	uint32_t frame = profile_frame(p, module, kind, address);
	struct profile_function f = { .name = profile_string(p, name), .module = module, .named = NAMED_START };
	struct profile_line line = { .function = profile_function(p, &f) };

	if (!p->frames.v[frame].line_count)
		profile_set_lines(p, frame, &line, 1);
	return frame;
}

/* The frame of r->calls, the outermost of which is from. */
static int frame_of(struct reading *r, const json_t *from, uint32_t *ret)
{
	const char *module, *kind, *hex, *name = r->calls.v[r->calls.n - 1].name;
	bool is_unnamed = json_is_true(json_object_get(from, "unnamed"));
	enum profile_frame_kind is = FRAME_USER;
	uint64_t address;
	uint32_t in;
	int e = text_of(r, from, "module", &module) ?: text_of(r, from, "kind", &kind) ?: text_of(r, from, "address", &hex);

	if (e)
		return e;
	address = strtoull(hex, NULL, 16);
	if (!strcmp(kind, "kernel"))
		is = FRAME_KERNEL;
	in = frames_module(&r->frames, module, NULL, 0);
	if (!strcmp(kind, "truncated"))
		*ret = truncation(r->p, name);
	else if (!strcmp(kind, "note"))
		*ret = profile_named_frame(r->p, in, FRAME_NOTE, name);
	else if (is_unnamed && in != PROFILE_NONE && address)
		*ret = unnamed(r->p, in, is, address, name);
	else
		*ret = frames_named(&r->frames, in, is, address, r->calls.v, r->calls.n);
	return 0;
}

static int read_call(struct reading *r, const json_t *from)
{
	struct frames_call call = { 0 };
	uint64_t line;
	int e = text_of(r, from, "name", &call.name) ?: text_of(r, from, "file", &call.file) ?:
		number_of(r, from, "line", UINT32_MAX, &line);

	if (e)
		return e;
	call.line = line;
	vec_push(&r->calls, call);
	return 0;
}

/* From the outermost call on; those that follow and are inlined into it are of its frame, which has the innermost first. */
static int read_stack(struct reading *r, const json_t *list, uint32_t *ret)
{
	size_t n = json_array_size(list);
	uint32_t frame;
	int e = 0;

	*ret = 0;
	for (size_t i = 0, end; i < n && !e; i = end) {
		if (!json_is_object(json_array_get(list, i)))
			return fail(r, EINVAL, "a call of its stack is no object");
		for (end = i + 1; end < n && json_is_true(json_object_get(json_array_get(list, end), "inlined"));)
			end++;
		vec_clear(&r->calls);
		for (size_t k = end; k-- > i && !e;)
			e = read_call(r, json_array_get(list, k));
		e = e ?: frame_of(r, json_array_get(list, i), &frame);
		if (!e)
			*ret = profile_stack(r->p, *ret, frame);
	}
	return e;
}

/* --- samples and marks --- */

static int read_thread(struct reading *r, const json_t *from, uint32_t *ret)
{
	const char *name, *process;
	uint64_t pid, tid;
	int e = number_of(r, from, "pid", UINT32_MAX, &pid) ?: number_of(r, from, "tid", UINT32_MAX, &tid) ?:
		text_of(r, from, "thread", &name) ?: text_of(r, from, "process", &process);

	if (e)
		return e;
	*ret = frames_thread(&r->frames, pid, tid, name);
	if (*process)
		r->p->processes.v[r->p->threads.v[*ret].process].name = profile_string(r->p, process);
	return 0;
}

static int read_sample(struct reading *r, const json_t *from)
{
	const json_t *stack = json_object_get(from, "stack");
	struct profile_sample s = { 0 };
	const char *event, *unit;
	uint64_t count, end;
	int e = text_of(r, from, "event", &event) ?: text_of(r, from, "unit", &unit) ?:
		number_of(r, from, "time", INT64_MAX, &s.time_ns) ?: number_of(r, from, "end", INT64_MAX, &end) ?:
		number_of(r, from, "value", INT64_MAX, &s.value) ?: number_of(r, from, "count", UINT32_MAX, &count) ?:
		read_thread(r, from, &s.thread);

	if (e)
		return e;
	if (!*event || !json_is_array(stack))
		return fail(r, EINVAL, "it is neither a sample, with \"event\" and \"stack\", nor a \"mark\"");
	s.event = add_event(r, event, unit, "", 0);
	s.count = count;
	e = read_stack(r, stack, &s.stack);
	if (e)
		return e;
	if (__builtin_add_overflow(r->totals.v[s.event], s.value, &r->totals.v[s.event]))
		return fail(r, ERANGE, "values add up to more than can be counted");
	profile_add_sample(r->p, &s);
	r->last_ns = MAX(r->last_ns, MAX(s.time_ns, end));
	return 0;
}

static int read_mark(struct reading *r, const json_t *from)
{
	struct profile_mark m = { .thread = PROFILE_NONE };
	const char *name, *kind;
	int e = text_of(r, from, "mark", &name) ?: text_of(r, from, "kind", &kind) ?:
		number_of(r, from, "time", INT64_MAX, &m.start_ns) ?: number_of(r, from, "end", INT64_MAX, &m.end_ns) ?:
		number_of(r, from, "number", INT64_MAX, &m.block.number) ?: number_of(r, from, "gas", INT64_MAX, &m.block.gas) ?:
		number_of(r, from, "transactions", INT64_MAX, &m.block.transactions);

	if (e)
		return e;
	if (m.end_ns < m.start_ns)
		return fail(r, EINVAL, "a mark that ends before it begins");
	m.block.known = (json_object_get(from, "number") ? BLOCK_NUMBER : 0) | (json_object_get(from, "gas") ? BLOCK_GAS : 0) |
			(json_object_get(from, "transactions") ? BLOCK_TRANSACTIONS : 0);
	m.name = profile_string(r->p, name);
	m.kind = profile_string(r->p, kind);
	profile_add_mark(r->p, &m);
	return 0;
}

static int read_line(struct reading *r, const char *line, size_t n)
{
	json_error_t why;
	json_t *from = json_loadb(line, n, 0, &why);
	int e;

	if (!from)
		return fail(r, EINVAL, "byte %d: %s", why.position, why.text);
	if (!json_is_object(from))
		e = fail(r, EINVAL, "it is no object");
	else if (r->lines.number == 1)
		e = read_head(r, from);
	else
		e = json_object_get(from, "mark") ? read_mark(r, from) : read_sample(r, from);
	json_decref(from);
	return e;
}

int jsonl_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct reading r = { .p = profile_new(), .err = err };
	char *line;
	size_t n;
	int e;

	r.p->target = profile_string(r.p, in->name);
	r.p->finished = true;
	frames_init(&r.frames, r.p);
	r.lines = lines_of(in->stream);
	r.lines.limit = LONGEST;
	while ((e = lines_next(&r.lines, &line, &n, err)) > 0) {
		e = line[strspn(line, " \t")] || strlen(line) != n ? read_line(&r, line, n) : 0;
		if (e)
			break;
	}
	if (!e && !r.lines.number)
		e = err_set(err, EINVAL, "it is empty");
	if (!r.p->duration_ns)
		r.p->duration_ns = r.last_ns;
	lines_done(&r.lines);
	frames_done(&r.frames);
	vec_done(&r.totals);
	vec_done(&r.calls);
	if (!r.p->processes.n)
		profile_add_process(r.p, &(struct profile_process){ .name = r.p->target });
	if (e)
		profile_free(r.p);
	else
		*ret = r.p;
	return e;
}
