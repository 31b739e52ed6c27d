#include "folded/stacklist.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

void stacklist_init(struct stacklist *l)
{
	*l = (struct stacklist){ 0 };
	strtab_init(&l->names);
	nodes_init(&l->nodes);
}

void stacklist_done(struct stacklist *l)
{
	strtab_done(&l->names);
	nodes_done(&l->nodes);
	vec_done(&l->lines);
	*l = (struct stacklist){ 0 };
}

/* --- counts --- */

static uint64_t power_of_ten(unsigned n)
{
	uint64_t v = 1;

	while (n--)
		v *= 10;
	return v;
}

uint64_t stacklist_unit(const struct stacklist *l)
{
	return power_of_ten(l->decimals);
}

int stacklist_set_decimals(struct stacklist *l, unsigned decimals)
{
	uint64_t factor, most = 0;

	if (decimals <= l->decimals)
		return 0;
	factor = power_of_ten(decimals - l->decimals);
	for (size_t i = 0; i < l->lines.n; i++) {
		const struct stacklist_line *line = &l->lines.v[i];

		most = MAX(most, line->value);
		if (line->before != STACKLIST_NONE)
			most = MAX(most, line->before);
	}
	if (most > INT64_MAX / factor)
		return -ERANGE;
	for (size_t i = 0; i < l->lines.n; i++) {
		struct stacklist_line *line = &l->lines.v[i];

		line->value *= factor;
		if (line->before != STACKLIST_NONE)
			line->before *= factor;
	}
	l->decimals = decimals;
	return 0;
}

int stacklist_total(const struct stacklist *l, uint64_t *ret)
{
	uint64_t sum = 0, before = 0;

	for (size_t i = 0; i < l->lines.n; i++) {
		const struct stacklist_line *line = &l->lines.v[i];

		if (__builtin_add_overflow(sum, line->value, &sum) ||
		    (line->before != STACKLIST_NONE && __builtin_add_overflow(before, line->before, &before)))
			return -ERANGE;
	}
	/* Differences are signed. */
	if (sum > INT64_MAX || before > INT64_MAX)
		return -ERANGE;
	*ret = sum;
	return 0;
}

/* --- addresses in names --- */

/* The name without its addresses; NULL: it has none. Caller frees. */
static char *strip_name(const char *name)
{
	struct buf b = { 0 };
	const char *from = name, *s = name;

	while ((s = strstr(s, "0x"))) {
		s += 2;
		if (!isxdigit((unsigned char)*s))
			continue;
		buf_add(&b, from, s - from);
		buf_puts(&b, "...");
		while (isxdigit((unsigned char)*s))
			s++;
		from = s;
	}
	if (b.n)
		buf_puts(&b, from);
	return b.data;
}

void stacklist_strip_hex(struct stacklist *l)
{
	size_t names = l->names.n;
	_cleanup_free_ uint32_t *name_of = mem_alloc(names * sizeof(*name_of));
	_cleanup_free_ uint32_t *node_of = mem_alloc(l->nodes.n * sizeof(*node_of));
	struct profile_nodes stripped;

	for (size_t i = 0; i < names; i++) {
		_cleanup_free_ char *plain = strip_name(strtab_get(&l->names, i));

		name_of[i] = plain ? strtab_add(&l->names, plain) : i;
	}
	nodes_init(&stripped);
	for (size_t i = 1; i < l->nodes.n; i++)
		node_of[i] =
			nodes_put(&stripped, node_of[l->nodes.v[i].parent], name_of[l->nodes.v[i].frame]);
	for (size_t i = 0; i < l->lines.n; i++) {
		l->lines.v[i].first = name_of[l->lines.v[i].first];
		l->lines.v[i].stack = node_of[l->lines.v[i].stack];
	}
	nodes_done(&l->nodes);
	l->nodes = stripped;
}

/* --- order --- */

/*
 * Sorted as text, a line that ends at a function comes where "name 123" belongs,
 * and lines that go on below it where "name;" does: between the two may stand
 * other functions ("name2"). So each name has two keys.
 */
enum key_kind { KEY_ENDS, KEY_GOES_ON };
static const char *const key_ends[] = { " 0", ";" };

struct key {
	const char *name;
	uint32_t length, id; /* id: 2 * name + kind */
};

static inline int key_char(const struct key *k, uint32_t at)
{
	if (at < k->length)
		return (unsigned char)k->name[at];
	at -= k->length;
	return at < 2 ? (unsigned char)key_ends[k->id & 1][at] : 0;
}

static void swap_keys(struct key *a, struct key *b)
{
	struct key t = *a;

	*a = *b;
	*b = t;
}

/*
 * A quicksort by one character at a time: equal keys go on with the next
 * character, so that long common prefixes (paths of crates) are compared once.
 */
static void sort_keys(struct key *k, size_t n, uint32_t at)
{
	while (n > 1) {
		size_t less = 0, i = 0, more = n, equal;
		int pivot = key_char(&k[n / 2], at);

		while (i < more) {
			int c = key_char(&k[i], at);

			if (c < pivot)
				swap_keys(&k[less++], &k[i++]);
			else if (c > pivot)
				swap_keys(&k[i], &k[--more]);
			else
				i++;
		}
		equal = more - less;
		/* The largest part is the loop's, so that the recursion is never deep. */
		if (equal >= less && equal >= n - more) {
			sort_keys(k, less, at);
			sort_keys(k + more, n - more, at);
			if (!pivot)
				return;
			k += less;
			n = equal;
			at++;
			continue;
		}
		if (pivot)
			sort_keys(k + less, equal, at + 1);
		if (less > n - more) {
			sort_keys(k + more, n - more, at);
			n = less;
		} else {
			sort_keys(k, less, at);
			k += more;
			n -= more;
		}
	}
}

uint32_t *stacklist_rank(const struct stacklist *l)
{
	size_t n = 2 * l->names.n;
	_cleanup_free_ struct key *keys = mem_alloc(n * sizeof(*keys));
	uint32_t *rank = mem_alloc(n * sizeof(*rank));

	for (size_t i = 0; i < n; i++) {
		const char *name = strtab_get(&l->names, i / 2);

		keys[i] = (struct key){ name, strlen(name), i };
	}
	sort_keys(keys, n, 0);
	for (size_t i = 0; i < n; i++)
		rank[keys[i].id] = i;
	return rank;
}

/* The items sorted below a node: its children (by number), and the lines that end at one (after all
 * nodes). */
struct items {
	const struct stacklist *l;
	uint32_t *rank;
};

static uint32_t item_rank(const struct items *t, size_t i)
{
	const struct profile_nodes *nodes = &t->l->nodes;

	if (i < nodes->n)
		return t->rank[2 * nodes->v[i].frame + KEY_GOES_ON];
	return t->rank[2 * nodes->v[t->l->lines.v[i - nodes->n].stack].frame + KEY_ENDS];
}

static uint32_t item_parent(const struct items *t, size_t i)
{
	const struct profile_nodes *nodes = &t->l->nodes;

	return nodes->v[i < nodes->n ? i : t->l->lines.v[i - nodes->n].stack].parent;
}

/* Returns whether i takes part in the order: not node 0, nor lines without any frame. */
static bool is_item(const struct items *t, size_t i)
{
	return i && (i < t->l->nodes.n || t->l->lines.v[i - t->l->nodes.n].stack);
}

/* All items by rank, a counting sort. Caller frees. */
static uint32_t *sort_items(const struct items *t, size_t n, size_t *ret_n)
{
	_cleanup_free_ uint32_t *start = mem_alloc((2 * t->l->names.n + 1) * sizeof(*start));
	uint32_t *order = mem_alloc((n + 1) * sizeof(*order));

	for (size_t i = 0; i < n; i++)
		if (is_item(t, i))
			start[item_rank(t, i) + 1]++;
	for (size_t i = 1; i <= 2 * t->l->names.n; i++)
		start[i] += start[i - 1];
	*ret_n = start[2 * t->l->names.n];
	for (size_t i = 0; i < n; i++)
		if (is_item(t, i))
			order[start[item_rank(t, i)]++] = i;
	return order;
}

uint32_t *stacklist_sort(const struct stacklist *l)
{
	const uint32_t none = UINT32_MAX;
	struct items t = { l, stacklist_rank(l) };
	size_t n = l->nodes.n + l->lines.n, placed, count = 0;
	_cleanup_free_ uint32_t *order = sort_items(&t, n, &placed);
	_cleanup_free_ uint32_t *head = mem_alloc(l->nodes.n * sizeof(*head));
	_cleanup_free_ uint32_t *next = mem_alloc((n + 1) * sizeof(*next));
	uint32_t *result = mem_alloc((l->lines.n + 1) * sizeof(*result));
	uint32_t at, parent = 0;

	memset(head, 0xff, l->nodes.n * sizeof(*head));
	for (size_t i = placed; i-- > 0;) {
		uint32_t up = item_parent(&t, order[i]);

		next[order[i]] = head[up];
		head[up] = order[i];
	}
	for (size_t i = 0; i < l->lines.n; i++)
		if (!l->lines.v[i].stack)
			result[count++] = i;
	for (at = head[0]; at != none || parent;) {
		if (at == none) {
			at = next[parent];
			parent = l->nodes.v[parent].parent;
		} else if (at >= l->nodes.n) {
			result[count++] = at - l->nodes.n;
			at = next[at];
		} else {
			parent = at;
			at = head[at];
		}
	}
	free(t.rank);
	return result;
}
