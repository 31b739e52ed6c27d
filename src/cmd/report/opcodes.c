#include "cmd/report/opcodes.h"

#include <errno.h>
#include <string.h>

#include "analyze/subsystem/opcodes.h"
#include "base/err.h"
#include "base/log.h"
#include "ethereum/trace/opcodegas.h"
#include "profile/profile.h"

enum { LIMIT_MS = 30000, BLOCKS_MAX = 64 };

typedef VEC(uint64_t) numbers_vec;
typedef VEC(struct opcode_span) spans_vec;

static void find_blocks(const struct profile *p, numbers_vec *numbers, spans_vec *spans)
{
	for (size_t i = 0; i < p->marks.n && numbers->n < BLOCKS_MAX; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (strcmp(profile_str(p, m->kind), "block") || !(m->block.known & BLOCK_NUMBER) ||
		    m->end_ns <= m->start_ns)
			continue;
		if (m->block.known & BLOCK_TRANSACTIONS && !m->block.transactions)
			continue;
		vec_push(numbers, m->block.number);
		vec_push(spans, (struct opcode_span){ m->start_ns, m->end_ns });
	}
}

int opcodes_ask(const char *url, struct classifier *c, struct causes *causes, struct opcodegas *gas,
		struct opcode_costs *ret, struct err *err)
{
	VEC(struct opcode_figure) figures = { 0 };
	numbers_vec numbers = { 0 };
	spans_vec spans = { 0 };
	int r;

	find_blocks(c->p, &numbers, &spans);
	if (numbers.n)
		log_info("asking %s for the gas of %zu blocks, for at most %d s", url, numbers.n,
			 LIMIT_MS / 1000);
	r = numbers.n ? opcodegas_ask(url, numbers.v, numbers.n, LIMIT_MS, gas, err)
		      : err_set(err, ENODATA,
				"--rpc asks for the gas of blocks, and this recording has none with a number "
				"and a "
				"duration: record with --log or --rpc");
	for (size_t i = 0; !r && i < gas->rows.n; i++)
		vec_push(&figures,
			 (struct opcode_figure){ gas->rows.v[i].name,
						 gas->rows.v[i].precompile ? LABEL_PRECOMPILE : LABEL_OPCODE,
						 gas->rows.v[i].count, gas->rows.v[i].gas });
	if (!r) {
		/* The first ones were traced. */
		opcode_costs_make(ret, c, causes, figures.v, figures.n, spans.v, gas->blocks.n);
		ret->blocks = gas->blocks.n;
		ret->transactions = gas->transactions;
		if (gas->blocks.n < numbers.n)
			log_info("traced %zu of %zu blocks in %d s", gas->blocks.n, numbers.n,
				 LIMIT_MS / 1000);
	}
	vec_done(&figures);
	vec_done(&numbers);
	vec_done(&spans);
	return r;
}
