/*
 * massif.c - valgrind's massif: snapshots of a heap, some of them with a tree.
 *
 *	desc: --massif-out-file=x
 *	cmd: ./prog
 *	time_unit: ms                                      or i: instructions, or B: allocated bytes
 *	#-----------
 *	snapshot=0
 *	#-----------
 *	time=12
 *	mem_heap_B=600000
 *	mem_heap_extra_B=1608
 *	mem_stacks_B=0
 *	heap_tree=peak                                     or detailed, or empty
 *	n1: 600000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *	 n2: 600000 0x109176: keep (prog.c:4)              from the allocating function on towards its callers
 *	  n0: 500000 0x1091F2: main (prog.c:10)
 *	  n0: 100000 in 2 places, all below massif's threshold (1.00%)
 *
 * What a node has more than its children stays with it; callers below the threshold become a marker, so that the sum of all
 * stacks is the total of the tree. An instruction, or a byte, is a nanosecond of the profile.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/file/lines.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/heap/heapfiles.h"
#include "import/heap/heapsink.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { DEEPEST = 4096 };

/* A node of the tree that is open: its children may follow. */
struct level {
	uint64_t bytes, of_children;
	uint64_t children; /* still to come */
	uint32_t frame;
};

/* What one stack holds: in this tree, in the one before it, in the first one and in that of the peak. */
struct cell {
	uint32_t stack;
	uint64_t now, before, first, peak;
};

struct snapshot {
	uint64_t time_ns, heap, extra, stacks;
};

struct massif {
	struct heapsink sink;
	struct lines lines;
	struct snapshot at, peak, last; /* being read; with the peak's tree; with the last tree */
	uint64_t unit_ns;
	uint64_t snapshots, trees, peak_bytes;
	bool in_tree, is_peak, peak_told;
	VEC(struct level) path;
	VEC(struct cell) cells;
	VEC(uint32_t) now, before, of_peak; /* cells of this tree, of the one before it, and of that of the peak */
	struct map by_stack;
	uint32_t heap, peak_event, growth, shrunk, rise, fall, live, extra, stacks;
};

bool massif_probe(const char *data, size_t n, bool whole)
{
	(void)whole;
	return n > 5 && !memcmp(data, "desc:", 5) && memmem(data, n, "\ncmd:", 5) && memmem(data, n, "\ntime_unit:", 11);
}

static int bad(const struct massif *m, struct err *err, const char *what)
{
	return err_set(err, EINVAL, "line %llu: %s", (unsigned long long)m->lines.number, what);
}

static int add(struct massif *m, uint32_t event, uint32_t stack, uint64_t bytes, uint64_t time_ns, struct err *err)
{
	int r = heapsink_add(&m->sink, &(struct heapsink_value){ event, stack, bytes, !!bytes, time_ns }, err);

	return r ? err_prefix(err, "line %llu", (unsigned long long)m->lines.number) : 0;
}

/* --- a tree --- */

static struct cell *cell_of(struct massif *m, uint32_t stack)
{
	uint64_t *at = map_put(&m->by_stack, stack, m->cells.n);

	if (*at == m->cells.n)
		vec_push(&m->cells, (struct cell){ .stack = stack });
	return &m->cells.v[*at];
}

/* Ends open nodes down to so many: what they have more than their children is theirs. */
static int close_levels(struct massif *m, size_t keep, struct err *err)
{
	for (; m->path.n > keep; m->path.n--) {
		const struct level *l = &m->path.v[m->path.n - 1];
		struct cell *c;
		uint32_t stack = 0;

		if (l->children)
			return bad(m, err, "a node before it has fewer children than it says");
		if (l->bytes == l->of_children)
			continue;
		for (size_t i = m->path.n; i-- > 1;)
			stack = profile_stack(m->sink.p, stack, m->path.v[i].frame);
		c = cell_of(m, stack);
		if (!c->now)
			vec_push(&m->now, c - m->cells.v);
		c->now += l->bytes - l->of_children;
	}
	return 0;
}

/* The changes to the tree before, of all stacks that are in either of them. */
static int add_steps(struct massif *m, uint64_t time_ns, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < m->now.n && !r; i++) {
		const struct cell *c = &m->cells.v[m->now.v[i]];

		if (c->now > c->before)
			r = add(m, m->rise, c->stack, c->now - c->before, time_ns, err);
		else
			r = add(m, m->fall, c->stack, c->before - c->now, time_ns, err);
	}
	for (size_t i = 0; i < m->before.n && !r; i++) {
		const struct cell *c = &m->cells.v[m->before.v[i]];

		if (!c->now)
			r = add(m, m->fall, c->stack, c->before, time_ns, err);
	}
	return r;
}

static void keep_peak(struct massif *m, uint64_t bytes)
{
	if (m->peak_told || (!m->is_peak && bytes <= m->peak_bytes))
		return;
	for (size_t i = 0; i < m->of_peak.n; i++)
		m->cells.v[m->of_peak.v[i]].peak = 0;
	vec_clear(&m->of_peak);
	for (size_t i = 0; i < m->now.n; i++) {
		m->cells.v[m->now.v[i]].peak = m->cells.v[m->now.v[i]].now;
		vec_push(&m->of_peak, m->now.v[i]);
	}
	m->peak_bytes = bytes;
	m->peak_told = m->is_peak;
	m->peak = m->at;
}

static int end_tree(struct massif *m, struct err *err)
{
	uint64_t bytes = m->path.n ? m->path.v[0].bytes : 0;
	int r;

	if (!m->in_tree)
		return 0;
	if (!m->path.n)
		return bad(m, err, "the tree of the snapshot before it is missing");
	r = close_levels(m, 0, err);
	r = r ?: add_steps(m, m->at.time_ns, err);
	if (r)
		return r;
	keep_peak(m, bytes);
	for (size_t i = 0; i < m->before.n; i++)
		m->cells.v[m->before.v[i]].before = 0;
	vec_clear(&m->before);
	for (size_t i = 0; i < m->now.n; i++) {
		struct cell *c = &m->cells.v[m->now.v[i]];

		if (!m->trees)
			c->first = c->now;
		c->before = c->now;
		c->now = 0;
		vec_push(&m->before, m->now.v[i]);
	}
	vec_clear(&m->now);
	m->last = m->at;
	m->trees++;
	m->in_tree = false;
	return 0;
}

/* "2: 600000 0x109176: keep (prog.c:4)", after the blanks and the n. */
static bool parse_node(char *text, struct level *ret, char **ret_name)
{
	char *colon = strchr(text, ':'), *blank = colon && colon[1] == ' ' ? strchr(colon + 2, ' ') : NULL;

	if (!blank)
		return false;
	*colon = *blank = '\0';
	*ret_name = blank + 1;
	return !str_parse_uint(text, 0, UINT32_MAX, &ret->children) && !str_parse_uint(colon + 2, 0, INT64_MAX, &ret->bytes);
}

static int read_node(struct massif *m, char *text, struct err *err)
{
	size_t depth = strspn(text, " ");
	struct level l = { 0 }, *parent;
	char *name;
	int r;

	if (text[depth] != 'n' || !parse_node(text + depth + 1, &l, &name))
		return bad(m, err, "this is no node of a tree: \"n<children>: <bytes> <function>\"");
	if (depth > m->path.n || (!depth && m->path.n) || depth > DEEPEST)
		return bad(m, err, depth > DEEPEST ? "nested too deep" : "its indentation fits no node before it");
	r = close_levels(m, depth, err);
	if (r)
		return r;
	if (depth) {
		parent = &m->path.v[depth - 1];
		if (!parent->children || l.bytes > parent->bytes - parent->of_children)
			return bad(m, err, "it has more than its parent says");
		parent->children--;
		parent->of_children += l.bytes;
		l.frame = str_starts(name, "in ") && strstr(name, "below massif's threshold")
				  ? profile_truncation_frame(m->sink.p, "below massif's threshold")
				  : heapsink_valgrind_frame(&m->sink, name);
	}
	vec_push(&m->path, l);
	return 0;
}

/* --- snapshots --- */

static void add_point(struct massif *m, uint32_t *series, const char *key, uint64_t value)
{
	if (*series == PROFILE_NONE && !value)
		return;
	if (*series == PROFILE_NONE)
		*series = profile_series(m->sink.p, key);
	profile_add_point(m->sink.p, *series, m->at.time_ns, value);
}

/* All figures of the snapshot are known. */
static int begin_tree(struct massif *m, const char *kind, struct err *err)
{
	if (m->snapshots++ && m->at.time_ns < m->sink.p->duration_ns)
		return bad(m, err, "the snapshot is from before the one before it");
	m->sink.p->duration_ns = m->at.time_ns;
	profile_add_point(m->sink.p, m->live, m->at.time_ns, m->at.heap);
	add_point(m, &m->extra, KEY_HEAP_EXTRA, m->at.extra);
	add_point(m, &m->stacks, KEY_HEAP_STACKS, m->at.stacks);
	m->is_peak = !strcmp(kind, "peak");
	m->in_tree = m->is_peak || !strcmp(kind, "detailed");
	return m->in_tree || !strcmp(kind, "empty") ? 0 : bad(m, err, "a tree is empty, detailed or peak");
}

static int set_number(struct massif *m, const char *text, uint64_t most, uint64_t scale, uint64_t *ret, struct err *err)
{
	if (str_parse_uint(text, 0, most / scale, ret))
		return bad(m, err, "there is no such number");
	*ret *= scale;
	return 0;
}

static int set_unit(struct massif *m, const char *text, struct err *err)
{
	m->unit_ns = !strcmp(text, "ms") ? 1000000 : 1;
	return !strcmp(text, "ms") || !strcmp(text, "i") || !strcmp(text, "B") ? 0 : bad(m, err, "time_unit is i, ms or B");
}

static int read_line(struct massif *m, char *text, struct err *err)
{
	static const struct {
		const char *name;
		size_t offset;
	} figures[] = {
		{ "mem_heap_B=", offsetof(struct snapshot, heap) },
		{ "mem_heap_extra_B=", offsetof(struct snapshot, extra) },
		{ "mem_stacks_B=", offsetof(struct snapshot, stacks) },
	};

	if (m->in_tree && (*text == 'n' || *text == ' '))
		return read_node(m, text, err);
	if (*text == '#' || !*text || str_starts(text, "desc:"))
		return 0;
	if (str_starts(text, "cmd: ") && !m->sink.p->threads.n) {
		heapsink_command(&m->sink, text + 5, 0);
		return 0;
	}
	if (str_starts(text, "time_unit: "))
		return set_unit(m, text + 11, err);
	if (str_starts(text, "snapshot=")) {
		int r = end_tree(m, err);

		m->at = (struct snapshot){ 0 };
		return r;
	}
	if (str_starts(text, "time="))
		return set_number(m, text + 5, INT64_MAX, m->unit_ns, &m->at.time_ns, err);
	if (str_starts(text, "heap_tree="))
		return m->in_tree ? bad(m, err, "a snapshot has one tree") : begin_tree(m, text + 10, err);
	for (size_t i = 0; i < ARRAY_LEN(figures); i++)
		if (str_starts(text, figures[i].name))
			return set_number(m, text + strlen(figures[i].name), INT64_MAX, 1,
					  (uint64_t *)((char *)&m->at + figures[i].offset), err);
	profile_count(m->sink.p, KEY_IMPORT_LINES_IGNORED, 1);
	return 0;
}

/* The last tree of a file that ends in the middle of it counts for nothing: which part is missing is not known. */
static int end_file(struct massif *m, struct err *err)
{
	bool cut = m->lines.cut || (m->in_tree && !m->path.n);

	for (size_t i = 0; i < m->path.n; i++)
		cut |= m->path.v[i].children;
	if (cut)
		profile_count(m->sink.p, KEY_HEAP_DUMPS_CUT_OFF, 1);
	if (!m->snapshots)
		return err_set(err, EINVAL, "line %llu: it ends before its first snapshot", (unsigned long long)m->lines.number);
	return cut ? 0 : end_tree(m, err);
}

static int read_lines(struct massif *m, struct err *err)
{
	char *text;
	size_t n;
	int r;

	while ((r = lines_next(&m->lines, &text, &n, err)) > 0) {
		if (m->lines.cut)
			break;
		r = read_line(m, text, err);
		if (r)
			return r;
	}
	return r < 0 ? r : end_file(m, err);
}

/* --- all --- */

static void make_events(struct massif *m)
{
	struct profile *p = m->sink.p;

	m->unit_ns = 1;
	m->heap = profile_add_event(p, "heap", "bytes", "alive in the last snapshot with a tree", 0);
	m->peak_event = profile_add_event(p, "peak", "bytes", "alive when it was most", 0);
	m->growth = profile_add_event(p, "growth", "bytes", "more than in the first tree", 0);
	m->shrunk = profile_add_event(p, "shrunk", "bytes", "less than in the first tree", 0);
	m->rise = profile_add_event(p, "rise", "bytes", "more than in the tree before", 0);
	m->fall = profile_add_event(p, "fall", "bytes", "less than in the tree before", 0);
	m->live = profile_series(p, KEY_HEAP_LIVE);
	m->extra = m->stacks = PROFILE_NONE;
}

static int add_last(struct massif *m, struct err *err)
{
	uint64_t time_ns = m->last.time_ns;
	int r = 0;

	for (size_t i = 0; i < m->cells.n && !r; i++) {
		const struct cell *c = &m->cells.v[i];
		bool grew = c->before > c->first;

		r = add(m, m->heap, c->stack, c->before, time_ns, err);
		r = r ?: add(m, m->peak_event, c->stack, c->peak, m->peak.time_ns, err);
		if (m->trees > 1 && !r)
			r = add(m, grew ? m->growth : m->shrunk, c->stack, grew ? c->before - c->first : c->first - c->before, time_ns,
				err);
	}
	return r;
}

int massif_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct massif m = { .lines = lines_of(in->stream) };
	int r;

	heapsink_init(&m.sink, in);
	make_events(&m);
	r = read_lines(&m, err);
	if (!r && !m.sink.p->threads.n)
		heapsink_command(&m.sink, "", 0);
	r = r ?: add_last(&m, err);
	if (!r) {
		profile_count(m.sink.p, KEY_HEAP_DUMPS, m.trees);
		*ret = heapsink_take(&m.sink);
	}
	heapsink_done(&m.sink);
	lines_done(&m.lines);
	vec_done(&m.path);
	vec_done(&m.cells);
	vec_done(&m.now);
	vec_done(&m.before);
	vec_done(&m.of_peak);
	map_done(&m.by_stack);
	return r;
}
