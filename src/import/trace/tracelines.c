#include "import/trace/tracelines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/log/xlayertrace.h"

enum { LINE = 2048 };

struct tracelines {
	traceevents_fn *fn;
	void *context;
	struct xlayertrace *blocks;
	char line[LINE];
	size_t n;
	bool skip; /* the rest of a line that is too long */
	uint64_t odd;
};

static void got_block(void *context, const struct xlayertrace_block *b)
{
	struct tracelines *t = context;
	struct trace_event e = { .phase = 'X', .timed = true, .lasts = true, .time_ns = b->start_wall_ns,
				 .duration_ns = b->end_wall_ns - b->start_wall_ns,
				 .block = { .number = b->number, .known = BLOCK_NUMBER } };

	snprintf(e.name, sizeof(e.name), "%s", b->built ? "xlayer_seq_block" : "xlayer_rpc_block");
	t->fn(t->context, &e);
}

struct tracelines *tracelines_new(traceevents_fn *fn, void *context)
{
	struct tracelines *t = mem_alloc(sizeof(*t));

	t->fn = fn;
	t->context = context;
	t->blocks = xlayertrace_new(got_block, t);
	return t;
}

static void end_line(struct tracelines *t)
{
	if (t->skip || (t->n && !xlayertrace_line(t->blocks, t->line, t->n)))
		t->odd++;
	t->skip = false;
	t->n = 0;
}

void tracelines_feed(struct tracelines *t, const char *data, size_t n)
{
	while (n) {
		const char *newline = memchr(data, '\n', n);
		size_t k = newline ? (size_t)(newline - data) : n;

		t->skip |= k > sizeof(t->line) - t->n;
		if (!t->skip) {
			memcpy(t->line + t->n, data, k);
			t->n += k;
		}
		if (newline)
			end_line(t);
		data += k + (newline != NULL);
		n -= k + (newline != NULL);
	}
}

uint64_t tracelines_odd(const struct tracelines *t)
{
	return t->odd + xlayertrace_counted(t->blocks)->bad;
}

void tracelines_free(struct tracelines *t)
{
	if (!t)
		return;
	xlayertrace_free(t->blocks);
	free(t);
}
