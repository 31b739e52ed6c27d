#include "import/web/firefoxtables.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "import/web/webprofile.h"
#include "profile/profile.h"

enum { INLINED_MAX = 64 }; /* calls of one frame */

/* --- reading --- */

static const struct {
	const char *table, *column;
	size_t offset;
} columns[] = {
	{ "stackTable", "frame", offsetof(struct fxtables, stack_frame) },
	{ "stackTable", "prefix", offsetof(struct fxtables, stack_prefix) },
	{ "stackTable", "prefixOffset", offsetof(struct fxtables, stack_offset) },
	{ "frameTable", "func", offsetof(struct fxtables, frame_func) },
	{ "frameTable", "line", offsetof(struct fxtables, frame_line) },
	{ "frameTable", "lib", offsetof(struct fxtables, frame_lib) },
	{ "frameTable", "inlineDepth", offsetof(struct fxtables, frame_depth) },
	{ "frameTable", "category", offsetof(struct fxtables, frame_category) },
	{ "funcTable", "name", offsetof(struct fxtables, func_name) },
	{ "funcTable", "resource", offsetof(struct fxtables, func_resource) },
	{ "funcTable", "fileName", offsetof(struct fxtables, func_file) },
	{ "funcTable", "source", offsetof(struct fxtables, func_source) },
	{ "funcTable", "lineNumber", offsetof(struct fxtables, func_line) },
	{ "resourceTable", "lib", offsetof(struct fxtables, resource_lib) },
	{ "sources", "filename", offsetof(struct fxtables, source_file) },
};

static struct fxcolumn *column_of(struct fxtables *t, size_t i)
{
	return (struct fxcolumn *)((char *)t + columns[i].offset);
}

static void read_column(struct fxcolumn *column, struct jsontext *c)
{
	column->list.n = 0;
	for (jsontext_list(c); jsontext_item(c);)
		vec_push(&column->list, jsontext_int(c));
}

static void read_addresses(struct fxtables *t, struct jsontext *c)
{
	t->frame_address.n = 0;
	for (jsontext_list(c); jsontext_item(c);) {
		struct jsontext_number n = jsontext_number(c, 0);

		vec_push(&t->frame_address, n.there && !n.negative && !n.huge ? n.value : UINT64_MAX);
	}
}

static void read_table(struct fxtables *t, const char *table, struct jsontext *c)
{
	jsontext_object(c);
	while (jsontext_member(c)) {
		size_t i = 0;

		while (i < ARRAY_LEN(columns) && (strcmp(columns[i].table, table) || !jsontext_is(c, columns[i].column)))
			i++;
		if (i < ARRAY_LEN(columns) && jsontext_kind(c) == '[')
			read_column(column_of(t, i), c);
		else if (!strcmp(table, "frameTable") && jsontext_is(c, "address") && jsontext_kind(c) == '[')
			read_addresses(t, c);
		else
			jsontext_skip(c);
	}
}

static void read_strings(struct fxtables *t, struct fxfile *f, struct jsontext *c)
{
	t->strings.n = 0;
	for (jsontext_list(c); jsontext_item(c);) {
		jsontext_string(c, &f->w->text);
		vec_push(&t->strings, profile_string(f->w->p, f->w->text.data));
	}
}

bool fxtables_take(struct fxtables *t, struct fxfile *f, struct jsontext *c)
{
	char kind = jsontext_kind(c);

	if (kind == '[' && (jsontext_is(c, "stringArray") || jsontext_is(c, "stringTable"))) {
		read_strings(t, f, c);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(columns) && kind == '{'; i++)
		if (jsontext_is(c, columns[i].table)) {
			read_table(t, columns[i].table, c);
			return true;
		}
	return false;
}

void fxtables_done(struct fxtables *t)
{
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		vec_done(&column_of(t, i)->list);
	vec_done(&t->strings);
	vec_done(&t->frame_address);
	vec_done(&t->chain);
	free(t->stacks);
	t->stacks = NULL;
}

bool fxtables_any(const struct fxtables *t)
{
	return t->stack_frame.list.n > 0;
}

/* --- stacks --- */

/* A value of a column; -1 where there is none. */
static int32_t at(const struct fxcolumn *column, int32_t i)
{
	return i >= 0 && (size_t)i < column->list.n ? column->list.v[i] : -1;
}

static uint64_t address_of(const struct fxtables *t, int32_t frame)
{
	return frame >= 0 && (size_t)frame < t->frame_address.n ? t->frame_address.v[frame] : UINT64_MAX;
}

/* The caller; -1: there is none. */
static int32_t prefix_of(const struct fxtables *t, int32_t stack, struct jsontext *c)
{
	int32_t prefix = at(&t->stack_prefix, stack), offset = at(&t->stack_offset, stack);

	if (t->stack_offset.list.n)
		prefix = offset > 0 ? stack - offset : -1;
	if (prefix >= stack || (t->stack_offset.list.n && offset > stack)) {
		jsontext_fail(c, "in the table of stacks a caller comes after what it calls");
		return -1;
	}
	return prefix;
}

static const char *string_at(const struct fxtables *t, const struct fxtables *rest, struct fxfile *f, int32_t i)
{
	const struct fxtables *from = t->strings.n ? t : rest;

	return i >= 0 && (size_t)i < from->strings.n ? profile_str(f->w->p, from->strings.v[i]) : "";
}

static uint32_t module_of(const struct fxtables *t, struct fxfile *f, int32_t frame)
{
	int32_t lib = at(&t->frame_lib, frame);

	if (lib < 0)
		lib = at(&t->resource_lib, at(&t->func_resource, at(&t->frame_func, frame)));
	return lib >= 0 && (size_t)lib < f->modules.n ? f->modules.v[lib] : PROFILE_NONE;
}

static enum fxcategory category_of(const struct fxtables *t, struct fxfile *f, int32_t frame)
{
	int32_t category = at(&t->frame_category, frame);

	return category >= 0 && (size_t)category < f->categories.n ? f->categories.v[category] : FX_USER;
}

static struct frames_call call_of(const struct fxtables *t, const struct fxtables *rest, struct fxfile *f, int32_t frame)
{
	int32_t func = at(&t->frame_func, frame), line = at(&t->frame_line, frame), file = at(&t->func_file, func);
	const struct fxtables *sources = t->source_file.list.n ? t : rest;
	struct frames_call call = { .name = string_at(t, rest, f, at(&t->func_name, func)) };

	if (file < 0)
		file = at(&sources->source_file, at(&t->func_source, func));
	if (line <= 0)
		line = at(&t->func_line, func);
	call.file = file >= 0 ? string_at(t, rest, f, file) : NULL;
	call.line = MAX(line, 0);
	return call;
}

/* "0x1234", as frames without symbols are called. */
static bool is_address(const char *name)
{
	if (name[0] != '0' || name[1] != 'x')
		return !*name;
	for (name += 2; *name; name++)
		if (!isxdigit((unsigned char)*name))
			return false;
	return true;
}

/* The frame of the profile for a stack and those before it into which it was inlined. */
static uint32_t frame_of(const struct fxtables *t, const struct fxtables *rest, struct fxfile *f, const int32_t *frames, size_t n)
{
	struct frames_call calls[INLINED_MAX + 1];
	int32_t outer = frames[n - 1];
	uint32_t module = module_of(t, f, outer);
	uint64_t address = address_of(t, outer);
	enum fxcategory category = category_of(t, f, outer);
	bool kernel = category == FX_KERNEL || (module != PROFILE_NONE && f->w->p->modules.v[module].kind == MODULE_KERNEL);

	for (size_t i = 0; i < n; i++)
		calls[i] = call_of(t, rest, f, frames[i]);
	if (f->own && n == 1 && (category == FX_NOTE || str_starts(calls[0].name, "[truncated: ")))
		return webprofile_frame(f->w, module, category == FX_NOTE ? "note" : "truncated", calls);
	if (module == PROFILE_NONE || address == UINT64_MAX)
		address = 0;
	else if (n == 1 && (is_address(calls[0].name) || (f->own && category == FX_OTHER)))
		n = 0; /* for the symbolizer */
	return frames_named(&f->w->frames, module, kernel ? FRAME_KERNEL : FRAME_USER, address, calls, n);
}

/* The frames that are one: a stack's, and those before it into which it was inlined. *ret_outer: the last stack of them. */
static size_t group_of(const struct fxtables *t, int32_t stack, int32_t frames[INLINED_MAX + 1], int32_t *ret_outer, struct jsontext *c)
{
	int32_t frame = at(&t->stack_frame, stack), depth = at(&t->frame_depth, frame);
	size_t n = 0;

	frames[n++] = frame;
	while (depth > 0 && n <= INLINED_MAX) {
		int32_t prefix = prefix_of(t, stack, c), outer = at(&t->stack_frame, prefix);

		if (prefix < 0 || at(&t->frame_depth, outer) != depth - 1 || address_of(t, outer) != address_of(t, frame))
			break;
		frames[n++] = outer;
		stack = prefix;
		depth--;
	}
	*ret_outer = stack;
	return n;
}

static void make_stack(struct fxtables *t, const struct fxtables *rest, struct fxfile *f, int32_t stack, struct jsontext *c)
{
	int32_t frames[INLINED_MAX + 1], outer, prefix;
	size_t n = group_of(t, stack, frames, &outer, c);
	uint32_t below;

	prefix = prefix_of(t, outer, c);
	below = prefix >= 0 ? t->stacks[prefix] : 0;
	if (f->own && category_of(t, f, frames[0]) == FX_CAUSE)
		t->stacks[stack] = below; /* it is found again by the stack */
	else
		t->stacks[stack] = profile_stack(f->w->p, below, frame_of(t, rest, f, frames, n));
}

uint32_t fxtables_stack(struct fxtables *t, const struct fxtables *rest, struct fxfile *f, int32_t stack, struct jsontext *c)
{
	int32_t frames[INLINED_MAX + 1], outer;

	if (stack < 0)
		return 0;
	if ((size_t)stack >= t->stack_frame.list.n) {
		jsontext_fail(c, "this number is an index into a table of stacks that has fewer rows");
		return 0;
	}
	if (!t->stacks) {
		t->stacks = mem_resize(NULL, t->stack_frame.list.n, sizeof(*t->stacks));
		memset(t->stacks, 0xff, t->stack_frame.list.n * sizeof(*t->stacks));
	}
	for (int32_t i = stack; i >= 0 && t->stacks[i] == PROFILE_NONE && !c->failed; i = prefix_of(t, outer, c)) {
		vec_push(&t->chain, i);
		group_of(t, i, frames, &outer, c);
	}
	for (; t->chain.n; t->chain.n--)
		if (!c->failed)
			make_stack(t, rest, f, t->chain.v[t->chain.n - 1], c);
	return c->failed ? 0 : t->stacks[stack];
}
