/*
 * fuzz_blocklog.c - lines of a log as blocks, and answers of JSON-RPC.
 *
 * A block has a number and does not end before it begins; nothing is counted twice.
 */
#include <stdlib.h>
#include <string.h>

#include "ethereum/log/blocklog.h"
#include "ethereum/rpcblock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void got_block(void *context, const struct blocklog_block *b)
{
	uint64_t *n = context;

	expect(b->amends ? b->order < *n : b->order == *n);
	*n += !b->amends;
	expect(b->first <= b->block.number && b->count == b->block.number - b->first + 1);
	expect(b->block.known & BLOCK_NUMBER && b->start_ns <= b->end_ns && b->timed == (b->start_ns < b->end_ns));
	expect(strlen(b->hash) == 0 || strlen(b->hash) == 66);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blocklog *m = NULL;
	struct rpcblock answer;
	uint64_t blocks = 0, now = 5000000000, id;

	rpcblock_parse((const char *)data, size, 1, &answer, NULL);
	if (rpcblock_message((const char *)data, size, &id, &answer) == RPCBLOCK_HEAD)
		expect(memchr(answer.hash, 0, sizeof(answer.hash)));
	if (blocklog_new(NULL, NULL, got_block, &blocks, &m, NULL))
		abort();
	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		size_t n = end ? (size_t)(end - data) - at : size - at;

		blocklog_line(m, (const char *)data + at, n, now += 1000000);
		at += n + 1;
	}
	blocklog_flush(m);
	expect(blocklog_counted(m)->blocks == blocks);
	blocklog_free(m);
	return 0;
}
