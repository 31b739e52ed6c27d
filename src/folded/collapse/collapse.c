#include "folded/collapse/collapse.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"

enum {
	PIECE_BYTES = 4 << 20,
	LARGEST_BYTES = 256 << 20,
	THREADS_MAX = 64,
	SPARE = 2, /* pieces that may wait besides those that are worked on */
};

struct piece {
	char *data;
	size_t n, capacity;
	const char *event;
	struct piece *next;
};

struct counter {
	struct collapse *c;
	struct foldtable *table;
	pthread_t thread;
};

struct collapse {
	char *event; /* whose samples count; NULL: not known yet */
	struct counter counters[THREADS_MAX];
	unsigned threads;
	bool ended;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct piece *waiting, **waiting_end; /* to be counted, the first first */
	struct piece *unused;
	bool last; /* no piece comes any more */
};

/* --- the queue --- */

static struct piece *take_waiting(struct collapse *c)
{
	struct piece *p;

	pthread_mutex_lock(&c->lock);
	while (!c->waiting && !c->last)
		pthread_cond_wait(&c->changed, &c->lock);
	p = c->waiting;
	if (p) {
		c->waiting = p->next;
		if (!c->waiting)
			c->waiting_end = &c->waiting;
	}
	pthread_mutex_unlock(&c->lock);
	return p;
}

static void give_back(struct collapse *c, struct piece *p)
{
	pthread_mutex_lock(&c->lock);
	p->next = c->unused;
	c->unused = p;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void *count_pieces(void *data)
{
	struct counter *k = data;
	struct piece *p;

	while ((p = take_waiting(k->c))) {
		foldtable_add(k->table, p->data, p->n, p->event);
		give_back(k->c, p);
	}
	return NULL;
}

static struct piece *take_unused(struct collapse *c)
{
	struct piece *p;

	pthread_mutex_lock(&c->lock);
	while (!c->unused)
		pthread_cond_wait(&c->changed, &c->lock);
	p = c->unused;
	c->unused = p->next;
	pthread_mutex_unlock(&c->lock);
	p->n = 0;
	return p;
}

static void hand_over(struct collapse *c, struct piece *p)
{
	pthread_mutex_lock(&c->lock);
	p->next = NULL;
	*c->waiting_end = p;
	c->waiting_end = &p->next;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

struct collapse *collapse_new(const struct foldtable_options *o, const char *event, unsigned threads)
{
	struct collapse *c = mem_alloc(sizeof(*c));

	c->event = event && *event ? mem_strdup(event) : NULL;
	c->threads = MIN(MAX(threads, 1U), (unsigned)THREADS_MAX);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->waiting_end = &c->waiting;
	for (unsigned i = 0; i < c->threads + SPARE; i++) {
		struct piece *p = mem_alloc(sizeof(*p));

		p->next = c->unused;
		c->unused = p;
	}
	for (unsigned i = 0; i < c->threads; i++) {
		c->counters[i] = (struct counter){ .c = c, .table = foldtable_new(o) };
		if (pthread_create(&c->counters[i].thread, NULL, count_pieces, &c->counters[i]))
			mem_no_thread();
	}
	return c;
}

/* --- reading --- */

/* Where the last sample ends: after an empty line. 0: nowhere. */
static size_t last_end(const char *s, size_t n)
{
	while (n >= 2) {
		const char *end = memrchr(s, '\n', n);

		if (!end || end == s)
			return 0;
		if (end[-1] == '\n')
			return end - s + 1;
		n = end - s;
	}
	return 0;
}

/* The first event that comes is the one that counts. */
static void find_event(struct collapse *c, struct piece *p)
{
	struct perfline_text event;

	if (!c->event) {
		event = foldtable_first_event(p->data, p->n);
		c->event = event.n ? mem_strndup(event.s, event.n) : NULL;
	}
	p->event = c->event;
}

/* Fills the piece. 0: it is full, 1: the file has ended. */
static int fill(struct piece *p, struct stream *in, struct err *err)
{
	while (p->n < p->capacity) {
		ssize_t n = stream_read(in, p->data + p->n, p->capacity - p->n, err);

		if (n < 0)
			return n;
		if (!n)
			return 1;
		/* Names are C strings: a NUL in them becomes another invisible character. */
		for (char *s = p->data + p->n; (s = memchr(s, 0, p->data + p->n + n - s)); s++)
			*s = 1;
		p->n += n;
	}
	return 0;
}

static void set_capacity(struct piece *p, size_t capacity)
{
	p->data = mem_resize(p->data, capacity, 1);
	p->capacity = capacity;
}

int collapse_read(struct collapse *c, struct stream *in, struct err *err)
{
	struct piece *p = take_unused(c), *next;
	uint64_t offset = 0;
	size_t end;
	int r;

	if (p->capacity < PIECE_BYTES)
		set_capacity(p, PIECE_BYTES);
	while (!(r = fill(p, in, err))) {
		end = last_end(p->data, p->n);
		if (!end && p->capacity >= LARGEST_BYTES) {
			give_back(c, p);
			return err_set(err, EFBIG, "the sample at byte %llu has no end within %d MB: is it perf script's text?",
				       (unsigned long long)offset, LARGEST_BYTES >> 20);
		}
		if (!end) {
			set_capacity(p, p->capacity * 2);
			continue;
		}
		next = take_unused(c);
		if (next->capacity < MAX((size_t)PIECE_BYTES, p->n - end + 1))
			set_capacity(next, MAX((size_t)PIECE_BYTES, p->n - end + 1));
		next->n = p->n - end;
		memcpy(next->data, p->data + end, next->n);
		p->n = end;
		offset += end;
		find_event(c, p);
		hand_over(c, p);
		p = next;
	}
	if (r < 0) {
		give_back(c, p);
		return r;
	}
	find_event(c, p);
	/* The next file begins a sample of its own. */
	if (!p->n)
		give_back(c, p);
	else
		hand_over(c, p);
	return 0;
}

struct foldtable *collapse_end(struct collapse *c)
{
	if (c->ended)
		return c->counters[0].table;
	c->ended = true;
	pthread_mutex_lock(&c->lock);
	c->last = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->threads; i++)
		pthread_join(c->counters[i].thread, NULL);
	for (unsigned i = 1; i < c->threads; i++)
		foldtable_join(c->counters[0].table, c->counters[i].table);
	return c->counters[0].table;
}

const char *collapse_event(const struct collapse *c)
{
	return c->event ? c->event : "";
}

static void free_pieces(struct piece *p)
{
	while (p) {
		struct piece *next = p->next;

		free(p->data);
		free(p);
		p = next;
	}
}

void collapse_free(struct collapse *c)
{
	if (!c)
		return;
	collapse_end(c);
	for (unsigned i = 0; i < c->threads; i++)
		foldtable_free(c->counters[i].table);
	free_pieces(c->waiting);
	free_pieces(c->unused);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c->event);
	free(c);
}
