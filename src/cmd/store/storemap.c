/* storemap.c - `store map`: a figure of all nodes over time, as a line for each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/store/store.h"
#include "fleet/clickhouse.h"
#include "fleet/map.h"
#include "fleet/storeurl.h"

static void print_json(const struct fleetmap *m, const struct fleetmap_options *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct json j = json_begin(&b);

	json_open_object(&j, NULL);
	json_put_string(&j, "figure", fleetmap_word(o->figure));
	json_put_string(&j, "unit", fleetmap_unit(o->figure));
	json_put_uints(&j, { "from_wall_ns", m->from_ns }, { "slot_ns", m->slot_ns }, { "slots", m->slots }, { "shards_away", m->away },
		       { "rolled_hours", m->rolled_hours }, { "raw_hours", m->raw_hours });
	json_open_array(&j, "nodes");
	for (size_t i = 0; i < m->nodes.n; i++) {
		json_open_row(&j, 1);
		json_put_string(&j, "target", m->nodes.v[i].target);
		json_open_array(&j, "values");
		for (size_t k = 0; k < m->slots; k++)
			json_put_real(&j, NULL, m->nodes.v[i].values[k], 9);
		json_close(&j);
		json_close_line(&j, 1);
	}
	json_close(&j);
	json_end_line(&j);
	plain_put(b.data, b.n);
}

static const char *value_text(char out[32], const struct fleetmap_options *o, double v)
{
	const char *unit = fleetmap_unit(o->figure);

	if (isnan(v))
		snprintf(out, 32, "-");
	else if (!strcmp(unit, "ns"))
		str_duration(out, v);
	else if (!strcmp(unit, "bytes"))
		str_bytes(out, v);
	else
		snprintf(out, 32, strcmp(unit, "share") ? "%.2f" : "%.2f %%", strcmp(unit, "share") ? v : 100 * v);
	return out;
}

/* The darker, the more; a slot without a value is blank. */
static void put_line(struct buf *b, const struct fleetmap *m, const struct fleetmap_node *n)
{
	static const char *const steps[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	double range = m->most - m->least;

	for (size_t k = 0; k < m->slots; k++) {
		double v = n->values[k];

		buf_puts(b, isnan(v) ? " " : steps[range > 0 ? MIN((int)((v - m->least) / range * 8), 7) : 0]);
	}
}

static void print_text(const struct fleetmap *m, const struct fleetmap_options *o)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int widest = strlen("TARGET");
	char right[32], value[32];

	for (size_t i = 0; i < m->nodes.n; i++)
		widest = MAX(widest, MIN((int)strlen(m->nodes.v[i].target), 40));
	buf_printf(&b, "%-*s  %10s  %10s  %s\n", widest, "TARGET", "MEAN", "LARGEST", "EACH");
	for (size_t i = 0; i < m->nodes.n; i++) {
		const struct fleetmap_node *n = &m->nodes.v[i];
		double sum = 0, most = NAN;
		size_t known = 0, at = b.n;

		for (size_t k = 0; k < m->slots; k++)
			if (!isnan(n->values[k])) {
				sum += n->values[k];
				most = fmax(most, n->values[k]);
				known++;
			}
		plain_add(&b, n->target);
		buf_printf(&b, "%*s  ", MAX(widest - (int)(b.n - at), 0), "");
		buf_printf(&b, "%s  ", str_right(right, value_text(value, o, known ? sum / known : NAN), 10));
		buf_printf(&b, "%s  ", str_right(right, value_text(value, o, most), 10));
		put_line(&b, m, n);
		buf_putc(&b, '\n');
	}
	plain_put(b.data, b.n);
}

static int take_times(struct fleetmap_options *o, const char *from, const char *to, struct err *err)
{
	uint64_t now = clock_wall_ns();
	int r = from ? storeurl_time(from, now, &o->from_ns, err) : 0;

	return !r && to ? storeurl_time(to, now, &o->to_ns, err) : r;
}

static int map(const struct command *c, int argc, char **argv)
{
	const char *figure = "cpu", *from = NULL, *to = NULL;
	struct fleetmap_options o = { 0 };
	bool json = false;
	const struct option_spec options[] = {
		{ 0, "figure", OPTION_STRING, &figure, "WHAT", "block-mean, block-p95, block-max, cpu, cause, function, self or rss; by default cpu" },
		{ 0, "name", OPTION_STRING, &o.name, "NAME", "of the cause (lock, \"disk read\") or of the function, as reports have it" },
		{ 0, "event", OPTION_STRING, &o.event, "EVENT", "of a function's share: wait; by default cpu" },
		{ 0, "target", OPTION_STRING, &o.target, "GLOB", "only these: 'reth-*'" },
		{ 0, "from", OPTION_STRING, &from, "TIME", "from when on, -6h or 2026-11-17 10:00; by default a day before the end" },
		{ 0, "to", OPTION_STRING, &to, "TIME", "until when; by default now" },
		{ 0, "slot", OPTION_DURATION, &o.slot_ns, "TIME", "how long a cell is, a multiple of 30s; by default as fits" },
		{ 0, "json", OPTION_FLAG, &json, .help = "an object with all cells" },
		{ 0 },
	};
	_cleanup_(clickhouse_closep) struct clickhouse *client = NULL;
	struct fleetmap m = { 0 };
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	o.figure = fleetmap_figure(figure);
	if (argc - first != 1 || o.figure == FLEETMAP_FIGURES || (fleetmap_wants_name(o.figure) && !o.name)) {
		log_error("store map wants a --figure that is known, the --name of a cause or a function, and the address of one store (gasflame store map "
			  "--help)");
		return EXIT_USAGE;
	}
	r = take_times(&o, from, to, &err);
	if (!r)
		r = store_open(argv[first], &client, &err);
	if (!r)
		r = fleetmap_make(&m, client, &o, &err);
	if (!r && m.away)
		log_warn("%u server%s did not answer, whose nodes are missing: %s", m.away, m.away == 1 ? "" : "s", m.away_text);
	if (!r && json)
		print_json(&m, &o);
	else if (!r && m.nodes.n)
		print_text(&m, &o);
	else if (!r)
		log_info("the store has nothing of that in this time: `gasflame store ls` lists what it has");
	fleetmap_done(&m);
	return r ? command_failed(&err) : EXIT_OK;
}

const struct command command_store_map = {
	.name = "store map",
	.summary = "show a figure of all nodes over time",
	.usage = "[options] URL",
	.describe = "A line for each target of the store and a cell for each slot of time: time of blocks, CPU time, resident memory, or the share of a cause or "
		    "a function. The store adds up; functions come from the roll-ups of `store rollup`, where there are none from the samples. A server "
		    "that is away is a warning. URL: gasflame store --help.",
	.example = "gasflame store map --figure block-p95 clickhouse://127.0.0.1:8123/gasflame\n"
		   "gasflame store map --figure function --name state_root --from -6h --target 'reth-*' clickhouse://127.0.0.1:8123/gasflame",
	.run = map,
	.connects = true,
};
