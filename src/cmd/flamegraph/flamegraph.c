/*
 * flamegraph.c - folded stacks in, a picture out: takes the place of flamegraph.pl in people's scripts, with
 * its options, its defaults and its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/flamegraph/encoding.h"
#include "export/svg/flamegraph.h"
#include "folded/folded.h"
#include "folded/stacklist.h"

#define PALETTE_FILE "palette.map"

enum { TEXT_LIMIT = 256 << 20 };

struct request {
	struct flamegraph_options o;
	const char *output, *min_width, *name_attributes;
	uint64_t width, row_height;
	bool hash, random, palette_map, reverse;
	struct palette_map map;
	struct flamegraph_attributes attributes;
};

/* --- options as Perl takes them --- */

static const struct option_spec *find_option(const struct option_spec *options, const char *name, size_t n)
{
	const struct option_spec *found = NULL;

	for (const struct option_spec *o = options; o->name; o++) {
		if (strncasecmp(o->name, name, n))
			continue;
		if (!o->name[n])
			return o;
		if (found)
			return NULL; /* it could be both */
		found = o;
	}
	return found;
}

/*
 * Option names may be abbreviated as long as they are unambiguous, have one hyphen, and
 * be in capitals: --color=java, -title x. An empty text is the default. This rewrites
 * them for options_parse(). The new arguments live in pool.
 */
static int plain_arguments(const struct option_spec *options, int argc, char **argv, struct arena *pool)
{
	int kept = 1;

	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + strspn(argv[i], "-"), *value = strchr(name, '=');
		size_t n = value ? (size_t)(value - name) : strlen(name);
		const struct option_spec *o = NULL;
		_cleanup_free_ char *made = NULL;

		if (!strcmp(argv[i], "--")) {
			while (i < argc)
				argv[kept++] = argv[i++];
			break;
		}
		if (argv[i][0] == '-' && n > 1 && name - argv[i] <= 2)
			o = find_option(options, name, n);
		if (!o || (o->type != OPTION_FLAG && !value && i + 1 == argc)) {
			argv[kept++] = argv[i];
			continue;
		}
		if (o->type != OPTION_FLAG)
			value = value ? value + 1 : argv[++i];
		if (o->type == OPTION_STRING && !*value)
			continue;
		made = o->type == OPTION_FLAG ? mem_printf("--%s%s", o->name, value ? value : "")
		                              : mem_printf("--%s=%s", o->name, value);
		argv[kept++] = arena_strndup(pool, made, strlen(made));
	}
	return kept;
}

/* Pixels, or percent of all counts. */
static int parse_min_width(struct flamegraph_options *o, const char *text)
{
	size_t n = strlen(text);
	_cleanup_free_ char *number = mem_strdup(text);

	o->min_percent = n && text[n - 1] == '%';
	if (o->min_percent)
		number[n - 1] = 0;
	return str_parse_number(number, &o->min_width);
}

/* Checks options beyond their types. */
static int check(struct request *r, struct err *err)
{
	const char *ends[2];

	r->o.width = r->width;
	r->o.row_height = r->row_height;
	if (r->min_width && parse_min_width(&r->o, r->min_width))
		return err_set(err, EINVAL, "--minwidth wants pixels like 0.5, or a share like 1%%, not %s",
		               r->min_width);
	if (!palette_background(r->o.background, r->o.palette, ends))
		return err_set(err, EINVAL, "--bgcolors wants yellow, blue, green, grey or #rrggbb, not %s",
		               r->o.background);
	if (r->o.notes && strpbrk(r->o.notes, "<>"))
		return err_set(err, EINVAL, "--notes goes into a comment of the picture: no < or > in it");
	if (!(r->o.font_size >= 1) || !(r->o.font_size <= 200) || !(r->o.font_width >= 0.05))
		return err_set(err, EINVAL, "--fontsize wants 1..200 and --fontwidth 0.05 or more");
	if (!(r->o.factor > 0))
		return err_set(err, EINVAL, "--factor wants more than 0");
	if (!encoding_known(r->o.encoding))
		return err_set(err, EINVAL, "--encoding %s is not known here: iconv -l lists what is",
		               r->o.encoding);
	r->o.pick = r->hash ? PALETTE_HASH : r->random ? PALETTE_RANDOM : PALETTE_STABLE;
	if (r->random && getrandom(&r->o.seed, sizeof(r->o.seed), 0) < 0)
		r->o.seed = getpid();
	return 0;
}

/* --- files --- */

static int read_one(const struct request *r, const char *path, struct stacklist *l, struct err *err)
{
	bool standard = !strcmp(path, "-");
	_cleanup_fd_ int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(stream_freep) struct stream *in = NULL;
	int result = 0;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", standard ? "the standard input" : path);
	if (standard && isatty(fd))
		log_info("reading stacks from the terminal, a line each; Ctrl-D ends them");
	if (!encoding_is_utf8(r->o.encoding))
		result = encoding_input(&fd, r->o.encoding, err);
	in = stream_open(fd);
	if (!result)
		result = folded_read(in, &(struct folded_options){ .reverse = r->reverse }, l, err);
	return result ? err_prefix(err, "%s", standard ? "the standard input" : path) : 0;
}

static int read_texts(struct request *r, struct err *err)
{
	_cleanup_free_ char *colours = NULL, *attributes = NULL;
	size_t n;
	int result = 0;

	if (r->palette_map) {
		palette_map_init(&r->map);
		r->o.map = &r->map;
		result = fd_read_path(PALETTE_FILE, TEXT_LIMIT, &colours, &n);
		if (result && result != -ENOENT)
			return err_errno(err, -result, "cannot read the colours in " PALETTE_FILE);
		if (!result)
			palette_map_parse(&r->map, colours);
	}
	if (!r->name_attributes)
		return 0;
	result = fd_read_path(r->name_attributes, TEXT_LIMIT, &attributes, &n);
	if (result)
		return err_errno(err, -result, "cannot read %s", r->name_attributes);
	r->o.attributes = &r->attributes;
	result = flamegraph_attributes_parse(&r->attributes, attributes, err);
	return result ? err_prefix(err, "%s", r->name_attributes) : 0;
}

static void warn_about(const struct request *r, const struct stacklist *l)
{
	char count[32];
	uint64_t total;
	double all;

	if (l->ignored)
		log_warn("ignored %s line%s that %s no stack with a count, the first is line %llu",
		         str_count(count, l->ignored), l->ignored == 1 ? "" : "s",
		         l->ignored == 1 ? "is" : "are", (unsigned long long)l->ignored_line);
	if (!r->o.total || stacklist_total(l, &total))
		return;
	all = total / (double)stacklist_unit(l);
	/* Rounding is not worth a word. */
	if (r->o.total < all && r->o.total / all > 0.02)
		log_warn("--total %.15g is less than the sum of the counts, %.15g: it is left out of account",
		         r->o.total, all);
}

/* The picture is written in any case: without counts it says so itself. */
static int draw(struct request *r, char **paths, int n, struct err *err)
{
	_cleanup_(buf_done) struct buf out = { 0 }, colours = { 0 };
	_cleanup_(stacklist_done) struct stacklist l;
	char *none[] = { "" };
	struct err later = { 0 };
	int result, written;

	stacklist_init(&l);
	result = read_texts(r, err);
	for (int i = 0; i < n && !result; i++)
		result = read_one(r, paths[i], &l, err);
	if (!result && !n)
		result = read_one(r, "-", &l, err);
	if (result)
		return result;
	warn_about(r, &l);
	result = flamegraph_write(&l, &r->o, &out, err);
	if (result && result != -ENODATA)
		return result;
	written = encoding_is_utf8(r->o.encoding) ? 0 : encoding_output(&out, r->o.encoding, &later);
	if (!written)
		written = captureio_write(r->output, &out, n ? paths : none, n, &later);
	if (!written && r->o.map && !result) {
		palette_map_write(r->o.map, &colours);
		written = captureio_write_beside(PALETTE_FILE, &colours, n ? paths : none, n, &later);
	}
	if (written)
		*err = later;
	return written ? written : result;
}

static void request_done(struct request *r)
{
	if (r->palette_map)
		palette_map_done(&r->map);
	flamegraph_attributes_done(&r->attributes);
}

static int flamegraph(const struct command *c, int argc, char **argv)
{
	_cleanup_(request_done) struct request r = {
		.o = flamegraph_defaults(), .width = 1200, .row_height = 16, .min_width = "0.1"
	};
	struct flamegraph_options *o = &r.o;
	const struct option_spec options[] = {
		{ 0, "title", OPTION_STRING, &o->title, "TEXT",
		  "heading; by default Flame Graph or Icicle Graph" },
		{ 0, "subtitle", OPTION_STRING, &o->subtitle, "TEXT", "a second line below it" },
		{ 0, "width", OPTION_UINT, &r.width, "PIXELS", "width of the picture", .min = 100,
		  .max = 100000 },
		{ 0, "height", OPTION_UINT, &r.row_height, "PIXELS", "height of each frame", .min = 2,
		  .max = 1000 },
		{ 0, "minwidth", OPTION_STRING, &r.min_width, "WIDTH",
		  "leave out what is narrower: pixels, or a share like 1%" },
		{ 0, "fonttype", OPTION_STRING, &o->font, "FONT", "font of all text" },
		{ 0, "fontsize", OPTION_NUMBER, &o->font_size, "PIXELS", "its size" },
		{ 0, "fontwidth", OPTION_NUMBER, &o->font_width, "EM",
		  "width of its letters on average, by which names are cut" },
		{ 0, "countname", OPTION_STRING, &o->count_name, "TEXT", "what the counts are" },
		{ 0, "nametype", OPTION_STRING, &o->name_type, "TEXT", "what the names are" },
		{ 0, "colors", OPTION_CHOICE, &o->palette, "PALETTE", "colours of the frames",
		  .choices = palette_names },
		{ 0, "bgcolors", OPTION_STRING, &o->background, "COLOUR",
		  "background: yellow, blue, green, grey, or one colour as #rrggbb; by default what goes "
		  "with the palette" },
		{ 0, "hash", OPTION_FLAG, &r.hash,
		  .help = "colours by the first and last letters of a name" },
		{ 0, "random", OPTION_FLAG, &r.random, .help = "random colours" },
		{ 0, "cp", OPTION_FLAG, &r.palette_map,
		  .help = "take colours from the file " PALETTE_FILE
		          " in this folder, and add new names to it" },
		{ 0, "reverse", OPTION_FLAG, &r.reverse, .help = "stacks from the leaf on: who calls it" },
		{ 0, "inverted", OPTION_FLAG, &o->inverted, .help = "the root on top, as icicles" },
		{ 0, "flamechart", OPTION_FLAG, &o->flamechart,
		  .help = "keep the order of the lines, which is that of time" },
		{ 0, "negate", OPTION_FLAG, &o->negate, .help = "swap red and blue of a difference" },
		{ 0, "notes", OPTION_STRING, &o->notes, "TEXT", "a comment in the file" },
		{ 0, "total", OPTION_NUMBER, &o->total, "COUNT",
		  "what the whole width stands for, if it is more than the sum of the counts" },
		{ 0, "factor", OPTION_NUMBER, &o->factor, "NUMBER", "show counts times this" },
		{ 0, "nameattr", OPTION_STRING, &r.name_attributes, "FILE",
		  "attributes of frames by name: a line \"name<TAB>key=value<TAB>...\" each; keys are title, "
		  "href, target, id, class, style, onclick, onmouseover, onmouseout, g_extra, a_extra" },
		{ 0, "encoding", OPTION_STRING, &o->encoding, "NAME",
		  "of the names, and of the picture; by default UTF-8" },
		{ 'o', "output", OPTION_STRING, &r.output, "FILE",
		  "where to write; by default the standard output" },
		{ 0 },
	};
	struct arena pool = { 0 };
	struct err err = { 0 };
	int first, result;

	argc = plain_arguments(options, argc, argv, &pool);
	first = options_parse(c, options, argc, argv);
	if (first < 0) {
		arena_done(&pool);
		return -first - 1;
	}
	result = check(&r, &err);
	if (result)
		result = -ENODATA; /* as a wrong command line */
	else
		result = draw(&r, argv + first, argc - first, &err);
	if (result)
		log_error("%s", err.text);
	arena_done(&pool);
	return !result ? EXIT_OK : result == -ENODATA ? EXIT_USAGE : EXIT_ERROR;
}

const struct command command_flamegraph = {
	.name = "flamegraph",
	.summary = "draw folded stacks, as flamegraph.pl does",
	.usage = "[options] [FILE...] > OUT.svg",
	.describe =
		"Reads folded stacks, \"outer;inner;leaf 123\", from the files or the standard input, and "
	        "writes "
		"a flame graph: the boxes, places, words and options of flamegraph.pl. Options may be cut "
	        "short "
		"(--color).\n"
		"\n"
		"Counts may have decimals. Two counts on a line (before, after; see gasflame diff-folded) "
		"are a difference: widths are those after, red is more, blue is less. Frames called - or -- "
	        "are "
		"grey and part what is above from what is below; names may end in _[k] (kernel), _[i] "
		"(inlined), _[j] (compiled at run time) or _[w] (waker), which the palettes java, js, perl "
	        "and chain "
		"colour.\n"
		"\n"
		"Lines that are no stack with a count are left out, and how many is said. Without any count "
	        "the "
		"picture says so and the exit status is 2.",
	.example = "gasflame report --format folded slow.gasflame | gasflame flamegraph --title slow > "
	           "slow.svg\n"
		   "perf script | gasflame collapse | gasflame flamegraph --color=java > java.svg\n"
		   "gasflame diff-folded before.folded after.folded | gasflame flamegraph > diff.svg",
	.run = flamegraph,
	.also_writes = PALETTE_FILE,
};
