#!/bin/bash
# Page faults: as many as the kernel counted for the program, by the right function, on the right file.
. "$(dirname "$0")/../lib.sh"
need_root

# go SECONDS OUTPUT: records $PID, lets it begin, waits until it has ended its work.
go()
{
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -e fault -d "$1" -o "$2" -p "$PID" >"$STDOUT" 2>"$STDERR" &
	local recorder=$!
	wait_for 10 test -s "$2"
	sleep 0.5
	kill -USR1 "$PID"
	wait_for 60 grep -q '^total' "$OUT"
	kill -INT "$recorder"
	wait "$recorder"
	STATUS=$?
}
# said_by NAME COLUMN: what the program itself counted: 2 minor, 3 major, 4 microseconds.
said_by() { awk -v name="$1" -v column="$2" '$1 == name { print $column }' "$OUT"; }
# all FILE EVENT
all()
{
	sql "$1" "select coalesce(sum(s.value), 0) from sample s join event e on e.id = s.event
		where e.name = '$2'"
}
# under FILE EVENT REGEX: the sum of the stacks that match.
under()
{
	"$GASFLAME" report --format folded --what "$2" "$1" 2>/dev/null | grep -E "$3" |
		awk '{ n += $NF } END { print n + 0 }'
}
minor_of() { under faults.gasflame minor-faults "$1"; }
major_of() { under faults.gasflame major-faults "$1"; }
# about A B: within 0.1 %, and never closer than 3
about() { near "$1" "$2" "$(awk -v b="$2" 'BEGIN { t = b / 1000; print (t > 3) ? t : 3 }')"; }

file=$tmp/cold.dat
pages=20000
start faults "$file" "$pages"
go 60 faults.gasflame
check_status "recorded" 0

minor=$(all faults.gasflame minor-faults) major=$(all faults.gasflame major-faults)
true_minor=$(($(said_by total 2) + $(said_by child 2)))
true_major=$(($(said_by total 3) + $(said_by child 3)))
check "minor faults: $minor, the kernel counted $true_minor" about "$minor" "$true_minor"
check "major faults: $major, the kernel counted $true_major" about "$major" "$true_major"

check "fresh memory is touched under touch_fresh" \
	about "$(minor_of 'touch_fresh;write_pages;\[anonymous\] ')" "$(said_by touch_fresh 2)"
check "threads that ended are counted" \
	about "$(minor_of 'in_thread;write_pages;')" "$pages"
check "copies on write, in the child" about \
	"$(minor_of 'copy_on_write;write_pages;\[anonymous\];\[copy on write\] ')" $((pages / 4))
check "faults in a system call have its stack" \
	about "$(minor_of 'read_into_fresh;.*pread.*\[anonymous\] ')" 256
check "what the kernel populated is counted, without a stack" \
	about "$(minor_of 'taken by the kernel')" "$(said_by populate 2)"
check "a file, and memory in its place: the file's" \
	about "$(minor_of "alternate;write_pages;$file")" 2000
check "a file, and memory in its place: the memory's" \
	about "$(minor_of 'alternate;write_pages;\[anonymous\] ')" 2000

if [ "$true_major" -gt 100 ]; then
	check "major faults are read_cold's, on its file" \
		about "$(major_of "main;read_cold;$file;cold.dat at 0x")" "$(said_by read_cold 3)"
	check "stacks of major faults are complete" \
		near "$(major_of '^[^;]*;_start;')" "$true_major" $((true_major / 100))
	spent=$(($(all faults.gasflame major-time) / 1000))
	measured=$(said_by read_cold 4)
	check "their time: $spent us of the $measured us that the program measured" \
		near "$spent" $((measured * 4 / 5)) $((measured / 5))
	"$GASFLAME" report --format json --what major-faults faults.gasflame >faults.json 2>/dev/null
	check "the report knows which part of the file is cold" python3 - "$file" "$major" "$minor" <<-'END'
	import json, sys
	faults = json.load(open("faults.json"))["faults"]
	path, major, minor = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
	assert (faults["major"], faults["minor"]) == (major, minor), faults
	assert abs(faults["hit_percent"] - minor * 100 / (major + minor)) < 0.01
	assert faults["read_bytes"] == major * 4096
	cold = next(f for f in faults["files"] if f["name"] == path)
	ranges = cold["ranges"]
	assert 10 <= len(ranges) <= 64, ranges
	assert sum(r["major"] for r in ranges) == cold["major"]
	size = 20000 * 4096
	step = max(r["to"] - r["from"] for r in ranges)
	assert min(r["from"] for r in ranges) >= size // 2 - step, "the first half was not read"
	assert max(r["to"] for r in ranges) == size
	END
	"$GASFLAME" report --format text --what major-faults faults.gasflame >faults.txt 2>/dev/null
	check "the text has the guide's figures" grep -qE 'read from disk +[0-9.]+ MB' faults.txt
	check "and the hit rate" grep -qE 'hit rate +[0-9.]+ %' faults.txt
	check "and the pressure" grep -q 'direct reclaims' faults.txt
else
	skip "major faults" "the folder for tests is not on a disk"
fi

# A program that ends at once, before its mappings are known: its stacks are cut, but it is counted.
gf run -e fault -o short.gasflame -- /bin/true
check "faults of a short program are counted" above "$(all short.gasflame minor-faults)" 30

# A cgroup smaller than the file: reclaim, and the limit is hit.
group=
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	[ -e "$root/memory.limit_in_bytes" ] || [ -e "$root/cgroup.controllers" ] || continue
	mkdir "$root/gasflame-test-$$" 2>/dev/null && group=$root/gasflame-test-$$ && break
done
if [ -n "$group" ]; then
	cleanups+=("for i in 1 2 3 4 5; do rmdir '$group' 2>/dev/null && break; sleep 0.2; done")
fi
limit()
{
	[ -n "$group" ] || return
	for name in memory.limit_in_bytes memory.max; do
		[ ! -e "$group/$name" ] || { echo $((24 << 20)) >"$group/$name"; return; }
	done
	return 1
}
if limit && [ "$true_major" -gt 100 ]; then
	OUT=$tmp/out.scan
	(echo "$BASHPID" >"$group/cgroup.procs" && exec "$TRUTH/truth-faults" "$file" 12000 scan) \
		>"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 10 grep -q ready "$OUT"
	go 60 scan.gasflame
	check_status "recorded under pressure" 0
	check "reclaims are counted" above "$(all scan.gasflame reclaims)" 0
	check "with their time" above "$(all scan.gasflame reclaim-time)" 0
	check "under scan, where the memory was wanted" above "$(under scan.gasflame reclaims 'main;scan;')" 0
	hits=$(sql scan.gasflame "select coalesce(sum(p.value), 0) from point p join series s on s.id = p.series
		where s.name in ('cgroup.memory.failcnt', 'cgroup.memory.events.max')")
	check "the cgroup's limit was hit" above "$hits" 0
	check "faults under pressure are counted as well" about \
		"$(($(all scan.gasflame minor-faults) + $(all scan.gasflame major-faults)))" \
		"$(($(said_by total 2) + $(said_by total 3)))"
	"$GASFLAME" report --format text --what reclaims scan.gasflame >scan.txt 2>/dev/null
	check "the report says what it means" grep -q 'mean memory pressure' scan.txt
	kill -9 "$PID"
else
	skip "memory pressure" "no cgroup can be made here"
fi
finish
