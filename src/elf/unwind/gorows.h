/*
 * gorows.h - unwind rows of a Go program, from the frame sizes in its .gopclntab (elf/go/gotab.h).
 *
 * Go's table gives the CFA: rsp + frame size + 8. Go's own .debug_frame says no more than that. These rows say
 * also where the caller's rbp is, by the prologue's instructions, and how a stack goes on where the runtime
 * switches stacks:
 *
 *	systemstack, asmcgocall      the goroutine that called, on its own stack
 *	morestack                    the goroutine whose stack is too small
 *	cgocallback                  the C code that called back, on the thread's stack
 *	nanotime1, vgetrandom1, ...  the caller, though the function itself runs on the thread's stack
 *	mcall, gogo, clone           nothing: what ran there before has been left for good
 *	sigreturn                    the code that a signal interrupted
 *	goexit, mstart, rt0_go       nothing: these are roots
 *
 * Checked against the assembly of Go 1.12 to 1.27. Where a function of these names switches stacks in a way that
 * is not known, its rows are RULE_UNSUPPORTED.
 */
#pragma once

#include <stdint.h>

struct elf;
struct rows;
struct rows_rules;

/* Adds the rows of all Go functions at [base, base + limit) to ret, which is empty. There are none if the file is
 * no Go program, or if its table cannot be used. */
void gorows_read(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *ret);
