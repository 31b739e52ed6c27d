#include "collect/perf/samples.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"

/* What comes behind the id. */
static const uint64_t parts[SAMPLE_KINDS] = {
	[SAMPLE_CLOCK] = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
	[SAMPLE_SWITCH] = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER,
	[SAMPLE_STACK] = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
	[SAMPLE_WAKING] = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
};

void sample_ask(enum sample_kind kind, bool kernel, uint32_t dump_bytes, struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | parts[kind];
	attr->exclude_callchain_user = 1;
	attr->exclude_callchain_kernel = !kernel;
	attr->sample_max_stack = SHARED_MAX_KERNEL_FRAMES;
	if (parts[kind] & PERF_SAMPLE_STACK_USER)
		attr->sample_stack_user = dump_bytes;
	for (unsigned bit = 0; parts[kind] & PERF_SAMPLE_REGS_USER && bit < UNWIND_PERF_BITS; bit++)
		attr->sample_regs_user |= (uint64_t)(unwind_perf_register(UNWIND_HOST, bit) >= 0) << bit;
}

uint64_t sample_id(const struct perf_event_header *h)
{
	struct reader r = reader_of(h, h->size);

	reader_skip(&r, sizeof(*h) + 24);
	return reader_u64(&r);
}

static void read_chain(struct reader *r, struct sample *ret)
{
	uint64_t n = reader_u64(r);

	for (uint64_t i = 0; i < n && reader_more(r); i++) {
		uint64_t address = reader_u64(r);

		if (address < PERF_CONTEXT_MAX && ret->kernel_count < SHARED_MAX_KERNEL_FRAMES)
			ret->kernel[ret->kernel_count++] = address;
	}
}

static void read_registers(struct reader *r, struct sample *ret)
{
	ret->has_regs = reader_u64(r) == PERF_SAMPLE_REGS_ABI_64;
	ret->regs.leaf = true;
	for (unsigned bit = 0; ret->has_regs && bit < UNWIND_PERF_BITS; bit++)
		if (unwind_perf_register(UNWIND_HOST, bit) >= 0)
			ret->regs.r[unwind_perf_register(UNWIND_HOST, bit)] = reader_u64(r);
}

/* Returns false if more was copied than there was room for. */
static bool read_dump(struct reader *r, struct sample *ret)
{
	uint64_t bytes = reader_u64(r);

	ret->dump.bytes = reader_bytes(r, bytes);
	ret->dump.size = bytes ? reader_u64(r) : 0;
	ret->dump.sp = ret->regs.r[UNWIND_RSP];
	return ret->dump.size <= bytes;
}

bool sample_read(enum sample_kind kind, const struct perf_event_header *h, struct sample *ret)
{
	struct reader r = reader_of(h, h->size);

	*ret = (struct sample){ 0 };
	reader_skip(&r, sizeof(*h) + 8);
	ret->pid = reader_u32(&r);
	ret->tid = reader_u32(&r);
	ret->time_ns = reader_u64(&r);
	reader_skip(&r, sizeof(uint64_t)); /* its id */
	read_chain(&r, ret);
	if (parts[kind] & PERF_SAMPLE_RAW) {
		ret->raw_bytes = reader_u32(&r);
		ret->raw = reader_bytes(&r, ret->raw_bytes);
	}
	if (parts[kind] & PERF_SAMPLE_REGS_USER)
		read_registers(&r, ret);
	/* Without registers there is no copy either. */
	if (parts[kind] & PERF_SAMPLE_STACK_USER && ret->has_regs && !read_dump(&r, ret))
		return false;
	return !r.failed;
}

struct sample_end sample_end(const struct perf_event_header *h)
{
	struct sample_end end = { 0 };

	if (h->size >= sizeof(*h) + sizeof(end))
		memcpy(&end, (const char *)h + h->size - sizeof(end), sizeof(end));
	return end;
}
