/*
 * blobsetup.h - for assembly: maps what follows a blob's image, once that is there itself.
 *
 * Runs in a thread that was stopped, which gasflame waits for at a trap; its first argument is the file of the shared part, its second how
 * long that is, and all registers are ours. Jumps to \failed with the error as result. No child of fork may have the shared part,
 * nor the state that makes hooks use it.
 */
#pragma once

#ifdef __x86_64__

.macro BLOB_MAP_PARTS local local_bytes shared failed
	movq %rsi, %r12
	movq %rdi, %r8
	leaq \shared(%rip), %rdi
	movl $3, %edx		/* PROT_READ | PROT_WRITE */
	movl $0x11, %r10d	/* MAP_SHARED | MAP_FIXED */
	xorl %r9d, %r9d
	movl $9, %eax		/* mmap */
	syscall
	cmpq $-4096, %rax
	ja \failed
	movq %rax, %rdi
	movq %r12, %rsi
	movl $10, %edx		/* MADV_DONTFORK */
	movl $28, %eax		/* madvise */
	syscall
	testq %rax, %rax
	jne \failed
	leaq \local(%rip), %rdi
	movl $\local_bytes, %esi
	movl $3, %edx
	movl $10, %eax		/* mprotect */
	syscall
	testq %rax, %rax
	jne \failed
	leaq \local(%rip), %rdi
	movl $\local_bytes, %esi
	movl $18, %edx		/* MADV_WIPEONFORK */
	movl $28, %eax
	syscall
	testq %rax, %rax
	jne \failed
.endm

#else

.macro BLOB_MAP_PARTS local local_bytes shared failed
	mov x20, x1
	mov x4, x0
	adrp x0, \shared
	add x0, x0, #:lo12:\shared
	mov x2, #3		/* PROT_READ | PROT_WRITE */
	mov x3, #0x11		/* MAP_SHARED | MAP_FIXED */
	mov x5, #0
	mov x8, #222		/* mmap */
	svc #0
	cmn x0, #4095
	b.hs \failed
	mov x1, x20
	mov x2, #10		/* MADV_DONTFORK */
	mov x8, #233		/* madvise */
	svc #0
	cbnz x0, \failed
	adrp x19, \local
	add x19, x19, #:lo12:\local
	mov x20, #(\local_bytes) & 0xffff
	movk x20, #(\local_bytes) >> 16, lsl #16
	mov x0, x19
	mov x1, x20
	mov x2, #3
	mov x8, #226		/* mprotect */
	svc #0
	cbnz x0, \failed
	mov x0, x19
	mov x1, x20
	mov x2, #18		/* MADV_WIPEONFORK */
	mov x8, #233
	svc #0
	cbnz x0, \failed
.endm

#endif
