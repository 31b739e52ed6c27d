#!/bin/bash
# Events by name: what a program did a known number of times is counted just so often, with its stack.
if [ "$(id -u)" -eq 0 ] && [ ! -r /sys/kernel/tracing/events/header_page ] && [ -z "${MOUNTED:-}" ]; then
	# In a namespace of its own: the machine stays as it is.
	export MOUNTED=1
	exec unshare -m sh -c 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$0"' "$0"
fi
configs=$(cd "$(dirname "$0")/../../../configs" && pwd)
. "$(dirname "$0")/../lib.sh"
need_root
[ -r /sys/kernel/tracing/events/header_page ] || skip_all "cannot mount tracefs"

# record_events NAME ARGS…: the truth program does its work while it is recorded to NAME.gasflame.
record_events()
{
	local name=$1 recorder perf=
	shift
	start events 1000
	if [ -n "${perf_events:-}" ]; then
		perf stat -x, -e "$perf_events" -o "$name.perf" -p "$PID" 2>/dev/null &
		perf=$!
	fi
	: >"$STDERR" # or the words of the last one would do
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record "$@" -d 60 -o "$name.gasflame" -p "$PID" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	wait_for 15 grep -q '^Recording' "$STDERR"
	sleep "${patience:-0.3}"
	kill -USR1 "$PID"
	wait_for 20 grep -q done "$OUT"
	sleep 0.3
	kill -INT $recorder $perf
	wait $recorder
	STATUS=$?
	[ -z "$perf" ] || wait $perf
	kill -USR2 "$PID"
	wait "$PID"
}
# truth WHAT: what the program says it did.
truth() { awk -v k="$1" '$1 == k { print $2 }' "$OUT"; }
# value FILE EVENT, times FILE EVENT: the sum of its values, how often it happened.
sum()
{
	sql "$1" "select coalesce(sum($3), 0) from sample s join event e on s.event = e.id where e.name = '$2'"
}
value() { sum "$1" "$2" s.value; }
times() { sum "$1" "$2" 'max(coalesce(s.count, 1), 1)'; }
same() { [ "$1" = "$2" ] || { echo "$1, wanted $2"; return 1; }; }
# under FILE EVENT FUNCTION: how much of an event is below this function.
under()
{
	"$GASFLAME" report --format folded --weigh value --what "$2" "$1" 2>/dev/null |
		awk -v f=";$3" 'index($0, f) { n += $NF } END { print n + 0 }'
}

# --- counts, beside perf's ---
names=syscalls:sys_enter_getppid,syscalls:sys_enter_futex,sched:sched_switch,page-faults
command -v perf >/dev/null && perf_events=$names
names+=,syscalls:sys_enter_read/count,syscalls:sys_exit_read/ret,syscalls:sys_exit_write
names+=,syscalls:sys_exit_write/ret,context-switches
record_events all -e "$names,syscalls:sys_enter_no_such_call"
check_status "recorded" 0
check "an event that is not there is said so and skipped" said "no tracepoint syscalls:sys_enter_no_such_call"
check "calls are counted" same "$(value all.gasflame syscalls:sys_enter_getppid)" "$(truth getppid)"
check "with their stack" \
	same "$(under all.gasflame syscalls:sys_enter_getppid ask_for_parent)" "$(truth getppid)"
check "futex waits are under who waits" \
	same "$(under all.gasflame syscalls:sys_enter_futex 'wait_for_nothing;')" "$(truth waits)"
check "and are noted as waits" \
	same "$(under all.gasflame syscalls:sys_enter_futex 'FUTEX_WAIT ')" "$(truth waits)"
check "a field of a call is summed" \
	same "$(value all.gasflame syscalls:sys_enter_read/count)" "$(truth asked)"
check "bytes returned are summed" \
	same "$(under all.gasflame syscalls:sys_exit_read/ret read_blocks)" "$(truth read)"
check "also of writes" \
	same "$(under all.gasflame syscalls:sys_exit_write/ret write_blocks)" "$(truth written)"
check "a call that failed is counted, not summed" \
	same "$(times all.gasflame syscalls:sys_exit_read/ret)" "$(truth reads)"
check "and told apart" same "$(counter all.gasflame event.negative.syscalls:sys_exit_read/ret)" 1
check "faults are counted" same "$(under all.gasflame page-faults touch_pages)" "$(truth faults)"
# Before it waits for the signal to end it leaves the CPU once more, and on a busy machine perhaps on the way there.
counted=$(value all.gasflame sched:sched_switch) own=$(truth switches)
check "context switches are counted ($counted, $own by the program's own count)" test "$counted" -gt "$own" -a "$counted" -le $((own + 4))
check "by the software event too" \
	same "$(value all.gasflame context-switches)" "$(value all.gasflame sched:sched_switch)"
check "stacks are complete" above "$(complete all.gasflame)" 99.5
check "nothing is lost" same "$(counter all.gasflame samples.lost)" 0
if [ -s all.perf ]; then
	for event in syscalls:sys_enter_getppid syscalls:sys_enter_futex sched:sched_switch page-faults; do
		check "perf stat counts as many $event" \
			same "$(value all.gasflame $event)" "$(awk -F, -v e=$event '$3 == e { print $1 }' all.perf)"
	done
else
	skip "the same as perf stat" "there is no perf"
fi
perf_events=

# --- the summary ---
gf report --format summary all.gasflame
check_status "a summary" 0
check "has its title" grep -qx '=== Off-CPU Event Summary ===' "$STDOUT"
check "counts futex calls" grep -qE "futex calls: +$(($(truth wakes) + $(truth waits)))\b" "$STDOUT"
check "wakes are no waits" grep -qE "of them waits: +$(truth waits)$" "$STDOUT"
check "bytes are there" grep -qE "read syscalls: +1001, $(truth read) bytes" "$STDOUT"
check_not "no group for what was not recorded" grep -q 'Memory pressure' "$STDOUT"
check_not "no fast mode without need" grep -q 'Fast mode' "$STDOUT"

# --- above a rate, above a size ---
record_events fast --max-rate 100 -e "$names"
check "above the rate: the \
	same counts" same "$(value fast.gasflame syscalls:sys_enter_getppid)" "$(truth getppid)"
check "the \
	same bytes" same "$(under fast.gasflame syscalls:sys_exit_write/ret write_blocks)" "$(truth written)"
check "the same stacks" same "$(under fast.gasflame syscalls:sys_enter_futex 'wake_nobody;')" "$(truth wakes)"
check "in fewer samples" above 1000 "$(samples fast.gasflame)"
gf report --format summary fast.gasflame
check "the report says so" grep -q 'Fast mode' "$STDOUT"
# Eight functions that call alike: most stacks are remembered, and still each has its own.
gf run --max-rate 1000 -e syscalls:sys_exit_write,syscalls:sys_enter_pread64 -o rate.gasflame -- "$TRUTH/truth-iorate" 50000
check_status "100,000 writes as fast as they go" 0
for i in 0 3 7; do
	check "those of function $i" same "$(under rate.gasflame syscalls:sys_exit_write "rate_$i;")" 12500
	check "and its reads" same "$(under rate.gasflame syscalls:sys_enter_pread64 "rate_$i;")" 12500
done
check "few stacks are walked" above "$(counter rate.gasflame event.remembered.syscalls:sys_exit_write)" 80000
patience=2.5 # until it has looked at the size
record_events small --max-size 1 -e "$names"
patience=
check "above the size: the \
	same counts" same "$(value small.gasflame syscalls:sys_enter_getppid)" "$(truth getppid)"
check "the same times" same "$(times small.gasflame syscalls:sys_exit_read/ret)" "$(truth reads)"
check "in few samples" above 200 "$(samples small.gasflame)"
check "and says so" said "max-size"

# --- with collectors, and from files ---
record_events mixed -e cpu,syscalls:sys_enter_getppid
check "beside a collector" same "$(value mixed.gasflame syscalls:sys_enter_getppid)" "$(truth getppid)"
record_events rest -e cpu,nope:nope
check "without an event that is there the rest is recorded" test "$STATUS" -eq 0 -o "$STATUS" -eq 3
check "and the event is named" said "no tracepoint nope:nope: skipped"
record_events pattern -e 'syscalls:sys_enter_getp?id'
check "by pattern" same "$(value pattern.gasflame syscalls:sys_enter_getppid)" "$(truth getppid)"
printf '%s\r\n' '# mine' '' '   syscalls:sys_enter_getppid   # indented' syscalls:nope \
	'	page-faults#tight' >mine.conf
record_events file --events mine.conf
check "from a file" same "$(value file.gasflame syscalls:sys_enter_getppid)" "$(truth getppid)"
check "with the rest of it" same "$(under file.gasflame page-faults touch_pages)" "$(truth faults)"
check "the line of what is missing" said "mine.conf, line 4: .*syscalls:nope"
for conf in "$configs"/offcpu-events*.conf; do
	record_events shipped --events "$conf"
	check_status "$(basename "$conf") works as it is" 0
	gf report --format summary shipped.gasflame
	check "and gives a summary" test "$(grep -c '^  .*: *[0-9]\|^[0-9]' "$STDOUT")" -ge 2
	mv shipped.gasflame "$(basename "$conf" .conf).gasflame"
done
gf report --format summary offcpu-events.gasflame
check "completions are the machine's" grep -q 'requests completed: .*whole machine' "$STDOUT"
gf report --format summary offcpu-events-iobandwidth.gasflame
check "bytes by the shipped file" grep -qE "read syscalls: +1001, $(truth read) bytes" "$STDOUT"

# --- a program from its start ---
gf run -e syscalls:sys_enter_execve,syscalls:sys_exit_execve,syscalls:sys_exit_read,syscalls:sys_enter_exit_group \
	-o run.gasflame -- sh -c 'read -r line; exit 0' <mine.conf
check "its execve" same "$(value run.gasflame syscalls:sys_exit_execve)" 1
check "but not what came before" same "$(value run.gasflame syscalls:sys_enter_execve)" 0
check "its end" same "$(value run.gasflame syscalls:sys_enter_exit_group)" 1

# --- what goes wrong ---
start idle 20
bad() # bad NAME STATUS PATTERN ARGS…
{
	gf record "${@:4}" -d 1 -o bad.gasflame -p "$PID"
	check_status "$1" "$2"
	check "and says it" said "$3"
	check "no capture is left" test ! -e bad.gasflame
}
bad "a field that is not there" 2 "no field 'size'; it has: .*nr_sector, bytes" -e block:block_rq_issue/size
bad "a field that is no number" 2 "'cmd' .*cannot|not a number.*bytes" -e block:block_rq_issue/cmd
bad "nothing that is there" 1 "none of the events" -e nope:nope,nope:too
bad "no event at all" 2 "no collector or event 'frobnicate'" -e frobnicate
bad "a name with a path in it" 2 "no event" -e '../../../etc:passwd'
printf 'sched:sched_switch\nblock:block_rq_issue/size\n' >field.conf
bad "the same in a file" 2 "field.conf, line 2: .*no field 'size'" --events field.conf
printf 'sched:sched_switch\n\ntwo words # here\n' >words.conf
bad "two words on a line" 2 "words.conf: line 3: 'two words'" --events words.conf
head -c 3000 "$GASFLAME" >binary.conf
bad "a file that is no text" 2 "binary.conf: line 1: byte 0x7f" --events binary.conf
head -c 1000000 /dev/zero | tr '\0' x >long.conf
bad "a line of a megabyte" 2 "long.conf: line 1" --events long.conf
printf '# nothing\n' >empty.conf
bad "a file without events" 2 "empty.conf names no event" --events empty.conf
bad "no such file" 1 "not-there.conf" --events not-there.conf
bad "events without BPF" 1 "needs BPF" --backend perf -e page-faults
unshare -m sh -c 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; exec "$0" "$@" 2>&3' \
	"$GASFLAME" record -e sched:sched_switch -d 1 -o bad.gasflame -p "$PID" >"$STDOUT" 2>/dev/null 3>"$STDERR"
check "without tracefs: how to mount it" said "mount -t tracefs"
kill "$PID" && wait "$PID" 2>/dev/null

# --- the list ---
gf events
check_status "a list" 0
check "tracepoints" grep -qx 'tracepoint  sched:sched_switch' "$STDOUT"
check "software events" grep -q '^software    page-faults' "$STDOUT"
check "collectors" grep -q '^collector   cpu' "$STDOUT"
gf events -v 'block:block_rq_i*'
check "fields with -v" grep -q '^    /bytes' "$STDOUT"
check_not "nothing else" grep -q sched_switch "$STDOUT"
gf events 'block_rq_i*'
check "a pattern without the group" grep -qx 'tracepoint  block:block_rq_issue' "$STDOUT"
gf events --json futex
check "as JSON" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
assert rows and all("futex" in r["name"] and r["kind"] == "tracepoint" for r in rows)' "$STDOUT"
gf events no-such-thing
check_status "nothing that matches" 1
finish
