/*
 * pageseries.c - values over time in the head of a page.
 *
 * Series of tasks may have a hundred points a second, far more than a screen has columns: neighbours are joined until
 * PAGE_POINTS are left. All other series have a point a second or less, and stay as they are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "export/page/pagedata.h"
#include "export/report/cleantext.h"
#include "profile/keys.h"
#include "profile/profile.h"

struct points {
	VEC(struct profile_point) list;
};

enum join { JOIN_NONE, JOIN_SUM, JOIN_MOST };

/* How neighbours become one: amounts since the point before add up, of peaks the largest stays. */
static enum join join_of(const char *name)
{
	if (!strcmp(name, KEY_TASK_QUEUE) || !strcmp(name, KEY_TASK_POLLS) || !strcmp(name, KEY_TASK_BUSY))
		return JOIN_SUM;
	return !strcmp(name, KEY_TASK_LONGEST_POLL) ? JOIN_MOST : JOIN_NONE;
}

static int64_t joined(int64_t a, int64_t b, enum join how)
{
	int64_t sum;

	if (how == JOIN_MOST)
		return MAX(a, b);
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Joins neighbours in place. A joined point has the time of its last one, to which amounts reach. */
static void thin(struct points *of, enum join how)
{
	size_t each = (of->list.n + PAGE_POINTS - 1) / PAGE_POINTS, n = 0;

	if (each < 2 || how == JOIN_NONE)
		return;
	for (size_t i = 0; i < of->list.n; i++) {
		struct profile_point x = of->list.v[i];

		if (i % each)
			x.value = joined(of->list.v[--n].value, x.value, how);
		of->list.v[n++] = x;
	}
	of->list.n = n;
}

static void put_points(struct json *j, const struct points *of)
{
	json_open_array(j, "t");
	for (size_t i = 0; i < of->list.n; i++)
		json_put_uint(j, NULL, of->list.v[i].time_ns);
	json_close(j);
	json_open_array(j, "v");
	for (size_t i = 0; i < of->list.n; i++)
		json_put_int(j, NULL, of->list.v[i].value);
	json_close(j);
}

void page_series(struct json *j, const struct profile *p)
{
	struct points *of = mem_alloc((p->series.n + 1) * sizeof(*of));

	for (size_t i = 0; i < p->points.n; i++)
		if (p->points.v[i].series < p->series.n)
			vec_push(&of[p->points.v[i].series].list, p->points.v[i]);
	json_open_array(j, "series");
	for (size_t i = 0; i < p->series.n; i++) {
		const char *name = profile_str(p, p->series.v[i].name);

		thin(&of[i], join_of(name));
		json_open_object(j, NULL);
		cleantext_json(j, "name", name);
		cleantext_json(j, "unit", profile_str(p, p->series.v[i].unit));
		put_points(j, &of[i]);
		json_close_line(j, 0);
		vec_done(&of[i].list);
	}
	json_close_line(j, 0);
	free(of);
}
