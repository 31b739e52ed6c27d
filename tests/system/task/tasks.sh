#!/bin/bash
# Tokio tasks that measure themselves (truth/task/tasks.rs, Debian's tokio): what is counted and timed from outside is what they say.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$("$here/../../../tools/tokio" 2>"$tmp/reason") || skip_all "no program with tokio: $(tail -1 "$tmp/reason")"
mkdir truth && ln -s "$program" truth/truth-tasks
TRUTH=$tmp/truth

record_whole tasks -- -e task,cpu,wait -o tasks.gasflame
check_status "its tasks are recorded, to their end" 4
grep '^{' "$OUT" >truth.json
"$GASFLAME" query --csv tasks.gasflame "select name, value from counter where name like 'task.%'" >counters.csv
"$GASFLAME" query --csv tasks.gasflame "select type, ms, waker, coalesce(waker_type, '') from task_wakes" >wakes.csv
"$GASFLAME" query --csv tasks.gasflame \
	"select mark.name, thread.name, (mark.end_ns - mark.start_ns) / 1e6 from mark join thread on thread.id = mark.thread where mark.kind = 'long poll'" >long.csv
"$GASFLAME" report --format text tasks.gasflame >report.txt 2>/dev/null
relay python3 "$here/tasks.py" truth.json counters.csv wakes.csv long.csv report.txt
finish
