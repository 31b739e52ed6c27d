#include "import/trace/tracemarks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "import/trace/tracelines.h"
#include "profile/blockspans.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/log/xlayertrace.h"

enum { CHUNK = 256 << 10, COMM = 15 };

struct kept {
	uint64_t start_ns, end_ns; /* of the recording */
	uint32_t name, thread;     /* of the trace */
	int rank;                  /* of blockspans_rank(), 0 = it is no block */
	struct block block;
};

struct adder {
	struct profile *p;
	const struct traceclock_facts *facts;
	struct tracemarks_result *result;
	struct tracespans *spans;
	bool decided;
	int failed; /* to decide */
	struct err *err;
	VEC(struct kept) kept;
	uint32_t *threads; /* by thread of the trace: the profile's */
};

/* --- which are kept --- */

/* Blocks first, then the longest. */
static int compare_worth(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	uint64_t nx = x->end_ns - x->start_ns, ny = y->end_ns - y->start_ns;

	if (!x->rank != !y->rank)
		return x->rank ? -1 : 1;
	if (nx != ny)
		return nx > ny ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static int compare_start(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1; /* what encloses comes first */
	return (x->name > y->name) - (x->name < y->name);
}

static void keep_worthy(struct adder *a)
{
	vec_sort(&a->kept, compare_worth);
	a->result->short_ones += a->kept.n - TRACEMARKS_MOST;
	a->kept.n = TRACEMARKS_MOST;
}

static void got_span(void *context, const struct trace_span *s)
{
	struct adder *a = context;
	struct kept k = { .name = s->name, .thread = s->thread, .block = s->block };
	const struct traceclock *c = &a->result->clock;

	if (a->failed)
		return;
	if (!traceclock_convert(c, s->start_ns, &k.start_ns) || !traceclock_convert(c, s->end_ns, &k.end_ns) ||
	    (a->p->duration_ns && k.end_ns > a->p->duration_ns)) {
		a->result->outside++;
		return;
	}
	if (s->block.known & BLOCK_NUMBER)
		k.rank = blockspans_rank(tracespans_name(a->spans, s->name));
	vec_push(&a->kept, k);
	if (a->kept.n == 2 * TRACEMARKS_MOST)
		keep_worthy(a);
}

static void got_event(void *context, const struct trace_event *e)
{
	struct adder *a = context;

	if (!a->decided && e->timed) {
		a->decided = true;
		a->failed = traceclock_decide(a->facts, e->time_ns, &a->result->clock, a->err);
	}
	tracespans_take(a->spans, e);
}

/* --- whose they are --- */

enum { SEVERAL = UINT32_MAX - 1 };

/* A thread's name as the kernel keeps it: by its first bytes. */
static uint64_t name_key(const char *name)
{
	return map_hash_bytes(name, strnlen(name, COMM));
}

static bool same_name(const char *comm, const char *name)
{
	return !strncmp(comm, name, COMM);
}

/* Threads by number and by name; SEVERAL have a name. */
static void index_threads(const struct adder *a, struct map *numbers, struct map *names, struct map *told)
{
	const struct profile *p = a->p;

	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *x = &p->threads.v[i];
		const struct profile_process *process = x->process < p->processes.n ? &p->processes.v[x->process] : NULL;
		uint64_t *at = map_put(names, name_key(profile_str(p, x->name)), i);

		*at = *at == i ? i : SEVERAL;
		if (!process)
			continue;
		*map_put(numbers, map_pair(process->pid, x->tid), i) = i;
		if (process->inner_pid)
			*map_put(numbers, map_pair(process->inner_pid, x->tid), i) = i;
	}
	for (size_t i = 0; i < tracespans_threads(a->spans); i++)
		++*map_put(told, name_key(tracespans_thread(a->spans, i)->name), 0);
}

/* tracing-chrome counts threads from 0 and says that the process is 1: a number alone is not enough where there is a
 * name. A name will do where it is the only one of its kind, in the trace and in the recording. */
static uint32_t find_thread(const struct adder *a, const struct trace_thread *t, const struct map *numbers,
			    const struct map *names, const struct map *told)
{
	uint64_t *at = t->pid <= UINT32_MAX && t->tid <= UINT32_MAX ? map_get(numbers, map_pair(t->pid, t->tid)) : NULL;

	if (at && (!*t->name || same_name(profile_str(a->p, a->p->threads.v[*at].name), t->name)))
		return *at;
	at = *t->name && *map_get(told, name_key(t->name)) == 1 ? map_get(names, name_key(t->name)) : NULL;
	return at && *at != SEVERAL ? *at : PROFILE_NONE;
}

static void find_threads(struct adder *a)
{
	struct map numbers = { 0 }, names = { 0 }, told = { 0 };
	size_t n = tracespans_threads(a->spans);

	index_threads(a, &numbers, &names, &told);
	a->threads = mem_alloc((n + 1) * sizeof(*a->threads));
	for (size_t i = 0; i < n; i++)
		a->threads[i] = find_thread(a, tracespans_thread(a->spans, i), &numbers, &names, &told);
	map_done(&numbers);
	map_done(&names);
	map_done(&told);
}

/* --- which of them are blocks --- */

/* A trace of a node that nobody knows: the spans whose name has most of the time, of those with a number. */
static void rank_by_time(struct adder *a)
{
	struct map times = { 0 };
	uint64_t most = 0;
	uint32_t name = 0;

	for (size_t i = 0; i < a->kept.n; i++) {
		const struct kept *k = &a->kept.v[i];
		uint64_t *sum;

		if (k->rank) {
			map_done(&times);
			return;
		}
		if (!(k->block.known & BLOCK_NUMBER))
			continue;
		sum = map_put(&times, k->name, 0);
		*sum += k->end_ns - k->start_ns;
		if (*sum > most) {
			most = *sum;
			name = k->name;
		}
	}
	for (size_t i = 0; i < a->kept.n && most; i++)
		a->kept.v[i].rank = a->kept.v[i].name == name && a->kept.v[i].block.known & BLOCK_NUMBER;
	map_done(&times);
}

/* Of several spans of one block the one that built it, or the longest, is the block; the others are marks. */
static void choose_blocks(struct adder *a)
{
	struct map best = { 0 };

	rank_by_time(a);
	for (size_t i = 0; i < a->kept.n; i++) {
		struct kept *k = &a->kept.v[i];
		uint64_t *at;

		if (!k->rank)
			continue;
		at = map_put(&best, k->block.number, i);
		if (*at == i)
			continue;
		if (k->rank > a->kept.v[*at].rank ||
		    (k->rank == a->kept.v[*at].rank &&
		     k->end_ns - k->start_ns > a->kept.v[*at].end_ns - a->kept.v[*at].start_ns)) {
			a->kept.v[*at].rank = 0;
			*at = i;
		} else {
			k->rank = 0;
		}
	}
	map_done(&best);
}

/* --- into the profile --- */

static void fill_block(struct block *to, const struct block *more)
{
	uint32_t fresh = more->known & ~to->known;

	to->gas = fresh & BLOCK_GAS ? more->gas : to->gas;
	to->transactions = fresh & BLOCK_TRANSACTIONS ? more->transactions : to->transactions;
	to->known |= fresh;
}

/* The block that a log or the node told of is this one. */
static bool time_block(struct adder *a, struct map *known, const struct kept *k)
{
	uint64_t *at = map_get(known, k->block.number);
	struct profile_mark *m = at ? &a->p->marks.v[*at] : NULL;

	if (!m)
		return false;
	m->start_ns = k->start_ns;
	m->end_ns = k->end_ns;
	m->thread = a->threads[k->thread];
	fill_block(&m->block, &k->block);
	return true;
}

static void add_mark(struct adder *a, const struct kept *k)
{
	struct profile *p = a->p;
	const char *called = tracespans_name(a->spans, k->name);
	struct profile_mark m = { .start_ns = k->start_ns, .end_ns = k->end_ns, .thread = a->threads[k->thread], .block = k->block };
	char name[TRACEEVENTS_NAME + 32];

	called = *called ? called : "span";
	snprintf(name, sizeof(name), "%s", called);
	if (k->block.known & BLOCK_NUMBER)
		snprintf(name, sizeof(name), "%s %llu", k->rank ? "block" : called, (unsigned long long)k->block.number);
	m.name = profile_string(p, name);
	m.kind = profile_string(p, k->rank ? "block" : called);
	profile_add_mark(p, &m);
	a->result->marks++;
}

static void add_marks(struct adder *a, size_t first_mark)
{
	uint32_t block = profile_string(a->p, "block");
	struct map known = { 0 };

	a->result->block_name = "";
	for (size_t i = first_mark; i < a->p->marks.n; i++)
		if (a->p->marks.v[i].kind == block && a->p->marks.v[i].block.known & BLOCK_NUMBER)
			*map_put(&known, a->p->marks.v[i].block.number, i) = i;
	for (size_t i = 0; i < a->kept.n; i++) {
		const struct kept *k = &a->kept.v[i];

		if (k->rank) {
			a->result->blocks++;
			a->result->block_name = profile_str(a->p, profile_string(a->p, tracespans_name(a->spans, k->name)));
		}
		if (!k->rank || !time_block(a, &known, k))
			add_mark(a, k);
	}
	map_done(&known);
}

static void count(struct profile *p, const char *key, uint64_t n)
{
	if (n)
		profile_count(p, key, n);
}

static void note_counts(const struct adder *a)
{
	const struct tracemarks_result *r = a->result;

	count(a->p, KEY_MARKS_TRACE_EVENTS, r->counts.events);
	count(a->p, KEY_MARKS_TRACE_SPANS, r->marks);
	count(a->p, KEY_MARKS_TRACE_BLOCKS, r->blocks);
	count(a->p, KEY_MARKS_TRACE_OUTSIDE, r->outside);
	count(a->p, KEY_MARKS_TRACE_UNBALANCED, r->counts.ends + r->counts.begins);
	count(a->p, KEY_MARKS_TRACE_OPEN, r->counts.open);
	count(a->p, KEY_MARKS_TRACE_MALFORMED, r->counts.odd + r->odd + (r->broken != NULL));
	count(a->p, KEY_MARKS_TRACE_SHORT, r->short_ones + r->counts.beyond);
}

static int read_all(struct adder *a, int fd, struct err *broken, struct err *err)
{
	_cleanup_free_ char *bytes = mem_alloc(CHUNK);
	struct traceevents *events = traceevents_new(got_event, a);
	struct tracelines *lines = NULL;
	bool first = true;
	ssize_t n;
	int r = 0;

	while ((n = read(fd, bytes, CHUNK))) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = err_errno(err, errno, "cannot read it");
			break;
		}
		if (first && xlayertrace_probe(bytes, n))
			lines = tracelines_new(got_event, a);
		first = false;
		if (lines) {
			tracelines_feed(lines, bytes, n);
		} else if (traceevents_feed(events, bytes, n, broken) < 0) {
			a->result->broken = broken;
			break;
		}
	}
	a->result->odd = lines ? tracelines_odd(lines) : traceevents_odd(events);
	traceevents_free(events);
	tracelines_free(lines);
	return r;
}

int tracemarks_add(struct profile *p, int fd, const struct traceclock_facts *facts, size_t first_mark, struct err *broken,
		   struct tracemarks_result *ret, struct err *err)
{
	struct traceclock_facts f = *facts;
	struct adder a = { .p = p, .facts = &f, .result = ret, .err = err };
	int r;

	*ret = (struct tracemarks_result){ .block_name = "" };
	traceclock_look(fd, &f);
	a.spans = tracespans_new(got_span, &a);
	r = read_all(&a, fd, broken, err);
	ret->counts = *tracespans_counted(a.spans);
	if (!r)
		r = a.failed;
	if (!r && !a.decided)
		r = ret->broken ? err_set(err, EINVAL, "%s", broken->text) : err_set(err, ENODATA, "there is no event with a time in it");
	if (!r) {
		if (a.kept.n > TRACEMARKS_MOST)
			keep_worthy(&a);
		vec_sort(&a.kept, compare_start);
		find_threads(&a);
		choose_blocks(&a);
		add_marks(&a, first_mark);
		note_counts(&a);
	}
	tracespans_free(a.spans);
	vec_done(&a.kept);
	free(a.threads);
	return r;
}

/* --- for people --- */

bool tracemarks_troubled(const struct tracemarks_result *r)
{
	return r->broken || r->counts.ends || r->counts.begins || r->counts.odd || r->odd;
}

static void say_count(struct buf *out, uint64_t n, const char *what)
{
	char text[32];

	if (n)
		buf_printf(out, "; %s %s", str_count(text, n), what);
}

void tracemarks_say(const struct tracemarks_result *r, const char *name, struct buf *out)
{
	char marks[32], blocks[32];

	buf_printf(out, "%s: %s spans are marks", name, str_count(marks, r->marks));
	if (r->blocks)
		buf_printf(out, ", %s of them blocks (%s)", str_count(blocks, r->blocks), r->block_name);
	buf_printf(out, "; ");
	traceclock_say(&r->clock, out);
	say_count(out, r->outside, "spans are not of the time of the recording");
	say_count(out, r->counts.ends, "ends have no beginning");
	say_count(out, r->counts.begins, "beginnings have no end");
	say_count(out, r->counts.open, "spans were not over where the trace ends");
	say_count(out, r->short_ones, "shorter ones were left out");
	say_count(out, r->counts.beyond, "were more at a time than can be joined");
	say_count(out, r->counts.odd + r->odd, "events make no sense");
	if (r->broken)
		buf_printf(out, "; the rest of the file is left out: %s", r->broken->text);
}
