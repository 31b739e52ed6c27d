#include "export/foreign/web/fxstacks.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/foreign/web/foreign.h"
#include "profile/profile.h"

void fxstacks_init(struct fxstacks *f, const struct export_job *job)
{
	const struct profile *p = job->profile;

	*f = (struct fxstacks){ .job = job };
	strtab_init(&f->strings);
	stackcalls_init(&f->calls, job);
	f->first = mem_alloc((p->frames.n + 1) * sizeof(*f->first));
	f->stacks = mem_alloc((p->stacks.n + 1) * sizeof(*f->stacks));
}

void fxstacks_done(struct fxstacks *f)
{
	strtab_done(&f->strings);
	stackcalls_done(&f->calls);
	map_done(&f->func_index);
	map_done(&f->stack_index);
	map_done(&f->source_index);
	map_done(&f->lib_index);
	vec_done(&f->funcs);
	vec_done(&f->frames);
	vec_done(&f->sources);
	vec_done(&f->libs);
	vec_done(&f->lists);
	vec_done(&f->stack_frame);
	vec_done(&f->stack_prefix);
	vec_done(&f->chain);
	free(f->first);
	free(f->stacks);
}

/* --- making --- */

static uint32_t lib_of(struct fxstacks *f, uint32_t module)
{
	uint64_t *at;

	if (module >= f->job->profile->modules.n)
		return 0;
	at = map_put(&f->lib_index, module, f->libs.n + 1);
	if (*at > f->libs.n)
		vec_push(&f->libs, module);
	return *at;
}

static uint32_t source_of(struct fxstacks *f, const char *file)
{
	uint32_t string = strtab_add(&f->strings, file);
	uint64_t *at = map_put(&f->source_index, string, f->sources.n);

	if (*at == f->sources.n)
		vec_push(&f->sources, string);
	return *at;
}

static uint32_t func_of(struct fxstacks *f, const struct fx_func *func)
{
	uint64_t key = map_hash(map_pair(func->name, func->file)) ^ map_hash(func->lib + 0x9e3779b97f4a7c15);
	uint64_t *at = map_put(&f->func_index, key, f->funcs.n);

	if (*at == f->funcs.n)
		vec_push(&f->funcs, *func);
	return *at;
}

static uint32_t category_of(const struct stackcall *c)
{
	switch (c->kind) {
	case IDENT_KERNEL:
		return FX_KERNEL;
	case IDENT_NOTE:
		return FX_DETAIL;
	case IDENT_UNNAMED: case IDENT_TRUNCATED:
		return FX_OTHER;
	default:
		return FX_USER;
	}
}

/* The frames of a frame of the profile: a number, and so many, the leaf first. */
static const uint32_t *frames_of(struct fxstacks *f, uint32_t frame)
{
	const struct profile_frame *x = &f->job->profile->frames.v[frame];

	if (f->first[frame])
		return &f->lists.v[f->first[frame] - 1];
	f->first[frame] = f->lists.n + 1;
	stackcalls_of_frame(&f->calls, frame);
	vec_push(&f->lists, f->calls.list.n);
	for (size_t i = 0; i < f->calls.list.n; i++) {
		const struct stackcall *c = &f->calls.list.v[i];
		struct fx_func func = { strtab_add(&f->strings, c->name), *c->file ? 1 + source_of(f, c->file) : 0, lib_of(f, x->module) };
		struct fx_frame made = { x->address, func_of(f, &func), c->line, f->calls.list.n - 1 - i, category_of(c) };

		vec_push(&f->lists, f->frames.n);
		vec_push(&f->frames, made);
	}
	return &f->lists.v[f->first[frame] - 1];
}

/* 1 + index. */
static uint32_t add_stack(struct fxstacks *f, uint32_t prefix, uint32_t frame)
{
	uint64_t *at = map_put(&f->stack_index, map_pair(prefix, frame), f->stack_frame.n + 1);

	if (*at > f->stack_frame.n) {
		vec_push(&f->stack_frame, frame);
		vec_push(&f->stack_prefix, prefix);
	}
	return *at;
}

static uint32_t cause_frame(struct fxstacks *f, enum cause cause)
{
	if (!f->causes[cause]) {
		struct fx_func func = { .name = strtab_add(&f->strings, foreign_cause(cause)) };

		vec_push(&f->frames, (struct fx_frame){ .func = func_of(f, &func), .category = FX_CAUSES + cause });
		f->causes[cause] = f->frames.n;
	}
	return f->causes[cause] - 1;
}

uint32_t fxstacks_of(struct fxstacks *f, const struct samplerow *row)
{
	const struct profile *p = f->job->profile;
	uint32_t made = 0, stack = row->stack;

	for (; stack && !f->stacks[stack]; stack = p->stacks.v[stack].parent)
		vec_push(&f->chain, stack);
	made = f->stacks[stack];
	while (f->chain.n) {
		const uint32_t *list;

		stack = f->chain.v[--f->chain.n];
		list = frames_of(f, p->stacks.v[stack].frame);
		for (uint32_t i = list[0]; i > 0; i--)
			made = add_stack(f, made, list[i]);
		f->stacks[stack] = made;
	}
	return *samplerow_cause(row) ? add_stack(f, made, cause_frame(f, row->cause)) : made;
}

/* --- writing --- */

void fxstacks_put_categories(struct json *j)
{
	static const char *const first[][2] = {
		[FX_OTHER] = { "Other", "grey" }, [FX_USER] = { "User", "yellow" }, [FX_KERNEL] = { "Kernel", "orange" }, [FX_DETAIL] = { "Detail", "lightred" },
	};
	static const char *const colours[CAUSE_COUNT] = {
		[CAUSE_QUEUE] = "purple",     [CAUSE_LOCK] = "red",         [CAUSE_PARK] = "brown",    [CAUSE_DISK_READ] = "blue",
		[CAUSE_DISK_WRITE] = "blue",  [CAUSE_FAULT] = "magenta",    [CAUSE_NETWORK] = "green", [CAUSE_SLEEP] = "lightblue",
		[CAUSE_PIPE] = "lightblue",   [CAUSE_RECLAIM] = "magenta",  [CAUSE_QUOTA] = "purple",  [CAUSE_IDLE] = "transparent",
	};

	json_open_array_line(j, "categories", 0);
	for (int i = 0; i < FX_CAUSES + CAUSE_COUNT; i++) {
		enum cause cause = i < FX_CAUSES ? CAUSE_UNKNOWN : i - FX_CAUSES;
		_cleanup_(buf_done) struct buf name = { 0 };

		buf_printf(&name, "%s%s", i < FX_CAUSES || cause == CAUSE_IDLE ? "" : "wait: ", i < FX_CAUSES ? first[i][0] : cause == CAUSE_IDLE ? "Idle" : cause_name(cause));
		json_open_object(j, NULL);
		json_put_string(j, "name", name.data);
		json_put_string(j, "color", i < FX_CAUSES ? first[i][1] : colours[cause] ?: "darkgrey");
		json_put_strings(j, "subcategories", (const char *const[]){ "Other" }, 1);
		json_close(j);
	}
	json_close(j);
}

/* The GUID that Breakpad makes of a build-id: its first 16 bytes, of which three numbers are in the other byte order, and an age. */
static void put_breakpad(struct buf *out, const struct profile_module *m)
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (int i = 0; i < 16; i++)
		buf_printf(out, "%02X", order[i] < m->build_id_size ? m->build_id[order[i]] : 0);
	buf_puts(out, "0");
}

void fxstacks_put_libs(const struct fxstacks *f, struct json *j)
{
	const struct profile *p = f->job->profile;

	json_open_array_line(j, "libs", 0);
	for (size_t i = 0; i < f->libs.n; i++) {
		const struct profile_module *m = &p->modules.v[f->libs.v[i]];
		const char *path = profile_str(p, m->path);
		_cleanup_(buf_done) struct buf breakpad = { 0 }, code = { 0 };

		put_breakpad(&breakpad, m);
		for (int k = 0; k < m->build_id_size; k++)
			buf_printf(&code, "%02x", m->build_id[k]);
		json_open_row(j, 0);
		json_put_string(j, "arch", NULL);
		json_put_string(j, "name", str_base_name(path));
		json_put_string(j, "path", path);
		json_put_string(j, "debugName", str_base_name(path));
		json_put_string(j, "debugPath", path);
		json_put_string(j, "breakpadId", breakpad.data);
		json_put_string(j, "codeId", code.data);
		json_close(j);
	}
	json_close(j);
}

/* A column: of each row an expression, or null. */
#define PUT_COLUMN(j, key, n, null, value)          \
	do {                                        \
		json_open_array_line(j, key, 0);    \
		for (size_t i = 0; i < (n); i++)    \
			if (null)                   \
				json_put_null(j, NULL); \
			else                        \
				json_put_int(j, NULL, value); \
		json_close(j);                      \
	} while (0)

static void open_table(struct json *j, const char *name, size_t n)
{
	json_open_object_line(j, name, 0);
	json_put_uint(j, "length", n);
}

static void put_frames(const struct fxstacks *f, struct json *j)
{
	size_t n = f->frames.n;

	open_table(j, "frameTable", n);
	PUT_COLUMN(j, "address", n, false, f->frames.v[i].address && f->frames.v[i].address <= INT64_MAX ? (int64_t)f->frames.v[i].address : -1);
	PUT_COLUMN(j, "inlineDepth", n, false, f->frames.v[i].depth);
	PUT_COLUMN(j, "category", n, false, f->frames.v[i].category);
	PUT_COLUMN(j, "subcategory", n, false, 0);
	PUT_COLUMN(j, "func", n, false, f->frames.v[i].func);
	PUT_COLUMN(j, "nativeSymbol", n, true, 0);
	PUT_COLUMN(j, "innerWindowID", n, true, 0);
	PUT_COLUMN(j, "line", n, !f->frames.v[i].line, f->frames.v[i].line);
	PUT_COLUMN(j, "column", n, true, 0);
	json_close(j);
}

static void put_funcs(const struct fxstacks *f, struct json *j)
{
	size_t n = f->funcs.n;

	open_table(j, "funcTable", n);
	PUT_COLUMN(j, "name", n, false, f->funcs.v[i].name);
	json_open_array_line(j, "isJS", 0);
	for (size_t i = 0; i < n; i++)
		json_put_bool(j, NULL, false);
	json_close(j);
	json_open_array_line(j, "relevantForJS", 0);
	for (size_t i = 0; i < n; i++)
		json_put_bool(j, NULL, false);
	json_close(j);
	PUT_COLUMN(j, "resource", n, false, (int64_t)f->funcs.v[i].lib - 1);
	PUT_COLUMN(j, "source", n, !f->funcs.v[i].file, f->funcs.v[i].file - 1);
	PUT_COLUMN(j, "lineNumber", n, true, 0);
	PUT_COLUMN(j, "columnNumber", n, true, 0);
	json_close(j);
}

/* A resource for each library; the string of its name was added with it. */
static void put_resources(const struct fxstacks *f, struct json *j, const uint32_t *names)
{
	size_t n = f->libs.n;

	open_table(j, "resourceTable", n);
	PUT_COLUMN(j, "lib", n, false, i);
	PUT_COLUMN(j, "name", n, false, names[i]);
	PUT_COLUMN(j, "host", n, true, 0);
	PUT_COLUMN(j, "type", n, false, 1);
	json_close(j);
}

static void put_sources(const struct fxstacks *f, struct json *j)
{
	size_t n = f->sources.n;

	open_table(j, "sources", n);
	PUT_COLUMN(j, "id", n, true, 0);
	PUT_COLUMN(j, "filename", n, false, f->sources.v[i]);
	PUT_COLUMN(j, "startLine", n, false, 1);
	PUT_COLUMN(j, "startColumn", n, false, 1);
	PUT_COLUMN(j, "sourceMapURL", n, true, 0);
	json_close(j);
}

void fxstacks_put_tables(struct fxstacks *f, struct json *j)
{
	const struct profile *p = f->job->profile;
	_cleanup_free_ uint32_t *names = mem_alloc((f->libs.n + 1) * sizeof(*names));

	for (size_t i = 0; i < f->libs.n; i++)
		names[i] = strtab_add(&f->strings, str_base_name(profile_str(p, p->modules.v[f->libs.v[i]].path)));
	open_table(j, "stackTable", f->stack_frame.n);
	PUT_COLUMN(j, "frame", f->stack_frame.n, false, f->stack_frame.v[i]);
	PUT_COLUMN(j, "prefix", f->stack_frame.n, !f->stack_prefix.v[i], (int64_t)f->stack_prefix.v[i] - 1);
	json_close(j);
	put_frames(f, j);
	put_funcs(f, j);
	put_resources(f, j, names);
	open_table(j, "nativeSymbols", 0);
	json_put_strings(j, "libIndex", NULL, 0);
	json_put_strings(j, "address", NULL, 0);
	json_put_strings(j, "name", NULL, 0);
	json_put_strings(j, "functionSize", NULL, 0);
	json_close(j);
	put_sources(f, j);
	json_open_array_line(j, "stringArray", 0);
	for (size_t i = 0; i < f->strings.n; i++)
		json_put_string(j, NULL, strtab_get(&f->strings, i));
	json_close(j);
}
