#include "capture/columns.h"

#include "base/buf.h"
#include "profile/profile.h"

#define AT(type, field) .offset = offsetof(struct profile_##type, field)
#define ID { "id", COLUMN_ID }
#define INT(type, field) { #field, COLUMN_INT, AT(type, field) }
#define U32(type, field) { #field, COLUMN_U32, AT(type, field) }
#define ADDRESS(type, field) { #field, COLUMN_ADDRESS, AT(type, field) }
#define REF(type, field, table) { #field, COLUMN_REF, AT(type, field), .of = table }
#define OPTIONAL(type, field, table) { #field, COLUMN_OPTIONAL, AT(type, field), .of = table }
#define TEXT(type, field, hidden) { #field, COLUMN_TEXT, AT(type, field), .hide = hidden }

/*
 * Ids are those of the model and begin with 0: SQLite keeps 0 and 1 in no bytes
 * at all, and the first event, process, thread and module are the usual ones.
 * There are no foreign keys: checking them costs an index each, and a reader
 * must check a damaged file anyway.
 */
const struct table capture_tables[TABLES] = {
	[TABLE_META] = { "meta", " without rowid", .since = 1,
		.columns = { { "key", COLUMN_OWN, .type = " text primary key" }, { "value", COLUMN_OWN, .type = "" } } },
	[TABLE_EVENT] = { "event", .order = "id", .since = 1,
		.columns = { ID, TEXT(event, name, redact_text), TEXT(event, unit, NULL),
			{ "description", COLUMN_TEXT, AT(event, describe), .hide = redact_text }, INT(event, period) } },
	[TABLE_PROCESS] = { "process", .order = "id", .since = 1,
		.columns = { ID, U32(process, pid), U32(process, parent_pid), TEXT(process, name, redact_base),
			TEXT(process, exe, redact_base), TEXT(process, command, redact_none), INT(process, start_ns),
			INT(process, end_ns) } },
	[TABLE_OWNER] = { "owner", .order = "id", .since = 4, .optional = true,
		.columns = { ID, TEXT(owner, kind, redact_text), TEXT(owner, name, redact_none),
			TEXT(owner, container, redact_none), TEXT(owner, engine, redact_text),
			TEXT(owner, image, redact_none), TEXT(owner, pod, redact_none), TEXT(owner, cgroup, redact_none) } },
	[TABLE_PROCESS_OWNER] = { "process_owner", .order = "process", .since = 4, .optional = true,
		.columns = { { "process", COLUMN_OWN, .type = " integer primary key" }, { "owner", COLUMN_OWN },
			{ "inner_pid", COLUMN_OWN } } },
	[TABLE_THREAD] = { "thread", .order = "id", .since = 1,
		.columns = { ID, REF(thread, process, TABLE_PROCESS), U32(thread, tid), TEXT(thread, name, redact_thread),
			INT(thread, start_ns), INT(thread, end_ns), INT(thread, cpu_ns),
			{ "run_ns", COLUMN_INT, AT(thread, run_ns), .since = 2, .before = "0" },
			{ "queue_ns", COLUMN_INT, AT(thread, queue_ns), .since = 2, .before = "0" },
			{ "blocked_ns", COLUMN_INT, AT(thread, blocked_ns), .since = 2, .before = "0" } } },
	[TABLE_MODULE] = { "module", .order = "id", .since = 1,
		.columns = { ID, TEXT(module, path, redact_base), { "kind", COLUMN_OWN, .type = " text" },
			OPTIONAL(module, process, TABLE_PROCESS), { "build_id", COLUMN_OWN, .type = " text" } } },
	[TABLE_MAPPING] = { "mapping", .order = "rowid", .since = 1, .appends = true,
		.columns = { REF(mapping, process, TABLE_PROCESS), REF(mapping, module, TABLE_MODULE),
			ADDRESS(mapping, start), { "\"end\"", COLUMN_ADDRESS, AT(mapping, end) },
			ADDRESS(mapping, bias), INT(mapping, time_ns) } },
	[TABLE_FUNCTION_RANGE] = { "function_range", .order = "rowid", .since = 4, .optional = true, .appends = true,
		.columns = { REF(range, module, TABLE_MODULE), ADDRESS(range, start),
			{ "\"end\"", COLUMN_ADDRESS, AT(range, end) } } },
	[TABLE_FUNCTION] = { "function", .order = "id", .since = 1,
		.columns = { ID, TEXT(function, name, redact_text), TEXT(function, linkage, redact_text),
			TEXT(function, file, redact_base), OPTIONAL(function, module, TABLE_MODULE) } },
	[TABLE_FUNCTION_NAMED] = { "function_named", .order = "function", .since = 4, .optional = true,
		.columns = { { "function", COLUMN_OWN, .type = " integer primary key" },
			{ "named", COLUMN_OWN, .type = " text" } } },
	[TABLE_FRAME] = { "frame", .order = "id", .since = 1,
		.columns = { ID, OPTIONAL(frame, module, TABLE_MODULE), { "kind", COLUMN_OWN }, ADDRESS(frame, address) } },
	[TABLE_LINE] = { "frame_line", ", primary key (frame, depth)) without rowid", "frame, depth", .since = 1,
		.columns = { { "frame", COLUMN_OWN }, { "depth", COLUMN_OWN }, REF(line, function, TABLE_FUNCTION),
			U32(line, line), { "inlined", COLUMN_OWN } } },
	[TABLE_STACK] = { "stack", .order = "id", .since = 1,
		.columns = { ID, REF(node, parent, TABLE_STACK), REF(node, frame, TABLE_FRAME) } },
	[TABLE_SAMPLE] = { "sample", .order = "rowid", .since = 1, .appends = true,
		.columns = { REF(sample, event, TABLE_EVENT), REF(sample, thread, TABLE_THREAD), INT(sample, time_ns),
			REF(sample, stack, TABLE_STACK), { "value", COLUMN_OWN },
			{ "count", COLUMN_OWN, .since = 2, .before = "null" } } },
	[TABLE_WAKE] = { "wake", .order = "rowid", .since = 2, .appends = true,
		.columns = { REF(wake, thread, TABLE_THREAD), INT(wake, time_ns), REF(wake, stack, TABLE_STACK),
			INT(wake, blocked_ns), INT(wake, queue_ns), OPTIONAL(wake, waker, TABLE_THREAD),
			TEXT(wake, waker_name, redact_thread), REF(wake, waker_stack, TABLE_STACK) } },
	[TABLE_TASK_WAKE] = { "task_wake", .order = "rowid", .since = 4, .optional = true, .appends = true,
		.columns = { INT(taskwake, time_ns), INT(taskwake, await_ns), INT(taskwake, queue_ns),
			TEXT(taskwake, type, redact_text), U32(taskwake, task), REF(taskwake, thread, TABLE_THREAD),
			OPTIONAL(taskwake, waker, TABLE_THREAD), TEXT(taskwake, waker_type, redact_text),
			U32(taskwake, waker_task), REF(taskwake, waker_stack, TABLE_STACK) } },
	[TABLE_MARK] = { "mark", .order = "rowid", .since = 3, .appends = true,
		.columns = { INT(mark, start_ns), INT(mark, end_ns), TEXT(mark, name, redact_text),
			TEXT(mark, kind, redact_text), OPTIONAL(mark, thread, TABLE_THREAD),
			{ "number", COLUMN_OWN, .since = 4, .before = "null" },
			{ "gas", COLUMN_OWN, .since = 4, .before = "null" },
			{ "transactions", COLUMN_OWN, .since = 4, .before = "null" } } },
	[TABLE_SUMMED] = { "summed", .order = "start_ns", .since = 4, .optional = true,
		.columns = { { "start_ns", COLUMN_INT, AT(summed, start_ns), .type = " integer primary key" },
			INT(summed, end_ns) } },
	[TABLE_SERIES] = { "series", .order = "id", .since = 2,
		.columns = { ID, TEXT(series, name, redact_text), TEXT(series, unit, NULL) } },
	[TABLE_POINT] = { "point", .order = "rowid", .since = 2, .appends = true,
		.columns = { REF(point, series, TABLE_SERIES), INT(point, time_ns), { "value", COLUMN_OWN } } },
	[TABLE_HISTOGRAM] = { "histogram", ", primary key (name, low)) without rowid", "name, low", .since = 2,
		.columns = { { "name", COLUMN_OWN, .type = " text" }, TEXT(histogram, unit, NULL), { "low", COLUMN_OWN },
			{ "count", COLUMN_OWN } } },
	[TABLE_COUNTER] = { "counter", " without rowid", .since = 1,
		.columns = { { "name", COLUMN_OWN, .type = " text primary key" }, INT(counter, value) } },
	[TABLE_WEIGHT] = { "weight", .since = 4, .optional = true, .derived = true,
		.columns = { { "event", COLUMN_OWN }, { "thread", COLUMN_OWN }, { "stack", COLUMN_OWN },
			{ "samples", COLUMN_OWN }, { "value", COLUMN_OWN } } },
	[TABLE_FUNCTION_SUM] = { "function_sum", .since = 4, .optional = true, .derived = true,
		.columns = { { "event", COLUMN_OWN }, { "frame", COLUMN_OWN }, { "depth", COLUMN_OWN },
			{ "self", COLUMN_OWN }, { "total", COLUMN_OWN } } },
	[TABLE_EVENT_SUM] = { "event_sum", .since = 4, .optional = true, .derived = true,
		.columns = { { "event", COLUMN_OWN }, { "samples", COLUMN_OWN }, { "value", COLUMN_OWN } } },
};

static const char *type_of(const struct column *c)
{
	if (c->type)
		return c->type;
	return c->kind == COLUMN_ID ? " integer primary key" : c->kind == COLUMN_TEXT ? " text" : " integer";
}

char *columns_create(int version)
{
	struct buf b = { 0 };

	for (const struct table *t = capture_tables; t < capture_tables + TABLES; t++) {
		if (t->since > version)
			continue;
		buf_printf(&b, "create table %s (", t->name);
		for (const struct column *c = t->columns; c->kind; c++)
			if (c->since <= version)
				buf_printf(&b, "%s%s%s", c == t->columns ? "" : ", ", c->name, type_of(c));
		/* A key of two columns stands among them. */
		buf_printf(&b, "%s%s;\n", t->end && *t->end == ',' ? "" : ")", t->end ? t->end : "");
	}
	return b.data;
}

char *columns_insert(enum capture_table table)
{
	const struct table *t = &capture_tables[table];
	struct buf b = { 0 };

	buf_printf(&b, "insert %sinto %s values (", t->appends ? "" : "or replace ", t->name);
	for (const struct column *c = t->columns; c->kind; c++)
		buf_puts(&b, c == t->columns ? "?" : ",?");
	buf_putc(&b, ')');
	return b.data;
}

char *columns_select(enum capture_table table, int version)
{
	const struct table *t = &capture_tables[table];
	struct buf b = { 0 };

	buf_puts(&b, "select ");
	for (const struct column *c = t->columns; c->kind; c++)
		buf_printf(&b, "%s%s", c == t->columns ? "" : ", ", c->since <= version ? c->name : c->before);
	buf_printf(&b, " from %s", t->name);
	if (t->order)
		buf_printf(&b, " order by %s", t->order);
	return b.data;
}
