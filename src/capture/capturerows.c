#include "capture/capturerows.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "capture/capturetext.h"

static const char *const statement_sql[STATEMENTS] = {
	[PUT_META] = "insert or replace into meta values (?,?)",
	[PUT_EVENT] = "insert or replace into event values (?,?,?,?,?)",
	[PUT_PROCESS] = "insert or replace into process values (?,?,?,?,?,?,?,?)",
	[PUT_OWNER] = "insert or replace into owner values (?,?,?,?,?,?,?,?)",
	[PUT_PROCESS_OWNER] = "insert or replace into process_owner values (?,?,?)",
	[PUT_THREAD] = "insert or replace into thread values (?,?,?,?,?,?,?,?,?,?)",
	[PUT_MODULE] = "insert or replace into module values (?,?,?,?,?)",
	[PUT_MAPPING] = "insert into mapping values (?,?,?,?,?,?)",
	[PUT_FUNCTION] = "insert or replace into function values (?,?,?,?,?)",
	[PUT_FRAME] = "insert or replace into frame values (?,?,?,?)",
	[CLEAR_LINES] = "delete from frame_line where frame = ?",
	[PUT_LINE] = "insert or replace into frame_line values (?,?,?,?,?)",
	[PUT_STACK] = "insert or replace into stack values (?,?,?)",
	[PUT_SAMPLE] = "insert into sample values (?,?,?,?,?,?)",
	[PUT_WAKE] = "insert into wake values (?,?,?,?,?,?,?,?)",
	[PUT_MARK] = "insert into mark values (?,?,?,?,?,?,?,?)",
	[PUT_SERIES] = "insert or replace into series values (?,?,?)",
	[PUT_POINT] = "insert into point values (?,?,?)",
	[PUT_BUCKET] = "insert or replace into histogram values (?,?,?,?)",
	[PUT_COUNTER] = "insert or replace into counter values (?,?)",
	[COMMIT] = "commit",
};

/* The statements of capturerows_put_symbols(); these tables are the same in all versions of the schema. */
static const bool for_symbols[STATEMENTS] = {
	[PUT_MODULE] = true, [PUT_FUNCTION] = true, [CLEAR_LINES] = true, [PUT_LINE] = true, [COMMIT] = true,
};

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

static void bind_string(sqlite3_stmt *s, int column, const struct profile *p, uint32_t id)
{
	if (!id)
		sqlite3_bind_null(s, column);
	else
		sqlite3_bind_text(s, column, profile_str(p, id), -1, SQLITE_STATIC);
}

/* A string that may say whose the recording is. */
static void bind_hidden(struct capturerows *w, sqlite3_stmt *s, int column, const struct profile *p, uint32_t id,
			redact_fn *fn)
{
	const char *text = profile_str(p, id);

	if (p->redacted)
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

/* The statement to bind to; a flush that has nothing to write never comes here and so costs nothing. */
static sqlite3_stmt *begin(struct capturerows *w, enum statement which)
{
	if (!w->begun)
		w->begun = sqlite3_exec(w->db, "begin immediate", NULL, NULL, NULL) == SQLITE_OK;
	return w->statements[which];
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
	sqlite3_stmt *s = begin(w, PUT_META);

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	bind_int(s, 2, value);
	return run(w, s);
}

static int put_meta_text(struct capturerows *w, const char *key, const char *value)
{
	sqlite3_stmt *s = begin(w, PUT_META);

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, value, -1, SQLITE_STATIC);
	return run(w, s);
}

static int put_facts(struct capturerows *w, const struct profile *p, const struct facts *now)
{
	const struct facts *old = &w->facts;
	bool all = !w->facts_saved;
	int r = 0;

	if (all)
		r |= put_meta_text(w, "made_by", "gasflame " GASFLAME_VERSION);
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

static int put_events(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.events; i < p->events.n && !r; i++) {
		const struct profile_event *e = &p->events.v[i];
		sqlite3_stmt *s = begin(w, PUT_EVENT);

		bind_int(s, 1, i);
		bind_hidden(w, s, 2, p, e->name, redact_text);
		bind_string(s, 3, p, e->unit);
		bind_hidden(w, s, 4, p, e->describe, redact_text);
		bind_int(s, 5, e->period);
		r = run(w, s);
	}
	return r;
}

static int put_owners(struct capturerows *w, const struct profile *p)
{
	static redact_fn *const hide[] = { redact_text, redact_none, redact_none, redact_text, redact_none, redact_none,
					   redact_none };
	int r = 0;

	for (size_t i = w->saved.owners; i < p->owners.n && !r; i++) {
		const struct profile_owner *o = &p->owners.v[i];
		const uint32_t columns[] = { o->kind, o->name, o->container, o->engine, o->image, o->pod, o->cgroup };
		sqlite3_stmt *s = begin(w, PUT_OWNER);

		bind_int(s, 1, i);
		for (size_t k = 0; k < ARRAY_LEN(columns); k++)
			bind_hidden(w, s, k + 2, p, columns[k], hide[k]);
		if (p->redacted) /* the group is what tells one from the other */
			for (int column = 3; column <= 8; column += 5)
				sqlite3_bind_text(s, column, redact_numbered(&w->redact, "owner", i), -1, SQLITE_STATIC);
		r = run(w, s);
	}
	return r;
}

/* Most processes are in no container and no unit, and have no row. */
static int put_process_owner(struct capturerows *w, size_t process, const struct profile_process *x)
{
	sqlite3_stmt *s;

	if (!x->owner && !x->inner_pid)
		return 0;
	s = begin(w, PUT_PROCESS_OWNER);
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
		s = begin(w, PUT_PROCESS);
		bind_int(s, 1, i);
		bind_int(s, 2, x->pid);
		bind_int(s, 3, x->parent_pid);
		bind_hidden(w, s, 4, p, p->redacted ? x->exe : x->name, redact_base);
		if (p->redacted && !x->exe)
			sqlite3_bind_text(s, 4, redact_numbered(&w->redact, "process", i), -1, SQLITE_STATIC);
		bind_hidden(w, s, 5, p, x->exe, redact_base);
		bind_hidden(w, s, 6, p, x->command, redact_none);
		bind_int(s, 7, x->start_ns);
		bind_int(s, 8, x->end_ns);
		r = run(w, s) ?: put_process_owner(w, i, x);
	}
	return r;
}

static int put_threads(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->threads.n && !r; i++) {
		const struct profile_thread *x = &p->threads.v[i];
		sqlite3_stmt *s;

		if (i < w->threads.n && !memcmp(x, &w->threads.v[i], sizeof(*x)))
			continue;
		s = begin(w, PUT_THREAD);
		bind_int(s, 1, i);
		bind_id(s, 2, x->process);
		bind_int(s, 3, x->tid);
		bind_hidden(w, s, 4, p, x->name, redact_thread);
		bind_int(s, 5, x->start_ns);
		bind_int(s, 6, x->end_ns);
		bind_int(s, 7, x->cpu_ns);
		bind_int(s, 8, x->run_ns);
		bind_int(s, 9, x->queue_ns);
		bind_int(s, 10, x->blocked_ns);
		r = run(w, s);
	}
	return r;
}

static void bind_module(struct capturerows *w, sqlite3_stmt *s, const struct profile *p, uint32_t id)
{
	const struct profile_module *m = &p->modules.v[id];
	char hex[2 * sizeof(m->build_id) + 1];

	bind_int(s, 1, id);
	bind_hidden(w, s, 2, p, m->path, redact_base);
	sqlite3_bind_text(s, 3, capturetext_kind(m->kind), -1, SQLITE_STATIC);
	bind_id(s, 4, m->process);
	capturetext_hex(hex, m->build_id, MIN(m->build_id_size, sizeof(m->build_id)));
	if (*hex)
		sqlite3_bind_text(s, 5, hex, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(s, 5);
}

static int put_modules(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->modules.n && !r; i++) {
		const struct profile_module *x = &p->modules.v[i];
		sqlite3_stmt *s;

		if (i < w->modules.n && !memcmp(x, &w->modules.v[i], sizeof(*x)))
			continue;
		s = begin(w, PUT_MODULE);
		bind_module(w, s, p, i);
		r = run(w, s);
	}
	return r;
}

static int put_mappings(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.mappings; i < p->mappings.n && !r; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		sqlite3_stmt *s = begin(w, PUT_MAPPING);

		bind_id(s, 1, m->process);
		bind_id(s, 2, m->module);
		bind_address(s, 3, m->start);
		bind_address(s, 4, m->end);
		bind_address(s, 5, m->bias);
		bind_int(s, 6, m->time_ns);
		r = run(w, s);
	}
	return r;
}

static int put_functions(struct capturerows *w, const struct profile *p)
{
	_cleanup_free_ bool *notes = p->redacted ? redact_find_notes(p, w->saved.frames) : NULL;
	int r = 0;

	for (size_t i = w->saved.functions; i < p->functions.n && !r; i++) {
		const struct profile_function *f = &p->functions.v[i];
		sqlite3_stmt *s = begin(w, PUT_FUNCTION);

		bind_int(s, 1, i);
		bind_hidden(w, s, 2, p, f->name, notes && notes[i] ? redact_note : redact_text);
		bind_hidden(w, s, 3, p, f->linkage == f->name ? 0 : f->linkage, redact_text);
		bind_hidden(w, s, 4, p, f->file, redact_base);
		bind_id(s, 5, f->module);
		r = run(w, s);
	}
	return r;
}

/* In the model address 0 means "only a name"; in the file NULL does. */
static int put_frames(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.frames; i < p->frames.n && !r; i++) {
		const struct profile_frame *f = &p->frames.v[i];
		sqlite3_stmt *s = begin(w, PUT_FRAME);

		bind_int(s, 1, i);
		bind_id(s, 2, f->module);
		bind_int(s, 3, f->kind);
		if (f->address)
			bind_address(s, 4, f->address);
		else
			sqlite3_bind_null(s, 4);
		r = run(w, s);
	}
	return r;
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
		sqlite3_stmt *s = begin(w, PUT_LINE);

		bind_int(s, 1, frame);
		bind_int(s, 2, i);
		bind_id(s, 3, l->function);
		bind_int(s, 4, l->line);
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

/* Node 0, the empty stack, has no row. */
static int put_stacks(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = MAX(w->saved.stacks, (size_t)1); i < p->stacks.n && !r; i++) {
		sqlite3_stmt *s = begin(w, PUT_STACK);

		bind_int(s, 1, i);
		bind_int(s, 2, p->stacks.v[i].parent);
		bind_id(s, 3, p->stacks.v[i].frame);
		r = run(w, s);
	}
	return r;
}

static int put_samples(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.samples; i < p->samples.n && !r; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		sqlite3_stmt *s = begin(w, PUT_SAMPLE);
		uint64_t period = x->event < w->periods.n ? w->periods.v[x->event] : 0;

		bind_id(s, 1, x->event);
		bind_id(s, 2, x->thread);
		bind_int(s, 3, x->time_ns);
		bind_int(s, 4, x->stack);
		if (x->value == period)
			sqlite3_bind_null(s, 5);
		else
			bind_int(s, 5, x->value);
		if (x->count > 1)
			bind_int(s, 6, x->count);
		else
			sqlite3_bind_null(s, 6);
		r = run(w, s);
	}
	return r;
}

/* A waker that is recorded has its name in its thread. */
static int put_wakes(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.wakes; i < p->wakes.n && !r; i++) {
		const struct profile_wake *x = &p->wakes.v[i];
		sqlite3_stmt *s = begin(w, PUT_WAKE);
		bool named = x->waker != PROFILE_NONE && p->threads.v[x->waker].name == x->waker_name;

		bind_id(s, 1, x->thread);
		bind_int(s, 2, x->time_ns);
		bind_int(s, 3, x->stack);
		bind_int(s, 4, x->blocked_ns);
		bind_int(s, 5, x->queue_ns);
		bind_id(s, 6, x->waker);
		bind_hidden(w, s, 7, p, named ? 0 : x->waker_name, redact_thread);
		bind_int(s, 8, x->waker_stack);
		r = run(w, s);
	}
	return r;
}

static void bind_known(sqlite3_stmt *s, int column, bool known, uint64_t value)
{
	if (known)
		bind_int(s, column, value);
	else
		sqlite3_bind_null(s, column);
}

static int put_marks(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.marks; i < p->marks.n && !r; i++) {
		const struct profile_mark *x = &p->marks.v[i];
		sqlite3_stmt *s = begin(w, PUT_MARK);

		bind_int(s, 1, x->start_ns);
		bind_int(s, 2, x->end_ns);
		bind_hidden(w, s, 3, p, x->name, redact_mark(profile_str(p, x->kind)));
		bind_hidden(w, s, 4, p, x->kind, redact_text);
		bind_id(s, 5, x->thread);
		bind_known(s, 6, x->known & MARK_NUMBER, x->number);
		bind_known(s, 7, x->known & MARK_GAS, x->gas);
		bind_known(s, 8, x->known & MARK_TRANSACTIONS, x->transactions);
		r = run(w, s);
	}
	return r;
}

static int put_series(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.series; i < p->series.n && !r; i++) {
		sqlite3_stmt *s = begin(w, PUT_SERIES);

		bind_int(s, 1, i);
		bind_hidden(w, s, 2, p, p->series.v[i].name, redact_text);
		bind_string(s, 3, p, p->series.v[i].unit);
		r = run(w, s);
	}
	return r;
}

static int put_points(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = w->saved.points; i < p->points.n && !r; i++) {
		const struct profile_point *x = &p->points.v[i];
		sqlite3_stmt *s = begin(w, PUT_POINT);

		bind_id(s, 1, x->series);
		bind_int(s, 2, x->time_ns);
		sqlite3_bind_int64(s, 3, x->value);
		r = run(w, s);
	}
	return r;
}

/* The last bucket's 2^63 is one too many for SQLite: bind_int() writes 2^63 - 1. */
static int put_bucket(struct capturerows *w, const struct profile *p, const struct profile_histogram *h,
		      size_t i)
{
	sqlite3_stmt *s = begin(w, PUT_BUCKET);

	sqlite3_bind_text(s, 1, hidden(w, p, h->name, redact_text), -1, SQLITE_STATIC);
	bind_string(s, 2, p, h->unit);
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

static int put_counters(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < p->counters.n && !r; i++) {
		const struct profile_counter *x = &p->counters.v[i];
		sqlite3_stmt *s;

		if (i < w->counters.n && x->value == w->counters.v[i].value)
			continue;
		s = begin(w, PUT_COUNTER);
		sqlite3_bind_text(s, 1, hidden(w, p, x->name, redact_text), -1, SQLITE_STATIC);
		bind_int(s, 2, x->value);
		r = run(w, s);
	}
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
				   .functions = p->functions.n,
				   .frames = p->frames.n,
				   .lines = p->lines.n,
				   .stacks = p->stacks.n,
				   .samples = p->samples.n,
				   .wakes = p->wakes.n,
				   .marks = p->marks.n,
				   .series = p->series.n,
				   .points = p->points.n };
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
	r = r ?: put_events(w, p);
	r = r ?: put_owners(w, p);
	r = r ?: put_processes(w, p);
	r = r ?: put_threads(w, p);
	r = r ?: put_modules(w, p);
	r = r ?: put_mappings(w, p);
	r = r ?: put_functions(w, p);
	r = r ?: put_frames(w, p);
	r = r ?: put_lines(w, p);
	r = r ?: put_stacks(w, p);
	r = r ?: put_samples(w, p);
	r = r ?: put_wakes(w, p);
	r = r ?: put_marks(w, p);
	r = r ?: put_series(w, p);
	r = r ?: put_points(w, p);
	r = r ?: put_histograms(w, p);
	r = r ?: put_counters(w, p);
	if (!r && w->begun)
		r = run(w, w->statements[COMMIT]);
	if (r)
		w->periods.n = w->saved.events;
	else
		remember(w, p, &facts);
	return r;
}

int capturerows_put_symbols(struct capturerows *w, const struct profile *p)
{
	int r = 0;

	if (sqlite3_exec(w->db, "begin immediate; delete from frame_line; delete from function", NULL, NULL,
			 NULL) != SQLITE_OK)
		return -1;
	w->begun = true;
	r = r ?: put_modules(w, p);
	r = r ?: put_functions(w, p);
	r = r ?: put_lines(w, p);
	return r ?: run(w, w->statements[COMMIT]);
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
	DROP_FRONT(&p->points, w->saved.points);
}

int capturerows_init(struct capturerows *w, sqlite3 *db, bool only_symbols)
{
	w->db = db;
	redact_init(&w->redact);
	for (int i = 0; i < STATEMENTS; i++)
		if ((!only_symbols || for_symbols[i]) &&
		    sqlite3_prepare_v3(db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &w->statements[i],
				       NULL) != SQLITE_OK)
			return -1;
	return 0;
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
