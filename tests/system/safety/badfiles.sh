#!/bin/bash
# Targets that map files made to hold us up, and more code than anybody has.
. "$(dirname "$0")/../lib.sh"
need_root
maker=$(dirname "$0")/badfiles.py

# now; since MOMENT: seconds that passed.
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
below() { above "$2" "$1"; }
make_file() { "$maker" "$@"; }

# Each of these takes no space on the disk; one that was read would take minutes and gigabytes.
kinds="symtab eh_frame debug notes strtab sections beyond"
for kind in $kinds plain; do
	make_file "$kind" "$kind.elf" --size $((32 << 30))
done
start mapper files $(printf '%s.elf ' $kinds plain)
begin=$(now)
gf record -e cpu -d 1 -o sparse.gasflame -p "$PID"
took=$(since "$begin")
check "hostile files do not hold up a recording ($took s)" below "$took" 20
check "and it is whole" test "$(samples sparse.gasflame)" -gt 0
check "an honest one among them is named" above "$(share sparse.gasflame burn_here)" 5
if command -v fincore >/dev/null; then
	cached=$(fincore -b -n -o res $(printf '%s.elf ' $kinds) | awk '{ n += $1 } END { print n / 1048576 }')
	check "nor fill the page cache ($cached MB)" below "$cached" 256
fi
kill -9 "$PID"
rm -f ./*.elf

# A debug file of which only the name has a say, and which is a hole of gigabytes.
make_file link linked.elf linked.debug
make_file plain linked.debug
truncate -s 64G linked.debug
start mapper files "$PWD/linked.elf"
begin=$(now)
gf record -e cpu -d 1 -o link.gasflame -p "$PID"
took=$(since "$begin")
check "a debug file is not read to its end for its checksum ($took s)" below "$took" 20
check "the file itself is named" above "$(share link.gasflame burn_here)" 90
kill -9 "$PID"

# The child hangs: the recording goes on, ends at once, and a second Ctrl-C ends the search for names.
make_file plain hang.elf
start mapper files "$PWD/hang.elf"
"$GASFLAME" record -e cpu -d 60 -o hang.gasflame -p "$PID" 2>hang.err &
recorder=$!
started+=("$recorder")
recording() { grep -q '^Recording' hang.err && [ "$(pgrep -c -P "$recorder" gasflame-reader)" -gt 0 ]; }
check "recording" wait_for 20 recording
sleep 1
children=$(pgrep -P "$recorder" gasflame-reader)
kill -STOP $children
begin=$(now)
kill -INT "$recorder"
wait_for 20 grep -q Stopped hang.err
took=$(since "$begin")
check "Ctrl-C ends a recording whose child hangs ($took s)" below "$took" 8
kill -INT "$recorder"
wait "$recorder"
took=$(since "$begin")
check "a second one the search for names ($took s)" below "$took" 12
check "which is said" grep -q 'not all functions were named' hang.err
check "the capture is whole" test "$(samples hang.gasflame)" -gt 0
check "and report names the rest" above "$(share hang.gasflame burn_here)" 90
check "no child is left" test -z "$(ps -o pid= -p "$(echo $children | tr ' ' ,)")"
kill -9 "$PID"

# The program is deleted while it records: its child is itself.
cp "$GASFLAME" ./copy && chmod 700 copy
start mapper files "$PWD/hang.elf"
./copy record -e cpu -d 2 -o copy.gasflame -p "$PID" 2>copy.err &
recorder=$!
started+=("$recorder")
wait_for 20 grep -q '^Recording' copy.err
rm copy
pkill -KILL -P "$recorder" gasflame-reader # it is started anew
wait "$recorder"
check "a deleted gasflame names what it recorded" above "$(share copy.gasflame burn_here)" 90
kill -9 "$PID"

# 20,000 executable mappings, and one more again and again.
start mapper pages /bin/true 20000
wait_for 20 grep -q ready "$OUT"
gf record -e cpu -d 4 -o pages.gasflame -p "$PID"
percent=$(awk -v ns="$(counter pages.gasflame self.cpu_ns)" 'BEGIN { printf "%.1f", ns / 4e7 }')
check "20,000 mappings cost no CPU ($percent % of one)" below "$percent" 40
kill -9 "$PID"

# A perf map of 60 MB, which took ten times as much when all of it was kept.
start jit 60
map=/tmp/perf-$PID.map
cleanups+=("rm -f $map")
wait_for 5 test -s "$map"
cp "$map" real.map
{ python3 -c 'import sys
line = "".join("%x 10 f%d\n" % (0x5000 + i * 16, i) for i in range(100000))
for i in range(60000000 // len(line)):
    sys.stdout.write(line)'; cat real.map; } >"$map"
"$GASFLAME" record -e cpu -d 1 -o jit.gasflame -p "$PID" 2>jit.err &
recorder=$!
started+=("$recorder")
most=0
while kb=$(awk '/^VmHWM/ { print $2 }' "/proc/$recorder/status" 2>/dev/null) && [ -n "$kb" ]; do
	most=$kb
	sleep 0.05
done
wait "$recorder"
check "a huge perf map is named from" above "$(share jit.gasflame jit_burn)" 90
check "without taking memory ($((most / 1024)) MB)" test "$most" -lt 200000
finish
