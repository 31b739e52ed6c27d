/*
 * nofde.c [seconds=5] - burns in assembly that has no unwind information, uses the frame pointer for something
 * else, and moves the stack pointer to memory without a single return address: nobody can walk out of it, and a
 * profiler must say so.
 */
#include "../truth.h"

void nofde_burn(uint64_t steps);

#if defined(__x86_64__)
__asm__(".text\n"
	".globl nofde_burn\n"
	".type nofde_burn, @function\n"
	"nofde_burn:\n"
	"	push %rbp\n"
	"	mov %rsp, %rdx\n"
	"	lea nofde_area+4096(%rip), %rsp\n"
	"	mov $12345, %rbp\n"
	"1:	dec %rdi\n"
	"	jne 1b\n"
	"	mov %rdx, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size nofde_burn, .-nofde_burn\n"
	".local nofde_area\n"
	".comm nofde_area, 8192, 64\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl nofde_burn\n"
	".type nofde_burn, %function\n"
	"nofde_burn:\n"
	"	stp x29, x30, [sp, #-96]!\n"
	"	mov x29, #12345\n"
	"	mov x30, #0\n"
	"1:	subs x0, x0, #1\n"
	"	b.ne 1b\n"
	"	ldp x29, x30, [sp], #96\n"
	"	ret\n"
	".size nofde_burn, .-nofde_burn\n");
#endif

int main(int argc, char **argv)
{
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end)
		nofde_burn(2000000);
	return 0;
}
