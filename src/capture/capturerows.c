#include "capture/capturerows.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/version.h"
#include "capture/capturetext.h"

static void bind_int(sqlite3_stmt *s, int column, uint64_t value)
{
	sqlite3_bind_int64(s, column, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* All 64 bits: a kernel address reads as a negative number. */
static void bind_address(sqlite3_stmt *s, int column, uint64_t value)
{
	sqlite3_bind_int64(s, column, (int64_t)value);
}

static void bind_id(sqlite3_stmt *s, int column, uint32_t id)
{
	if (id == PROFILE_NONE)
		sqlite3_bind_null(s, column);
	else
		sqlite3_bind_int64(s, column, id);
}

/* A string that may say whose the recording is. */
static void bind_hidden(struct capturerows *w, sqlite3_stmt *s, int column, const struct profile *p, uint32_t id,
			redact_fn *fn)
{
	const char *text = profile_str(p, id);

	if (p->redacted && fn)
		text = fn(&w->redact, text);
	if (*text)
		sqlite3_bind_text(s, column, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(s, column);
}

static const char *hidden(struct capturerows *w, const struct profile *p, uint32_t id, redact_fn *fn)
{
	return p->redacted ? fn(&w->redact, profile_str(p, id)) : profile_str(p, id);
}

/* The statement to bind to, a table or an enum statement; a flush that has nothing to write never comes here and so costs nothing. */
static sqlite3_stmt *begin(struct capturerows *w, unsigned which)
{
	if (!w->begun)
		w->begun = sqlite3_exec(w->db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK;
	return w->statements[which];
}

static uint32_t u32_of(const void *field)
{
	return *(const uint32_t *)field;
}

static void bind_column(struct capturerows *w, sqlite3_stmt *s, int column, const struct profile *p, const struct column *c,
			const void *field)
{
	switch (c->kind) {
	case COLUMN_INT:
		bind_int(s, column, *(const uint64_t *)field);
		break;
	case COLUMN_U32:
		bind_int(s, column, u32_of(field));
		break;
	case COLUMN_ADDRESS:
		bind_address(s, column, *(const uint64_t *)field);
		break;
	case COLUMN_REF:
	case COLUMN_OPTIONAL:
		bind_id(s, column, u32_of(field));
		break;
	case COLUMN_TEXT:
		bind_hidden(w, s, column, p, u32_of(field), c->hide);
		break;
	case COLUMN_ID:
	case COLUMN_OWN:
	case COLUMN_END:
		break;
	}
}

/* The statement with all columns that the table of columns knows how to bind. The caller binds its own ones, and may
 * bind others anew; then it calls run(). */
static sqlite3_stmt *bind_row(struct capturerows *w, enum capture_table table, const struct profile *p, size_t id,
			      const void *row)
{
	const struct column *columns = capture_tables[table].columns;
	sqlite3_stmt *s = begin(w, table);

	for (int i = 0; columns[i].kind; i++)
		if (columns[i].kind == COLUMN_ID)
			bind_int(s, i + 1, id);
		else
			bind_column(w, s, i + 1, p, &columns[i], (const char *)row + columns[i].offset);
	return s;
}

/* A statement that failed is not reset before capturerows_undo(): that would lose the system's errno. */
static int run(struct capturerows *w, sqlite3_stmt *s)
{
	errno = 0;
	if (!w->begun || sqlite3_step(s) != SQLITE_DONE)
		return -1;
	sqlite3_reset(s);
	return 0;
}

static int put_meta_int(struct capturerows *w, const char *key, uint64_t value)
{
	sqlite3_stmt *s = begin(w, TABLE_META);

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	bind_int(s, 2, value);
	return run(w, s);
}

static int put_meta_text(struct capturerows *w, const char *key, const char *value)
{
	sqlite3_stmt *s = begin(w, TABLE_META);

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, value, -1, SQLITE_STATIC);
	return run(w, s);
}

static int put_facts(struct capturerows *w, const struct profile *p, const struct facts *now)
{
	const struct facts *old = &w->facts;
	bool all = !w->facts_saved;
	int r = 0;

	if (all) {
		_cleanup_free_ char *made_by = mem_printf("gasflame %s", gasflame_version);

		r |= put_meta_text(w, "made_by", made_by);
	}
	if (all && p->redacted)
		r |= put_meta_int(w, "redacted", 1);
	if (all || now->target != old->target)
		r |= put_meta_text(w, "target", hidden(w, p, now->target, redact_target));
	if (all || now->host != old->host)
		r |= put_meta_text(w, "host", hidden(w, p, now->host, redact_host));
	if (all || now->kernel != old->kernel)
		r |= put_meta_text(w, "kernel", profile_str(p, now->kernel));
	if (all || now->start_wall_ns != old->start_wall_ns)
		r |= put_meta_int(w, "start_wall_ns", now->start_wall_ns);
	if (all || now->duration_ns != old->duration_ns)
		r |= put_meta_int(w, "duration_ns", now->duration_ns);
	if (all || now->finished != old->finished)
		r |= put_meta_int(w, "finished", now->finished);
	return r;
}

/* Rows of a table that is only appended to, all of whose columns are plain: from first to n, of size bytes each. */
static int put_rows(struct capturerows *w, enum capture_table table, const struct profile *p, size_t first, size_t n,
		    const void *rows, size_t size)
{
	int r = 0;

	for (size_t i = first; i < n && !r; i++)
		r = run(w, bind_row(w, table, p, i, (const char *)rows + i * size));
	return r;
}

#define PUT_ROWS(w, table, p, rows) put_rows(w, table, p, (w)->saved.rows, (p)->rows.n, (p)->rows.v, sizeof(*(p)->rows.v))

/* Binds row i; NULL: it is in the file as it is. */
typedef sqlite3_stmt *bind_fn(struct capturerows *w, const struct profile *p, size_t i);

static int put_each(struct capturerows *w, const struct profile *p, size_t first, size_t n, bind_fn *bind)
{
	int r = 0;

	for (size_t i = first; i < n && !r; i++) {
		sqlite3_stmt *s = bind(w, p, i);

		r = s ? run(w, s) : 0;
	}
	return r;
}

static sqlite3_stmt *bind_owner(struct capturerows *w, const struct profile *p, size_t i)
{
	sqlite3_stmt *s = bind_row(w, TABLE_OWNER, p, i, &p->owners.v[i]);

	if (p->redacted) /* the group is what tells one from the other */
		for (int column = 3; column <= 8; column += 5)
			sqlite3_bind_text(s, column, redact_numbered(&w->redact, "owner", i), -1, SQLITE_STATIC);
	return s;
}

/* Most processes are in no container and no unit, and have no row. */
static int put_process_owner(struct capturerows *w, size_t process, const struct profile_process *x)
{
	sqlite3_stmt *s;

	if (!x->owner && !x->inner_pid)
		return 0;
	s = begin(w, TABLE_PROCESS_OWNER);
	bind_int(s, 1, process);
	bind_id(s, 2, x->owner ? x->owner - 1 : PROFILE_NONE);
	bind_id(s, 3, x->inner_pid ? x->inner_pid : PROFILE_NONE);
	return run(w, s);
}

static int put_processes(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->processes.n && !r; i++) {
		const struct profile_process *x = &p->processes.v[i];
		sqlite3_stmt *s;

		if (i < w->processes.n && !memcmp(x, &w->processes.v[i], sizeof(*x)))
			continue;
		s = bind_row(w, TABLE_PROCESS, p, i, x);
		if (p->redacted)
			bind_hidden(w, s, 4, p, x->exe, redact_base);
		if (p->redacted && !x->exe)
			sqlite3_bind_text(s, 4, redact_numbered(&w->redact, "process", i), -1, SQLITE_STATIC);
		r = run(w, s) ?: put_process_owner(w, i, x);
	}
	return r;
}

static sqlite3_stmt *bind_thread(struct capturerows *w, const struct profile *p, size_t i)
{
	const struct profile_thread *x = &p->threads.v[i];

	if (i < w->threads.n && !memcmp(x, &w->threads.v[i], sizeof(*x)))
		return NULL;
	return bind_row(w, TABLE_THREAD, p, i, x);
}

static sqlite3_stmt *bind_module(struct capturerows *w, const struct profile *p, size_t i)
{
	const struct profile_module *x = &p->modules.v[i];
	char hex[2 * sizeof(x->build_id) + 1];
	sqlite3_stmt *s;

	if (i < w->modules.n && !memcmp(x, &w->modules.v[i], sizeof(*x)))
		return NULL;
	s = bind_row(w, TABLE_MODULE, p, i, x);
	sqlite3_bind_text(s, 3, capturetext_kind(x->kind), -1, SQLITE_STATIC);
	capturetext_hex(hex, x->build_id, MIN(x->build_id_size, sizeof(x->build_id)));
	if (*hex)
		sqlite3_bind_text(s, 5, hex, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(s, 5);
	return s;
}

/* Most names are from a symbol table, and have no row. */
static int put_function_named(struct capturerows *w, size_t function, uint32_t named)
{
	sqlite3_stmt *s;

	if (named == NAMED_SYMBOL)
		return 0;
	s = begin(w, TABLE_FUNCTION_NAMED);
	bind_int(s, 1, function);
	sqlite3_bind_text(s, 2, capturetext_named(named), -1, SQLITE_STATIC);
	return run(w, s);
}

static int put_functions(struct capturerows *w, const struct profile *p)
{
	_cleanup_free_ bool *notes = p->redacted ? redact_find_notes(p, w->saved.frames) : NULL;
	int r = 0;

	for (size_t i = w->saved.functions; i < p->functions.n && !r; i++) {
		struct profile_function f = p->functions.v[i];
		sqlite3_stmt *s;

		if (f.linkage == f.name)
			f.linkage = 0;
		s = bind_row(w, TABLE_FUNCTION, p, i, &f);
		if (notes && notes[i])
			bind_hidden(w, s, 2, p, f.name, redact_note);
		r = run(w, s) ?: put_function_named(w, i, f.named);
	}
	return r;
}

/* In the model address 0 means "only a name"; in the file NULL does. */
static sqlite3_stmt *bind_frame(struct capturerows *w, const struct profile *p, size_t i)
{
	const struct profile_frame *f = &p->frames.v[i];
	sqlite3_stmt *s = bind_row(w, TABLE_FRAME, p, i, f);

	bind_int(s, 3, f->kind);
	if (!f->address)
		sqlite3_bind_null(s, 4);
	return s;
}

static int put_frame_lines(struct capturerows *w, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];
	int r = 0;

	if (frame < w->saved.frames) {
		sqlite3_stmt *s = begin(w, CLEAR_LINES);

		bind_int(s, 1, frame);
		r = run(w, s);
	}
	for (uint32_t i = 0; i < f->line_count && !r; i++) {
		const struct profile_line *l = &p->lines.v[f->first_line + i];
		sqlite3_stmt *s = bind_row(w, TABLE_LINE, p, i, l);

		bind_int(s, 1, frame);
		bind_int(s, 2, i);
		bind_int(s, 5, l->inlined);
		r = run(w, s);
	}
	return r;
}

/* Lines only ever come at the end of their table: a frame whose lines begin there is new or was named. */
static int put_lines(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	if (w->saved.lines == p->lines.n)
		return 0;
	for (size_t i = 0; i < p->frames.n && !r; i++)
		if (p->frames.v[i].line_count && p->frames.v[i].first_line >= w->saved.lines)
			r = put_frame_lines(w, p, i);
	return r;
}

/* NULL where it is not known, or goes without saying. */
static void bind_known(sqlite3_stmt *s, int column, bool known, uint64_t value)
{
	if (known)
		bind_int(s, column, value);
	else
		sqlite3_bind_null(s, column);
}

static sqlite3_stmt *bind_sample(struct capturerows *w, const struct profile *p, size_t i)
{
	const struct profile_sample *x = &p->samples.v[i];
	sqlite3_stmt *s = bind_row(w, TABLE_SAMPLE, p, i, x);

	bind_known(s, 5, x->value != (x->event < w->periods.n ? w->periods.v[x->event] : 0), x->value);
	bind_known(s, 6, x->count > 1, x->count);
	return s;
}

/* A waker that is recorded has its name in its thread. */
static sqlite3_stmt *bind_wake(struct capturerows *w, const struct profile *p, size_t i)
{
	struct profile_wake x = p->wakes.v[i];

	if (x.waker != PROFILE_NONE && p->threads.v[x.waker].name == x.waker_name)
		x.waker_name = 0;
	return bind_row(w, TABLE_WAKE, p, i, &x);
}

static sqlite3_stmt *bind_mark(struct capturerows *w, const struct profile *p, size_t i)
{
	const struct profile_mark *x = &p->marks.v[i];
	sqlite3_stmt *s = bind_row(w, TABLE_MARK, p, i, x);

	bind_hidden(w, s, 3, p, x->name, redact_mark(profile_str(p, x->kind)));
	bind_known(s, 6, x->block.known & BLOCK_NUMBER, x->block.number);
	bind_known(s, 7, x->block.known & BLOCK_GAS, x->block.gas);
	bind_known(s, 8, x->block.known & BLOCK_TRANSACTIONS, x->block.transactions);
	return s;
}

static sqlite3_stmt *bind_point(struct capturerows *w, const struct profile *p, size_t i)
{
	sqlite3_stmt *s = bind_row(w, TABLE_POINT, p, i, &p->points.v[i]);

	sqlite3_bind_int64(s, 3, p->points.v[i].value);
	return s;
}

/* The last bucket's 2^63 is one too many for SQLite: bind_int() writes 2^63 - 1. */
static int put_bucket(struct capturerows *w, const struct profile *p, const struct profile_histogram *h,
		      size_t i)
{
	sqlite3_stmt *s = bind_row(w, TABLE_HISTOGRAM, p, i, h);

	sqlite3_bind_text(s, 1, hidden(w, p, h->name, redact_text), -1, SQLITE_STATIC);
	bind_int(s, 3, 1ULL << i);
	bind_int(s, 4, h->counts[i]);
	return run(w, s);
}

static int put_histograms(struct capturerows *w, const struct profile *p)
{
	static const struct profile_histogram none;
	int r = 0;

	for (size_t i = 0; i < p->histograms.n; i++) {
		const struct profile_histogram *h = &p->histograms.v[i];
		const struct profile_histogram *old = i < w->histograms.n ? &w->histograms.v[i] : &none;

		for (size_t k = 0; k < ARRAY_LEN(h->counts) && !r; k++)
			if (h->counts[k] != old->counts[k])
				r = put_bucket(w, p, h, k);
	}
	return r;
}

static sqlite3_stmt *bind_counter(struct capturerows *w, const struct profile *p, size_t i)
{
	const struct profile_counter *x = &p->counters.v[i];
	sqlite3_stmt *s;

	if (i < w->counters.n && x->value == w->counters.v[i].value)
		return NULL;
	s = bind_row(w, TABLE_COUNTER, p, i, x);
	sqlite3_bind_text(s, 1, hidden(w, p, x->name, redact_text), -1, SQLITE_STATIC);
	return s;
}

/* Rows that are in the file get their stacks by now: in memory they have them, if they are still there. Statements that
 * list have: row, time, stack, and of wakes the waker's stack. */
static int replace_stacks(struct capturerows *w, const struct profile *p, enum statement list, enum statement change)
{
	sqlite3_stmt *rows = begin(w, list);
	int step = SQLITE_DONE, r = 0;

	while (!r && w->begun && (step = sqlite3_step(rows)) == SQLITE_ROW) {
		uint64_t time_ns = sqlite3_column_int64(rows, 1);
		bool changed = false;
		uint32_t with[2];

		for (int i = 0; i < sqlite3_column_count(rows) - 2; i++) {
			uint32_t stack = sqlite3_column_int64(rows, i + 2);

			with[i] = profile_replaced_stack(p, stack, time_ns);
			changed |= with[i] != stack;
		}
		if (changed) {
			sqlite3_stmt *s = begin(w, change);

			bind_int(s, 1, sqlite3_column_int64(rows, 0));
			for (int i = 0; i < sqlite3_column_count(rows) - 2; i++)
				bind_id(s, i + 2, with[i]);
			r = run(w, s);
		}
	}
	if (!r && (!w->begun || step != SQLITE_DONE))
		return -1;
	sqlite3_reset(rows);
	return r;
}

#define COPY_TABLE(to, from)                                                                            \
	do {                                                                                            \
		(to)->n = 0;                                                                            \
		vec_reserve(to, (from)->n);                                                             \
		if ((from)->n)                                                                          \
			memcpy((to)->v, (from)->v, (from)->n * sizeof(*(to)->v));                       \
		(to)->n = (from)->n;                                                                    \
	} while (0)

/* Only after the commit: a flush that failed is tried again from where the file stands. */
static void remember(struct capturerows *w, const struct profile *p, const struct facts *facts)
{
	w->saved = (struct saved){ .events = p->events.n,
				   .mappings = p->mappings.n,
				   .owners = p->owners.n,
				   .ranges = p->ranges.n,
				   .functions = p->functions.n,
				   .frames = p->frames.n,
				   .lines = p->lines.n,
				   .stacks = p->stacks.n,
				   .samples = p->samples.n,
				   .wakes = p->wakes.n,
				   .taskwakes = p->taskwakes.n,
				   .marks = p->marks.n,
				   .summed = p->summed.n,
				   .series = p->series.n,
				   .points = p->points.n,
				   .replaced = p->replaced.n };
	w->facts = *facts;
	w->facts_saved = true;
	COPY_TABLE(&w->processes, &p->processes);
	COPY_TABLE(&w->threads, &p->threads);
	COPY_TABLE(&w->modules, &p->modules);
	COPY_TABLE(&w->histograms, &p->histograms);
	COPY_TABLE(&w->counters, &p->counters);
}

int capturerows_put(struct capturerows *w, const struct profile *p)
{
	struct facts facts = { .target = p->target, .host = p->host, .kernel = p->kernel,
			       .start_wall_ns = p->start_wall_ns, .duration_ns = p->duration_ns,
			       .finished = p->finished };
	int r = 0;

	w->begun = false;
	for (size_t i = w->periods.n; i < p->events.n; i++)
		vec_push(&w->periods, p->events.v[i].period);
	r = r ?: put_facts(w, p, &facts);
	r = r ?: PUT_ROWS(w, TABLE_EVENT, p, events);
	r = r ?: put_each(w, p, w->saved.owners, p->owners.n, bind_owner);
	r = r ?: put_processes(w, p);
	r = r ?: put_each(w, p, 0, p->threads.n, bind_thread);
	r = r ?: put_each(w, p, 0, p->modules.n, bind_module);
	r = r ?: PUT_ROWS(w, TABLE_MAPPING, p, mappings);
	r = r ?: PUT_ROWS(w, TABLE_FUNCTION_RANGE, p, ranges);
	r = r ?: put_functions(w, p);
	r = r ?: put_each(w, p, w->saved.frames, p->frames.n, bind_frame);
	r = r ?: put_lines(w, p);
	/* Node 0, the empty stack, has no row. */
	r = r ?: put_rows(w, TABLE_STACK, p, MAX(w->saved.stacks, (size_t)1), p->stacks.n, p->stacks.v,
			  sizeof(*p->stacks.v));
	if (p->replaced.n > w->saved.replaced) {
		r = r ?: replace_stacks(w, p, LIST_SAMPLES, STACK_OF_SAMPLE);
		r = r ?: replace_stacks(w, p, LIST_WAKES, STACKS_OF_WAKE);
		r = r ?: replace_stacks(w, p, LIST_TASK_WAKES, STACK_OF_TASK_WAKE);
	}
	r = r ?: put_each(w, p, w->saved.samples, p->samples.n, bind_sample);
	r = r ?: put_each(w, p, w->saved.wakes, p->wakes.n, bind_wake);
	r = r ?: PUT_ROWS(w, TABLE_TASK_WAKE, p, taskwakes);
	r = r ?: put_each(w, p, w->saved.marks, p->marks.n, bind_mark);
	r = r ?: PUT_ROWS(w, TABLE_SUMMED, p, summed);
	r = r ?: PUT_ROWS(w, TABLE_SERIES, p, series);
	r = r ?: put_each(w, p, w->saved.points, p->points.n, bind_point);
	r = r ?: put_histograms(w, p);
	r = r ?: put_each(w, p, 0, p->counters.n, bind_counter);
	if (!r && w->begun)
		r = run(w, w->statements[COMMIT]);
	if (r)
		w->periods.n = w->saved.events;
	else
		remember(w, p, &facts);
	return r;
}

void capturerows_undo(struct capturerows *w)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_reset(w->statements[i]);
	if (!sqlite3_get_autocommit(w->db))
		sqlite3_exec(w->db, "rollback", NULL, NULL, NULL);
}

#define DROP_FRONT(table, saved)                                                                        \
	do {                                                                                            \
		size_t n_ = MIN(saved, (table)->n);                                                     \
		if (n_)                                                                                 \
			memmove((table)->v, (table)->v + n_, ((table)->n - n_) * sizeof(*(table)->v));   \
		(table)->n -= n_;                                                                       \
		(saved) = 0;                                                                            \
	} while (0)

void capturerows_drop(struct capturerows *w, struct profile *p)
{
	DROP_FRONT(&p->samples, w->saved.samples);
	DROP_FRONT(&p->wakes, w->saved.wakes);
	DROP_FRONT(&p->taskwakes, w->saved.taskwakes);
	DROP_FRONT(&p->points, w->saved.points);
}

static int prepare(struct capturerows *w, unsigned which, const char *sql)
{
	return sqlite3_prepare_v3(w->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &w->statements[which], NULL) == SQLITE_OK ? 0 : -1;
}

int capturerows_init(struct capturerows *w, sqlite3 *db)
{
	int r;

	w->db = db;
	redact_init(&w->redact);
	r = prepare(w, CLEAR_LINES, "delete from frame_line where frame = ?") ?: prepare(w, COMMIT, "commit");
	r = r ?: prepare(w, LIST_SAMPLES, "select rowid, time_ns, stack from sample");
	r = r ?: prepare(w, LIST_WAKES, "select rowid, time_ns, stack, waker_stack from wake");
	r = r ?: prepare(w, LIST_TASK_WAKES, "select rowid, time_ns, waker_stack from task_wake");
	r = r ?: prepare(w, STACK_OF_TASK_WAKE, "update task_wake set waker_stack = ?2 where rowid = ?1");
	r = r ?: prepare(w, STACK_OF_SAMPLE, "update sample set stack = ?2 where rowid = ?1");
	r = r ?: prepare(w, STACKS_OF_WAKE, "update wake set stack = ?2, waker_stack = ?3 where rowid = ?1");
	for (int i = 0; i < TABLES && !r; i++) {
		_cleanup_free_ char *sql = columns_insert(i);

		r = prepare(w, i, sql);
	}
	return r;
}

void capturerows_finalize(struct capturerows *w)
{
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(w->statements[i]);
		w->statements[i] = NULL;
	}
}

void capturerows_done(struct capturerows *w)
{
	capturerows_finalize(w);
	redact_done(&w->redact);
	vec_done(&w->periods);
	vec_done(&w->processes);
	vec_done(&w->threads);
	vec_done(&w->modules);
	vec_done(&w->histograms);
	vec_done(&w->counters);
}
