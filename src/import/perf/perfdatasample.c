#include "import/perf/perfdatasample.h"

#include "base/buf.h"
#include "import/perf/perfdataattr.h"

/* Words that a count in the record claims. */
static const uint8_t *take_words(struct reader *r, uint64_t count, unsigned words)
{
	if (count > (r->end - r->pos) / 8 / words) {
		r->failed = true;
		return NULL;
	}
	return reader_bytes(r, count * 8 * words);
}

static void read_values(struct reader *r, uint64_t format, struct perfdatasample *s)
{
	unsigned times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	unsigned each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & (1U << 4 /* PERF_FORMAT_LOST */));
	uint64_t count;

	if (!(format & PERF_FORMAT_GROUP)) {
		reader_skip(r, 8 * (times + each));
		return;
	}
	count = reader_u64(r);
	reader_skip(r, 8 * times);
	s->group.values = take_words(r, count, each);
	s->group.stride = each;
	s->group.count = format & PERF_FORMAT_ID && !r->failed ? count : 0;
}

static void read_raw(struct reader *r, struct perfdatasample *s)
{
	s->raw_bytes = reader_u32(r);
	s->raw = reader_bytes(r, s->raw_bytes);
	/* The kernel pads the size and the bytes together to words. */
	reader_skip(r, -(r->pos) & 7);
}

static void read_branches(struct reader *r, uint64_t type, struct perfdatasample *s)
{
	s->branch_count = reader_u64(r);
	if (type & 1U << 17 /* PERF_SAMPLE_BRANCH_HW_INDEX */)
		reader_skip(r, 8);
	s->branches = take_words(r, s->branch_count, 3);
	if (type & 1U << 19 /* PERF_SAMPLE_BRANCH_COUNTERS */)
		take_words(r, s->branch_count, 1);
}

static const uint8_t *read_regs(struct reader *r, uint64_t mask, uint64_t *abi)
{
	*abi = reader_u64(r);
	return *abi ? take_words(r, __builtin_popcountll(mask), 1) : NULL;
}

static void read_stack(struct reader *r, struct perfdatasample *s)
{
	uint64_t bytes = reader_u64(r);

	if (!bytes)
		return;
	if (bytes > r->end - r->pos) {
		r->failed = true;
		return;
	}
	s->stack = reader_bytes(r, bytes);
	s->stack_bytes = reader_u64(r);
	if (s->stack_bytes > bytes)
		r->failed = true;
}

static uint64_t take_if(struct reader *r, uint64_t type, uint64_t field)
{
	return type & field ? reader_u64(r) : 0;
}

/* The fields of fixed size, which come first. */
static void read_fixed(struct reader *r, uint64_t type, struct perfdatasample *s)
{
	s->id = take_if(r, type, PERF_SAMPLE_IDENTIFIER);
	s->ip = take_if(r, type, PERF_SAMPLE_IP);
	if (type & PERF_SAMPLE_TID) {
		s->pid = reader_u32(r);
		s->tid = reader_u32(r);
	}
	s->time = take_if(r, type, PERF_SAMPLE_TIME);
	s->addr = take_if(r, type, PERF_SAMPLE_ADDR);
	if (type & PERF_SAMPLE_ID)
		s->id = reader_u64(r);
	take_if(r, type, PERF_SAMPLE_STREAM_ID);
	s->cpu = take_if(r, type, PERF_SAMPLE_CPU);
	s->period = take_if(r, type, PERF_SAMPLE_PERIOD);
}

bool perfdatasample_parse(const struct perfdataattr *a, const struct perfdataheader *h, struct perfdatasample *ret)
{
	struct reader r = reader_of(h, h->size);
	uint64_t type = a->attr.sample_type;

	*ret = (struct perfdatasample){ .misc = h->misc };
	reader_skip(&r, sizeof(*h));
	read_fixed(&r, type, ret);
	if (!(type & PERF_SAMPLE_PERIOD))
		ret->period = a->attr.freq ? 1 : a->attr.sample_period;
	if (type & PERF_SAMPLE_READ)
		read_values(&r, a->attr.read_format, ret);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		ret->chain_count = reader_u64(&r);
		ret->chain = take_words(&r, ret->chain_count, 1);
	}
	if (type & PERF_SAMPLE_RAW)
		read_raw(&r, ret);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		read_branches(&r, a->attr.branch_sample_type, ret);
	if (type & PERF_SAMPLE_REGS_USER)
		ret->regs = read_regs(&r, a->attr.sample_regs_user, &ret->regs_abi);
	if (type & PERF_SAMPLE_STACK_USER)
		read_stack(&r, ret);
	/* What comes after is of no use here: weight, memory, transactions, registers at the interrupt, pages, AUX. */
	return !r.failed;
}
