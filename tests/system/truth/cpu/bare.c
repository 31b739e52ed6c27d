/*
 * bare.c [seconds=3] - a chain of calls that is known, built without any unwind table: frames of all sizes, one whose size
 * is known at run time only, a switch, a callback from the C library, assembly that uses every register, and a function
 * whose code is rewritten before it runs, so that its file says something else about its frame.
 *
 * Every stack is main;part_NAME;... in the order of the calls below.
 */
#include <string.h>
#include <sys/mman.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE uint64_t leaf(uint64_t x)
{
	return spin(2000 + (x & 1));
}

static NOINLINE uint64_t step_c(uint64_t x, const char *s)
{
	char text[200];

	memset(text, (int)leaf(x), sizeof(text));
	__asm__ volatile("" : : "r"(text) : "memory");
	return leaf(x) + (uint64_t)text[x & 127] + (uint64_t)*s;
}

static NOINLINE uint64_t step_b(uint64_t x, int n)
{
	uint64_t r = 0;

	for (int i = 0; i < n; i++) {
		switch (x % 7) {
		case 0: r += step_c(x, "a"); break;
		case 1: r ^= step_c(x + 1, "b") * 3; break;
		case 2: r -= step_c(x, "c"); break;
		case 3: r += step_c(x * 5, "d") << 1; break;
		case 4: r += step_c(x, "e") + 1; break;
		case 5: r += step_c(x + 9, "f"); break;
		default: r += step_c(x, "g"); break;
		}
		x += r | 1;
	}
	return r;
}

static NOINLINE uint64_t step_a(uint64_t x)
{
	size_t n = (x & 31) + 16;
	char *text = __builtin_alloca(n);

	memset(text, (int)x, n);
	__asm__ volatile("" : : "r"(text) : "memory");
	return step_b(x, 5) + (uint64_t)text[3];
}

static NOINLINE uint64_t part_plain(uint64_t x)
{
	return step_a(x) + 1;
}

static int compare(const void *a, const void *b)
{
	return (int)(step_a(*(const uint64_t *)a) & 1) - (*(const uint64_t *)b > 3);
}

static NOINLINE uint64_t part_sorted(uint64_t x)
{
	uint64_t v[4] = { x, x + 1, x + 2, x + 3 };

	qsort(v, 4, sizeof(*v), compare);
	return v[2];
}

uint64_t asm_burn(uint64_t steps);
uint64_t rewritten(uint64_t x, uint64_t (*fn)(uint64_t));
extern uint8_t rewritten_down[], rewritten_up[];

/* asm_burn uses rbp as a number and saves registers, and calls itself once. rewritten has a frame of 8 bytes in the file. */
__asm__(".text\n"
	".globl asm_burn\n"
	".type asm_burn, @function\n"
	"asm_burn:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	push %r12\n"
	"	sub $0x1a8, %rsp\n"
	"	xor %ebp, %ebp\n"
	"1:	add $3, %rbp\n"
	"	mov %rbp, 0x20(%rsp)\n"
	"	dec %rdi\n"
	"	jne 1b\n"
	"	mov %rbp, %rax\n"
	"	add $0x1a8, %rsp\n"
	"	pop %r12\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size asm_burn, .-asm_burn\n"
	".p2align 4\n"
	".globl rewritten, rewritten_down, rewritten_up\n"
	".type rewritten, @function\n"
	"rewritten:\n"
	"rewritten_down:\n"
	"	sub $0x8, %rsp\n"
	"	call *%rsi\n"
	"rewritten_up:\n"
	"	add $0x8, %rsp\n"
	"	ret\n"
	".size rewritten, .-rewritten\n"
	".section .note.GNU-stack, \"\", @progbits\n"
	".text\n");

/* The frame becomes 0x48 bytes. */
static int rewrite(void)
{
	uintptr_t page = (uintptr_t)rewritten & ~(uintptr_t)4095;

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		return -1;
	rewritten_down[3] = rewritten_up[3] = 0x48;
	return mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
}

static NOINLINE uint64_t part_assembly(uint64_t x)
{
	return asm_burn(20000 + (x & 1)) + 1;
}

static NOINLINE uint64_t part_rewritten(uint64_t x)
{
	return rewritten(x, leaf) + 1;
}

int main(int argc, char **argv)
{
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 3);

	if (rewrite())
		return 1;
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end) {
		sink += part_plain(sink) + part_sorted(sink) + part_assembly(sink);
		for (int i = 0; i < 40; i++)
			sink += part_rewritten(sink);
	}
	return 0;
}
