/*
 * hooksx86.S - what stands in a slot instead of malloc and its like (blob.h), on x86-64. hooksarm64.S has the same names.
 *
 * The fast paths touch no stack and no register that a callee must keep, and end in a jump
 * to the real function, with its arguments as they were. The slow ones call sampler.c.
 * Wherever gasflame looks (alloc_seen, free_seen) the stack is as it was at the hook's
 * entry, so that it is unwound like that of any function's first instruction.
 */
#include "blob.h"
#include "collect/inject/blobsetup.h"

	.hidden blob_fixed, blob_local, blob_shared, blob_alloc, blob_free
	.text

/* A sampled allocation: rax its address, rdx its size, r9 the interval of samples. Returns to the caller of the hook. */
	.globl blob_alloc_seen
	.type blob_alloc_seen, @function
	.p2align 4
blob_alloc_seen:
	.cfi_startproc
	nop
	ret
	.cfi_endproc
	.size blob_alloc_seen, . - blob_alloc_seen

/*
 * An allocation whose stack is not known, where each is seen: rax is what is returned, r8 the event, r9 what makes it valid.
 * Not before the kernel has walked the stack: whoever finds the event asks for it.
 */
	.globl blob_exact_seen
	.type blob_exact_seen, @function
	.p2align 4
blob_exact_seen:
	.cfi_startproc
	nop
	movq %r9, (%r8)
	ret
	.cfi_endproc
	.size blob_exact_seen, . - blob_exact_seen

/* A sampled object is about to be freed: rdi its address, eax what is known of it. r11 goes on. */
	.globl blob_free_seen
	.type blob_free_seen, @function
	.p2align 4
blob_free_seen:
	.cfi_startproc
	nop
	jmp *%r11
	.cfi_endproc
	.size blob_free_seen, . - blob_free_seen

/* Maps what follows the image: rax is 0 at the end, or what went wrong. */
	.globl blob_setup
	.type blob_setup, @function
	.p2align 4
blob_setup:
	.cfi_startproc
	.cfi_undefined rip
	BLOB_MAP_PARTS blob_local BLOB_LOCAL_BYTES blob_shared 1f
1:	int3
	.cfi_endproc
	.size blob_setup, . - blob_setup

.macro FUNCTION name
	.globl \name
	.type \name, @function
	.p2align 6
\name:
	.cfi_startproc
	endbr64
.endm

.macro END name
	.cfi_endproc
	.size \name, . - \name
.endm

.macro REAL instruction shape k
	\instruction *blob_fixed+BLOB_REAL_AT+(\shape*12+\k)*8(%rip)
.endm

/* To \other unless this is about samples. There: below, and they do nothing but pass on; above, and each is seen. */
.macro IF_SAMPLES other
	cmpl $1, blob_local(%rip)
	jne \other
.endm

/* Counts an allocation of \size; to \slow where it is a sample, or the thread is not known. Keeps all arguments. */
.macro COUNT size slow
	movq %fs:0, %r11
	imulq $0x1e3779b1, %r11, %rax
	shrq $14, %rax		/* an index in steps of 64 bytes */
	andl $(4095 << 6), %eax
	leaq blob_shared+BLOB_THREADS_AT(%rip), %r10
	addq %rax, %r10
	cmpq %r11, (%r10)
	jne \slow
	incq 16(%r10)
	subq \size, 8(%r10)
	jl \slow
.endm

/* May there be a live sample near the home of the pointer in rdi? To \slow then. */
.macro LOOK slow
	imulq $0x1e3779b1, %rdi, %rax
	shrq $21, %rax
	andl $0x7fff, %eax
	movl %eax, %r10d
	shrl $5, %eax
	leaq blob_shared+BLOB_COARSE_AT(%rip), %r11
	movl (%r11,%rax,4), %eax
	btl %r10d, %eax
	jc \slow
.endm

/* Calls the real function, then tells sampler.c of \size bytes. \out: the pointer is where rdi pointed to. */
.macro SAMPLE shape k size out=0
	subq $40, %rsp
	.cfi_adjust_cfa_offset 40
	movq \size, (%rsp)
	movq %rdi, 8(%rsp)
	REAL call \shape \k
	movq %rax, 16(%rsp)
.if \out
	xorl %edi, %edi
	testl %eax, %eax
	jne 7f
	movq 8(%rsp), %rdi
	movq (%rdi), %rdi
7:	movq %rdi, 24(%rsp)
.else
	movq %rax, %rdi
.endif
	movq (%rsp), %rsi
	leaq 48(%rsp), %rdx
	movq %rbp, %rcx
	movq 40(%rsp), %r8
	call blob_alloc
	movq %rax, %r8
	movq %rdx, %r9
	movq 16(%rsp), %rax
	movq (%rsp), %rdx
.if \out
	movq 24(%rsp), %rcx
.endif
	leaq 40(%rsp), %rsp
	.cfi_adjust_cfa_offset -40
	cmpq $1, %r8
	jb 8f
	ja blob_exact_seen
.if \out
	/* The function returns 0. */
	pushq %rax
	.cfi_adjust_cfa_offset 8
	movq %rcx, %rax
	popq %rcx
	.cfi_adjust_cfa_offset -8
	jmp blob_out_seen
.else
	jmp blob_alloc_seen
.endif
8:	ret
.endm

/* posix_memalign's: the address is not what it returns. */
	.globl blob_out_seen
	.type blob_out_seen, @function
	.p2align 4
blob_out_seen:
	.cfi_startproc
	nop
	movq %rcx, %rax
	ret
	.cfi_endproc
	.size blob_out_seen, . - blob_out_seen

/* Asks sampler.c whether rdi is a sample, which it takes out; eax says. Keeps arguments. */
.macro TAKE_OUT
	subq $40, %rsp
	.cfi_adjust_cfa_offset 40
	movq %rdi, (%rsp)
	movq %rsi, 8(%rsp)
	movq %rdx, 16(%rsp)
	movq %rcx, 24(%rsp)
	call blob_free
	movq (%rsp), %rdi
	movq 8(%rsp), %rsi
	movq 16(%rsp), %rdx
	movq 24(%rsp), %rcx
	addq $40, %rsp
	.cfi_adjust_cfa_offset -40
.endm

.macro HOOKS k
FUNCTION blob_size_\k
	IF_SAMPLES 9f
	COUNT %rdi 2f
1:	REAL jmp 0 \k
9:	jb 1b
2:	SAMPLE 0 \k %rdi
END blob_size_\k

FUNCTION blob_size_2nd_\k
	IF_SAMPLES 9f
	COUNT %rsi 2f
1:	REAL jmp 1 \k
9:	jb 1b
2:	SAMPLE 1 \k %rsi
END blob_size_2nd_\k

FUNCTION blob_product_\k
	IF_SAMPLES 9f
	movq %rdi, %rcx
	imulq %rsi, %rcx
	jo 1f	/* the real one refuses it */
	COUNT %rcx 2f
1:	REAL jmp 2 \k
9:	jb 1b
	movq %rdi, %rcx
	imulq %rsi, %rcx
	jo 1b
2:	SAMPLE 2 \k %rcx
END blob_product_\k

FUNCTION blob_out_\k
	IF_SAMPLES 9f
	COUNT %rdx 2f
1:	REAL jmp 3 \k
9:	jb 1b
2:	SAMPLE 3 \k %rdx 1
END blob_out_\k

FUNCTION blob_resize_\k
	IF_SAMPLES 9f
	LOOK 3f
4:	COUNT %rsi 2f
1:	REAL jmp 4 \k
9:	jb 1b
	TAKE_OUT
2:	SAMPLE 4 \k %rsi
3:	TAKE_OUT
	leaq 4b(%rip), %r11
	testl %eax, %eax
	jne blob_free_seen
	jmp 4b
END blob_resize_\k

FUNCTION blob_free_\k
	IF_SAMPLES 9f
	LOOK 2f
1:	REAL jmp 5 \k
9:	jb 1b
	TAKE_OUT
	REAL jmp 5 \k
2:	TAKE_OUT
	testl %eax, %eax
	je 1b
	movq blob_fixed+BLOB_REAL_AT+(5*12+\k)*8(%rip), %r11
	jmp blob_free_seen
END blob_free_\k
.endm

	.irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	HOOKS \k
	.endr

	.section .note.GNU-stack, "", @progbits
