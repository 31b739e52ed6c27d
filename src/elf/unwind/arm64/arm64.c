#include "elf/unwind/arm64/arm64.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "elf/file.h"
#include "elf/unwind/cfi.h"
#include "elf/unwind/rows.h"
#include "elf/unwind/rule.h"

/* --- CFI --- */

static bool fits16(int64_t x)
{
	return x == (int16_t)x;
}

/* Both offsets are those of a frame; sums of them cannot overflow. */
static bool is_sane(const struct cfi_place *p)
{
	return p->kind != CFI_OFFSET || (p->value == (int32_t)p->value && p->value % 8 == 0);
}

static bool is_untouched(const struct cfi_place *p, unsigned reg)
{
	return p->kind == CFI_UNSET || p->kind == CFI_SAME || (p->kind == CFI_REGISTER && p->reg == reg);
}

/* The caller's stack pointer is the CFA unless it is said to be elsewhere. */
static bool has_plain_sp(const struct cfi_state *s)
{
	return is_untouched(&s->sp, ARM64_SP) || (s->sp.kind == CFI_VAL_OFFSET && !s->sp.value);
}

/*
 * Where the return address (ra) and the caller's frame pointer (fp) lie, both counted from the CFA. Where that is too far for 16 bits
 * they are counted from the register that the CFA is counted from, at distance `cfa`.
 */
static uint64_t saved_rule(enum rule_base base, int64_t cfa, const struct cfi_place *fp, const struct cfi_place *ra)
{
	bool keeps = fp->kind == CFI_OFFSET && is_sane(fp);
	int64_t at = keeps ? fp->value : ra->value, words = keeps ? (ra->value - fp->value) / 8 : 0;
	bool near = fits16(at);
	enum rule_rbp how = keeps ? (near ? RULE_RBP_CFA : RULE_RBP_RBP) : is_untouched(fp, ARM64_FP) ? RULE_RBP_SAME : RULE_RBP_LOST;
	unsigned link = keeps ? RULE_LINK_BESIDE + words : near ? RULE_LINK_CFA : RULE_LINK_BASE;

	if (!near)
		at += cfa;
	if (!fits16(at))
		return RULE_UNSUPPORTED;
	if (keeps && (words < RULE_LINK_NEAR - RULE_LINK_BESIDE || words > RULE_LINK_MAX - RULE_LINK_BESIDE)) {
		/* Not near each other: the return address is worth more. */
		struct cfi_place lost = { .kind = CFI_UNDEFINED };

		return saved_rule(base, cfa, &lost, ra);
	}
	return rule_make_link(base, cfa, how, at, link);
}

uint64_t arm64_rule(const struct cfi_state *s)
{
	enum rule_base base = s->cfa.reg == ARM64_SP ? RULE_BASE_SP : RULE_BASE_FP;
	int64_t cfa = s->cfa.value, at;
	bool near;

	if (s->ra.kind == CFI_UNDEFINED)
		return RULE_END;
	if (s->cfa.kind != CFI_REGISTER || (s->cfa.reg != ARM64_SP && s->cfa.reg != ARM64_FP) || cfa != (int32_t)cfa ||
	    !has_plain_sp(s) || !is_sane(&s->ra))
		return RULE_UNSUPPORTED;
	if (s->ra.kind == CFI_OFFSET)
		return saved_rule(base, cfa, &s->fp, &s->ra);
	if (!is_untouched(&s->ra, ARM64_LR))
		return RULE_UNSUPPORTED;
	if (is_untouched(&s->fp, ARM64_FP))
		return rule_make_link(base, cfa, RULE_RBP_SAME, 0, RULE_LINK_REGISTER);
	if (s->fp.kind != CFI_OFFSET || !is_sane(&s->fp))
		return rule_make_link(base, cfa, RULE_RBP_LOST, 0, RULE_LINK_REGISTER);
	near = fits16(s->fp.value);
	at = near ? s->fp.value : s->fp.value + cfa;
	if (!fits16(at))
		return rule_make_link(base, cfa, RULE_RBP_LOST, 0, RULE_LINK_REGISTER);
	return rule_make_link(base, cfa, near ? RULE_RBP_CFA : RULE_RBP_RBP, at, RULE_LINK_REGISTER);
}

/* --- Go --- */

/*
 * Go's assembler lets a function with a frame begin so, where the return address comes to lie at the new stack pointer and the
 * caller's x29 below it:
 *
 *	str x30, [sp, #-N]!; stur x29, [sp, #-8]; sub x29, sp, #8
 *	sub x20, sp, #N; stp x29, x30, [x20, #-8]; mov sp, x20; sub x29, sp, #8
 */
uint64_t arm64_go_rule(int32_t frame, bool saved)
{
	struct cfi_place fp = { .kind = saved ? CFI_OFFSET : CFI_UNSET, .value = -(int64_t)frame - 8 };
	struct cfi_place ra = { .kind = CFI_OFFSET, .value = -(int64_t)frame };

	if (frame < 0 || frame % 8)
		return RULE_UNSUPPORTED;
	if (!frame)
		return rule_make_link(RULE_BASE_SP, 0, RULE_RBP_SAME, 0, RULE_LINK_REGISTER);
	return saved_rule(RULE_BASE_SP, frame, &fp, &ra);
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

size_t arm64_go_frame(const uint8_t *code, size_t n)
{
	enum { STUR_FP = 0xf81f83fd, SUB_FP = 0xd10023fd };

	if (n >= 4 && word_at(code) == (uint32_t)STUR_FP)
		return 4;
	return n >= 4 && word_at(code) == (uint32_t)SUB_FP ? 4 : 0;
}

/* --- stubs --- */

enum {
	PLT_HEAD = 32,
	BTI_C = 0xd503245f,
	SAVE_LR = 0xa9bf7bf0, /* stp x16, x30, [sp, #-16]! */
};

/* Stubs jump with the caller's registers untouched; the head of the PLT saves x16 and x30. */
static void add_stubs(const struct elf_section *s, uint64_t base, uint32_t limit, bool headed, struct rows_rules *rules, struct rows *rows)
{
	uint32_t plain = rows_rule(rules, rule_make_link(RULE_BASE_SP, 0, RULE_RBP_SAME, 0, RULE_LINK_REGISTER));
	uint32_t saved = rows_rule(rules, rule_make_link(RULE_BASE_SP, 16, RULE_RBP_SAME, -8, RULE_LINK_CFA));
	struct rows own = { 0 };
	uint32_t offset, end;

	if (!s || !(s->flags & SHF_EXECINSTR) || !s->data || s->address < base || s->address - base >= limit)
		return;
	offset = s->address - base;
	end = offset + MIN(s->file_size, limit - offset);
	rows_add(&own, offset, plain);
	for (uint32_t at = 0; headed && at <= 4 && end - offset >= PLT_HEAD; at += 4)
		if (word_at(s->data + at) == (uint32_t)SAVE_LR) {
			rows_add(&own, offset + at + 4, saved);
			rows_add(&own, offset + PLT_HEAD, plain);
			break;
		}
	rows_add(&own, end, ROWS_NONE);
	rows_fill(rows, &own);
	rows_done(&own);
}

void arm64_plt(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *rows)
{
	struct rows all = { 0 };

	add_stubs(elf_section(elf, ".plt"), base, limit, true, rules, &all);
	add_stubs(elf_section(elf, ".iplt"), base, limit, false, rules, &all);
	rows_fill(rows, &all);
	rows_done(&all);
}

/* --- signals --- */

enum { TRAMPOLINE = 8, TRAMPOLINES_MOST = 16 };
static const uint8_t trampoline[TRAMPOLINE] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 }; /* mov x8, #139; svc #0 */

void arm64_trampolines(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *rows)
{
	uint32_t rule = rows_rule(rules, rule_make(RULE_SIGNAL, RULE_SIGNAL_ARM64, 0, RULE_RBP_SAME, 0)), found = 0;
	struct rows own = { 0 };

	for (uint32_t at = 0; at < limit && found < TRAMPOLINES_MOST;) {
		uint64_t n = limit - at;
		const uint8_t *code = elf_code_at(elf, base + at, &n), *p;

		if (!code || !n) {
			at = (at | 4095) + 1; /* between segments */
			continue;
		}
		p = memmem(code, n, trampoline, sizeof(trampoline));
		/* The kernel made the first byte the return address, and that of the byte before is looked up; behind the system call it
		 * stands while it is in the kernel. */
		if (p && !((base + at + (p - code)) & 3)) {
			uint32_t from = at + (p - code);

			rows_add(&own, from ? from - 1 : 0, rule);
			rows_add(&own, MIN(from + TRAMPOLINE + 1, limit), ROWS_NONE);
			found++;
		}
		at += p ? (uint64_t)(p - code) + TRAMPOLINE + 4 : n;
	}
	rows_fill(rows, &own);
	rows_done(&own);
}

/* --- calls --- */

/* bl; blr, blraa, blrab, blraaz, blrabz */
bool arm64_ends_with_call(const uint8_t before[8])
{
	uint32_t word = word_at(before + 4);

	return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800;
}
