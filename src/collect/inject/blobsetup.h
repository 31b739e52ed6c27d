/*
 * blobsetup.h - for assembly: maps what follows a blob's image, once that is there itself.
 *
 * Runs in a thread that was stopped, which gasflame waits for at an int3; rdi is the file of the shared part, rsi how long
 * that is, and all registers are ours. Jumps to \failed with the error in rax. No child of fork may have the shared part,
 * nor the state that makes hooks use it.
 */
#pragma once

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
