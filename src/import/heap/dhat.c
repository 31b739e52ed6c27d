/*
 * dhat.c - DHAT's JSON, version 2, of valgrind and of Rust's crate: for each place of allocation its totals.
 *
 *	{"dhatFileVersion":2,"mode":"heap","bklt":true,"bkacc":true,"tu":"instrs","cmd":"./prog","pid":1,"te":279952,"tg":174532,
 *	 "pps":[{"tb":100000,"tbk":100,      bytes and blocks in total
 *	         "gb":100000,"gbk":100,      when the heap was largest, at tg
 *	         "eb":40000,"ebk":40,        at the end, te
 *	         "rb":0,"wb":100000,         read from and written to them
 *	         "fs":[1,2,3]}],             frames, the innermost first
 *	 "ftbl":["[root]","0x48417B4: malloc (in /usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so)", ...]}
 *
 * Lifetimes, the largest size of each place by itself (tl, mb, mbk) and accesses by offset (acc) are left out.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/heap/heapfiles.h"
#include "import/heap/heapsink.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Numbers of JSON take eight times the room of their text in memory. */
static const size_t limit_bytes = 256 << 20;

enum { MOST_MEASURES = 5 };

/* One event: which members of a place are its bytes and its count. */
struct measure {
	const char *event, *describe, *unit;
	const char *bytes, *count; /* NULL: is not counted */
	const char *time;          /* member of the file */
	const char *if_true;       /* member of the file that says whether there are such; NULL: always */
};

static const struct measure of_heap[MOST_MEASURES] = {
	{ "heap", "alive at the end", "bytes", "eb", "ebk", "te", "bklt" },
	{ "alloc", "allocated", "bytes", "tb", "tbk", "te" },
	{ "peak", "alive when it was most", "bytes", "gb", "gbk", "tg", "bklt" },
	{ "reads", "read from allocated memory", "bytes", "rb", NULL, "te", "bkacc" },
	{ "writes", "written to allocated memory", "bytes", "wb", NULL, "te", "bkacc" },
};
static const struct measure of_copies[MOST_MEASURES] = { { "copied", "copied by memcpy and others", "bytes", "tb", "tbk", "te" } };
static const struct measure of_units[MOST_MEASURES] = { { "units", "units that the program counted", "count", "tb", "tbk", "te" } };

static const struct {
	const char *mode;
	const struct measure *measures;
} modes[] = {
	{ "heap", of_heap }, { "rust-heap", of_heap }, { "copy", of_copies }, { "ad-hoc", of_units }, { "rust-ad-hoc", of_units },
};

struct dhat {
	struct heapsink sink;
	json_t *root;
	const struct measure *measures;
	uint32_t events[MOST_MEASURES];    /* PROFILE_NONE = the file has none of these */
	uint64_t times_ns[MOST_MEASURES];
	VEC(uint32_t) frames;              /* by number in the file; PROFILE_NONE = not to be shown */
	VEC(uint32_t) stack;               /* the leaf first */
};

bool dhat_probe(const char *data, size_t n, bool whole)
{
	size_t i = 0;

	(void)whole;
	while (i < n && strchr(" \t\r\n", data[i]))
		i++;
	return i < n && data[i] == '{' && memmem(data, MIN(n, (size_t)4096), "\"dhatFileVersion\"", 17);
}

/* A number that is not negative; missing is 0 unless it is wanted. */
static int number_of(const json_t *object, const char *name, uint64_t *ret, struct err *err)
{
	const json_t *j = json_object_get(object, name);

	*ret = j && json_is_integer(j) ? json_integer_value(j) : 0;
	if (j && (!json_is_integer(j) || json_integer_value(j) < 0))
		return err_set(err, EINVAL, "\"%s\" is no number of bytes, blocks or time", name);
	return 0;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* --- the head --- */

/* An instruction is a nanosecond of the profile. */
static int time_of(struct dhat *d, const char *name, uint64_t *ret_ns, struct err *err)
{
	const char *unit = text_of(d->root, "tu");
	uint64_t scale = !strcmp(unit, "µs") || !strcmp(unit, "us") ? 1000 : !strcmp(unit, "ms") ? 1000000 : 1;
	int r = number_of(d->root, name, ret_ns, err);

	if (!r && (__builtin_mul_overflow(*ret_ns, scale, ret_ns) || *ret_ns > INT64_MAX))
		return err_set(err, ERANGE, "\"%s\" is too late", name);
	return r;
}

static int read_head(struct dhat *d, struct err *err)
{
	const char *mode = text_of(d->root, "mode");
	uint64_t version, pid;
	int r = number_of(d->root, "dhatFileVersion", &version, err) ?: number_of(d->root, "pid", &pid, err);

	r = r ?: time_of(d, "te", &d->sink.p->duration_ns, err);
	if (r)
		return r;
	if (version != 2)
		return err_set(err, ENOTSUP, "its version is %llu; 2 is known", (unsigned long long)version);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (!strcmp(mode, modes[i].mode))
			d->measures = modes[i].measures;
	if (!d->measures)
		return err_set(err, ENOTSUP, "its mode is none of heap, copy and ad-hoc");
	heapsink_command(&d->sink, text_of(d->root, "cmd"), pid <= INT32_MAX ? pid : 0);
	for (size_t i = 0; i < MOST_MEASURES && !r; i++) {
		const struct measure *m = &d->measures[i];

		d->events[i] = PROFILE_NONE;
		if (!m->event || (m->if_true && !json_is_true(json_object_get(d->root, m->if_true))))
			continue;
		d->events[i] = profile_add_event(d->sink.p, m->event, m->unit, m->describe, 0);
		r = time_of(d, m->time, &d->times_ns[i], err);
	}
	return r;
}

/* --- places --- */

/* valgrind's own malloc() says nothing, its memcpy() does; [root] is no function. */
static int read_frames(struct dhat *d, struct err *err)
{
	const json_t *list = json_object_get(d->root, "ftbl");
	bool heap = d->measures == of_heap;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		_cleanup_free_ char *copy = NULL;

		if (!text)
			return err_set(err, EINVAL, "frame %zu of \"ftbl\" is no text", i);
		copy = mem_strdup(text);
		vec_push(&d->frames, (!i && !strcmp(text, "[root]")) || (heap && strstr(text, "/vgpreload_"))
					     ? PROFILE_NONE
					     : heapsink_valgrind_frame(&d->sink, copy));
	}
	return 0;
}

static int read_stack(struct dhat *d, const json_t *place, uint32_t *ret, struct err *err)
{
	const json_t *list = json_object_get(place, "fs");

	vec_clear(&d->stack);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *at = json_array_get(list, i);
		json_int_t k = json_is_integer(at) ? json_integer_value(at) : -1;

		if (k < 0 || (uint64_t)k >= d->frames.n)
			return err_set(err, EINVAL, "there is no such frame in \"ftbl\"");
		if (d->frames.v[k] != PROFILE_NONE)
			vec_push(&d->stack, d->frames.v[k]);
	}
	*ret = frames_stack(&d->sink.frames, d->stack.v, d->stack.n);
	return 0;
}

static int read_place(struct dhat *d, const json_t *place, struct err *err)
{
	uint32_t stack = 0;
	int r = read_stack(d, place, &stack, err);

	for (size_t i = 0; i < MOST_MEASURES && !r; i++) {
		const struct measure *m = &d->measures[i];
		struct heapsink_value v = { d->events[i], stack, .time_ns = d->times_ns[i] };

		if (v.event == PROFILE_NONE)
			continue;
		r = number_of(place, m->bytes, &v.bytes, err);
		if (!r && m->count)
			r = number_of(place, m->count, &v.count, err);
		r = r ?: heapsink_add(&d->sink, &v, err);
	}
	return r;
}

static int read_places(struct dhat *d, struct err *err)
{
	const json_t *list = json_object_get(d->root, "pps");
	int r = 0;

	if (!json_is_array(list))
		return err_set(err, EINVAL, "it has no places of allocation, \"pps\"");
	for (size_t i = 0; i < json_array_size(list) && !r; i++) {
		r = read_place(d, json_array_get(list, i), err);
		if (r)
			err_prefix(err, "place %zu of \"pps\"", i);
	}
	return r;
}

static int load(struct dhat *d, const struct import_input *in, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	json_error_t why;
	size_t n;
	int r = stream_whole(in->stream, limit_bytes, &text, &n, err);

	if (r)
		return r;
	d->root = json_loadb(text, n, 0, &why);
	if (!d->root)
		return err_set(err, EINVAL, "byte %d: %s", why.position, why.text);
	return 0;
}

int dhat_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct dhat d = { 0 };
	int r;

	heapsink_init(&d.sink, in);
	r = load(&d, in, err);
	r = r ?: read_head(&d, err);
	r = r ?: read_frames(&d, err);
	r = r ?: read_places(&d, err);
	if (!r) {
		profile_count_set(d.sink.p, KEY_HEAP_INTERVAL_BYTES, 1);
		*ret = heapsink_take(&d.sink);
	}
	json_decref(d.root);
	heapsink_done(&d.sink);
	vec_done(&d.frames);
	vec_done(&d.stack);
	return r;
}
