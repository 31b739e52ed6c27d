/*
 * waits.h - where threads wait, which threads wake them, and what these did
 * meanwhile.
 *
 * Waits are grouped by their cause and the nearest function of the program's own
 * code. Only sleeping threads count: waking others is no wait. A wait that an
 * interrupt ended was ended by the timer, the disk or the network, not by the
 * task that happened to run there.
 *
 *	struct waits w;
 *	waits_make(&w, p, &options, &causes, 10);
 *	for (size_t i = 0; i < w.sites.n; i++)
 *		printf("%s\n", w.sites.v[i].function);
 *	waits_done(&w);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/wait/cause.h"
#include "analyze/tree/ident.h"
#include "base/vec.h"
#include "profile/kernelname.h"

struct profile;
struct select_options;

enum { WAITS_LINKS = 8 };

/* A place from which waits were ended. */
struct waits_waker {
	enum kernel_interrupt interrupt; /* not INTERRUPT_NONE: there is no function */
	const char *function;
	const char *thread;              /* name */
	uint64_t ns, count, longest_ns;  /* of the waits that it ended */
	uint32_t stack;                  /* from which it ended most of that time */
	uint64_t stack_ns;               /* that time */
};

/* Threads of one name that waited. */
struct waits_waiter {
	const char *thread;
	uint32_t threads;
	uint64_t ns;
};

/* Functions that wakers ran while others waited for them. */
struct waits_ran {
	const char *function;
	uint64_t ns;
};

struct waits_link {
	const char *thread, *function;
	enum cause cause;
};

/* The waker itself waited: for what, and so on. */
struct waits_chain {
	struct waits_link links[WAITS_LINKS];
	uint32_t link_count;
	enum kernel_interrupt end; /* what ended the last one's wait, if it was an interrupt */
	uint64_t ns, count;        /* of the waits at the chain's beginning */
};

struct waits_site {
	enum cause cause;
	const struct pattern *pattern; /* of the stack with the most time; NULL = none */
	const char *function;
	const char *module;            /* path, "" = none */
	const char *operation;         /* "fdatasync", NULL = none */
	uint64_t ns, count;
	uint64_t longest_ns;           /* of the waits that were kept one by one */
	uint32_t thread;               /* the thread that waited most here */
	uint32_t threads;
	uint64_t thread_ns;            /* of that one */
	uint64_t longest_at_ns;        /* when the longest wait began */
	uint32_t longest_thread;       /* whose it was, PROFILE_NONE = none was kept */
	VEC(struct waits_waiter) waiters; /* those that waited most first, all of them */
	uint64_t woken_ns;             /* part of ns whose wakers are known */
	VEC(struct waits_waker) wakers;
	VEC(struct waits_ran) ran;
	VEC(struct waits_chain) chains;
	uint32_t ident;                /* private, as is heaviest_ns */
	uint64_t heaviest_ns;
};

struct waits {
	struct idents idents; /* owns the names */
	VEC(struct waits_site) sites; /* longest first, sleep after all others */
	uint64_t ns, count;   /* of all sites */
	uint64_t idle_ns;     /* left out */
};

/* Of o the threads, processes, the range, causes and idle count. The first detailed sites get wakers. */
void waits_make(struct waits *w, const struct profile *p, const struct select_options *o, size_t detailed);
void waits_done(struct waits *w);

/* "timer interrupt" */
const char *waits_interrupt(enum kernel_interrupt i);
