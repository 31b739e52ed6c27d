/*
 * heap.c - `heap FILE...`: jemalloc's dumps, the last one and what changed; `heap dump` and `heap detach` are
 * in heapdump.c and cmd/detach.c.
 */
#include "base/text/plain.h"
#include "cmd/heap/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/reading.h"
#include "elf/worker/worker.h"
#include "export/export.h"
#include "import/jemalloc/heapdumps.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { DEFAULT_LIMIT = 30 };

struct heap_view {
	const char *select, *base, *root, *format, *output, *what, *function, *sort;
	struct option_list symbols;
	uint64_t limit;
	bool no_inline, no_cache, debuginfod;
	const struct export_format *chosen; /* NULL: a capture */
};

/* --- dumps to a profile --- */

int heap_make(struct heapdumps *d, struct heapdumps_options o, const struct symbolize_options *names,
	      struct profile **ret, struct err *err)
{
	struct worker *w = worker_new();
	struct symbolizer *s = symbolizer_new(names, w);
	int r;

	o.worker = w;
	o.keep = symbolizer_keep_file;
	o.context = s;
	r = heapdumps_profile(d, &o, ret, err);
	if (!r)
		r = symbolize_profile(s, *ret, command_show_names, NULL, err);
	log_progress_end();
	if (!r)
		command_tell_names(*ret, 0);
	if (!r)
		heapdumps_strip(*ret);
	symbolizer_free(s);
	worker_free(w);
	return r;
}

/* --- output --- */

/* The series, a line a dump: none of its figures is a sum of others. */
static void put_series(const struct profile *p, const struct heapdumps *d, struct buf *out)
{
	buf_printf(out, "%-28s %9s %12s %12s\n", "dump", "at", "heap", "change");
	for (size_t i = 0; i < d->list.n && i < p->points.n; i++) {
		const char *slash = strrchr(d->list.v[i].path, '/');
		_cleanup_free_ char *name = plain_in_place(mem_strdup(slash ? slash + 1 : d->list.v[i].path));
		bool first = !i || d->list.v[i].pid != d->list.v[i - 1].pid;
		int64_t change = first ? 0 : p->points.v[i].value - p->points.v[i - 1].value;
		char at[32], heap[32], bytes[32], sign[40];

		snprintf(sign, sizeof(sign), "%s%s", change < 0 ? "-" : "+",
			 str_bytes(bytes, change < 0 ? -change : change));
		buf_printf(out, "%-28s %s %12s %12s\n", name, str_right(at, str_duration(at, p->points.v[i].time_ns), 9),
			   str_bytes(heap, p->points.v[i].value), first ? "" : sign);
	}
	buf_putc(out, '\n');
}

/* The quality of a recording, without its advice to record for longer, which a dump cannot follow. */
static void tell_quality(const struct quality *q, const struct selection *s)
{
	_cleanup_(buf_done) struct buf line = { 0 };

	fflush(stdout);
	quality_line(q, s, &line);
	log_info("%s", line.data);
	for (size_t i = 0; i < q->warnings.n; i++)
		if (!str_starts(q->warnings.v[i], "only ") || strstr(q->warnings.v[i], "complete"))
			log_warn("%s", q->warnings.v[i]);
}

static void tell_facts(const struct profile *p)
{
	const struct {
		const char *counter, *sentence;
	} facts[] = {
		{ KEY_HEAP_DUMPS_CUT_OFF,
		  "of the dumps end in the middle: what is missing is not in the figures" },
		{ KEY_HEAP_DUMPS_WITHOUT_MAPS,
		  "of the dumps have no list of the mapped files: their code has no names" },
		{ KEY_HEAP_LINES_NOT_UNDERSTOOD, "lines of the dumps were not understood and left out" },
	};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (profile_counter(p, facts[i].counter))
			log_warn("%llu %s", (unsigned long long)profile_counter(p, facts[i].counter),
				 facts[i].sentence);
}

/* Shows a profile as the options say, in one format. Exit code, or a negative errno. */
static int show(const struct heap_view *v, struct profile *p, const struct heapdumps *d, char **paths, int n,
		struct err *err)
{
	_cleanup_(selection_done) struct selection selection = { 0 };
	_cleanup_(quality_done) struct quality quality = { 0 };
	_cleanup_(buf_done) struct buf out = { 0 };
	struct select_options select = { .function = v->function };
	struct export_job job = { p,
				  &selection,
				  &quality,
				  { .group = CALLTREE_MERGED,
				    .limit = v->limit,
				    .no_inline = v->no_inline,
				    .weigh = EXPORT_WEIGH_VALUE } };
	const char *what = v->what ? v->what : v->base ? "growth" : "heap";
	struct winsize size;
	int r = select_event(p, what, &select.event, err);

	if (r)
		return r;
	r = selection_make(p, &select, &selection, err);
	if (r == -ENODATA && !selection.recorded.samples && (!strcmp(what, "growth") || !strcmp(what, "shrunk")))
		return err_set(err, ENODATA, "nothing %s from the first of these dumps to the last: --what heap shows what "
			       "the last one holds", !strcmp(what, "growth") ? "grew" : "shrank");
	if (r)
		return r;
	quality_measure(&quality, p, &selection);
	job.options.order = v->sort && !strcmp(v->sort, "total") ? TOP_BY_TOTAL : TOP_BY_SELF;
	if (!v->output && isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col) {
		job.options.columns = size.ws_col;
		job.options.colour = log_colour(STDOUT_FILENO);
	}
	if (v->chosen->flags & EXPORT_LINES && d->list.n > 1)
		put_series(p, d, &out);
	r = v->chosen->write(&job, &out, err);
	if (!r)
		r = captureio_write(v->output, &out, paths, n, err);
	if (r)
		return r;
	tell_quality(&quality, &selection);
	tell_facts(p);
	return EXIT_OK;
}

static int run(const struct heap_view *v, char **paths, int n, struct err *err)
{
	_cleanup_(heapdumps_done) struct heapdumps dumps = { 0 }, base = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	const struct symbolize_options names = { .paths = v->symbols.list.v, .debuginfod = v->debuginfod,
						 .no_cache = v->no_cache, .no_inline = v->no_inline };
	struct heapdumps_options o = { .root = v->root, .symbols = v->symbols.list.v };
	int r = 0;

	for (int i = 0; i < n && !r; i++)
		r = heapdumps_add(&dumps, paths[i], err);
	heapdumps_order(&dumps);
	if (!r)
		r = heapdumps_select(&dumps, v->select, err);
	if (!r && v->base) /* of a folder the last */
		r = heapdumps_add(&base, v->base, err);
	heapdumps_order(&base);
	if (!r && base.list.n)
		r = heapdump_load(&base.list.v[base.list.n - 1], err);
	if (!r && base.list.n)
		o.base = &base.list.v[base.list.n - 1];
	if (!r)
		r = heap_make(&dumps, o, &names, &p, err);
	if (r)
		return r;
	if (v->chosen)
		return show(v, p, &dumps, paths, n, err);
	r = reading_save(v->output, p, err);
	if (r)
		return r;
	tell_facts(p);
	log_info("wrote %s: %zu dump%s", v->output, dumps.list.n, dumps.list.n == 1 ? "" : "s");
	return EXIT_OK;
}

static void choose_format(struct heap_view *v)
{
	if (v->format)
		v->chosen = export_find(v->format);
	else if (v->output && str_ends(v->output, ".gasflame"))
		v->chosen = NULL;
	else
		v->chosen = v->output ? export_find_path(v->output) : NULL;
	if (!v->chosen && (v->format || !v->output || !str_ends(v->output, ".gasflame")))
		v->chosen = export_find("text");
}

static int heap(const struct command *c, int argc, char **argv)
{
	static const char *const sorts[] = { "self", "total", NULL };
	struct heap_view v = { .limit = DEFAULT_LIMIT, .select = "all" };
	const struct option_spec options[] = {
		{ 0, "select", OPTION_STRING, &v.select, "WHICH",
		  "which of the dumps: all, latest, last:N of each process, or numbers as in the files' "
		  "names, 3,7,12" },
		{ 0, "base", OPTION_STRING, &v.base, "FILE",
		  "a dump that growth is measured from; by default the first" },
		{ 0, "what", OPTION_STRING, &v.what, "EVENT",
		  "heap: what the last dump holds; growth, shrunk: its difference to the base or the "
		  "first dump; rise, fall: from dump to dump; alloc: all that was ever allocated, where "
		  "prof_accum was on; by default heap, with --base growth" },
		{ 0, "root", OPTION_STRING, &v.root, "DIR",
		  "the root of the container that wrote them: the dumps' paths are below it" },
		{ 0, "symbols", OPTION_LIST, &v.symbols, "PATH",
		  "the program, its debug file, or a folder of such files, found by name, where they are "
		  "not at their paths" },
		{ 0, "format", OPTION_CHOICE, &v.format, "FORMAT",
		  "how to show it; by default what the ending of -o says, else text",
		  .choices = export_names(false) },
		{ 'o', "output", OPTION_STRING, &v.output, "FILE",
		  "where to write, by default the standard output; a capture if it ends in .gasflame" },
		{ 'f', "function", OPTION_STRING, &v.function, "REGEX",
		  "only stacks in which a function matches" },
		{ 'n', "limit", OPTION_UINT, &v.limit, "ROWS", "rows of each table, 0 shows all" },
		{ 0, "sort", OPTION_CHOICE, &v.sort, "COLUMN", "order of the tables; by default self",
		  .choices = sorts },
		{ 0, "no-inline", OPTION_FLAG, &v.no_inline, .help = "leave out the inlined functions" },
		CACHE_OPTIONS(&v),
		{ 0 },
	};
	struct err err = { 0 };
	int first, r;

	first = options_parse(c, options, argc, argv);
	if (first < 0)
		return -first - 1;
	if (first == argc) {
		log_error("heap wants dumps of jemalloc, or dump, stats or detach TARGET (gasflame heap "
			  "--help)");
		return EXIT_USAGE;
	}
	choose_format(&v);
	r = run(&v, argv + first, argc - first, &err);
	vec_done(&v.symbols.list);
	if (r < 0) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return r;
}

static const struct command *const heap_parts[] = {
#ifdef GASFLAME_COLLECTORS
	&command_heap_dump, &command_heap_stats, &command_heap_detach,
#endif
	NULL,
};

const struct command command_heap = {
	.name = "heap",
	.summary = "read, or make, heap dumps of jemalloc",
	.usage = "[options] FILE... | dump|stats|detach [options] TARGET",
	.describe = "Reads heap dumps (heap_v2) that jemalloc wrote, or folders of them, and shows who "
		    "holds the memory: estimates for all objects, made of the samples in each dump, with "
		    "names from the files that were mapped.\n"
		    "\n"
		    "Several dumps of one process are a series, ordered by the numbers in their names: "
		    "shown is the last one, and with --what growth what it has more than the first. They "
		    "are never added up.\n"
		    "\n"
		    "`gasflame heap dump TARGET` makes dumps of a running process whose jemalloc has "
		    "profiling on, and a recording of them. `gasflame heap stats TARGET` asks a jemalloc for what it "
		    "holds, by size class, and how much of that is used. `gasflame heap detach TARGET` takes the "
		    "hooks of -e heap out of a process, where a recorder that was killed left them. Their "
		    "options: gasflame heap dump --help.",
	.example = "gasflame heap jeprof.4242.*.heap\n"
		   "gasflame heap --what growth --select last:5 -o growth.svg /profiling\n"
		   "gasflame heap --base jeprof.4242.3.m3.heap --root /var/lib/node/rootfs "
		   "jeprof.4242.9.m9.heap\n"
		   "gasflame heap dump --every 10s -d 2m reth",
	.run = heap,
	.parts = heap_parts,
};
