#include "export/page/page.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/subsystem/classify.h"
#include "base/codec/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/diff/difftext.h"
#include "export/export.h"
#include "export/page/pagedata.h"
#include "page.html.h"
#include "profile/profile.h"
#include "served.html.h"

enum {
	EVENTS_MAX = 256,
	TRIES = 12,
	SLOTS_LEAST = 1000, /* into which a recording's time is cut, however small the page must be */
};

/* --- the data --- */

static int check(const struct pagetree *t, struct err *err)
{
	if (t->events.n > EVENTS_MAX)
		return err_set(err, E2BIG,
			       "%zu different events are more than a page can hold (%d): record "
			       "fewer, or choose another format",
			       t->events.n, EVENTS_MAX);
	return 0;
}

static void put_u32(struct buf *b, uint32_t v)
{
	unsigned char bytes[] = { v, v >> 8, v >> 16, v >> 24 };

	buf_add(b, bytes, sizeof(bytes));
}

/* The head with its size before it, then the columns as the head lists them. */
static int join(const struct buf *head, const struct page_columns *c, struct buf *out)
{
	struct buf packed = { 0 };
	int r = page_pack(head->data, head->n, &packed);

	put_u32(out, packed.n);
	buf_add(out, packed.data, packed.n);
	buf_done(&packed);
	for (size_t i = 0; i < c->list.n; i++)
		buf_add(out, c->list.v[i].packed.data, c->list.v[i].packed.n);
	return r;
}

static size_t packed_size(const struct page_columns *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->list.n; i++)
		n += c->list.v[i].packed.n;
	return n;
}

static int make_columns(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	page_columns_done(c);
	page_columns_make(c, t, s);
	return page_columns_pack(c);
}

/* How much of the data are times of samples. */
static bool mostly_times(const struct page_columns *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->list.n; i++)
		if (c->list.v[i].is_time)
			n += c->list.v[i].packed.n;
	return n * 2 > packed_size(c);
}

/*
 * Leaves out the lightest nodes until the rest fits, and coarsens the times where they take most of the
 * room. Sizes shrink about as the number of nodes does: two or three tries are enough. part is the rest
 * where something was left out; the result is all or part.
 */
static int fit(struct page_columns *c, const struct pagetree *t, struct pagestacks *all,
	       struct pagestacks *part, uint64_t max, const struct pagestacks **ret)
{
	size_t keep = all->nodes.n;
	int r = make_columns(c, t, all);

	*ret = all;
	for (int i = 0; !r && max && i < TRIES && packed_size(c) > max; i++) {
		double ratio = (double)max / packed_size(c);
		uint64_t slot_ns = pagestacks_next_slot(pagestacks_next_slot(all->slot_ns));

		if (mostly_times(c) && slot_ns < t->duration_ns / SLOTS_LEAST) {
			pagestacks_coarsen(all, slot_ns);
			ratio = sqrt(ratio);
		}
		keep = MIN(keep, (*ret)->nodes.n) * ratio * 0.9;
		pagestacks_done(part);
		if (keep < all->nodes.n) {
			pagestacks_prune(t, all, keep, part);
			*ret = part;
		}
		r = make_columns(c, t, *ret);
	}
	return r;
}

/* Puts the data of a tree, or of the part below one of its nodes. */
static int tree_data(const struct export_job *sides, size_t n, const struct page_options *o,
		     struct pagetree *t, struct buf *out, struct err *err)
{
	struct pagestacks below = { 0 }, part = { 0 }, *all = &t->stacks;
	const struct pagestacks *shown;
	struct page_columns columns = { 0 };
	_cleanup_(buf_done) struct buf head = { 0 };
	int r;

	if (o->under >= t->stacks.nodes.n)
		return err_set(err, ENOENT, "there is no node %u among %zu", o->under, t->stacks.nodes.n);
	if (o->under) {
		pagestacks_slice(&t->stacks, o->under, &below);
		all = &below;
	}
	r = fit(&columns, t, all, &part, o->max_bytes, &shown);
	page_head(&head, sides, n, o, t, shown, &columns);
	if (!r)
		r = join(&head, &columns, out);
	if (r)
		err_errno(err, -r, "cannot compress the data of the page");
	page_columns_done(&columns);
	pagestacks_done(&below);
	pagestacks_done(&part);
	return r;
}

int page_data(const struct export_job *sides, size_t n, const struct page_options *o, struct buf *out,
	      struct err *err)
{
	struct causes own[PAGETREE_SIDES] = { 0 };
	struct pagetree_side from[PAGETREE_SIDES];
	struct patterns patterns;
	struct pagetree tree;
	int r;

	/* Callers without cause patterns get the built-in ones. */
	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	for (size_t i = 0; i < n; i++) {
		from[i] = (struct pagetree_side){ sides[i].profile, sides[i].selection->options.causes };
		if (from[i].causes)
			continue;
		causes_init(&own[i], sides[i].profile, &patterns);
		from[i].causes = &own[i];
	}
	pagetree_make(&tree, from, n, &(struct pagetree_options){ .no_inline = sides[0].options.no_inline, .no_times = o->no_times });
	if (sides[n - 1].subsystems)
		tree.subsystems = sides[n - 1].subsystems->table;
	r = check(&tree, err);
	if (!r)
		r = tree_data(sides, n, o, &tree, out, err);
	pagetree_done(&tree);
	for (size_t i = 0; i < n; i++)
		causes_done(&own[i]);
	patterns_done(&patterns);
	return r;
}

/* --- the page --- */

/* Copies the page up to a marker, and returns what follows it. */
static const char *copy_until(struct buf *out, const char *from, const char *marker)
{
	const char *at = strstr(from, marker);

	buf_add(out, from, at - from);
	return at + strlen(marker);
}

static void put_url(struct buf *out, const char *name, const char *url)
{
	if (!url)
		return;
	buf_printf(out, " %s=\"", name);
	buf_xml(out, url);
	buf_putc(out, '"');
}

int page_write(const struct export_job *sides, size_t n, const struct page_options *o, const char *data_url,
	       struct buf *out, struct err *err)
{
	_cleanup_(buf_done) struct buf data = { 0 };
	const char *rest;
	int r = 0;

	if (!data_url) {
		struct page_options inside = *o;

		/* Base64 takes four bytes for three. */
		inside.max_bytes = o->max_bytes / 4 * 3;
		r = page_data(sides, n, &inside, &data, err);
	}
	if (r < 0)
		return r;
	rest = copy_until(out, data_url ? served_html : page_html, "@CONNECT@");
	buf_puts(out, data_url ? "'self'" : "'none'");
	rest = copy_until(out, rest, "@DATA@");
	buf_puts(out, "<script type=\"text/plain\" id=\"data\"");
	if (data_url) {
		put_url(out, "data-url", data_url);
		put_url(out, "data-first", o->first_url);
		put_url(out, "data-list", o->list_url);
		buf_putc(out, '>');
	} else {
		buf_putc(out, '>');
		base64_put(out, data.data, data.n, false);
	}
	buf_puts(out, "</script>");
	buf_puts(out, rest);
	return 0;
}

int html_write(const struct export_job *job, struct buf *out, struct err *err)
{
	return page_write(job, 1, &(struct page_options){ .max_bytes = job->options.max_bytes }, NULL, out,
			  err);
}

int page_write_diff(const struct diff_job *job, struct buf *out, struct err *err)
{
	const struct export_job sides[] = { *job->before, *job->after };

	return page_write(sides, 2, &(struct page_options){ .max_bytes = job->options.max_bytes, .diff = job->diff }, NULL,
			  out, err);
}
