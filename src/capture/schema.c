#include "capture/schema.h"

/* What was measured at each stack; where it ends in notes, also at its parents up to what they are about.
 * Of these rows the one that is no note counts. A parent has a smaller id, but a hostile file's may not. */
#define ABOUT(columns)                                                                                  \
	"about(event, node, " columns ") as (\n"                                                         \
	"  select event, stack, " columns " from weight\n"                                               \
	"  union all\n"                                                                                  \
	"  select event, parent, " columns " from about cross join stack on stack.id = about.node\n"     \
	"    cross join frame on frame.id = stack.frame where frame.kind = 3 and parent < node),\n"

/*
 * The frame of each stack that says where it is, from the root on: the last frame of user code, else the last one that
 * is code at all. The walk begins with the table, not with a constant, so that SQLite expects many rows of it and makes
 * an index to look them up. Names are made once for each frame, not for each node.
 */
#define SITES                                                                                           \
	"walk(stack, user, code, frame) as (\n"                                                         \
	"  select stack.id, case kind when 0 then frame end, case when kind < 2 then frame end, frame\n" \
	"  from stack cross join frame on frame.id = stack.frame where parent = 0\n"                    \
	"  union all\n"                                                                                 \
	"  select child.id, case kind when 0 then child.frame else user end,\n"                         \
	"    case when kind < 2 then child.frame else code end, child.frame\n"                          \
	"  from walk cross join stack as child on child.parent = walk.stack\n"                          \
	"    cross join frame on frame.id = child.frame),\n"                                            \
	"place as materialized (select frame, function, module, kind from frames where depth = 0)"

/* The parts of a view that the table of function sums makes needless are empty where it has rows. */
#define UNLESS_SUMMED "not exists (select 1 from function_sum)"

/*
 * Every view counts in the unit of the event; a sample without a value has the
 * event's period, and one without a count is one. Views of sums read weights: the
 * sums that the recorder wrote (scan/weights.h), or the samples where it wrote none. SQLite makes the indexes that
 * the joins need while a query runs (50 ms for 100,000 nodes), so the file need
 * not carry them; "cross join" keeps the order that this depends on. The order of
 * a recursive query's rows, which row_number() numbers, is the order of its queue.
 */
const char schema_views[] =
	"create view frames as\n"
	"select frame.id as frame, coalesce(line.depth, 0) as depth,\n"
	"  case when frame.kind = 2 then '[truncated: ' || coalesce(function.name, 'unknown reason') || ']'\n"
	"    when function.name is not null then function.name\n"
	"    when module.path is not null then printf('%s+0x%x',\n"
	"      substr(module.path, 1 + length(rtrim(module.path, replace(module.path, '/', '')))), frame.address)\n"
	"    else '[unknown]' end as function,\n"
	"  case when frame.kind = 2 then '' else coalesce(module.path, other.path, '') end as module,\n"
	"  case frame.kind when 0 then 'user' when 1 then 'kernel' when 2 then 'truncated' else 'note' end\n"
	"    as kind,\n"
	"  function.file as file, nullif(line.line, 0) as line, coalesce(line.inlined, 0) as inlined\n"
	"from frame left join module on module.id = frame.module\n"
	"  left join frame_line as line on line.frame = frame.id\n"
	"  left join function on function.id = line.function\n"
	"  left join module as other on other.id = function.module;\n"

	/* "not exists" is asked once, before the first sample. */
	"create view weights as\n"
	"select event, thread, stack, samples, value from weight\n"
	"union all\n"
	"select sample.event, thread, stack, coalesce(count, 1), coalesce(value, period)\n"
	"from sample join event on event.id = sample.event where not exists (select 1 from weight);\n"

	"create view threads as\n"
	"with part as materialized (\n"
	"  select event, thread, sum(samples) as samples, sum(value) as value\n"
	"  from weights group by event, thread),\n"
	"whole as materialized (select event, sum(value) as value from part group by event)\n"
	"select event.name as event, thread.name, tid, pid, coalesce(samples, 0) as samples,\n"
	"  coalesce(part.value, 0) as value, round(100.0 * coalesce(part.value, 0) / whole.value, 2) as share,\n"
	"  cpu_ns / 1e9 as cpu_seconds, run_ns / 1e9 as run_seconds, queue_ns / 1e9 as queue_seconds,\n"
	"  blocked_ns / 1e9 as blocked_seconds\n"
	"from thread left join process on process.id = thread.process\n"
	"  left join part on part.thread = thread.id\n"
	"  left join whole on whole.event = part.event\n"
	"  left join event on event.id = part.event\n"
	"order by event.id is null, event.id, part.value desc, thread.id;\n"

	"create view modules as\n"
	"with recursive\n"
	"weight as materialized (\n"
	"  select event, stack, sum(samples) as samples, sum(value) as value\n"
	"  from weights group by event, stack),\n"
	ABOUT("samples, value")
	"part as materialized (\n"
	"  select event, frame.module, sum(samples) as samples, sum(value) as value\n"
	"  from about left join stack on stack.id = about.node left join frame on frame.id = stack.frame\n"
	"  where frame.kind is not 3 group by event, frame.module),\n"
	"whole as materialized (select event, sum(value) as value from part group by event)\n"
	"select event.name as event, coalesce(path, '[unknown]') as module, kind, build_id, samples,\n"
	"  part.value as self, round(100.0 * part.value / whole.value, 2) as self_percent\n"
	"from part join whole on whole.event = part.event join event on event.id = part.event\n"
	"  left join module on module.id = part.module\n"
	"order by event.id, self desc, module;\n"

	"create view stacks as\n"
	"with recursive\n"
	"label as materialized (\n"
	"  select distinct frame, group_concat(function, ';') over (partition by frame order by depth desc\n"
	"    rows between unbounded preceding and unbounded following) as text from frames),\n"
	"weight as materialized (\n"
	"  select event, stack, sum(samples) as samples, sum(value) as value\n"
	"  from weights group by event, stack),\n"
	"walk(stack, depth, text) as (\n"
	"  select 0, 0, ''\n"
	"  union all\n"
	"  select child.id, walk.depth + 1,\n"
	"    case when walk.depth then walk.text || ';' || label.text else label.text end\n"
	"  from walk cross join stack as child on child.parent = walk.stack\n"
	"    cross join label on label.frame = child.frame\n"
	"  order by 2 desc)\n"
	"select event.name as event, walk.stack as id, walk.depth, walk.text as stack, weight.samples,\n"
	"  weight.value\n"
	"from walk cross join weight on weight.stack = walk.stack cross join event on event.id = weight.event;\n"

	"create view top_functions as\n"
	"with recursive\n"
	"-- Functions by number: same name, module and kind, same function. A note is none.\n"
	"line as materialized (\n"
	"  select frame, depth, dense_rank() over (order by function, module, kind) as number, function, module\n"
	"  from frames where kind <> 'note' and " UNLESS_SUMMED "),\n"
	"named as materialized (select distinct number, function, module from line),\n"
	"weight as materialized (\n"
	"  select event, stack, sum(value) as value from weights\n"
	"  where " UNLESS_SUMMED " group by event, stack),\n"
	"whole as materialized (select event, sum(value) as value from weight group by event),\n"
	ABOUT("value")
	"-- The tree, depth first: a node when it is entered, and negative when it is left.\n"
	"walk(node, at) as (\n"
	"  select id, 0.0 from stack where parent = 0 and " UNLESS_SUMMED "\n"
	"  union all\n"
	"  select child.id, at + 1 from walk cross join stack as child on child.parent = walk.node\n"
	"  union all\n"
	"  select -node, at + 0.5 from walk where node > 0\n"
	"  order by 2 desc),\n"
	"step as materialized (select row_number() over () as n, node from walk),\n"
	"span as (select abs(node) as node, min(n) as entered, max(n) as left from step group by abs(node)),\n"
	"-- What was measured up to each step; the difference between leaving and entering is the node's total.\n"
	"sum_to as (\n"
	"  select whole.event, node, coalesce(weight.value, 0) as own,\n"
	"    sum(coalesce(weight.value, 0)) over (partition by whole.event order by n\n"
	"      rows unbounded preceding) as value\n"
	"  from whole cross join step\n"
	"    left join weight on weight.event = whole.event and weight.stack = step.node),\n"
	"inside as (\n"
	"  select event, abs(node) as node, max(value) - min(value) + max(own) as value\n"
	"  from sum_to group by event, abs(node)),\n"
	"-- A call within a call of the same function (recursion) is entered before the outer one is left.\n"
	"call as (\n"
	"  select span.node, number, entered, max(left) over (partition by number order by entered\n"
	"    rows between unbounded preceding and 1 preceding) as outer_left\n"
	"  from span cross join stack on stack.id = span.node cross join line on line.frame = stack.frame),\n"
	"total as materialized (\n"
	"  select event, number, sum(value) as value from call cross join inside on inside.node = call.node\n"
	"  where coalesce(outer_left, 0) < entered group by event, number),\n"
	"self as materialized (\n"
	"  select event, number, sum(value) as value\n"
	"  from about cross join stack on stack.id = about.node\n"
	"    cross join line on line.frame = stack.frame and line.depth = 0\n"
	"  group by event, number),\n"
	"sums as (\n"
	"  select total.event, function, module, coalesce(self.value, 0) as self, total.value as total,\n"
	"    whole.value as whole\n"
	"  from total join named on named.number = total.number join whole on whole.event = total.event\n"
	"    left join self on self.event = total.event and self.number = total.number\n"
	"  union all\n"
	"  select part.event, function, module, part.self, part.total, whole.total\n"
	"  from function_sum as whole cross join function_sum as part on part.event = whole.event\n"
	"    cross join frames on frames.frame = part.frame and frames.depth = part.depth\n"
	"  where whole.frame is null)\n"
	"select event.name as event, function, module, self, total,\n"
	"  round(100.0 * self / whole, 2) as self_percent, round(100.0 * total / whole, 2) as total_percent\n"
	"from sums join event on event.id = sums.event\n"
	"order by event.id, self desc, total desc, function, module;\n"

	"create view sites as\n"
	"with recursive\n"
	SITES "\n"
	"select walk.stack, function, module, kind\n"
	"from walk cross join place on place.frame = coalesce(user, code, walk.frame);\n"

	"create view waits as\n"
	"with recursive\n"
	"weight as materialized (\n"
	"  select thread, stack, sum(samples) as count, sum(value) as value\n"
	"  from weights where event in (select id from event where name = 'wait')\n"
	"  group by thread, stack),\n"
	SITES ",\n"
	"site as materialized (\n"
	"  select stack, coalesce(user, code, frame) as frame from walk where stack in (select stack from weight)),\n"
	"spot as materialized (\n"
	"  select thread, frame, sum(count) as count, sum(value) as value\n"
	"  from weight left join site on site.stack = weight.stack group by 1, 2),\n"
	SCHEMA_WAITS_OF_SPOTS

	"create view wakes as\n"
	"with used as materialized (select stack from wake union select waker_stack from wake),\n"
	"site as materialized (select * from sites where stack in (select stack from used))\n"
	"select wake.time_ns / 1e9 as time, thread.name as thread, thread.tid,\n"
	"  coalesce(site.function, '[unknown]') as function, round(wake.blocked_ns / 1e6, 3) as ms,\n"
	"  round(wake.queue_ns / 1e6, 3) as queue_ms, coalesce(waker_name, other.name) as waker,\n"
	"  other.tid as waker_tid, coalesce(waking.function, '[unknown]') as waker_function\n"
	"from wake left join thread on thread.id = wake.thread left join site on site.stack = wake.stack\n"
	"  left join thread as other on other.id = wake.waker\n"
	"  left join site as waking on waking.stack = wake.waker_stack\n"
	"order by wake.time_ns;\n"

	"create view task_wakes as\n"
	"with site as materialized (select * from sites where stack in (select waker_stack from task_wake))\n"
	"select task_wake.time_ns / 1e9 as time, type, task, round(await_ns / 1e6, 3) as ms,\n"
	"  round(task_wake.queue_ns / 1e6, 3) as queue_ms, thread.name as thread, thread.tid, other.name as waker,\n"
	"  other.tid as waker_tid, waker_type, nullif(waker_task, 0) as waker_task, site.function as waker_function\n"
	"from task_wake left join thread on thread.id = task_wake.thread\n"
	"  left join thread as other on other.id = task_wake.waker\n"
	"  left join site on site.stack = task_wake.waker_stack\n"
	"order by task_wake.time_ns, task_wake.rowid;\n"

	"create view tasks as\n"
	"with kind(suffix) as (values ('.spawned'), ('.finished'), ('.alive'), ('.polls'), ('.wakes'), ('.poll_ns'), ('.poll_max_ns'),\n"
	"  ('.queue_ns'), ('.await_ns')),\n"
	"figure as materialized (\n"
	"  select substr(name, 6, length(name) - 5 - length(suffix)) as type, suffix, value from counter cross join kind\n"
	"  where substr(name, 1, 5) = 'task.' and substr(name, -length(suffix)) = suffix and length(name) > 5 + length(suffix))\n"
	"select type,\n"
	"  coalesce(sum(value) filter (where suffix = '.spawned'), 0) as spawned,\n"
	"  coalesce(sum(value) filter (where suffix = '.finished'), 0) as finished,\n"
	"  coalesce(sum(value) filter (where suffix = '.alive'), 0) as alive,\n"
	"  coalesce(sum(value) filter (where suffix = '.polls'), 0) as polls,\n"
	"  coalesce(sum(value) filter (where suffix = '.wakes'), 0) as wakes,\n"
	"  round(coalesce(sum(value) filter (where suffix = '.poll_ns'), 0) / 1e6, 3) as poll_ms,\n"
	"  round(coalesce(sum(value) filter (where suffix = '.poll_max_ns'), 0) / 1e6, 3) as longest_ms,\n"
	"  round(coalesce(sum(value) filter (where suffix = '.queue_ns'), 0) / 1e6, 3) as queue_ms,\n"
	"  round(coalesce(sum(value) filter (where suffix = '.await_ns'), 0) / 1e6, 3) as await_ms\n"
	"from figure group by type order by poll_ms desc, type;\n"

	"create view marks as\n"
	"select mark.start_ns / 1e9 as start, round((mark.end_ns - mark.start_ns) / 1e6, 3) as ms, kind, mark.name,\n"
	"  thread.name as thread, tid, number, gas, transactions\n"
	"from mark left join thread on thread.id = mark.thread\n"
	"order by mark.start_ns, mark.end_ns desc, mark.rowid;\n"

	"create view notes as\n"
	"with weight as materialized (\n"
	"  select event, stack, sum(samples) as samples, sum(value) as value\n"
	"  from weights group by event, stack),\n"
	"whole as materialized (select event, sum(value) as value from weight group by event),\n"
	"site as materialized (select * from sites where stack in (select stack from weight))\n"
	"select event.name as event, note.function as note, site.function, sum(samples) as samples,\n"
	"  sum(weight.value) as value, round(100.0 * sum(weight.value) / whole.value, 2) as share\n"
	"from weight cross join stack on stack.id = weight.stack\n"
	"  cross join frames as note on note.frame = stack.frame and note.kind = 'note'\n"
	"  cross join event on event.id = weight.event cross join whole on whole.event = weight.event\n"
	"  left join site on site.stack = weight.stack\n"
	"group by event.id, note.function, site.function, site.module\n"
	"order by event.id, value desc, note, site.function;\n";
