#!/bin/bash
# Tokio tasks that measure themselves (truth/task/tasks.rs, Debian's tokio): what is counted and timed from outside is what they say.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$("$here/../../../tools/tokio" 2>"$tmp/reason") || skip_all "no program with tokio: $(tail -1 "$tmp/reason")"
mkdir truth && ln -s "$program" truth/truth-tasks
TRUTH=$tmp/truth

# Counts are exact each time. A thread that is preempted between two clocks makes one of them late: times have three tries.
for try in 1 2 3; do
	record_whole tasks -- -e task,cpu,wait -o tasks.gasflame
	said "time-stamp counter" >/dev/null && skip_all "this machine's time-stamp counter is no clock"
	grep '^{' "$OUT" >truth.json
	for what in counters wakes long samples; do
		case $what in
		counters) sql="select name, value from counter where name like 'task.%'" ;;
		wakes) sql="select type, ms, waker, coalesce(waker_type, '') from task_wakes" ;;
		long) sql="select name, thread, ms from marks where kind = 'long poll'" ;;
		samples) sql="select event.name, sum(value) from sample join event on event.id = event
			where event.name in ('poll', 'await', 'taskqueue') group by event.name" ;;
		esac
		"$GASFLAME" query --csv tasks.gasflame "$sql" >$what.csv
	done
	"$GASFLAME" report --format text tasks.gasflame >report.txt 2>/dev/null
	"$GASFLAME" report --json tasks.gasflame >report.json 2>/dev/null
	"$GASFLAME" report --format folded --merged --what poll tasks.gasflame >polls.txt 2>/dev/null
	python3 "$here/tasks.py" >judged.txt
	[ $? -eq 2 ] || break
	echo "# try $try: $(grep '^#' judged.txt | head -1)"
done
check_status "its tasks are recorded, to their end" 4
relay cat judged.txt

sleep 1000 &
started+=($!)
gf record -e task -d 1 -o none.gasflame -p $!
check_status "a program without tokio is refused" 1
check "and what is needed is said" said "needs a program with tokio"
finish
