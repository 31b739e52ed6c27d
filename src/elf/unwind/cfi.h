/*
 * cfi.h - runs the program of an FDE and translates its rows into rules
 * (rule.h).
 *
 * Only registers that lead to the caller are tracked: the CFA, the frame pointer (rbp, x29), the stack pointer,
 * the return address, and rbx. x86-64 and arm64: struct ehframe says which.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/unwind/rule.h"

struct ehframe;
struct ehframe_cie;
struct ehframe_fde;

enum cfi_kind {
	CFI_UNSET,      /* no rule was given */
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_OFFSET,     /* at CFA + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_REGISTER,   /* in register `reg`; for the CFA: register + value */
	CFI_EXPR,       /* at the address that `expr` computes; for the CFA: its result */
	CFI_VAL_EXPR,   /* the value that `expr` computes */
};

struct cfi_place {
	enum cfi_kind kind;
	uint32_t reg;
	int64_t value;
	const uint8_t *expr;
	uint32_t expr_size;
};

struct cfi_state {
	struct cfi_place cfa, rbx, fp, sp, ra;
};

struct cfi_row {
	uint32_t offset; /* from the FDE's start */
	uint64_t rule;
};

struct cfi_rows {
	struct cfi_row *v;
	size_t n, capacity;
};

/*
 * The PLT rule of rule.h holds for one layout of entries. For another layout,
 * the row is RULE_CFA_PLT with its register bits set to the byte of an entry
 * from which on the CFA is 8 bytes higher; the usual layout (11) has 0 there.
 */

/* Computes the state that a CIE's own program leaves; an empty one if it makes no sense. */
void cfi_start(const struct ehframe *f, const struct ehframe_cie *cie, struct cfi_state *ret);
/* Replaces rows by those of an FDE: the first at offset 0, ascending, no two neighbours equal. Where the
 * program makes no sense, the rest is RULE_UNSUPPORTED. Without keep_rbx rules do not say where rbx is: few files need
 * it, and in all others rows and rules would be more. */
void cfi_run(const struct ehframe *f, const struct ehframe_fde *fde, const struct cfi_state *initial,
	     bool keep_rbx, struct cfi_rows *rows);
