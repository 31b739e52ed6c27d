/* heapfiles.h - imports of heaps in tests: a text as a profile, and its sums. */
#pragma once

#include "analyze/quality.h"
#include "base/text/str.h"
#include "export/export.h"
#include "importing.h"
#include "profile/keys.h"
#include "profile/profile.h"

static inline struct profile *heapfile_read(const char *format, const char *text)
{
	assert_string_equal(import_probe(text, strlen(text), true)->name, format);
	return import_good(format, text);
}

struct heapfile_sum {
	uint64_t bytes, count;
};

static inline struct heapfile_sum heapfile_sum(const struct profile *p, const char *event)
{
	struct heapfile_sum sum = { 0 };

	for (size_t i = 0; i < p->samples.n; i++)
		if (!strcmp(profile_str(p, p->events.v[p->samples.v[i].event].name), event)) {
			sum.bytes += p->samples.v[i].value;
			sum.count += p->samples.v[i].count;
		}
	return sum;
}

static inline void heapfile_expect(const struct profile *p, const char *event, uint64_t bytes, uint64_t count)
{
	struct heapfile_sum sum = heapfile_sum(p, event);

	if (sum.bytes != bytes || sum.count != count)
		fail_msg("%s: %llu bytes in %llu, not %llu in %llu", event, (unsigned long long)sum.bytes,
			 (unsigned long long)sum.count, (unsigned long long)bytes, (unsigned long long)count);
}

/* In a format, of one event. */
static inline struct buf heapfile_export(const struct profile *p, const char *format, const char *event, struct export_options o)
{
	struct select_options s = { 0 };
	struct selection sel;
	struct quality q;
	struct buf out = { 0 };
	struct err err = { 0 };

	assert_int_equal(select_event(p, event, &s.event, NULL), 0);
	selection_make(p, &s, &sel, NULL);
	quality_measure(&q, p, &sel);
	if (export_find(format)->write(&(struct export_job){ p, &sel, &q, o }, &out, &err))
		fail_msg("%s", err.text);
	quality_done(&q);
	selection_done(&sel);
	buf_add(&out, "", 0);
	return out;
}

/* All events as folded stacks, for golden files. */
static inline struct buf heapfile_folded(const struct profile *p)
{
	struct buf all = { 0 };

	for (size_t i = 0; i < p->events.n; i++) {
		struct buf one = heapfile_export(p, "folded", profile_str(p, p->events.v[i].name),
						 (struct export_options){ .group = CALLTREE_BY_NAME, .weigh = EXPORT_WEIGH_VALUE });

		buf_printf(&all, "# %s\n%s", profile_str(p, p->events.v[i].name), one.data);
		buf_done(&one);
	}
	return all;
}
