#include "import/perf/perfdataattr.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void perfdataattrs_done(struct perfdataattrs *a)
{
	vec_done_each(&a->list, e, free(e->name));
	map_done(&a->ids);
	map_done(&a->reads);
}

bool perfdataattrs_add(struct perfdataattrs *a, const uint8_t *bytes, size_t n)
{
	struct perfdataattr e = { 0 };

	if (n < PERFDATAATTR_SMALLEST || a->list.n >= PERFDATAATTR_MOST)
		return false;
	memcpy(&e.attr, bytes, MIN(n, sizeof(e.attr)));
	if (a->list.n && e.attr.sample_type != a->list.v[0].attr.sample_type)
		a->several_layouts = true;
	vec_push(&a->list, e);
	return true;
}

void perfdataattrs_add_id(struct perfdataattrs *a, uint64_t id, size_t index)
{
	*map_put(&a->ids, id, 0) = index;
}

void perfdataattrs_name(struct perfdataattrs *a, uint64_t id, const char *name)
{
	const uint64_t *index = map_get(&a->ids, id);
	struct perfdataattr *e = index && *index < a->list.n ? &a->list.v[*index] : NULL;

	if (!e || !name || !*name)
		return;
	free(e->name);
	e->name = mem_strdup(name);
}

static unsigned count_bits(uint64_t x)
{
	return __builtin_popcountll(x);
}

/* The fields of a sample before this one have 8 bytes each. */
static size_t place_in_sample(uint64_t type, uint64_t field)
{
	static const uint64_t order[] = { PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
					  PERF_SAMPLE_ADDR, PERF_SAMPLE_ID };
	size_t at = sizeof(struct perfdataheader);

	for (size_t i = 0; i < ARRAY_LEN(order) && order[i] != field; i++)
		at += type & order[i] ? 8 : 0;
	return at;
}

static const uint64_t trailer_fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
				       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

size_t perfdataattr_trailer(const struct perfdataattr *a)
{
	return a->attr.sample_id_all ? 8 * count_bits(a->attr.sample_type & trailer_fields) : 0;
}

/* Where a field is in the trailer, from the record's end on; 0: it is not there. */
static size_t place_in_trailer(const struct perfdataattr *a, uint64_t field)
{
	static const uint64_t order[] = { PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_ID,
					  PERF_SAMPLE_TIME };
	uint64_t type = a->attr.sample_type;
	size_t at = 0;

	if (!a->attr.sample_id_all || !(type & field))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		at += type & order[i] ? 8 : 0;
		if (order[i] == field)
			return at;
	}
	return 0;
}

static bool read_at(const struct perfdataheader *h, size_t at, uint64_t *ret)
{
	if (at > h->size || h->size - at < 8)
		return false;
	memcpy(ret, (const char *)h + at, 8);
	return true;
}

static bool read_field(const struct perfdataattr *a, const struct perfdataheader *h, uint64_t field, uint64_t *ret)
{
	size_t back;

	if (!(a->attr.sample_type & field))
		return false;
	if (h->type == PERF_RECORD_SAMPLE)
		return read_at(h, place_in_sample(a->attr.sample_type, field), ret);
	back = place_in_trailer(a, field);
	return back && back + sizeof(*h) <= h->size && read_at(h, h->size - back, ret);
}

const struct perfdataattr *perfdataattrs_of(const struct perfdataattrs *a, const struct perfdataheader *h)
{
	const struct perfdataattr *first = a->list.n ? &a->list.v[0] : NULL;
	const uint64_t *index;
	uint64_t id;

	if (!first || a->list.n == 1)
		return first;
	if (!read_field(first, h, PERF_SAMPLE_IDENTIFIER, &id) && !read_field(first, h, PERF_SAMPLE_ID, &id))
		return h->type == PERF_RECORD_SAMPLE && a->several_layouts ? NULL : first;
	index = map_get(&a->ids, id);
	if (index)
		return &a->list.v[*index];
	/* What perf makes up itself has no id. */
	return h->type == PERF_RECORD_SAMPLE && id ? NULL : first;
}

uint64_t perfdataattr_time(const struct perfdataattr *a, const struct perfdataheader *h)
{
	uint64_t time;

	return read_field(a, h, PERF_SAMPLE_TIME, &time) && time != UINT64_MAX ? time : 0;
}

char *perfdataattr_shown(const struct perfdataattr *a)
{
	static const char *const software[] = { "cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations",
						"minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
						"bpf-output", "cgroup-switches" };
	static const char *const hardware[] = { "cycles", "instructions", "cache-references", "cache-misses", "branches",
						"branch-misses", "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend",
						"ref-cycles" };
	uint64_t config = a->attr.config;

	if (a->name)
		return mem_strdup(a->name);
	if (a->attr.type == PERF_TYPE_SOFTWARE && config < ARRAY_LEN(software))
		return mem_strdup(software[config]);
	if (a->attr.type == PERF_TYPE_HARDWARE && config < ARRAY_LEN(hardware))
		return mem_strdup(hardware[config]);
	if (a->attr.type == PERF_TYPE_TRACEPOINT)
		return mem_printf("tracepoint %llu", (unsigned long long)config);
	return mem_printf("event %u:0x%llx", a->attr.type, (unsigned long long)config);
}
