#include "elf/unwind/instruction.h"

#include <string.h>

/* What the opcode tables say: does a ModRM byte follow, which immediate, and which operand is written. */
enum {
	M = 1,       /* ModRM */
	I8 = 2,      /* immediate of 1 byte */
	IZ = 4,      /* of 4, with the prefix 66 of 2 */
	I16 = 8,     /* of 2 */
	REL8 = 16,   /* relative target */
	REL32 = 32,
	BAD = 64,    /* no instruction in 64-bit mode, or a prefix */
	TO_RM = 128, /* writes the operand in r/m */
	TO_REG = 256, /* writes the one in reg */
	BYTE = 512,  /* operands of 8 bits: 4 to 7 are ah to bh unless there is a REX prefix */
};

#define ALU(to_rm, to_reg) M | BYTE | (to_rm), M | (to_rm), M | BYTE | (to_reg), M | (to_reg), I8, IZ, BAD, BAD
#define EIGHT(x) x, x, x, x, x, x, x, x

static const uint16_t one_byte[256] = {
	/* 00 */ ALU(TO_RM, TO_REG), ALU(TO_RM, TO_REG), ALU(TO_RM, TO_REG), ALU(TO_RM, TO_REG),
	/* 20 */ ALU(TO_RM, TO_REG), ALU(TO_RM, TO_REG), ALU(TO_RM, TO_REG), ALU(0, 0),
	/* 40 */ EIGHT(BAD), EIGHT(BAD), EIGHT(0), EIGHT(0),
	/* 60 */ BAD, BAD, BAD, M | TO_REG, BAD, BAD, BAD, BAD, IZ, M | IZ | TO_REG, I8, M | I8 | TO_REG, 0, 0, 0, 0,
	/* 70 */ EIGHT(REL8), EIGHT(REL8),
	/* 80 */ M | I8 | TO_RM | BYTE, M | IZ | TO_RM, BAD, M | I8 | TO_RM, M | BYTE, M, M | BYTE | TO_RM | TO_REG, M | TO_RM | TO_REG,
	/* 88 */ M | BYTE | TO_RM, M | TO_RM, M | BYTE | TO_REG, M | TO_REG, M | TO_RM, M | TO_REG, M, M | TO_RM,
	/* 90 */ EIGHT(0), 0, 0, BAD, 0, 0, 0, 0, 0,
	/* a0 */ BAD, BAD, BAD, BAD, 0, 0, 0, 0, I8, IZ, 0, 0, 0, 0, 0, 0, /* moffs: compilers do not emit them */
	/* b0 */ EIGHT(I8), EIGHT(IZ),
	/* c0 */ M | I8 | TO_RM | BYTE, M | I8 | TO_RM, I16, 0, BAD, BAD, M | I8 | TO_RM | BYTE, M | IZ | TO_RM,
	/* c8 */ I16 | I8, 0, I16, 0, 0, I8, BAD, 0,
	/* d0 */ M | TO_RM | BYTE, M | TO_RM, M | TO_RM | BYTE, M | TO_RM, BAD, BAD, BAD, 0, EIGHT(M),
	/* e0 */ REL8, REL8, REL8, REL8, I8, I8, I8, I8, REL32, REL32, BAD, REL8, 0, 0, 0, 0,
	/* f0 */ BAD, 0, BAD, BAD, 0, 0, M | BYTE, M, 0, 0, 0, 0, 0, 0, M | BYTE, M,
};

/* After 0f. */
static const uint16_t two_byte[256] = {
	/* 00 */ M, M, M | TO_REG, M | TO_REG, BAD, 0, 0, 0, 0, 0, BAD, 0, BAD, M, 0, M | I8,
	/* 10 */ EIGHT(M), EIGHT(M),
	/* 20 */ M | TO_RM, M, M | TO_RM, M, BAD, BAD, BAD, BAD, M, M, M, M, M | TO_REG, M | TO_REG, M, M,
	/* 30 */ EIGHT(0), BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
	/* 40 */ EIGHT(M | TO_REG), EIGHT(M | TO_REG),
	/* 50 */ M | TO_REG, M, M, M, M, M, M, M, EIGHT(M),
	/* 60 */ EIGHT(M), EIGHT(M),
	/* 70 */ M | I8, M | I8, M | I8, M | I8, M, M, M, 0, M | TO_RM, M | TO_REG, M, M, M, M, M | TO_RM, M,
	/* 80 */ EIGHT(REL32), EIGHT(REL32),
	/* 90 */ EIGHT(M | TO_RM | BYTE), EIGHT(M | TO_RM | BYTE),
	/* a0 */ 0, 0, 0, M, M | I8 | TO_RM, M | TO_RM, BAD, BAD, 0, 0, 0, M | TO_RM, M | I8 | TO_RM, M | TO_RM, M, M | TO_REG,
	/* b0 */ M | TO_RM | BYTE, M | TO_RM, M | TO_REG, M | TO_RM, M | TO_REG, M | TO_REG, M | TO_REG, M | TO_REG,
	/* b8 */ M | TO_REG, M, M | I8 | TO_RM, M | TO_RM, M | TO_REG, M | TO_REG, M | TO_REG, M | TO_REG,
	/* c0 */ M | TO_RM | TO_REG | BYTE, M | TO_RM | TO_REG, M | I8, M, M | I8, M | I8 | TO_REG, M | I8, M | TO_RM, EIGHT(0),
	/* d0 */ M, M, M, M, M, M, M, M | TO_REG, EIGHT(M),
	/* e0 */ EIGHT(M), EIGHT(M),
	/* f0 */ EIGHT(M), EIGHT(M),
};

/* An instruction while it is taken apart. */
struct parts {
	const uint8_t *code;
	size_t n, at;
	bool operand16, wide, rex; /* prefixes 66, REX.W, any REX */
	uint8_t reg_high, index_high, base_high; /* 8 or 0: the upper bit of register numbers */
	uint8_t vex_register;     /* of VEX and EVEX; REG_NONE = no such prefix */
	uint8_t map, opcode;      /* map 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a, others of EVEX */
	uint16_t shape;
	bool memory;              /* r/m is in memory */
	uint8_t mod, reg, rm;     /* rm: a register; of memory its base, REG_NONE = none or with an index */
	uint8_t base, index;      /* of memory */
	bool rip;                 /* relative to rip */
	int32_t displacement;
	int64_t immediate;
};

static bool take(struct parts *p, unsigned bytes, int64_t *ret)
{
	uint64_t v = 0;

	if (p->n - p->at < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p->code[p->at + i] << (8 * i);
	p->at += bytes;
	*ret = bytes == 1 ? (int8_t)v : bytes == 2 ? (int16_t)v : bytes == 4 ? (int32_t)v : (int64_t)v;
	return true;
}

static bool take_byte(struct parts *p, uint8_t *ret)
{
	if (p->at >= p->n)
		return false;
	*ret = p->code[p->at++];
	return true;
}

/* VEX (c4, c5) and EVEX (62): prefix, map and register in one. */
static bool take_vex(struct parts *p, uint8_t first)
{
	uint8_t a, b = 0, c;

	if (!take_byte(p, &a) || (first != 0xc5 && !take_byte(p, &b)) || (first == 0x62 && !take_byte(p, &c)))
		return false;
	p->reg_high = a & 0x80 ? 0 : 8;
	if (first == 0xc5) {
		p->map = 1;
		p->vex_register = ~a >> 3 & 15;
	} else {
		p->index_high = a & 0x40 ? 0 : 8;
		p->base_high = a & 0x20 ? 0 : 8;
		p->map = a & (first == 0x62 ? 7 : 31);
		p->vex_register = ~b >> 3 & 15;
		p->wide = b & 0x80;
	}
	p->rex = true;
	return p->map >= 1 && p->map <= 6 && p->map != 4 && take_byte(p, &p->opcode);
}

static bool take_opcode(struct parts *p)
{
	uint8_t b;

	for (;;) {
		if (!take_byte(p, &b) || p->at > 14)
			return false;
		if (b == 0x66)
			p->operand16 = true;
		else if (b != 0x67 && b != 0xf2 && b != 0xf3 && b != 0xf0 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 &&
			 b != 0x64 && b != 0x65)
			break;
	}
	if (b == 0xc4 || b == 0xc5 || b == 0x62)
		return take_vex(p, b);
	if (b >> 4 == 4) {
		p->rex = true;
		p->wide = b & 8;
		p->reg_high = b & 4 ? 8 : 0;
		p->index_high = b & 2 ? 8 : 0;
		p->base_high = b & 1 ? 8 : 0;
		if (!take_byte(p, &b))
			return false;
	}
	p->opcode = b;
	if (b != 0x0f)
		return true;
	p->map = 1;
	if (!take_byte(p, &p->opcode))
		return false;
	if (p->opcode != 0x38 && p->opcode != 0x3a)
		return true;
	p->map = p->opcode == 0x38 ? 2 : 3;
	return take_byte(p, &p->opcode);
}

static bool take_modrm(struct parts *p)
{
	uint8_t modrm, sib;
	int64_t displacement = 0;
	bool wide = false;

	if (!take_byte(p, &modrm))
		return false;
	p->mod = modrm >> 6;
	p->reg = (modrm >> 3 & 7) | p->reg_high;
	p->rm = (modrm & 7) | p->base_high;
	if (p->mod == 3)
		return true;
	p->memory = true;
	if ((modrm & 7) == 4) {
		if (!take_byte(p, &sib))
			return false;
		p->rm = (sib & 7) | p->base_high;
		wide = !p->mod && (sib & 7) == 5;
		p->base = wide ? REG_NONE : p->rm;
		p->index = (sib >> 3 & 7) | p->index_high;
		if (wide || p->index != REG_RSP) /* 4 is no index */
			p->rm = REG_NONE;
		else
			p->index = REG_NONE;
	} else if (!p->mod && (modrm & 7) == 5) {
		p->rip = wide = true;
		p->rm = REG_NONE;
	} else {
		p->base = p->rm;
	}
	if (!take(p, p->mod == 1 ? 1 : p->mod == 2 || wide ? 4 : 0, &displacement))
		return false;
	p->displacement = displacement;
	return true;
}

static uint16_t shape_of(const struct parts *p)
{
	uint16_t shape;

	if (p->map == 0)
		return one_byte[p->opcode];
	if (p->map == 1) {
		shape = two_byte[p->opcode];
		/* 0f 78 and 79 are extrq and vmread elsewhere; of vectors they move to a general register, as 7e does. */
		return p->vex_register == REG_NONE || shape & M ? shape : p->opcode == 0x77 ? 0 : BAD;
	}
	if (p->map == 3) /* f0: rorx; 14 to 17: pextr */
		return M | I8 | (p->opcode == 0xf0 ? TO_REG : p->opcode >> 2 == 5 ? TO_RM : 0);
	/* f0, f1: movbe, crc32; f2 to f7: bit manipulation */
	return M | (p->map == 2 && p->opcode >> 4 == 15 ? TO_REG : 0);
}

static bool take_immediate(struct parts *p)
{
	unsigned z = p->operand16 && !p->wide ? 2 : 4;
	int64_t ignored;

	/* test, of the group of f6 and f7; mov with 8 bytes */
	if (p->map == 0 && (p->opcode == 0xf6 || p->opcode == 0xf7) && !(p->reg & 6))
		return take(p, p->opcode == 0xf6 ? 1 : z, &p->immediate);
	if (p->map == 0 && p->opcode >> 3 == 0x17 && p->wide)
		return take(p, 8, &p->immediate);
	if (p->shape & I16 && !take(p, 2, &p->immediate))
		return false;
	if (p->shape & I8 && !take(p, 1, p->shape & I16 ? &ignored : &p->immediate))
		return false;
	if (!(p->shape & (REL8 | REL32 | IZ)))
		return true;
	return take(p, p->shape & REL8 ? 1 : p->shape & REL32 ? 4 : z, &p->immediate);
}

static bool take_apart(struct parts *p)
{
	if (!take_opcode(p))
		return false;
	p->shape = shape_of(p);
	if (p->shape & BAD || (p->shape & M && !take_modrm(p)))
		return false;
	if (!(p->shape & (I8 | IZ | I16 | REL8 | REL32)) && (p->map || (p->opcode | 1) != 0xf7))
		return p->at <= 15;
	return take_immediate(p) && p->at <= 15;
}

/* Some opcodes are groups, and which operand is written depends on the reg field. */
static uint16_t writes(const struct parts *p)
{
	uint8_t group = p->reg & 7;

	if (p->map == 0 && p->opcode >= 0x80 && p->opcode <= 0x83 && group == 7) /* cmp */
		return 0;
	if (p->map == 0 && (p->opcode | 1) == 0xf7 && (group == 2 || group == 3)) /* not, neg */
		return p->shape | TO_RM;
	if (p->map == 0 && (p->opcode | 1) == 0xff && group < 2) /* inc, dec */
		return p->shape | TO_RM;
	if (p->map == 1 && p->opcode == 0xba && group == 4) /* bt */
		return 0;
	if (p->map == 1 && p->opcode == 0x7e && (p->vex_register != REG_NONE || p->operand16))
		return p->shape;
	if (p->map == 1 && p->opcode == 0x7e) /* of mmx, or with f3 between vectors */
		return p->code[0] == 0xf3 ? 0 : p->shape;
	return p->shape;
}

static bool writes_register(const struct parts *p, uint8_t reg)
{
	uint16_t shape = writes(p);
	bool high_byte = shape & BYTE && !p->rex && reg < 8; /* spl and bpl need a REX prefix */

	if (p->map == 0 && (p->opcode >> 3 == 0x16 || p->opcode >> 3 == 0x17 || (p->opcode >= 0x91 && p->opcode <= 0x97)))
		return ((p->opcode & 7) | p->base_high) == reg && (p->opcode >> 3 != 0x16 || p->rex);
	if (p->map == 1 && p->opcode >> 3 == 0x19) /* bswap */
		return ((p->opcode & 7) | p->base_high) == reg;
	if (p->vex_register == reg && p->map == 2 && (p->opcode == 0xf3 || p->opcode == 0xf6))
		return true;
	if (high_byte)
		return false;
	return (shape & TO_RM && !p->memory && p->rm == reg) || (shape & TO_REG && p->reg == reg);
}

static bool is_frame(uint8_t reg)
{
	return reg == REG_RSP || reg == REG_RBP;
}

/* 48 89, 48 8b, 48 8d: moves between registers, and from and to the stack. */
static void read_move(const struct parts *p, struct instruction *i)
{
	uint8_t to = p->opcode == 0x89 ? p->rm : p->reg, from = p->opcode == 0x89 ? p->reg : p->rm;

	i->value = p->displacement;
	if (p->opcode == 0x8d) {
		if (p->memory && is_frame(p->rm)) {
			i->op = OP_LEA;
			i->reg = p->reg;
			i->base = p->rm;
		}
	} else if (!p->memory) {
		if (is_frame(to) || is_frame(from)) {
			i->op = OP_MOVE;
			i->reg = to;
			i->base = from;
		}
	} else if (p->reg == REG_RBP && is_frame(p->rm)) {
		i->op = p->opcode == 0x89 ? OP_STORE : OP_LOAD;
		i->reg = REG_RBP;
		i->base = p->rm;
	}
}

static void read_one_byte(const struct parts *p, struct instruction *i)
{
	uint8_t group = p->reg & 7;

	switch (p->opcode) {
	case 0x50 ... 0x57:
	case 0x58 ... 0x5f:
		i->op = p->opcode < 0x58 ? OP_PUSH : OP_POP;
		i->reg = (p->opcode & 7) | p->base_high;
		break;
	case 0x68:
	case 0x6a:
	case 0x9c:
		i->op = OP_PUSH;
		break;
	case 0x9d:
		i->op = OP_POP;
		break;
	case 0x8f:
		i->op = OP_POP;
		i->reg = p->memory ? REG_NONE : p->rm;
		break;
	case 0x81:
	case 0x83:
		if (p->wide && !p->memory && (p->rm == REG_RSP || p->rm == REG_R11) && (group == 0 || group == 5)) {
			i->op = OP_ADD;
			i->reg = p->rm;
			i->value = group ? -p->immediate : p->immediate;
		}
		break;
	case 0x31:
	case 0x33:
		if (!p->memory && p->rm == REG_RBP && p->reg == REG_RBP)
			i->op = OP_CLEAR_RBP;
		break;
	case 0x39:
	case 0x3b:
		if (p->wide && !p->memory && p->rm + p->reg == REG_RSP + REG_R11 && (p->rm == REG_RSP || p->reg == REG_RSP))
			i->op = OP_COMPARE_R11;
		break;
	case 0x89:
	case 0x8b:
	case 0x8d:
		if (p->wide)
			read_move(p, i);
		break;
	case 0xc9:
		i->op = OP_LEAVE;
		break;
	case 0xc2:
	case 0xc3:
		i->op = OP_RETURN;
		break;
	case 0xe8:
		i->op = OP_CALL;
		break;
	case 0xe9:
	case 0xeb:
		i->op = OP_JUMP;
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		i->op = OP_BRANCH;
		break;
	case 0xcc:
	case 0xf4:
		i->op = OP_STOP;
		break;
	case 0xff:
		if (group == 2 || group == 4)
			i->op = group == 2 ? OP_CALL : OP_JUMP;
		else if (group == 6)
			i->op = OP_PUSH;
		break;
	}
}

static uint16_t bit(uint8_t reg)
{
	return reg < REG_NONE ? 1 << reg : 0;
}

/* The general registers of an instruction. Of those with vectors only the address has such, for all that matters here. */
static uint16_t uses(const struct parts *p)
{
	static const uint8_t general[] = { 0x03, 0xa3, 0xa4, 0xa5, 0xab, 0xac, 0xad, 0xaf };
	uint16_t used = p->memory ? bit(p->base) | bit(p->index) : 0;
	bool both = p->map == 0 && p->opcode >> 3 != 0x1b; /* but for x87 */

	if (p->map == 0 && (p->opcode >> 3 == 0x16 || p->opcode >> 3 == 0x17 || (p->opcode >= 0x91 && p->opcode <= 0x97)))
		used |= bit((p->opcode & 7) | p->base_high);
	if (p->map == 1 && p->vex_register == REG_NONE) {
		both = p->opcode >> 4 == 4 || p->opcode >> 4 == 0xb || (p->opcode & 0xfe) == 0xc0;
		for (size_t i = 0; i < sizeof(general); i++)
			both |= p->opcode == general[i];
	}
	if (!both || !(p->shape & M))
		return used;
	/* Of groups the reg field is a part of the opcode. */
	if (p->map == 1 ? p->opcode != 0xba : !((p->opcode >= 0x80 && p->opcode <= 0x83) || p->opcode >= 0xc0 || p->opcode == 0x8f))
		used |= bit(p->reg);
	return used | (p->memory ? 0 : bit(p->rm));
}

void instruction_decode(const uint8_t *code, size_t n, uint64_t address, struct instruction *ret)
{
	struct parts p = { .code = code, .n = n > 15 ? 15 : n, .vex_register = REG_NONE, .reg = REG_NONE, .rm = REG_NONE, .base = REG_NONE,
			   .index = REG_NONE };
	struct instruction *i = ret;

	*i = (struct instruction){ .reg = REG_NONE, .base = REG_NONE };
	if (!take_apart(&p))
		return;
	i->length = p.at;
	if (p.map == 0)
		read_one_byte(&p, i);
	else if (p.map == 1 && p.vex_register == REG_NONE && p.opcode >> 4 == 8)
		i->op = OP_BRANCH;
	else if (p.map == 1 && p.vex_register == REG_NONE && (p.opcode == 0x0b || p.opcode == 0xb9 || p.opcode == 0xff))
		i->op = OP_STOP;
	if (p.shape & (REL8 | REL32))
		i->target = address + i->length + (uint64_t)p.immediate;
	else if (p.map == 0 && p.opcode == 0x8d && p.rip)
		i->target = address + i->length + (int64_t)p.displacement;
	else if (p.map == 0 && (p.opcode >> 3 == 0x17 || (p.opcode == 0xc7 && !p.memory)))
		i->target = (uint64_t)p.immediate;
	if (i->op == OP_OTHER) {
		i->writes_rsp = writes_register(&p, REG_RSP);
		i->writes_rbp = writes_register(&p, REG_RBP);
	}
	i->uses = i->op == OP_PUSH ? 0 : i->op == OP_POP ? bit(i->reg) : uses(&p);
	i->on_stack = p.memory && p.rm == REG_RSP && !(p.map == 0 && p.opcode == 0x8d);
	i->stack = p.displacement;
	i->writes_r11 = writes_register(&p, REG_R11);
	i->padding = (p.map == 0 && (p.opcode == 0x90 || p.opcode == 0xcc) && !p.base_high) ||
		     (p.map == 1 && p.opcode == 0x1f && p.vex_register == REG_NONE);
}
