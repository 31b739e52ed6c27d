#include "elf/unwind/cfi.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "elf/unwind/arm64/arm64.h"
#include "elf/unwind/ehframe.h"

enum { REG_RBX = 3, REG_RBP = 6, REG_RSP = 7, REG_RA = 16, PLT_USUAL = 11 };

enum {
	CFA_ADVANCE = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0, /* an operand in the low 6 bits */
	CFA_NOP = 0x00, CFA_SET_LOC = 0x01, CFA_ADVANCE1 = 0x02, CFA_ADVANCE2 = 0x03, CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05, CFA_RESTORE_EXTENDED = 0x06, CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08, CFA_REGISTER = 0x09, CFA_REMEMBER = 0x0a, CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c, CFA_DEF_CFA_REGISTER = 0x0d, CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f, CFA_EXPRESSION = 0x10, CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12, CFA_DEF_CFA_OFFSET_SF = 0x13, CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15, CFA_VAL_EXPRESSION = 0x16, CFA_ADVANCE8 = 0x1d,
	CFA_NEGATE_RA_STATE_PC = 0x2c, /* arm64: the return address is signed from here on; we take signatures off wherever they are */
	CFA_WINDOW_SAVE = 0x2d, /* arm64: the same */ CFA_ARGS_SIZE = 0x2e, CFA_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum {
	OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S = 0x09, OP_PLUS = 0x22, OP_PLUS_UCONST = 0x23,
	OP_LIT0 = 0x30, OP_LIT31 = 0x4f, OP_BREG0 = 0x70, OP_BREG15 = 0x7f,
};

enum { STACK_DEPTH = 64 }; /* compilers nest remember_state once or twice */

struct machine {
	const struct ehframe *frame;
	const struct ehframe_cie *cie;
	const struct cfi_state *initial; /* NULL while the CIE itself runs */
	struct reader r;
	struct cfi_state s;
	uint64_t address, end;
	unsigned depth;
	struct cfi_state stack[STACK_DEPTH];
};

/* --- from a state to a rule --- */

/* "register + offset", "*(register + offset)" or "*(register + offset) + addend". */
struct simple_expr {
	unsigned reg;
	int64_t offset;
	bool deref;
	uint64_t addend;
};

static bool parse_expr(const struct cfi_place *p, struct simple_expr *ret)
{
	struct reader r = reader_of(p->expr, p->expr_size);
	uint8_t op = reader_u8(&r);

	if (op < OP_BREG0 || op > OP_BREG15)
		return false;
	*ret = (struct simple_expr){ .reg = op - OP_BREG0 };
	ret->offset = reader_sleb(&r);
	if (!reader_more(&r))
		return !r.failed;
	if (reader_u8(&r) != OP_DEREF)
		return false;
	ret->deref = true;
	if (!reader_more(&r))
		return !r.failed;
	op = reader_u8(&r);
	if (op == OP_PLUS_UCONST) {
		ret->addend = reader_uleb(&r);
		return !r.failed && !reader_more(&r);
	}
	if (op >= OP_LIT0 && op <= OP_LIT31)
		ret->addend = op - OP_LIT0;
	else if (op == OP_CONST1U || op == OP_CONST1S)
		ret->addend = reader_u8(&r);
	else
		return false;
	return reader_u8(&r) == OP_PLUS && !r.failed && !reader_more(&r) && ret->addend < 128;
}

/* GNU ld: breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus. Returns N, or -1. */
static int parse_plt(const struct cfi_place *p)
{
	static const uint8_t before[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a },
			     after[] = { 0x2a, 0x33, 0x24, 0x22 };
	unsigned n;

	if (p->expr_size != sizeof(before) + 1 + sizeof(after) || memcmp(p->expr, before, sizeof(before)) ||
	    memcmp(p->expr + sizeof(before) + 1, after, sizeof(after)))
		return -1;
	n = p->expr[sizeof(before)] - OP_LIT0;
	return n > 0 && n < 16 ? (int)n : -1;
}

static bool fits32(int64_t x)
{
	return x == (int32_t)x;
}

/* Fills *cfa, *reg and *offset; false if no rule can express it. */
static bool cfa_rule(const struct cfi_state *s, enum rule_cfa *cfa, unsigned *reg, int64_t *offset)
{
	struct simple_expr e;
	int plt;

	*reg = 0;
	if (s->cfa.kind == CFI_REGISTER) {
		e = (struct simple_expr){ .reg = s->cfa.reg, .offset = s->cfa.value };
	} else if (s->cfa.kind != CFI_EXPR) {
		return false;
	} else if (!parse_expr(&s->cfa, &e)) {
		plt = parse_plt(&s->cfa);
		*cfa = RULE_CFA_PLT;
		*reg = plt == PLT_USUAL ? 0 : plt;
		*offset = 0;
		return plt > 0;
	}
	*offset = e.offset;
	if (!fits32(e.offset) || e.reg > 15 || e.addend % 8 || e.addend / 8 > 15)
		return false;
	if (e.deref) {
		*cfa = e.reg == REG_RSP ? RULE_CFA_DEREF_RSP : RULE_CFA_DEREF_RBP;
		*reg = e.addend / 8;
		return e.reg == REG_RSP || e.reg == REG_RBP;
	}
	*cfa = e.reg == REG_RSP ? RULE_CFA_RSP : e.reg == REG_RBP ? RULE_CFA_RBP : RULE_CFA_REG;
	if (*cfa == RULE_CFA_REG)
		*reg = e.reg;
	return true;
}

/* An unknown caller's rbp is lost, which ends a stack only where some frame needs it. */
static enum rule_rbp rbp_rule(const struct cfi_state *s, enum rule_cfa cfa, int64_t cfa_offset,
			      int64_t *offset)
{
	struct simple_expr e;
	enum rule_rbp rbp = RULE_RBP_LOST;

	*offset = 0;
	switch (s->fp.kind) {
	case CFI_UNSET:
	case CFI_SAME:
		return RULE_RBP_SAME;
	case CFI_OFFSET:
		rbp = RULE_RBP_CFA;
		*offset = s->fp.value;
		break;
	case CFI_REGISTER:
		return s->fp.reg == REG_RBP ? RULE_RBP_SAME : RULE_RBP_LOST;
	case CFI_EXPR:
		if (!parse_expr(&s->fp, &e) || e.deref || !fits32(e.offset))
			break;
		*offset = e.offset;
		if (e.reg == REG_RBP)
			rbp = RULE_RBP_RBP;
		if (e.reg == REG_RSP && cfa == RULE_CFA_RSP) {
			rbp = RULE_RBP_CFA;
			*offset -= cfa_offset;
		}
		break;
	default:
		break;
	}
	if (rbp == RULE_RBP_LOST || *offset != (int16_t)*offset) {
		*offset = 0;
		return RULE_RBP_LOST;
	}
	return rbp;
}

/* The bits of a rule for the caller's rbx. */
static uint64_t rbx_bits(const struct cfi_state *s)
{
	enum { SHIFT = 12 };

	if (s->rbx.kind == CFI_UNSET || s->rbx.kind == CFI_SAME)
		return RULE_RBX_SAME << SHIFT;
	if (s->rbx.kind != CFI_OFFSET || s->rbx.value % 8 || s->rbx.value > -8 * RULE_RBX_CFA ||
	    s->rbx.value < -8 * RULE_RBX_MAX)
		return RULE_RBX_LOST;
	return (uint64_t)(-s->rbx.value / 8) << SHIFT;
}

/* Returns whether this is the frame that a signal handler returns to: its rsp is in the ucontext, at
 * uc_mcontext.gregs[15]. */
static bool is_signal_frame(const struct cfi_state *s)
{
	struct simple_expr e;

	return s->cfa.kind == CFI_EXPR && parse_expr(&s->cfa, &e) && e.reg == REG_RSP && e.deref &&
	       e.offset == 160 && !e.addend;
}

/* The return address was popped into a register, and all else is as it was: vfork(). */
static uint64_t ra_register_rule(const struct cfi_state *s)
{
	enum rule_cfa cfa;
	int64_t offset, rbp_offset;
	unsigned reg;

	if (s->ra.reg >= REG_RA || !cfa_rule(s, &cfa, &reg, &offset) || cfa != RULE_CFA_RSP ||
	    rbp_rule(s, cfa, offset, &rbp_offset) != RULE_RBP_SAME || (s->sp.kind != CFI_UNSET && s->sp.kind != CFI_SAME))
		return RULE_UNSUPPORTED;
	return rule_make(RULE_RA_REG, s->ra.reg, offset, RULE_RBP_SAME, 0);
}

static uint64_t state_rule(const struct machine *m)
{
	const struct ehframe_cie *cie = m->cie;
	const struct cfi_state *s = &m->s;
	enum rule_cfa cfa;
	enum rule_rbp rbp;
	int64_t cfa_offset, rbp_offset;
	unsigned reg;

	if (m->frame->machine == EM_AARCH64)
		return cie->return_register == ARM64_LR ? arm64_rule(s) : RULE_UNSUPPORTED;
	if (cie->return_register != REG_RA)
		return RULE_UNSUPPORTED;
	if (cie->signal && is_signal_frame(s))
		return RULE_SIGNAL;
	if (s->ra.kind == CFI_UNDEFINED)
		return RULE_END;
	if (s->ra.kind == CFI_REGISTER)
		return ra_register_rule(s);
	if (s->ra.kind != CFI_OFFSET || s->ra.value != -8)
		return RULE_UNSUPPORTED;
	if (!cfa_rule(s, &cfa, &reg, &cfa_offset))
		return RULE_UNSUPPORTED;
	if (cfa == RULE_CFA_RSP && s->sp.kind == CFI_REGISTER && s->sp.reg < REG_RA) {
		/* Assembly that realigns its stack and keeps the old rsp elsewhere (Keccak in AWS-LC)
		 * writes this, and means it as the base of the CFA: rsp itself leads nowhere. */
		cfa = RULE_CFA_REG;
		reg = s->sp.reg;
	} else if (s->sp.kind != CFI_UNSET && s->sp.kind != CFI_SAME &&
		   (s->sp.kind != CFI_VAL_OFFSET || s->sp.value)) {
		return RULE_UNSUPPORTED; /* the caller's rsp is not the CFA */
	}
	rbp = rbp_rule(s, cfa, cfa_offset, &rbp_offset);
	return rule_make(cfa, reg, cfa_offset, rbp, rbp_offset) | rbx_bits(s);
}

/* --- the program --- */

static struct cfi_place *place_of(const struct machine *m, struct cfi_state *s, uint64_t reg)
{
	if (m->frame->machine == EM_AARCH64)
		return reg == ARM64_FP ? &s->fp : reg == ARM64_SP ? &s->sp : reg == ARM64_LR ? &s->ra : NULL;
	return reg == REG_RBX ? &s->rbx : reg == REG_RBP ? &s->fp : reg == REG_RSP ? &s->sp : reg == REG_RA ? &s->ra : NULL;
}

static void set_place(struct machine *m, uint64_t reg, struct cfi_place place)
{
	struct cfi_place *p = place_of(m, &m->s, reg);

	if (p)
		*p = place;
}

static void restore(struct machine *m, uint64_t reg)
{
	static const struct cfi_state unset;
	struct cfi_state from = m->initial ? *m->initial : unset;
	struct cfi_place *p = place_of(m, &from, reg);

	if (p)
		set_place(m, reg, *p);
}

/* Factored by the CIE; wraps on nonsense. */
static int64_t factored(const struct machine *m, uint64_t x)
{
	return (int64_t)(x * (uint64_t)m->cie->data_align);
}

static struct cfi_place read_expr(struct machine *m, enum cfi_kind kind)
{
	uint64_t n = reader_uleb(&m->r);
	const uint8_t *p = reader_bytes(&m->r, n);

	return (struct cfi_place){ .kind = kind, .expr = p, .expr_size = p ? n : 0 };
}

static struct cfi_place in_register(uint64_t reg, int64_t value)
{
	return (struct cfi_place){ .kind = CFI_REGISTER, .reg = MIN(reg, UINT32_MAX), .value = value };
}

static void set_offset(struct machine *m, uint64_t reg, enum cfi_kind kind, int64_t value)
{
	set_place(m, reg, (struct cfi_place){ .kind = kind, .value = value });
}

static bool run_cfa(struct machine *m, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = reader_uleb(&m->r);
		m->s.cfa = in_register(reg, reader_uleb(&m->r));
		return true;
	case CFA_DEF_CFA_SF:
		reg = reader_uleb(&m->r);
		m->s.cfa = in_register(reg, factored(m, reader_sleb(&m->r)));
		return true;
	case CFA_DEF_CFA_REGISTER:
		m->s.cfa = in_register(reader_uleb(&m->r), m->s.cfa.value);
		return true;
	case CFA_DEF_CFA_OFFSET:
		m->s.cfa.value = reader_uleb(&m->r);
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		m->s.cfa.value = factored(m, reader_sleb(&m->r));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		m->s.cfa = read_expr(m, CFI_EXPR);
		return true;
	default:
		return false;
	}
}

static bool run_register(struct machine *m, uint8_t op)
{
	uint64_t reg = reader_uleb(&m->r);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_offset(m, reg, CFI_OFFSET, factored(m, reader_uleb(&m->r)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		set_offset(m, reg, CFI_OFFSET, factored(m, reader_sleb(&m->r)));
		return true;
	case CFA_NEGATIVE_OFFSET_EXTENDED:
		set_offset(m, reg, CFI_OFFSET, factored(m, -reader_uleb(&m->r)));
		return true;
	case CFA_VAL_OFFSET:
		set_offset(m, reg, CFI_VAL_OFFSET, factored(m, reader_uleb(&m->r)));
		return true;
	case CFA_VAL_OFFSET_SF:
		set_offset(m, reg, CFI_VAL_OFFSET, factored(m, reader_sleb(&m->r)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(m, reg);
		return true;
	case CFA_UNDEFINED:
		set_offset(m, reg, CFI_UNDEFINED, 0);
		return true;
	case CFA_SAME_VALUE:
		set_offset(m, reg, CFI_SAME, 0);
		return true;
	case CFA_REGISTER:
		set_place(m, reg, in_register(reader_uleb(&m->r), 0));
		return true;
	case CFA_EXPRESSION:
		set_place(m, reg, read_expr(m, CFI_EXPR));
		return true;
	case CFA_VAL_EXPRESSION:
		set_place(m, reg, read_expr(m, CFI_VAL_EXPR));
		return true;
	default:
		return false;
	}
}

/* Runs any instruction that does not advance the address. False: it is unknown or makes no sense. */
static bool run_state(struct machine *m, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
	case CFA_NEGATE_RA_STATE_PC:
	case CFA_WINDOW_SAVE:
		return true;
	case CFA_ARGS_SIZE:
		reader_uleb(&m->r);
		return true;
	case CFA_REMEMBER:
		if (m->depth == STACK_DEPTH)
			return false;
		m->stack[m->depth++] = m->s;
		return true;
	case CFA_RESTORE_STATE:
		if (!m->depth)
			return false;
		m->s = m->stack[--m->depth];
		return true;
	default:
		break;
	}
	if ((op & 0xc0) == CFA_OFFSET) {
		set_offset(m, op & 63, CFI_OFFSET, factored(m, reader_uleb(&m->r)));
		return true;
	}
	if ((op & 0xc0) == CFA_RESTORE) {
		restore(m, op & 63);
		return true;
	}
	return run_cfa(m, op) || run_register(m, op);
}

/* Stores where the next row begins, if op advances the address. *moved tells whether op does. */
static bool run_advance(struct machine *m, uint8_t op, uint64_t *next, bool *moved)
{
	uint64_t delta;

	*moved = true;
	if ((op & 0xc0) == CFA_ADVANCE) {
		delta = op & 63;
	} else if (op == CFA_ADVANCE1) {
		delta = reader_u8(&m->r);
	} else if (op == CFA_ADVANCE2) {
		delta = reader_u16(&m->r);
	} else if (op == CFA_ADVANCE4) {
		delta = reader_u32(&m->r);
	} else if (op == CFA_ADVANCE8) {
		delta = reader_u64(&m->r);
	} else if (op == CFA_SET_LOC) {
		return ehframe_pointer(m->frame, &m->r, m->cie->encoding, next) && *next >= m->address;
	} else {
		*moved = false;
		return true;
	}
	return !__builtin_mul_overflow(delta, m->cie->code_align, &delta) &&
	       !__builtin_add_overflow(m->address, delta, next);
}

static void add_row(struct cfi_rows *rows, uint64_t offset, uint64_t rule)
{
	if (!rows->n || rows->v[rows->n - 1].rule != rule)
		vec_push(rows, (struct cfi_row){ .offset = offset, .rule = rule });
}

static struct reader program_reader(const struct ehframe *f, uint32_t start, uint32_t end)
{
	struct reader r = reader_of(f->data, end);

	r.pos = start;
	return r;
}

void cfi_start(const struct ehframe *f, const struct ehframe_cie *cie, struct cfi_state *ret)
{
	struct machine m;
	bool ok = true;

	m.frame = f;
	m.cie = cie;
	m.initial = NULL;
	m.r = program_reader(f, cie->program, cie->program_end);
	m.address = m.depth = 0;
	memset(&m.s, 0, sizeof(m.s));
	while (ok && reader_more(&m.r)) {
		uint8_t op = reader_u8(&m.r);
		uint64_t next;
		bool moved;

		/* A CIE covers no address, so moving means nothing there. */
		ok = run_advance(&m, op, &next, &moved) && (moved || run_state(&m, op)) && !m.r.failed;
	}
	/* Without a place for the return address every row is RULE_UNSUPPORTED. */
	*ret = ok ? m.s : (struct cfi_state){ 0 };
}

void cfi_run(const struct ehframe *f, const struct ehframe_fde *fde, const struct cfi_state *initial,
	     bool keep_rbx, struct cfi_rows *rows)
{
	uint64_t mask = keep_rbx || f->machine == EM_AARCH64 ? UINT64_MAX : ~RULE_RBX_BITS;
	struct machine m;
	bool ok = true;

	m.frame = f;
	m.cie = &f->cies[fde->cie];
	m.initial = initial;
	m.r = program_reader(f, fde->program, fde->program_end);
	m.s = *initial;
	m.depth = 0;
	m.address = fde->start;
	rows->n = 0;
	while (ok && reader_more(&m.r)) {
		uint8_t op = reader_u8(&m.r);
		uint64_t next;
		bool moved;

		ok = run_advance(&m, op, &next, &moved) && (moved || run_state(&m, op)) && !m.r.failed;
		if (!ok || !moved || next == m.address)
			continue;
		add_row(rows, m.address - fde->start, state_rule(&m) & mask);
		if (next >= fde->end || next - fde->start > UINT32_MAX)
			return;
		m.address = next;
	}
	add_row(rows, m.address - fde->start, ok ? state_rule(&m) & mask : RULE_UNSUPPORTED);
}
