/*
 * code.c - the instructions of functions, read from their first to their last byte. Compilers of Rust put no data among
 * them. All walks of one file share a budget: the ranges of functions are as untrusted as the code.
 */
#include <string.h>

#include "elf/file.h"
#include "elf/tokio/tokioint.h"

enum {
	MAX_CALLS = 512,          /* of one function */
	MAX_FUNCTION = 64 << 10,  /* bytes of one whose end is not known */
	ALIGNMENT = 16,           /* of functions */
};

/* Finds the end of code that is followed by padding: after a jump or return, up to the next multiple of 16. */
static uint64_t find_end(const struct tokio_file *f, uint64_t start)
{
	uint64_t n = MAX_FUNCTION, at = 0;
	const uint8_t *code = elf_code_at(f->elf, start, &n);
	bool ends = false;

	while (code && at < n) {
		struct instruction i;

		instruction_decode(code + at, n - at, start + at, &i);
		if (!i.length || (ends && i.padding))
			break;
		at += i.length;
		ends = i.op == OP_RETURN || i.op == OP_JUMP || i.op == OP_STOP;
		if (ends && !((start + at) % ALIGNMENT))
			break;
	}
	return start + at;
}

bool code_function(const struct tokio_file *f, uint64_t address, struct functions_range *ret)
{
	const struct functions_range *r = functions_find(&f->functions, address);

	if (r) {
		*ret = *r;
		return r->start == address;
	}
	if (!f->sparse || address % ALIGNMENT)
		return false;
	*ret = (struct functions_range){ address, find_end(f, address) };
	return ret->end > address;
}

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
	const struct image_pointers *pointers;
	struct functions_range function;
	struct code_calls *calls;
};

/* Where an instruction goes to; through a slot of the GOT, where the loader puts the address of code. */
static uint64_t target_of(const struct calling *c, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	uint64_t slot;
	int32_t distance;
	size_t at;

	if (i->target || i->length != 6 || bytes[0] != 0xff || (bytes[1] != 0x15 && bytes[1] != 0x25))
		return i->target;
	memcpy(&distance, bytes + 2, 4);
	slot = address + 6 + (uint64_t)(int64_t)distance;
	at = vec_search(k, 0, c->pointers->n, c->pointers->v[k].address < slot);
	return at < c->pointers->n && c->pointers->v[at].address == slot ? c->pointers->v[at].value : 0;
}

static bool see_call(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	struct calling *c = context;
	uint64_t target;

	if (i->op != OP_CALL && i->op != OP_JUMP && i->op != OP_BRANCH)
		return true;
	target = target_of(c, address, bytes, i);
	if (!target || (target >= c->function.start && target < c->function.end))
		return true;
	for (size_t k = 0; k < c->calls->n; k++)
		if (c->calls->v[k] == target)
			return true;
	vec_push(c->calls, target);
	return c->calls->n < MAX_CALLS;
}

void code_calls(struct tokio_file *f, uint64_t function, struct code_calls *ret)
{
	struct calling c = { .pointers = &f->pointers, .calls = ret };

	*ret = (struct code_calls){ 0 };
	if (code_function(f, function, &c.function))
		code_walk(f, &c.function, see_call, &c);
}
