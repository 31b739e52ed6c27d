/*
 * fuzz_store.c - what a store answers, which any server may have written; and its address. The first line is the address, each
 * other one the answer to a question, in their order; what is missing is the last one again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fleet/clickhouse.h"
#include "fleet/fetch/fetch.h"
#include "fleet/listing.h"
#include "fleet/storeurl.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int answer(void *context, unsigned shard, const struct clickhouse_request *q, struct clickhouse_reply *ret, struct err *err)
{
	char **rest = context, *line = *rest, *next = line + strlen(line) + 1;

	/* Lines are ended by NUL, the last one by two. */
	*ret = (struct clickhouse_reply){ .status = 200, .text = line, .n = strlen(line) };
	if (*next)
		*rest = next;
	return 0;
}

static void check(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].stack >= p->stacks.n || p->samples.v[i].thread >= p->threads.n || p->samples.v[i].event >= p->events.n)
			abort();
	for (size_t i = 0; i < p->frames.n; i++)
		if (p->frames.v[i].first_line + p->frames.v[i].line_count > p->lines.n ||
		    (p->frames.v[i].module != PROFILE_NONE && p->frames.v[i].module >= p->modules.n))
			abort();
	for (size_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i].process >= p->processes.n)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(size + 2, 1), *lines;
	struct storeurl url;
	struct err err;

	if (!text)
		return 0;
	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\n' || !text[i])
			text[i] = 0;
	lines = text + strlen(text) + (strlen(text) < size);
	if (!storeurl_parse(text, 1794909600000000000ULL, &url, &err) && url.target && url.shards.n < 4) {
		char *rest = lines;
		struct clickhouse *c = clickhouse_new(&url, &(struct clickhouse_transport){ .send = answer, .context = &rest });
		struct profile *p = NULL;
		struct listing l;

		if (!fetch_profile(c, &url, NULL, &p, &err))
			check(p);
		profile_free(p);
		rest = lines;
		listing_make(&l, c, &err);
		listing_done(&l);
		clickhouse_close(c);
	}
	storeurl_done(&url);
	storeurl_hide(text);
	free(text);
	return 0;
}
