#!/bin/bash
# report's views (tree, callers, callees, crates, groups, phases, --root) against figures from its folded stacks.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root

start_workload --seconds 60
gf record -e cpu,wait,io -d 3 -o one.gasflame -p "$PID"
kill "$PID"
check_status "recorded" 0
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
