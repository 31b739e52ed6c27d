/*
 * import.c - foreign files into a capture.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/reading.h"
#include "cmd/reading/storeargs.h"
#include "import/import.h"
#include "import/trace/tracemarks.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "target/open.h"

enum { FORMATS_MAX = 48 };

/* Names of all formats, for a choice. */
static const char *const *format_names(void)
{
	static const char *names[FORMATS_MAX];

	for (size_t i = 0; import_formats[i].name && i + 1 < ARRAY_LEN(names); i++)
		names[i] = import_formats[i].name;
	return names;
}

/* The monotonic clock at the start of the recording, where that was on this machine since it was booted; 0 = not known. */
static uint64_t mono_of_start(const struct profile *p)
{
	uint64_t mono = clock_mono_ns(), ago = clock_wall_ns() - p->start_wall_ns;
	struct utsname u;

	return !uname(&u) && !strcmp(profile_str(p, p->host), u.nodename) && ago < mono ? mono - ago : 0;
}

/* Adds the spans of a trace to the marks. offset_ns: when its time 0 was; NULL = its clock tells. */
static int add_marks(struct profile *p, const char *path, const int64_t *offset_ns, struct err *err)
{
	struct traceclock_facts facts = { .given = offset_ns != NULL, .given_ns = offset_ns ? *offset_ns : 0,
					  .start_wall_ns = p->start_wall_ns, .start_mono_ns = mono_of_start(p), .duration_ns = p->duration_ns };
	_cleanup_(buf_done) struct buf words = { 0 };
	struct tracemarks_result result;
	struct err broken = { 0 };
	_cleanup_fd_ int fd = -1;
	int r = target_open_host(path, &fd, err);

	if (!r)
		r = tracemarks_add(p, fd, &facts, 0, &broken, &result, err);
	if (r)
		return err_prefix(err, "--marks %s", path);
	tracemarks_say(&result, path, &words);
	if (tracemarks_troubled(&result))
		log_warn("%s", words.data);
	else
		log_info("%s.", words.data);
	return 0;
}

/* Where the files of the programs are. */
struct foreign {
	const char *root;
	struct option_list symbols;
	bool debuginfod, no_cache;
	struct store_choice store;
};

static int import(const struct command *c, int argc, char **argv)
{
	const char *output = NULL, *format = NULL, *marks = NULL, *offset = NULL;
	struct foreign o = { 0 };
	const struct option_spec options[] = {
		{ 'o', "output", OPTION_STRING, &output, "FILE", "the capture to make" },
		{ 0, "format", OPTION_CHOICE, &format, "FORMAT",
		  "what the files are; by default what their content shows", .choices = format_names() },
		{ 0, "root", OPTION_STRING, &o.root, "DIR",
		  "the root of the container, or of the other machine, that the files are of: the paths in them are below it" },
		SYMBOL_OPTIONS(&o),
		STORE_OPTIONS(&o.store),
		STORE_TIMES(&o.store),
		{ 0, "marks", OPTION_STRING, &marks, "FILE",
		  "a Chrome trace of the time of the recording (reth --log.tracing-chrome, and others), or X Layer's trace.log: its "
		  "spans become marks, those with a block's number blocks; the FILE to import is a capture then" },
		{ 0, "marks-offset", OPTION_STRING, &offset, "TIME",
		  "when the trace's time 0 was, since the start of the recording: 2.5s, -250ms; by default its clock tells, or when "
		  "its file was made" },
		{ 0 },
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err = { 0 };
	char count[32];
	int64_t offset_ns = 0;
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (!command_operands.n || !output) {
		log_error("import wants the files to read and -o OUT.gasflame (gasflame import --help)");
		return EXIT_USAGE;
	}
	if (offset && !marks) {
		log_error("--marks-offset is about a trace: name it with --marks");
		return EXIT_USAGE;
	}
	if (offset && traceclock_parse_offset(offset, &offset_ns, &err) < 0) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	r = captureio_read_as(command_operands.v, command_operands.n, format ? import_find(format) : NULL,
			      &(struct import_options){ .root = o.root, .symbols = o.symbols.list.v }, &p, &err);
	if (!r && marks)
		r = add_marks(p, marks, offset ? &offset_ns : NULL, &err);
	if (!r)
		r = captureio_find_names(&(struct symbolize_options){ .paths = o.symbols.list.v, .root = o.root, .debuginfod = o.debuginfod,
								      .no_cache = o.no_cache }, p, &err);
	if (!r)
		r = reading_save(output, p, &err);
	vec_done(&o.symbols.list);
	store_choice_done(&o.store);
	if (r) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	log_info("wrote %s: %s samples, %s stacks", output, str_count(count, p->samples.n),
	         str_count((char[32]){ 0 }, p->stacks.n - 1));
	return EXIT_OK;
}

const struct command command_import = {
	.name = "import",
	.summary = "make a capture of what other tools wrote",
	.usage = "[options] FILE... -o OUT.gasflame",
	.describe = "Reads files of other formats (\"-\" is the standard input) into one capture, for "
	            "report, query and all "
		    "the others. report also reads such files directly.\n"
		    "\n"
		    "The formats (gasflame formats lists them) are told apart by their content; files that gzip, zstd or xz packed are read as they "
		    "are. Addresses without names are symbolized by the files of this machine that have the same build-id, or by those that "
		    "--symbols and --root name. Of folded stacks the outermost frame is taken for the thread.\n"
		    "\n"
		    "With --marks it adds the spans of a Chrome trace to a capture, as record --marks does: for a trace whose program "
		    "had not written its last spans when the recording ended, or that came later. With --store it makes a capture of a --target and a time in a store "
		    "(gasflame store --help).",
	.example = "gasflame import --marks trace.json reth.gasflame -o marked.gasflame\n"
		   "gasflame import perf.data -o perf.gasflame\n"
		   "gasflame import --root /var/lib/node/rootfs heaptrack.node.zst -o heap.gasflame",
	.run = import,
	.makes_capture = true,
};
