#!/bin/bash
# flight.sh - record --keep: a stall, signals, kills, a full disk; each gives a capture of the seconds before, and memory stays flat.
. "$(dirname "$0")/../lib.sh"
need_root

# fly NAME OPTIONS…: a flight recorder in the background; its lines are in NAME.json, its words in NAME.err, its pid in $FLIGHT.
fly()
{
	local name=$1
	shift
	"$GASFLAME" record --json "$@" >"$name.json" 2>"$name.err" &
	FLIGHT=$!
	started+=("$FLIGHT")
	wait_for 60 grep -q '^Recording' "$name.err"
}
lines() { [ "$(wc -l <"$1.json")" -ge "$2" ]; }
# field NAME LINE KEY: of a line about a capture.
field() { sed -n "$2p" "$1.json" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$3"; }
land()
{
	kill -INT "$FLIGHT" 2>/dev/null
	wait "$FLIGHT"
	STATUS=$?
}
# rss PID: in MB, of its own memory.
rss() { awk '/^RssAnon/ { printf "%d\n", $2 / 1024 }' "/proc/$1/status"; }
# accounts FILE: each thread that lived through it has its whole time, within 5 % and 200 ms, which a recorder without a CPU may be late.
accounts()
{
	sql "$1" "select tid, run_ns, queue_ns, blocked_ns, (select value from meta where key = 'duration_ns') from thread where tid > 0 and start_ns = 0 and not coalesce(end_ns, 0)" |
		awk -F, '{ d = $2 + $3 + $4 - $5; if (d > $5 / 20 + 2e8 || -d > $5 / 20 + 2e8) { print; bad = 1 } n++ } END { exit bad || !n }'
}

# --- words ---

gf record --keep 5s --when 'swap > 5%' -p $$
check_status "a rule that is none" 2
check "lists those that there are" said 'there are: block > 500ms; no block for 30s; rss > 90%.*queue > 50%; cpu'
gf record --keep 5s --when 'block > soon' --log x -p $$
check_status "a rule without a time" 2
check "says what it needs" said 'needs a time'
gf record --keep 5s --when 'block > 1s' -p $$
check_status "a rule about blocks, of which nobody tells" 2
check "asks for them" said '.--log, --rpc'
gf record --when 'cpu > 5%' -p $$
check_status "a rule without --keep" 2
gf record --keep 5s -e cpu,heap -p $$
check_status "what cannot be cut" 2
check "is named" said 'cannot record heap'
gf record --keep 5s --capture-limit 10M -p $$
check_status "options of another recording" 2
: >a-file
gf record --keep 5s -o a-file/x -p $$
check_status "a folder that cannot be made is said at once" 1

# --- flat: beside all that follows ---

start_workload --seconds 1200 --kinds compute,disk,commit --threads 1 --share 10
busy=$PID
SUDO_UID=65534 SUDO_GID=65534 fly flat -e cpu,wait,io,fault,mem --keep 2s --keep-size 64M --when 'rss > 1M' --pause 1h -o mine/flat -p "$busy"
flat=$FLIGHT
wait_for 60 lines flat 1
check "rss: a rule brings its collector, and fires" test "$(field flat 1 reason | cut -c1-7)" = "RSS is "
check "behind sudo it is the user's, folder and file, and nobody else's" test "$(stat -c '%u %a' mine "$(field flat 1 capture)" | tr '\n' ' ')" = \
	"65534 755 65534 600 "
began=$(rss "$flat")
burnt_from=$(had_cpu)

# --- a stall ---

start stalls 4000
chain=$PID log=$OUT
echo somebody >stall-other.gasflame
# blocks N: so many lines since $first.
blocks() { [ $(($(grep -c number= "$log") - first)) -ge "$1" ]; }
fly stall --keep 40s --when 'block > 2500ms' --captures 2 -o stall --log "$log" -p "$chain"
first=$(grep -c number= "$log")
wait_for 60 blocks 30
kill -USR1 "$chain"
wait_for 60 lines stall 1
capture=$(field stall 1 capture)
check "a stall: the rule says why" grep -qE '^block [0-9]+ took ' <(field stall 1 reason)
check "the capture is named by time" grep -qE '^stall-[0-9]{8}-[0-9]{6}\.gasflame$' <(echo "$capture")
check "the moment is marked" test "$(sql "$capture" "select count(*) from mark where kind = 'incident' and name like 'block % took %'")" = 1
slow=$(sql "$capture" "select number from mark where kind = 'block' and end_ns - start_ns > 2500000000")
check "the slow block is in it" test "$slow" = "$(field stall 1 reason | awk '{ print $2 }')"
check "and blocks before it" above "$(sql "$capture" "select count(*) from mark where kind = 'block' and number < ${slow:-0}")" 4
check "the mark is after its end" test "$(sql "$capture" "select (select start_ns from mark where kind = 'incident') >= (select end_ns from mark where number = ${slow:-0})")" = 1
check "what burnt in it is named" above "$(share "$capture" stalled_root)" 20
check "what it waited in, too" grep -q stalled_commit <("$GASFLAME" report --format folded --what wait "$capture" 2>/dev/null)
check "each thread's time is that of the window" accounts "$capture"
check "time 0 is its start" test "$(sql "$capture" "select min(time_ns) < 1000000000 and max(time_ns) <= 1.05 * (select value from meta where key = 'duration_ns') from sample")" = 1
gf blocks "$capture"
check_status "gasflame blocks reads it" 0
gf report --format text "$capture"
check_status "and the report" 0
check "one incident, one capture" test "$(wc -l <stall.json)" = 1

# --- signals, and how many stay ---

kill -USR1 "$FLIGHT"
wait_for 60 lines stall 2
kill -USR1 "$FLIGHT"
wait_for 60 lines stall 3
check "SIGUSR1 twice: two more" test "$(field stall 2 reason) $(field stall 3 reason)" = "SIGUSR1 SIGUSR1"
check "each is a file of its own" test "$(field stall 2 capture)" != "$(field stall 3 capture)"
check "of more than --captures the oldest is gone" test ! -e "$capture"
check "the others are there" test -s "$(field stall 2 capture)" -a -s "$(field stall 3 capture)"
check "earlier incidents are marked in later ones" test "$(sql "$(field stall 3 capture)" "select count(*) from mark where kind = 'incident'")" -ge 2
check "and what is somebody's stays" test "$(cat stall-other.gasflame)" = somebody

# --- the target is killed ---

kill -9 "$chain"
wait "$FLIGHT"
STATUS=$?
check_status "the target is killed: status 4" 4
check "which is an incident" grep -q 'the target ended' <(field stall 4 reason)
check "with the seconds before" above "$(sql "$(field stall 4 capture)" "select count(*) from mark where kind = 'block'")" 4

# --- an OOM kill ---

memory=/sys/fs/cgroup/memory max=memory.limit_in_bytes
[ -d "$memory" ] || memory=/sys/fs/cgroup max=memory.max
[ -e /sys/fs/cgroup/cgroup.subtree_control ] && echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
group=$memory/gasflame-flight-$$
if mkdir "$group" 2>/dev/null && echo 48M >"$group/$max" 2>/dev/null; then
	cleanups+=("rmdir '$group'")
	[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
	mkfifo gate
	GATED=1 sh -c "echo \$\$ >'$group/cgroup.procs'; exec '$TRUTH/truth-leaker' 500" <gate >leaker.out 2>&1 &
	leaker=$!
	started+=("$leaker")
	exec 9>gate
	wait_for 60 grep -q ready leaker.out
	fly oom --keep 10s -o oom -p "$leaker" 9>&-
	echo >&9
	exec 9>&-
	wait "$FLIGHT"
	STATUS=$?
	check_status "an OOM kill: status 4" 4
	check "is called that" grep -q 'OOM kill' <(field oom 1 reason)
	check "and marked" test "$(sql "$(field oom 1 capture)" "select count(*) from mark where kind = 'incident' and name like 'OOM kill%'")" = 1
	check "with who leaked" grep -q leaky_cache <(folded "$(field oom 1 capture)")
else
	rmdir "$group" 2>/dev/null
	skip "an OOM kill" "no memory cgroup can be made here"
fi

# --- a target that comes back ---

cp "$(command -v sleep)" "sleeper$$"
"./sleeper$$" 600 &
sleeper=$!
started+=("$sleeper")
wait_for 60 grep -q "sleeper$$" "/proc/$sleeper/comm"
fly again --keep 20s --follow -o again "name:sleeper$$"
kill "$sleeper"
wait_for 60 lines again 1
check "--follow: the end of the target is an incident" test "$(field again 1 reason)" = "the target ended"
check "and it waits for the next" kill -0 "$FLIGHT"
land # with hardly a sample, which is status 3
check "until it is stopped" test "$(field again 2 reason)" = stopped

# --- a full disk ---

mkdir full
if mount -t tmpfs -o size=256k tmpfs full 2>/dev/null; then
	cleanups+=("umount '$tmp/full'")
	fly full --keep 60s -e cpu,wait,fault -o full/ -p "$busy"
	PID=$busy
	burnt=$(had_cpu)
	wait_for 60 had_cpu $((burnt + 200))
	kill -USR1 "$FLIGHT"
	wait_for 60 grep -q 'kept in memory' full.err
	check "a full disk: is said" grep -qE 'SIGUSR1: .*; it is kept in memory, tried again' full.err
	check "nothing half is left there" test -z "$(ls full)"
	check "recording goes on" kill -0 "$FLIGHT"
	mount -o remount,size=64m full
	wait_for 60 lines full 1
	check "with room it is written after all" test "$(field full 1 reason)" = SIGUSR1
	check "with all samples" above "$(sql "$(field full 1 capture)" 'select sum(coalesce(value, period)) / 1e6 from sample join event on event.id = sample.event where event.name = "cpu"')" 100
	land
	check_status "Ctrl-C" 0
	check "writes what is kept then" test "$(field full 2 reason)" = stopped
	check "of the whole time" above "$(samples "$(field full 2 capture)")" "$(samples "$(field full 1 capture)")"
else
	skip "a full disk" "cannot mount a tmpfs"
fi

# --- flat ---

PID=$busy
wait_for 60 had_cpu $((burnt_from + 2000))
ended=$(rss "$flat")
check "after a time of ten windows memory is as it was ($began, then $ended MB)" above $((began + began / 5 + 8)) "$ended"
check "and no rule fired again" test "$(wc -l <flat.json)" = 1
FLIGHT=$flat
land
check_status "it ends well" 0
check "with a window of 2 s, and what it was late" near "$(sql "$(field flat 2 capture)" "select value / 1e9 from meta where key = 'duration_ns'")" 3.5 2
check "and its account" accounts "$(field flat 2 capture)"
finish
