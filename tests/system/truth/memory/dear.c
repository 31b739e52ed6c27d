/*
 * dear - has a function with the name of jemalloc's te_event_trigger that begins with an instruction which a uprobe
 * would have to step over: -e alloc must not touch it.
 */
#include <unistd.h>

#include "../truth.h"

__asm__(".text\n"
	".globl te_event_trigger\n"
	".type te_event_trigger, @function\n"
	"te_event_trigger:\n"
	"	mov %rdi, %rax\n"
	"	push %rbx\n"
	"	pop %rbx\n"
	"	ret\n"
	".skip 16, 0x90\n"
	".size te_event_trigger, . - te_event_trigger\n");
long te_event_trigger(long);

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 10), start = seconds_of(CLOCK_MONOTONIC);

	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) - start < seconds) {
		te_event_trigger(argc);
		usleep(1000);
	}
	return 0;
}
