/*
 * hooksarm64.S - what stands in a slot instead of malloc and its like (blob.h), on arm64. hooksx86.S has the same names.
 *
 * The fast paths touch no stack and no register but x9 to x17, which any call may change, and end in a branch to the real
 * function, with its arguments as they were. The slow ones call sampler.c. Wherever gasflame looks (alloc_seen,
 * free_seen) the stack and the link register are as they were at the hook's entry, so that it is unwound like any function's
 * first instruction.
 *
 * A probe lies on a branch to the next instruction: kernels emulate that, while they single-step a nop before 6.13. Pages of ours are not
 * guarded (BTI), and a branch by x16 may lead to any landing pad.
 */
#include "blob.h"
#include "collect/inject/blobsetup.h"

	.hidden blob_fixed, blob_local, blob_shared, blob_alloc, blob_free
	.text

/* A sampled allocation: x0 its address, x1 its size, x2 the interval of samples. Returns to the caller of the hook. */
	.globl blob_alloc_seen
	.type blob_alloc_seen, %function
	.p2align 4
blob_alloc_seen:
	.cfi_startproc
	b 1f
1:	ret
	.cfi_endproc
	.size blob_alloc_seen, . - blob_alloc_seen

/*
 * An allocation whose stack is not known, where each is seen: x0 is what is returned, x1 the event, x2 what makes it valid.
 * Not before the kernel has walked the stack: whoever finds the event asks for it.
 */
	.globl blob_exact_seen
	.type blob_exact_seen, %function
	.p2align 4
blob_exact_seen:
	.cfi_startproc
	b 1f
1:	stlr x2, [x1]
	ret
	.cfi_endproc
	.size blob_exact_seen, . - blob_exact_seen

/* A sampled object is about to be freed: x0 its address, w9 what is known of it. x16 goes on. */
	.globl blob_free_seen
	.type blob_free_seen, %function
	.p2align 4
blob_free_seen:
	.cfi_startproc
	b 1f
1:	br x16
	.cfi_endproc
	.size blob_free_seen, . - blob_free_seen

/* posix_memalign's: it returns 0, and the address is elsewhere. */
	.globl blob_out_seen
	.type blob_out_seen, %function
	.p2align 4
blob_out_seen:
	.cfi_startproc
	b 1f
1:	mov x0, xzr
	ret
	.cfi_endproc
	.size blob_out_seen, . - blob_out_seen

/* Maps what follows the image: x0 is 0 at the end, or what went wrong. */
	.globl blob_setup
	.type blob_setup, %function
	.p2align 4
blob_setup:
	.cfi_startproc
	.cfi_undefined x30
	BLOB_MAP_PARTS blob_local BLOB_LOCAL_BYTES blob_shared 1f
1:	brk #0
	.cfi_endproc
	.size blob_setup, . - blob_setup

.macro FUNCTION name
	.globl \name
	.type \name, %function
	.p2align 6
\name:
	.cfi_startproc
.endm

.macro END name
	.cfi_endproc
	.size \name, . - \name
.endm

.macro LOAD_REAL shape k
	adrp x16, blob_fixed+BLOB_REAL_AT+(\shape*12+\k)*8
	ldr x16, [x16, #:lo12:blob_fixed+BLOB_REAL_AT+(\shape*12+\k)*8]
.endm

.macro PASS_ON shape k
	LOAD_REAL \shape \k
	br x16
.endm

/* To \other unless this is about samples. There: lower, and they do nothing but pass on; higher, and each is seen. */
.macro IF_SAMPLES other
	adrp x9, blob_local
	ldr w9, [x9, #:lo12:blob_local]
	cmp w9, #1
	b.ne \other
.endm

/* \to = \pointer * 0x1e3779b1 */
.macro HASH to pointer
	mov w\to, #0x79b1
	movk w\to, #0x1e37, lsl #16
	mul x\to, \pointer, x\to
.endm

/* Counts an allocation of \size; to \slow where it is a sample, or the thread is not known. Keeps all arguments, and x15. */
.macro COUNT size slow
	mrs x9, tpidr_el0
	HASH 10 x9
	ubfx x10, x10, #20, #12
	adrp x11, blob_shared+BLOB_THREADS_AT
	add x11, x11, #:lo12:blob_shared+BLOB_THREADS_AT
	add x11, x11, x10, lsl #6
	ldp x12, x13, [x11]	/* owner, countdown */
	cmp x12, x9
	b.ne \slow
	ldr x14, [x11, #16]	/* count */
	subs x13, x13, \size
	add x14, x14, #1
	stp x13, x14, [x11, #8]
	b.lt \slow
.endm

/* May there be a live sample near the home of the pointer in x0? To \slow then. */
.macro LOOK slow
	HASH 9 x0
	ubfx x9, x9, #21, #15
	adrp x10, blob_shared+BLOB_COARSE_AT
	add x10, x10, #:lo12:blob_shared+BLOB_COARSE_AT
	lsr w11, w9, #5
	ldr w10, [x10, w11, uxtw #2]
	lsr w10, w10, w9
	tbnz w10, #0, \slow
.endm

/* Calls the real function, then tells sampler.c of \size bytes. \out: the pointer is where x0 pointed to. */
.macro SAMPLE shape k size out=0
	stp x29, x30, [sp, #-64]!
	.cfi_def_cfa_offset 64
	.cfi_offset x29, -64
	.cfi_offset x30, -56
	mov x29, sp
	stp \size, x0, [sp, #16]
	LOAD_REAL \shape \k
	blr x16
	str x0, [sp, #32]
.if \out
	mov x9, x0
	mov x0, xzr
	cbnz w9, 7f
	ldr x0, [sp, #24]
	ldr x0, [x0]
7:	str x0, [sp, #40]
.endif
	ldr x1, [sp, #16]
	add x2, sp, #64
	ldp x3, x4, [sp]
	bl blob_alloc
	mov x9, x0
	mov x2, x1
	ldr x1, [sp, #16]
	ldr x0, [sp, #32]
.if \out
	ldr x10, [sp, #40]
.endif
	ldp x29, x30, [sp], #64
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	cmp x9, #1
	b.lo 8f
	b.hi 7f
.if \out
	mov x0, x10
	b blob_out_seen
.else
	b blob_alloc_seen
.endif
7:	mov x1, x9
	b blob_exact_seen
8:	ret
.endm

/* Asks sampler.c whether x0 is a sample, which it takes out; w9 says. Keeps arguments. */
.macro TAKE_OUT
	stp x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	bl blob_free
	mov w9, w0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
.endm

.macro HOOKS k
FUNCTION blob_size_\k
	IF_SAMPLES 9f
	COUNT x0, 2f
1:	PASS_ON 0 \k
9:	b.lo 1b
2:	SAMPLE 0 \k x0
END blob_size_\k

FUNCTION blob_size_2nd_\k
	IF_SAMPLES 9f
	COUNT x1, 2f
1:	PASS_ON 1 \k
9:	b.lo 1b
2:	SAMPLE 1 \k x1
END blob_size_2nd_\k

FUNCTION blob_product_\k
	IF_SAMPLES 9f
	umulh x9, x0, x1
	mul x15, x0, x1
	cbnz x9, 1f	/* the real one refuses it */
	COUNT x15, 2f
1:	PASS_ON 2 \k
9:	b.lo 1b
	umulh x9, x0, x1
	mul x15, x0, x1
	cbnz x9, 1b
2:	SAMPLE 2 \k x15
END blob_product_\k

FUNCTION blob_out_\k
	IF_SAMPLES 9f
	COUNT x2, 2f
1:	PASS_ON 3 \k
9:	b.lo 1b
2:	SAMPLE 3 \k x2 1
END blob_out_\k

FUNCTION blob_resize_\k
	IF_SAMPLES 9f
	LOOK 3f
4:	COUNT x1, 2f
1:	PASS_ON 4 \k
9:	b.lo 1b
	TAKE_OUT
2:	SAMPLE 4 \k x1
3:	TAKE_OUT
	adr x16, 4b
	cbnz w9, blob_free_seen
	b 4b
END blob_resize_\k

FUNCTION blob_free_\k
	IF_SAMPLES 9f
	LOOK 2f
1:	PASS_ON 5 \k
9:	b.lo 1b
	TAKE_OUT
	PASS_ON 5 \k
2:	TAKE_OUT
	cbz w9, 1b
	LOAD_REAL 5 \k
	b blob_free_seen
END blob_free_\k
.endm

	.irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	HOOKS \k
	.endr

	.section .note.GNU-stack, "", %progbits
