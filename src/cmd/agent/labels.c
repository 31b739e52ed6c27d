#include "cmd/agent/labels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/container/container.h"

static bool has_key(const struct labels *l, const char *label)
{
	size_t n = strcspn(label, "=") + 1;

	for (size_t i = 0; i < l->list.n; i++)
		if (!strncmp(l->list.v[i], label, n))
			return true;
	return false;
}

/* Takes it over; the first of a key is the one. */
static void add(struct labels *l, char *label)
{
	if (l->list.n >= CONTAINER_LABELS || has_key(l, label)) {
		free(label);
		return;
	}
	vec_push(&l->list, label);
}

static void add_word(struct labels *l, const char *key, const char *value)
{
	if (value && *value)
		add(l, container_label(key, value));
}

/* What one container has. */
static void read_container(struct labels *l, const struct container *c)
{
	_cleanup_free_ char *title = c->pod ? NULL : container_title(c);

	if (c->pod) {
		add_word(l, "namespace", c->namespace);
		add_word(l, "pod", c->pod);
	}
	add_word(l, "container", c->pod ? c->part : title);
	add_word(l, "image", c->image);
	for (size_t i = 0; i < c->labels.n; i++)
		add(l, mem_strdup(c->labels.v[i]));
}

static bool has(const struct labels *l, const char *label)
{
	for (size_t i = 0; i < l->list.n; i++)
		if (!strcmp(l->list.v[i], label))
			return true;
	return false;
}

/* Keeps what the other has, too. */
static void keep_common(struct labels *l, const struct labels *other)
{
	size_t n = 0;

	for (size_t i = 0; i < l->list.n; i++) {
		if (has(other, l->list.v[i]))
			l->list.v[n++] = l->list.v[i];
		else
			free((char *)l->list.v[i]);
	}
	l->list.n = n;
}

void labels_make(struct labels *ret, const char *const *configured, const struct containers *containers)
{
	struct labels common = { 0 };

	*ret = (struct labels){ 0 };
	for (; configured && *configured; configured++)
		vec_push(&ret->list, mem_strdup(*configured));
	for (size_t i = 0; containers && i < containers->list.n; i++) {
		struct labels own = { 0 };

		read_container(i ? &own : &common, &containers->list.v[i]);
		if (i)
			keep_common(&common, &own);
		labels_done(&own);
	}
	for (size_t i = 0; i < common.list.n; i++)
		add(ret, (char *)common.list.v[i]);
	vec_done(&common.list);
	vec_push(&ret->list, NULL);
	ret->list.n--;
}

void labels_done(struct labels *l)
{
	vec_done_each(&l->list, e, free((char *)*e));
}
