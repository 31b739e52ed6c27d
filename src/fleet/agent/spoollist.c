#include "fleet/agent/spoollist.h"

#include <string.h>

struct spoolfile *spoolfile_new(const char *name, uint64_t bytes)
{
	size_t n = strlen(name) + 1;
	struct spoolfile *f = mem_alloc(sizeof(*f) + n);

	f->bytes = bytes;
	memcpy(f->name, name, n);
	return f;
}

static void hold(struct spoollist *l, struct spoolfile *f, struct spoollist_total *t)
{
	l->bytes += f->bytes;
	if (f->lists++)
		return;
	t->bytes += f->bytes;
	t->windows++;
}

static void release(struct spoollist *l, struct spoolfile *f, struct spoollist_total *t)
{
	l->bytes -= f->bytes;
	if (--f->lists)
		return;
	t->bytes -= f->bytes;
	t->windows--;
	free(f);
}

void spoollist_push(struct spoollist *l, struct spoolfile *f, struct spoollist_total *t)
{
	vec_push(&l->files, f);
	hold(l, f, t);
}

static int by_name(const void *a, const void *b)
{
	const struct spoolfile *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

void spoollist_sort(struct spoollist *l)
{
	if (spoollist_count(l) > 1)
		qsort(l->files.v + l->head, spoollist_count(l), sizeof(*l->files.v), by_name);
}

/* Where name is, or belongs. */
static size_t place(const struct spoollist *l, const char *name)
{
	return vec_search(i, l->head, l->files.n, strcmp(l->files.v[i]->name, name) < 0);
}

void spoollist_add(struct spoollist *l, struct spoolfile *f, struct spoollist_total *t)
{
	size_t at = place(l, f->name);

	/* Nearly always it is one of the last. */
	vec_push(&l->files, f);
	memmove(l->files.v + at + 1, l->files.v + at, (l->files.n - 1 - at) * sizeof(*l->files.v));
	l->files.v[at] = f;
	hold(l, f, t);
}

size_t spoollist_count(const struct spoollist *l)
{
	return l->files.n - l->head;
}

struct spoolfile *spoollist_at(const struct spoollist *l, size_t at)
{
	return l->files.v[l->head + at];
}

size_t spoollist_find(const struct spoollist *l, const char *name)
{
	size_t at = place(l, name);

	return at < l->files.n && !strcmp(l->files.v[at]->name, name) ? at - l->head : SIZE_MAX;
}

void spoollist_remove(struct spoollist *l, size_t at, struct spoollist_total *t)
{
	struct spoolfile *f = spoollist_at(l, at);

	if (!at) {
		l->head++;
	} else {
		memmove(l->files.v + l->head + at, l->files.v + l->head + at + 1,
			(spoollist_count(l) - at - 1) * sizeof(*l->files.v));
		l->files.n--;
	}
	if (l->head > 64 && l->head > l->files.n / 2) {
		memmove(l->files.v, l->files.v + l->head, spoollist_count(l) * sizeof(*l->files.v));
		l->files.n -= l->head;
		l->head = 0;
		/* A store that was away for long is back: its memory goes. */
		if (l->files.capacity > 1024 && l->files.n < l->files.capacity / 4) {
			l->files.capacity = l->files.n + 256;
			l->files.v = mem_resize(l->files.v, l->files.capacity, sizeof(*l->files.v));
		}
	}
	release(l, f, t);
}

void spoollist_done(struct spoollist *l, struct spoollist_total *t)
{
	for (size_t i = 0; i < spoollist_count(l); i++)
		release(l, spoollist_at(l, i), t);
	vec_done(&l->files);
	l->head = 0;
}
