/*
 * code.c - the instructions of functions, read from their first to their last byte. Compilers of Rust put no data among
 * them. All walks of one file share a budget: the ranges of functions are as untrusted as the code.
 */
#include "elf/file.h"
#include "elf/tokio/tokioint.h"

enum { MAX_CALLS = 512 }; /* of one function */

void code_walk(struct tokio_file *f, const struct functions_range *function, code_see_fn *see, void *context)
{
	uint64_t n = function->end - function->start, at = 0;
	const uint8_t *code = elf_code_at(f->elf, function->start, &n);

	n = MIN(n, f->steps);
	while (code && at < n) {
		struct instruction i;

		instruction_decode(code + at, n - at, function->start + at, &i);
		if (!i.length)
			break;
		f->steps -= i.length;
		if (!see(context, function->start + at, code + at, &i))
			break;
		at += i.length;
	}
}

struct calling {
	const struct functions_range *function;
	struct code_calls *calls;
};

static bool see_call(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	struct calling *c = context;

	if (i->op != OP_CALL && i->op != OP_JUMP && i->op != OP_BRANCH)
		return true;
	if (!i->target || (i->target >= c->function->start && i->target < c->function->end))
		return true;
	for (size_t k = 0; k < c->calls->n; k++)
		if (c->calls->v[k] == i->target)
			return true;
	vec_push(c->calls, i->target);
	return c->calls->n < MAX_CALLS;
}

void code_calls(struct tokio_file *f, uint64_t function, struct code_calls *ret)
{
	const struct functions_range *range = functions_find(&f->functions, function);
	struct calling c = { range, ret };

	*ret = (struct code_calls){ 0 };
	if (range && range->start == function)
		code_walk(f, range, see_call, &c);
}
