/*
 * difffolded.c - two files of folded stacks as one with two counts a line; takes the place of difffolded.pl.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "export/export.h"
#include "folded/folded.h"
#include "folded/stacklist.h"

static int read_side(const char *path, struct stacklist *l, struct err *err)
{
	bool standard = !strcmp(path, "-");
	_cleanup_fd_ int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(stream_freep) struct stream *in = NULL;
	uint64_t ignored = l->ignored;
	char count[32];
	int r;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	in = stream_open(fd);
	r = folded_read(in, &(struct folded_options){ 0 }, l, err);
	if (r)
		return err_prefix(err, "%s", path);
	if (l->ignored > ignored)
		log_warn("%s: ignored %s line%s that %s no stack with a count", path,
		         str_count(count, l->ignored - ignored), l->ignored - ignored == 1 ? "" : "s",
		         l->ignored - ignored == 1 ? "is" : "are");
	return 0;
}

/* By node, what its lines from the one on add up to; *ret_total is their sum. */
static uint64_t *sum_lines(const struct stacklist *l, size_t from, size_t to, uint64_t *ret_total)
{
	uint64_t *sums = mem_alloc(l->nodes.n * sizeof(*sums));

	*ret_total = 0;
	for (size_t i = from; i < to; i++) {
		sums[l->lines.v[i].stack] += l->lines.v[i].value;
		*ret_total += l->lines.v[i].value;
	}
	return sums;
}

static void put_path(struct buf *b, const struct stacklist *l, uint32_t node)
{
	VEC(uint32_t) path = { 0 };

	for (; node; node = l->nodes.v[node].parent)
		vec_push(&path, node);
	while (path.n) {
		buf_puts(b, stacklist_name(l, path.v[--path.n]));
		if (path.n)
			buf_putc(b, ';');
	}
	vec_done(&path);
}

/* Each stack once, in the order of the text. */
static int write_both(const struct stacklist *l, size_t split, bool normalize, struct err *err)
{
	uint64_t total_a, total_b;
	_cleanup_free_ uint64_t *a = sum_lines(l, 0, split, &total_a);
	_cleanup_free_ uint64_t *b = sum_lines(l, split, l->lines.n, &total_b);
	_cleanup_free_ uint32_t *order = NULL;
	_cleanup_free_ uint8_t *done = mem_alloc(l->nodes.n);
	uint64_t unit = stacklist_unit(l);
	_cleanup_(buf_done) struct buf out = { 0 };

	if (normalize && total_a != total_b && (!total_a || !total_b))
		return err_set(err, EINVAL, "the %s file has no counts: there is nothing to normalize with",
		               total_a ? "second" : "first");
	order = stacklist_sort(l);
	for (size_t i = 0; i < l->lines.n; i++) {
		uint32_t node = l->lines.v[order[i]].stack;
		uint64_t before = a[node];

		if (done[node])
			continue;
		done[node] = true;
		if (normalize && total_a != total_b)
			before = (uint64_t)((long double)before * total_b / total_a) / unit * unit;
		put_path(&out, l, node);
		buf_putc(&out, ' ');
		export_decimal(&out, before, unit);
		buf_putc(&out, ' ');
		export_decimal(&out, b[node], unit);
		buf_putc(&out, '\n');
	}
	if (plain_put(out.data, out.n) || fflush(stdout))
		return err_errno(err, errno, "cannot write to the standard output");
	return 0;
}

static int difffolded(const struct command *c, int argc, char **argv)
{
	bool normalize = false, strip = false;
	const struct option_spec options[] = {
		{ 'n', "normalize", OPTION_FLAG, &normalize,
		  .help = "scale the first file's counts to the sum of the second's" },
		{ 's', "strip-hex", OPTION_FLAG, &strip,
		  .help = "addresses in names (0x1a2b) become 0x..., so that they can be compared" },
		{ 0 },
	};
	_cleanup_(stacklist_done) struct stacklist l = { 0 };
	struct err err = { 0 };
	uint64_t total;
	size_t split = 0;
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (argc - first != 2) {
		log_error("diff-folded wants two files, before and after, and these are %d", argc - first);
		return EXIT_USAGE;
	}
	stacklist_init(&l);
	r = read_side(argv[first], &l, &err);
	if (!r) {
		split = l.lines.n;
		r = read_side(argv[first + 1], &l, &err);
	}
	if (!r && stacklist_total(&l, &total))
		r = err_set(&err, ERANGE, "the counts add up to more than can be counted");
	if (!r && strip)
		stacklist_strip_hex(&l);
	if (!r)
		r = write_both(&l, split, normalize, &err);
	if (!r)
		return EXIT_OK;
	log_error("%s", err.text);
	return EXIT_ERROR;
}

const struct command command_difffolded = {
	.name = "diff-folded",
	.summary = "two files of folded stacks as one, with both counts",
	.usage = "[options] BEFORE AFTER",
	.describe =
		"Writes a line for each stack of either file, with its count in the first and in the second, "
	        "0 where "
		"it does not have it: what gasflame flamegraph draws as a difference. It takes the place of "
		"difffolded.pl.\n"
		"\n"
		"Widths are those of the second file, so what has vanished is not to be seen: draw the other "
		"direction too, with --negate.",
	.example = "gasflame diff-folded before.folded after.folded | gasflame flamegraph > after.svg\n"
		   "gasflame diff-folded -n after.folded before.folded | gasflame flamegraph --negate > "
		   "before.svg",
	.run = difffolded,
};
