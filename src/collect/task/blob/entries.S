/*
 * entries.S - what stands in the slots of a vtable (task.h).
 *
 * Each slot of each vtable has an entry of its own, which knows the vtable's number. Asleep it jumps to the real function
 * with all registers as they were. Functions of these slots have one argument, the task's header in rdi, and return nothing.
 */
#include "task.h"
#include "collect/inject/blobsetup.h"

	.hidden task_fixed, task_local, task_shared, task_wake, task_dealloc
	.text

/*
 * A wake whose stack is to be taken: eax the ticket, rdi the header; r11 goes on. The stack is as it was at the call of
 * schedule, so that it is unwound like that of any function's first instruction.
 */
	.globl task_wake_seen
	.type task_wake_seen, @function
	.p2align 4
task_wake_seen:
	.cfi_startproc
	nop
	jmp *%r11
	.cfi_endproc
	.size task_wake_seen, . - task_wake_seen

/* rdi the header, esi the number. */
	.globl task_schedule
	.type task_schedule, @function
	.p2align 4
task_schedule:
	.cfi_startproc
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call task_wake
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	movl %esi, %esi
	imulq $TASK_VTABLE_BYTES, %rsi, %rsi
	leaq task_fixed+TASK_REAL_AT+8(%rip), %r11
	movq (%r11,%rsi), %r11
	testl %eax, %eax
	jne task_wake_seen
	jmp *%r11
	.cfi_endproc
	.size task_schedule, . - task_schedule

/*
 * Maps what follows the image: rax is 0 at the end, 1 where the thread may not read the time-stamp counter, or what went
 * wrong. A core dump must not hold the rings: they are large, and mostly holes.
 */
	.globl task_setup
	.type task_setup, @function
	.p2align 4
task_setup:
	.cfi_startproc
	.cfi_undefined rip
	BLOB_MAP_PARTS task_local TASK_LOCAL_BYTES task_shared 1f
	leaq task_shared(%rip), %rdi
	movq %r12, %rsi
	movl $16, %edx		/* MADV_DONTDUMP */
	movl $28, %eax		/* madvise */
	syscall
	testq %rax, %rax
	jne 1f
	movl $186, %eax		/* gettid */
	syscall
	movl %eax, task_local+TASK_TID_AT(%rip)
	movq %fs:0, %rax
	movq %rax, task_local+TASK_POINTER_AT(%rip)
	movl $25, %edi		/* PR_GET_TSC */
	leaq task_local+TASK_TSC_AT(%rip), %rsi
	movl $157, %eax		/* prctl */
	syscall
	testq %rax, %rax
	jne 1f
	cmpl $1, task_local+TASK_TSC_AT(%rip)	/* PR_TSC_ENABLE */
	je 1f
	movl $1, %eax
1:	int3
	.cfi_endproc
	.size task_setup, . - task_setup

/* The entries of one slot, in the order of the vtables' numbers. */
.macro ENTRIES slot to
	.set number, 0
	.rept TASK_VTABLES
	.p2align 5
	endbr64
	cmpl $0, task_local(%rip)
	jne 1f
	jmp *task_fixed+TASK_REAL_AT+number*TASK_VTABLE_BYTES+\slot*8(%rip)
1:	movl $number, %esi
	jmp \to
	.set number, number + 1
	.endr
.endm

	.globl task_entries
	.type task_entries, @function
	.p2align 6
task_entries:
	.cfi_startproc
	ENTRIES 0 gasflame_task_poll
	ENTRIES 1 task_schedule
	ENTRIES 2 task_dealloc
	.p2align 5
	.cfi_endproc
	.size task_entries, . - task_entries
	.globl task_entries_end
task_entries_end:

	.section .note.GNU-stack, "", @progbits
