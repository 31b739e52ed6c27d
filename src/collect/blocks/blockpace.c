#include "collect/blocks/blockpace.h"

#include "base/mem.h"

/* Without a gap to compare with, a chain has halted when nothing came for so long. */
static const uint64_t halt_ns = 60000000000, ms_ns = 1000000;

static uint64_t since_block(const struct blockpace *p, uint64_t now_ns)
{
	return now_ns > p->block_ns ? now_ns - p->block_ns : 0;
}

void blockpace_answered(struct blockpace *p, uint64_t now_ns, uint64_t new_blocks)
{
	if (new_blocks && p->seen) {
		/* Of several blocks only their mean is known. */
		p->gaps_ns[p->next] = since_block(p, now_ns) / new_blocks;
		p->next = (p->next + 1) % BLOCKPACE_GAPS;
		p->count = MIN(p->count + 1, (uint32_t)BLOCKPACE_GAPS);
	}
	if (new_blocks || !p->begun || now_ns < p->block_ns)
		p->block_ns = now_ns;
	p->seen |= new_blocks > 0;
	p->begun = true;
}

uint32_t blockpace_wait_ms(const struct blockpace *p, uint64_t now_ns)
{
	uint64_t shortest = UINT64_MAX, longest = 0, since = since_block(p, now_ns), quiet = 0, late;

	for (uint32_t i = 0; i < p->count; i++) {
		shortest = MIN(shortest, p->gaps_ns[i]);
		longest = MAX(longest, p->gaps_ns[i]);
	}
	if (p->count)
		quiet = MIN(shortest / 4 * 3, (p->count < BLOCKPACE_GAPS ? BLOCKPACE_SHORT_MS : BLOCKPACE_LONG_MS) * ms_ns);
	/* A question is not put off by less than the usual pause. */
	if (quiet > since && (quiet - since) / ms_ns > BLOCKPACE_ASK_MS)
		return (quiet - since) / ms_ns;
	/* Twice the longest gap is a slot without a block; what takes longer than four, a halt. */
	late = p->count ? MAX(longest * 4, 4 * (uint64_t)BLOCKPACE_SLOW_MS * ms_ns) : halt_ns;
	if (since <= late)
		return BLOCKPACE_ASK_MS;
	return MIN(BLOCKPACE_ASK_MS + (since - late) / 16 / ms_ns, (uint64_t)BLOCKPACE_SLOW_MS);
}
