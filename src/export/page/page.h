/*
 * page.h - the HTML page: the viewer of ui/, and the data that it shows (docs/page-format.md).
 *
 * One side is a report, two are a diff (before, after). The data are all that the profiles hold, for
 * every event and without filters: the jobs' selections only set the initial view.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diff;
struct diff_job;
struct err;
struct export_job;

struct page_options {
	/* Of the data as written in the file: beyond it the lightest nodes are left out. 0: no limit. */
	uint64_t max_bytes;
	const struct diff *diff; /* of two sides; NULL = none */
	bool no_times;      /* samples have none */
	/* Of a page that is served: where a first picture is, while all of the data are made; and the list of pages. NULL =
	 * there is none. */
	const char *first_url, *list_url;
	uint32_t under;     /* only the stacks below this node of the unpruned tree; 0 = all of them */
};

/* The data alone, compressed, as gasflame serve sends them. */
int page_data(const struct export_job *sides, size_t n, const struct page_options *o, struct buf *out,
	      struct err *err);
/* The page. data_url: where it gets its data, then no sides are needed; NULL: they are in the page. */
int page_write(const struct export_job *sides, size_t n, const struct page_options *o, const char *data_url,
	       struct buf *out, struct err *err);
/* A comparison as a page (export_format.diff); as large as the job's options allow. */
int page_write_diff(const struct diff_job *job, struct buf *out, struct err *err);
