/*
 * sample.h - a small profile that has one of everything: threads, two processes,
 * kernel frames, inlined calls, recursion, a module without symbols, a cut stack.
 */
#pragma once

#include "profile/profile.h"

#define SAMPLE_PERIOD_NS 1000000

struct sample {
	struct profile *p;
	uint32_t node, libc, kernel, stripped; /* modules */
	uint32_t cpu;                          /* event */
	uint32_t main, worker, other;          /* threads; other is of another process */
	uint64_t now_ns;
};

static inline uint32_t sample_module(struct profile *p, const char *path, enum profile_module_kind kind)
{
	return profile_add_module(p, &(struct profile_module){ .path = profile_string(p, path), .kind = kind,
							       .process = PROFILE_NONE });
}

static inline uint32_t sample_thread(struct profile *p, uint32_t process, uint32_t tid, const char *name)
{
	return profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = tid,
							       .name = profile_string(p, name) });
}

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
	s.node = sample_module(p, "/opt/node/bin/node", MODULE_FILE);
	s.libc = sample_module(p, "/lib/libc.so.6", MODULE_FILE);
	s.kernel = sample_module(p, "[kernel]", MODULE_KERNEL);
	s.stripped = sample_module(p, "/opt/node/lib/libstripped.so", MODULE_FILE);
	a = profile_add_process(p,
				&(struct profile_process){ .pid = 100, .name = profile_string(p, "node") });
	b = profile_add_process(p,
				&(struct profile_process){ .pid = 200, .name = profile_string(p, "helper") });
	s.main = sample_thread(p, a, 100, "main");
	s.worker = sample_thread(p, a, 101, "worker 1");
	s.other = sample_thread(p, b, 200, "helper");
	return s;
}

/* A stack by names, outermost first; "k:" before a kernel function, "i:" before one that is inlined into
 * the frame before it, "?" for an address without a symbol, "!" before the reason of a cut. */
static inline uint32_t sample_stack(struct sample *s, const char *const *names, size_t n)
{
	struct profile *p = s->p;
	uint32_t stack = 0;

	for (size_t i = 0; i < n; i++) {
		struct profile_line lines[8];
		uint32_t count = 1, frame;
		const char *name = names[i];

		if (name[0] == '!') {
			stack = profile_stack(p, stack, profile_truncation_frame(p, name + 1));
			continue;
		}
		if (!strcmp(name, "?")) {
			stack = profile_stack(p, stack, profile_frame(p, s->stripped, FRAME_USER, 0x1230));
			continue;
		}
		if (name[0] == 'k' && name[1] == ':') {
			stack = profile_stack(p, stack,
					      profile_named_frame(p, s->kernel, FRAME_KERNEL, name + 2));
			continue;
		}
		while (i + count < n && count < 8 && !strncmp(names[i + count], "i:", 2))
			count++;
		if (count == 1) {
			stack = profile_stack(p, stack, profile_named_frame(p, s->node, FRAME_USER, name));
			continue;
		}
		for (uint32_t k = 0; k < count; k++) {
			struct profile_function f = {
				.name = profile_string(p, names[i + k] + (k ? 2 : 0)), .module = s->node };

			lines[count - 1 - k] = (struct profile_line){ .function = profile_function(p, &f),
								      .inlined = k > 0 };
		}
		frame = profile_frame(p, s->node, FRAME_USER, 0x10000 + p->frames.n);
		profile_set_lines(p, frame, lines, count);
		stack = profile_stack(p, stack, frame);
		i += count - 1;
	}
	return stack;
}

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

#define SAMPLE_STACK(s, ...)                                                      \
	sample_stack(s, (const char *const[]){ __VA_ARGS__ },                     \
		     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* 2,000 samples, 1 ms each: 0 to 2 s. */
static inline struct sample sample_make(void)
{
	struct sample s = sample_empty();

	sample_add(&s, s.main,
		   SAMPLE_STACK(&s, "_start", "main", "node::run", "node::fib", "node::fib", "node::fib"),
		   600);
	sample_add(&s, s.main, SAMPLE_STACK(&s, "_start", "main", "node::run", "node::fib"), 100);
	sample_add(&s, s.main,
		   SAMPLE_STACK(&s, "_start", "main", "node::run", "write", "k:entry_SYSCALL_64",
				"k:ksys_write", "k:ext4_file_write_iter"),
		   300);
	sample_add(&s, s.worker,
		   SAMPLE_STACK(&s, "clone3", "start_thread",
				"<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once",
				"reth_trie::state::StateRoot<T, H>::calculate",
				"i:alloy_trie::HashBuilder::update",
				"i:core::slice::cmp::<impl core::cmp::Ord for [A]>::cmp"),
		   500);
	sample_add(&s, s.worker,
		   SAMPLE_STACK(&s, "clone3", "start_thread", "alloy_trie::HashBuilder::update"), 250);
	sample_add(&s, s.worker, SAMPLE_STACK(&s, "!no table", "?", "node::callback"), 50);
	sample_add(&s, s.other, SAMPLE_STACK(&s, "_start", "main", "node::help"), 150);
	sample_add(&s, s.main, SAMPLE_STACK(&s, "_start", "main"), 50);
	profile_count_set(s.p, "self.cpu_ns", 6000000);
	profile_count_set(s.p, "bpf.run_ns", 4500000);
	profile_count_set(s.p, "samples.lost", 2);
	profile_count_set(s.p, "target.cpu_ns", 2000000000);
	return s;
}
