/* webimport.h - text through an importer in one call, and a profile as folded stacks, for tests of src/import/web. */
#pragma once

#include "base/err.h"
#include "base/file/stream.h"
#include "exporting.h"
#include "import/import.h"
#include "profile/profile.h"

static inline struct profile *import_bytes(const char *format, const char *text, size_t n, struct err *err)
{
	struct stream *in = stream_of(text, n);
	struct profile *p = NULL;
	int r = import_find(format)->read(&(struct import_input){ .stream = in, .name = "x" }, &p, err);

	stream_free(in);
	assert_int_equal(!r, p != NULL);
	if (r && err)
		assert_int_equal(-r, err->code);
	return p;
}

static inline struct profile *import_text(const char *format, const char *text, struct err *err)
{
	return import_bytes(format, text, strlen(text), err);
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
	struct err err = { 0 };
	struct profile *p = import_text(format, text, &err);
	char *got;

	if (!p)
		fail_msg("%s: %s", text, err.text);
	got = import_folded(p);
	assert_string_equal(got, folded);
	free(got);
	profile_free(p);
}

/* Whatever is cut off: an error or less, and no crash. A text that is cut is in memory of its own, for the sanitizers. */
static inline void import_cut_everywhere(const char *format, const char *text)
{
	for (size_t n = 0; n <= strlen(text); n++) {
		char *cut = malloc(n + 1);
		struct err err = { 0 };
		struct profile *p;

		memcpy(cut, text, n);
		p = import_bytes(format, cut, n, &err);
		assert_true(p || *err.text);
		profile_free(p);
		free(cut);
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
