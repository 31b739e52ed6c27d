#include "capture/scan/stacktext.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/scan/tablescan.h"
#include "capture/schema.h"

enum {
	NODES_MAX = 1 << 24, /* 400 MB */
	FRAMES_MAX = 1 << 24,
	KIND_USER = 0, KIND_CODE = 2, /* below this a frame is code: of a program, or of the kernel */
	NOWHERE = UINT32_MAX,
};

struct node {
	uint32_t parent, frame;
	uint32_t user, code; /* the innermost frame of user code, and of any code, from the root to here; NOWHERE = none */
	uint32_t depth;
	uint64_t bytes;      /* of its text */
};

struct frame {
	uint32_t label; /* of the texts; NOWHERE = it has none */
	uint32_t kind;
};

struct stacktext {
	sqlite3 *db;
	VEC(struct node) nodes; /* by id; 0 is the empty stack */
	VEC(struct frame) frames;
	struct strtab labels;
	struct buf label;       /* of the frame that is being read */
	bool read, give_up;
};

static const char *const names[] = { "stack_text", "stack_depth", "stack_site" };

bool stacktext_has(const char *function)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

/* --- the tree --- */

static bool small(sqlite3_stmt *q, int column, int64_t below)
{
	return sqlite3_column_type(q, column) == SQLITE_INTEGER && sqlite3_column_int64(q, column) >= 0 &&
	       sqlite3_column_int64(q, column) < below;
}

/* Rows are: frame, its kind, a function; of one frame the outermost function first. */
static void add_line(struct stacktext *t, sqlite3_stmt *q)
{
	uint32_t frame = sqlite3_column_int64(q, 0);
	const char *function = (const char *)sqlite3_column_text(q, 2);
	struct frame *f;

	if (!small(q, 0, FRAMES_MAX) || !small(q, 1, NOWHERE) || !function) {
		t->give_up = true;
		return;
	}
	while (t->frames.n <= frame)
		vec_push(&t->frames, (struct frame){ .label = NOWHERE });
	f = &t->frames.v[frame];
	if (f->label == NOWHERE)
		t->label.n = 0;
	else
		buf_putc(&t->label, ';');
	buf_puts(&t->label, function);
	f->label = strtab_add(&t->labels, t->label.n ? t->label.data : "");
	f->kind = sqlite3_column_int64(q, 1);
}

static int read_frames(struct stacktext *t)
{
	sqlite3_stmt *q = NULL;
	int result = sqlite3_prepare_v2(t->db, "select frames.frame, frame.kind, frames.function from frames"
					       " cross join frame on frame.id = frames.frame"
					       " order by frames.frame, frames.depth desc", -1, &q, NULL);

	while (result == SQLITE_OK && (result = sqlite3_step(q)) == SQLITE_ROW && !t->give_up) {
		add_line(t, q);
		result = SQLITE_OK;
	}
	sqlite3_finalize(q);
	return result == SQLITE_DONE || t->give_up ? SQLITE_OK : result;
}

/* Columns: id (NULL, for it is the rowid), parent, frame. */
static bool on_node(void *context, const struct tablescan_row *row)
{
	struct stacktext *t = context;
	int64_t parent = row->values[1], frame = row->values[2];
	const struct node *above;
	const struct frame *f;

	if (row->odd || row->nulls & 6 || row->rowid != (int64_t)t->nodes.n || row->rowid >= NODES_MAX || parent < 0 ||
	    parent >= row->rowid || frame < 0 || (uint64_t)frame >= t->frames.n || t->frames.v[frame].label == NOWHERE) {
		t->give_up = true;
		return false;
	}
	vec_reserve(&t->nodes, 1);
	above = &t->nodes.v[parent];
	f = &t->frames.v[frame];
	t->nodes.v[t->nodes.n++] = (struct node){
		.parent = parent, .frame = frame, .depth = above->depth + 1,
		.user = f->kind == KIND_USER ? (uint32_t)frame : above->user,
		.code = f->kind < KIND_CODE ? (uint32_t)frame : above->code,
		.bytes = above->bytes + !!above->depth + strlen(strtab_get(&t->labels, f->label)),
	};
	return true;
}

static void on_restart(void *context)
{
	struct stacktext *t = context;

	vec_clear(&t->nodes);
	vec_push(&t->nodes, (struct node){ .user = NOWHERE, .code = NOWHERE });
	t->give_up = false;
}

int stacktext_read(struct stacktext *t)
{
	const struct tablescan scan = { .table = "stack", .columns = 3, .row = on_node, .restart = on_restart,
					.sql = "select id, null, parent, frame from stack order by id" };
	int result;

	if (t->read)
		return t->give_up;
	result = read_frames(t);
	if (result == SQLITE_OK && !t->give_up) {
		on_restart(t);
		result = tablescan_read(t->db, &scan, t);
		result = result == SQLITE_DONE ? SQLITE_OK : result;
	}
	t->read = true;
	t->give_up |= result != SQLITE_OK;
	return t->give_up;
}

/* --- the functions: NULL for what is no stack --- */

static const struct node *node_of(sqlite3_context *context, sqlite3_value *id)
{
	struct stacktext *t = sqlite3_user_data(context);
	int64_t i = sqlite3_value_int64(id);

	if (t->give_up || sqlite3_value_type(id) != SQLITE_INTEGER || i < 0 || (uint64_t)i >= t->nodes.n)
		return NULL;
	return &t->nodes.v[i];
}

/* From the end to the beginning, as parents are found. */
static void text(sqlite3_context *context, int n, sqlite3_value **values)
{
	const struct stacktext *t = sqlite3_user_data(context);
	const struct node *node = node_of(context, values[0]);
	char *out = node ? sqlite3_malloc64(node->bytes + 1) : NULL;
	uint64_t at = node ? node->bytes : 0;

	if (!node)
		return;
	if (!out) {
		sqlite3_result_error_nomem(context);
		return;
	}
	out[at] = 0;
	for (; node->depth; node = &t->nodes.v[node->parent]) {
		const char *label = strtab_get(&t->labels, t->frames.v[node->frame].label);
		size_t bytes = strlen(label);

		memcpy(out + (at -= bytes), label, bytes);
		if (node->depth > 1)
			out[--at] = ';';
	}
	/* With -1 it is known to end: SQLite need not copy it to put an end there. */
	sqlite3_result_text(context, out, -1, sqlite3_free);
}

static void depth(sqlite3_context *context, int n, sqlite3_value **values)
{
	const struct node *node = node_of(context, values[0]);

	if (node)
		sqlite3_result_int64(context, node->depth);
}

/* The last frame of user code, else the last one that is code at all, else the last one; of the empty stack none. */
static void site(sqlite3_context *context, int n, sqlite3_value **values)
{
	const struct node *node = node_of(context, values[0]);

	if (node && node->depth)
		sqlite3_result_int64(context, node->user != NOWHERE ? node->user : node->code != NOWHERE ? node->code : node->frame);
}

/* --- the views --- */

static const char drop_views[] = "drop view temp.stacks; drop view temp.sites; drop view temp.waits";
static const char views[] =
	"create temp view stacks as\n"
	"with part as materialized (\n"
	"  select event, stack, sum(samples) as samples, sum(value) as value\n"
	"  from weights group by event, stack)\n"
	"select event.name as event, part.stack as id, stack_depth(part.stack) as depth,\n"
	"  stack_text(part.stack) as stack, part.samples, part.value\n"
	"from part cross join event on event.id = part.event where stack_depth(part.stack) is not null;\n"

	"create temp view sites as\n"
	"with place as materialized (select frame, function, module, kind from frames where depth = 0)\n"
	"select stack.id as stack, function, module, place.kind\n"
	"from stack cross join place on place.frame = stack_site(stack.id);\n"

	"create temp view waits as\n"
	"with spot as materialized (\n"
	"  select thread, stack_site(stack) as frame, sum(samples) as count, sum(value) as value\n"
	"  from weights where event in (select id from event where name = 'wait')\n"
	"  group by 1, 2),\n"
	"place as materialized (select frame, function, module from frames where depth = 0),\n"
	SCHEMA_WAITS_OF_SPOTS;

int stacktext_add(sqlite3 *db, struct stacktext **ret)
{
	static void (*const functions[])(sqlite3_context *, int, sqlite3_value **) = { text, depth, site };
	struct stacktext *t = mem_alloc(sizeof(*t));
	int result = SQLITE_OK;

	t->db = db;
	strtab_init(&t->labels);
	for (size_t i = 0; i < ARRAY_LEN(names) && result == SQLITE_OK; i++)
		result = sqlite3_create_function_v2(db, names[i], 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, t,
						    functions[i], NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(db, drop_views, NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(db, views, NULL, NULL, NULL);
	*ret = t;
	return result;
}

int stacktext_remove(sqlite3 *db)
{
	static const char *const replaced[] = { "stacks", "sites", "waits" };
	int result = sqlite3_exec(db, drop_views, NULL, NULL, NULL);

	for (size_t i = 0; i < ARRAY_LEN(replaced) && result == SQLITE_OK; i++)
		result = schema_put_view(db, replaced[i]);
	return result;
}

void stacktext_free(struct stacktext *t)
{
	if (!t)
		return;
	vec_done(&t->nodes);
	vec_done(&t->frames);
	strtab_done(&t->labels);
	buf_done(&t->label);
	free(t);
}
