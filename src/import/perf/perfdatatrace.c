#include "import/perf/perfdatatrace.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum { FORMATS_MOST = 1024 }; /* the scheduler has some 30 */

void perfdatatrace_done(struct perfdatatrace *t)
{
	vec_done_each(&t->formats, f, tracefs_format_done(f));
	vec_done_each(&t->names, name, free(*name));
}

/* The first line: "name: sched_switch". */
static char *name_of(const char *text, size_t n)
{
	static const char start[] = "name: ";
	const char *end = memchr(text, '\n', n);

	if (!end || n < sizeof(start) || memcmp(text, start, sizeof(start) - 1))
		return NULL;
	text += sizeof(start) - 1;
	return mem_strndup(text, end - text);
}

static void add_format(struct perfdatatrace *t, const char *text, size_t n)
{
	struct tracefs_format f = { 0 };
	char *name = name_of(text, n);

	if (!name || t->formats.n >= FORMATS_MOST) {
		free(name);
		return;
	}
	if (tracefs_parse_format(text, n, &f, NULL)) {
		free(name);
		return;
	}
	vec_push(&t->formats, f);
	vec_push(&t->names, name);
}

/* A text with its size before it. */
static const uint8_t *sized(struct reader *r, uint64_t *n)
{
	*n = reader_u64(r);
	return reader_bytes(r, *n);
}

static void read_system(struct perfdatatrace *t, struct reader *r)
{
	const char *system = reader_string(r);
	uint32_t count = reader_u32(r);
	uint64_t n;

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		const uint8_t *text = sized(r, &n);

		if (text && !strcmp(system, "sched"))
			add_format(t, (const char *)text, n);
	}
}

void perfdatatrace_read(struct perfdatatrace *t, const void *data, size_t n)
{
	static const uint8_t magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	struct reader r = reader_of(data, n);
	const uint8_t *start = reader_bytes(&r, sizeof(magic));
	uint32_t count;
	uint64_t size;

	if (!start || memcmp(start, magic, sizeof(magic)))
		return;
	reader_string(&r);  /* its version */
	if (reader_u8(&r))  /* of a big-endian machine */
		return;
	reader_skip(&r, 5); /* sizes of a long and of a page */
	for (int i = 0; i < 2; i++) { /* header_page, header_event */
		reader_string(&r);
		sized(&r, &size);
	}
	count = reader_u32(&r);
	for (uint32_t i = 0; i < count && !r.failed; i++) /* those of ftrace itself */
		sized(&r, &size);
	count = reader_u32(&r);
	for (uint32_t i = 0; i < count && !r.failed; i++)
		read_system(t, &r);
}

const struct tracefs_format *perfdatatrace_find(const struct perfdatatrace *t, uint64_t id, const char **ret_name)
{
	for (size_t i = 0; i < t->formats.n; i++)
		if (t->formats.v[i].id == id) {
			*ret_name = t->names.v[i];
			return &t->formats.v[i];
		}
	return NULL;
}

int64_t perfdatatrace_value(const struct tracefs_format *f, const char *name, const uint8_t *raw, size_t n)
{
	const struct tracefs_field *field = tracefs_find_field(f, name);
	uint64_t value = 0;

	if (!field || !field->integer || !field->size || field->size > 8 || field->offset > n || n - field->offset < field->size)
		return 0;
	memcpy(&value, raw + field->offset, field->size);
	if (field->is_signed && field->size < 8 && value >> (8 * field->size - 1))
		value |= ~0ULL << (8 * field->size);
	return value;
}
