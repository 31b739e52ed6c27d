/*
 * longcapture.c - writes a synthetic capture of a busy node that was recorded for long, for what reads captures.
 *
 *	longcapture [--keep-all] OUT.gasflame MINUTES [ROWS_A_MINUTE]
 *	longcapture --again FULL.gasflame OUT.gasflame BYTES SECONDS
 *
 * The second form writes a recording again, of which nothing was summed, as `record --capture-limit BYTES --keep-full SECONDS`
 * would have written it: then both must have the same sums.
 *
 * The rows come as a recorder writes them: flushed and dropped once a second of recorded time, so that memory
 * is what the tables of stacks and names take. Old rows are summed as a recorder sums them by default, unless all are to
 * be kept. The same arguments give the same rows. At the end it prints what writing took.
 *
 * Samples of the CPU are at any of the stacks. Waits, calls and faults are nearly always at one of a few places of their
 * thread, as in real recordings: summed within a second, 47,112 rows of PostgreSQL under pgbench became 6,370, and
 * 20,629 of anvil, most of them CPU samples and faults, 15,810.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/capture.h"
#include "profile/profile.h"

enum {
	THREADS = 40,
	FUNCTIONS = 6000,
	FRAMES = 24000,    /* addresses: a function has some call sites */
	STACKS = 20000,    /* different leaves */
	DEPTH = 40,
	BLOCK_MS = 2000,   /* a block each two seconds */
	SERIES = 30,
	PLACES = 24,       /* of a thread, where it waits */
	SECOND_NS = 1000000000,
};

/* As `gasflame record` has it by default. */
static const uint64_t LIMIT_BYTES = 950 << 20, FULL_NS = 300ULL * SECOND_NS;

struct making {
	struct profile *p;
	uint64_t seed;
	uint32_t events[4], threads[THREADS], series[SERIES];
	uint32_t frames[FRAMES];
	uint32_t stacks[STACKS];
};

enum { CPU, WAIT, IO, FAULT };

static uint64_t draw(struct making *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed;
}

/* Few are frequent, most are rare, as in a real program. */
static uint32_t skewed(struct making *m, uint32_t n)
{
	double x = (draw(m) >> 11) * 0x1p-53;

	return MIN((uint32_t)(n * x * x * x * x), n - 1);
}

static void make_frames(struct making *m)
{
	static const char *const crates[] = { "reth_trie", "revm_interpreter", "alloy_primitives", "tokio::runtime", "mdbx", "core", "alloc" };
	uint32_t module = profile_add_module(m->p, &(struct profile_module){
		.path = profile_string(m->p, "/usr/local/bin/node"), .kind = MODULE_FILE, .process = PROFILE_NONE });
	uint32_t functions[FUNCTIONS];
	char name[160];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "<%s::sparse::module_%u::Worker<T> as %s::traits::Provider>::function_%u::{{closure}}",
			 crates[i % ARRAY_LEN(crates)], i / 50, crates[i / 7 % ARRAY_LEN(crates)], i);
		functions[i] = profile_function(m->p, &(struct profile_function){ .name = profile_string(m->p, name), .module = module });
	}
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct profile_line lines[2] = { { functions[draw(m) % FUNCTIONS], i % 900 + 1, true }, { functions[i % FUNCTIONS], i % 700 + 1, false } };
		bool inlined = draw(m) % 4 == 0;

		m->frames[i] = profile_frame(m->p, module, FRAME_USER, 0x100000 + i * 64ULL);
		profile_set_lines(m->p, m->frames[i], inlined ? lines : lines + 1, inlined ? 2 : 1);
	}
}

/* Stacks share their outer frames: each begins as a part of one made before. */
static void make_stacks(struct making *m)
{
	uint32_t path[DEPTH], depth = 0;

	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t keep = depth ? draw(m) % (depth + 1) : 0, want = 8 + draw(m) % (DEPTH - 8);

		for (depth = keep; depth < MAX(want, keep); depth++)
			path[depth] = profile_stack(m->p, depth ? path[depth - 1] : 0, m->frames[skewed(m, FRAMES)]);
		m->stacks[i] = path[depth - 1];
	}
}

static void make_rest(struct making *m)
{
	struct profile *p = m->p;
	uint32_t process;
	char name[32];

	p->target = profile_string(p, "node");
	p->start_wall_ns = 1700000000ULL * SECOND_NS;
	m->events[CPU] = profile_add_event(p, "cpu", "ns", "CPU time, sampled at 999 Hz", 1001001);
	m->events[WAIT] = profile_add_event(p, "wait", "ns", "time off the CPU", 0);
	m->events[IO] = profile_add_event(p, "io.read", "ns", "time in reads", 0);
	m->events[FAULT] = profile_add_event(p, "fault.minor", "count", "page faults", 1);
	process = profile_add_process(p, &(struct profile_process){ .pid = 1000, .name = profile_string(p, "node") });
	for (uint32_t i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), i < 16 ? "tokio-rt-%u" : "rayon-%u", i);
		m->threads[i] = profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 1000 + i, .name = profile_string(p, name) });
	}
	for (uint32_t i = 0; i < SERIES; i++) {
		snprintf(name, sizeof(name), "synthetic.%u", i);
		m->series[i] = profile_add_series(p, name, "bytes");
	}
}

static uint32_t stack_of(struct making *m, uint32_t which, uint32_t thread)
{
	if (which == CPU || draw(m) % 16 == 0)
		return m->stacks[skewed(m, STACKS)];
	return m->stacks[(thread * 7919 + skewed(m, PLACES) * 104729) % STACKS];
}

static void add_row(struct making *m, uint64_t time_ns)
{
	uint32_t kind = draw(m) % 20, which = kind < 5 ? CPU : kind < 16 ? WAIT : kind < 18 ? IO : FAULT;
	uint32_t thread = skewed(m, THREADS);
	struct profile_sample s = { .time_ns = time_ns, .thread = m->threads[thread], .stack = stack_of(m, which, thread),
				    .event = m->events[which], .value = 1001001 };

	if (which != CPU) {
		s.count = 1 + skewed(m, 200);
		s.value = which == FAULT ? s.count : s.count * (1000 + draw(m) % 100000);
	}
	profile_add_sample(m->p, &s);
	if (which == WAIT && draw(m) % 16 == 0)
		profile_add_wake(m->p, &(struct profile_wake){ .time_ns = time_ns, .blocked_ns = 1000000 + draw(m) % 50000000,
			.queue_ns = draw(m) % 100000, .thread = s.thread, .stack = s.stack, .waker = m->threads[skewed(m, THREADS)],
			.waker_stack = m->stacks[skewed(m, STACKS)] });
}

static void add_second(struct making *m, uint64_t second, uint64_t rows)
{
	uint64_t begin = second * SECOND_NS;
	char name[32];

	for (uint64_t i = 0; i < rows; i++)
		add_row(m, begin + i * SECOND_NS / rows);
	for (uint32_t i = 0; i < SERIES; i++)
		profile_add_point(m->p, m->series[i], begin, draw(m) % (1ULL << 33));
	if (begin % (BLOCK_MS * 1000000ULL))
		return;
	snprintf(name, sizeof(name), "block %llu", (unsigned long long)(24000000 + second / 2));
	profile_add_mark(m->p, &(struct profile_mark){ .start_ns = begin, .end_ns = begin + 50000000 + draw(m) % 900000000,
		.name = profile_string(m->p, name), .kind = profile_string(m->p, "block"), .thread = PROFILE_NONE,
		.block = { .number = 24000000 + second / 2, .gas = draw(m) % 36000000, .transactions = draw(m) % 400, .known = 7 } });
}

static void say_cost(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("%.1f s of CPU time, %ld MB\n", u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
	       u.ru_maxrss >> 10);
}

static int write_all(struct making *m, struct capture *c, uint64_t seconds, uint64_t rows, struct err *err)
{
	int r = 0;

	for (uint64_t s = 0; r >= 0 && s < seconds; s++) {
		add_second(m, s, rows);
		m->p->duration_ns = (s + 1) * SECOND_NS;
		m->p->finished = s + 1 == seconds;
		r = capture_flush(c, m->p, err);
		if (r >= 0)
			r = capture_sum(c, m->p, err);
		capture_drop_samples(c, m->p);
	}
	return r;
}

/* --- a recording again --- */

/* Samples of one flush come together: the next second begins with the first that is a second later. */
static int write_again(struct profile *p, struct capture *c, const struct profile_sample *samples, size_t n, struct err *err)
{
	uint64_t duration = p->duration_ns, until = SECOND_NS;
	size_t at = 0;
	int r = 0;

	for (; r >= 0 && (at < n || until <= duration); until += SECOND_NS) {
		while (at < n && (samples[at].time_ns < until || until > duration))
			profile_add_sample(p, &samples[at++]);
		p->duration_ns = MIN(until, duration);
		p->finished = at == n && until + SECOND_NS > duration;
		r = capture_flush(c, p, err);
		if (r >= 0)
			r = capture_sum(c, p, err);
		capture_drop_samples(c, p);
	}
	return r;
}

static int again(char **arguments)
{
	VEC(struct profile_sample) samples = { 0 };
	uint64_t bytes = strtoull(arguments[2], NULL, 10), full_ns = strtoull(arguments[3], NULL, 10) * SECOND_NS;
	struct profile *p = NULL;
	struct capture *c = NULL;
	struct err err = { 0 };
	int r = capture_read(arguments[0], &p, &err);

	if (r >= 0) {
		for (size_t i = 0; i < p->samples.n; i++)
			vec_push(&samples, p->samples.v[i]);
		vec_clear(&p->samples);
		r = capture_create(arguments[1], &c, &err);
	}
	if (r >= 0)
		r = capture_limit(c, bytes, full_ns, &err);
	if (r >= 0)
		r = write_again(p, c, samples.v, samples.n, &err);
	if (r >= 0)
		r = capture_close(c, &err);
	if (r < 0)
		fprintf(stderr, "longcapture: %s\n", err.text);
	vec_done(&samples);
	profile_free(p);
	return r < 0;
}

int main(int argc, char **argv)
{
	bool keep_all = argc > 1 && !strcmp(argv[1], "--keep-all");
	char **rest = argv + 1 + keep_all;
	int n = argc - 1 - keep_all;
	uint64_t minutes = n > 1 ? strtoull(rest[1], NULL, 10) : 0, rows = n > 2 ? strtoull(rest[2], NULL, 10) : 1000000;
	struct making m = { .seed = 88172645463325252ULL };
	struct capture *c;
	struct err err;
	int r;

	if (argc == 6 && !strcmp(argv[1], "--again"))
		return again(argv + 2);
	if (!minutes || rows < 60) {
		fprintf(stderr, "usage: longcapture [--keep-all] OUT.gasflame MINUTES [ROWS_A_MINUTE]\n"
				"       longcapture --again FULL.gasflame OUT.gasflame BYTES SECONDS\n");
		return 2;
	}
	m.p = profile_new();
	make_rest(&m);
	make_frames(&m);
	make_stacks(&m);
	r = capture_create(rest[0], &c, &err);
	if (r >= 0 && !keep_all)
		r = capture_limit(c, LIMIT_BYTES, FULL_NS, &err);
	if (r >= 0)
		r = write_all(&m, c, minutes * 60, rows / 60, &err);
	if (r >= 0)
		r = capture_close(c, &err);
	profile_free(m.p);
	if (r < 0)
		fprintf(stderr, "longcapture: %s\n", err.text);
	else
		say_cost();
	return r < 0;
}
