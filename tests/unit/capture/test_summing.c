/* Old rows of a long recording: summed, nothing is lost or counted twice, whenever the recorder is killed. */
#include "capturefiles.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "analyze/select.h"
#include "random.h"

enum {
	CPU, WAIT, QUEUE, FAULT, EVENTS,
	THREADS = 4,
	STACKS = 5,
	ROWS = 200,         /* in a second */
	SECOND = 1000000000,
};

struct node {
	struct profile *p;
	uint32_t stacks[STACKS];
	uint32_t type; /* of tasks: a string */
};

static struct node make_node(void)
{
	struct node n = { .p = profile_new() };
	struct profile *p = n.p;
	uint32_t process;

	profile_add_event(p, "cpu", "ns", "CPU time", 1001001);
	profile_add_event(p, "wait", "ns", "time blocked", 0);
	profile_add_event(p, "queue", "ns", "time in the run queue", 0);
	profile_add_event(p, "minor-faults", "count", "page faults", 1);
	process = profile_add_process(p, &(struct profile_process){ .pid = 1, .name = profile_string(p, "node") });
	for (uint32_t i = 0; i < THREADS; i++)
		profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 1 + i, .name = profile_string(p, "t") });
	for (uint32_t i = 0; i < STACKS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		n.stacks[i] = profile_stack(p, i ? n.stacks[i / 2] : 0, profile_named_frame(p, PROFILE_NONE, FRAME_USER, name));
	}
	n.type = profile_string(p, "serve");
	return n;
}

static void add_row(struct node *n, struct random *r, uint64_t second)
{
	uint64_t at = second * SECOND + random_next(r) % SECOND, late = random_next(r) % 20 ? 0 : random_next(r) % (3ULL * SECOND);
	struct profile_sample s = { .time_ns = at - MIN(late, at), .thread = random_next(r) % THREADS,
				    .stack = n->stacks[random_next(r) % STACKS], .event = random_next(r) % EVENTS };

	s.value = s.event == CPU ? 1001001 : 1 + random_next(r) % (random_next(r) % 50 ? 30000000 : 3000000000);
	if (s.event != CPU && random_next(r) % 3 == 0)
		s.count = 1 + random_next(r) % 50;
	profile_add_sample(n->p, &s);
	if (s.event == WAIT && s.count <= 1) {
		profile_add_wake(n->p, &(struct profile_wake){ .time_ns = s.time_ns, .blocked_ns = s.value, .thread = s.thread,
							       .stack = s.stack, .waker = 0, .waker_stack = n->stacks[0] });
		profile_add_taskwake(n->p, &(struct profile_taskwake){ .time_ns = s.time_ns, .await_ns = s.value, .type = n->type,
								       .task = 1, .thread = s.thread, .waker = s.thread });
		s.event = QUEUE;
		s.value = random_next(r) % 5000000;
		if (random_next(r) % 2)
			profile_add_sample(n->p, &s);
	}
}

/* What a second gives is always the same: blocks of all lengths, a function's spans within them, and moments. */
static void add_second(struct node *n, uint64_t second)
{
	struct random r = { .state = 1000 + second };
	uint64_t start = second * SECOND + random_next(&r) % SECOND, length = 1 + random_next(&r) % (SECOND / 4);
	uint32_t block = profile_string(n->p, "block"), work = profile_string(n->p, "work"), moment = profile_string(n->p, "moment");

	for (int i = 0; i < ROWS; i++)
		add_row(n, &r, second);
	if (second % 7 == 3)
		length = 2ULL * SECOND;
	if (second % 2)
		profile_add_mark(n->p, &(struct profile_mark){ .start_ns = start, .end_ns = start + length, .kind = block, .thread = PROFILE_NONE });
	if (second % 4 == 1)
		profile_add_mark(n->p, &(struct profile_mark){ .start_ns = start + length / 4, .end_ns = start + length / 2, .kind = work, .thread = 1 });
	if (second % 16 == 0)
		profile_add_mark(n->p, &(struct profile_mark){ .start_ns = start, .end_ns = start, .kind = moment, .thread = PROFILE_NONE });
	profile_count_set(n->p, "seconds", second + 1);
}

/* --- what must stay the same --- */

struct tally {
	uint64_t value[EVENTS][THREADS][16], count[EVENTS][THREADS][16];
};

static struct tally *tally_all(const struct profile *p)
{
	struct tally *t = mem_alloc(sizeof(*t));

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		assert_true(s->stack < 16);
		t->value[s->event][s->thread][s->stack] += s->value;
		t->count[s->event][s->thread][s->stack] += s->count ? s->count : 1;
	}
	return t;
}

/* As an analysis of the mark sees them. */
static struct tally *tally_mark(const struct profile *p, const struct profile_mark *m)
{
	static const enum role roles[EVENTS] = { ROLE_CPU, ROLE_WAIT, ROLE_QUEUE, ROLE_OTHER };
	struct tally *t = mem_alloc(sizeof(*t));

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		t->value[s->event][s->thread][s->stack] += select_value(p, i, roles[s->event], m->start_ns, m->end_ns);
	}
	return t;
}

static struct profile *all_seconds(uint64_t seconds)
{
	struct node n = make_node();

	for (uint64_t s = 0; s < seconds; s++)
		add_second(&n, s);
	return n.p;
}

static void assert_same_sums(const struct profile *p, const struct profile *q)
{
	_cleanup_free_ struct tally *a = tally_all(p), *b = tally_all(q);

	assert_memory_equal(a, b, sizeof(*a));
}

static bool is_cut_at(const struct profile *p, uint64_t time_ns)
{
	const struct profile_summed *slot = profile_summed_at(p, time_ns);

	return !slot || slot->start_ns == time_ns;
}

/* How many marks have borders that are borders of slots; their sums are the same. */
static size_t assert_same_within_marks(const struct profile *p, const struct profile *q)
{
	size_t exact = 0;

	assert_int_equal(p->marks.n, q->marks.n);
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (m->start_ns < m->end_ns && is_cut_at(q, m->start_ns) && is_cut_at(q, m->end_ns)) {
			_cleanup_free_ struct tally *a = tally_mark(p, m), *b = tally_mark(q, m);

			assert_memory_equal(a, b, sizeof(*a));
			exact++;
		}
	}
	return exact;
}

/* --- tests --- */

/* As a recorder does it; rows that are on disk are forgotten now and then. How many slots it knows to be summed. */
static size_t record(const char *path, uint64_t seconds, uint64_t limit, uint64_t full_ns)
{
	size_t summed;
	struct node n = make_node();
	struct capture *c;

	assert_int_equal(capture_create(path, &c, NULL), 0);
	assert_int_equal(capture_limit(c, limit, full_ns, NULL), 0);
	for (uint64_t s = 0; s < seconds; s++) {
		add_second(&n, s);
		n.p->finished = s + 1 == seconds;
		assert_int_equal(capture_flush(c, n.p, NULL), 0);
		assert_int_equal(capture_sum(c, n.p, NULL), 0);
		if (s % 3 == 2)
			capture_drop_samples(c, n.p);
	}
	capture_note_summed(c, n.p);
	summed = n.p->summed.n;
	assert_int_equal(capture_close(c, NULL), 0);
	profile_free(n.p);
	return summed;
}

static uint64_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void nothing_is_summed_below_the_limit(void **state)
{
	_cleanup_free_ char *path = in_folder("below"), *all = in_folder("all");
	_cleanup_(profile_freep) struct profile *p = all_seconds(40), *q = NULL, *r = NULL;

	assert_int_equal(record(path, 40, 100 << 20, SECOND), 0);
	record(all, 40, 0, SECOND);
	q = load(path);
	r = load(all);
	assert_int_equal(q->summed.n, 0);
	assert_int_equal(q->samples.n, p->samples.n);
	assert_int_equal(r->summed.n, 0);
	assert_int_equal(r->samples.n, p->samples.n);
	assert_same_sums(p, q);
}

/* By second: each mark is exact, the last seconds and slow blocks are as recorded. */
static void old_rows_are_summed_by_second(void **state)
{
	_cleanup_free_ char *path = in_folder("second");
	_cleanup_(profile_freep) struct profile *p = all_seconds(60), *q = NULL;
	size_t exact, slow = 0, recent = 0, recent_all = 0, summed = record(path, 60, 1200000, 10ULL * SECOND);

	q = load(path);
	assert_int_equal(summed, q->summed.n);
	assert_same_sums(p, q);
	assert_true(q->samples.n < p->samples.n * 3 / 4);
	assert_true(q->summed.n > 20);
	for (size_t i = 0; i < q->summed.n; i++) {
		assert_true(q->summed.v[i].end_ns - q->summed.v[i].start_ns < 3ULL * SECOND);
		assert_true(!i || q->summed.v[i].start_ns >= q->summed.v[i - 1].end_ns);
	}
	assert_true(q->summed.v[q->summed.n - 1].end_ns <= 51ULL * SECOND);
	exact = assert_same_within_marks(p, q);
	assert_true(exact == assert_same_within_marks(p, p));
	for (size_t i = 0; i < q->samples.n; i++)
		recent += q->samples.v[i].time_ns >= 51ULL * SECOND;
	for (size_t i = 0; i < p->samples.n; i++)
		recent_all += p->samples.v[i].time_ns >= 51ULL * SECOND;
	assert_int_equal(recent, recent_all);
	for (size_t i = 0; i < q->marks.n; i++)
		slow += q->marks.v[i].end_ns < 40ULL * SECOND && q->marks.v[i].end_ns - q->marks.v[i].start_ns == 2ULL * SECOND &&
			!profile_summed_at(q, q->marks.v[i].start_ns) && !profile_summed_at(q, q->marks.v[i].start_ns + SECOND);
	assert_true(slow > 0);
	/* A wake stays of each second at least, none is invented. */
	assert_true(q->wakes.n < p->wakes.n || !profile_counter(q, "wakes.left out"));
	assert_int_equal(q->wakes.n + profile_counter(q, "wakes.left out"), p->wakes.n);
	assert_int_equal(q->taskwakes.n, q->wakes.n);
	assert_int_equal(profile_counter(q, "task.wakes left out"), profile_counter(q, "wakes.left out"));
}

/* Where seconds do not do, slots get longer: below the limit all the same, sums are exact. */
static void slots_get_longer_to_stay_below_the_limit(void **state)
{
	_cleanup_free_ char *path = in_folder("longer");
	_cleanup_(profile_freep) struct profile *p = all_seconds(300), *q = NULL;
	uint64_t longest = 0;

	record(path, 300, 800000, 5ULL * SECOND);
	q = load(path);
	assert_same_sums(p, q);
	assert_true(assert_same_within_marks(p, q) > 0);
	for (size_t i = 0; i < q->summed.n; i++)
		longest = MAX(longest, q->summed.v[i].end_ns - q->summed.v[i].start_ns);
	assert_true(longest > 3ULL * SECOND);
	assert_true(size_of(path) <= 800000);
}

/* No room for the log: what could not be summed stays, and is summed when there is room. */
static void a_full_disk_loses_no_sums(void **state)
{
	_cleanup_free_ char *inner = in_folder("tiny"), *path = in_folder("tiny/x");
	_cleanup_(profile_freep) struct profile *p = NULL, *q = NULL;
	struct node n = make_node();
	struct capture *c;
	uint64_t failed = 0;

	assert_int_equal(mkdir(inner, 0755), 0);
	if (mount("none", inner, "tmpfs", 0, "size=600k") < 0) {
		print_message("skipped: cannot mount a tmpfs (needs root): %s\n", strerror(errno));
		profile_free(n.p);
		skip();
	}
	assert_int_equal(capture_create(path, &c, NULL), 0);
	assert_int_equal(capture_limit(c, 400000, 5ULL * SECOND, NULL), 0);
	for (uint64_t s = 0; s < 120; s++) {
		int r;

		add_second(&n, s);
		if (s == 60)
			assert_int_equal(mount("none", inner, "tmpfs", MS_REMOUNT, "size=64m"), 0);
		r = capture_flush(c, n.p, NULL);
		assert_true(!r || (r == -ENOSPC && s < 60));
		if (!r) {
			r = capture_sum(c, n.p, NULL);
			assert_true(!r || (r == -ENOSPC && s < 60));
		}
		failed += r != 0;
	}
	n.p->finished = true;
	assert_int_equal(capture_flush(c, n.p, NULL), 0);
	assert_int_equal(capture_close(c, NULL), 0);
	q = load(path);
	umount(inner);
	p = all_seconds(120);
	profile_free(n.p);
	assert_same_sums(p, q);
	assert_true(failed > 0 && q->summed.n > 0);
}

/* --- killed --- */

static void record_until_killed(const char *path, volatile uint64_t *seconds)
{
	struct node n = make_node();
	struct capture *c;

	if (capture_create(path, &c, NULL) < 0 || capture_limit(c, 500000, 3ULL * SECOND, NULL) < 0)
		_exit(1);
	for (uint64_t s = 0;; s++) {
		add_second(&n, s);
		if (capture_flush(c, n.p, NULL) < 0 || capture_sum(c, n.p, NULL) < 0)
			_exit(1);
		capture_drop_samples(c, n.p);
		*seconds = s + 1;
	}
}

static void a_killed_recorder_leaves_exact_sums(void **state)
{
	volatile uint64_t *seconds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct random r = { .state = 5 };
	const size_t rounds = SANITIZED ? 6 : 20; /* what a kill leaves is proven without sanitizers */
	size_t summed = 0;

	assert_true(seconds != MAP_FAILED);
	for (size_t round = 0; round < rounds; round++) {
		_cleanup_free_ char *path = in_folder("killed");
		_cleanup_(profile_freep) struct profile *p = NULL, *q = NULL;
		uint64_t until = 5 + random_next(&r) % 60;
		pid_t child;

		*seconds = 0;
		child = fork();
		assert_true(child >= 0);
		if (!child)
			record_until_killed(path, seconds);
		while (*seconds < until && waitpid(child, NULL, WNOHANG) == 0)
			usleep(100);
		usleep(random_next(&r) % 4000);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		q = load(path);
		assert_int_equal(profile_counter(q, "capture.dropped"), 0);
		assert_true(profile_counter(q, "seconds") >= until);
		p = all_seconds(profile_counter(q, "seconds"));
		assert_same_sums(p, q);
		assert_same_within_marks(p, q);
		summed += q->summed.n > 0;
	}
	assert_true(summed >= rounds / 4);
	munmap((void *)seconds, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_summed_below_the_limit),
		cmocka_unit_test(old_rows_are_summed_by_second),
		cmocka_unit_test(slots_get_longer_to_stay_below_the_limit),
		cmocka_unit_test(a_full_disk_loses_no_sums),
		cmocka_unit_test(a_killed_recorder_leaves_exact_sums),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
