/*
 * sample.h - a small profile that has one of everything: threads, two processes,
 * kernel frames, inlined calls, recursion, a module without symbols, a cut stack.
 */
#pragma once

#include "builder.h"

#define SAMPLE_PERIOD_NS 1000000

struct sample {
	struct profile *p;
	uint32_t node, libc, kernel, stripped; /* modules */
	uint32_t cpu;                          /* event */
	uint32_t main, worker, other;          /* threads; other is of another process */
	uint64_t now_ns;
};

static inline struct sample sample_empty(void)
{
	struct sample s = { .p = profile_new() };
	struct profile *p = s.p;
	uint32_t a, b;

	p->target = profile_string(p, "demo-node");
	p->host = profile_string(p, "box");
	p->kernel = profile_string(p, "6.1.0");
	p->start_wall_ns = 1763200931ULL * 1000000000;
	p->duration_ns = 2100000000;
	p->finished = true;
	s.cpu = profile_add_event(p, "cpu", "ns", "CPU time, sampled at 1000 Hz", SAMPLE_PERIOD_NS);
	s.node = builder_module(p, "/opt/node/bin/node", MODULE_FILE);
	s.libc = builder_module(p, "/lib/libc.so.6", MODULE_FILE);
	s.kernel = builder_module(p, "[kernel]", MODULE_KERNEL);
	s.stripped = builder_module(p, "/opt/node/lib/libstripped.so", MODULE_FILE);
	a = profile_add_process(p,
				&(struct profile_process){ .pid = 100, .name = profile_string(p, "node") });
	b = profile_add_process(p,
				&(struct profile_process){ .pid = 200, .name = profile_string(p, "helper") });
	s.main = builder_thread(p, a, 100, "main");
	s.worker = builder_thread(p, a, 101, "worker 1");
	s.other = builder_thread(p, b, 200, "helper");
	return s;
}

/* Frames below a stack, outermost first (builder.h), and a stack of its own. */
#define sample_below(s, parent, ...)                                                                            \
	builder_stack((s)->p, &(struct builder_modules){ (s)->node, (s)->libc, (s)->kernel, (s)->stripped }, parent, \
		      __VA_ARGS__)
#define sample_stack(s, ...) sample_below(s, 0, __VA_ARGS__)

static inline void sample_add(struct sample *s, uint32_t thread, uint32_t stack, unsigned count)
{
	while (count--) {
		profile_add_sample(s->p, &(struct profile_sample){ .time_ns = s->now_ns,
								   .value = SAMPLE_PERIOD_NS,
								   .thread = thread,
								   .stack = stack,
								   .event = s->cpu });
		s->now_ns += SAMPLE_PERIOD_NS;
	}
}

/* 2,000 samples, 1 ms each: 0 to 2 s. */
static inline struct sample sample_make(void)
{
	struct sample s = sample_empty();

	sample_add(&s, s.main,
		   sample_stack(&s, "_start;main;node::run;node::fib;node::fib;node::fib"),
		   600);
	sample_add(&s, s.main, sample_stack(&s, "_start;main;node::run;node::fib"), 100);
	sample_add(&s, s.main,
		   sample_stack(&s, "_start;main;node::run;write;k:entry_SYSCALL_64;k:ksys_write;"
				    "k:ext4_file_write_iter"),
		   300);
	sample_add(&s, s.worker,
		   sample_stack(&s, "clone3;start_thread;"
				    "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once;"
				    "reth_trie::state::StateRoot<T, H>::calculate;i:alloy_trie::HashBuilder::update;"
				    "i:core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp"),
		   500);
	sample_add(&s, s.worker,
		   sample_stack(&s, "clone3;start_thread;alloy_trie::HashBuilder::update"), 250);
	sample_add(&s, s.worker, sample_stack(&s, "!no table;?;node::callback"), 50);
	sample_add(&s, s.other, sample_stack(&s, "_start;main;node::help"), 150);
	sample_add(&s, s.main, sample_stack(&s, "_start;main"), 50);
	profile_count_set(s.p, "self.cpu_ns", 6000000);
	profile_count_set(s.p, "bpf.run_ns", 4500000);
	profile_count_set(s.p, "samples.lost", 2);
	profile_count_set(s.p, "target.cpu_ns", 2000000000);
	return s;
}
