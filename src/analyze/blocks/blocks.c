#include "analyze/blocks/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks/blocktally.h"
#include "analyze/select.h"
#include "base/err.h"
#include "base/map.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

enum {
	DEEPEST = 8,      /* threads that a path follows from one wait to the next */
	NEAR = 64,        /* periods around a block without a sample in which one is looked for */
	UNSAMPLED = 20,   /* periods on the CPU that must have shown a sample */
};

static const struct {
	const char *key, *name;
} parts[BLOCK_PARTS] = {
	[BLOCK_OWN] = { "own", "own code" },
	[BLOCK_DEPENDENCY] = { "dependency", "dependencies" },
	[BLOCK_STD] = { "std", "standard libraries" },
	[BLOCK_KERNEL] = { "kernel", "the kernel" },
	[BLOCK_UNNAMED] = { "unnamed", "code without a name" },
	[BLOCK_QUEUE] = { "queue", "the run queue" },
	[BLOCK_LOCK] = { "lock", "locks" },
	[BLOCK_DISK] = { "disk", "the disk" },
	[BLOCK_FAULT] = { "fault", "page faults" },
	[BLOCK_NETWORK] = { "network", "the network" },
	[BLOCK_WAIT] = { "wait", "conditions, pipes and sleep" },
	[BLOCK_IDLE] = { "idle", "idleness" },
	[BLOCK_UNKNOWN] = { "unknown", "unknown" },
};

const char *block_part_key(enum block_part part)
{
	return parts[part].key;
}

const char *block_part_name(enum block_part part)
{
	return parts[part].name;
}

static enum block_part part_of_cause(enum cause cause)
{
	static const enum block_part of[CAUSE_COUNT] = {
		[CAUSE_UNKNOWN] = BLOCK_UNKNOWN, [CAUSE_CPU] = BLOCK_OWN, [CAUSE_QUEUE] = BLOCK_QUEUE,
		[CAUSE_LOCK] = BLOCK_LOCK, [CAUSE_PARK] = BLOCK_WAIT, [CAUSE_DISK_READ] = BLOCK_DISK,
		[CAUSE_DISK_WRITE] = BLOCK_DISK, [CAUSE_FAULT] = BLOCK_FAULT, [CAUSE_NETWORK] = BLOCK_NETWORK,
		[CAUSE_SLEEP] = BLOCK_WAIT, [CAUSE_PIPE] = BLOCK_WAIT, [CAUSE_RECLAIM] = BLOCK_FAULT,
		[CAUSE_QUOTA] = BLOCK_QUEUE, [CAUSE_IDLE] = BLOCK_IDLE,
	};

	return of[cause];
}

static enum block_part part_of_code(enum code_kind kind)
{
	static const enum block_part of[CODE_KINDS] = {
		[CODE_OWN] = BLOCK_OWN, [CODE_DEPENDENCY] = BLOCK_DEPENDENCY, [CODE_STD] = BLOCK_STD,
		[CODE_ALLOCATOR] = BLOCK_STD, [CODE_KERNEL] = BLOCK_KERNEL, [CODE_OTHER] = BLOCK_UNNAMED,
	};

	return of[kind];
}

/* Samples of one thread after the other by time. Each has where the latest of it and those before ends. */
struct timeline {
	struct span {
		uint64_t begin, end, last;
		uint32_t sample, thread;
	} *list;
	size_t n, *first; /* of each thread, and the end of the last */
};

struct near {
	uint64_t start, end;
};

struct maker {
	struct blocks *b;
	const struct profile *p;
	struct causes *c;
	struct timeline off, cpu;  /* waits and the queue; samples of the clock */
	struct timeline all;       /* samples of the clock, of all threads together */
	struct timeline files;     /* faults and I/O with a file */
	uint8_t *file_parts;       /* by event: BLOCK_FAULT, BLOCK_DISK, 0 = neither */
	struct map wakes;          /* thread and time to wake */
	VEC(struct near) near;     /* the time of all blocks, with what is looked at around them; by time, none touches the next */
	bool waits;                /* were recorded at all */
	uint64_t period_ns;
	/* Of the block at hand. */
	struct block_row *row;
	uint64_t cpu_ns, sampled_ns, allocator_ns; /* the allocator's in samples */
	uint64_t sampled[BLOCK_PARTS];
	struct blocktally tally;
};

/* --- by time --- */

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return ORDER(x->thread, y->thread) ?: ORDER(x->begin, y->begin) ?: ORDER(x->sample, y->sample);
}

/* Sorts the spans of one thread. A recorder writes many of them in order already. */
static void sort_spans(struct span *v, size_t n)
{
	size_t i = 1;

	while (i < n && compare_spans(&v[i - 1], &v[i]) < 0)
		i++;
	if (i < n)
		qsort(v, n, sizeof(*v), compare_spans);
}

enum what { OFF_CPU, ON_CPU, FILES };

static bool takes(struct maker *m, enum what what, uint32_t event)
{
	enum role role = causes_role(m->c, event);

	if (what == FILES)
		return m->file_parts[event];
	return what == ON_CPU ? role == ROLE_CPU : role == ROLE_WAIT || role == ROLE_QUEUE;
}

/* The rows are sorted by start. */
static void find_near(struct maker *m)
{
	uint64_t around = NEAR * MIN(m->period_ns, UINT32_MAX);

	for (size_t i = 0; i < m->b->rows.n; i++) {
		const struct block_row *r = &m->b->rows.v[i];
		struct near next = { r->start_ns - MIN(around, r->start_ns), r->start_ns + r->wall_ns + around };
		struct near *last = m->near.n ? &m->near.v[m->near.n - 1] : NULL;

		if (last && next.start <= last->end)
			last->end = MAX(last->end, next.end);
		else
			vec_push(&m->near, next);
	}
}

static bool is_near(const struct maker *m, const struct span *s)
{
	size_t at = vec_search(i, 0, m->near.n, m->near.v[i].end < s->begin);

	return at < m->near.n && m->near.v[at].start <= s->end;
}

/* Closes the gaps behind each thread's spans, which end at next. */
static void close_gaps(struct timeline *t, const size_t *next, size_t threads)
{
	size_t at = 0;

	for (size_t i = 0; i < threads; i++) {
		size_t n = next[i] - t->first[i];

		memmove(t->list + at, t->list + t->first[i], n * sizeof(*t->list));
		t->first[i] = at;
		at += n;
	}
	t->first[threads] = t->n = at;
	t->list = mem_resize(t->list, at + 1, sizeof(*t->list));
}

/* Samples that are near no block are left out: of a long recording they are most. */
static void make_timeline(struct maker *m, struct timeline *t, enum what what, bool together)
{
	const struct profile *p = m->p;
	_cleanup_free_ bool *taken = mem_alloc(p->events.n + 1);
	_cleanup_free_ enum role *roles = mem_alloc((p->events.n + 1) * sizeof(*roles));
	_cleanup_free_ size_t *next = mem_alloc((p->threads.n + 2) * sizeof(*next));

	for (size_t i = 0; i < p->events.n; i++) {
		taken[i] = takes(m, what, i);
		roles[i] = causes_role(m->c, i);
	}
	t->first = mem_alloc((p->threads.n + 2) * sizeof(*t->first));
	for (size_t i = 0; i < p->samples.n; i++) {
		bool takes_it = taken[p->samples.v[i].event];

		t->first[(together ? 0 : p->samples.v[i].thread) + 1] += takes_it;
		t->n += takes_it;
	}
	for (size_t i = 1; i <= p->threads.n; i++)
		t->first[i] += t->first[i - 1];
	for (size_t i = 0; i < p->threads.n; i++)
		next[i] = t->first[i];
	t->list = mem_resize(NULL, t->n + 1, sizeof(*t->list));
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *sample = &p->samples.v[i];
		uint32_t thread = together ? 0 : sample->thread;
		struct span *s;

		if (!taken[sample->event])
			continue;
		s = &t->list[next[thread]];
		s->sample = i;
		s->thread = thread;
		select_span(p, i, roles[sample->event], &s->begin, &s->end);
		next[thread] += is_near(m, s);
	}
	close_gaps(t, next, p->threads.n);
	for (size_t i = 0; i < p->threads.n; i++)
		sort_spans(t->list + t->first[i], t->first[i + 1] - t->first[i]);
	for (size_t i = 0; i < t->n; i++) {
		bool same = i && t->list[i - 1].thread == t->list[i].thread;

		t->list[i].last = MAX(t->list[i].end, same ? t->list[i - 1].last : 0);
	}
}

static void timeline_done(struct timeline *t)
{
	free(t->list);
	free(t->first);
}

/* The first of a thread that may reach to from or beyond. */
static size_t seek(const struct timeline *t, uint32_t thread, uint64_t from)
{
	return vec_search(i, t->first[thread], t->first[thread + 1], t->list[i].last < from);
}

/* --- the path --- */

static void add_part(struct maker *m, enum block_part part, uint32_t stack, uint64_t ns)
{
	m->row->ns[part] += ns;
	blocktally_add(&m->tally, part, stack, ns);
	blocktally_add_subsystem(&m->tally, part, stack, ns);
}

static bool by_interrupt(const struct profile *p, uint32_t stack)
{
	struct interrupt_reader r = { 0 };

	for (; stack; stack = p->stacks.v[stack].parent)
		if (p->frames.v[p->stacks.v[stack].frame].kind == FRAME_KERNEL)
			interrupt_read(&r, kernelname_of(cause_frame_name(p, p->stacks.v[stack].frame)));
	return interrupt_of(&r) != INTERRUPT_NONE;
}

/* The thread that ended a wait, if it is one whose work the waiter needed; PROFILE_NONE else. */
static uint32_t ended_by(struct maker *m, const struct span *s, enum cause cause)
{
	const struct profile_sample *sample = &m->p->samples.v[s->sample];
	const struct profile_wake *w;
	uint64_t *at;

	if (s->begin == s->end || causes_role(m->c, sample->event) != ROLE_WAIT)
		return PROFILE_NONE;
	/* What the waker did just then is in the sum of a longer time. */
	if (m->row->summed)
		return PROFILE_NONE;
	if (cause != CAUSE_LOCK && cause != CAUSE_PARK && cause != CAUSE_PIPE && cause != CAUSE_IDLE)
		return PROFILE_NONE;
	at = map_get(&m->wakes, map_hash(sample->time_ns) ^ sample->thread);
	if (!at)
		return PROFILE_NONE;
	w = &m->p->wakes.v[*at];
	if (w->thread != sample->thread || w->time_ns != sample->time_ns || w->waker >= m->p->threads.n ||
	    w->waker == w->thread || by_interrupt(m->p, w->waker_stack))
		return PROFILE_NONE;
	return w->waker;
}

/* Adds a sample by the function at its leaf: its crate, and its name. */
static void add_sample(struct maker *m, const struct profile_sample *s)
{
	const struct ident *leaf = blocktally_leaf(&m->tally, s->stack);
	enum block_part part = BLOCK_UNNAMED;

	if (leaf) {
		enum code_kind kind = blocktally_kind(&m->tally, leaf);

		part = part_of_code(kind);
		m->allocator_ns += kind == CODE_ALLOCATOR ? s->value : 0;
		blocktally_add_crate(&m->tally, part, leaf, s->value);
		blocktally_add(&m->tally, part, s->stack, s->value);
	}
	blocktally_add_subsystem(&m->tally, part, s->stack, s->value);
	m->sampled[part] += s->value;
	m->sampled_ns += s->value;
}

static void add_file(struct maker *m, const struct profile_sample *s)
{
	blocktally_add_file(&m->tally, m->file_parts[s->event], s->stack, s->value);
}

static void walk(struct maker *m, uint32_t thread, uint64_t from, uint64_t to, int depth);

/* Returns the part of a thread's time between from and to that was off-CPU, at most all of it. */
static uint64_t walk_off(struct maker *m, uint32_t thread, uint64_t from, uint64_t to, int depth)
{
	uint64_t left = to - from;

	for (size_t i = seek(&m->off, thread, from); i < m->off.first[thread + 1] && m->off.list[i].begin < to; i++) {
		const struct span *s = &m->off.list[i];
		const struct profile_sample *sample = &m->p->samples.v[s->sample];
		enum cause cause = causes_of(m->c, sample);
		uint64_t ns = select_value(m->p, s->sample, causes_role(m->c, sample->event), from, to);
		uint32_t waker;

		/* Sums of short waits are at the beginning of their 10 ms, and may be too large at a
		 * border. */
		ns = MIN(ns, left);
		if (!ns)
			continue;
		left -= ns;
		waker = depth < DEEPEST ? ended_by(m, s, cause) : PROFILE_NONE;
		if (waker != PROFILE_NONE) {
			uint64_t begin = MAX(s->begin, from);

			m->row->followed_ns += depth ? 0 : ns;
			walk(m, waker, begin, begin + ns, depth + 1);
		} else {
			add_part(m, part_of_cause(cause), sample->stack, ns);
		}
	}
	return to - from - left;
}

static void walk(struct maker *m, uint32_t thread, uint64_t from, uint64_t to, int depth)
{
	const struct profile_thread *t = &m->p->threads.v[thread];
	uint64_t born = MIN(MAX(t->start_ns, from), to), died = t->end_ns ? MAX(MIN(t->end_ns, to), born) : to;
	uint64_t off;

	/* A thread is first seen at its first switch: by the collector's sums it existed all the time. */
	if (t->run_ns + t->queue_ns + t->blocked_ns + t->start_ns >= died && born > from &&
	    t->run_ns + t->queue_ns + t->blocked_ns > died - born)
		born = from;
	m->row->ns[BLOCK_UNKNOWN] += to - from - (died - born);
	if (died == born)
		return;
	off = walk_off(m, thread, born, died, depth);
	m->cpu_ns += died - born - off;
	for (size_t i = seek(&m->cpu, thread, born); i < m->cpu.first[thread + 1] && m->cpu.list[i].begin < died; i++)
		add_sample(m, &m->p->samples.v[m->cpu.list[i].sample]);
	for (size_t i = seek(&m->files, thread, born); i < m->files.first[thread + 1] && m->files.list[i].begin < died; i++)
		add_file(m, &m->p->samples.v[m->files.list[i].sample]);
}

/* Time on the CPU, by its samples: in proportion, as they are few. */
static void settle_cpu(struct maker *m)
{
	uint64_t known = m->waits ? m->cpu_ns : MIN(m->cpu_ns, m->sampled_ns), given = 0;
	struct block_row *r = m->row;
	enum block_part most = BLOCK_OWN;

	/* So much time without a sample: the thread was not on the CPU, or sampling failed. */
	if (m->cpu_ns > UNSAMPLED * m->period_ns && m->sampled_ns < m->cpu_ns / 2)
		known = MIN(known, m->sampled_ns + m->period_ns);
	if (!m->sampled_ns) {
		/* Between two ticks of the clock: on the CPU, but without a sample. */
		r->ns[m->cpu_ns <= UNSAMPLED * m->period_ns && m->waits ? BLOCK_UNNAMED : BLOCK_UNKNOWN] += m->cpu_ns;
		return;
	}
	for (int i = 0; i < BLOCK_PARTS; i++) {
		uint64_t ns = (double)known * m->sampled[i] / m->sampled_ns;

		r->ns[i] += ns;
		given += ns;
		if (m->sampled[i] > m->sampled[most])
			most = i;
	}
	if (known > given)
		r->ns[most] += known - given;
	r->allocator_ns = (double)known * m->allocator_ns / m->sampled_ns;
	r->ns[BLOCK_UNKNOWN] += m->cpu_ns - known;
}

/* The thread that has most samples within the span. */
static uint32_t busiest(struct maker *m, uint64_t from, uint64_t to, uint64_t *ret_all)
{
	_cleanup_(map_done) struct map by_thread = { 0 };
	uint64_t most = 0;
	uint32_t found = PROFILE_NONE;

	*ret_all = 0;
	for (size_t i = seek(&m->all, 0, from); i < m->all.n && m->all.list[i].begin < to; i++) {
		const struct profile_sample *s = &m->p->samples.v[m->all.list[i].sample];
		uint64_t *sum = map_put(&by_thread, s->thread, 0);

		*ret_all += s->value;
		*sum += s->value;
		if (*sum > most) {
			most = *sum;
			found = s->thread;
		}
	}
	return found;
}

/* Is it in the middle of a slot whose rows were summed? Then nobody knows which of them were before it. */
static bool is_blurred(const struct profile *p, uint64_t time_ns)
{
	const struct profile_summed *slot = profile_summed_at(p, time_ns);

	return slot && slot->start_ns < time_ns;
}

static void make_row(struct maker *m, struct block_row *r)
{
	const struct profile_mark *mark = &m->p->marks.v[r->mark];
	uint64_t all;

	r->summed = profile_summed_at(m->p, mark->start_ns);
	if (is_blurred(m->p, mark->start_ns) || is_blurred(m->p, mark->end_ns))
		return;

	/* A block between two samples was made by the thread that ran before or after. */
	for (uint64_t wider = 0; r->thread == PROFILE_NONE && wider <= NEAR * m->period_ns;
	     wider = 2 * wider + m->period_ns)
		r->thread = busiest(m, mark->start_ns - MIN(wider, mark->start_ns), mark->end_ns + wider,
				    &all);
	busiest(m, mark->start_ns, mark->end_ns, &all);
	if (mark->thread < m->p->threads.n)
		r->thread = mark->thread;
	if (!r->wall_ns || r->thread == PROFILE_NONE)
		return;
	m->row = r;
	m->cpu_ns = m->sampled_ns = m->allocator_ns = 0;
	memset(m->sampled, 0, sizeof(m->sampled));
	r->split = true;
	walk(m, r->thread, mark->start_ns, mark->end_ns, 0);
	settle_cpu(m);
	r->parallel_ns = all > m->sampled_ns ? all - m->sampled_ns : 0;
	blocktally_take(&m->tally, m->sampled_ns ? (double)m->cpu_ns / m->sampled_ns : 1, r);
}

/* --- all of them --- */

static int compare_rows(const void *a, const void *b)
{
	const struct block_row *x = a, *y = b;

	return ORDER(x->start_ns, y->start_ns) ?: ORDER(x->mark, y->mark);
}

static void find_blocks(struct blocks *b, const struct profile *p)
{
	uint64_t end = select_duration_ns(p);

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (strcmp(profile_str(p, m->kind), "block") || m->end_ns > end + 1000000000)
			continue;
		vec_push(&b->rows, (struct block_row){
			.name = profile_str(p, m->name), .mark = i, .block = m->block,
			.start_ns = m->start_ns,
			.wall_ns = m->end_ns - m->start_ns, .thread = PROFILE_NONE });
	}
	vec_sort(&b->rows, compare_rows);
}

/* Times where there are some: of faults their counts say the same in another unit. */
static void find_file_events(struct maker *m)
{
	static const struct {
		const char *event;
		enum block_part part;
	} known[] = { { "major-time", BLOCK_FAULT }, { "major-faults", BLOCK_FAULT }, { "sync", BLOCK_DISK },
		      { "read", BLOCK_DISK }, { "write", BLOCK_DISK } };
	const struct profile *p = m->p;
	bool timed = false;

	m->file_parts = mem_alloc(p->events.n + 1);
	for (size_t k = 0; k < ARRAY_LEN(known); k++)
		for (size_t i = 0; i < p->events.n; i++) {
			if (strcmp(profile_str(p, p->events.v[i].name), known[k].event) || (k == 1 && timed))
				continue;
			m->file_parts[i] = known[k].part;
			for (size_t s = 0; !k && s < p->samples.n && !timed; s++)
				timed = p->samples.v[s].event == i;
		}
}

static void prepare(struct maker *m)
{
	const struct profile *p = m->p;

	m->period_ns = 1000000;
	for (size_t i = 0; i < p->events.n; i++) {
		m->waits |= causes_role(m->c, i) == ROLE_WAIT;
		if (causes_role(m->c, i) == ROLE_CPU && p->events.v[i].period)
			m->period_ns = p->events.v[i].period;
	}
	find_file_events(m);
	find_near(m);
	make_timeline(m, &m->off, OFF_CPU, false);
	make_timeline(m, &m->cpu, ON_CPU, false);
	make_timeline(m, &m->all, ON_CPU, true);
	make_timeline(m, &m->files, FILES, false);
	for (size_t i = 0; i < p->wakes.n; i++)
		*map_put(&m->wakes, map_hash(p->wakes.v[i].time_ns) ^ p->wakes.v[i].thread, i) = i;
}

int blocks_make(struct blocks *b, const struct profile *p, struct causes *c, const char *const *own,
		struct classifier *subsystems, struct err *err)
{
	struct maker m = { .b = b, .p = p, .c = c };

	*b = (struct blocks){ 0 };
	find_blocks(b, p);
	if (!b->rows.n)
		return err_set(err, ENODATA, "there are no blocks in this recording: record with --log, the node's "
			       "log, --rpc, its address, or --mark-function, what makes a block");
	idents_init(&b->idents, p, 0);
	crates_init(&b->names, p, own);
	blocktally_init(&m.tally, b, p, subsystems);
	prepare(&m);
	for (size_t i = 0; i < b->rows.n; i++) {
		make_row(&m, &b->rows.v[i]);
		b->split += b->rows.v[i].split;
	}
	timeline_done(&m.off);
	timeline_done(&m.cpu);
	timeline_done(&m.all);
	timeline_done(&m.files);
	vec_done(&m.near);
	free(m.file_parts);
	map_done(&m.wakes);
	blocktally_done(&m.tally);
	blocktally_sum(b);
	blocks_compare(b);
	return 0;
}

void blocks_done(struct blocks *b)
{
	if (b->rows.n) {
		idents_done(&b->idents);
		crates_done(&b->names);
	}
	vec_done_each(&b->rows, e, vec_done(&e->functions); vec_done(&e->crates); vec_done(&e->subsystems);
		      vec_done(&e->subsystem_totals); free(e->reason));
	vec_done(&b->crates);
	vec_done(&b->subsystems);
	free(b->difference);
}
