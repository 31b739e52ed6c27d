#!/bin/bash
# Waits without BPF, by perf's own events: the account of every thread closes, waits have their times, stacks and wakers, and an ordinary user
# gets what the paranoid level allows. -e mem alone needs nothing at all.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root
waits() { python3 "$here/waits.py" "$@"; }

# closes CAPTURE THREADS: on a CPU, in the queue and blocked are together the life of each thread; but for a moment at the ends of those that come and go.
closes()
{
	waits sums "$1" | awk -v wanted="$2" -v slow="$(emulated && echo 30)" '
		{ n++; d = $8 - $7; slack = slow ? slow : $7 < 500 ? 5 : 1; if (d > slack || d < -slack) { print $1 " " $2 ": " $8 " ms are not " $7; bad = 1 } }
		END { if (n < wanted) { print n " threads"; bad = 1 } exit bad }'
}
# found NAME TRUE FOUND: most of it. The more a thread runs, the more often it is preempted on a busy machine, where it has no stack.
found() { awk -v n="$1" -v t="$2" -v f="$3" 'BEGIN { exit !(f > t * (n == "hold_lock" ? 0.5 : 0.75) - 150 && f < t * 1.05 + 60) }' || { echo "$1: true $2 ms, found $3"; return 1; }; }

start waits 300 0 "$tmp"
out=$OUT
gf record --backend perf -e cpu,wait -F 99 -d 3 -o root.gasflame -p "$PID"
kill "$PID"
wait "$PID"
# Lost records are said, and make it unfit to read.
emulated && [ "$STATUS" -eq 3 ] && said 'lost \(' && STATUS=0
check_status "waits are recorded without BPF" 0
check "the account of each thread closes" closes root.gasflame 16
while read -r name true found cpu queue wait complete; do
	[ "$name" = park_forever ] || check "$name took $true ms, found $found" found "$name" "$true" "$found"
done < <(waits times root.gasflame "$out")
"$GASFLAME" report --format json root.gasflame >report.json 2>/dev/null
waits causes report.json >causes
for want in wait_lock=lock nap=sleep park=park pipe_read=pipe net_read=network; do
	check "${want%=*} waits for ${want#*=}" grep -qE "^${want%=*} .*\b${want#*=}=" causes
done
if [ -r /sys/kernel/tracing/events/sched/sched_waking/id ]; then
	check "who ended it: the thread that fed the pipe" grep -q '^feed' <(waits wakes root.gasflame pipe_read)
	check "a timer ends a nap" grep -q '^interrupt_(timer)' <(waits wakes root.gasflame nap)
else
	skip "who ended it" "tracefs cannot be read"
	check "that is said" said "Who ended a wait is not recorded"
fi

# What only reads needs neither BPF nor perf events, and no rights for a process of one's own.
cp "$GASFLAME" "$tmp/gasflame" && cp "$TRUTH/truth-waits" "$tmp/" && chmod 755 gasflame truth-waits
mkdir open && chmod 777 open
as_user "$tmp/truth-waits" 300 0 "$tmp/open" >user.out &
wait_for 10 grep -q ready user.out
PID=$(pgrep -u 65534 -x truth-waits | head -1)
started+=("$PID")
mine() { as_user env TMPDIR="$tmp/open" XDG_CACHE_HOME="$tmp/open" "$tmp/gasflame" "$@" >"$STDOUT" 2>"$STDERR"; STATUS=$?; }
mine record -e mem -d 1 -o open/mem.gasflame -p "$PID"
check_status "an ordinary user records -e mem" 0
check "points of it" test "$("$GASFLAME" query open/mem.gasflame "select count(*) > 0 from point" | tail -1)" = 1

# At a level of 2 there are times without stacks, at 1 also stacks.
paranoid=/proc/sys/kernel/perf_event_paranoid
level=$(cat $paranoid)
if [ "$level" -lt 1 ] || [ "$level" -gt 2 ]; then
	skip "waits of an ordinary user" "perf_event_paranoid is $level"
	finish
fi
mine record -e wait -d 1 -o open/wait.gasflame -p "$PID"
check_status "an ordinary user records waits" 0
check "whose account closes" closes open/wait.gasflame 16
if [ "$level" -eq 2 ]; then
	check "without stacks, which is said" said "Waits have no stacks"
else
	check "with stacks" awk '{ exit !($1 > 50) }' <(waits share open/wait.gasflame net_read)
fi
finish
