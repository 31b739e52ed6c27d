#include "analyze/blocks/blockruns.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/blocks/blocks.h"
#include "analyze/blocks/blocktally.h"
#include "bench/runs.h"
#include "analyze/select.h"
#include "analyze/subsystem/shares.h"
#include "base/err.h"
#include "base/text/str.h"
#include "profile/profile.h"

/* The figures, in their order. */
enum { WALL, CPU, ALLOCATION, QUEUE, LOCK, DISK, FAULT, NETWORK, WAIT, IDLE, TIMES };
static const char *const times[TIMES] = { "wall", "cpu",     "allocation", "queue", "lock",
					  "disk", "fault",   "network",	   "wait",  "idle" };

/* Events whose values are summed over all threads, on the path or not. */
static const struct {
	const char *event, *name, *unit;
} sums[] = {
	{ "alloc", "allocated", "bytes" },
	{ "major-faults", "major_faults", "count" },
	{ "minor-faults", "minor_faults", "count" },
};
enum { SUMS = ARRAY_LEN(sums) };

/* A stretch of time that becomes a row. */
struct stretch {
	uint64_t start_ns, end_ns;
	uint64_t last_ns; /* where the latest of it and those before ends */
	size_t row;
};

struct making {
	const struct profile *p;
	struct causes *c;
	struct runs *runs;
	uint32_t sum_events[SUMS], sum_columns[SUMS]; /* PROFILE_NONE: not recorded */
	struct classifier *subsystems;  /* NULL: none, or it is no node */
	uint32_t subsystem_columns[SUBSYSTEMS_MAX];
	uint32_t gas, rate;
	VEC(struct stretch) stretches; /* by start */
};

/* A column for each subsystem. One that is called like another figure says what it is. */
static void add_subsystem_columns(struct making *m)
{
	struct runs *r = m->runs;

	for (size_t i = 0; m->subsystems && i < m->subsystems->table->list.n; i++) {
		_cleanup_free_ char *key = subsystem_key(m->subsystems->table->list.v[i].name);
		_cleanup_free_ char *longer = mem_printf("subsystem_%s", key);

		m->subsystem_columns[i] =
			runs_add_metric(r, runs_find_metric(r, key) == UINT32_MAX ? key : longer, "s");
		r->metrics.v[m->subsystem_columns[i]].part = true;
	}
}

static void add_columns(struct making *m, bool gas)
{
	struct runs *r = m->runs;

	for (size_t i = 0; i < TIMES; i++) {
		uint32_t at = runs_add_metric(r, times[i], "s");

		r->metrics.v[at].part = i != WALL;
	}
	m->gas = gas ? runs_add_metric(r, "gas", "gas") : PROFILE_NONE;
	m->rate = gas ? runs_add_metric(r, "gas_per_s", "gas/s") : PROFILE_NONE;
	for (size_t k = 0; k < SUMS; k++) {
		m->sum_events[k] = m->sum_columns[k] = PROFILE_NONE;
		for (size_t i = 0; i < m->p->events.n; i++)
			if (!strcmp(profile_str(m->p, m->p->events.v[i].name), sums[k].event))
				m->sum_events[k] = i;
		if (m->sum_events[k] != PROFILE_NONE)
			m->sum_columns[k] = runs_add_metric(r, sums[k].name, sums[k].unit);
	}
	add_subsystem_columns(m);
}

static double *row_values(struct runs *r, size_t row)
{
	return r->values.v + row * r->metrics.n;
}

static double *add_row(struct making *m, const struct runs_row *row, uint64_t start_ns, uint64_t end_ns)
{
	double *v = runs_add_row(m->runs, row);

	vec_push(&m->stretches, (struct stretch){ start_ns, end_ns, 0, m->runs->rows.n - 1 });
	for (size_t k = 0; k < SUMS; k++)
		if (m->sum_columns[k] != PROFILE_NONE)
			v[m->sum_columns[k]] = 0;
	for (size_t i = 0; m->subsystems && i < m->subsystems->table->list.n; i++)
		v[m->subsystem_columns[i]] = 0;
	return v;
}

/* --- blocks --- */

static void add_block_subsystems(const struct making *m, const struct block_row *b, double *v)
{
	for (size_t i = 0; m->subsystems && i < b->subsystems.n; i++) {
		int k = subsystems_find(m->subsystems->table, b->subsystems.v[i].name);

		v[m->subsystem_columns[k]] += b->subsystems.v[i].ns / 1e9;
	}
}

static void add_block(struct making *m, const struct block_row *b)
{
	static const enum block_part parts[TIMES] = { [QUEUE] = BLOCK_QUEUE, [LOCK] = BLOCK_LOCK, [DISK] = BLOCK_DISK,
						      [FAULT] = BLOCK_FAULT, [NETWORK] = BLOCK_NETWORK,
						      [WAIT] = BLOCK_WAIT, [IDLE] = BLOCK_IDLE };
	const struct runs_row row = { .round = 1, .block = b->block.number, .start_ns = m->p->start_wall_ns + b->start_ns };
	double *v = add_row(m, &row, b->start_ns, b->start_ns + b->wall_ns);

	v[WALL] = b->wall_ns / 1e9;
	v[CPU] = 0;
	for (int i = 0; i < BLOCK_PARTS; i++)
		v[CPU] += block_part_is_cpu(i) ? b->ns[i] / 1e9 : 0;
	v[ALLOCATION] = b->allocator_ns / 1e9;
	for (size_t i = QUEUE; i < TIMES; i++)
		v[i] = b->ns[parts[i]] / 1e9;
	add_block_subsystems(m, b, v);
	if (b->block.known & BLOCK_GAS) {
		v[m->gas] = b->block.gas;
		v[m->rate] = b->block.gas / v[WALL];
	}
}

/* The last of a number counts: the others were reorganized away. */
static bool is_last(const struct blocks *b, size_t at)
{
	for (size_t i = at + 1; i < b->rows.n; i++)
		if (b->rows.v[i].split && b->rows.v[i].block.known & BLOCK_NUMBER &&
		    b->rows.v[i].block.number == b->rows.v[at].block.number)
			return false;
	return true;
}

static int take_blocks(struct making *m, const char *name, struct err *err)
{
	struct blocks b;
	int e = blocks_make(&b, m->p, m->c, NULL, m->subsystems, err);

	if (e)
		return e;
	runs_command(m->runs, name);
	add_columns(m, true);
	for (size_t i = 0; i < b.rows.n; i++)
		if (b.rows.v[i].split && b.rows.v[i].block.known & BLOCK_NUMBER && b.rows.v[i].block.number &&
		    block_group_count(b.rows.v[i].name) == 1 && is_last(&b, i))
			add_block(m, &b.rows.v[i]);
	blocks_done(&b);
	return 0;
}

/* --- runs of a bench --- */

/* "run 3 of ./node": number and command. False: it was to warm up. */
static bool parse_run(const char *mark, uint64_t *ret_round, const char **ret_command)
{
	char *end;

	if (!str_starts(mark, "run "))
		return false;
	*ret_round = strtoull(mark + strlen("run "), &end, 10);
	*ret_command = str_starts(end, " of ") ? end + strlen(" of ") : NULL;
	return *ret_round && (*ret_command || !*end);
}

static void take_runs(struct making *m, const char *name)
{
	const struct profile *p = m->p;

	add_columns(m, false);
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *mark = &p->marks.v[i];
		struct runs_row row = { .start_ns = p->start_wall_ns + mark->start_ns };
		const char *command;
		double *v;

		if (strcmp(profile_str(p, mark->kind), "run") || mark->end_ns <= mark->start_ns ||
		    !parse_run(profile_str(p, mark->name), &row.round, &command))
			continue;
		row.command = runs_command(m->runs, command ? command : name);
		v = add_row(m, &row, mark->start_ns, mark->end_ns);
		for (size_t k = 0; k < TIMES; k++)
			v[k] = 0;
		v[WALL] = (mark->end_ns - mark->start_ns) / 1e9;
	}
	m->runs->interleaved = m->runs->commands.n > 1;
}

/* The first that may reach beyond a moment. */
static size_t first_beyond(const struct making *m, uint64_t time_ns)
{
	return vec_search(i, 0, m->stretches.n, m->stretches.v[i].last_ns <= time_ns);
}

static size_t column_of(enum cause cause)
{
	static const uint8_t of[CAUSE_COUNT] = {
		[CAUSE_CPU] = CPU, [CAUSE_QUEUE] = QUEUE, [CAUSE_LOCK] = LOCK, [CAUSE_PARK] = WAIT,
		[CAUSE_DISK_READ] = DISK, [CAUSE_DISK_WRITE] = DISK, [CAUSE_FAULT] = FAULT, [CAUSE_RECLAIM] = FAULT,
		[CAUSE_NETWORK] = NETWORK, [CAUSE_SLEEP] = WAIT, [CAUSE_PIPE] = WAIT, [CAUSE_IDLE] = IDLE,
	};

	return of[cause]; /* WALL: unknown cause */
}

/* A sample of time, in all runs that it touches: they do not overlap. */
static void add_time(struct making *m, struct blocktally *t, struct crates *names, size_t i, uint64_t first_ns)
{
	const struct profile_sample *s = &m->p->samples.v[i];
	enum role role = causes_role(m->c, s->event);
	const struct ident *leaf = role == ROLE_CPU ? blocktally_leaf(t, s->stack) : NULL;
	size_t column = role == ROLE_CPU ? (size_t)CPU : role == ROLE_QUEUE ? (size_t)QUEUE : column_of(causes_of(m->c, s));
	uint64_t begin, end;

	/* A process that started before the first run is bench itself. */
	if (column == WALL || m->p->processes.v[m->p->threads.v[s->thread].process].start_ns < first_ns)
		return;
	select_span(m->p, i, role, &begin, &end);
	for (size_t k = first_beyond(m, begin); k < m->stretches.n && m->stretches.v[k].start_ns <= end; k++) {
		const struct stretch *x = &m->stretches.v[k];
		double *v = row_values(m->runs, x->row), ns;

		if (x->end_ns <= begin)
			continue;
		ns = select_value(m->p, i, role, x->start_ns, x->end_ns);
		v[column] += ns / 1e9;
		if (leaf && crate_kind(names, leaf) == CODE_ALLOCATOR)
			v[ALLOCATION] += ns / 1e9;
		if (m->subsystems)
			v[m->subsystem_columns[classifier_of(m->subsystems, s->stack).subsystem]] += ns / 1e9;
	}
}

static void add_times(struct making *m)
{
	struct blocks names = { 0 }; /* only its names are needed */
	struct blocktally tally;

	if (!m->stretches.n)
		return;
	idents_init(&names.idents, m->p, 0);
	crates_init(&names.names, m->p, NULL);
	blocktally_init(&tally, &names, m->p, NULL);
	for (size_t i = 0; i < m->p->samples.n; i++)
		if (causes_role(m->c, m->p->samples.v[i].event) != ROLE_OTHER)
			add_time(m, &tally, &names.names, i, m->stretches.v[0].start_ns);
	blocktally_done(&tally);
	crates_done(&names.names);
	idents_done(&names.idents);
}

/* --- both --- */

static int compare_stretches(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void add_sums(struct making *m)
{
	for (size_t i = 0; i < m->p->samples.n; i++) {
		const struct profile_sample *s = &m->p->samples.v[i];

		for (size_t k = 0; k < SUMS; k++)
			for (size_t x = s->event == m->sum_events[k] ? first_beyond(m, s->time_ns) : SIZE_MAX;
			     x < m->stretches.n && m->stretches.v[x].start_ns <= s->time_ns; x++)
				if (s->time_ns < m->stretches.v[x].end_ns)
					row_values(m->runs, m->stretches.v[x].row)[m->sum_columns[k]] += s->value;
	}
}

static void sort_stretches(struct making *m)
{
	uint64_t last = 0;

	vec_sort(&m->stretches, compare_stretches);
	for (size_t i = 0; i < m->stretches.n; i++)
		m->stretches.v[i].last_ns = last = MAX(last, m->stretches.v[i].end_ns);
}

static bool has_kind(const struct profile *p, const char *kind)
{
	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].kind), kind))
			return true;
	return false;
}

int blockruns_make(const struct profile *p, struct causes *c, struct classifier *subsystems, const char *name,
		   struct runs *ret, struct err *err)
{
	struct making m = { .p = p, .c = c, .runs = ret,
			    .subsystems = subsystems && subsystem_is_node(subsystems, c) ? subsystems : NULL };
	bool blocks = has_kind(p, "block");
	int e = 0;

	*ret = (struct runs){ 0 };
	if (blocks)
		e = take_blocks(&m, name, err);
	else
		take_runs(&m, name);
	sort_stretches(&m);
	if (!e && !blocks)
		add_times(&m);
	if (!e)
		add_sums(&m);
	vec_done(&m.stretches);
	if (!e && !ret->rows.n)
		e = err_set(err, ENODATA,
			    blocks ? "none of its blocks has a number and a duration" :
				     "it has neither blocks (record --log) nor runs (bench --record): gasflame diff "
				     "compares recordings by function");
	if (e)
		runs_done(ret);
	return e;
}
