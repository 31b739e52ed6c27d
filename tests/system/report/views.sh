#!/bin/bash
# report's views (tree, callers, callees, crates, groups, phases, --root) against figures from its folded stacks.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root

start_workload --seconds 600 --share 40
gf record -e cpu,wait,io -d 3 -o one.gasflame -p "$PID"
check_status "recorded" 0
# Rows of a capture that may not grow are summed; nothing is lost, and the report says so.
gf record -e cpu,wait -d 5 --capture-limit 100K --keep-full 0.5s -o summed.gasflame -p "$PID"
kill "$PID"
check_status "recorded below a limit" 0
check "the last lines say what was summed" said "samples before 0:0[0-9] are sums of up to"
number() { "$GASFLAME" query --csv "$1" "$2" | tail -1; }
check "old rows are summed" test "$(number summed.gasflame 'select count(*) from summed')" -gt 0
check "by a row of a slot for many" test "$(number summed.gasflame "select coalesce(max(count), 0) from sample
	join event on event.id = event and name = 'cpu' join summed on start_ns = time_ns")" -gt 1
check "each CPU sample is counted once" test "$(number summed.gasflame "select sum(coalesce(count, 1)) from sample
	join event on event.id = event and name = 'cpu'")" -eq "$(number summed.gasflame "select
	sum(case name when 'samples.taken' then value else -value end) from counter
	where name in ('samples.taken', 'samples.lost')")"
gf report --format text summed.gasflame
check "the report says what was summed" said "samples before 0:0[0-9] are sums of up to"
check "all was kept in full before" test "$(number one.gasflame 'select count(*) from summed')" -eq 0
relay python3 "$here/views.py" "$GASFLAME" one.gasflame

gf report --what io --format folded one.gasflame
io=$(awk '{ n += $NF } END { print n + 0 }' "$STDOUT")
both=$(for what in read write; do "$GASFLAME" report --what $what --format folded one.gasflame 2>/dev/null; done |
	awk '{ n += $NF } END { print n + 0 }')
check "--what io is read and written bytes" test "$io" -eq "$both" -a "$io" -gt 0
gf report --what sync --tree one.gasflame
check "exact counts are no samples" sh -c "! grep -E 'only|idle' '$STDERR'"
check "they are calls" said "calls, .* complete"
gf report --what wall --callers '\[lock\]' one.gasflame
check_status "callers of a cause" 0
gf report --format svg -o root.svg --root task_run one.gasflame
check_status "--root as a picture" 0
check_not "has nothing above it" grep -q ">__clone3" root.svg
finish
