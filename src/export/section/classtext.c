#include "export/section/classtext.h"


#include "analyze/memory/rss.h"
#include "analyze/memory/sizeclass.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/section/memtext.h"
#include "export/section/section.h"
#include "export/report/table.h"
#include "profile/profile.h"

enum { TOP = 10 };

static double used_percent(const struct sizeclass *c)
{
	return str_percent(MIN(sizeclass_used(c), c->held_bytes), c->held_bytes);
}

static void heading(struct buf *out, bool colour, const char *text)
{
	buf_printf(out, "\n%s%s%s\n", colour ? TABLE_BOLD : "", text, colour ? TABLE_NORMAL : "");
}

/* --- by the allocator's own statistics --- */

static void put_row(struct buf *out, const char *name, const char *objects, const struct sizeclass *c)
{
	char used[32], slabs[32], held[32], waste[32], share[32];

	buf_printf(out, "  %10s %12s %10s %9s %10s %7s %10s\n", name, objects, str_bytes(used, sizeclass_used(c)),
		   c->slabs ? str_count(slabs, c->slabs) : "-", str_bytes(held, c->held_bytes), str_share(share, used_percent(c)),
		   str_bytes(waste, sizeclass_waste(c)));
}

static void put_stats(const struct sizeclasses *c, size_t limit, bool colour, struct buf *out)
{
	size_t n = limit ? MIN(limit, c->list.n) : c->list.n;
	char a[32], b[32];

	heading(out, colour, "Size classes, by jemalloc's own statistics");
	buf_printf(out, "  %10s %12s %10s %9s %10s %7s %10s\n", "class", "objects", "allocated", "slabs", "held", "used",
		   "waste");
	for (size_t i = 0; i < n; i++)
		put_row(out, str_count(a, c->list.v[i].size), str_count(b, c->list.v[i].objects), &c->list.v[i]);
	if (n < c->list.n)
		buf_printf(out, "  %10s the rest of %zu classes wastes less\n", "...", c->list.n);
	put_row(out, "all", "", &c->all);
	if (c->cached_bytes)
		buf_printf(out, "  %s of the allocated are free objects that threads keep for themselves.\n",
			   str_bytes(a, c->cached_bytes));
}

/* --- estimates without statistics --- */

static const char *why_not(const struct sizeclasses *c)
{
	if (c->without_stats)
		return "The jemalloc of the target is built without statistics, or is older than 5.0";
	if (c->without_answer)
		return "The target allocated nothing while jemalloc was to be asked for its statistics";
	return "The allocator has no statistics that can be asked for";
}

static void put_estimate(const struct sizeclasses *c, const struct rss *r, size_t limit, bool colour, struct buf *out)
{
	size_t n = limit ? MIN(limit, r->classes.n) : r->classes.n;
	char a[32], b[32], d[32];

	heading(out, colour, "Size classes, estimated from sampled objects");
	buf_printf(out, "  %s: what is rounded up to a class is known, what free objects hold is not.\n", why_not(c));
	buf_printf(out, "  %10s %10s %10s\n", "class", "alive", "rounding");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "  %10s %10s %10s\n", str_count(a, r->classes.v[i].size),
			   str_bytes(b, r->classes.v[i].live_bytes), str_bytes(d, r->classes.v[i].rounding_bytes));
}

void classtext_table(const struct profile *p, size_t limit, bool colour, struct buf *out)
{
	struct sizeclasses c;
	struct rss r;

	sizeclasses_read(&c, p);
	rss_build(&r, p, 0, 0);
	if (c.list.n)
		put_stats(&c, limit, colour, out);
	else if (r.classes.n)
		put_estimate(&c, &r, limit, colour, out);
	rss_done(&r);
	sizeclasses_done(&c);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	classtext_table(job->profile, job->options.limit ? MIN(job->options.limit, (size_t)TOP) : 0, job->options.colour, out);
}

/* --- JSON --- */

static void json_class(struct json *j, const struct sizeclass *c)
{
	json_put_uints(j, { "allocated_bytes", sizeclass_used(c) }, { "slabs", c->slabs },
		       { "held_bytes", c->held_bytes });
	json_put_fixed(j, "used_percent", used_percent(c), 2);
	json_put_uint(j, "waste_bytes", sizeclass_waste(c));
	json_close(j);
}

static void json_stats(struct json *j, const struct sizeclasses *c)
{
	json_put_string(j, "source", "jemalloc");
	json_put_bool(j, "estimate", false);
	json_put_uint(j, "thread_cache_bytes", c->cached_bytes);
	json_open_object_line(j, "all", 1);
	json_class(j, &c->all);
	json_open_array_line(j, "classes", 1);
	for (size_t i = 0; i < c->list.n; i++) {
		json_open_row(j, 2);
		json_put_uints(j, { "size", c->list.v[i].size }, { "objects", c->list.v[i].objects });
		json_class(j, &c->list.v[i]);
	}
	json_close(j);
}

static void json_estimate(struct json *j, const struct sizeclasses *c, const struct rss *r)
{
	json_put_string(j, "source", "samples");
	json_put_bool(j, "estimate", true);
	json_put_string(j, "reason", why_not(c));
	json_open_array_line(j, "classes", 1);
	memjson_classes(r, j);
	json_close(j);
}

void classtext_json(const struct profile *p, struct json *j)
{
	struct sizeclasses c;
	struct rss r;

	sizeclasses_read(&c, p);
	rss_build(&r, p, 0, 0);
	if (c.list.n || r.classes.n) {
		json_open_object_line(j, "allocator", 0);
		if (c.list.n)
			json_stats(j, &c);
		else
			json_estimate(j, &c, &r);
		json_close(j);
	}
	rss_done(&r);
	sizeclasses_done(&c);
}

static void put_json(const struct export_job *job, struct json *j)
{
	classtext_json(job->profile, j);
}

const struct section section_allocator = {
	.name = "allocator", .text = put_text, .json = put_json, .json_after_tables = true
};
