#include "elf/probe/sitesarm64.h"

#include <string.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/probe/probesites.h"

enum {
	PROLOGUE = 64, /* instructions in which the state of a future is searched for */
	NEAR = 16,     /* instructions before an indirect jump in which the stack is released; other work may stand between */
	X30 = 30, SP = 31,
	MOST_STATE = 1 << 20,
};

struct code {
	const struct elf *elf;
	uint64_t address, size; /* of the function */
	uint64_t cold, cold_size;
};

static unsigned rd(uint32_t w)
{
	return w & 31;
}

static unsigned rn(uint32_t w)
{
	return w >> 5 & 31;
}

static int64_t field(uint32_t w, unsigned low, unsigned bits)
{
	return (int64_t)((uint64_t)w << (64 - low - bits)) >> (64 - bits);
}

static bool is_jump(uint32_t w)
{
	return w >> 26 == 5; /* b */
}

static bool is_return(uint32_t w)
{
	return (w & 0xfffffc1f) == 0xd65f0000;
}

/* retaa, retab */
static bool is_signed_return(uint32_t w)
{
	return (w & 0xfffffbff) == 0xd65f0bff;
}

static bool is_indirect(uint32_t w)
{
	return (w & 0xfffffc1f) == 0xd61f0000; /* br */
}

/* b, bl, b.cond, cbz, tbz, br, blr, ret and the like */
static bool is_branch(uint32_t w)
{
	return (w & 0x7c000000) == 0x14000000 || (w & 0xff000000) == 0x54000000 || (w & 0x7c000000) == 0x34000000 ||
	       (w & 0xfe000000) == 0xd6000000;
}

/* Loads and stores; of them the stores. */
static bool is_memory(uint32_t w)
{
	return (w & 0x0a000000) == 0x08000000;
}

static bool is_store(uint32_t w)
{
	/* Bit 22 is that of a load, but for those that extend the sign. */
	return is_memory(w) && !(w >> 22 & 1) && ((w & 0x3e000000) != 0x38000000 || !(w >> 23 & 1));
}

bool sitesarm64_accepted(uint32_t w)
{
	static const uint8_t hints[] = { 0, 7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38 }; /* nop, those that sign, bti */

	if ((w & 0xfffff01f) == 0xd503201f) {
		for (size_t i = 0; i < ARRAY_LEN(hints); i++)
			if ((w >> 5 & 127) == hints[i])
				return true;
		return false;
	}
	if (is_branch(w)) /* those that check a signature are not emulated */
		return !((w & 0xfe000000) == 0xd6000000 && (w & 0x0000f800));
	if ((w & 0xff000000) == 0xd4000000 || (w & 0xfff00000) == 0xd5000000 || (w & 0xfff00000) == 0xd5100000)
		return false; /* system calls, breakpoints; msr */
	return (w & 0x3f000000) != 0x08000000; /* exclusive */
}

/* --- where it is left --- */

static bool inside(const struct code *c, uint64_t address)
{
	return address - c->address < c->size || (c->cold_size && address - c->cold < c->cold_size);
}

/* Returns whether the function ends there: a return, or a jump to another. */
static bool is_out(const struct code *c, uint32_t w, uint64_t address)
{
	return is_return(w) || (is_jump(w) && !inside(c, address + field(w, 0, 26) * 4));
}

/* Returns whether the instruction releases the stack: ldp or ldr from sp with a new value for it, add to sp. */
static bool gives_back(uint32_t w)
{
	return ((w & 0xffc003e0) == 0xa8c003e0) || ((w & 0xffe00fe0) == 0xf84007e0) || ((w & 0xff8003ff) == 0x910003ff);
}

/* Finds the ends in a piece of the function's code. */
static void read_outs(const struct code *c, struct probesites *d, uint64_t address, uint64_t size)
{
	const uint8_t *code = elf_code_at(c->elf, address, &size);
	unsigned given = NEAR + 1; /* instructions since the stack was released */

	for (uint64_t at = 0; code && at + 4 <= size; at += 4) {
		uint32_t w;

		memcpy(&w, code + at, sizeof(w));
		if (is_signed_return(w) && !d->trouble)
			d->trouble = PROBESITES_REFUSED;
		if (is_out(c, w, address + at) || (is_indirect(w) && given <= NEAR))
			probesites_add_out(c->elf, d, address + at);
		given = gives_back(w) ? 0 : is_branch(w) ? NEAR + 1 : given + 1;
	}
}

/* --- the stack --- */

/* Follows the stack pointer down. False: where it is is not known any more. */
static bool follow_stack(uint32_t w, uint64_t *depth)
{
	unsigned scale = w >> 26 & 1 ? 2 + (w >> 30) : 2 + (w >> 31);

	if ((w & 0xff8003ff) == 0xd10003ff) { /* sub sp, sp, #n */
		*depth += (uint64_t)(w >> 10 & 0xfff) << (w >> 22 & 1 ? 12 : 0);
		return true;
	}
	if (is_memory(w) && rn(w) == SP) {
		if ((w & 0x3bc00000) == 0x29800000) /* stp [sp, #n]! */
			*depth -= (uint64_t)field(w, 15, 7) << scale;
		else if ((w & 0x3b600c00) == 0x38000c00) /* str [sp, #n]! */
			*depth -= (uint64_t)field(w, 12, 9);
		else if ((w & 0x3a800000) == 0x28800000 || (w & 0x3b200400) == 0x38000400) /* others that change it */
			return false;
		return true;
	}
	/* add and sub of a number or a register, and a mask, may have sp as their result. */
	return rd(w) != SP || !(((w & 0x3f000000) == 0x11000000) || ((w & 0x3fe00000) == 0x0b200000) ||
				((w & 0x1f800000) == 0x12000000 && w >> 29 != 7 && w >> 29 != 3));
}

/* Returns whether x30 is stored, and how far below the stack pointer of the first instruction; depth: as it is after it. */
static bool stores_link(uint32_t w, uint64_t depth, uint64_t *ret)
{
	bool pair = (w & 0xff400000) == 0xa9000000, one_first = (w & 0xffe00c00) == 0xf8000c00, one = (w & 0xffc00000) == 0xf9000000;
	int64_t offset = one ? (w >> 10 & 0xfff) * 8 : pair && !(w >> 23 & 1) ? field(w, 15, 7) * 8 : 0; /* [sp, #n]! is at sp then */

	if (!(pair || one_first || one) || rn(w) != SP || (rd(w) != X30 && (!pair || (w >> 10 & 31) != X30)))
		return false;
	*ret = depth - offset - (rd(w) == X30 ? 0 : 8);
	return true;
}

/* --- registers --- */

/* What is known of a register: a number, or one of the first two arguments and a number. */
struct value {
	enum { UNKNOWN, NUMBER, FIRST, SECOND } kind;
	uint64_t n;
};

/* The byte that the instruction loads, as an address. */
static struct value byte_of(const struct value *v, uint32_t w)
{
	struct value at = v[rn(w)];

	if ((w & 0xffc00000) == 0x39400000) /* ldrb w, [x, #n] */
		at.n += w >> 10 & 0xfff;
	else if ((w & 0xffe00c00) == 0x38400000) /* ldurb */
		at.n += field(w, 12, 9);
	else if ((w & 0xffe0fc00) == 0x38606800 && v[w >> 16 & 31].kind == NUMBER) /* ldrb w, [x, x] */
		at.n += v[w >> 16 & 31].n;
	else
		at.kind = UNKNOWN;
	return at;
}

/* What the instruction leaves in registers, as far as it leads to the state of a future. */
static void follow(struct value *v, uint32_t w)
{
	uint64_t n = (uint64_t)(w >> 10 & 0xfff) << (w >> 22 & 1 ? 12 : 0);
	struct value to = { UNKNOWN };

	if (is_store(w))
		return;
	if ((w & 0xffe0ffe0) == 0xaa0003e0) /* mov x, x */
		to = v[w >> 16 & 31];
	else if ((w & 0xff800000) == 0x91000000) /* add x, x, #n */
		to = (struct value){ v[rn(w)].kind, v[rn(w)].n + n };
	else if ((w & 0x7fe00000) == 0x52800000) /* mov x, #n */
		to = (struct value){ NUMBER, w >> 5 & 0xffff };
	if (is_memory(w) && (w & 0x3a000000) == 0x28000000) /* ldp */
		v[w >> 10 & 31].kind = UNKNOWN;
	v[rd(w)] = to;
	v[SP].kind = UNKNOWN;
}

/* Finds the state of a future: the first byte of an argument that is read before anything is called. */
static void read_future(const uint8_t *code, uint64_t size, struct probesites *d)
{
	struct value v[32] = { { FIRST, 0 }, { SECOND, 0 } }, at;

	for (uint64_t i = 0; i < PROLOGUE && i * 4 + 4 <= size; i++) {
		uint32_t w;

		memcpy(&w, code + i * 4, sizeof(w));
		if (is_branch(w))
			return;
		at = byte_of(v, w);
		if (at.kind >= FIRST && at.n <= MOST_STATE) {
			d->future = at.kind == FIRST ? PROBESITES_FUTURE_1ST : PROBESITES_FUTURE_2ND;
			d->state = at.n;
			return;
		}
		follow(v, w);
	}
}

/* --- where it is entered --- */

/* Returns the place to which a branch of the function leads; 0: it is none, or leads elsewhere. */
static uint64_t target_of(uint32_t w, uint64_t address)
{
	if (is_jump(w))
		return address + field(w, 0, 26) * 4;
	if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) /* b.cond, cbz */
		return address + field(w, 5, 19) * 4;
	if ((w & 0x7e000000) == 0x36000000) /* tbz */
		return address + field(w, 5, 14) * 4;
	return 0;
}

/* Returns whether a piece of the function's code may lead back to what is up to an address of it. */
static bool piece_leads_to(const struct code *c, uint64_t address, uint64_t size, uint64_t upto)
{
	const uint8_t *code = elf_code_at(c->elf, address, &size);
	unsigned given = NEAR + 1;

	for (uint64_t at = 0; code && at + 4 <= size; at += 4) {
		uint64_t target;
		uint32_t w;

		memcpy(&w, code + at, sizeof(w));
		target = target_of(w, address + at);
		if ((target && target - c->address <= upto - c->address) || (is_indirect(w) && given > NEAR))
			return true;
		given = gives_back(w) ? 0 : is_branch(w) ? NEAR + 1 : given + 1;
	}
	return false;
}

static bool is_led_to(const struct code *c, uint64_t upto)
{
	return piece_leads_to(c, c->address, c->size, upto) || (c->cold_size && piece_leads_to(c, c->cold, c->cold_size, upto));
}

static bool is_emulated(uint32_t w)
{
	return is_branch(w) || (w & 0x1f000000) == 0x10000000; /* adr, adrp */
}

/* Finds the first instruction that the kernel emulates and that runs once. Until then the arguments of a future stay where they are. */
static bool find_emulated(const struct code *c, const uint8_t *code, uint64_t size, struct probesites *d)
{
	struct value v[32] = { { FIRST, 0 }, { SECOND, 0 } };
	uint64_t depth = 0;

	for (uint64_t at = 0; at + 4 <= size; at += 4) {
		uint32_t w;

		memcpy(&w, code + at, sizeof(w));
		if (is_emulated(w)) {
			bool kept = !d->future || (d->future == PROBESITES_FUTURE_1ST ? v[0].kind == FIRST && !v[0].n : v[1].kind == SECOND && !v[1].n);

			if (is_out(c, w, c->address + at) || !sitesarm64_accepted(w) || !kept || depth > PROBESITES_MOST_LINK ||
			    is_led_to(c, c->address + at) || !elf_address_to_offset(c->elf, c->address + at, &d->in))
				return false;
			d->depth = depth;
			return true;
		}
		if (!follow_stack(w, &depth))
			return false;
		follow(v, w);
	}
	return false;
}

static void read_in(const struct code *c, struct probesites *d, bool may_be_future)
{
	uint64_t size = c->size, depth = 0, link = 0;
	const uint8_t *code = elf_code_at(c->elf, c->address, &size);
	uint32_t w;

	if (!code || size < 4) {
		d->trouble = PROBESITES_NO_CODE;
		return;
	}
	memcpy(d->code, code, MIN(size, sizeof(d->code)));
	if (may_be_future)
		read_future(code, size, d);
	memcpy(&w, code, sizeof(w));
	if (!find_emulated(c, code, size, d)) {
		if (!sitesarm64_accepted(w))
			d->trouble = PROBESITES_REFUSED;
		else if (!elf_address_to_offset(c->elf, c->address, &d->in))
			d->trouble = PROBESITES_NO_CODE;
	}
	for (uint64_t at = 0; at + 4 <= size; at += 4) {
		memcpy(&w, code + at, sizeof(w));
		if (!follow_stack(w, &depth))
			return;
		if (!stores_link(w, depth, &link))
			continue;
		d->link = link <= PROBESITES_MOST_LINK && !(link & 7) ? link : 0;
		return;
	}
}

void sitesarm64_read(const struct elf *elf, struct probesites *d, uint64_t cold, uint64_t cold_size, bool may_be_future)
{
	struct code c = { elf, d->address, d->size, cold, cold_size };

	read_outs(&c, d, c.address, c.size);
	if (cold_size)
		read_outs(&c, d, cold, cold_size);
	if (!d->trouble && !d->out_count)
		d->trouble = PROBESITES_NO_OUT;
	if (!d->trouble)
		read_in(&c, d, may_be_future);
}
