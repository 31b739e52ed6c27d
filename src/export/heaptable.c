/*
 * heaptable.c - a heap by function in the columns that readers of jemalloc's dumps know:
 *
 *	Total: 43.8 MB
 *	    32.8  74.8%  74.8%     32.8  74.8% leak_some
 *
 * megabytes of the function itself, their share, the cumulative share, megabytes with its callees, their
 * share.
 */
#include "analyze/select.h"
#include "analyze/tree/top.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"

int heaptable_write(const struct export_job *job, struct buf *out, struct err *err)
{
	static const double mega = 1 << 20;
	uint64_t all, so_far = 0;
	struct top top;
	size_t rows;

	top_build(&top, job->profile, job->selection, job->options.no_inline, job->options.order);
	all = top.all.value;
	rows = job->options.limit ? MIN(top.functions.n, job->options.limit) : top.functions.n;
	buf_printf(out, "Total: %.1f MB\n", all / mega);
	for (size_t i = 0; i < rows; i++) {
		const struct top_row *r = &top.functions.v[i];
		struct buf name = { 0 };

		so_far += r->self.value;
		cleantext_put(&name, r->name);
		buf_printf(out, "%8.1f %5.1f%% %5.1f%% %8.1f %5.1f%% %s\n", r->self.value / mega,
			   str_percent(r->self.value, all), str_percent(so_far, all), r->total.value / mega,
			   str_percent(r->total.value, all), name.n ? name.data : "");
		buf_done(&name);
	}
	top_done(&top);
	return 0;
}
