#include "elf/jit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

enum {
	MAX_NAME = 4096,
	MAX_LINES = 65536,      /* of one function: lookups search them one by one */
	MAX_ALL_LINES = 1 << 22,
	MAX_MOVABLE = 1 << 20,  /* functions of a dump that a move record can find */
	MANY_CODES = 1 << 19,   /* from here on, codes that are entirely overwritten are dropped */
	MAX_VERSIONS = 1 << 20, /* of all addresses together */
	MAX_HISTORY = 64,       /* of one address: the last ones */
};

/* A string of the input. */
struct piece {
	const char *text;
	uint32_t n;
};

struct code {
	uint64_t start, end;
	uint64_t time_ns;
	struct piece name;
	uint32_t order; /* among equal times */
	uint32_t first_line, line_count;
};

struct code_line {
	uint64_t address;
	struct piece file;
	uint32_t line;
};

struct jit {
	const uint64_t *addresses;
	size_t n;
	VEC(struct code) codes;
	VEC(struct code_line) lines;
	bool other_clock; /* the times of the dump are not those of CLOCK_MONOTONIC */
	size_t next_drop; /* number of codes at which drop_hidden() is worth running again */
	uint32_t order;
};

struct jit *jit_new(const uint64_t *addresses, size_t n)
{
	struct jit *j = mem_alloc(sizeof(*j));

	j->addresses = addresses;
	j->n = n;
	j->next_drop = MANY_CODES;
	return j;
}

void jit_free(struct jit *j)
{
	if (!j)
		return;
	vec_done(&j->codes);
	vec_done(&j->lines);
	free(j);
}

size_t jit_count(const struct jit *j)
{
	return j->codes.n;
}

/* --- which code an address belongs to --- */

static int compare_time(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	return ORDER(x->time_ns, y->time_ns) ?: ORDER(x->order, y->order);
}

static size_t first_at(const uint64_t *addresses, size_t n, uint64_t address)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (addresses[middle] < address)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* Returns the next address from i on that has no name yet, and shortens paths on the way. */
static size_t next_open(uint32_t *next, size_t i)
{
	size_t root = i;

	while (next[root] != root)
		root = next[root];
	while (next[i] != root) {
		size_t up = next[i];

		next[i] = root;
		i = up;
	}
	return root;
}

/* Walks from the last function to the first; each takes the addresses in its range that are still free. */
typedef void took_fn(void *context, const struct code *c, size_t index);
static void distribute(const struct jit *j, const struct code *sorted, size_t count, took_fn *took, void *context)
{
	_cleanup_free_ uint32_t *next = mem_alloc((j->n + 1) * sizeof(*next));

	for (size_t i = 0; i <= j->n; i++)
		next[i] = i;
	for (size_t k = count; k-- > 0;) {
		const struct code *c = &sorted[k];
		size_t i = next_open(next, first_at(j->addresses, j->n, c->start));

		for (; i < j->n && j->addresses[i] < c->end; i = next_open(next, i)) {
			took(context, c, i);
			next[i] = i + 1;
		}
	}
}

struct kept {
	const struct code *first;
	bool *kept;
};

static void keep(void *context, const struct code *c, size_t index)
{
	const struct kept *k = context;

	k->kept[c - k->first] = true;
}

/* Drops code whose every address was overwritten later. */
static void drop_hidden(struct jit *j)
{
	_cleanup_free_ bool *kept = mem_alloc(j->codes.n + 1);
	size_t n = 0;

	vec_sort(&j->codes, compare_time);
	distribute(j, j->codes.v, j->codes.n, keep, &(struct kept){ j->codes.v, kept });
	for (size_t i = 0; i < j->codes.n; i++)
		if (kept[i])
			j->codes.v[n++] = j->codes.v[i];
	j->codes.n = n;
	j->next_drop = MAX((size_t)MANY_CODES, 2 * n);
}

static bool is_wanted(const struct jit *j, uint64_t start, uint64_t end)
{
	size_t i = first_at(j->addresses, j->n, start);

	return i < j->n && j->addresses[i] < end;
}

/* Returns false if no wanted address lies in the code. */
static bool add_code(struct jit *j, uint64_t start, uint64_t size, uint64_t time_ns, struct piece name)
{
	if (!size || start > UINT64_MAX - size || !is_wanted(j, start, start + size))
		return false;
	if (j->codes.n >= j->next_drop)
		drop_hidden(j);
	name.n = MIN(name.n, (uint32_t)MAX_NAME);
	vec_push(&j->codes, (struct code){ start, start + size, time_ns, name, j->order++, 0, 0 });
	return true;
}

/* --- perf-PID.map --- */

static const char *read_hex(const char *p, const char *end, uint64_t *ret)
{
	const char *first;
	uint64_t v = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x')
		p += 2;
	for (first = p; p < end && p - first < 16; p++) {
		unsigned c = (unsigned char)*p;

		if (c - '0' < 10)
			v = v << 4 | (c - '0');
		else if ((c | 32) - 'a' < 6)
			v = v << 4 | ((c | 32) - 'a' + 10);
		else
			break;
	}
	*ret = v;
	return p == first || p >= end || *p != ' ' ? NULL : p + 1;
}

size_t jit_parse_map(struct jit *j, const char *text, size_t n)
{
	const char *end = text + n;
	size_t bad = 0;

	for (const char *line = text, *next; line < end; line = next) {
		const char *stop = memchr(line, '\n', end - line), *p;
		uint64_t start, size;

		next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		p = read_hex(line, stop, &start);
		p = p ? read_hex(p, stop, &size) : NULL;
		if (!p || p == stop)
			bad++;
		else
			add_code(j, start, size, 0, (struct piece){ p, MIN(stop - p, MAX_NAME) });
	}
	return bad;
}

/* --- jitdump --- */

enum { DUMP_LOAD = 0, DUMP_MOVE = 1, DUMP_DEBUG = 2 };
enum { DUMP_ARCH_TIMESTAMP = 1 };
enum { DUMP_MAGIC = 0x4a695444, DUMP_HEADER = 40, DUMP_RECORD = 16 };

struct dump {
	struct jit *jit;
	struct reader lines;      /* line table, which precedes the code that it describes */
	uint64_t lines_address;
	VEC(struct piece) names;  /* of code that may move */
	struct map by_address;    /* address of movable code to its name */
};

static struct piece piece_of(const char *text)
{
	return (struct piece){ text, strnlen(text, MAX_NAME) };
}

static void parse_lines(struct dump *d, struct code *c)
{
	struct jit *j = d->jit;
	struct piece file = { "", 0 };
	uint64_t count = reader_u64(&d->lines);

	c->first_line = j->lines.n;
	for (uint64_t i = 0; i < MIN(count, MAX_LINES) && reader_more(&d->lines) && j->lines.n < MAX_ALL_LINES; i++) {
		struct code_line l = { .address = reader_u64(&d->lines), .line = reader_u32(&d->lines) };
		const char *name;

		reader_u32(&d->lines); /* discriminator */
		name = reader_string(&d->lines);
		if (d->lines.failed)
			break;
		/* "\xff" stands for the file of the entry before. */
		if (strcmp(name, "\xff"))
			file = piece_of(name);
		l.file = file;
		vec_push(&j->lines, l);
	}
	c->line_count = j->lines.n - c->first_line;
}

static void note_movable(struct dump *d, uint64_t address, struct piece name)
{
	uint64_t *at = map_get(&d->by_address, address);

	if (at) {
		d->names.v[*at] = name;
	} else if (d->names.n < MAX_MOVABLE) {
		*map_put(&d->by_address, address, 0) = d->names.n;
		vec_push(&d->names, name);
	}
}

static void parse_load(struct dump *d, struct reader *r, uint64_t time_ns)
{
	uint64_t address, size;
	const char *name;

	reader_skip(r, 4 + 4 + 8); /* pid, tid, vma */
	address = reader_u64(r);
	size = reader_u64(r);
	reader_skip(r, 8); /* index */
	name = reader_string(r);
	if (r->failed)
		return;
	if (add_code(d->jit, address, size, time_ns, piece_of(name)) && d->lines.data && d->lines_address == address)
		parse_lines(d, &d->jit->codes.v[d->jit->codes.n - 1]);
	note_movable(d, address, piece_of(name));
	d->lines = (struct reader){ 0 };
}

/* The code moved: the same name at a new address. */
static void parse_move(struct dump *d, struct reader *r, uint64_t time_ns)
{
	uint64_t from, to, size, *at;
	struct piece name;

	reader_skip(r, 4 + 4 + 8);
	from = reader_u64(r);
	to = reader_u64(r);
	size = reader_u64(r);
	at = r->failed ? NULL : map_get(&d->by_address, from);
	if (!at)
		return;
	name = d->names.v[*at];
	add_code(d->jit, to, size, time_ns, name);
	note_movable(d, to, name);
}

int jit_parse_dump(struct jit *j, const void *data, size_t n, struct err *err)
{
	struct reader head = reader_of(data, n);
	struct dump d = { .jit = j };
	uint32_t magic = reader_u32(&head), header_size;
	size_t at;

	reader_skip(&head, 4);
	header_size = reader_u32(&head);
	reader_skip(&head, 4 + 4 + 4 + 8); /* machine, padding, pid, time */
	j->other_clock = reader_u64(&head) & DUMP_ARCH_TIMESTAMP;
	if (n < DUMP_HEADER || magic != DUMP_MAGIC || header_size < DUMP_HEADER || header_size > n)
		return err_set(err, EINVAL, "not a jitdump file of this machine");
	at = header_size;
	while (n - at >= DUMP_RECORD) {
		struct reader r = reader_of((const char *)data + at, n - at);
		uint32_t id = reader_u32(&r), size = reader_u32(&r);
		uint64_t time_ns = reader_u64(&r);

		if (size < DUMP_RECORD || size > n - at)
			break; /* still being written when it was copied */
		r = reader_of((const char *)data + at, size);
		reader_skip(&r, DUMP_RECORD);
		if (id == DUMP_DEBUG) {
			d.lines_address = reader_u64(&r);
			d.lines = r;
		} else if (id == DUMP_LOAD) {
			parse_load(&d, &r, time_ns);
		} else if (id == DUMP_MOVE) {
			parse_move(&d, &r, time_ns);
		}
		at += size;
	}
	vec_done(&d.names);
	map_done(&d.by_address);
	return 0;
}

/* --- look-up --- */

static const char *text_of(struct piece p, char out[MAX_NAME + 1])
{
	memcpy(out, p.text, p.n);
	out[p.n] = 0;
	return out;
}

struct answer {
	const struct jit *jit;
	symbols_got_fn *got;
	void *context;
	bool *done;
};

static void tell(void *context, const struct code *c, size_t index)
{
	const struct answer *a = context;
	char name[MAX_NAME + 1], file[MAX_NAME + 1];
	struct symbols_call call = { .linkage = "", .name = text_of(c->name, name), .file = "" };
	const struct code_line *best = NULL;

	for (uint32_t i = 0; i < c->line_count; i++) {
		const struct code_line *l = &a->jit->lines.v[c->first_line + i];

		if (l->address <= a->jit->addresses[index] && (!best || l->address >= best->address))
			best = l;
	}
	if (best) {
		call.file = text_of(best->file, file);
		call.line = best->line;
	}
	a->done[index] = true;
	a->got(a->context, index, &call, 1);
}

void jit_resolve(const struct jit *j, symbols_got_fn *got, void *context)
{
	_cleanup_free_ struct code *sorted = mem_alloc((j->codes.n + 1) * sizeof(*sorted));
	_cleanup_free_ bool *done = mem_alloc(j->n + 1);
	struct answer a = { j, got, context, done };

	if (j->codes.n) {
		memcpy(sorted, j->codes.v, j->codes.n * sizeof(*sorted));
		qsort(sorted, j->codes.n, sizeof(*sorted), compare_time);
	}
	distribute(j, sorted, j->codes.n, tell, &a);
	for (size_t i = 0; i < j->n; i++)
		if (!done[i])
			got(context, i, NULL, 0);
}

/* --- what was at an address before --- */

/* One code at one address. */
struct version {
	uint32_t index;
	uint32_t code; /* into the codes by time */
};

static int compare_versions(const void *a, const void *b)
{
	const struct version *x = a, *y = b;

	return ORDER(x->index, y->index) ?: ORDER(x->code, y->code);
}

static bool same_piece(struct piece a, struct piece b)
{
	return a.n == b.n && !memcmp(a.text, b.text, a.n);
}

static uint32_t ms_after(uint64_t time_ns, uint64_t base_ns)
{
	return time_ns > base_ns ? MIN((time_ns - base_ns) / 1000000, (uint64_t)UINT32_MAX) : 0;
}

/* The versions of one address, in order of time. The later of two at the same time counts, and one that has the name of
 * the one before is the same. */
static void tell_history(const struct version *v, size_t n, const struct code *codes, uint64_t base_ns, char *names,
			 symbols_got_fn *got, void *context)
{
	struct symbols_call calls[MAX_HISTORY];
	struct piece last[MAX_HISTORY];
	size_t count = 0;

	for (size_t i = n > MAX_HISTORY ? n - MAX_HISTORY : 0; i < n; i++) {
		const struct code *c = &codes[v[i].code];
		uint32_t ms = ms_after(c->time_ns, base_ns);

		if (count && calls[count - 1].line == ms)
			count--;
		if (count && same_piece(last[count - 1], c->name))
			continue;
		last[count] = c->name;
		calls[count] = (struct symbols_call){ .linkage = "", .file = "", .line = ms,
						      .name = text_of(c->name, names + count * (MAX_NAME + 1)) };
		count++;
	}
	if (count > 1)
		got(context, v[0].index, calls, count);
}

void jit_history(const struct jit *j, uint64_t base_ns, symbols_got_fn *got, void *context)
{
	_cleanup_free_ struct code *sorted = mem_alloc((j->codes.n + 1) * sizeof(*sorted));
	_cleanup_free_ char *names = NULL;
	VEC(struct version) all = { 0 };
	size_t next;

	if (j->codes.n && !j->other_clock) {
		memcpy(sorted, j->codes.v, j->codes.n * sizeof(*sorted));
		qsort(sorted, j->codes.n, sizeof(*sorted), compare_time);
	}
	for (size_t k = 0; k < j->codes.n && !j->other_clock && all.n < MAX_VERSIONS; k++)
		for (size_t i = first_at(j->addresses, j->n, sorted[k].start);
		     i < j->n && j->addresses[i] < sorted[k].end && all.n < MAX_VERSIONS; i++)
			vec_push(&all, (struct version){ i, k });
	if (all.n < MAX_VERSIONS)
		vec_sort(&all, compare_versions);
	for (size_t i = 0; i < all.n && all.n < MAX_VERSIONS; i = next) {
		for (next = i; next < all.n && all.v[next].index == all.v[i].index; next++)
			;
		if (next - i > 1 && !names)
			names = mem_alloc(MAX_HISTORY * (MAX_NAME + 1));
		if (next - i > 1)
			tell_history(&all.v[i], next - i, sorted, base_ns, names, got, context);
	}
	vec_done(&all);
}
