/* exporting.h - a whole export in one call, for tests. */
#pragma once

#include "analyze/quality.h"
#include "base/buf.h"
#include "export/export.h"
#include "sample.h"

static inline struct buf export_all(const struct profile *p, const char *format, struct export_options o)
{
	struct selection sel;
	struct quality q;
	struct buf out = { 0 };

	assert_int_equal(selection_make(p, &(struct select_options){ 0 }, &sel, NULL), 0);
	quality_measure(&q, p, &sel);
	assert_int_equal(export_find(format)->write(&(struct export_job){ p, &sel, &q, o }, &out, NULL), 0);
	quality_done(&q);
	selection_done(&sel);
	buf_add(&out, "", 0); /* a string, even if it is empty */
	return out;
}

/* Names that want to break out of every format. */
static inline struct sample export_hostile(void)
{
	struct sample s = sample_empty();

	s.p->target = profile_string(s.p, "</text><script>alert(1)</script>\n\033[31m");
	sample_add(&s, s.main,
		   sample_stack(&s, "a\\;b;c\nd 99;</title><script>alert('x')</script>;]]>&amp\\;\"';"
				    "\033]0\\;title\007;\xff\xc0\x80\xed\xa0\x80;\xef\xbf\xbe;\xe2\x80\xaegnp;;"
				    "operator<(int);a<b;>>;)("),
		   10);
	sample_add(&s, builder_thread(s.p, 0, 300, "x\";y\n<"), sample_stack(&s, "\xe6\xbc\xa2\xe5\xad\x97"),
		   10);
	return s;
}

/* A stack of n frames. */
static inline struct sample export_deep(size_t n)
{
	struct sample s = sample_empty();
	uint32_t stack = 0, frame = profile_named_frame(s.p, s.node, FRAME_USER, "recurse");

	while (n--)
		stack = profile_stack(s.p, stack, frame);
	sample_add(&s, s.main, stack, 3);
	return s;
}
