#include "import/trace/tracespans.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

enum {
	THREADS = 65536, /* that are told apart; the last one is all others */
	NAMES = 65536,
	OPEN = 262144,   /* spans under way, of all threads */
};

struct begun {
	uint64_t start_ns;
	uint32_t name, thread;
	uint32_t below; /* 1 + index of the one that was under way before on the thread, or with this key; 0 = none */
	struct block block;
};

struct trace_lane {
	struct trace_thread who;
	uint32_t top;     /* 1 + index of the innermost span under way, 0 = none */
	uint64_t skipped; /* beginnings that there was no room for: so many ends are theirs */
};

struct tracespans {
	tracespans_fn *fn;
	void *context;
	struct strtab names;
	VEC(struct trace_lane) lanes;
	struct map lane_index;  /* hash of pid and tid to index */
	VEC(struct begun) begun;
	VEC(uint32_t) spare;    /* indexes of begun that are free again */
	struct map async;       /* hash of id and name to 1 + index of the newest */
	struct tracespans_counts counts;
};

struct tracespans *tracespans_new(tracespans_fn *fn, void *context)
{
	struct tracespans *t = mem_alloc(sizeof(*t));

	t->fn = fn;
	t->context = context;
	strtab_init(&t->names);
	return t;
}

static uint32_t name_of(struct tracespans *t, const char *name)
{
	return strtab_add(&t->names, t->names.n < NAMES ? name : "(other)");
}

static uint32_t lane_of(struct tracespans *t, const struct trace_event *e)
{
	uint64_t key = map_hash(e->pid) ^ map_hash(e->tid + 0x9e3779b97f4a7c15);
	uint64_t *at;

	if (t->lanes.n >= THREADS && !map_get(&t->lane_index, key)) {
		t->counts.beyond++;
		return t->lanes.n - 1;
	}
	at = map_put(&t->lane_index, key, t->lanes.n);
	if (*at == t->lanes.n)
		vec_push(&t->lanes, (struct trace_lane){ .who = { .pid = e->pid, .tid = e->tid } });
	return *at;
}

/* 1 + index, 0: there is no room. */
static uint32_t begin(struct tracespans *t, const struct begun *b)
{
	uint32_t i;

	if (t->spare.n) {
		i = t->spare.v[--t->spare.n];
		t->begun.v[i] = *b;
		t->counts.open++;
		return i + 1;
	}
	if (t->begun.n == OPEN)
		return 0;
	vec_push(&t->begun, *b);
	t->counts.open++;
	return t->begun.n;
}

static void forget(struct tracespans *t, uint32_t i)
{
	vec_push(&t->spare, i);
	t->counts.open--;
}

/* What the end says beside what the beginning said. */
static void add_block(struct block *to, const struct block *more)
{
	uint32_t fresh = more->known & ~to->known;

	to->number = fresh & BLOCK_NUMBER ? more->number : to->number;
	to->gas = fresh & BLOCK_GAS ? more->gas : to->gas;
	to->transactions = fresh & BLOCK_TRANSACTIONS ? more->transactions : to->transactions;
	to->known |= fresh;
}

static void emit(struct tracespans *t, const struct begun *b, uint64_t end_ns, const struct block *more)
{
	struct trace_span s = { b->start_ns, end_ns, b->name, b->thread, b->block };

	if (end_ns < b->start_ns) {
		t->counts.odd++;
		return;
	}
	add_block(&s.block, more);
	*(s.start_ns < s.end_ns ? &t->counts.spans : &t->counts.moments) += 1;
	t->fn(t->context, &s);
}

/* --- on a thread --- */

static void begin_nested(struct tracespans *t, const struct trace_event *e)
{
	uint32_t lane = lane_of(t, e), i;
	struct trace_lane *l = &t->lanes.v[lane];

	i = l->skipped ? 0 : begin(t, &(struct begun){ e->time_ns, name_of(t, e->name), lane, l->top, e->block });
	if (i) {
		l->top = i;
	} else {
		l->skipped++;
		t->counts.beyond++;
	}
}

/* The end is that of the innermost span of its name; those within it never ended. Without a name it is the innermost's. */
static void end_nested(struct tracespans *t, const struct trace_event *e)
{
	uint32_t name = *e->name ? name_of(t, e->name) : 0, lane = lane_of(t, e);
	struct trace_lane *l = &t->lanes.v[lane];
	uint32_t at = l->top;

	if (l->skipped) {
		l->skipped--;
		return;
	}
	while (name && at && t->begun.v[at - 1].name != name)
		at = t->begun.v[at - 1].below;
	if (!at) {
		t->counts.ends++;
		return;
	}
	for (; l->top != at; t->counts.begins++) {
		uint32_t inner = l->top;

		l->top = t->begun.v[inner - 1].below;
		forget(t, inner - 1);
	}
	l->top = t->begun.v[at - 1].below;
	emit(t, &t->begun.v[at - 1], e->time_ns, &e->block);
	forget(t, at - 1);
}

/* --- across threads --- */

static uint64_t async_key(const struct trace_event *e, uint32_t name)
{
	return map_hash(map_hash(e->pid) ^ e->id) ^ map_hash(name);
}

static void begin_async(struct tracespans *t, const struct trace_event *e)
{
	uint32_t name = name_of(t, e->name);
	uint64_t key = async_key(e, name), *at = map_get(&t->async, key);
	uint32_t i = begin(t, &(struct begun){ e->time_ns, name, lane_of(t, e), at ? *at : 0, e->block });

	if (i)
		*map_put(&t->async, key, 0) = i;
	else
		t->counts.beyond++;
}

static void end_async(struct tracespans *t, const struct trace_event *e)
{
	uint64_t key = async_key(e, name_of(t, e->name)), *at = map_get(&t->async, key);
	uint32_t i;

	if (!at || !*at) {
		t->counts.ends++;
		return;
	}
	i = *at;
	emit(t, &t->begun.v[i - 1], e->time_ns, &e->block);
	if (t->begun.v[i - 1].below)
		*at = t->begun.v[i - 1].below;
	else
		map_remove(&t->async, key);
	forget(t, i - 1);
}

/* --- events --- */

static void take_whole(struct tracespans *t, const struct trace_event *e, uint64_t duration_ns)
{
	struct begun b = { e->time_ns, name_of(t, e->name), lane_of(t, e), 0, e->block };

	if (e->time_ns > UINT64_MAX - duration_ns) {
		t->counts.odd++;
		return;
	}
	t->counts.last_ns = MAX(t->counts.last_ns, e->time_ns + duration_ns);
	emit(t, &b, e->time_ns + duration_ns, &(struct block){ 0 });
}

static void name_thread(struct tracespans *t, const struct trace_event *e)
{
	uint32_t lane = lane_of(t, e);

	memcpy(t->lanes.v[lane].who.name, e->called, sizeof(e->called));
}

void tracespans_take(struct tracespans *t, const struct trace_event *e)
{
	t->counts.events++;
	if (e->phase == 'M') {
		if (!strcmp(e->name, "thread_name"))
			name_thread(t, e);
		return;
	}
	if (!e->phase || !strchr("BEXbeSFn", e->phase)) {
		*(e->phase ? &t->counts.other : &t->counts.odd) += 1;
		return;
	}
	if (!e->timed || (e->phase == 'X' && !e->lasts)) {
		t->counts.odd++;
		return;
	}
	t->counts.last_ns = MAX(t->counts.last_ns, e->time_ns);
	switch (e->phase) {
	case 'B':
		begin_nested(t, e);
		break;
	case 'E':
		end_nested(t, e);
		break;
	case 'X':
		take_whole(t, e, e->duration_ns);
		break;
	case 'n':
		take_whole(t, e, 0);
		break;
	case 'b': case 'S': /* S and F are what b and e were called before */
		begin_async(t, e);
		break;
	default:
		end_async(t, e);
		break;
	}
}

const char *tracespans_name(const struct tracespans *t, uint32_t name)
{
	return strtab_get(&t->names, name);
}

size_t tracespans_threads(const struct tracespans *t)
{
	return t->lanes.n;
}

const struct trace_thread *tracespans_thread(const struct tracespans *t, size_t i)
{
	return &t->lanes.v[i].who;
}

const struct tracespans_counts *tracespans_counted(const struct tracespans *t)
{
	return &t->counts;
}

void tracespans_free(struct tracespans *t)
{
	if (!t)
		return;
	strtab_done(&t->names);
	map_done(&t->lane_index);
	map_done(&t->async);
	vec_done(&t->lanes);
	vec_done(&t->begun);
	vec_done(&t->spare);
	free(t);
}
