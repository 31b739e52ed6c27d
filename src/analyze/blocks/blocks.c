#include "analyze/blocks/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks/blocktally.h"
#include "analyze/blocks/blocktasks.h"
#include "analyze/blocks/timeline.h"
#include "analyze/select.h"
#include "base/err.h"
#include "base/map.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

enum {
	DEEPEST = 8,      /* threads that a path follows from one wait to the next */
	NEAR = 64,        /* periods around a block without a sample in which one is looked for */
	UNSAMPLED = 20,   /* periods on the CPU that must have shown a sample */
	HOPS = 16,        /* awaits of a block that are told one by one */
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

enum {
	OFF,       /* waits and the queue */
	CPU,       /* samples of the clock */
	FILES,     /* faults and I/O with a file */
	TIMELINES,
};

struct maker {
	struct blocks *b;
	const struct profile *p;
	struct causes *c;
	struct timeline lines[TIMELINES];
	uint8_t *line_of;          /* by event: which of these, TIMELINES = none */
	enum role *roles;          /* by event */
	uint8_t *file_parts;       /* by event: BLOCK_FAULT, BLOCK_DISK, 0 = neither */
	struct map wakes;          /* thread and time to wake */
	struct blocktasks tasks;
	VEC(struct blocks_span) near; /* the time of all blocks, with what is looked at around them; by time, none touches the next */
	size_t near_first, near_end;  /* of these, those whose samples are here */
	const struct blocks_source *source; /* NULL: all samples are here */
	bool waits;                /* were recorded at all */
	uint64_t period_ns;
	/* Of the block at hand. */
	struct block_row *row;
	uint64_t cpu_ns, sampled_ns, allocator_ns; /* the allocator's in samples */
	uint64_t sampled[BLOCK_PARTS];
	struct blocktally tally;
};

/* --- near blocks --- */

/* The rows are sorted by start. */
static void find_near(struct maker *m)
{
	uint64_t around = NEAR * MIN(m->period_ns, UINT32_MAX);

	for (size_t i = 0; i < m->b->rows.n; i++) {
		const struct block_row *r = &m->b->rows.v[i];
		struct blocks_span next = { r->start_ns - MIN(around, r->start_ns), r->start_ns + r->wall_ns + around };
		struct blocks_span *last = m->near.n ? &m->near.v[m->near.n - 1] : NULL;

		if (last && next.start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, next.end_ns);
		else
			vec_push(&m->near, next);
	}
}

/* *at: the first of these that does not end before the last sample; the next sample is mostly there, too. */
static bool is_near(const struct maker *m, const struct span *s, size_t *at)
{
	const struct blocks_span *near = m->near.v;

	if (*at >= m->near_end || near[*at].end_ns < s->begin || (*at > m->near_first && near[*at - 1].end_ns >= s->begin))
		*at = vec_search(i, m->near_first, m->near_end, near[i].end_ns < s->begin);
	return *at < m->near_end && near[*at].start_ns <= s->end;
}

/* Finds the samples that are near a block: of a long recording most are not. */
static void find_spans(struct maker *m)
{
	const struct profile *p = m->p;
	size_t at = m->near_first;

	for (int i = 0; i < TIMELINES; i++)
		timeline_clear(&m->lines[i]);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *sample = &p->samples.v[i];
		struct span s = { .sample = i, .thread = sample->thread };

		if (m->line_of[sample->event] == TIMELINES)
			continue;
		select_span(p, i, m->roles[sample->event], &s.begin, &s.end);
		if (is_near(m, &s, &at))
			timeline_add(&m->lines[m->line_of[sample->event]], &s);
	}
	for (int i = 0; i < TIMELINES; i++)
		timeline_sort(&m->lines[i], p->threads.n);
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
	const struct timeline *off = &m->lines[OFF];
	uint64_t left = to - from;

	for (size_t i = timeline_seek(off, thread, from); i < off->first[thread + 1] && off->list.v[i].begin < to; i++) {
		const struct span *s = &off->list.v[i];
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

/* What the thread did, whatever tasks it polled. */
static void walk_thread(struct maker *m, uint32_t thread, uint64_t from, uint64_t to, int depth)
{
	const struct profile_thread *t = &m->p->threads.v[thread];
	const struct timeline *cpu = &m->lines[CPU], *files = &m->lines[FILES];
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
	for (size_t i = timeline_seek(cpu, thread, born); i < cpu->first[thread + 1] && cpu->list.v[i].begin < died; i++)
		add_sample(m, &m->p->samples.v[cpu->list.v[i].sample]);
	for (size_t i = timeline_seek(files, thread, born); i < files->first[thread + 1] && files->list.v[i].begin < died; i++)
		add_file(m, &m->p->samples.v[files->list.v[i].sample]);
}

/* --- the path of a task --- */

static void add_hop(struct maker *m, const struct profile_taskwake *w, enum wakekind kind, uint64_t ns, int depth)
{
	const struct profile *p = m->p;

	if (m->row->hops.n >= HOPS)
		return;
	vec_push(&m->row->hops, (struct block_hop){
		.type = profile_str(p, w->type), .by_task = w->waker_type, .kind = kind, .ns = ns, .depth = depth,
		.waker = w->waker_type ? profile_str(p, w->waker_type) :
			 w->waker < p->threads.n ? profile_str(p, p->threads.v[w->waker].name) : NULL });
}

static void walk_polls(struct maker *m, const struct profile_taskwake *w, uint32_t thread, uint64_t from, uint64_t to, int depth);

/* Nobody of the program ended it, or nobody who is known: it is the task's own. */
static void add_await(struct maker *m, const struct profile_taskwake *w, enum wakekind kind, uint64_t ns)
{
	_cleanup_free_ char *name = mem_printf("%s [%s]", profile_str(m->p, w->type), wakekind_name(kind));
	enum block_part part = kind == WAKEKIND_IO ? BLOCK_NETWORK : BLOCK_WAIT;

	m->row->ns[part] += ns;
	blocktally_add_name(&m->tally, part, name, ns);
}

/* The time of an await belongs to who ended it: the driver of timers or sockets, a task, or a thread. */
static void walk_await(struct maker *m, const struct profile_taskwake *w, uint64_t from, uint64_t to, int depth)
{
	enum wakekind kind = w->waker_stack ? wakekind_of_stack(m->p, w->waker_stack, 0, NULL) : WAKEKIND_NO_STACK;
	bool outside = wakekind_is_outer(kind);

	add_hop(m, w, kind, to - from, depth);
	m->row->followed_ns += depth || outside ? 0 : to - from;
	if (outside || depth >= DEEPEST || w->waker >= m->p->threads.n)
		add_await(m, w, kind, to - from);
	else if (w->waker_task)
		walk_polls(m, blocktasks_before(&m->tasks, w->waker_task, to), w->waker, from, to, depth + 1);
	else
		walk(m, w->waker, from, to, depth + 1);
}

/* The polls of a task and what it awaited between them, back from a moment at which a thread polls it. w: its last await
 * before that moment, NULL = none was kept. */
static void walk_polls(struct maker *m, const struct profile_taskwake *w, uint32_t thread, uint64_t from, uint64_t to, int depth)
{
	while (w && blocktasks_polled_ns(w) > from && to > from) {
		uint64_t polled = MIN(blocktasks_polled_ns(w), to), woken = MAX(MIN(w->time_ns, polled), from);
		uint64_t begin = MAX(w->time_ns - MIN(w->await_ns, w->time_ns), from);

		begin = MIN(begin, woken);
		if (polled < to)
			walk_thread(m, thread, polled, to, depth);
		m->row->ns[BLOCK_QUEUE] += polled - woken;
		blocktally_add_name(&m->tally, BLOCK_QUEUE, "[queue of the runtime]", polled - woken);
		if (begin < woken)
			walk_await(m, w, begin, woken, depth);
		to = begin;
		w = blocktasks_before(&m->tasks, w->task, MIN(begin, w->time_ns));
		thread = w ? w->thread : thread;
	}
	if (to > from)
		walk_thread(m, thread, from, to, depth);
}

/* Does the last sample of a thread before a moment belong to another type of task? */
static bool polls_other(const struct maker *m, const struct profile_taskwake *w, uint32_t thread, uint64_t to)
{
	const struct timeline *cpu = &m->lines[CPU];
	size_t i = timeline_seek(cpu, thread, to);

	return i > cpu->first[thread] && cpu->list.v[i - 1].begin >= blocktasks_polled_ns(w) &&
	       blocktasks_is_other(&m->tasks, w, m->p->samples.v[cpu->list.v[i - 1].sample].stack);
}

static void walk(struct maker *m, uint32_t thread, uint64_t from, uint64_t to, int depth)
{
	const struct profile_taskwake *w = m->row->summed ? NULL : blocktasks_polled(&m->tasks, thread, from, to);

	if (w && !polls_other(m, w, thread, to))
		walk_polls(m, w, thread, from, to, depth);
	else
		walk_thread(m, thread, from, to, depth);
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

/* The thread that has most samples within the span; of several that have as many, the one that had them first. */
static uint32_t busiest(struct maker *m, uint64_t from, uint64_t to, uint64_t *ret_all)
{
	const struct timeline *cpu = &m->lines[CPU];
	const struct span *since = NULL;
	uint64_t most = 0;
	uint32_t found = PROFILE_NONE;

	*ret_all = 0;
	for (size_t k = 0; k < cpu->threads.n; k++) {
		uint32_t thread = cpu->threads.v[k];
		const struct span *last = NULL;
		uint64_t sum = 0;

		for (size_t i = timeline_seek(cpu, thread, from); i < cpu->first[thread + 1] && cpu->list.v[i].begin < to; i++) {
			uint64_t value = m->p->samples.v[cpu->list.v[i].sample].value;

			sum += value;
			last = value ? &cpu->list.v[i] : last;
		}
		*ret_all += sum;
		if (sum > most || (sum && sum == most && timeline_is_before(last, since))) {
			most = sum;
			found = thread;
			since = last;
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

static bool has_samples(const struct maker *m, uint32_t event)
{
	const struct profile *p = m->p;
	size_t i = 0;

	if (m->source)
		return m->source->rows[event];
	while (i < p->samples.n && p->samples.v[i].event != event)
		i++;
	return i < p->samples.n;
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
			timed |= !k && has_samples(m, i);
		}
}

static void choose_timelines(struct maker *m)
{
	size_t n = m->p->events.n;

	m->line_of = mem_alloc(n + 1);
	m->roles = mem_alloc((n + 1) * sizeof(*m->roles));
	for (size_t i = 0; i < n; i++) {
		enum role role = m->roles[i] = causes_role(m->c, i);

		m->line_of[i] = m->file_parts[i] ? FILES : role == ROLE_CPU ? CPU :
				role == ROLE_WAIT || role == ROLE_QUEUE ? OFF : TIMELINES;
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
	blocktasks_init(&m->tasks, p);
	find_file_events(m);
	choose_timelines(m);
	find_near(m);
	for (size_t i = 0; i < p->wakes.n; i++)
		*map_put(&m->wakes, map_hash(p->wakes.v[i].time_ns) ^ p->wakes.v[i].thread, i) = i;
}

/* The rows of those blocks whose samples are here. *row: the first that is not made yet. */
static void make_rows(struct maker *m, size_t *row)
{
	struct blocks *b = m->b;

	find_spans(m);
	for (; *row < b->rows.n && b->rows.v[*row].start_ns <= m->near.v[m->near_end - 1].end_ns; ++*row) {
		make_row(m, &b->rows.v[*row]);
		b->split += b->rows.v[*row].split;
	}
}

static int make_all(struct maker *m, struct err *err)
{
	size_t row = 0;

	for (; m->near_first < m->near.n; m->near_first = m->near_end) {
		size_t left = m->near.n - m->near_first;
		int n = m->source ? m->source->read(m->source->context, m->near.v + m->near_first, left, err) : 0;

		if (n < 0)
			return n;
		m->near_end = m->source ? m->near_first + MIN(MAX((size_t)n, 1), left) : m->near.n;
		make_rows(m, &row);
	}
	return 0;
}

int blocks_make_from(struct blocks *b, const struct profile *p, const struct blocks_source *source, struct causes *c,
		     const char *const *own, struct classifier *subsystems, struct err *err)
{
	struct maker m = { .b = b, .p = p, .c = c, .source = source };
	int r;

	*b = (struct blocks){ 0 };
	find_blocks(b, p);
	if (!b->rows.n)
		return err_set(err, ENODATA, "there are no blocks in this recording: record with --log, the node's "
			       "log, --rpc, its address, or --mark-function, what makes a block");
	idents_init(&b->idents, p, 0);
	crates_init(&b->names, p, own);
	blocktally_init(&m.tally, b, p, subsystems);
	prepare(&m);
	r = make_all(&m, err);
	for (int i = 0; i < TIMELINES; i++)
		timeline_done(&m.lines[i]);
	vec_done(&m.near);
	free(m.file_parts);
	free(m.line_of);
	free(m.roles);
	map_done(&m.wakes);
	blocktasks_done(&m.tasks);
	blocktally_done(&m.tally);
	if (r)
		return r;
	blocktally_sum(b);
	blocks_compare(b);
	return 0;
}

int blocks_make(struct blocks *b, const struct profile *p, struct causes *c, const char *const *own,
		struct classifier *subsystems, struct err *err)
{
	return blocks_make_from(b, p, NULL, c, own, subsystems, err);
}

void blocks_done(struct blocks *b)
{
	if (b->rows.n) {
		idents_done(&b->idents);
		crates_done(&b->names);
	}
	vec_done_each(&b->rows, e, vec_done(&e->functions); vec_done(&e->crates); vec_done(&e->subsystems);
		      vec_done(&e->subsystem_totals); vec_done(&e->hops); free(e->reason));
	vec_done(&b->crates);
	vec_done(&b->subsystems);
	free(b->difference);
}
