#!/bin/bash
# Very many switches, threads and processes: nothing is lost, the account closes, and shares stay right.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root
quiet_moment
waits() { python3 "$here/waits.py" "$@"; }

# closes NAME PERCENT: for every thread run + queue + blocked is its life, and the samples add up to that; those of the
# queue with what the kernel counts as run, between a wake-up and the switch that it causes.
closes()
{
	waits sums "$1.gasflame" | awk -v p="$2" '
		function off(a, b, least) { d = a > b ? a - b : b - a; return d > least && d > b * p / 100 }
		off($8, $7, 2) || off($6, $4, 0.01) || $5 < $3 - 0.01 || $5 > $8 - $4 + 0.01 { bad++; if (bad < 10) print }
		END { print NR " threads, " bad + 0 " of them do not add up"; exit bad > 0 || !NR }'
}

for factor in 1 4; do
	start switches 30 160000 "$factor"
	gf record --backend bpf -e wait --max-overhead 0 -d 3 -o "switches$factor.gasflame" -p "$PID"
	[ "$STATUS" -ne 1 ] || ! said BPF >/dev/null || skip_all "no BPF here: $(tail -1 "$STDERR")"
	check_status "recorded" 0
	kill "$PID"
	wait "$PID"
	recorded_ns=$(sql "switches$factor.gasflame" "select value from meta where key = 'duration_ns'")
	read -r _ count seconds < <(grep ^switches "$OUT")
	# That is the program's own rate: what follows is less of a test where others have the CPUs.
	if above "$count" "$(awk "BEGIN { print 100000 * $seconds }")" >/dev/null; then
		ok "$count switches in $seconds s: more than 100,000 a second"
	else
		skip "more than 100,000 switches a second" "the machine is too busy: $count in $seconds s"
	fi
	check "none lost" test "$(counter "switches$factor.gasflame" 'waits.lost')" = 0
	check "the account closes" closes "switches$factor" 1
	# What the program says is of its whole life; on a busy machine the recorded part differs by some points.
	while read -r name true found error; do
		check "waits below rarely() are $factor times as long: $name has $true % of the time, found $found +- $error" \
			near "$found" "$true" "$(awk "BEGIN { print 5 + 2 * $error }")"
	done < <(waits paths "switches$factor.gasflame" "$OUT")
	check "complete stacks" above "$(complete "switches$factor.gasflame")" 99
	check "of twenty frames" grep -qE '(;often){19};exchange;receive' <(folded "switches$factor.gasflame")
	bytes=$(stat -c %s "switches$factor.gasflame")
	check "a capture of $((bytes / 1024)) KiB for 3 s" above 5000000 "$bytes"
	ns=$(counter "switches$factor.gasflame" bpf.run_ns)
	# Those of other programs on the machine are in it as well.
	each=$(awk "BEGIN { printf \"%d\", $ns / ($count / $seconds * $recorded_ns / 1e9) }")
	check "$each ns a switch, all programs together" test "$each" -lt 2400
done

start storm threads 10000 8
threads=$(awk '/^threads/ { print $2 }' "$OUT")
if [ "${threads:-0}" -lt 10000 ]; then
	skip "10,000 threads" "only ${threads:-0} could be made"
else
	before=$SECONDS
	gf record --backend bpf -e cpu,wait -d 3 -o threads.gasflame -p "$PID"
	check_status "10,000 threads: recorded" 0
	check "10,000 threads: done in $((SECONDS - before)) s" test $((SECONDS - before)) -lt 20
	check "10,000 threads: none lost" \
		test "$(sql threads.gasflame "select coalesce(sum(value), 0) from counter where name in ('waits.lost', 'waits.threads without room')")" = 0
	check "10,000 threads: the account closes" closes threads 1
	check "10,000 threads: all of them are there" \
		test "$(sql threads.gasflame 'select count(*) from thread where blocked_ns > 2900000000')" -ge 9900
	check "10,000 threads: where they wait" above "$(waits share threads.gasflame ring_wait)" 99
	kill "$PID" 2>/dev/null
fi
wait "$PID" 2>/dev/null

start storm forks 500 5
gf record --backend bpf -e cpu,wait -d 3 -o forks.gasflame -p "$PID"
check_status "a fork storm: recorded" 0
check "a fork storm: none lost" test "$(counter forks.gasflame 'waits.lost')" = 0
wait "$PID"
read -r children seen < <(waits children forks.gasflame "$OUT")
check "a fork storm: $seen of $children children have their nap" above "$seen" "$((children * 98 / 100))"

record_whole storm exit 2 -- --backend bpf -e wait -o exit.gasflame
check_status "a target that ends in the middle of a wait ends the recording" 4
check "whose wait is kept up to there" above "$(waits below exit.gasflame last_wait)" 1500
check "and that of another thread" above "$(waits below exit.gasflame endless_wait)" 1500
check "and the account closes" closes exit 1
finish
