#include "cmd/serve/fleet.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/reading/input.h"
#include "cmd/reading/storeargs.h"
#include "fleet/clickhouse.h"
#include "fleet/listing.h"
#include "fleet/map.h"
#include "fleet/storeurl.h"
#include "serve/site.h"

static const uint64_t second_ns = 1000000000, ms_ns = 1000000;

struct fleet {
	char *address;             /* with user and password */
	uint64_t from_ns, to_ns;   /* that the page shows first; 0 = not said */
	struct clickhouse *client; /* of the thread that asks */
	volatile sig_atomic_t stop;
};

int fleet_new(const char *address, struct fleet **ret, struct err *err)
{
	struct fleet *f = mem_alloc(sizeof(*f));
	struct storeurl url;
	int r = storeurl_parse(address, clock_wall_ns(), &url, err);

	f->address = mem_strdup(address);
	f->from_ns = url.from_ns;
	f->to_ns = url.to_ns;
	if (!strstr(address, "timeout="))
		url.timeout_ms = FLEET_TIMEOUT_MS;
	if (!r)
		r = clickhouse_open(&url, &f->client, err);
	storeurl_done(&url);
	if (r) {
		fleet_free(f);
		return r;
	}
	clickhouse_stop_on(f->client, &f->stop);
	*ret = f;
	return 0;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	clickhouse_close(f->client);
	free(f->address);
	free(f);
}

/* --- questions --- */

static int take_time(const char *text, const char *name, uint64_t otherwise, uint64_t *ret, struct err *err)
{
	int r = 0;

	*ret = otherwise;
	if (text)
		r = storeurl_time(text, clock_wall_ns(), ret, err);
	return r ? err_prefix(err, "%s", name) : 0;
}

/* The time of a question: by default the last day. */
static int take_times(const struct site_question *q, uint64_t *ret_from, uint64_t *ret_to, struct err *err)
{
	uint64_t now = clock_wall_ns();
	int r = take_time(q->to, "to", now, ret_to, err);

	if (!r)
		r = take_time(q->from, "from", *ret_to > 86400 * second_ns ? *ret_to - 86400 * second_ns : 0, ret_from, err);
	if (!r && *ret_from >= *ret_to)
		r = err_set(err, EINVAL, "the time ends before it begins");
	return r;
}

static int take_options(const struct site_question *q, struct fleetmap_options *o, struct err *err)
{
	uint64_t slot_ms = 0;
	int r = take_times(q, &o->from_ns, &o->to_ns, err);

	if (r)
		return r;
	o->figure = q->figure ? fleetmap_figure(q->figure) : FLEETMAP_CPU;
	if (o->figure == FLEETMAP_FIGURES)
		return err_set(err, EINVAL, "there is no figure '%.40s'", q->figure);
	if (q->slot && str_parse_uint(q->slot, 1000, 366ULL * 86400 * 1000, &slot_ms))
		return err_set(err, EINVAL, "slot is a number of milliseconds");
	o->slot_ns = slot_ms * ms_ns;
	o->name = q->name;
	o->target = q->target;
	return 0;
}

/* --- answers --- */

static void put_map(const struct fleetmap *m, const struct fleetmap_options *o, uint64_t took_ns, struct buf *out)
{
	size_t shown = m->slots ? MIN(m->nodes.n, FLEET_CELLS / m->slots) : 0;
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "figure", fleetmap_word(o->figure));
	json_put_string(&j, "unit", fleetmap_unit(o->figure));
	json_put_uints(&j, { "from_ms", m->from_ns / ms_ns }, { "slot_ms", m->slot_ns / ms_ns }, { "slots", m->slots }, { "took_ms", took_ns / ms_ns },
		       { "all_nodes", m->nodes.n }, { "away", m->away });
	json_put_string(&j, "away_text", m->away_text);
	json_put_real(&j, "least", m->least, 6);
	json_put_real(&j, "most", m->most, 6);
	json_open_array(&j, "nodes");
	for (size_t i = 0; i < shown; i++) {
		json_open_row(&j, 0);
		json_put_string(&j, "target", m->nodes.v[i].target);
		json_open_array(&j, "values");
		for (size_t k = 0; k < m->slots; k++)
			json_put_real(&j, NULL, m->nodes.v[i].values[k], 6);
		json_close(&j);
		json_close(&j);
	}
	json_close(&j);
	json_end_line(&j);
}

static int ask_map(struct fleet *f, const struct site_question *q, struct buf *out, struct err *err)
{
	struct fleetmap_options o = { 0 };
	struct fleetmap m = { 0 };
	uint64_t began = clock_mono_ns();
	int r = take_options(q, &o, err);

	if (!r)
		r = fleetmap_make(&m, f->client, &o, err);
	if (!r)
		put_map(&m, &o, clock_mono_ns() - began, out);
	fleetmap_done(&m);
	return r;
}

static void put_texts(struct json *j, const char *key, const struct listing_texts *t)
{
	json_put_strings(j, key, (const char *const *)t->list.v, t->list.n);
}

static int ask_nodes(struct fleet *f, const struct site_question *q, struct buf *out, struct err *err)
{
	struct listing l = { 0 };
	uint64_t from, to;
	int r = take_times(q, &from, &to, err);

	if (!r)
		r = listing_make_between(&l, f->client, from, to, err);
	if (!r) {
		struct json j = json_begin(out);

		json_open_array(&j, NULL);
		for (size_t i = 0; i < l.list.n && i < FLEETMAP_NODES; i++) {
			const struct listing_target *t = &l.list.v[i];

			json_open_row(&j, 0);
			json_put_string(&j, "target", t->name);
			json_put_uints(&j, { "windows", t->windows }, { "duration_ms", t->duration_ns / ms_ns }, { "first_ms", t->first_ns / ms_ns },
				       { "last_ms", t->last_ns / ms_ns });
			put_texts(&j, "hosts", &t->hosts);
			put_texts(&j, "releases", &t->releases);
			put_texts(&j, "labels", &t->labels);
			json_close(&j);
		}
		json_end_line(&j);
	}
	listing_done(&l);
	return r;
}

static int ask_choices(struct fleet *f, const struct site_question *q, struct buf *out, struct err *err)
{
	struct fleetmap_options o = { 0 };
	struct fleetmap_choices list = { 0 };
	int r = take_options(q, &o, err);

	if (!r && !fleetmap_wants_name(o.figure))
		r = err_set(err, EINVAL, "there is nothing to choose from of %s", fleetmap_word(o.figure));
	if (!r)
		r = fleetmap_choose(&list, f->client, &o, err);
	if (!r) {
		struct json j = json_begin(out);

		json_open_array(&j, NULL);
		for (size_t i = 0; i < list.list.n; i++) {
			json_open_row(&j, 0);
			json_put_string(&j, "name", list.list.v[i].name);
			json_put_real(&j, "share", list.list.v[i].share, 6);
			json_close(&j);
		}
		json_end_line(&j);
	}
	fleetmap_choices_done(&list);
	return r;
}

static int ask(void *context, const struct site_question *q, struct buf *ret, struct err *err)
{
	struct fleet *f = context;

	f->stop = 0;
	switch (q->topic) {
	case SITE_MAP:
		return ask_map(f, q, ret, err);
	case SITE_NODES:
		return ask_nodes(f, q, ret, err);
	case SITE_CHOICES:
		return ask_choices(f, q, ret, err);
	}
	return -EINVAL;
}

static void cancel(void *context)
{
	struct fleet *f = context;

	f->stop = 1;
}

/* Times are whole and of the calendar, so that the same page is the same capture. */
static int place(void *context, const struct site_place *place, char **ret, struct err *err)
{
	struct fleet *f = context;
	char from_text[32], to_text[32];
	uint64_t from, to;
	int r = take_time(place->from, "from", 0, &from, err);
	char *path;

	if (!r)
		r = take_time(place->to, "to", clock_wall_ns(), &to, err);
	if (!r && (!place->target || from >= to))
		r = err_set(err, EINVAL, place->target ? "the time ends before it begins" : "no target is named");
	if (r)
		return r;
	snprintf(from_text, sizeof(from_text), "%llu", (unsigned long long)(from / second_ns));
	snprintf(to_text, sizeof(to_text), "%llu", (unsigned long long)(to / second_ns));
	path = storeargs_address(f->address, &(struct storeargs_place){ .target = place->target, .from = from_text, .to = to_text,
									.exact = true });
	/* A page that opens waits for many answers. */
	if (!strstr(path, "timeout=")) {
		struct buf with = { 0 };

		buf_puts(&with, path);
		storeurl_add(&with, "timeout", "20s");
		free(path);
		path = with.data;
	}
	input_hide(path);
	*ret = path;
	return 0;
}

void fleet_put_times(const struct fleet *f, struct buf *out)
{
	if (f->from_ns)
		buf_printf(out, "#from=%llu", (unsigned long long)(f->from_ns / second_ns));
	if (f->to_ns)
		buf_printf(out, "%cto=%llu", f->from_ns ? '&' : '#', (unsigned long long)(f->to_ns / second_ns));
}

struct site_fleet fleet_for_site(struct fleet *f)
{
	return (struct site_fleet){ ask, cancel, place, f };
}
