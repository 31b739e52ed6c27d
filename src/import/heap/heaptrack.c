/*
 * heaptrack.c - heaptrack's files, interpreted and raw; all numbers are hexadecimal.
 *
 *	v 10400 3                     version of heaptrack, of the format
 *	X ./prog -v                   the command
 *	I 1000 5e2991                 size of a page, pages of the machine
 *	s d /usr/bin/prog             a string: its size and itself; below format 3 only itself
 *	i 55f9b308e1dc 1 14 15 9      an address: its module and the function, file and line, from the innermost inlined call on
 *	t 8 7                         a call: address, caller
 *	a 3e8 a                       a kind of allocation: size, call
 *	+ 1                           one of them, from 0 on; strings, addresses and calls count from 1 on, 0 is none
 *	- 1                           it was freed
 *	c 4                           it is 4 ms later than the beginning
 *	R 3c7                         resident pages
 *
 * A raw file has addresses for the interpreter of heaptrack, here for our symbolizer, and pointers:
 *
 *	x d /usr/bin/prog             the program
 *	m 1 -                         modules are told anew
 *	m 1 x 555a21125000 0 6c0      a module ("x": the program), where it is; address and size of each of its segments
 *	t 555a211261dc 7
 *	+ 3e8 a 555a230b21d0          size, call, pointer; also in format 0
 *	- 555a230b21d0
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/file/lines.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/heap/heapcells.h"
#include "import/heap/heapfiles.h"
#include "import/heap/heapfind.h"
#include "import/heap/heapranges.h"
#include "import/heap/heapsink.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { NEWEST = 3, MOST_CALLS = 64 };

struct kind {
	uint64_t bytes;
	uint32_t cell;
};

struct heaptrack {
	struct heapsink sink;
	struct lines lines;
	struct heapcells cells;
	uint64_t format;
	bool raw, attached;
	char *p, *end;             /* the rest of the line */
	uint64_t page_bytes;
	VEC(uint32_t) strings;     /* the profile's */
	VEC(uint32_t) addresses;   /* frames */
	VEC(uint32_t) calls;       /* stacks; the first is the empty one */
	VEC(uint32_t) call_cells;  /* by call, PROFILE_NONE = nothing was allocated there yet */
	VEC(struct kind) kinds;
	/* As heaptrack counts temporary allocations: the last kind that was allocated, and after a free the first one. */
	uint64_t last;
	/* Raw. */
	struct heapfind files;
	uint32_t exe;
	struct heapranges ranges;
	struct map pointers;       /* to kinds */
	struct map kinds_of_call, kinds_of_size;
};

/* --- numbers --- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next number of the line; false: there is none, or it is too large. */
static bool take(struct heaptrack *h, uint64_t *ret)
{
	const char *start;
	int d;

	while (h->p < h->end && *h->p == ' ')
		h->p++;
	*ret = 0;
	for (start = h->p; h->p < h->end && (d = digit(*h->p)) >= 0; h->p++) {
		if (*ret >> 60)
			return false;
		*ret = *ret << 4 | d;
	}
	return h->p > start && (h->p == h->end || *h->p == ' ');
}

static int bad(const struct heaptrack *h, struct err *err, const char *what)
{
	return err_set(err, EINVAL, "line %llu: %s", (unsigned long long)h->lines.number, what);
}

/* The string that follows: with its size before it from format 3 on. It ends in a NUL; what follows it is read on. */
static bool take_string(struct heaptrack *h, bool word, const char **ret)
{
	uint64_t n;
	char *start = h->p + (h->p < h->end && *h->p == ' ');

	if (h->format < 3) {
		n = word ? strcspn(start, " ") : (size_t)(h->end - start);
	} else {
		if (!take(h, &n) || h->p == h->end)
			return false;
		start = h->p + 1;
	}
	if (n > (size_t)(h->end - start))
		return false;
	h->p = start + n;
	if (h->p < h->end)
		*h->p++ = '\0';
	*ret = start;
	return true;
}

bool heaptrack_probe(const char *data, size_t n, bool whole)
{
	const char *end = n ? memchr(data, '\n', n) : NULL;
	size_t i = 2;

	if (!end || n < 4 || data[0] != 'v' || data[1] != ' ' || digit(data[2]) < 0)
		return false;
	while (data + i < end && (digit(data[i]) >= 0 || data[i] == ' '))
		i++;
	return data + i == end && i < 24 && (end + 1 == data + n ? whole : !!strchr("xXIsmitaAS#+-cR", end[1]));
}

/* --- where --- */

static int read_string(struct heaptrack *h, struct err *err)
{
	const char *text;

	if (!take_string(h, false, &text))
		return bad(h, err, "there is no such string");
	vec_push(&h->strings, profile_string(h->sink.p, text));
	return 0;
}

/* Strings by their number; 0 is none. */
static bool take_name(struct heaptrack *h, const char **ret)
{
	uint64_t at;

	if (!take(h, &at) || at > h->strings.n)
		return false;
	*ret = at ? profile_str(h->sink.p, h->strings.v[at - 1]) : "";
	return true;
}

static int read_address(struct heaptrack *h, struct err *err)
{
	struct frames_call calls[MOST_CALLS];
	const char *module;
	uint64_t address, line;
	char hex[24];
	size_t n = 0;

	if (!take(h, &address) || !take_name(h, &module))
		return bad(h, err, "there is no such address or module");
	/* What the interpreter found no name for has its address in the process, and nothing says where its file was. */
	snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)address);
	for (; h->p < h->end && n < MOST_CALLS; n++) {
		struct frames_call *c = &calls[n];

		/* From 1.0 on names may stand alone: "i 55f9b308e0a0 1 f". */
		*c = (struct frames_call){ 0 };
		line = 0;
		if (!take_name(h, &c->name) || (h->p < h->end && (!take_name(h, &c->file) || !take(h, &line))))
			return bad(h, err, "there is no such function or file");
		c->line = MIN(line, (uint64_t)UINT32_MAX);
		if (!*c->name)
			c->name = hex;
	}
	if (h->p < h->end)
		return bad(h, err, "too many inlined calls");
	if (!n)
		calls[n++] = (struct frames_call){ .name = hex };
	vec_push(&h->addresses, frames_named(&h->sink.frames, frames_module(&h->sink.frames, module, NULL, 0), FRAME_USER, 0, calls, n));
	return 0;
}

static void add_call(struct heaptrack *h, uint32_t stack)
{
	vec_push(&h->calls, stack);
	vec_push(&h->call_cells, PROFILE_NONE);
}

static int read_call(struct heaptrack *h, struct err *err)
{
	uint64_t address, caller;
	uint32_t frame;

	if (!take(h, &address) || !take(h, &caller) || caller >= h->calls.n || (!h->raw && (!address || address > h->addresses.n)))
		return bad(h, err, "there is no such address or caller");
	if (h->calls.n >= UINT32_MAX - 1)
		return bad(h, err, "too many calls");
	frame = h->raw ? heapranges_frame(&h->ranges, address) : h->addresses.v[address - 1];
	add_call(h, profile_stack(h->sink.p, h->calls.v[caller], frame));
	return 0;
}

static int read_exe(struct heaptrack *h, struct err *err)
{
	const char *path;

	if (!take_string(h, false, &path))
		return bad(h, err, "there is no such path");
	h->raw = true;
	h->exe = profile_string(h->sink.p, path);
	return 0;
}

static int read_module(struct heaptrack *h, struct err *err)
{
	const char *path;
	uint64_t base, address, size;
	uint32_t module;

	if (!take_string(h, true, &path))
		return bad(h, err, "there is no such module");
	h->raw = true;
	if (!strcmp(path, "-")) {
		heapranges_clear(&h->ranges);
		return 0;
	}
	if (!strcmp(path, "x"))
		path = profile_str(h->sink.p, h->exe);
	module = heapfind_module(&h->files, *path ? path : "[program]");
	if (!take(h, &base))
		return bad(h, err, "the module has no address");
	while (h->p < h->end) {
		if (!take(h, &address) || !take(h, &size))
			return bad(h, err, "the module has no such segment");
		heapranges_add(&h->ranges, module, base, address, size);
	}
	return 0;
}

/* --- what happened --- */

static int add_kind(struct heaptrack *h, uint64_t bytes, uint64_t call, struct err *err)
{
	uint32_t *cell;

	if (call >= h->calls.n)
		return bad(h, err, "there is no such call");
	cell = &h->call_cells.v[call];
	if (*cell == PROFILE_NONE)
		*cell = heapcells_new(&h->cells, h->calls.v[call]);
	vec_push(&h->kinds, (struct kind){ bytes, *cell });
	return 0;
}

static int read_kind(struct heaptrack *h, struct err *err)
{
	uint64_t bytes, call;

	return take(h, &bytes) && take(h, &call) ? add_kind(h, bytes, call, err) : bad(h, err, "there is no such allocation");
}

/* The kind of a raw allocation, as heaptrack's interpreter would number it. */
static int find_kind(struct heaptrack *h, uint64_t *ret, struct err *err)
{
	uint64_t bytes, call, pointer, *high, *at;

	if (!take(h, &bytes) || !take(h, &call) || !take(h, &pointer) || call >= h->calls.n)
		return bad(h, err, "there is no such allocation");
	high = map_put(&h->kinds_of_call, map_pair(call, bytes >> 32), h->kinds_of_call.n);
	at = map_put(&h->kinds_of_size, map_pair(*high, bytes), h->kinds.n);
	*map_put(&h->pointers, pointer, 0) = *ret = *at;
	return *at == h->kinds.n ? add_kind(h, bytes, call, err) : 0;
}

static int read_alloc(struct heaptrack *h, struct err *err)
{
	bool pointers = h->raw || !h->format;
	uint64_t at;
	int r = pointers ? find_kind(h, &at, err) : 0;

	if (r)
		return r;
	if (!pointers && (!take(h, &at) || at >= h->kinds.n))
		return bad(h, err, "there is no such allocation");
	r = heapcells_alloc(&h->cells, h->kinds.v[at].cell, h->kinds.v[at].bytes, err);
	h->last = at;
	return r ? err_prefix(err, "line %llu", (unsigned long long)h->lines.number) : 0;
}

static int read_free(struct heaptrack *h, struct err *err)
{
	uint64_t at, freed, *known;

	if (!take(h, &at))
		return bad(h, err, "there is no such object");
	if (h->raw || !h->format) {
		known = map_get(&h->pointers, at);
		if (!known)
			goto unknown;
		freed = at;
		at = *known;
		map_remove(&h->pointers, freed);
	} else if (at >= h->kinds.n) {
		return bad(h, err, "there is no such allocation");
	}
	if (!heapcells_free(&h->cells, h->kinds.v[at].cell, h->kinds.v[at].bytes, h->last == at))
		goto unknown;
	h->last = 0;
	return 0;
unknown:
	profile_count(h->sink.p, KEY_HEAP_FREES_UNKNOWN, 1);
	return 0;
}

static int read_time(struct heaptrack *h, struct err *err)
{
	const uint64_t ms_ns = 1000000;
	uint64_t ms;

	if (!take(h, &ms) || ms > INT64_MAX / ms_ns)
		return bad(h, err, "there is no such time");
	if (ms * ms_ns < h->cells.now_ns)
		return bad(h, err, "the time goes back");
	return heapcells_time(&h->cells, ms * ms_ns, err);
}

static int read_resident(struct heaptrack *h, struct err *err)
{
	uint64_t pages, bytes;

	if (!take(h, &pages) || __builtin_mul_overflow(pages, h->page_bytes, &bytes) || bytes > INT64_MAX)
		return bad(h, err, "there is no such number of pages");
	profile_add_point(h->sink.p, profile_series(h->sink.p, KEY_HEAP_RSS), h->cells.now_ns, bytes);
	return 0;
}

/* --- lines --- */

static int read_version(struct heaptrack *h, struct err *err)
{
	uint64_t version;

	if (!take(h, &version))
		return bad(h, err, "it has no version");
	/* Before 1.0 the version of the program was that of the format. */
	if (!take(h, &h->format))
		h->format = version == 0x10200;
	if (h->format > NEWEST)
		return err_set(err, ENOTSUP, "line %llu: format %llu of heaptrack is newer than %d, the last one that is known",
			       (unsigned long long)h->lines.number, (unsigned long long)h->format, NEWEST);
	return 0;
}

static int read_system(struct heaptrack *h, struct err *err)
{
	return take(h, &h->page_bytes) ? 0 : bad(h, err, "there is no such size of a page");
}

static int read_command(struct heaptrack *h, struct err *err)
{
	if (h->sink.p->threads.n)
		return bad(h, err, "there are two programs in it");
	heapsink_command(&h->sink, h->p + (*h->p == ' '), 0);
	return 0;
}

static int read_attached(struct heaptrack *h, struct err *err)
{
	if (h->attached)
		return bad(h, err, "it was attached twice");
	h->attached = true;
	heapcells_reset(&h->cells);
	profile_count_set(h->sink.p, KEY_HEAP_FROM_START, 0);
	return 0;
}

static int read_line(struct heaptrack *h, char *text, size_t n, struct err *err)
{
	h->p = text + !!n;
	h->end = text + n;
	switch (*text) {
	case '+':
		return read_alloc(h, err);
	case '-':
		return read_free(h, err);
	case 'a':
		return read_kind(h, err);
	case 't':
		return read_call(h, err);
	case 'i':
		return read_address(h, err);
	case 's':
		return read_string(h, err);
	case 'c':
		return read_time(h, err);
	case 'R':
		return read_resident(h, err);
	case 'm':
		return read_module(h, err);
	case 'x':
		return read_exe(h, err);
	case 'X':
		return read_command(h, err);
	case 'I':
		return read_system(h, err);
	case 'v':
		return read_version(h, err);
	case 'A':
		return read_attached(h, err);
	case '#':
	case '\0':
		return 0;
	default: /* suppressions of leaks, and what newer versions may have */
		profile_count(h->sink.p, KEY_IMPORT_LINES_IGNORED, 1);
		return 0;
	}
}

static int read_lines(struct heaptrack *h, struct err *err)
{
	char *text;
	size_t n;
	int r;

	while ((r = lines_next(&h->lines, &text, &n, err)) > 0) {
		/* Half of a number is another number. */
		if (h->lines.cut) {
			profile_count(h->sink.p, KEY_HEAP_DUMPS_CUT_OFF, 1);
			return 0;
		}
		r = read_line(h, text, n, err);
		if (r)
			return r;
	}
	return r;
}

static void finish(struct heaptrack *h, struct profile **ret)
{
	struct profile *p = h->sink.p;

	p->duration_ns = p->processes.v[0].end_ns = h->cells.now_ns;
	if (h->exe)
		p->processes.v[0].exe = h->exe;
	*ret = heapsink_take(&h->sink);
}

int heaptrack_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct heaptrack h = { .lines = lines_of(in->stream), .page_bytes = 4096 };
	int r;

	heapsink_init(&h.sink, in);
	heapcells_init(&h.cells, &h.sink);
	profile_count_set(h.sink.p, KEY_HEAP_FROM_START, 1);
	h.ranges.sink = &h.sink;
	h.files = (struct heapfind){ .in = in, .frames = &h.sink.frames };
	add_call(&h, 0);
	r = read_lines(&h, err);
	if (!r && !h.sink.p->threads.n)
		heapsink_command(&h.sink, "", 0);
	r = r ?: heapcells_end(&h.cells, err);
	if (!r)
		finish(&h, ret);
	heapcells_done(&h.cells);
	heapranges_done(&h.ranges);
	heapfind_done(&h.files);
	heapsink_done(&h.sink);
	lines_done(&h.lines);
	vec_done(&h.strings);
	vec_done(&h.addresses);
	vec_done(&h.calls);
	vec_done(&h.call_cells);
	vec_done(&h.kinds);
	map_done(&h.pointers);
	map_done(&h.kinds_of_call);
	map_done(&h.kinds_of_size);
	return r;
}
