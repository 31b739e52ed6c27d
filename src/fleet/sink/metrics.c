#include "fleet/sink/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "fleet/sink/sinktypes.h"
#include "fleet/sink/windowfigures.h"

static const uint64_t hour_ns = 3600ULL * 1000000000;

/* --- the table --- */

enum kind { COUNTER, GAUGE, HISTOGRAM };

static const struct metric {
	const char *name;
	enum kind kind;
	const char *help;
	/* Of a target: where in its figures the first one is, how many there are, and by which label they differ. Of the agent: 0. */
	size_t first, count;
	const char *label;
	const char *(*value)(size_t i); /* of the label */
} table[] = {
#define ONE(field) offsetof(struct windowfigures, field) / sizeof(double), 1, NULL, NULL
#define MANY(field, n, label, value) offsetof(struct windowfigures, field) / sizeof(double), n, label, value
	{ "gasflame_time_seconds_total", COUNTER, "Time of all threads by what it was: on a CPU (cpu), ready without one (queue), or a cause of waiting.",
	  MANY(state, WINDOWFIGURES_STATES, "state", windowfigures_state) },
	{ "gasflame_recorded_seconds_total", COUNTER, "Wall time of the windows that these figures are from.", ONE(recorded) },
	{ "gasflame_cpu_seconds_total", COUNTER, "CPU time of the target, as the kernel accounts it.", ONE(cpu) },
	{ "gasflame_memory_bytes", GAUGE, "Resident memory by part; the parts add up to all of it.",
	  MANY(part, WINDOWFIGURES_PARTS, "part", windowfigures_part) },
	{ "gasflame_memory_resident_bytes", GAUGE, "Resident memory of the target.", ONE(resident) },
	{ "gasflame_memory_used_bytes", GAUGE, "Memory of the target's control group, which its limit is about.", ONE(used) },
	{ "gasflame_memory_limit_bytes", GAUGE, "Limit of the control group's memory.", ONE(limit) },
	{ "gasflame_block_seconds", HISTOGRAM, "Wall time of blocks.", MANY(block_le, WINDOWFIGURES_BUCKETS, NULL, NULL) },
	{ "gasflame_blocks_total", COUNTER, "Blocks.", ONE(blocks) },
	{ "gasflame_gas_total", COUNTER, "Gas of the blocks.", ONE(gas) },
	{ "gasflame_transactions_total", COUNTER, "Transactions of the blocks.", ONE(transactions) },
	{ "gasflame_samples_total", COUNTER, "Samples of all events.", ONE(samples) },
	{ "gasflame_samples_lost_total", COUNTER, "Samples that found no room in a buffer.", ONE(lost) },
	{ "gasflame_stacks_complete_ratio", GAUGE, "Share of the last window's stacks that are whole.", ONE(complete) },
	{ "gasflame_window_end_timestamp_seconds", GAUGE, "End of the last window.", ONE(end) },
#undef ONE
#undef MANY
	/* --- of the agent --- */
	{ "gasflame_agent_cpu_seconds_total", COUNTER, "CPU time of the agent's processes.", 0, 0, NULL, NULL },
	{ "gasflame_agent_bpf_seconds_total", COUNTER, "Run time of the agent's BPF programs.", 0, 0, NULL, NULL },
	{ "gasflame_agent_resident_bytes", GAUGE, "Resident memory of the agent's processes.", 0, 0, NULL, NULL },
	{ "gasflame_agent_windows_total", COUNTER, "Windows that were recorded.", 0, 0, NULL, NULL },
	{ "gasflame_agent_windows_lost_total", COUNTER, "Windows that no sink will get, by the reason.", 0, 0, NULL, NULL },
	{ "gasflame_agent_spool_bytes", GAUGE, "Bytes of the windows that wait for a sink.", 0, 0, NULL, NULL },
	{ "gasflame_agent_spool_limit_bytes", GAUGE, "Bytes that may wait.", 0, 0, NULL, NULL },
	{ "gasflame_agent_spool_windows", GAUGE, "Windows that wait for a sink.", 0, 0, NULL, NULL },
	{ "gasflame_agent_spool_dropped_total", COUNTER, "Windows that were dropped from the spool for want of room.", 0, 0, NULL, NULL },
	{ "gasflame_agent_sink_delivered_total", COUNTER, "Windows that a sink has.", 0, 0, NULL, NULL },
	{ "gasflame_agent_sink_failures_total", COUNTER, "Attempts to deliver a window that failed.", 0, 0, NULL, NULL },
	{ "gasflame_agent_sink_refused_total", COUNTER, "Windows that a sink refused for good.", 0, 0, NULL, NULL },
	{ "gasflame_agent_sink_dropped_total", COUNTER, "Windows that were dropped before a sink had them.", 0, 0, NULL, NULL },
	{ "gasflame_agent_sink_waiting_windows", GAUGE, "Windows that wait for a sink.", 0, 0, NULL, NULL },
	{ "gasflame_agent_sink_last_success_timestamp_seconds", GAUGE, "When a sink took a window last.", 0, 0, NULL, NULL },
	{ "gasflame_agent_target_up", GAUGE, "1: the target is recorded; 0: it is not.", 0, 0, NULL, NULL },
	{ "gasflame_agent_target_level", GAUGE, "How much of a recording is left out to keep the budget; 0: nothing.", 0, 0, NULL, NULL },
};

struct target {
	char *name;
	struct sinklabels labels; /* sorted, without the table's own */
	struct windowfigures figures;
	uint64_t start_wall_ns, sequence, seen_mono_ns;
};

struct figure {
	const struct metric *metric;
	struct sinklabels labels;
	double value;
	uint64_t set_mono_ns;
};

struct metrics {
	VEC(struct target) targets;
	VEC(struct figure) figures;
};

struct metrics *metrics_new(void)
{
	return mem_alloc(sizeof(struct metrics));
}

static void target_done(struct target *t)
{
	free(t->name);
	sinklabels_done(&t->labels);
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	vec_done_each(&m->targets, e, target_done(e));
	vec_done_each(&m->figures, e, sinklabels_done(&e->labels));
	free(m);
}

static void drop_target(struct metrics *m, size_t i)
{
	target_done(&m->targets.v[i]);
	memmove(&m->targets.v[i], &m->targets.v[i + 1], (--m->targets.n - i) * sizeof(*m->targets.v));
}

static bool is_old(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns && now_ns - then_ns > hour_ns;
}

void metrics_expire(struct metrics *m, uint64_t now_mono_ns)
{
	for (size_t i = m->targets.n; i--;)
		if (is_old(m->targets.v[i].seen_mono_ns, now_mono_ns))
			drop_target(m, i);
	for (size_t i = m->figures.n; i--;)
		if (m->figures.v[i].labels.list.n && is_old(m->figures.v[i].set_mono_ns, now_mono_ns)) {
			sinklabels_done(&m->figures.v[i].labels);
			memmove(&m->figures.v[i], &m->figures.v[i + 1], (--m->figures.n - i) * sizeof(*m->figures.v));
		}
}

/* --- windows --- */

static bool is_same(const struct sinklabels *a, const struct sinklabels *b)
{
	if (a->list.n != b->list.n)
		return false;
	for (size_t i = 0; i < a->list.n; i++)
		if (strcmp(a->list.v[i].name, b->list.v[i].name) || strcmp(a->list.v[i].value, b->list.v[i].value))
			return false;
	return true;
}

static struct target *find_target(const struct metrics *m, const char *name)
{
	for (size_t i = 0; i < m->targets.n; i++)
		if (!strcmp(m->targets.v[i].name, name))
			return &m->targets.v[i];
	return NULL;
}

static struct target *add_target(struct metrics *m, const char *name)
{
	if (m->targets.n >= METRICS_TARGETS) {
		size_t oldest = 0;

		for (size_t i = 1; i < m->targets.n; i++)
			if (m->targets.v[i].seen_mono_ns < m->targets.v[oldest].seen_mono_ns)
				oldest = i;
		drop_target(m, oldest);
	}
	vec_push(&m->targets, (struct target){ .name = mem_strdup(name) });
	return &m->targets.v[m->targets.n - 1];
}

void metrics_add_window(struct metrics *m, const struct sink_window *w)
{
	struct sinklabels labels = { 0 };
	struct target *t;

	metrics_expire(m, clock_mono_ns());
	t = find_target(m, w->target);
	if (t && w->start_wall_ns <= t->start_wall_ns && w->sequence <= t->sequence)
		return;
	if (!t)
		t = add_target(m, w->target);
	sinklabels_add_window(&labels, w, "target");
	sinklabels_sort(&labels);
	if (!is_same(&labels, &t->labels)) {
		sinklabels_done(&t->labels);
		t->labels = labels;
		windowfigures_init(&t->figures);
	} else {
		sinklabels_done(&labels);
	}
	t->start_wall_ns = w->start_wall_ns;
	t->sequence = w->sequence;
	t->seen_mono_ns = clock_mono_ns();
	windowfigures_add(&t->figures, w);
}

int metrics_set(struct metrics *m, const char *name, const char *const *labels, double value)
{
	const struct metric *metric = NULL;
	struct figure new = { .value = value, .set_mono_ns = clock_mono_ns() };

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (!table[i].count && !strcmp(table[i].name, name))
			metric = &table[i];
	if (!metric)
		return -EINVAL;
	metrics_expire(m, new.set_mono_ns);
	new.metric = metric;
	for (size_t i = 0; labels && labels[i]; i++) {
		size_t n = strcspn(labels[i], "=");
		_cleanup_free_ char *key = mem_strndup(labels[i], n);

		sinklabels_add(&new.labels, key, labels[i][n] ? labels[i] + n + 1 : "");
	}
	sinklabels_sort(&new.labels);
	for (size_t i = 0; i < m->figures.n; i++) {
		struct figure *f = &m->figures.v[i];

		if (f->metric == metric && is_same(&f->labels, &new.labels)) {
			f->value = value;
			f->set_mono_ns = new.set_mono_ns;
			sinklabels_done(&new.labels);
			return 0;
		}
	}
	if (m->figures.n >= METRICS_FIGURES) {
		sinklabels_done(&new.labels);
		return -ENOSPC;
	}
	vec_push(&m->figures, new);
	return 0;
}

/* --- all series --- */

/* The target's labels and one more, which comes first where names are the same. */
static void labels_with(struct sinklabels *out, const struct sinklabels *labels, const char *name, const char *value)
{
	if (name)
		sinklabels_add(out, name, value);
	for (size_t i = 0; i < labels->list.n; i++)
		sinklabels_add(out, labels->list.v[i].name, labels->list.v[i].value);
	sinklabels_sort(out);
}

static void each_one(const struct target *t, const char *name, const char *label, const char *value, double number, metrics_fn *fn, void *context)
{
	struct sinklabels labels = { 0 };

	labels_with(&labels, &t->labels, label, value);
	fn(context, name, &labels, number);
	sinklabels_done(&labels);
}

static void each_bucket(const struct metric *x, const struct target *t, metrics_fn *fn, void *context)
{
	_cleanup_free_ char *bucket = mem_printf("%s_bucket", x->name), *sum = mem_printf("%s_sum", x->name), *count = mem_printf("%s_count", x->name);
	double so_far = 0;
	char le[32];

	for (size_t i = 0; i < WINDOWFIGURES_BUCKETS; i++) {
		so_far += t->figures.block_le[i];
		if (isinf(windowfigures_le[i]))
			snprintf(le, sizeof(le), "+Inf");
		else
			snprintf(le, sizeof(le), "%g", windowfigures_le[i]);
		each_one(t, bucket, "le", le, so_far, fn, context);
	}
	each_one(t, sum, NULL, NULL, t->figures.block_sum, fn, context);
	each_one(t, count, NULL, NULL, so_far, fn, context);
}

/* What was not recorded is NAN, and no series. */
static void each_of_target(const struct metric *x, const struct target *t, metrics_fn *fn, void *context)
{
	const double *values = (const double *)&t->figures + x->first;

	if (x->kind == HISTOGRAM) {
		if (!isnan(t->figures.block_sum))
			each_bucket(x, t, fn, context);
		return;
	}
	for (size_t i = 0; i < x->count; i++)
		if (!isnan(values[i]))
			each_one(t, x->name, x->label, x->value ? x->value(i) : NULL, values[i], fn, context);
}

static void each_of_agent(const struct metrics *m, const struct metric *x, metrics_fn *fn, void *context)
{
	for (size_t i = 0; i < m->figures.n; i++)
		if (m->figures.v[i].metric == x)
			fn(context, x->name, &m->figures.v[i].labels, m->figures.v[i].value);
}

void metrics_each(const struct metrics *m, const char *target, metrics_fn *fn, void *context)
{
	const struct target *t = target ? find_target(m, target) : NULL;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!target)
			each_of_agent(m, &table[i], fn, context);
		else if (t && table[i].count)
			each_of_target(&table[i], t, fn, context);
	}
}

/* --- the page --- */

struct page {
	struct buf *out;
	const struct metric *metric;
	bool begun;
};

/* The shortest decimal that is the same number. */
static void put_number(struct buf *out, double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_puts(out, isinf(value) ? value < 0 ? "-Inf" : "+Inf" : isnan(value) ? "NaN" : text);
}

static void put_quoted(struct buf *out, const char *value)
{
	buf_putc(out, '"');
	for (; *value; value++)
		if (*value == '\n')
			buf_puts(out, "\\n");
		else if (*value == '"' || *value == '\\')
			buf_printf(out, "\\%c", *value);
		else
			buf_putc(out, *value);
	buf_putc(out, '"');
}

static void put_line(void *context, const char *name, const struct sinklabels *labels, double value)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	struct page *p = context;

	if (!p->begun)
		buf_printf(p->out, "# HELP %s %s\n# TYPE %s %s\n", p->metric->name, p->metric->help, p->metric->name, kinds[p->metric->kind]);
	p->begun = true;
	buf_puts(p->out, name);
	for (size_t i = 0; i < labels->list.n; i++) {
		buf_printf(p->out, "%s%s=", i ? "," : "{", labels->list.v[i].name);
		put_quoted(p->out, labels->list.v[i].value);
	}
	buf_puts(p->out, labels->list.n ? "} " : " ");
	put_number(p->out, value);
	buf_putc(p->out, '\n');
}

void metrics_put_text(const struct metrics *m, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct page p = { out, &table[i], false };

		each_of_agent(m, &table[i], put_line, &p);
		for (size_t k = 0; table[i].count && k < m->targets.n; k++)
			each_of_target(&table[i], &m->targets.v[k], put_line, &p);
	}
}
