/*
 * collapse.c - the text of `perf script` as folded stacks; takes the place of stackcollapse-perf.pl, with its options and
 * its output.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/flamegraph/inlined.h"
#include "folded/collapse/collapse.h"

static int put(void *context, const char *text, size_t n)
{
	(void)context;
	return plain_put(text, n);
}

static int read_file(struct collapse *c, const char *path, struct err *err)
{
	bool standard = !strcmp(path, "-");
	_cleanup_fd_ int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(stream_freep) struct stream *in = NULL;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	in = stream_open(fd);
	return collapse_read(c, in, err) ? err_prefix(err, "%s", standard ? "the standard input" : path) : 0;
}

/* What a person should know who sees less than expected. */
static void tell(const struct foldtable_counts *n, const char *event, bool chosen)
{
	char count[32];

	if (n->filtered && !chosen)
		log_warn("only samples of %s, the first event, are counted; %s of other events are left out (--event-filter chooses)",
			 event, str_count(count, n->filtered));
	if (n->unknown_lines)
		log_warn("ignored %s line%s that %s neither a sample nor a frame", str_count(count, n->unknown_lines),
			 n->unknown_lines == 1 ? "" : "s", n->unknown_lines == 1 ? "is" : "are");
	if (!n->samples)
		log_warn(n->filtered ? "no sample is of %s" : "there is no sample in it: this reads the text of perf script", event);
}

/* The table with the names of inlined functions, where they are asked for. */
static int write_out(struct collapse *c, const struct foldtable_options *o, struct inlined *inlined, struct err *err)
{
	struct foldtable *named = NULL, *all = collapse_end(c);
	int r = inlined ? inlined_resolve(inlined, err) : 0;

	if (r)
		return r;
	if (inlined) {
		named = foldtable_new(o);
		foldtable_join_renamed(named, all, inlined_replace, inlined);
	}
	r = foldtable_write(named ? named : all, put, NULL);
	foldtable_free(named);
	return r || fflush(stdout) ? err_errno(err, r ? -r : errno, "cannot write to the standard output") : 0;
}

static int collapse(const struct command *cmd, int argc, char **argv)
{
	struct foldtable_options o = { 0 };
	uint64_t threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	const char *event = NULL;
	bool all = false, expand = false, context = false;
	struct inlined *inlined = NULL;
	const struct option_spec options[] = {
		{ 0, "pid", OPTION_FLAG, &o.pid, .help = "process ids after the names of threads" },
		{ 0, "tid", OPTION_FLAG, &o.tid, .help = "process and thread ids after the names of threads" },
		{ 0, "kernel", OPTION_FLAG, &o.line.kernel, .help = "mark functions of the kernel with _[k]" },
		{ 0, "jit", OPTION_FLAG, &o.line.jit, .help = "mark functions made at run time with _[j]" },
		{ 0, "all", OPTION_FLAG, &all, .help = "both of these marks" },
		{ 0, "addrs", OPTION_FLAG, &o.line.addresses, .help = "addresses of functions without a name" },
		{ 0, "inline", OPTION_FLAG, &expand,
		  .help = "functions that were inlined, from the debug information of the files that the text names" },
		{ 0, "context", OPTION_FLAG, &context, .help = "with --inline: file and line after each of these names" },
		{ 0, "srcline", OPTION_FLAG, &o.source_lines,
		  .help = "the text has a line with file and line after each frame (perf script -F +srcline): put it after the name" },
		{ 0, "event-filter", OPTION_STRING, &event, "EVENT", "only samples of this event; without it, of the first one that comes" },
		{ 'j', "threads", OPTION_UINT, &threads, "N", "threads that count", .min = 1, .max = 64 },
		{ 0 },
	};
	struct foldtable_counts counts;
	struct err err = { 0 };
	struct collapse *c;
	int first, r = 0;

	if (threads < 1 || threads > 64)
		threads = threads < 1 ? 1 : 64;
	first = options_parse(cmd, options, argc, argv);
	if (first < 0)
		return -first - 1;
	if (all)
		o.line.kernel = o.line.jit = true;
	if (expand) {
		o.context = inlined = inlined_new(&o.line, context);
		o.inlined = inlined_take;
	}
	c = collapse_new(&o, event, threads);
	for (int i = first; i < argc && !r; i++)
		r = read_file(c, argv[i], &err);
	if (first == argc)
		r = read_file(c, "-", &err);
	if (!r)
		r = write_out(c, &o, inlined, &err);
	counts = foldtable_counts(collapse_end(c));
	if (!r)
		tell(&counts, collapse_event(c), event && *event);
	collapse_free(c);
	inlined_free(inlined);
	if (!r)
		return EXIT_OK;
	log_error("%s", err.text);
	return EXIT_ERROR;
}

const struct command command_collapse = {
	.name = "collapse",
	.summary = "the text of perf script as folded stacks",
	.usage = "[options] [FILE...]",
	.describe =
		"Reads what perf script prints, from files or the standard input, and writes a line for each different stack: the thread's name, "
		"the functions from the outermost on, and the sum of the periods. It takes the place of stackcollapse-perf.pl: options "
		"and output are the same, byte for byte, but for --inline, which asks no addr2line: names are gasflame's own, and where a file "
		"is gone, or has another function at the address, the names of the text stay.\n"
		"\n"
		"It uses all processors. Memory grows with the number of different stacks, not with the size of the text.",
	.example = "perf script | gasflame collapse | gasflame flamegraph > cpu.svg\n"
		   "gasflame collapse --kernel --tid perf.txt > perf.folded",
	.run = collapse,
};
