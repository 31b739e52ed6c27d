#include "import/jemalloc/heappprof.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "import/jemalloc/heapv2.h"
#include "import/pproffields.h"

static const size_t limit_bytes = 1U << 30;
enum { MAX_DEPTH = 4096, MAX_MAPPINGS = 1 << 16, FILE_SHIFT = 44 };

struct span {
	const uint8_t *data;
	size_t n;
};

struct mapping {
	uint64_t id, start, limit, offset, file, build_id;
};

struct location {
	uint64_t id, mapping, address;
	struct span message; /* its lines are read when they are needed */
};

struct pprof {
	struct heapv2 *out;
	VEC(struct span) strings, types, samples;
	VEC(struct mapping) mappings;
	VEC(struct location) locations;
	struct map mapping_index, location_index, function_names; /* by id: index, index, string */
	int live, live_objects, all, all_objects;  /* which of a sample's values, -1 = none */
	bool bad;
};

static bool packed(const char *data, size_t n)
{
	return n > 2 && (uint8_t)data[0] == 0x1f && (uint8_t)data[1] == 0x8b;
}

/* Unpacked, as one comes through a proxy, it begins with a message of a type or of a mapping. */
bool heappprof_probe(const char *data, size_t n)
{
	return packed(data, n) ||
	       (n > 2 && (data[0] == (PROFILE_TYPE << 3 | 2) || data[0] == (PROFILE_MAPPING << 3 | 2)));
}

struct numbers {
	VEC(uint64_t) list;
};

static void add_number(void *to, uint64_t value)
{
	vec_push(&((struct numbers *)to)->list, value);
}

/* --- the tables --- */

static struct span string_at(const struct pprof *p, uint64_t id)
{
	return id < p->strings.n ? p->strings.v[id] : (struct span){ 0 };
}

static void read_mapping(struct pprof *p, struct span message)
{
	struct reader r = reader_of(message.data, message.n);
	struct mapping m = { 0 };
	struct protobuf_field f;

	while (protobuf_next(&r, &f)) {
		uint64_t *const places[] = {
			NULL, &m.id, &m.start, &m.limit, &m.offset, &m.file, &m.build_id
		};

		if (f.number && f.number < ARRAY_LEN(places))
			*places[f.number] = f.value;
	}
	p->bad |= r.failed || p->mappings.n >= MAX_MAPPINGS;
	if (p->bad)
		return;
	map_put(&p->mapping_index, m.id, p->mappings.n);
	vec_push(&p->mappings, m);
}

static void read_location(struct pprof *p, struct span message)
{
	struct reader r = reader_of(message.data, message.n);
	struct location l = { .message = message };
	struct protobuf_field f;

	while (protobuf_next(&r, &f)) {
		if (f.number == 1)
			l.id = f.value;
		else if (f.number == 2)
			l.mapping = f.value;
		else if (f.number == 3)
			l.address = f.value;
	}
	p->bad |= r.failed;
	map_put(&p->location_index, l.id, p->locations.n);
	vec_push(&p->locations, l);
}

static void read_function(struct pprof *p, struct span message)
{
	struct reader r = reader_of(message.data, message.n);
	uint64_t id = 0, name = 0;
	struct protobuf_field f;

	while (protobuf_next(&r, &f)) {
		if (f.number == 1)
			id = f.value;
		else if (f.number == 2)
			name = f.value;
	}
	p->bad |= r.failed;
	*map_put(&p->function_names, id, name) = name;
}

static void read_tables(struct pprof *p, const uint8_t *data, size_t n)
{
	struct reader r = reader_of(data, n);
	struct protobuf_field f;

	while (protobuf_next(&r, &f)) {
		struct span bytes = { f.data, f.n };

		if (f.number <= PROFILE_STRING && !f.data)
			p->bad = true;
		if (!f.data)
			continue;
		if (f.number == PROFILE_STRING)
			vec_push(&p->strings, bytes);
		else if (f.number == PROFILE_TYPE)
			vec_push(&p->types, bytes);
		else if (f.number == PROFILE_SAMPLE)
			vec_push(&p->samples, bytes);
		else if (f.number == PROFILE_MAPPING)
			read_mapping(p, bytes);
		else if (f.number == PROFILE_LOCATION)
			read_location(p, bytes);
		else if (f.number == PROFILE_FUNCTION)
			read_function(p, bytes);
	}
	p->bad |= r.failed;
}

static bool is(struct span s, const char *word)
{
	return s.n == strlen(word) && (!s.n || !memcmp(s.data, word, s.n));
}

/* Which value of a sample is which. */
static bool choose_values(struct pprof *p)
{
	p->live = p->live_objects = p->all = p->all_objects = -1;
	for (size_t i = 0; i < p->types.n && i < INT_MAX; i++) {
		struct reader r = reader_of(p->types.v[i].data, p->types.v[i].n);
		struct span type = { 0 };
		struct protobuf_field f;

		while (protobuf_next(&r, &f))
			if (f.number == 1)
				type = string_at(p, f.value);
		if (is(type, "inuse_space"))
			p->live = i;
		else if (is(type, "inuse_objects"))
			p->live_objects = i;
		else if (is(type, "alloc_space"))
			p->all = i;
		else if (is(type, "alloc_objects"))
			p->all_objects = i;
	}
	return p->live >= 0;
}

/* --- the heap --- */

static const struct mapping *mapping_of(const struct pprof *p, uint64_t id, size_t *ret_index)
{
	uint64_t *at = map_get(&p->mapping_index, id);

	*ret_index = at ? *at : 0;
	return at ? &p->mappings.v[*at] : NULL;
}

/* Returns whether addresses are relative to the files. Then the files' addresses overlap, and each file
 * gets a range of its own. */
static bool file_addresses(const struct pprof *p)
{
	for (size_t i = 0; i < p->locations.n; i++) {
		const struct location *l = &p->locations.v[i];
		size_t k;
		const struct mapping *m = l->mapping ? mapping_of(p, l->mapping, &k) : NULL;

		if (m && (l->address < m->start || l->address >= m->limit))
			return true;
	}
	return false;
}

static void add_maps(struct pprof *p)
{
	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct mapping *m = &p->mappings.v[i];
		struct span path = string_at(p, m->file), id = string_at(p, m->build_id);
		struct heapv2_build build = { 0 };
		struct proc_mapping map = { .start = m->start,
					    .end = m->limit,
					    .offset = m->offset,
					    .executable = true,
					    .inode = 1 };

		if (p->out->file_addresses) {
			map.start = (uint64_t)(i + 1) << FILE_SHIFT;
			map.end = map.start + (1ULL << FILE_SHIFT);
		}
		if (map.start >= map.end)
			map.end = map.start + 1;
		map.path = path.n ? mem_strndup((const char *)path.data, path.n) : mem_strdup("");
		if (id.n < sizeof(build.hex) && id.n)
			memcpy(build.hex, id.data, id.n);
		vec_push(&p->out->maps.list, map);
		vec_push(&p->out->builds, build);
	}
	p->out->has_maps = p->mappings.n;
}

static void add_names(struct pprof *p, const struct location *l, uint64_t address)
{
	struct reader r = reader_of(l->message.data, l->message.n);
	struct protobuf_field f, g;

	while (protobuf_next(&r, &f)) {
		struct reader line;
		uint64_t function = 0;
		uint64_t *name;
		struct span s;

		if (f.number != 4 || !f.data)
			continue;
		line = protobuf_inside(&f);
		while (protobuf_next(&line, &g))
			if (g.number == 1)
				function = g.value;
		name = map_get(&p->function_names, function);
		s = name ? string_at(p, *name) : (struct span){ 0 };
		if (s.n)
			vec_push(&p->out->names,
				 (struct heapv2_name){ address, strtab_add_n(&p->out->strings,
									     (const char *)s.data, s.n) });
	}
}

/* The address of a location as heapv2.h has it: that of a caller is where it returns to. */
static uint64_t address_of(struct pprof *p, const struct location *l)
{
	size_t k;
	const struct mapping *m = p->out->file_addresses ? mapping_of(p, l->mapping, &k) : NULL;

	if (m)
		return (uint64_t)(k + 1) << FILE_SHIFT | (l->address & ((1ULL << FILE_SHIFT) - 1));
	return l->address;
}

static uint64_t value_at(const struct numbers *values, int which)
{
	bool there = which >= 0 && (size_t)which < values->list.n && values->list.v[which] <= INT64_MAX;

	return there ? values->list.v[which] : 0;
}

static void add_sample(struct pprof *p, struct span message, const uint64_t *addresses)
{
	struct reader r = reader_of(message.data, message.n);
	struct heapv2_stack s = { .first = p->out->addresses.n };
	struct numbers locations = { 0 }, values = { 0 };
	struct protobuf_field f;

	while (protobuf_next(&r, &f)) {
		if (f.number == 1)
			r.failed |= !protobuf_numbers(&f, add_number, &locations);
		else if (f.number == 2)
			r.failed |= !protobuf_numbers(&f, add_number, &values);
	}
	p->bad |= r.failed;
	for (size_t i = 0; i < locations.list.n && s.depth < MAX_DEPTH; i++) {
		uint64_t *at = map_get(&p->location_index, locations.list.v[i]);

		if (!at)
			continue;
		vec_push(&p->out->addresses, addresses[*at] + !!s.depth);
		s.depth++;
	}
	s.live = (struct heapv2_pair){ value_at(&values, p->live_objects), value_at(&values, p->live) };
	s.all = (struct heapv2_pair){ value_at(&values, p->all_objects), value_at(&values, p->all) };
	p->out->accumulated |= s.all.bytes > 0;
	vec_push(&p->out->stacks, s);
	vec_done(&locations.list);
	vec_done(&values.list);
}

static int unpack(const char *data, size_t n, struct buf *out, struct err *err)
{
	z_stream z = { .next_in = (Bytef *)data, .avail_in = n };
	int r = inflateInit2(&z, 16 + MAX_WBITS) == Z_OK ? Z_OK : Z_MEM_ERROR;
	char piece[32 << 10];

	while (r == Z_OK && out->n < limit_bytes) {
		z.next_out = (Bytef *)piece;
		z.avail_out = sizeof(piece);
		r = inflate(&z, Z_NO_FLUSH);
		buf_add(out, piece, sizeof(piece) - z.avail_out);
	}
	inflateEnd(&z);
	return r == Z_STREAM_END ? 0
				 : err_set(err, EINVAL, "this is no heap dump: its compressed data are %s",
					   out->n >= limit_bytes ? "too large" : "damaged, or cut off");
}

static void read_heap(struct pprof *p)
{
	_cleanup_free_ uint64_t *addresses = mem_alloc((p->locations.n + 1) * sizeof(*addresses));

	p->out->file_addresses = file_addresses(p);
	add_maps(p);
	for (size_t i = 0; i < p->locations.n; i++) {
		addresses[i] = address_of(p, &p->locations.v[i]);
		add_names(p, &p->locations.v[i], addresses[i]);
	}
	for (size_t i = 0; i < p->samples.n; i++)
		add_sample(p, p->samples.v[i], addresses);
}

int heappprof_read(const char *data, size_t n, struct heapv2 *ret, struct err *err)
{
	struct pprof p = { .out = ret };
	int r = 0;

	*ret = (struct heapv2){ 0 };
	strtab_init(&ret->strings);
	read_tables(&p, (const uint8_t *)data, n);
	if (p.bad || !n)
		r = err_set(err, EINVAL, "this is no heap dump: neither of jemalloc nor of pprof");
	if (!r && !choose_values(&p))
		r = err_set(err, EPROTO, "this profile of pprof is not about a heap: it has no inuse_space");
	if (!r)
		read_heap(&p);
	if (!r && p.bad)
		r = err_set(err, EINVAL, "this profile of pprof is damaged");
	vec_done(&p.strings);
	vec_done(&p.types);
	vec_done(&p.samples);
	vec_done(&p.mappings);
	vec_done(&p.locations);
	map_done(&p.mapping_index);
	map_done(&p.location_index);
	map_done(&p.function_names);
	return r;
}

int heappprof_parse(const char *data, size_t n, struct heapv2 *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf plain = { 0 };
	int r;

	if (!packed(data, n))
		return heappprof_read(data, n, ret, err);
	*ret = (struct heapv2){ 0 };
	strtab_init(&ret->strings);
	r = n < UINT32_MAX ? unpack(data, n, &plain, err)
			   : err_set(err, EFBIG, "a heap dump of more than 4 GB");
	if (!r) {
		heapv2_done(ret);
		r = heappprof_read(plain.data ? plain.data : "", plain.n, ret, err);
	}
	return r;
}
