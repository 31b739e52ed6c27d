/*
 * calls.c - calls for readers of call graphs: one function of two callers, recursion that is deep, recursion of two functions, and
 * a second thread. What it executes is always the same, for profilers that count instructions. Ends at once.
 */
#include <pthread.h>

#define CALLED __attribute__((noinline, noclone))

static volatile long sink;

static long odd(long n);

static CALLED long even(long n)
{
	sink += n;
	return n ? odd(n - 1) + 1 : 1;
}

static CALLED long odd(long n)
{
	sink += n;
	return n ? even(n - 1) + 1 : 0;
}

static CALLED long deep(long n)
{
	sink++;
	return n ? deep(n - 1) + 1 : 0;
}

static CALLED long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static CALLED void shared_leaf(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
}

static CALLED void caller_of_most(void)
{
	shared_leaf(3000);
}

static CALLED void caller_of_some(void)
{
	shared_leaf(1000);
	shared_leaf(500);
}

static CALLED void *second(void *unused)
{
	shared_leaf(2000);
	sink += fib(10);
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	pthread_join(thread, NULL);
	caller_of_most();
	caller_of_some();
	sink += deep(500) + even(101) + fib(12);
	return 0;
}
