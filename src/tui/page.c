#include "tui/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/tree/ownfunction.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "profile/profile.h"
#include "tui/model.h"

enum { MAX_ROWS = 5000 };

uint64_t page_id(const char *name, const char *module)
{
	return map_hash_bytes(name, strlen(name)) * 31 + map_hash_bytes(module, strlen(module));
}

/* Nothing is selected: what can be done about it with a key. */
static void say_nothing(struct table *t, const struct model *m)
{
	const struct scope *s = m->scope;

	snprintf(t->empty, sizeof(t->empty), "Nothing of '%.20s' here%s%.60s%s: w weighs something else%s.",
		 model_what(m), s->thread ? " for thread " : "", s->thread ? s->thread : "",
		 s->function ? " with that function" : "",
		 s->thread || s->function ? ", Esc takes the filter away" : ", t shows all since the start");
}

/* --- functions --- */

static const struct column function_columns[] = {
	[WEIGHT_SELF_PERCENT] = { "SELF%", "self_percent", COLUMN_PERCENT, 6, 0 },
	[WEIGHT_TOTAL_PERCENT] = { "TOTAL%", "total_percent", COLUMN_PERCENT, 6, 0 },
	[WEIGHT_SELF] = { "SELF", "self", COLUMN_VALUE, 8, 4 },
	[WEIGHT_TOTAL] = { "TOTAL", "total", COLUMN_VALUE, 8, 5 },
	[FUNCTION_NAME] = { "FUNCTION", "function", COLUMN_NAME, 0, 0 },
	[FUNCTION_MODULE] = { "MODULE", "module", COLUMN_TEXT, 14, 3 },
	{ 0 },
};

static enum row_kind kind_of(const struct top_row *r)
{
	if (r->kind == IDENT_KERNEL)
		return ROW_KERNEL;
	if (r->kind == IDENT_UNNAMED)
		return ROW_UNNAMED;
	return ownfunction_is_library(r->name, r->module) ? ROW_LIBRARY : ROW_PLAIN;
}

static void fill_functions(struct table *t, struct model *m, unsigned variant)
{
	const struct top *top = model_top(m);

	if (!top || !top->functions.n) {
		say_nothing(t, m);
		return;
	}
	t->unit = m->selection.unit;
	for (size_t i = 0; i < MIN(top->functions.n, (size_t)MAX_ROWS); i++) {
		const struct top_row *f = &top->functions.v[i];
		struct row *r = table_row(t);

		r->value[WEIGHT_SELF_PERCENT] = str_percent(f->self.value, top->all.value);
		r->value[WEIGHT_TOTAL_PERCENT] = str_percent(f->total.value, top->all.value);
		r->value[WEIGHT_SELF] = f->self.value;
		r->value[WEIGHT_TOTAL] = f->total.value;
		r->text[FUNCTION_NAME] = f->name;
		r->text[FUNCTION_MODULE] = str_base_name(f->module);
		r->kind = kind_of(f);
		r->id = page_id(f->name, f->module);
		r->index = i;
	}
}

/* --- threads --- */

static const struct column thread_columns[] = {
	[THREAD_TID] = { "TID", "tid", COLUMN_NUMBER, 7, 5 },
	[THREAD_RUN] = { "RUN%", "run_percent", COLUMN_PERCENT, 6, 0 },
	[THREAD_QUEUE] = { "QUEUE%", "queue_percent", COLUMN_PERCENT, 6, 3 },
	[THREAD_WAIT] = { "WAIT%", "wait_percent", COLUMN_PERCENT, 6, 4 },
	[THREAD_TIME] = { "WHAT ITS TIME WAS", "time", COLUMN_BAR, 24, 2 },
	[THREAD_CAUSE] = { "MOST FOR", "waits_for", COLUMN_TEXT, 10, 6 },
	[THREAD_NAME] = { "THREAD", "thread", COLUMN_NAME, 0, 0 },
	[THREAD_WAITS] = { "WAITS", "waits", COLUMN_COUNT, 9, 8 },
	[THREAD_PID] = { "PID", "pid", COLUMN_NUMBER, 7, 9 },
	{ 0 },
};

static void name_thread(struct row *r, const struct profile *p, uint32_t thread)
{
	const struct profile_thread *t = &p->threads.v[thread];

	r->value[THREAD_TID] = t->tid;
	r->value[THREAD_PID] = t->process < p->processes.n ? p->processes.v[t->process].pid : 0;
	r->text[THREAD_NAME] = profile_str(p, t->name);
	r->id = map_pair(t->process, t->tid);
	r->index = thread;
}

/* Returns the main cause of the thread's waits, without idle and sleep. */
static const char *main_cause(const struct account_row *a)
{
	int most = CAUSE_UNKNOWN;

	for (int i = 0; i < CAUSE_COUNT; i++)
		if (i != CAUSE_CPU && i != CAUSE_QUEUE && i != CAUSE_IDLE && i != CAUSE_SLEEP &&
		    i != CAUSE_UNKNOWN &&
		    (most == CAUSE_UNKNOWN || a->ns[i] > a->ns[most]))
			most = i;
	return most != CAUSE_UNKNOWN && a->ns[most] * 200 >= a->wall_ns ? cause_name(most) : "";
}

uint64_t page_duration_ns(const struct model *m)
{
	uint64_t all = select_duration_ns(m->p),
		 to = m->scope->to_ns && m->scope->to_ns < all ? m->scope->to_ns : all;

	return to > m->scope->from_ns ? to - m->scope->from_ns : 0;
}

/* Sleep is intended, so it is no wait. */
static uint64_t waiting_ns(const struct account_row *a)
{
	return account_active_ns(a) - a->ns[CAUSE_CPU] - a->ns[CAUSE_QUEUE] - a->ns[CAUSE_SLEEP];
}

/* Shares are of the view's time, not of the thread's own: a short-lived thread has used little. */
static void account_row(struct table *t, struct model *m, const struct account_row *a)
{
	uint64_t duration = page_duration_ns(m);
	struct row *r = table_row(t);
	uint64_t *parts = table_parts(t);

	name_thread(r, m->p, a->thread);
	memcpy(parts, a->ns, sizeof(a->ns));
	r->parts = parts;
	r->whole = duration;
	r->value[THREAD_RUN] = str_percent(a->ns[CAUSE_CPU], duration);
	r->value[THREAD_QUEUE] = str_percent(a->ns[CAUSE_QUEUE], duration);
	r->value[THREAD_WAIT] = str_percent(waiting_ns(a), duration);
	r->text[THREAD_CAUSE] = main_cause(a);
	r->value[THREAD_WAITS] = a->waits;
}

/* Without recorded waits there are only the clock's samples. */
static void fill_threads_by_samples(struct table *t, struct model *m)
{
	const struct selection *s = model_selection(m);
	uint64_t duration = page_duration_ns(m);
	_cleanup_(map_done) struct map rows = { 0 };

	if (!s || !s->entries.n)
		say_nothing(t, m);
	for (size_t i = 0; s && i < s->entries.n; i++) {
		const struct select_entry *e = &s->entries.v[i];
		uint64_t *at = map_put(&rows, e->thread, t->rows.n);

		if (*at == t->rows.n) {
			struct row *r = table_row(t);

			name_thread(r, m->p, e->thread);
			r->value[THREAD_QUEUE] = r->value[THREAD_WAIT] = r->value[THREAD_WAITS] = NAN;
		}
		t->rows.v[*at].value[THREAD_RUN] += str_percent(e->weight.value, duration);
	}
}

static void fill_threads(struct table *t, struct model *m, unsigned variant)
{
	const struct account *a = model_account(m);

	if (!a) {
		fill_threads_by_samples(t, m);
		return;
	}
	for (size_t i = 0; i < MIN(a->threads.n, (size_t)MAX_ROWS); i++)
		account_row(t, m, &a->threads.v[i]);
	if (!t->rows.n)
		say_nothing(t, m);
}

/* --- waits --- */

static const struct column wait_columns[] = {
	[WAIT_TIME] = { "TIME", "ns", COLUMN_TIME, 8, 0 },
	[WAIT_SHARE] = { "SHARE", "percent", COLUMN_PERCENT, 6, 0 },
	[WAIT_COUNT] = { "COUNT", "count", COLUMN_COUNT, 9, 4 },
	[WAIT_LONGEST] = { "LONGEST", "longest_ns", COLUMN_TIME, 8, 5 },
	[WAIT_CAUSE] = { "CAUSE", "cause", COLUMN_TEXT, 12, 0 },
	[WAIT_FUNCTION] = { "FUNCTION", "function", COLUMN_NAME, 0, 0 },
	[WAIT_CALL] = { "CALL", "operation", COLUMN_TEXT, 10, 7 },
	[WAIT_THREAD] = { "THREAD", "thread", COLUMN_TEXT, 15, 3 },
	{ 0 },
};

static void fill_waits(struct table *t, struct model *m, unsigned variant)
{
	const struct waits *w = model_waits(m);

	t->natural = true; /* sleep, which is intended, last */
	if (!w)
		snprintf(t->empty, sizeof(t->empty), "Waits were not recorded: -e wait does.");
	else if (!w->sites.n)
		snprintf(t->empty, sizeof(t->empty), "Nobody waited here%s.", w->idle_ns ?
			 ", but for work (z shows that too)" : "");
	for (size_t i = 0; w && i < MIN(w->sites.n, (size_t)MAX_ROWS); i++) {
		const struct waits_site *s = &w->sites.v[i];
		const char *name = s->thread < m->p->threads.n ?
					   profile_str(m->p, m->p->threads.v[s->thread].name) : "";
		struct row *r = table_row(t);

		r->value[WAIT_TIME] = s->ns;
		r->value[WAIT_SHARE] = str_percent(s->ns, w->ns);
		r->value[WAIT_COUNT] = s->count;
		r->value[WAIT_LONGEST] = s->longest_ns ? s->longest_ns : NAN; /* only sums were kept */
		r->text[WAIT_CAUSE] = cause_name(s->cause);
		r->text[WAIT_FUNCTION] = s->function;
		r->text[WAIT_CALL] = s->operation;
		if (s->threads > 1) {
			_cleanup_free_ char *more = mem_printf("%s +%u", name, s->threads - 1);

			r->text[WAIT_THREAD] = table_text(t, more);
		} else {
			r->text[WAIT_THREAD] = name;
		}
		if (s->pattern && (*s->pattern->means || *s->pattern->fix)) {
			_cleanup_free_ char *note = mem_printf(
				"%s%s%s", s->pattern->means,
				*s->pattern->means && *s->pattern->fix ? " " : "", s->pattern->fix);

			r->note = table_text(t, note);
		}
		r->id = page_id(s->function, s->module) + s->cause;
		r->index = i;
	}
}

/* --- I/O --- */

#define IO_FIGURES                                                          \
	[IO_READ] = { "READ", "read_bytes", COLUMN_BYTES, 8, 0 },          \
	[IO_READS] = { "READS", "reads", COLUMN_COUNT, 9, 4 },             \
	[IO_WRITTEN] = { "WRITTEN", "written_bytes", COLUMN_BYTES, 8, 0 }, \
	[IO_WRITES] = { "WRITES", "writes", COLUMN_COUNT, 9, 3 },          \
	[IO_IN_SYNC] = { "IN SYNC", "sync_ns", COLUMN_TIME, 8, 2 },        \
	[IO_SYNCS] = { "SYNCS", "syncs", COLUMN_COUNT, 6, 6 },             \
	[IO_ERRORS] = { "ERRORS", "errors", COLUMN_COUNT, 6, 7 }

static const struct column file_columns[] = {
	IO_FIGURES,
	[IO_NAME] = { "FILE", "file", COLUMN_NAME, 0, 0 },
	{ 0 },
};

static const struct column caller_columns[] = {
	IO_FIGURES,
	[IO_NAME] = { "FUNCTION", "function", COLUMN_NAME, 0, 0 },
	[IO_MODULE] = { "MODULE", "module", COLUMN_TEXT, 14, 8 },
	{ 0 },
};

static void io_row(struct table *t, const struct io_row *f, size_t index, bool function)
{
	struct row *r = table_row(t);

	r->value[IO_READ] = f->read_bytes;
	r->value[IO_READS] = f->read_calls;
	r->value[IO_WRITTEN] = f->write_bytes;
	r->value[IO_WRITES] = f->write_calls;
	r->value[IO_IN_SYNC] = f->sync_ns;
	r->value[IO_SYNCS] = f->sync_calls;
	r->value[IO_ERRORS] = f->errors;
	r->text[IO_NAME] = f->name;
	if (function)
		r->text[IO_MODULE] = str_base_name(f->module ? f->module : "");
	r->id = page_id(f->name, f->module ? f->module : "");
	r->index = index;
}

static void fill_io(struct table *t, struct model *m, unsigned variant)
{
	const struct io_figures *f = model_io(m);

	table_set_columns(t, variant ? caller_columns : file_columns);
	if (!f)
		snprintf(t->empty, sizeof(t->empty), "%s", "Nothing was read or written here, or I/O was not "
			 "recorded (-e io does).");
	for (size_t i = 0; f && !variant && i < MIN(f->files.n, (size_t)MAX_ROWS); i++)
		io_row(t, &f->files.v[i], i, false);
	for (size_t i = 0; f && variant && i < MIN(f->functions.n, (size_t)MAX_ROWS); i++)
		io_row(t, &f->functions.v[i], i, true);
}

/* --- memory --- */

static const struct column memory_columns[] = {
	[MEMORY_PID] = { "PID", "pid", COLUMN_NUMBER, 7, 3 },
	[MEMORY_RSS] = { "RSS", "rss_bytes", COLUMN_BYTES, 8, 0 },
	[MEMORY_ANON] = { "ANON", "anon_bytes", COLUMN_BYTES, 8, 2 },
	[MEMORY_FILE] = { "FILE", "file_bytes", COLUMN_BYTES, 8, 1 },
	[MEMORY_SHARED] = { "SHARED", "shared_bytes", COLUMN_BYTES, 8, 5 },
	[MEMORY_SWAP] = { "SWAP", "swap_bytes", COLUMN_BYTES, 8, 6 },
	[MEMORY_MAJOR] = { "MAJOR/s", "major_per_second", COLUMN_COUNT, 8, 4 },
	[MEMORY_MINOR] = { "MINOR/s", "minor_per_second", COLUMN_COUNT, 8, 4 },
	[MEMORY_PROCESS] = { "PROCESS", "process", COLUMN_NAME, 0, 0 },
	{ 0 },
};

static const struct column series_columns[] = {
	[SERIES_FIRST] = { "FIRST", "first", COLUMN_VALUE, 12, 2 },
	[SERIES_LAST] = { "LAST", "last", COLUMN_VALUE, 12, 0 },
	[SERIES_LEAST] = { "LEAST", "least", COLUMN_VALUE, 12, 4 },
	[SERIES_MOST] = { "MOST", "most", COLUMN_VALUE, 12, 3 },
	[SERIES_NAME] = { "SERIES", "series", COLUMN_NAME, 0, 0 },
	[SERIES_UNIT] = { "UNIT", "unit", COLUMN_TEXT, 8, 5 },
	{ 0 },
};

/* A recording has no processes to ask, but series of figures. */
static void fill_series(struct table *t, const struct profile *p)
{
	table_set_columns(t, series_columns);
	t->unit = "count";
	for (size_t i = 0; i < p->series.n; i++) {
		double first = NAN, last = NAN, least = NAN, most = NAN;
		struct row *r;

		for (size_t k = 0; k < p->points.n; k++) {
			if (p->points.v[k].series != i)
				continue;
			last = p->points.v[k].value;
			first = isnan(first) ? last : first;
			least = isnan(least) || last < least ? last : least;
			most = isnan(most) || last > most ? last : most;
		}
		r = table_row(t);
		r->value[SERIES_FIRST] = first;
		r->value[SERIES_LAST] = last;
		r->value[SERIES_LEAST] = least;
		r->value[SERIES_MOST] = most;
		r->text[SERIES_NAME] = profile_str(p, p->series.v[i].name);
		r->text[SERIES_UNIT] = profile_str(p, p->series.v[i].unit);
		r->id = i;
	}
	snprintf(t->empty, sizeof(t->empty), "%s",
		 "This recording has no figures of memory: -e fault records some.");
}

static void fill_memory(struct table *t, struct model *m, unsigned variant)
{
	if (!m->memory.n)
		fill_series(t, m->p);
	for (size_t i = 0; i < m->memory.n; i++) {
		const struct model_memory *f = &m->memory.v[i];
		struct row *r = table_row(t);

		r->value[MEMORY_PID] = f->pid;
		r->value[MEMORY_RSS] = f->rss_bytes;
		r->value[MEMORY_ANON] = f->anon_bytes;
		r->value[MEMORY_FILE] = f->file_bytes;
		r->value[MEMORY_SHARED] = f->shared_bytes;
		r->value[MEMORY_SWAP] = f->swap_bytes;
		r->value[MEMORY_MAJOR] = f->major_rate < 0 ? NAN : f->major_rate;
		r->value[MEMORY_MINOR] = f->minor_rate < 0 ? NAN : f->minor_rate;
		r->text[MEMORY_PROCESS] = f->name;
		r->id = f->pid;
		r->index = i;
	}
}

/* --- blocks --- */

static const struct column block_columns[] = {
	[BLOCK_WALL] = { "WALL", "ns", COLUMN_TIME, 8, 0 },
	[BLOCK_GAS_USED] = { "GAS", "gas", COLUMN_COUNT, 12, 3 },
	[BLOCK_SPEED] = { "MGAS/s", "mgas_per_second", COLUMN_COUNT, 8, 2 },
	[BLOCK_TXS] = { "TXS", "transactions", COLUMN_COUNT, 6, 5 },
	[BLOCK_TIME] = { "WHAT ITS TIME WAS", "time", COLUMN_BAR, 20, 4 },
	[BLOCK_MOSTLY] = { "MOSTLY", "mostly", COLUMN_TEXT, 24, 6 },
	[BLOCK_NAME] = { "BLOCK", "block", COLUMN_NAME, 0, 0 },
	[BLOCK_START] = { "AT", "start_ns", COLUMN_TIME, 8, 7 },
	{ 0 },
};

/* Bars have the causes of waits. */
static const enum cause cause_of_part[BLOCK_PARTS] = {
	[BLOCK_OWN] = CAUSE_CPU,      [BLOCK_DEPENDENCY] = CAUSE_CPU, [BLOCK_STD] = CAUSE_CPU,
	[BLOCK_KERNEL] = CAUSE_CPU,   [BLOCK_UNNAMED] = CAUSE_CPU,    [BLOCK_QUEUE] = CAUSE_QUEUE,
	[BLOCK_LOCK] = CAUSE_LOCK,    [BLOCK_DISK] = CAUSE_DISK_READ, [BLOCK_FAULT] = CAUSE_FAULT,
	[BLOCK_NETWORK] = CAUSE_NETWORK, [BLOCK_WAIT] = CAUSE_PARK,   [BLOCK_IDLE] = CAUSE_IDLE,
	[BLOCK_UNKNOWN] = CAUSE_UNKNOWN,
};

static void block_row(struct table *t, const struct block_row *b, size_t index)
{
	uint64_t known = b->block.known, *parts = table_parts(t);
	bool lasts = b->wall_ns > 0;
	struct row *r = table_row(t);

	for (int i = 0; i < BLOCK_PARTS; i++)
		parts[cause_of_part[i]] += b->ns[i];
	r->parts = b->split ? parts : NULL;
	r->whole = b->wall_ns;
	r->value[BLOCK_WALL] = lasts ? b->wall_ns : NAN;
	r->value[BLOCK_GAS_USED] = known & BLOCK_GAS ? b->block.gas : NAN;
	r->value[BLOCK_SPEED] = known & BLOCK_GAS && lasts ? b->block.gas * 1e3 / b->wall_ns : NAN;
	r->value[BLOCK_TXS] = known & BLOCK_TRANSACTIONS ? b->block.transactions : NAN;
	r->value[BLOCK_START] = b->start_ns;
	r->text[BLOCK_MOSTLY] = b->functions.n ? table_text(t, b->functions.v[0].name) : "";
	r->text[BLOCK_NAME] = b->name;
	r->note = b->reason ? table_text(t, b->reason) : NULL;
	r->kind = b->slow ? ROW_HOT : ROW_PLAIN;
	r->id = page_id(b->name, "");
	r->index = index;
}

static void fill_blocks(struct table *t, struct model *m, unsigned variant)
{
	const struct blocks *b = model_blocks(m);

	if (!b)
		snprintf(t->empty, sizeof(t->empty), "%s",
			 "No block was seen here: --log FILE or --rpc URL of the node, when it starts, tell of them.");
	for (size_t i = b && b->rows.n > MAX_ROWS ? b->rows.n - MAX_ROWS : 0; b && i < b->rows.n; i++)
		block_row(t, &b->rows.v[i], i);
}

/* --- all of them --- */

const struct page_kind pages[PAGE_COUNT] = {
	[PAGE_FUNCTIONS] = { "functions", "functions", function_columns, fill_functions, 1, WEIGHT_SELF_PERCENT },
	[PAGE_THREADS] = { "threads", "threads", thread_columns, fill_threads, 1, THREAD_RUN },
	[PAGE_WAITS] = { "waits", "waits", wait_columns, fill_waits, 1, WAIT_TIME },
	[PAGE_IO] = { "io", "I/O", file_columns, fill_io, 2, IO_READ },
	[PAGE_MEMORY] = { "memory", "memory", memory_columns, fill_memory, 1, MEMORY_RSS },
	[PAGE_BLOCKS] = { "blocks", "blocks", block_columns, fill_blocks, 1, BLOCK_WALL },
	[PAGE_TASKS] = { "tasks", "tasks", page_task_columns, page_fill_tasks, 1, TASK_POLL_SHARE },
	[PAGE_TREE] = { "tree", "tree", function_columns, NULL, 1, WEIGHT_TOTAL_PERCENT },
};

void page_fill(struct table *t, enum page page, struct model *m, unsigned variant)
{
	table_init(t, pages[page].columns);
	t->sort = pages[page].sort;
	if (pages[page].fill)
		pages[page].fill(t, m, variant);
}

enum page page_find(const char *name)
{
	int i = 0;

	while (i < PAGE_COUNT && strcmp(pages[i].name, name))
		i++;
	return i;
}

void page_summary(struct model *m, struct buf *b)
{
	const struct account *a = model_account(m);
	const struct selection *s = model_selection(m);
	uint64_t duration = page_duration_ns(m);
	char text[32];

	if (a && duration) {
		uint64_t waiting = waiting_ns(&a->total);

		buf_printf(b, "%u threads: %.2f run, %.2f in the run queue, %.2f wait", a->total.threads,
			   (double)a->total.ns[CAUSE_CPU] / duration,
			   (double)a->total.ns[CAUSE_QUEUE] / duration, (double)waiting / duration);
		for (int i = CAUSE_LOCK; i < CAUSE_IDLE; i++)
			if (i != CAUSE_SLEEP && a->total.ns[i] * 10 > waiting)
				buf_printf(b, ", %s %.2f", cause_name(i), (double)a->total.ns[i] / duration);
		return;
	}
	if (s && s->all.samples && !strcmp(s->unit, "ns") && duration)
		buf_printf(b, "%.2f CPUs, %s samples", (double)s->all.value / duration,
			   str_count(text, s->all.samples));
}
