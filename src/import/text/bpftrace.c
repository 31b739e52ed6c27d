/*
 * bpftrace.c - maps of bpftrace whose keys hold stacks, as text and as JSON (-f json).
 *
 *	@[
 *	    vfs_read+1
 *	    do_syscall_64+92
 *	,
 *	    read+12
 *	, bash, 1234]: 7
 *	{"type": "map", "data": {"@": {"\n    vfs_read+1\n    do_syscall_64+92\n,bash": 7}}}
 *
 * Two stacks of a key are one, that of the kernel at the leaf. Of the other keys, the first word is the thread's name, the first number its process
 * and a second one its thread. The event has the map's name, and a unit where that says it: "@ns", "@blocked_us", "@bytes".
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "import/text/printed.h"

enum { LONGEST_KEY = 16 << 20 };

struct bpftrace {
	struct printed text;
	struct buf name, key; /* of the map, and of the entry that is being read */
	bool open;
};

/* What the keys besides stacks say. */
struct keys {
	char *comm;
	uint32_t ids[2];
	int count;
};

/* --- an entry --- */

static void take_word(struct keys *k, const char *s, size_t n)
{
	uint64_t number;

	while (n && (*s == ' ' || *s == ',' || *s == '"')) {
		s++;
		n--;
	}
	while (n && (s[n - 1] == ' ' || s[n - 1] == ',' || s[n - 1] == '"'))
		n--;
	if (!n)
		return;
	if (printed_number(s, n, &number)) {
		if (k->count < 2)
			k->ids[k->count++] = number <= INT32_MAX ? number : 0;
	} else if (!k->comm) {
		k->comm = mem_strndup(s, n);
	}
}

/* Words between commas. */
static void take_words(struct keys *k, const char *s, size_t n)
{
	const char *end = s + n, *comma;

	while ((comma = memchr(s, ',', end - s))) {
		take_word(k, s, comma - s);
		s = comma + 1;
	}
	take_word(k, s, end - s);
}

/* Frames are indented by a tab or four spaces. */
static bool is_frame(const char *s, size_t n)
{
	return (n > 4 && !memcmp(s, "    ", 4)) || (n > 1 && *s == '\t');
}

/* Other lines than frames separate stacks, and hold the other keys. */
static void take_key(struct bpftrace *b, struct keys *k)
{
	const char *s = b->key.n ? b->key.data : "", *end = s + b->key.n;
	size_t second = 0;
	bool frames = false;

	while (s < end) {
		const char *newline = memchr(s, '\n', end - s);
		size_t n = newline ? (size_t)(newline - s) : (size_t)(end - s);

		if (is_frame(s, n)) {
			if (!frames && b->text.list.n && !second)
				second = b->text.list.n;
			frames = true;
			printed_frame(&b->text, s, n, false);
		} else {
			frames = false;
			take_words(k, s, n);
		}
		s += n + 1;
	}
	if (second && printed_enters_kernel(&b->text, second))
		printed_swap(&b->text, second);
}

static struct printed_event event_of(const char *map)
{
	static const struct {
		const char *end, *unit;
		uint64_t factor;
	} units[] = { { "ns", "ns", 1 }, { "nsecs", "ns", 1 }, { "us", "ns", 1000 }, { "usecs", "ns", 1000 }, { "ms", "ns", 1000000 },
		      { "bytes", "bytes", 1 } };
	struct printed_event e = { *map ? map : "samples", "count", "", 1, true };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t n = strlen(units[i].end), m = strlen(map);

		if (m >= n && !strcmp(map + m - n, units[i].end) && (m == n || map[m - n - 1] == '_'))
			e = (struct printed_event){ e.name, units[i].unit, "", units[i].factor, false };
	}
	return e;
}

static int end_entry(struct bpftrace *b, uint64_t number, uint64_t line, struct err *err)
{
	struct keys k = { 0 };
	struct printed_event e;
	int r;

	take_key(b, &k);
	buf_putc(&b->name, 0);
	e = event_of(b->name.data);
	b->name.n--;
	r = printed_add(&b->text, &e, k.ids[0], k.count > 1 ? k.ids[1] : k.ids[0], k.comm ? k.comm : "", number, line, err);
	free(k.comm);
	b->key.n = 0;
	b->open = false;
	return r;
}

/* --- text --- */

/* "12", or the total of "count 3, average 4, total 12". */
static bool take_value(const char *s, size_t n, uint64_t *ret)
{
	static const char total[] = "total ";
	const char *at = memmem(s, n, total, strlen(total));

	if (at && n > 6 && !memcmp(s, "count ", 6))
		return printed_number(at + strlen(total), s + n - at - strlen(total), ret);
	return printed_number(s, n, ret);
}

/* The last "]: " of a line, NULL: there is none. */
static const char *find_end(const char *s, size_t n)
{
	for (size_t i = n; i >= 3; i--)
		if (!memcmp(s + i - 3, "]: ", 3))
			return s + i - 3;
	return NULL;
}

/* What bpftrace says of itself before the maps. */
static bool is_own(const char *s, size_t n)
{
	static const char *const starts[] = { "Attach", "ERROR", "WARNING", "Lost ", "\r" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (n >= strlen(starts[i]) && !memcmp(s, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static int take_text(struct bpftrace *b, const char *line, size_t n, uint64_t at, struct err *err)
{
	const char *end = is_frame(line, n) ? NULL : find_end(line, n), *s = line;
	uint64_t number;

	if (!b->open && (!n || *line != '@' || !memchr(line, '[', n))) {
		b->text.unknown_lines += n && !is_own(line, n);
		return 0;
	}
	if (!b->open) {
		s = memchr(line, '[', n);
		b->name.n = 0;
		buf_add(&b->name, line + 1, s - line - 1);
		b->open = true;
		b->key.n = 0;
		s++;
	}
	if (b->key.n > LONGEST_KEY)
		return err_set(err, EFBIG, "line %llu: its key is longer than %d MB", (unsigned long long)at, LONGEST_KEY >> 20);
	buf_add(&b->key, s, (end && end >= s ? end : line + n) - s);
	buf_putc(&b->key, '\n');
	if (!end || end < s)
		return 0;
	if (take_value(end + 3, line + n - end - 3, &number))
		return end_entry(b, number, at, err);
	b->text.unknown_lines++;
	b->open = false;
	return 0;
}

/* --- JSON --- */

static int take_map(struct bpftrace *b, const char *name, json_t *map, uint64_t at, struct err *err)
{
	const char *key;
	json_t *value;
	int r = 0;

	if (!json_is_object(map))
		b->text.unknown_lines++;
	json_object_foreach(map, key, value) {
		if (json_is_object(value) && json_object_get(value, "total"))
			value = json_object_get(value, "total");
		if (!json_is_integer(value) || json_integer_value(value) < 0) {
			b->text.unknown_lines++;
			continue;
		}
		b->name.n = b->key.n = 0;
		buf_puts(&b->name, *name == '@' ? name + 1 : name);
		buf_puts(&b->key, key);
		r = end_entry(b, json_integer_value(value), at, err);
		if (r)
			break;
	}
	return r;
}

static int take_json(struct bpftrace *b, const char *line, size_t n, uint64_t at, struct err *err)
{
	json_error_t error;
	json_t *root = json_loadb(line, n, 0, &error), *data = json_object_get(root, "data"), *map;
	const char *type = json_string_value(json_object_get(root, "type")), *name;
	int r = 0;

	if (!root)
		return err_set(err, EINVAL, "line %llu, byte %d: %s", (unsigned long long)at, error.position, error.text);
	if (type && (!strcmp(type, "map") || !strcmp(type, "stats")))
		json_object_foreach(data, name, map) {
			r = take_map(b, name, map, at, err);
			if (r)
				break;
		}
	json_decref(root);
	return r;
}

/* --- the whole --- */

static int take_line(void *context, char *line, size_t n, uint64_t at, struct err *err)
{
	struct bpftrace *b = context;

	return !b->open && *line == '{' ? take_json(b, line, n, at, err) : take_text(b, line, n, at, err);
}

int bpftrace_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct bpftrace b = { 0 };
	int r = printed_read(&b.text, in, take_line, &b, ret, err);

	buf_done(&b.name);
	buf_done(&b.key);
	return r;
}

/* A map with keys, before anything that is not what bpftrace says of itself. */
bool bpftrace_probe(const char *data, size_t n, bool whole)
{
	const char *end = data + n;

	(void)whole;
	for (const char *s = data, *newline; s < end; s = newline + 1) {
		newline = memchr(s, '\n', end - s);
		if (!newline)
			newline = end;
		if (newline - s > 10 && !memcmp(s, "{\"type\": \"", 10))
			return true;
		if (newline > s && *s == '@') {
			const char *open = memchr(s, '[', newline - s);

			/* "@name[" or "@[": a stack follows, or the number. */
			for (const char *c = s + 1; open && c < open; c++)
				if (*c == ' ' || *c == ';')
					open = NULL;
			if (open && (open + 1 == newline || find_end(s, newline - s) || newline[-1] == ' ' || newline[-1] == ','))
				return true;
			if (open || !memchr(s, ':', newline - s))
				return false;
		} else if (newline > s && !is_own(s, newline - s)) {
			return false;
		}
		if (newline == end)
			break;
	}
	return false;
}
