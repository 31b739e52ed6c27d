/*
 * signals.c [seconds] - works in two signal handlers, one on the interrupted stack and one on an
 * alternate stack, always above interrupted_burn().
 */
#include <signal.h>
#include <sys/time.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void handler_burn(void)
{
	sink += spin(2000000);
}

static NOINLINE void alternate_burn(void)
{
	sink += spin(2000001);
}

static void on_stack(int signo)
{
	(void)signo;
	handler_burn();
	sink++;
}

static void on_alternate(int signo)
{
	(void)signo;
	alternate_burn();
	sink++;
}

static NOINLINE void interrupted_burn(double end)
{
	while (seconds_of(CLOCK_MONOTONIC) < end)
		sink += spin(100000);
}

int main(int argc, char **argv)
{
	static char room[64 * 1024];
	stack_t alternate = { .ss_sp = room, .ss_size = sizeof(room) };
	sigaltstack(&alternate, NULL);
	struct sigaction plain = { .sa_handler = on_stack }, other = { .sa_handler = on_alternate };
	other.sa_flags = SA_ONSTACK;
	sigaddset(&plain.sa_mask, SIGALRM); /* neither interrupts the other */
	sigaddset(&other.sa_mask, SIGPROF);
	sigaction(SIGPROF, &plain, NULL);
	sigaction(SIGALRM, &other, NULL);
	struct itimerval every = { { 0, 10000 }, { 0, 10000 } };
	setitimer(ITIMER_PROF, &every, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	say_ready();
	interrupted_burn(seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5));
	return 0;
}
