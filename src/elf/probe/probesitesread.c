/*
 * probesitesread.c - the part of probesites.h that reads instructions of x86-64.
 */
#include <capstone.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/probe/probesites.h"
#include "elf/file.h"

enum {
	PROLOGUE = 64, /* instructions in which the state of a future is searched for */
	NEAR = 4,      /* instructions before an indirect jump in which the stack is released */
};

struct code {
	const struct elf *elf;
	uint64_t address, size; /* of the function */
	uint64_t cold, cold_size;
};

static bool inside(const struct code *c, uint64_t address)
{
	return address - c->address < c->size || (c->cold_size && address - c->cold < c->cold_size);
}

static bool is_push(const cs_insn *in)
{
	return (in->size == 1 && in->bytes[0] >= 0x50 && in->bytes[0] <= 0x57) ||
	       (in->size == 2 && in->bytes[0] == 0x41 && in->bytes[1] >= 0x50 && in->bytes[1] <= 0x57);
}

static bool is_jump(const cs_insn *in)
{
	return in->bytes[0] == 0xe9 || in->bytes[0] == 0xeb;
}

/* Returns whether every kernel from 5.15 on emulates the instruction: push of a register, nop (one byte),
 * call and jmp to a fixed address. The last two may be the target of a loop, unless they are the first. */
static bool is_emulated(const cs_insn *in, bool first)
{
	return is_push(in) || (in->size == 1 && in->bytes[0] == 0x90) || (first && (in->bytes[0] == 0xe8 || is_jump(in)));
}

static uint64_t jump_target(const cs_insn *in)
{
	int32_t far;

	if (in->bytes[0] == 0xeb)
		return in->address + in->size + (int8_t)in->bytes[1];
	memcpy(&far, in->bytes + 1, sizeof(far));
	return in->address + in->size + far;
}

/* Returns the bytes that the instruction takes from the stack; 0 if it does not touch it. */
static uint32_t takes_bytes(const cs_insn *in)
{
	uint32_t n = 0;

	if (is_push(in))
		return 8;
	if (in->size == 4 && !memcmp(in->bytes, "\x48\x83\xec", 3))
		return in->bytes[3];
	if (in->size == 7 && !memcmp(in->bytes, "\x48\x81\xec", 3))
		memcpy(&n, in->bytes + 3, sizeof(n));
	return n;
}

/* Returns whether the instruction releases the stack: pop, leave, add to rsp. */
static bool gives_back(const cs_insn *in)
{
	const uint8_t *b = in->bytes;

	return (b[0] >= 0x58 && b[0] <= 0x5f) || (b[0] == 0x41 && b[1] >= 0x58 && b[1] <= 0x5f) || b[0] == 0xc9 ||
	       (in->size >= 4 && (!memcmp(b, "\x48\x83\xc4", 3) || !memcmp(b, "\x48\x81\xc4", 3)));
}

static bool is_return(const cs_insn *in)
{
	const uint8_t *b = in->bytes;

	return b[0] == 0xc3 || b[0] == 0xc2 || ((b[0] == 0xf3 || b[0] == 0xf2) && in->size == 2 && b[1] == 0xc3);
}

/* jmp *register or memory: the table of a switch, or a tail call. */
static bool is_indirect(const cs_insn *in)
{
	unsigned at = in->bytes[0] == 0x3e || (in->bytes[0] & 0xf0) == 0x40;

	return in->bytes[at] == 0xff && (in->bytes[at + 1] >> 3 & 7) == 4;
}

/* Finds the ends in a piece of the function's code. */
static void read_outs(csh handle, const struct code *c, struct probesites *d, uint64_t address, uint64_t size)
{
	const uint8_t *code = elf_code_at(c->elf, address, &size);
	cs_insn *in = cs_malloc(handle);
	size_t left = code ? size : 0;
	unsigned given = NEAR + 1; /* instructions since the stack was released */

	while (left && cs_disasm_iter(handle, &code, &left, &address, in)) {
		if (is_return(in) || (is_jump(in) && !inside(c, jump_target(in))) || (is_indirect(in) && given <= NEAR))
			probesites_add_out(c->elf, d, in->address);
		given = gives_back(in) ? 0 : given + 1;
	}
	cs_free(in, 1);
}

static void read_in(csh handle, const struct code *c, struct probesites *d)
{
	uint64_t address = c->address, size = c->size;
	const uint8_t *code = elf_code_at(c->elf, address, &size);
	cs_insn *in = cs_malloc(handle);
	size_t left = code ? size : 0;

	d->trouble = code ? PROBESITES_STEPPED_IN : PROBESITES_NO_CODE;
	if (code)
		memcpy(d->code, code, MIN(size, sizeof(d->code)));
	while (left && cs_disasm_iter(handle, &code, &left, &address, in)) {
		if (is_emulated(in, in->address == c->address)) {
			if (elf_address_to_offset(c->elf, in->address, &d->in))
				d->trouble = PROBESITES_USABLE;
			break;
		}
		/* After a branch an instruction may run more than once, or never. */
		if (cs_insn_group(handle, in, CS_GRP_JUMP) || cs_insn_group(handle, in, CS_GRP_CALL) || is_return(in))
			break;
		d->depth += takes_bytes(in);
	}
	cs_free(in, 1);
}

/* Registers that hold the first or the second argument, as they are copied. */
struct copies {
	x86_reg of[2][16];
	size_t n[2];
};

static int holds(const struct copies *k, x86_reg reg)
{
	for (int i = 0; i < 2; i++)
		for (size_t j = 0; j < k->n[i]; j++)
			if (k->of[i][j] == reg)
				return i;
	return -1;
}

/* Returns the memory operand of a movzx or mov of a byte to a register, or of a comparison of one with a
 * number; NULL for any other instruction. */
static const x86_op_mem *byte_looked_at(const cs_insn *in)
{
	const cs_x86_op *o = in->detail->x86.operands;
	const cs_x86_op *m = in->id == X86_INS_CMP ? &o[0] : &o[1];
	bool looks = in->id == X86_INS_CMP ? o[1].type == X86_OP_IMM :
		     (in->id == X86_INS_MOVZX || in->id == X86_INS_MOV) && o[0].type == X86_OP_REG;

	return looks && m->type == X86_OP_MEM && m->size == 1 && m->mem.index == X86_REG_INVALID ? &m->mem : NULL;
}

/* Finds the state of a future: the first byte of an argument that is read before anything is called. */
static void read_future(csh handle, const struct code *c, struct probesites *d)
{
	uint64_t address = c->address, size = c->size;
	const uint8_t *code = elf_code_at(c->elf, address, &size);
	struct copies k = { .of = { { X86_REG_RDI }, { X86_REG_RSI } }, .n = { 1, 1 } };
	cs_insn *in = cs_malloc(handle);
	size_t left = code ? size : 0;

	for (int i = 0; i < PROLOGUE && left && cs_disasm_iter(handle, &code, &left, &address, in); i++) {
		const cs_x86 *x = &in->detail->x86;
		const x86_op_mem *at;
		int which;

		if (cs_insn_group(handle, in, CS_GRP_JUMP) || cs_insn_group(handle, in, CS_GRP_CALL) || is_return(in))
			break;
		if (x->op_count != 2)
			continue;
		if (in->id == X86_INS_MOV && x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_REG) {
			which = holds(&k, x->operands[1].reg);
			if (which >= 0 && k.n[which] < ARRAY_LEN(k.of[0]))
				k.of[which][k.n[which]++] = x->operands[0].reg;
		}
		at = byte_looked_at(in);
		which = at && at->disp >= 0 && at->disp <= 1 << 20 ? holds(&k, at->base) : -1;
		if (which < 0)
			continue;
		d->future = which ? PROBESITES_FUTURE_2ND : PROBESITES_FUTURE_1ST;
		d->state = at->disp;
		break;
	}
	cs_free(in, 1);
}

int probesites_read(const struct elf *elf, struct probesites *d, uint64_t cold, uint64_t cold_size, bool may_be_future,
		    struct err *err)
{
	struct code c = { elf, d->address, d->size, cold, cold_size };
	csh handle;

	if (elf->machine != EM_X86_64)
		return err_set(err, ENOTSUP, "functions can be marked on x86-64 and arm64 only");
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return err_set(err, ENOTSUP, "its instructions cannot be read");
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	read_outs(handle, &c, d, c.address, c.size);
	if (cold_size)
		read_outs(handle, &c, d, cold, cold_size);
	if (!d->trouble && !d->out_count)
		d->trouble = PROBESITES_NO_OUT;
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_OFF);
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	if (!d->trouble)
		read_in(handle, &c, d);
	if (!d->trouble && may_be_future)
		read_future(handle, &c, d);
	cs_close(&handle);
	return 0;
}
