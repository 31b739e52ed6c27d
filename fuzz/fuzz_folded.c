/*
 * fuzz_folded.c - folded stacks: read, drawn, and made a profile.
 *
 * Each line is a stack or is counted as none, boxes lie within their parents, and the picture has as many as
 * it was told to have.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/stream.h"
#include "base/file/unpack.h"
#include "export/svg/boxes.h"
#include "export/svg/flamegraph.h"
#include "folded/folded.h"
#include "import/import.h"
#include "profile/profile.h"
#include "folded/stacklist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void check_boxes(const struct stacklist *l, bool in_order)
{
	struct boxes b;
	uint64_t total, self = 0;

	if (stacklist_total(l, &total))
		return;
	boxes_make(&b, l, in_order, 0);
	for (size_t i = 0; i < b.list.n; i++) {
		const struct box *x = &b.list.v[i];

		expect(x->start <= x->end && x->end <= total && x->depth <= b.depth);
		expect(!i || x->depth <= x[-1].depth + 1);
	}
	for (size_t i = 0; i < l->lines.n; i++)
		self += l->lines.v[i].value;
	expect(self == total && (!b.list.n || b.list.v[0].end == total));
	boxes_done(&b);
}

static void read_once(const uint8_t *data, size_t size, struct folded_options o)
{
	struct flamegraph_options how = flamegraph_defaults();
	struct stream *in = stream_of(data, size);
	struct stacklist l;
	struct buf out = { 0 };
	size_t lines = size > 0;

	for (size_t i = 0; i + 1 < size; i++)
		lines += data[i] == '\n';
	stacklist_init(&l);
	if (!folded_read(in, &o, &l, NULL)) {
		expect(l.lines.n + l.ignored == lines);
		for (size_t i = 1; i < l.nodes.n; i++)
			expect(l.nodes.v[i].parent < i && l.nodes.v[i].frame < l.names.n);
		if (!o.first_apart) {
			check_boxes(&l, false);
			check_boxes(&l, true);
			flamegraph_write(&l, &how, &out, NULL);
			stacklist_strip_hex(&l);
			check_boxes(&l, false);
		}
	}
	stacklist_done(&l);
	stream_free(in);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream *in = stream_of(data, size);
	struct profile *p = NULL;

	/* What is packed counts other lines than these. */
	if (unpack_probe(data, size)) {
		stream_free(in);
		return 0;
	}
	read_once(data, size, (struct folded_options){ 0 });
	read_once(data, size, (struct folded_options){ .reverse = true });
	read_once(data, size, (struct folded_options){ .first_apart = true });
	import_probe((const char *)data, size, size % 2);
	if (!folded_profile(&(struct import_input){ .stream = in, .name = "x" }, &p, NULL))
		profile_free(p);
	stream_free(in);
	return 0;
}
