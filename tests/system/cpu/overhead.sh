#!/bin/bash
# --max-overhead records less by itself and says so; weights stay right; pausing works; what we cost is counted.
. "$(dirname "$0")/../lib.sh"
need_root
quiet_moment

start_workload --seconds 300 --kinds compute --threads 4
gf record -e cpu -F 20000 -d 3 --max-overhead 0.5% -o low.gasflame -p "$PID"
check "recorded" test "$STATUS" -eq 0 -o "$STATUS" -eq 3
check "says that less is recorded" said "more than the 0.50 % allowed: cpu: 1 in [0-9]* ticks of the clock"
hz=$(counter low.gasflame sample.hz)
check "and it was: 20000 to $hz" above 10000 "$hz"
# us_each ORDER: the time that one of the first or last twenty samples stands for. How many there are in a second depends on how
# much CPU time the target gets, too.
us_each()
{
	sql low.gasflame "select cast(avg(ns) / 1000 as int) from (select coalesce(value, period) as ns from sample
		join event on event.id = event order by time_ns $1 limit 20)"
}
early=$(us_each asc) late=$(us_each desc)
check "a sample stands for more at the end ($late us) than at the start ($early)" above "$late" "$((early * 3 / 2))"
compute=$(share low.gasflame compute_unit)
check "weights stay honest: compute is still ${compute} %" above "$compute" 80

gf record -e cpu -F 99 -d 2 -o own.gasflame -p "$PID"
check "our CPU time is counted" above "$(counter own.gasflame self.cpu_ns)" 0
check "so is the target's, to the end of the recording" above \
	"$(($(counter own.gasflame overhead.target_ns) * 1000 / $(counter own.gasflame target.cpu_ns)))" 750
check "an ordinary recording is not thinned" \
	test "$(sql own.gasflame "select count(*) from series where name like 'thin.%'")" = 0
kill "$PID"
wait "$PID" 2>/dev/null

# Very many switches: what recording costs is more than allowed whatever is thinned, and that is said.
# Both paths wait equally long: the shares are known on a busy machine, too.
start switches 30 100000 1
gf record --backend bpf -e cpu,wait -d 4 --max-overhead 0.5% -o many.gasflame -p "$PID"
check "switches: recorded" test "$STATUS" -eq 0 -o "$STATUS" -eq 3
kill "$PID"
wait "$PID" 2>/dev/null
check "switches: a step was taken" \
	above "$(sql many.gasflame "select count(*) from point join series on series.id = point.series where name like 'thin.%' and value > 1")" 0
check "switches: and said" said "more than the 0.50 % allowed: .*: 1 in "
check "switches: the cost is said, by collector" said "^  wait +[0-9,]+ +[0-9]+ % +[0-9,]+ +[0-9.]+ %"
check "switches: what a run costs was measured" test "$(counter many.gasflame overhead.run_ns.clock)" -ge 300
if [ "$(counter many.gasflame overhead.floor)" -gt 0 ]; then
	check "switches: the limit that cannot be kept is said, and what would do" said "nothing left to thin.*To keep 0.5 %, .*--max-overhead [0-9]+%"
fi
check "switches: each second has its cost" \
	above "$(sql many.gasflame "select count(*) from point join series on series.id = point.series where name = 'cost.wait' and value > 0")" 1
check "switches: every thread's time is exact, whatever was thinned" near \
	"$(sql many.gasflame "select 1000 * sum(run_ns + queue_ns + blocked_ns) / count(*) / (select value from meta where key = 'duration_ns')
		from thread where start_ns = 0")" 1000 10
one_in=$(sql many.gasflame "select coalesce(max(value), 1) from point join series on series.id = point.series where name = 'thin.wait'")
while read -r name true found error; do
	check "switches: with 1 in $one_in stacks of waits $name has $true % of the time, found $found +- $error" \
		near "$found" "$true" "$(awk "BEGIN { print 6 + 3 * $error }")"
done < <(python3 "$(dirname "$0")/../wait/waits.py" paths many.gasflame "$OUT")
# Each sample counts for its period, at whatever rate: the samples add up to the CPU time.
IFS=, read -r samples sampled < <(sql many.gasflame "select count(*) as n, sum(coalesce(value, period)) / 1000000 as ms from sample
	join event on event.id = sample.event where event.name = 'cpu'")
spent=$(($(counter many.gasflame target.cpu_ns) / 1000000))
check "switches: $samples samples add up to $sampled ms of $spent ms on a CPU" near "$sampled" "$spent" \
	"$(awk "BEGIN { print int($spent * (0.05 + 4 / sqrt($samples + 1))) }")"
gf report --format text many.gasflame
check "switches: the report says what was thinned, when, and the error" \
	grep -qE "^  (cpu|wait): 1 in [0-9]+ .* from [0-9.]+ to [0-9.]+ s.*within [0-9.]+ points" "$STDOUT"
gf report --format json many.gasflame
check "switches: so does its JSON" python3 -c '
import json, sys
cost = json.load(sys.stdin)["cost"]
names = {row["name"] for row in cost["collectors"]}
sys.exit(not (names >= {"cpu", "wait"} and cost["thinned"] and cost["limit"] == 0.5))' <"$STDOUT"
start_workload --seconds 60 --kinds compute --threads 4

: >"$STDERR" # what was said before is not waited for
"$GASFLAME" record -e cpu -d 30 -o pause.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
recorder=$!
started+=("$recorder")
sleep 1.5
kill -USR1 "$recorder"
sleep 1.5
kill -USR2 "$recorder"
# On a busy machine the workload, which is nice, may have to wait for its turn.
after_pause() { [ "$(sql pause.gasflame 'select count(*) from sample where time_ns > 2600000000')" -gt 50 ]; }
wait_for 5 after_pause
kill -INT "$recorder"
wait "$recorder"
gap=$(sql pause.gasflame 'select max(gap) from (select time_ns - lag(time_ns) over (order by time_ns) as gap from sample)')
check "SIGUSR1 pauses and SIGUSR2 resumes (gap of $((gap / 1000000)) ms)" above "$((gap / 1000000))" 1200
check "samples after the pause" after_pause
finish
