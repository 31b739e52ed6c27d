#include "capture/scan/functions.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "capture/scan/tablescan.h"
#include "capture/scan/weights.h"

enum {
	NODES_MAX = 1 << 23,  /* 250 MB */
	FRAMES_MAX = 1 << 24,
	STEPS_MAX = 1 << 28,  /* lines of all nodes for all events: some seconds */
	KIND_NOTE = 3,
	NOWHERE = UINT32_MAX,
};

struct node {
	uint32_t parent, frame;
	uint32_t child, sibling; /* 0 = none */
	uint32_t about;          /* itself; of a note the node that it is about */
};

/* Lines of a frame are neighbours; the innermost, whose depth is 0, comes first. */
struct line {
	uint32_t number; /* of the function */
	uint32_t depth;
};

struct frame {
	uint32_t first, count;
	bool note;
};

struct function {
	uint32_t frame, depth; /* one of the places that have this name, module and kind */
	bool called;
	uint32_t open;         /* calls that the walk is inside of */
	uint64_t self, total;
};

struct functions {
	sqlite3 *db;
	VEC(struct node) nodes; /* by id; 0 is the empty stack */
	VEC(struct frame) frames;
	VEC(struct line) lines;
	VEC(struct function) functions;
	uint64_t *inside; /* of each node, for the event at hand */
	uint64_t steps;   /* of a walk */
	sqlite3_stmt *insert;
	bool give_up;
};

static bool small(sqlite3_stmt *q, int column, int64_t below)
{
	return sqlite3_column_type(q, column) == SQLITE_INTEGER && sqlite3_column_int64(q, column) >= 0 &&
	       sqlite3_column_int64(q, column) < below;
}

static void add_line(struct functions *f, uint32_t frame, uint32_t depth, uint32_t number)
{
	struct frame *at;

	while (f->frames.n <= frame)
		vec_push(&f->frames, (struct frame){ 0 });
	while (f->functions.n <= number)
		vec_push(&f->functions, (struct function){ .frame = NOWHERE });
	at = &f->frames.v[frame];
	if (!at->count++)
		at->first = f->lines.n;
	vec_push(&f->lines, (struct line){ number, depth });
	if (f->functions.v[number].frame == NOWHERE) {
		f->functions.v[number].frame = frame;
		f->functions.v[number].depth = depth;
	}
}

static int read_rows(struct functions *f, const char *sql, void (*row)(struct functions *f, sqlite3_stmt *q))
{
	sqlite3_stmt *q = NULL;
	int result = sqlite3_prepare_v2(f->db, sql, -1, &q, NULL);

	while (result == SQLITE_OK && (result = sqlite3_step(q)) == SQLITE_ROW && !f->give_up) {
		row(f, q);
		result = SQLITE_OK;
	}
	sqlite3_finalize(q);
	return result == SQLITE_DONE || f->give_up ? SQLITE_OK : result;
}

static void on_line(struct functions *f, sqlite3_stmt *q)
{
	if (small(q, 0, FRAMES_MAX) && small(q, 1, NOWHERE) && small(q, 2, NOWHERE))
		add_line(f, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2));
	else
		f->give_up = true;
}

static void on_note(struct functions *f, sqlite3_stmt *q)
{
	uint32_t frame = sqlite3_column_int64(q, 0);

	/* A frame of a kind that is not ours is a note in one place of the views and none in another. */
	if (!small(q, 0, FRAMES_MAX) || !small(q, 1, KIND_NOTE + 1)) {
		f->give_up = true;
		return;
	}
	while (f->frames.n <= frame)
		vec_push(&f->frames, (struct frame){ 0 });
	f->frames.v[frame].note = true;
}

static const struct frame *frame_of(const struct functions *f, uint32_t node)
{
	static const struct frame none;
	uint32_t frame = f->nodes.v[node].frame;

	return frame < f->frames.n ? &f->frames.v[frame] : &none;
}

/* Columns: id (NULL, for it is the rowid), parent, frame. */
static bool on_node(void *context, const struct tablescan_row *row)
{
	struct functions *f = context;
	int64_t parent = row->values[1], frame = row->values[2];
	const struct frame *at;

	if (row->odd || row->nulls & 6 || row->rowid != (int64_t)f->nodes.n || row->rowid >= NODES_MAX || parent < 0 ||
	    parent >= row->rowid || frame < 0 || frame >= FRAMES_MAX) {
		f->give_up = true;
		return false;
	}
	vec_push(&f->nodes, (struct node){ .parent = parent, .frame = frame, .sibling = f->nodes.v[parent].child });
	f->nodes.v[parent].child = row->rowid;
	at = frame_of(f, row->rowid);
	f->nodes.v[row->rowid].about = at->note ? f->nodes.v[parent].about : row->rowid;
	f->steps += 1 + at->count;
	return true;
}

static void on_restart(void *context)
{
	struct functions *f = context;

	vec_clear(&f->nodes);
	vec_push(&f->nodes, (struct node){ .frame = NOWHERE });
	f->steps = 0;
	f->give_up = false;
}

static int read_tree(struct functions *f)
{
	const struct tablescan scan = { .table = "stack", .columns = 3, .row = on_node, .restart = on_restart,
					.sql = "select id, null, parent, frame from stack order by id" };
	int result = read_rows(f, "select frame, depth, dense_rank() over (order by function, module, kind) - 1"
				  " from frames where kind <> 'note' order by frame, depth", on_line);

	if (result == SQLITE_OK && !f->give_up)
		result = read_rows(f, "select id, kind from frame where kind is null or kind not in (0, 1, 2)", on_note);
	if (result == SQLITE_OK && !f->give_up) {
		on_restart(f);
		result = tablescan_read(f->db, &scan, f);
		result = result == SQLITE_DONE ? SQLITE_OK : result;
	}
	return result;
}

static void add_self(struct functions *f, uint32_t node, uint64_t value)
{
	const struct frame *at = frame_of(f, f->nodes.v[node].about);

	if (at->count && !f->lines.v[at->first].depth)
		f->functions.v[f->lines.v[at->first].number].self += value;
}

static void enter(struct functions *f, uint32_t node)
{
	const struct frame *at = frame_of(f, node);

	for (uint32_t i = 0; i < at->count; i++) {
		struct function *x = &f->functions.v[f->lines.v[at->first + i].number];

		x->called = true;
		if (!x->open++)
			x->total += f->inside[node];
	}
}

static void leave(struct functions *f, uint32_t node)
{
	const struct frame *at = frame_of(f, node);

	for (uint32_t i = 0; i < at->count; i++)
		f->functions.v[f->lines.v[at->first + i].number].open--;
}

/* Depth first, so that a call within a call of the same function is seen. */
static void walk(struct functions *f)
{
	uint32_t node = f->nodes.v[0].child;

	while (node) {
		enter(f, node);
		if (f->nodes.v[node].child) {
			node = f->nodes.v[node].child;
			continue;
		}
		leave(f, node);
		while (!f->nodes.v[node].sibling && f->nodes.v[node].parent) {
			node = f->nodes.v[node].parent;
			leave(f, node);
		}
		node = f->nodes.v[node].sibling;
	}
}

/* Returns the sum of the event, or UINT64_MAX when it is too large for SQL. */
static uint64_t sum_event(struct functions *f, const struct weights_sum *sums, size_t n)
{
	uint64_t whole = 0;

	for (size_t i = 0; i < f->nodes.n; i++)
		f->inside[i] = 0;
	for (size_t i = 0; i < f->functions.n; i++)
		f->functions.v[i].self = f->functions.v[i].total = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t stack = weights_stack(&sums[i]);

		whole += sums[i].value;
		if (whole >> 62)
			return UINT64_MAX;
		if (stack < f->nodes.n) {
			f->inside[stack] += sums[i].value;
			add_self(f, stack, sums[i].value);
		}
	}
	for (size_t i = f->nodes.n; i-- > 1;)
		f->inside[f->nodes.v[i].parent] += f->inside[i];
	walk(f);
	return whole;
}

static int put(struct functions *f, unsigned event, const struct function *x, uint64_t whole)
{
	int result;

	sqlite3_bind_int64(f->insert, 1, event);
	if (x) {
		sqlite3_bind_int64(f->insert, 2, x->frame);
		sqlite3_bind_int64(f->insert, 3, x->depth);
	} else {
		sqlite3_bind_null(f->insert, 2);
		sqlite3_bind_null(f->insert, 3);
	}
	sqlite3_bind_int64(f->insert, 4, x ? x->self : 0);
	sqlite3_bind_int64(f->insert, 5, x ? x->total : whole);
	result = sqlite3_step(f->insert);
	sqlite3_reset(f->insert);
	return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int put_events(struct functions *f, const struct weights_sum *sums, size_t n)
{
	int result = SQLITE_OK;

	for (size_t i = 0, end; i < n && result == SQLITE_OK; i = end) {
		unsigned event = weights_event(&sums[i]);
		uint64_t whole;

		for (end = i; end < n && weights_event(&sums[end]) == event;)
			end++;
		whole = sum_event(f, sums + i, end - i);
		if (whole == UINT64_MAX)
			return SQLITE_TOOBIG;
		result = put(f, event, NULL, whole);
		for (size_t k = 0; k < f->functions.n && result == SQLITE_OK; k++)
			if (f->functions.v[k].called)
				result = put(f, event, &f->functions.v[k], 0);
	}
	return result;
}

static size_t count_events(const struct weights_sum *sums, size_t n)
{
	size_t events = 0;

	for (size_t i = 0; i < n; i++)
		events += !i || weights_event(&sums[i]) != weights_event(&sums[i - 1]);
	return events;
}

static int write_events(struct functions *f, const char *schema, const struct weights_sum *sums, size_t n)
{
	char *sql = sqlite3_mprintf("insert into %s.function_sum values (?, ?, ?, ?, ?)", schema);
	int result = sql ? sqlite3_exec(f->db, "begin", NULL, NULL, NULL) : SQLITE_NOMEM;

	if (result == SQLITE_OK)
		result = sqlite3_prepare_v2(f->db, sql, -1, &f->insert, NULL);
	if (result == SQLITE_OK)
		result = put_events(f, sums, n);
	sqlite3_finalize(f->insert);
	sqlite3_free(sql);
	if (result == SQLITE_OK)
		result = sqlite3_exec(f->db, "commit", NULL, NULL, NULL);
	if (!sqlite3_get_autocommit(f->db))
		sqlite3_exec(f->db, "rollback", NULL, NULL, NULL);
	return result == SQLITE_TOOBIG ? SQLITE_OK : result;
}

int functions_fill(sqlite3 *db, const char *schema, const struct weights_sum *sums, size_t n, uint64_t rows,
		   unsigned worth)
{
	struct functions f = { .db = db };
	size_t events = count_events(sums, n);
	int result = read_tree(&f);

	if (result == SQLITE_OK && !f.give_up && events && rows / events / (f.functions.n + 1) >= worth &&
	    f.steps * events <= STEPS_MAX) {
		f.inside = mem_alloc(f.nodes.n * sizeof(*f.inside));
		result = write_events(&f, schema, sums, n);
	}
	vec_done(&f.nodes);
	vec_done(&f.frames);
	vec_done(&f.lines);
	vec_done(&f.functions);
	free(f.inside);
	return result;
}
