#include "export/section/memtext.h"

#include <stdio.h>

#include "analyze/memory/rss.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "export/report/table.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { SPARK = 16, SPARK_LOOKS = 3, NAME_MINIMUM = 16 };

static char *bytes_of(char out[32], int64_t bytes)
{
	return str_bytes(out, bytes > 0 ? bytes : 0);
}

static void heading(const struct memtext_options *o, struct buf *out, const char *text)
{
	buf_printf(out, "\n%s%s%s\n", o->colour ? TABLE_BOLD : "", text, o->colour ? TABLE_NORMAL : "");
}

/* --- the table --- */

/* From the least to the most of the series: "▁▃▇█". */
static void put_spark(const struct rss *r, const struct profile *p, uint32_t series, struct buf *out)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	double v[SPARK], least, most;
	size_t n = series == UINT32_MAX ? 0 : rss_columns(r, p, series, v, SPARK);

	for (size_t i = 0; i < n; i++) {
		least = !i || v[i] < least ? v[i] : least;
		most = !i || v[i] > most ? v[i] : most;
	}
	for (size_t i = 0; i < SPARK; i++)
		buf_puts(out,
			 i >= n ? " "
				: bars[most > least ? (int)((v[i] - least) / (most - least) * 7.999) : 0]);
	buf_puts(out, "  ");
}

struct layout {
	const struct rss *r;
	const struct profile *p;
	const struct memtext_options *o;
	bool range, spark;
	unsigned used; /* columns before the name */
};

static struct layout layout_of(const struct rss *r, const struct profile *p, const struct memtext_options *o)
{
	struct layout l = { .r = r, .p = p, .o = o, .range = r->looks > 2 };

	l.spark = o->columns && r->looks >= SPARK_LOOKS;
	l.used = 2 + 10 + 11 + (l.range ? 20 : 0) + (l.spark ? SPARK + 2 : 0);
	return l;
}

/* Puts the name in the rest of the line, then as much of the note as fits. */
static void put_name(const struct layout *l, struct buf *out, const struct rss_row *row)
{
	unsigned left = l->o->columns ? MAX(l->o->columns, l->used + NAME_MINIMUM) - l->used : 0;
	_cleanup_(buf_done) struct buf clean = { 0 }, name = { 0 }, note = { 0 };

	cleantext_put(&clean, row->label);
	buf_printf(&name, "%s%s%s", row->kind == RSS_DETAIL ? "  " : "", clean.data ? clean.data : "",
		   row->estimate ? " (estimate)" : "");
	if (left)
		cleantext_cut(out, name.data, left);
	else
		buf_puts(out, name.data);
	if (*row->note && (!left || cleantext_columns(name.data) + 6 < left)) {
		if (left)
			cleantext_cut(&note, row->note, left - cleantext_columns(name.data) - 2);
		buf_printf(out, "  %s%s%s", l->o->colour ? TABLE_DIM : "", left ? note.data : row->note,
			   l->o->colour ? TABLE_NORMAL : "");
	}
	buf_putc(out, '\n');
}

static void put_row(const struct layout *l, struct buf *out, const struct rss_row *row)
{
	const struct rss_series *s = row->series == UINT32_MAX ? NULL : &l->r->series.v[row->series];
	char a[32], b[32], c[32], share[32];

	buf_printf(out, "  %9s %9s ", bytes_of(a, row->bytes), str_share(share, str_percent(row->bytes, l->r->rss)));
	if (l->range)
		buf_printf(out, "%9s %9s ", s ? bytes_of(b, s->least) : "", s ? bytes_of(c, s->most) : "");
	buf_putc(out, ' ');
	if (l->spark)
		put_spark(l->r, l->p, row->series, out);
	put_name(l, out, row);
}

static void put_parts(const struct layout *l, struct buf *out)
{
	const struct rss_series *rss = rss_find(l->r, KEY_MEM_RSS);
	size_t files = 0, hidden = 0;
	int64_t hidden_bytes = 0;

	buf_printf(out, "  %9s %9s %s %s\n", "bytes", "of RSS", l->range ? "    least      most " : "",
		   l->spark ? "over time" : "");
	for (size_t i = 0; i < l->r->rows.n; i++) {
		const struct rss_row *row = &l->r->rows.v[i], *next = row + 1;
		bool last = i + 1 == l->r->rows.n || next->kind != RSS_DETAIL;

		if (row->kind == RSS_DETAIL && l->o->limit && files++ >= l->o->limit) {
			hidden++;
			hidden_bytes += row->bytes;
		} else {
			put_row(l, out, row);
		}
		if (hidden && last) {
			put_row(l, out,
				&(struct rss_row){ .label = "other files",
						   .kind = RSS_DETAIL,
						   .note = "",
						   .bytes = hidden_bytes,
						   .series = UINT32_MAX });
			hidden = 0;
		}
	}
	put_row(l, out, &(struct rss_row){ .label = "= RSS", .note = "", .bytes = l->r->rss,
					   .series = rss ? rss - l->r->series.v : UINT32_MAX });
}

/* --- beside it --- */

static void put_gauge(const struct rss *r, struct buf *out, const char *series, const char *label,
		      const char *meaning)
{
	const struct rss_series *s = rss_find(r, series);
	char a[32];

	if (s)
		buf_printf(out, "  %9s  %-14s %s\n", bytes_of(a, s->last), label, meaning);
}

static void put_beside(const struct rss *r, const struct memtext_options *o, struct buf *out)
{
	heading(o, out, "Beside it");
	put_gauge(r, out, KEY_MEM_PSS, "PSS", "RSS, with pages that processes share divided among them");
	put_gauge(r, out, KEY_MEM_PEAK, "peak of RSS", "since the process was started");
	put_gauge(r, out, KEY_MEM_ANON, "anonymous", "of RSS: not pages of files or of shared memory");
	put_gauge(r, out, KEY_MEM_SHARED_PAGES, "shared", "of RSS: mapped by other processes, too");
	put_gauge(r, out, KEY_MEM_HUGE_PAGES, "huge pages", "of RSS: in transparent huge pages");
	put_gauge(r, out, KEY_MEM_LOCKED, "locked", "of RSS: cannot be paged out (mlock)");
	put_gauge(r, out, KEY_MEM_LAZY_FREE, "lazily free",
		  "of RSS: given back (MADV_FREE), the kernel takes it when it needs it");
	put_gauge(r, out, KEY_MEM_HUGETLB, "hugetlbfs", "reserved huge pages, not in RSS");
	put_gauge(r, out, KEY_MEM_SWAP, "swap", "not in RSS");
	put_gauge(r, out, KEY_MEM_PAGE_TABLES, "page tables", "the kernel's, for this process; not in RSS");
	put_gauge(r, out, KEY_MEM_VIRTUAL, "virtual size", "address space: most of it need not be memory");
}

static void put_group(const struct rss *r, const struct memtext_options *o, struct buf *out)
{
	int64_t usage = rss_last(r, KEY_CGROUP_MEMORY_USAGE, 0), limit = rss_last(r, KEY_CGROUP_MEMORY_LIMIT, -1);
	struct buf path = { 0 };
	char a[32], b[32], c[32], d[32];

	if (!*r->group) {
		heading(o, out, "Cgroup");
		buf_puts(out,
			 "  none of its own with a memory controller: the machine's memory is its limit\n");
		return;
	}
	cleantext_put(&path, r->group);
	heading(o, out, "Cgroup");
	buf_printf(out, "  %s (version %u)\n", path.data, r->group_version);
	buf_done(&path);
	if (limit >= 0)
		buf_printf(out, "  %9s  usage, %.1f %% of the limit of %s\n", bytes_of(a, usage),
			   limit ? 100.0 * usage / limit : 100, bytes_of(b, limit));
	else
		buf_printf(out, "  %9s  usage, without a limit\n", bytes_of(a, usage));
	buf_printf(out, "  %9s  anonymous, %s cache of files, %s the kernel's, %s swap\n",
		   bytes_of(a, rss_last(r, KEY_CGROUP_MEMORY_ANON, 0)),
		   bytes_of(b, rss_last(r, KEY_CGROUP_MEMORY_FILE, 0)),
		   bytes_of(c, rss_last(r, KEY_CGROUP_MEMORY_KERNEL, 0)),
		   bytes_of(d, rss_last(r, KEY_CGROUP_MEMORY_SWAP, 0)));
	put_gauge(r, out, KEY_CGROUP_MEMORY_PEAK, "peak of usage", "since the group was made");
	put_gauge(r, out, KEY_CGROUP_MEMORY_HIGH, "high", "from there on it is slowed down");
	buf_printf(out,
		   "  %9s  times the limit was hit, %s kills by the OOM killer, since the group was made\n",
		   str_count(a, rss_last(r, KEY_CGROUP_MEMORY_LIMIT_HITS, 0)),
		   str_count(b, rss_last(r, KEY_CGROUP_MEMORY_OOM_KILLS, 0)));
}

static void put_stall(const struct rss *r, struct buf *out, const char *some, const char *full, const char *whose)
{
	double a = rss_rate(r, some), b = rss_rate(r, full);

	if (a >= 0)
		buf_printf(out,
			   "  stalled for memory: some tasks %.2f %%, all tasks %.2f %% of the time (%s)\n",
			   a / 1e4, MAX(b, 0) / 1e4, whose);
}

static void put_rates(const struct rss *r, const struct memtext_options *o, struct buf *out)
{
	double minor = rss_rate(r, KEY_MEM_FAULTS_MINOR), major = rss_rate(r, KEY_MEM_FAULTS_MAJOR);
	double reclaimed = rss_rate(r, KEY_MACHINE_RECLAIMED), stalls = rss_rate(r, KEY_MACHINE_RECLAIM_STALLS);
	double own = rss_rate(r, KEY_CGROUP_MEMORY_RECLAIMED);
	char a[32], text[96];

	if (minor < 0)
		return;
	snprintf(text, sizeof(text), "Faults and reclaim, over %s", str_duration(a, r->end_ns - r->begin_ns));
	heading(o, out, text);
	buf_printf(out, "  %.1f minor and %.1f major page faults a second\n", minor, MAX(major, 0));
	if (reclaimed >= 0)
		buf_printf(out,
			   "  %s a second taken back on the whole machine, %.1f times a second a thread had "
			   "to do it "
			   "itself\n",
			   bytes_of(a, reclaimed), MAX(stalls, 0));
	if (own >= 0)
		buf_printf(out, "  %s a second taken back from the cgroup\n", bytes_of(a, own));
	put_stall(r, out, KEY_PRESSURE_MEMORY_SOME, KEY_PRESSURE_MEMORY_FULL, "the whole machine");
	put_stall(r, out, KEY_CGROUP_MEMORY_SOME, KEY_CGROUP_MEMORY_FULL, "the target's cgroup");
}

static void put_jemalloc(const struct rss *r, const struct memtext_options *o, struct buf *out)
{
	int64_t allocated = rss_last(r, KEY_JEMALLOC_ALLOCATED, -1),
		resident = rss_last(r, KEY_JEMALLOC_RESIDENT, -1);
	char a[32];

	if (allocated < 0 && resident < 0)
		return;
	heading(o, out, "jemalloc, by its own statistics");
	put_gauge(r, out, KEY_JEMALLOC_ALLOCATED, "allocated", "by the program");
	put_gauge(r, out, KEY_JEMALLOC_ACTIVE, "active", "pages with anything allocated in them");
	put_gauge(r, out, KEY_JEMALLOC_METADATA, "metadata", "jemalloc's own");
	put_gauge(r, out, KEY_JEMALLOC_RESIDENT, "resident",
		  "at most: active, metadata, and free pages not given back");
	put_gauge(r, out, KEY_JEMALLOC_MAPPED, "mapped", "");
	put_gauge(r, out, KEY_JEMALLOC_RETAINED, "retained", "address space kept for later, without memory");
	if (r->fragmentation >= 0)
		buf_printf(out, "  %9s  fragmentation  1 - allocated / active\n", str_share(a, 100 * r->fragmentation));
	if (allocated >= 0 && resident >= 0)
		buf_printf(out, "  %9s  slack          resident less allocated\n",
			   bytes_of(a, resident - allocated));
}

/* The part of a heap recording that is about RSS. */
static void put_heap(const struct rss *r, const struct profile *p, const struct memtext_options *o,
		     struct buf *out)
{
	uint64_t rounding = profile_counter(p, KEY_HEAP_ROUNDING_BYTES);
	char a[32], b[32];

	if (!rss_find(r, KEY_HEAP_RESIDENT))
		return;
	heading(o, out, r->exact ? "Live heap" : "Live heap, estimated from sampled objects");
	buf_printf(out, "  %9s  alive%s, %s of it resident\n", bytes_of(a, rss_last(r, KEY_HEAP_LIVE, 0)),
		   r->from_start ? "" : " of what was allocated since the recording began",
		   bytes_of(b, rss_last(r, KEY_HEAP_RESIDENT, 0)));
	if (rounding)
		buf_printf(out, "  %9s  of the slack: sizes rounded up to the allocator's size classes\n",
			   bytes_of(a, rounding));
}

static void put_title(const struct rss *r, const struct profile *p, const struct memtext_options *o,
		      struct buf *out)
{
	int64_t processes = rss_last(r, KEY_MEM_PROCESSES, 1), threads = rss_last(r, KEY_MEM_THREADS, 0);
	char a[32], b[32], c[32];
	_cleanup_free_ char *when =
		r->looks > 2 ? mem_printf(", after %s", str_duration(a, r->moment_ns)) : mem_strdup("");
	_cleanup_free_ char *text =
		mem_printf("Resident memory: %s, %s process%s, %s thread%s%s", bytes_of(a, r->rss),
			   str_count(b, processes), processes == 1 ? "" : "es", str_count(c, threads),
			   threads == 1 ? "" : "s", when);

	heading(o, out, text);
	if (processes > 1)
		buf_puts(out, "  Pages that these processes share are counted in each of them; PSS counts "
			      "them once.\n");
}

void memtext_table(const struct rss *r, const struct profile *p, const struct memtext_options *o,
		   struct buf *out)
{
	struct layout l = layout_of(r, p, o);

	if (!r->recorded)
		return;
	put_title(r, p, o, out);
	if (r->walked)
		put_parts(&l, out);
	else
		buf_puts(out, "  Its mappings may not be read, so that parts are not known: run gasflame as "
			      "root, or as "
			      "the process's user\n");
	put_heap(r, p, o, out);
	put_jemalloc(r, o, out);
	put_beside(r, o, out);
	put_group(r, o, out);
	put_rates(r, o, out);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	const struct memtext_options o = { job->options.limit, job->options.columns, job->options.colour };
	struct rss r;

	rss_build(&r, job->profile, job->selection->options.from_ns, job->selection->options.to_ns);
	memtext_table(&r, job->profile, &o, out);
	rss_done(&r);
}

const struct section section_memory = {
	.name = "memory", .text = put_text, .json = memjson_put, .page = mempage_put, .json_after_tables = true
};
