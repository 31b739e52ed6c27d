#include "analyze/task/tasktype.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/task/taskparts.h"
#include "analyze/tree/ownfunction.h"
#include "analyze/tree/stdnames.h"
#include "base/mem.h"
#include "base/text/taskname.h"
#include "profile/profile.h"

/* A name of most of an instance's stacks stands for all that have none, if it is of so many of those that have one. */
enum { MOST_PERCENT = 67 };

/* What is known of a stack by its frames so far. Stacks have numbers of states, and few states are many stacks'. */
struct state {
	uint32_t instance; /* the function that runs units of one type only, PROFILE_NONE = none */
	uint32_t function; /* that names the unit, PROFILE_NONE = none yet */
	uint8_t kind;      /* enum tasktype_kind; RUNTIME: the loop of a pool */
	uint8_t rank;      /* enum taskname_rank of the function */
	uint8_t pool;      /* index into pools */
	uint8_t flags;
};

enum {
	IN_THREAD = 1,    /* below the start of a thread */
	IN_SCHEDULER = 2, /* below the loop of a tokio worker: what is polled is a task */
	IN_LIBRARY = 4,   /* open, and below a library's function: what comes is not the unit itself */
	IN_MAIN = 8,      /* below what starts main() */
};

/* In the order in which a report shows them. */
enum { POOL_NONE, POOL_TOKIO, POOL_BLOCKING, POOL_BLOCK_ON, POOL_ASYNC, POOL_RAYON, POOL_GO, POOL_THREADS, POOL_OTHERS };
static const char *const first_pools[] = { "", "tokio", "tokio blocking", "block_on", "async-task", "rayon", "Go", TASKTYPE_THREADS };

/* What is known of a function. */
struct part {
	uint8_t part, pool;
	bool known, instance;
	bool ranked;
	uint8_t rank;
};

struct tasktypes_private {
	struct map index, keys;     /* states by their parts */
	struct map types;           /* name, kind and pool to the index in the list */
	struct map loops;           /* instances that are no unit, but the loop of a pool; to the pool */
	VEC(struct state) states;
	VEC(uint32_t) type_of;      /* by state: index into the list */
	VEC(uint32_t) stacks;       /* by stack: its state */
	VEC(uint64_t) begins;       /* by stack a bit: its state is not its caller's */
	VEC(struct part) functions;
	VEC(uint8_t) marks;         /* by frame: 1 = has a part of a runtime, 2 = has none */
	VEC(const char *) pools;
	struct strtab names;
};

/* --- functions --- */

static uint8_t pool_of(struct tasktypes_private *o, const char *name)
{
	for (size_t i = 0; i < o->pools.n; i++)
		if (!strcmp(o->pools.v[i], name))
			return i;
	vec_push(&o->pools, name);
	return o->pools.n - 1;
}

static struct part *part_of(struct tasktypes *t, uint32_t function)
{
	struct tasktypes_private *o = t->own;
	struct part *f = &o->functions.v[function];

	if (!f->known) {
		const struct profile_function *x = &t->p->functions.v[function];
		struct taskpart_of part = taskpart_of_name(profile_str(t->p, x->name));

		*f = (struct part){ .part = part.part, .known = true };
		if (part.pool)
			f->pool = pool_of(o, part.pool);
		/* Without its linkage name one function stands for all instances. */
		f->instance = part.instance && x->linkage;
	}
	return f;
}

static enum taskname_rank rank_of(struct tasktypes *t, uint32_t function)
{
	struct part *f = part_of(t, function);

	if (!f->ranked) {
		const struct profile_function *x = &t->p->functions.v[function];
		const char *name = profile_str(t->p, x->name);
		const char *module = x->module < t->p->modules.n ? profile_str(t->p, t->p->modules.v[x->module].path) : "";

		f->rank = stdnames_is_cpp(name) ? TASKNAME_NOTHING :
			  !strstr(name, "::") && ownfunction_is_library(name, module) ? TASKNAME_LIBRARY : taskname_rank(name);
		f->ranked = true;
	}
	return f->rank;
}

/* --- states --- */

static uint32_t state_id(struct tasktypes_private *o, const struct state *s)
{
	uint32_t rest = s->kind | s->rank << 8 | s->pool << 16 | (uint32_t)s->flags << 24;
	uint64_t *key = map_put(&o->keys, map_pair(s->instance, s->function), o->keys.n);
	uint64_t *id = map_put(&o->index, map_pair(*key, rest), o->states.n);

	if (*id == o->states.n)
		vec_push(&o->states, *s);
	return *id;
}

/* Is it a unit whose name is still to come? */
static bool is_open(const struct state *s)
{
	return s->kind > TASKTYPE_RUNTIME && s->rank < TASKNAME_FUNCTION;
}

static void begin(struct tasktypes *t, struct state *s, enum tasktype_kind kind, uint8_t pool, uint32_t instance)
{
	/* A closure that was inlined into what starts it, and in which others run: the loop of a pool. */
	if (s->instance != PROFILE_NONE && is_open(s) && kind != TASKTYPE_THREAD && kind != TASKTYPE_BLOCK_ON &&
	    (s->kind == TASKTYPE_THREAD || s->kind == TASKTYPE_BLOCKING))
		*map_put(&t->own->loops, s->instance, pool) = pool;
	s->kind = kind;
	s->pool = pool;
	s->instance = instance;
	s->function = PROFILE_NONE;
	s->rank = 0;
	s->flags &= ~IN_LIBRARY;
}

/* A unit that runs no other one: block_on() within it is a part of it. */
static bool is_settled_job(const struct state *s)
{
	return s->kind == TASKTYPE_TASK || s->kind == TASKTYPE_BLOCKING || s->kind == TASKTYPE_RAYON || s->kind == TASKTYPE_JOB ||
	       s->kind == TASKTYPE_GOROUTINE;
}

/* tokio's own workers are jobs of its blocking pool, and so is all that is polled outside of a scheduler. */
static void begin_poll(struct tasktypes *t, struct state *s, uint32_t instance)
{
	bool task = s->flags & IN_SCHEDULER || !(s->flags & IN_THREAD) || s->kind == TASKTYPE_BLOCK_ON ||
		    s->kind == TASKTYPE_BLOCKING;

	begin(t, s, task ? TASKTYPE_TASK : TASKTYPE_BLOCKING, task ? POOL_TOKIO : POOL_BLOCKING, instance);
}

static void begin_worker(struct tasktypes *t, struct state *s)
{
	/* block_on() of a runtime with one thread polls its own future and tasks in turns. */
	if (s->kind != TASKTYPE_BLOCK_ON && (is_open(s) || s->kind <= TASKTYPE_RUNTIME))
		begin(t, s, TASKTYPE_RUNTIME, POOL_TOKIO, PROFILE_NONE);
	if (s->kind <= TASKTYPE_RUNTIME || s->kind == TASKTYPE_BLOCK_ON)
		s->flags |= IN_SCHEDULER;
}

static void name_unit(struct tasktypes *t, struct state *s, uint32_t function)
{
	enum taskname_rank rank = rank_of(t, function);

	if (s->kind == TASKTYPE_GOROUTINE) {
		const char *name = profile_str(t->p, t->p->functions.v[function].name);

		if (taskpart_is_go_wrapper(name))
			return;
		if (taskpart_is_go_runtime(name))
			begin(t, s, TASKTYPE_RUNTIME, POOL_GO, PROFILE_NONE);
		else
			rank = TASKNAME_UNIT;
	}
	if (rank == TASKNAME_NOTHING || s->kind == TASKTYPE_RUNTIME)
		return;
	if (rank == TASKNAME_LIBRARY) {
		s->flags |= IN_LIBRARY;
		if (s->rank >= rank)
			return;
	} else if (s->flags & IN_LIBRARY) {
		rank = TASKNAME_FUNCTION;
	}
	s->flags &= rank == TASKNAME_LIBRARY ? ~0 : ~IN_LIBRARY;
	s->rank = rank;
	s->function = function;
}

static void add_function(struct tasktypes *t, struct state *s, uint32_t function)
{
	const struct part *f = part_of(t, function);
	uint32_t instance = f->instance ? function : PROFILE_NONE;

	switch ((enum taskpart)f->part) {
	case TASKPART_ORDINARY:
		if (is_open(s))
			name_unit(t, s, function);
		return;
	case TASKPART_MAIN:
		s->flags |= IN_MAIN;
		return;
	case TASKPART_THREAD:
		if (s->flags & IN_MAIN)
			return;
		s->flags |= IN_THREAD;
		/* The nearest one is the only one that is there once for each closure. */
		if (s->kind == TASKTYPE_NONE || (s->kind == TASKTYPE_THREAD && is_open(s)))
			begin(t, s, TASKTYPE_THREAD, POOL_THREADS, instance);
		return;
	case TASKPART_POLL_IN:
		if (is_open(s) && (s->kind == TASKTYPE_TASK || s->kind == TASKTYPE_BLOCKING))
			return;
		/* fallthrough */
	case TASKPART_POLL:
		begin_poll(t, s, instance);
		return;
	case TASKPART_TASK_RUN:
		begin(t, s, TASKTYPE_TASK, POOL_ASYNC, instance);
		return;
	case TASKPART_BLOCK_ON:
		if (!is_settled_job(s) && s->kind != TASKTYPE_BLOCK_ON)
			begin(t, s, TASKTYPE_BLOCK_ON, POOL_BLOCK_ON, instance);
		return;
	case TASKPART_WORKER:
		begin_worker(t, s);
		return;
	case TASKPART_BLOCKING:
		if (s->kind == TASKTYPE_NONE || s->kind == TASKTYPE_THREAD)
			begin(t, s, TASKTYPE_RUNTIME, POOL_BLOCKING, PROFILE_NONE);
		s->flags |= IN_THREAD;
		return;
	case TASKPART_RAYON:
		if (s->kind == TASKTYPE_NONE || (s->kind == TASKTYPE_THREAD && is_open(s)))
			begin(t, s, TASKTYPE_RUNTIME, POOL_RAYON, PROFILE_NONE);
		return;
	case TASKPART_RAYON_JOB:
		begin(t, s, TASKTYPE_RAYON, POOL_RAYON, instance);
		return;
	case TASKPART_LOOP:
		if (s->kind == TASKTYPE_NONE || s->kind == TASKTYPE_THREAD)
			begin(t, s, TASKTYPE_JOB, f->pool, instance);
		return;
	case TASKPART_BOXED:
		/* Of a pool that the program made itself: a closure out of a queue. What starts a thread calls one, too, but before
		 * the function that is there once for each thread's closure. */
		if (s->kind == TASKTYPE_THREAD && (!is_open(s) || s->instance != PROFILE_NONE))
			begin(t, s, TASKTYPE_JOB, POOL_THREADS, instance);
		return;
	case TASKPART_JOB:
		if (s->kind == TASKTYPE_NONE || s->kind == TASKTYPE_THREAD) {
			begin(t, s, TASKTYPE_JOB, f->pool, instance);
			s->function = function;
			s->rank = TASKNAME_UNIT;
		}
		return;
	case TASKPART_GOROUTINE:
		begin(t, s, TASKTYPE_GOROUTINE, POOL_GO, PROFILE_NONE);
		return;
	case TASKPART_GO:
		if (s->kind == TASKTYPE_NONE || s->kind == TASKTYPE_THREAD)
			begin(t, s, TASKTYPE_RUNTIME, POOL_GO, PROFILE_NONE);
		return;
	}
}

/* --- stacks --- */

/* Does a frame have a function that runs units? All others leave a unit as it is once that has its name. */
static bool has_parts(struct tasktypes *t, uint32_t frame)
{
	uint8_t *mark = &t->own->marks.v[frame];

	if (!*mark) {
		const struct profile_frame *f = &t->p->frames.v[frame];

		*mark = 2;
		for (uint32_t k = 0; f->kind == FRAME_USER && k < f->line_count; k++)
			if (part_of(t, t->p->lines.v[f->first_line + k].function)->part != TASKPART_ORDINARY)
				*mark = 1;
	}
	return *mark == 1;
}

static uint32_t add_frame(struct tasktypes *t, uint32_t state, uint32_t frame)
{
	struct state s = t->own->states.v[state];
	const struct profile_frame *f = &t->p->frames.v[frame];

	if (f->kind != FRAME_USER || (!has_parts(t, frame) && !is_open(&s)))
		return state;
	for (uint32_t k = f->line_count; k-- > 0;)
		add_function(t, &s, t->p->lines.v[f->first_line + k].function);
	return state_id(t->own, &s);
}

/* Parents come before their children. */
static void read_stacks(struct tasktypes *t)
{
	struct tasktypes_private *o = t->own;
	const struct profile_nodes *nodes = &t->p->stacks;
	size_t first = o->stacks.n;

	vec_reserve(&o->stacks, nodes->n - first);
	while (o->begins.n * 64 < nodes->n)
		vec_push(&o->begins, 0);
	for (size_t i = first; i < nodes->n; i++) {
		uint32_t above = i ? o->stacks.v[nodes->v[i].parent] : 0;

		o->stacks.v[i] = i ? add_frame(t, above, nodes->v[i].frame) : 0;
		if (o->stacks.v[i] != above)
			o->begins.v[i / 64] |= 1ULL << i % 64;
	}
	o->stacks.n = nodes->n;
}

/* --- types --- */

/* What the stacks of an instance are called. */
struct verdict {
	char *given;                         /* by the instance's own name; NULL = that says nothing */
	uint64_t units, most;                /* stacks with a future or closure; of these, those of the one with most */
	uint64_t most_functions;             /* likewise of functions that are neither */
	uint32_t unit, function;             /* which these are; PROFILE_NONE = there is none */
};

static uint32_t type_id(struct tasktypes *t, enum tasktype_kind kind, uint8_t pool, const char *name, bool named)
{
	struct tasktypes_private *o = t->own;
	uint32_t string = strtab_add(&o->names, name);
	uint64_t *id = map_put(&o->types, map_pair(string, kind << 8 | pool), t->list.n);

	if (*id == t->list.n)
		vec_push(&t->list, (struct tasktype){ .kind = kind, .name = strtab_get(&o->names, string),
						      .pool = o->pools.v[pool], .named = named });
	return *id;
}

static uint32_t type_of_function(struct tasktypes *t, const struct state *s, uint32_t function)
{
	const char *name = profile_str(t->p, t->p->functions.v[function].name);
	_cleanup_free_ char *made = s->kind == TASKTYPE_GOROUTINE ? NULL : taskname_of_function(name);

	return type_id(t, s->kind, s->pool, made && *made ? made : name, true);
}

static uint32_t type_without_name(struct tasktypes *t, const struct state *s)
{
	_cleanup_free_ char *text = NULL;

	/* Nothing but the C library: any thread. */
	if (s->kind == TASKTYPE_NONE || s->kind == TASKTYPE_THREAD)
		return 0;
	if (s->kind == TASKTYPE_JOB || s->kind == TASKTYPE_RUNTIME || s->kind == TASKTYPE_GOROUTINE)
		return type_id(t, TASKTYPE_RUNTIME, s->pool, "[runtime]", false);
	text = mem_printf("[%s]", tasktype_kind_name(s->kind));
	return type_id(t, s->kind, s->pool, text, false);
}

static uint32_t type_of_state(struct tasktypes *t, const struct state *s, const struct verdict *v)
{
	const uint64_t *loop = s->instance == PROFILE_NONE ? NULL : map_get(&t->own->loops, s->instance);
	bool most = v && v->unit != PROFILE_NONE && v->most * 100 >= v->units * MOST_PERCENT;

	if (s->kind <= TASKTYPE_RUNTIME)
		return type_without_name(t, s);
	if (v && v->given)
		return type_id(t, s->kind, s->pool, v->given, true);
	if (s->rank == TASKNAME_UNIT)
		return type_of_function(t, s, s->function);
	if (loop)
		return type_without_name(t, &(struct state){ .kind = TASKTYPE_RUNTIME, .pool = *loop });
	if (most)
		return type_of_function(t, s, v->unit);
	if (v && v->unit == PROFILE_NONE && v->function != PROFILE_NONE)
		return type_of_function(t, s, v->function);
	return s->rank == TASKNAME_FUNCTION ? type_of_function(t, s, s->function) : type_without_name(t, s);
}

/* Counts the stacks of each name of an instance: of, by instance, is 1 + its verdict. */
static void count_names(struct tasktypes *t, const uint32_t *counts, struct map *of, struct verdict *verdicts)
{
	struct tasktypes_private *o = t->own;

	for (size_t i = 0; i < o->states.n; i++) {
		const struct state *s = &o->states.v[i];
		struct verdict *v = s->instance == PROFILE_NONE ? NULL : &verdicts[*map_put(of, s->instance, of->n)];

		if (!v)
			continue;
		if (!v->unit && !v->function) {
			const char *name = profile_str(t->p, t->p->functions.v[s->instance].name);

			*v = (struct verdict){ .unit = PROFILE_NONE, .function = PROFILE_NONE, .given = taskname_of_arguments(name) };
		}
		if (s->rank == TASKNAME_UNIT) {
			v->units += counts[i];
			if (counts[i] > v->most) {
				v->most = counts[i];
				v->unit = s->function;
			}
		} else if (s->rank == TASKNAME_FUNCTION && counts[i] > v->most_functions) {
			v->most_functions = counts[i];
			v->function = s->function;
		}
	}
}

static void find_types(struct tasktypes *t)
{
	struct tasktypes_private *o = t->own;
	_cleanup_free_ uint32_t *counts = mem_alloc((o->states.n + 1) * sizeof(*counts));
	_cleanup_free_ struct verdict *verdicts = mem_alloc((o->states.n + 1) * sizeof(*verdicts));
	_cleanup_(map_done) struct map of = { 0 };

	for (size_t i = 0; i < o->stacks.n; i++)
		counts[o->stacks.v[i]]++;
	count_names(t, counts, &of, verdicts);
	map_clear(&o->types);
	vec_clear(&t->list);
	vec_clear(&o->type_of);
	vec_push(&t->list, (struct tasktype){ .name = "", .pool = "" });
	for (size_t i = 0; i < o->states.n; i++) {
		const struct state *s = &o->states.v[i];

		vec_push(&o->type_of, type_of_state(t, s, s->instance == PROFILE_NONE ? NULL : &verdicts[*map_get(&of, s->instance)]));
	}
	for (size_t i = 0; i < of.n; i++)
		free(verdicts[i].given);
}

/* --- for others --- */

void tasktypes_grow(struct tasktypes *t)
{
	struct tasktypes_private *o = t->own;
	size_t functions = t->p->functions.n - o->functions.n, frames = t->p->frames.n - o->marks.n;

	if (o->stacks.n == t->p->stacks.n)
		return;
	/* One more than there are: a profile without any has tables, too. */
	vec_reserve(&o->functions, functions + 1);
	memset(o->functions.v + o->functions.n, 0, functions * sizeof(*o->functions.v));
	o->functions.n += functions;
	vec_reserve(&o->marks, frames + 1);
	memset(o->marks.v + o->marks.n, 0, frames);
	o->marks.n += frames;
	read_stacks(t);
	find_types(t);
}

void tasktypes_init(struct tasktypes *t, const struct profile *p)
{
	struct tasktypes_private *o = mem_alloc(sizeof(*o));

	*t = (struct tasktypes){ .p = p, .own = o };
	strtab_init(&o->names);
	for (size_t i = 0; i < ARRAY_LEN(first_pools); i++)
		vec_push(&o->pools, first_pools[i]);
	state_id(o, &(struct state){ .instance = PROFILE_NONE, .function = PROFILE_NONE });
	tasktypes_grow(t);
}

void tasktypes_done(struct tasktypes *t)
{
	struct tasktypes_private *o = t->own;

	vec_done(&t->list);
	if (!o)
		return;
	map_done(&o->index);
	map_done(&o->keys);
	map_done(&o->types);
	map_done(&o->loops);
	vec_done(&o->states);
	vec_done(&o->type_of);
	vec_done(&o->stacks);
	vec_done(&o->begins);
	vec_done(&o->functions);
	vec_done(&o->marks);
	vec_done(&o->pools);
	strtab_done(&o->names);
	free(o);
	t->own = NULL;
}

uint32_t tasktypes_of(const struct tasktypes *t, uint32_t stack)
{
	const struct tasktypes_private *o = t->own;

	return stack < o->stacks.n ? o->type_of.v[o->stacks.v[stack]] : 0;
}

bool tasktypes_may_begin(const struct tasktypes *t, uint32_t stack)
{
	const struct tasktypes_private *o = t->own;

	return stack < o->stacks.n && o->begins.v[stack / 64] >> stack % 64 & 1;
}

const char *tasktype_kind_name(enum tasktype_kind kind)
{
	static const char *const names[TASKTYPE_KINDS] = { "", "runtime", "task", "blocking", "block_on", "rayon", "job", "thread",
							   "goroutine" };

	return kind < TASKTYPE_KINDS ? names[kind] : "";
}

char *tasktype_label(const struct tasktype *t)
{
	return mem_printf("%s %s", tasktype_kind_name(t->kind), t->kind == TASKTYPE_RUNTIME ? t->pool : t->name);
}
