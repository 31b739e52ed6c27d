/* importing.h - data through an importer in one call, cut at every byte, and a profile as folded stacks, for tests. */
#pragma once

#include "base/err.h"
#include "base/file/stream.h"
#include "exporting.h"
#include "import/import.h"
#include "profile/profile.h"

/* *ret is NULL where it is refused. The file has the name of the format; files of modules are not found. */
static inline int import_data(const char *format, const char *data, size_t n, struct profile **ret, struct err *err)
{
	struct stream *in = stream_of(data, n);
	int r;

	*ret = NULL;
	r = import_find(format)->read(&(struct import_input){ .stream = in, .name = format, .options.root = "/nonexistent" }, ret, err);
	stream_free(in);
	assert_int_equal(!r, *ret != NULL);
	if (r && err)
		assert_int_equal(-r, err->code);
	return r;
}

static inline struct profile *import_bytes(const char *format, const char *data, size_t n, struct err *err)
{
	struct profile *p;

	import_data(format, data, n, &p, err);
	return p;
}

static inline struct profile *import_text(const char *format, const char *text, struct err *err)
{
	return import_bytes(format, text, strlen(text), err);
}

/* The test fails where it is refused. */
static inline struct profile *import_good(const char *format, const char *text)
{
	struct err err = { 0 };
	struct profile *p = import_text(format, text, &err);

	if (!p)
		fail_msg("%s: %s", text, err.text);
	return p;
}

/* Is refused, with these words. */
static inline void import_refused(const char *format, const char *text, const char *words)
{
	struct err err = { 0 };
	struct profile *p = import_text(format, text, &err);

	if (p || !strstr(err.text, words))
		fail_msg("%s: %s, expected %s", text, p ? "was read" : err.text, words);
}

/* The stacks of the first event, as folded text. Caller frees. */
static inline char *import_folded(const struct profile *p)
{
	return export_all(p, "folded", (struct export_options){ .weigh = EXPORT_WEIGH_VALUE, .group = CALLTREE_BY_NAME }).data;
}

static inline void import_is(const char *format, const char *text, const char *folded)
{
	struct profile *p = import_good(format, text);
	char *got = import_folded(p);

	assert_string_equal(got, folded);
	free(got);
	profile_free(p);
}

/* Whatever is cut off: an error with a sentence, or less that is whole, and no crash. What is cut is in memory of its own size, for
 * the sanitizers. Returns how many were refused. */
static inline size_t import_cut_bytes(const char *format, const char *data, size_t bytes)
{
	size_t refused = 0;

	for (size_t n = 0; n <= bytes; n++) {
		char *cut = malloc(n ? n : 1);
		struct err err = { 0 };
		struct profile *p;

		memcpy(cut, data, n);
		import_find(format)->probe(cut, n, n % 2);
		p = import_bytes(format, cut, n, &err);
		assert_true(p ? p->finished : *err.text);
		refused += !p;
		profile_free(p);
		free(cut);
	}
	return refused;
}

static inline void import_cut_everywhere(const char *format, const char *text)
{
	import_cut_bytes(format, text, strlen(text));
}

/* Names that want to break out, and a stack of many frames, there and back: as many samples. */
static inline void import_hostile_and_deep(const char *format)
{
	struct sample list[] = { export_hostile(), export_deep(20000) };

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		struct buf out = export_all(list[i].p, format, (struct export_options){ .every_event = true });
		struct err err = { 0 };
		struct profile *p = import_bytes(format, out.data, out.n, &err);

		if (!p)
			fail_msg("%s", err.text);
		assert_int_equal(p->samples.n, list[i].p->samples.n);
		profile_free(p);
		profile_free(list[i].p);
		buf_done(&out);
	}
}

/* Each sample of both is the same: event, unit, value, time, thread with its ids, and names of its stack. */
static inline void import_same(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->samples.n, b->samples.n);
	for (size_t i = 0; i < a->samples.n; i++) {
		const struct profile_sample *x = &a->samples.v[i], *y = &b->samples.v[i];
		const struct profile_thread *t = &a->threads.v[x->thread], *u = &b->threads.v[y->thread];

		assert_int_equal(x->time_ns, y->time_ns);
		assert_int_equal(x->value, y->value);
		assert_string_equal(profile_str(a, a->events.v[x->event].name), profile_str(b, b->events.v[y->event].name));
		assert_string_equal(profile_str(a, a->events.v[x->event].unit), profile_str(b, b->events.v[y->event].unit));
		assert_string_equal(profile_str(a, t->name), profile_str(b, u->name));
		assert_int_equal(t->tid, u->tid);
		assert_int_equal(a->processes.v[t->process].pid, b->processes.v[u->process].pid);
	}
}
