#!/bin/bash
# A pid is given out again: who gets one that a recorded process had is a stranger, and is not recorded.
. "$(dirname "$0")/../lib.sh"
need_root
[ -w /proc/sys/kernel/ns_last_pid ] || skip_all "this kernel does not let pids be chosen (CONFIG_CHECKPOINT_RESTORE)"

FORKS=1000
start strangers forks $FORKS "$tmp/go" "$tmp/pids"
"$GASFLAME" record -e cpu -F 9999 --max-overhead 0 -d 120 -o out.gasflame -p "$PID" 2>record.log &
recorder=$!
started+=("$recorder")
check "the recording goes on" wait_for 30 grep -q Recording record.log
touch go
check "all have been forked and have died" wait_for 100 test -s pids
"$TRUTH/truth-strangers" take pids >taken 2>&1
check "many pids were had again" above "$(awk '/^taken/ { print $2 }' taken)" $((FORKS / 2))
kill -INT "$recorder"
wait "$recorder"
check "the target was recorded" test "$(sql out.gasflame "select count(*) from process where pid = $PID")" = 1
check "its children too" above "$(sql out.gasflame "select count(*) from process")" $((FORKS / 2))
check "no stranger is in it" test "$(sql out.gasflame "select count(*) from thread where name = 'stranger'")" = 0
check "nor what one was called with" test "$(sql out.gasflame "select count(*) from process where command like '%take%'")" = 0
finish
