/*
 * verdicttext.c - the verdict: sentences on what costs the most, before all tables.
 */
#include <string.h>

#include "analyze/wait/verdict.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"

/* Sentences, broken between words. */
static void put_wrapped(const struct export_job *job, const char *text, struct buf *out)
{
	size_t width = job->options.columns ? MAX(job->options.columns, 40) : 100, used = 0;
	struct buf clean = { 0 };
	const char *s;

	cleantext_put(&clean, text);
	for (s = clean.data; *s;) {
		size_t word = strcspn(s, " ");

		if (used && used + 1 + word > width) {
			buf_putc(out, '\n');
			used = 0;
		} else if (used) {
			buf_putc(out, ' ');
			used++;
		}
		buf_add(out, s, word);
		used += word;
		s += word;
		s += strspn(s, " ");
	}
	buf_putc(out, '\n');
	buf_done(&clean);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	if (!job->verdict || !job->verdict->sentences.n)
		return;
	table_title(job, out, "Verdict");
	for (size_t i = 0; i < job->verdict->sentences.n; i++)
		put_wrapped(job, job->verdict->sentences.v[i], out);
}

/* Its JSON is among the members of the waits. */
const struct section section_verdict = { .name = "verdict", .text = put_text, .text_before_functions = true };
