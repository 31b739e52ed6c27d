#include "analyze/task/poolwork.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/profile.h"

struct pair {
	uint32_t type, thread;
};

struct making {
	struct poolwork *w;
	const struct profile *p;
	const struct select_options *o;
	struct poolwork_row *sums; /* by type */
	struct map seen;           /* type and thread */
	VEC(struct pair) pairs;    /* the same, in the order of the samples */
	uint32_t *last;            /* by thread: 1 + the type of its last sample, which is in seen */
	const uint8_t *crowd;      /* by thread: does another one have its name, but for numbers? */
};

/* Threads that are called alike do alike, as those of a pool do. One that has a name of its own is told by that name. */
static uint8_t *find_crowds(const struct profile *p)
{
	uint8_t *crowd = mem_alloc(p->threads.n + 1);
	_cleanup_(map_done) struct map first = { 0 };

	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];
		const char *name = profile_str(p, t->comm ? t->comm : t->name);
		uint64_t hash = t->process, *at;

		for (; *name; name++)
			hash = isdigit((unsigned char)*name) ? hash : map_hash(hash * 31 + (unsigned char)*name);
		at = map_put(&first, hash, i);
		if (*at != i)
			crowd[i] = crowd[*at] = 1;
	}
	return crowd;
}

static void add_sample(struct making *m, size_t index, enum role role)
{
	const struct profile_sample *s = &m->p->samples.v[index];
	uint32_t type = tasktypes_of(&m->w->types, s->stack);
	struct poolwork_row *r = &m->sums[type];
	uint64_t value = m->o->from_ns || m->o->to_ns ? select_value(m->p, index, role, m->o->from_ns, m->o->to_ns) : s->value;

	if (!type || !value || (m->w->types.list.v[type].kind == TASKTYPE_THREAD && !m->crowd[s->thread]))
		return;
	if (role == ROLE_CPU) {
		r->ns[CAUSE_CPU] += value;
		r->samples += s->count ? s->count : 1;
	} else {
		r->ns[m->o->causes ? causes_of(m->o->causes, s) : role == ROLE_QUEUE ? CAUSE_QUEUE : CAUSE_UNKNOWN] += value;
		if (role == ROLE_WAIT)
			r->waits += s->count ? s->count : 1;
	}
	if (m->last[s->thread] != type + 1) {
		m->last[s->thread] = type + 1;
		if (*map_put(&m->seen, map_pair(type, s->thread), m->pairs.n) == m->pairs.n)
			vec_push(&m->pairs, (struct pair){ type, s->thread });
	}
}

static void add_samples(struct making *m, const uint8_t *picked)
{
	const struct profile *p = m->p;
	_cleanup_free_ uint8_t *roles = mem_alloc(p->events.n + 1);

	for (size_t i = 0; i < p->events.n; i++) {
		roles[i] = cause_role(p, i);
		m->w->cpu |= roles[i] == ROLE_CPU;
		m->w->waits |= roles[i] == ROLE_WAIT;
	}
	for (size_t i = 0; i < p->samples.n; i++)
		if (roles[p->samples.v[i].event] != ROLE_OTHER && picked[p->samples.v[i].thread])
			add_sample(m, i, roles[p->samples.v[i].event]);
}

static void add_row(struct poolwork_row *to, const struct poolwork_row *r)
{
	to->samples += r->samples;
	to->waits += r->waits;
	for (int i = 0; i < CAUSE_COUNT; i++)
		to->ns[i] += r->ns[i];
}

/* --- pools --- */

static struct poolwork_pool *pool_of(struct poolwork *w, const char *name)
{
	for (size_t i = 0; i < w->pools.n; i++)
		if (!strcmp(w->pools.v[i].name, name))
			return &w->pools.v[i];
	vec_push(&w->pools, (struct poolwork_pool){ .name = name });
	return &w->pools.v[w->pools.n - 1];
}

/* "solar-*" of "solar-12". Caller frees. */
static char *pattern_of(const char *name)
{
	char *out = mem_strdup(name), *to = out;

	for (const char *s = name; *s; s++)
		if (!isdigit((unsigned char)*s))
			*to++ = *s;
		else if (to == out || to[-1] != '*')
			*to++ = '*';
	*to = 0;
	return out;
}

/* Counts the threads of each type and pool, and finds the name that most of a pool's have. */
static void count_threads(struct making *m)
{
	struct poolwork *w = m->w;
	_cleanup_(map_done) struct map names = { 0 }, threads = { 0 };
	_cleanup_free_ uint64_t *most = NULL;
	_cleanup_(strtab_done) struct strtab patterns;

	strtab_init(&patterns);

	for (size_t i = 0; i < m->pairs.n; i++)
		pool_of(w, w->types.list.v[m->pairs.v[i].type].pool);
	most = mem_alloc((w->pools.n + 1) * sizeof(*most));
	for (size_t i = 0; i < m->pairs.n; i++) {
		const struct pair *x = &m->pairs.v[i];
		struct poolwork_pool *pool = pool_of(w, w->types.list.v[x->type].pool);
		uint64_t *known = map_put(&threads, map_pair(pool - w->pools.v, x->thread), 0), *n;
		const char *name = profile_str(m->p, m->p->threads.v[x->thread].name);
		_cleanup_free_ char *pattern = m->crowd[x->thread] ? pattern_of(name) : mem_strdup(name);

		m->sums[x->type].threads++;
		if (*known)
			continue;
		*known = 1;
		pool->threads++;
		n = map_put(&names, map_pair(pool - w->pools.v, strtab_add(&patterns, pattern)), 0);
		if (++*n > most[pool - w->pools.v]) {
			most[pool - w->pools.v] = *n;
			free(pool->thread);
			pool->thread = mem_strdup(pattern);
		}
	}
}

/* A pool's own work comes after what it runs. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct poolwork_row *x = a, *y = b;
	const struct poolwork *w = context;
	const struct tasktype *m = &w->types.list.v[x->type], *n = &w->types.list.v[y->type];
	struct poolwork_columns c = poolwork_columns(x), d = poolwork_columns(y);

	if ((m->kind == TASKTYPE_RUNTIME) != (n->kind == TASKTYPE_RUNTIME))
		return m->kind == TASKTYPE_RUNTIME ? 1 : -1;
	return ORDER(d.cpu_ns, c.cpu_ns) ?:
	       ORDER(d.queue_ns + d.lock_ns + d.disk_ns + d.other_ns, c.queue_ns + c.lock_ns + c.disk_ns + c.other_ns) ?:
	       strcmp(m->name, n->name) ?: ORDER(m->kind, n->kind);
}

static int compare_pools(const void *a, const void *b)
{
	const struct poolwork_pool *x = a, *y = b;

	return ORDER(y->total.ns[CAUSE_CPU], x->total.ns[CAUSE_CPU]) ?: strcmp(x->name, y->name);
}

/* Was it there for more than to wait for work? */
static bool has_time(const struct poolwork_row *r)
{
	struct poolwork_columns c = poolwork_columns(r);

	return c.cpu_ns || c.queue_ns || c.lock_ns || c.disk_ns || c.other_ns;
}

static void make_rows(struct making *m)
{
	struct poolwork *w = m->w;
	size_t kept = 0;

	for (size_t i = 1; i < w->types.list.n; i++)
		add_row(&pool_of(w, w->types.list.v[i].pool)->total, &m->sums[i]);
	for (size_t i = 0; i < w->pools.n; i++)
		if (has_time(&w->pools.v[i].total))
			w->pools.v[kept++] = w->pools.v[i];
		else
			free(w->pools.v[i].thread);
	w->pools.n = kept;
	vec_sort(&w->pools, compare_pools);
	for (size_t i = 0; i < w->pools.n; i++) {
		struct poolwork_pool *pool = &w->pools.v[i];

		pool->first = w->rows.n;
		for (size_t k = 1; k < w->types.list.n; k++) {
			if (!has_time(&m->sums[k]) || strcmp(w->types.list.v[k].pool, pool->name))
				continue;
			m->sums[k].type = k;
			vec_push(&w->rows, m->sums[k]);
			w->named_ns += w->types.list.v[k].named ? m->sums[k].ns[CAUSE_CPU] : 0;
		}
		pool->count = w->rows.n - pool->first;
		qsort_r(w->rows.v + pool->first, pool->count, sizeof(*w->rows.v), compare_rows, w);
		w->cpu_ns += pool->total.ns[CAUSE_CPU];
	}
}

/* --- for others --- */

bool poolwork_make(struct poolwork *w, const struct profile *p, const struct select_options *o)
{
	_cleanup_free_ struct poolwork_row *sums = NULL;
	_cleanup_free_ uint32_t *last = mem_alloc((p->threads.n + 1) * sizeof(*last));
	_cleanup_free_ uint8_t *picked = NULL, *crowd = find_crowds(p);
	struct making m = { .w = w, .p = p, .o = o, .last = last, .crowd = crowd };

	*w = (struct poolwork){ 0 };
	tasktypes_init(&w->types, p);
	if (w->types.list.n < 2 || select_threads(p, o, &picked, NULL))
		return false;
	m.sums = sums = mem_alloc((w->types.list.n + 1) * sizeof(*sums));
	add_samples(&m, picked);
	count_threads(&m);
	make_rows(&m);
	map_done(&m.seen);
	vec_done(&m.pairs);
	return w->pools.n;
}

void poolwork_done(struct poolwork *w)
{
	tasktypes_done(&w->types);
	vec_done_each(&w->pools, e, free(e->thread));
	vec_done(&w->rows);
}

struct poolwork_columns poolwork_columns(const struct poolwork_row *r)
{
	struct poolwork_columns c = { 0 };

	for (int i = 0; i < CAUSE_COUNT; i++) {
		uint64_t *to = i == CAUSE_CPU ? &c.cpu_ns :
			       i == CAUSE_QUEUE || i == CAUSE_QUOTA ? &c.queue_ns :
			       i == CAUSE_LOCK ? &c.lock_ns :
			       i == CAUSE_DISK_READ || i == CAUSE_DISK_WRITE || i == CAUSE_FAULT ? &c.disk_ns : &c.other_ns;

		*to += i == CAUSE_IDLE ? 0 : r->ns[i];
	}
	return c;
}
