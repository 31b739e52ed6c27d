#include "symbol/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

enum { MAX_NAME = 4096, MAX_LINES = 65536 /* of one function: they are searched one by one */ };

struct code {
	uint64_t start, end;
	uint64_t time_ns;
	uint32_t name;
	uint32_t order; /* among equal times */
	uint32_t first_line, line_count;
};

struct code_line {
	uint64_t address;
	uint32_t file, line;
};

struct jit {
	struct strtab strings;
	VEC(struct code) codes;
	VEC(struct code_line) lines;
};

struct jit *jit_new(void)
{
	struct jit *j = mem_alloc(sizeof(*j));

	strtab_init(&j->strings);
	return j;
}

void jit_free(struct jit *j)
{
	if (!j)
		return;
	strtab_done(&j->strings);
	vec_done(&j->codes);
	vec_done(&j->lines);
	free(j);
}

size_t jit_count(const struct jit *j)
{
	return j->codes.n;
}

static void add_code(struct jit *j, uint64_t start, uint64_t size, uint64_t time_ns, uint32_t name,
		     uint32_t first_line, uint32_t line_count)
{
	if (!size || start > UINT64_MAX - size || j->codes.n >= UINT32_MAX)
		return;
	vec_push(&j->codes, (struct code){ start, start + size, time_ns, name, j->codes.n, first_line,
					   line_count });
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
		if (!p || p == stop) {
			bad++;
			continue;
		}
		add_code(j, start, size, 0, strtab_add_n(&j->strings, p, MIN(stop - p, MAX_NAME)), 0, 0);
	}
	return bad;
}

/* --- jitdump --- */

enum { DUMP_LOAD = 0, DUMP_MOVE = 1, DUMP_DEBUG = 2 };
enum { DUMP_MAGIC = 0x4a695444, DUMP_HEADER = 40, DUMP_RECORD = 16 };

/* Line tables stand before the code that they are for. */
struct pending {
	uint64_t address;
	uint32_t first_line, line_count;
};

static void parse_debug(struct jit *j, struct reader *r, struct pending *p)
{
	uint32_t file = 0;
	uint64_t count;

	*p = (struct pending){ .address = reader_u64(r), .first_line = j->lines.n };
	count = reader_u64(r);
	for (uint64_t i = 0; i < MIN(count, MAX_LINES) && reader_more(r) && j->lines.n < UINT32_MAX; i++) {
		struct code_line l = { .address = reader_u64(r), .line = reader_u32(r) };
		const char *name;

		reader_u32(r); /* discriminator */
		name = reader_string(r);
		if (r->failed)
			break;
		/* "\xff" stands for the file of the entry before. */
		if (strcmp(name, "\xff"))
			file = strtab_add_n(&j->strings, name, strnlen(name, MAX_NAME));
		l.file = file;
		vec_push(&j->lines, l);
	}
	p->line_count = j->lines.n - p->first_line;
}

static void parse_load(struct jit *j, struct reader *r, uint64_t time_ns, struct pending *p)
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
	if (p->address != address)
		p->line_count = 0;
	add_code(j, address, size, time_ns, strtab_add_n(&j->strings, name, strnlen(name, MAX_NAME)),
		 p->first_line, p->line_count);
	*p = (struct pending){ 0 };
}

/* The code moved: the same name at a new place. */
static void parse_move(struct jit *j, struct reader *r, uint64_t time_ns, const struct map *by_address)
{
	uint64_t from, to, size, *at;

	reader_skip(r, 4 + 4 + 8);
	from = reader_u64(r);
	to = reader_u64(r);
	size = reader_u64(r);
	at = r->failed ? NULL : map_get(by_address, from);
	if (at)
		add_code(j, to, size, time_ns, j->codes.v[*at].name, 0, 0);
}

int jit_parse_dump(struct jit *j, const void *data, size_t n, struct err *err)
{
	struct reader head = reader_of(data, n);
	struct map by_address = { 0 };
	struct pending lines = { 0 };
	uint32_t magic = reader_u32(&head), header_size;
	size_t at;

	reader_skip(&head, 4);
	header_size = reader_u32(&head);
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
		if (id == DUMP_DEBUG)
			parse_debug(j, &r, &lines);
		else if (id == DUMP_LOAD)
			parse_load(j, &r, time_ns, &lines);
		else if (id == DUMP_MOVE)
			parse_move(j, &r, time_ns, &by_address);
		if (id <= DUMP_MOVE && j->codes.n)
			*map_put(&by_address, j->codes.v[j->codes.n - 1].start, 0) = j->codes.n - 1;
		at += size;
	}
	map_done(&by_address);
	return 0;
}

/* --- look-up --- */

static int compare_time(const void *a, const void *b)
{
	const struct code *x = *(const struct code *const *)a, *y = *(const struct code *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
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

static void tell(const struct jit *j, const struct code *c, uint64_t address, size_t index,
		 symbols_got_fn *got, void *context)
{
	struct symbols_call call = { .linkage = "", .name = strtab_get(&j->strings, c->name), .file = "" };
	const struct code_line *best = NULL;

	for (uint32_t i = 0; i < c->line_count; i++) {
		const struct code_line *l = &j->lines.v[c->first_line + i];

		if (l->address <= address && (!best || l->address >= best->address))
			best = l;
	}
	if (best) {
		call.file = strtab_get(&j->strings, best->file);
		call.line = best->line;
	}
	got(context, index, &call, 1);
}

/* The next address from i on that has no name yet; paths are shortened on the way. */
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

/* From the last function to the first, each takes the addresses in its range that are still free. */
void jit_resolve(const struct jit *j, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		 void *context)
{
	_cleanup_free_ const struct code **order = mem_alloc((j->codes.n + 1) * sizeof(*order));
	_cleanup_free_ uint32_t *next = mem_alloc((n + 1) * sizeof(*next));
	_cleanup_free_ uint8_t *done = mem_alloc(n + 1);

	for (size_t i = 0; i < j->codes.n; i++)
		order[i] = &j->codes.v[i];
	qsort(order, j->codes.n, sizeof(*order), compare_time);
	for (size_t i = 0; i <= n; i++)
		next[i] = i;
	for (size_t k = j->codes.n; k-- > 0;) {
		const struct code *c = order[k];
		size_t i = next_open(next, first_at(addresses, n, c->start));

		for (; i < n && addresses[i] < c->end; i = next_open(next, i)) {
			tell(j, c, addresses[i], i, got, context);
			done[i] = 1;
			next[i] = i + 1;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (!done[i])
			got(context, i, NULL, 0);
}
