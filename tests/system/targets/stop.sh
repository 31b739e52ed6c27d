#!/bin/bash
# Every way a recording can end: on time, by Ctrl-C, by SIGTERM, by SIGKILL.
. "$(dirname "$0")/../lib.sh"
need_root

start_workload --seconds 3000 --kinds compute --threads 1 --share 50
target=$PID

# cpu_ticks: of CPU time that it has had, a hundredth of a second each.
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$target/stat"; }
# burnt TICKS: it has had so many more than $ticks.
burnt() { [ "$(cpu_ticks)" -ge $((ticks + $1)) ]; }

begin=$(date +%s%N)
gf record -e cpu -d 1 -o on-time.gasflame -p "$target"
took_ms=$((($(date +%s%N) - begin) / 1000000))
check_status "-d 1" 0
# The time that a busy machine takes to begin and to symbolize comes on top.
check "ends on time ($took_ms ms)" test "$took_ms" -lt 10000
check "and is as long as it was asked to be" near "$(sql on-time.gasflame "select value / 1e6 from meta where key = 'duration_ns'")" 1000 500
check "one plain file is left" test "$(ls on-time.gasflame*)" = on-time.gasflame

for signal in INT TERM; do
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -e cpu --max-overhead 0 -d 600 -o "$signal.gasflame" -p "$target" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=("$recorder")
	wait_for 10 grep -q '^Recording' "$STDERR"
	ticks=$(cpu_ticks)
	wait_for 30 burnt 50
	kill -$signal "$recorder"
	wait "$recorder"
	STATUS=$?
	check_status "SIG$signal ends early" 0
	sampled=$(sql $signal.gasflame 'select sum(coalesce(value, period)) / 1000000 from sample join event on event.id = sample.event')
	spent=$(($(counter $signal.gasflame target.cpu_ns) / 1000000))
	check "SIG$signal keeps everything until then ($sampled of $spent ms on a CPU)" near "$sampled" "$spent" $((spent / 8 + 20))
	check "SIG$signal: one plain file" test "$(ls $signal.gasflame*)" = $signal.gasflame
	check "SIG$signal: symbolized" above "$(share $signal.gasflame compute_unit)" 50
done

# SIGKILL at ten moments: the target lives, the file opens, no process of ours stays.
opened=0 made=0 alive=0 left=0
for i in 1 2 3 4 5 6 7 8 9 10; do
	: >"$STDERR" # what was said before is not waited for
	setsid "$GASFLAME" record -e cpu -d 60 -o "kill-$i.gasflame" -p "$target" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=("$recorder")
	# At any moment: while it begins, and while it records.
	[ $((i % 2)) -eq 0 ] || wait_for 30 grep -q '^Recording' "$STDERR"
	sleep "0.$((RANDOM % 9 + 1))"
	session=$(ps -o sid= -p "$recorder" | tr -d ' ')
	kill -9 "$recorder"
	wait "$recorder" 2>/dev/null
	kill -0 "$target" && alive=$((alive + 1))
	wait_for 2 sh -c "! pgrep -s ${session:-0} >/dev/null" || left=$((left + 1))
	if [ -e "kill-$i.gasflame" ]; then
		made=$((made + 1))
		"$GASFLAME" report --format text "kill-$i.gasflame" >"$STDOUT" 2>"$STDERR"
		case $? in
		0 | 3) opened=$((opened + 1)) ;;
		*) sed "s/^/# kill-$i: /" "$STDERR" ;;
		esac
	fi
done
check "the target lives after ten SIGKILLs" test $alive -eq 10
check "files were there ($made of 10)" test $made -ge 5
check "each of them opens ($opened of $made)" test "$opened" -eq "$made"
check "no process stays behind" test $left -eq 0

# A later one has names as well: report finds them.
: >"$STDERR" # what was said before is not waited for
"$GASFLAME" record -e cpu -d 60 -o killed.gasflame -p "$target" >"$STDOUT" 2>"$STDERR" &
recorder=$!
started+=("$recorder")
# Names are in the file once it was written to, which it is every second.
wait_for 10 grep -q '^Recording' "$STDERR"
wait_for 10 eval '[ "$(samples killed.gasflame)" -gt 100 ]'
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
check "names after SIGKILL" above "$(share killed.gasflame compute_unit)" 50
mkdir readonly && cp killed.gasflame* readonly/ && chmod 555 readonly
before=$(ls -l readonly | md5sum)
check "readable from a folder that is not written to" above "$(share readonly/killed.gasflame compute_unit)" 50
check "and left as it was" test "$(ls -l readonly | md5sum)" = "$before"
kill "$target"
wait "$target"
check "the workload ends by itself after SIGTERM" test $? -eq 0
finish
