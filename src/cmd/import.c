/*
 * import.c - foreign files into a capture.
 */

#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/reading.h"
#include "import/import.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

/* Names of all formats, for a choice. */
static const char *const *format_names(void)
{
	static const char *names[16];

	for (size_t i = 0; import_formats[i].name && i + 1 < ARRAY_LEN(names); i++)
		names[i] = import_formats[i].name;
	return names;
}

static int import(const struct command *c, int argc, char **argv)
{
	const char *output = NULL, *format = NULL;
	const struct option_spec options[] = {
		{ 'o', "output", OPTION_STRING, &output, "FILE", "the capture to make" },
		{ 0, "format", OPTION_CHOICE, &format, "FORMAT",
		  "what the files are; by default what their content shows", .choices = format_names() },
		{ 0 },
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct err err = { 0 };
	char count[32];
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (first == argc || !output) {
		log_error("import wants the files to read and -o OUT.gasflame (gasflame import --help)");
		return EXIT_USAGE;
	}
	r = captureio_read_as(argv + first, argc - first, format ? import_find(format) : NULL, &p, &err);
	if (!r)
		r = captureio_find_names(&(struct symbolize_options){ 0 }, p, &err);
	if (!r)
		r = reading_save(output, p, &err);
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
		    "Formats, told apart by their content:\n"
		    "  heap_v2 a heap dump of jemalloc (several: gasflame heap)\n"
		    "  folded  \"outer;inner;leaf 123\", a line a stack\n"
		    "\n"
		    "Of folded stacks the outermost frame is taken for the thread.",
	.example = "perf script | stackcollapse-perf.pl | gasflame import - -o perf.gasflame",
	.run = import,
	.makes_capture = true,
};
