/*
 * fuzz_collapse.c - perf script's text: the lines that come out are folded stacks, in the order of their bytes, and
 * joined into another table they are as many bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "folded/collapse/foldtable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static int put(void *context, const char *text, size_t n)
{
	buf_add(context, text, n);
	return 0;
}

/* Each name that stands for a frame becomes two. */
static bool stand_in(void *context, const struct perfline_frame *f, bool java, struct buf *b)
{
	(void)context;
	expect(f->pc.n);
	buf_printf(b, "\001%zu", f->function.n + java);
	return f->module.n;
}

static bool rename_one(void *context, const char *name, struct buf *b)
{
	(void)context;
	if (*name != 1)
		return false;
	buf_printf(b, "outer;%s", name + 1);
	return true;
}

static void check_renamed(const struct foldtable *t, const struct foldtable_options *o)
{
	struct foldtable *renamed = foldtable_new(o);
	struct buf out = { 0 };

	foldtable_join_renamed(renamed, t, rename_one, NULL);
	expect(!foldtable_write(renamed, put, &out) && foldtable_counts(renamed).samples == foldtable_counts(t).samples);
	buf_done(&out);
	foldtable_free(renamed);
}

static void read_once(const char *text, size_t n, const struct foldtable_options *o)
{
	struct foldtable *t = foldtable_new(o), *other = foldtable_new(o);
	struct perfline_text event = foldtable_first_event(text, n);
	_cleanup_free_ char *name = mem_strndup(event.s, event.n);
	struct buf out = { 0 }, joined = { 0 };
	const char *before = NULL;

	foldtable_add(t, text, n, event.n ? name : NULL);
	expect(!foldtable_write(t, put, &out));
	for (char *s = out.data; s && *s; ) {
		char *end = strchr(s, '\n'), *count;

		expect(end);
		*end = 0;
		count = strrchr(s, ' ');
		expect(count && count[1] && strspn(count + 1, "0123456789") == strlen(count + 1));
		*count = 0;
		expect(!before || strcmp(before, s) < 0);
		before = s;
		s = end + 1;
	}
	foldtable_join(other, t);
	expect(!foldtable_write(other, put, &joined) && joined.n == out.n);
	check_renamed(t, o);
	buf_done(&out);
	buf_done(&joined);
	foldtable_free(t);
	foldtable_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = mem_alloc(size + 1);

	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		text[i] += !text[i]; /* as collapse_read() does */
	read_once(text, size, &(struct foldtable_options){ 0 });
	read_once(text, size, &(struct foldtable_options){ .line = { true, true, true }, .tid = true });
	read_once(text, size, &(struct foldtable_options){ .source_lines = true, .pid = true });
	read_once(text, size, &(struct foldtable_options){ .inlined = stand_in });
	return 0;
}
