#include "fleet/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"

static struct listing_target *find(struct listing *l, const char *name)
{
	for (size_t i = 0; i < l->list.n; i++)
		if (!strcmp(l->list.v[i].name, name))
			return &l->list.v[i];
	vec_push(&l->list, (struct listing_target){ .name = mem_strdup(name), .first_ns = UINT64_MAX });
	return &l->list.v[l->list.n - 1];
}

/* Adds the texts of a field that is an array, but for "". */
static void add_texts(struct listing_texts *to, const struct answer *a, size_t row, size_t column)
{
	for (size_t i = 0; i < answer_count(a, row, column); i++) {
		const char *text = answer_item_text(a, row, column, i);
		size_t at = 0;

		while (at < to->list.n && strcmp(to->list.v[at], text))
			at++;
		if (*text && at == to->list.n)
			vec_push(&to->list, mem_strdup(text));
	}
	vec_sort(&to->list, str_order);
}

static void texts_done(struct listing_texts *t)
{
	vec_done_each(&t->list, e, free(*e));
}

static void add_row(struct listing *l, const struct answer *a, size_t row)
{
	struct listing_target *t = find(l, answer_text(a, row, 0));
	uint64_t first = answer_u64(a, row, 3), last = answer_u64(a, row, 4);

	t->windows += answer_u64(a, row, 1);
	t->duration_ns += answer_u64(a, row, 2);
	t->first_ns = MIN(t->first_ns, first);
	t->last_ns = MAX(t->last_ns, last);
	t->shards++;
	add_texts(&t->hosts, a, row, 5);
	add_texts(&t->releases, a, row, 6);
	add_texts(&t->labels, a, row, 7);
}

static int by_name(const void *a, const void *b)
{
	const struct listing_target *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* where: " WHERE ..." of windows, or "". */
static int ask_shard(struct listing *l, struct clickhouse *c, unsigned shard, const char *where, struct err *err)
{
	_cleanup_free_ char *sql = mem_printf("SELECT target, count(), sum(duration_ns), min(start_ns), max(start_ns + duration_ns), "
					      "groupUniqArray(host), groupUniqArray(release), groupUniqArrayArray(labels) FROM windows WHERE "
					      "(window_id, attempt) IN (SELECT window_id, min(attempt) FROM windows%s GROUP BY window_id) "
					      "GROUP BY target ORDER BY target", where);
	struct answer a;
	int r = clickhouse_select(c, shard, sql, &a, err);

	for (size_t k = 0; !r && k < a.rows; k++)
		add_row(l, &a, k);
	answer_done(&a);
	return r;
}

int listing_make(struct listing *l, struct clickhouse *c, struct err *err)
{
	int r = 0;

	*l = (struct listing){ 0 };
	for (unsigned i = 0; !r && i < clickhouse_shards(c); i++)
		r = ask_shard(l, c, i, "", err);
	vec_sort(&l->list, by_name);
	return r;
}

int listing_make_between(struct listing *l, struct clickhouse *c, uint64_t from_ns, uint64_t to_ns, struct err *err)
{
	const uint64_t second_ns = 1000000000, day_ns = 86400 * second_ns;
	_cleanup_free_ char *where = mem_printf(" WHERE day >= toDate(%llu) AND day <= toDate(%llu) AND start >= toDateTime(%llu) AND "
						"start < toDateTime(%llu)", (unsigned long long)(from_ns / day_ns),
						(unsigned long long)(to_ns / day_ns), (unsigned long long)(from_ns / second_ns),
						(unsigned long long)(to_ns / second_ns));
	unsigned away = 0;
	int r = 0;

	*l = (struct listing){ 0 };
	for (unsigned i = 0; i < clickhouse_shards(c); i++) {
		r = ask_shard(l, c, i, where, err);
		if (r && r != -EIO && r != -ETIMEDOUT && r != -EAGAIN)
			return r;
		away += r != 0;
	}
	vec_sort(&l->list, by_name);
	return away == clickhouse_shards(c) ? r : 0;
}

void listing_done(struct listing *l)
{
	vec_done_each(&l->list, e, free(e->name); texts_done(&e->hosts); texts_done(&e->releases); texts_done(&e->labels));
}
