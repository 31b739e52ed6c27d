#include "folded/foldedtree.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 4, ALONE = 2 }; /* ALONE: so many before there is a thread */

struct foldedtree {
	struct stacklist *l;
	bool first_apart;
	struct folded_batch *batches[BATCHES];
	/* How many were put, and how many of them are done. */
	uint64_t put, done;
	/* The other thread, if there is one. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool threaded, ended;
	VEC(uint32_t) ends, order, parents, names, nodes; /* while a batch is worked on */
};

/* --- one batch --- */

/* Sorts all frames by depth into order; ends has the end of each depth. */
static void sort_by_depth(struct foldedtree *t, const struct folded_batch *b)
{
	vec_clear(&t->ends);
	vec_clear(&t->order);
	vec_reserve(&t->ends, b->depth + 1);
	vec_reserve(&t->order, b->frames.n);
	/* First where they begin; filling moves each to its end. */
	memset(t->ends.v, 0, (b->depth + 1) * sizeof(*t->ends.v));
	for (size_t i = 0; i < b->frames.n; i++)
		t->ends.v[b->frames.v[i].depth + 1]++;
	for (uint32_t i = 1; i <= b->depth; i++)
		t->ends.v[i] += t->ends.v[i - 1];
	for (size_t i = 0; i < b->frames.n; i++)
		t->order.v[t->ends.v[b->frames.v[i].depth]++] = i;
}

/* The nodes of frames order[from] to order[to], which are of one depth. */
static void resolve(struct foldedtree *t, struct folded_batch *b, size_t from, size_t to)
{
	size_t n = to - from;

	vec_reserve(&t->parents, n);
	vec_reserve(&t->names, n);
	vec_reserve(&t->nodes, n);
	for (size_t i = 0; i < n; i++) {
		const struct folded_frame *f = &b->frames.v[t->order.v[from + i]];

		t->parents.v[i] = f->parent == FOLDED_NONE ? 0 : b->frames.v[f->parent].node;
		t->names.v[i] = f->name;
	}
	nodes_put_many(&t->l->nodes, t->parents.v, t->names.v, t->nodes.v, n);
	for (size_t i = 0; i < n; i++)
		b->frames.v[t->order.v[from + i]].node = t->nodes.v[i];
}

static void take_batch(struct foldedtree *t, struct folded_batch *b)
{
	sort_by_depth(t, b);
	for (size_t depth = t->first_apart; depth < b->depth; depth++)
		resolve(t, b, depth ? t->ends.v[depth - 1] : 0, t->ends.v[depth]);
	for (size_t i = 0; i < b->n; i++) {
		struct folded_line *line = &b->lines[i];

		if (line->last != FOLDED_NONE) {
			line->line.stack = b->frames.v[line->last].node;
			line->line.first = t->first_apart ? b->frames.v[line->first].name : 0;
		}
		vec_push(&t->l->lines, line->line);
	}
	b->n = b->depth = 0;
	vec_clear(&b->frames);
}

/* --- threads --- */

static void *work(void *context)
{
	struct foldedtree *t = context;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (t->done == t->put && !t->ended)
			pthread_cond_wait(&t->changed, &t->lock);
		if (t->done == t->put)
			break;
		pthread_mutex_unlock(&t->lock);
		take_batch(t, t->batches[t->done % BATCHES]);
		pthread_mutex_lock(&t->lock);
		t->done++;
		pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct foldedtree *foldedtree_new(struct stacklist *l, bool first_apart, struct folded_batch **ret_batch)
{
	struct foldedtree *t = mem_alloc(sizeof(*t));

	t->l = l;
	t->first_apart = first_apart;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	for (size_t i = 0; i < BATCHES; i++)
		t->batches[i] = mem_alloc(sizeof(*t->batches[i]));
	*ret_batch = t->batches[0];
	return t;
}

struct folded_batch *foldedtree_put(struct foldedtree *t)
{
	if (t->put == ALONE)
		t->threaded = !pthread_create(&t->thread, NULL, work, t);
	if (!t->threaded) {
		take_batch(t, t->batches[t->put % BATCHES]);
		t->put++;
		t->done++;
		return t->batches[t->put % BATCHES];
	}
	pthread_mutex_lock(&t->lock);
	t->put++;
	pthread_cond_broadcast(&t->changed);
	while (t->put - t->done == BATCHES)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return t->batches[t->put % BATCHES];
}

void foldedtree_wait(struct foldedtree *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->done != t->put)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

void foldedtree_free(struct foldedtree *t)
{
	if (t->threaded) {
		pthread_mutex_lock(&t->lock);
		t->ended = true;
		pthread_cond_broadcast(&t->changed);
		pthread_mutex_unlock(&t->lock);
		pthread_join(t->thread, NULL);
	}
	for (size_t i = 0; i < BATCHES; i++) {
		vec_done(&t->batches[i]->frames);
		free(t->batches[i]);
	}
	vec_done(&t->ends);
	vec_done(&t->order);
	vec_done(&t->parents);
	vec_done(&t->names);
	vec_done(&t->nodes);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
