#!/bin/bash
# --max-overhead lowers the rate by itself and says so; pausing works; what we cost is counted.
. "$(dirname "$0")/../lib.sh"
need_root
quiet_moment

start_workload --seconds 20 --kinds compute --threads 4
gf record -e cpu -F 20000 -d 3 --max-overhead 0.5% -o low.gasflame -p "$PID"
check "recorded" test "$STATUS" -eq 0 -o "$STATUS" -eq 3
check "says that the rate was lowered" said "lower|rate"
hz=$(counter low.gasflame sample.hz)
check "and it was: 20000 to $hz" above 10000 "$hz"
early=$(sql low.gasflame 'select count(*) from sample where time_ns < 500000000')
late=$(sql low.gasflame 'select count(*) from sample where time_ns between 2400000000 and 2900000000')
check "fewer samples at the end ($late) than at the start ($early)" above "$((early * 2 / 3))" "$late"
compute=$(share low.gasflame compute_unit)
check "weights stay honest: compute is still ${compute} %" above "$compute" 80

gf record -e cpu -F 99 -d 2 -o own.gasflame -p "$PID"
check "our CPU time is counted" above "$(counter own.gasflame self.cpu_ns)" 0

: >"$STDERR" # what was said before is not waited for
"$GASFLAME" record -e cpu -d 30 -o pause.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
recorder=$!
started+=("$recorder")
sleep 1.5
kill -USR1 "$recorder"
sleep 1.5
kill -USR2 "$recorder"
sleep 0.5
kill -INT "$recorder"
wait "$recorder"
gap=$(sql pause.gasflame 'select max(gap) from (select time_ns - lag(time_ns) over (order by time_ns) as gap from sample)')
check "SIGUSR1 pauses and SIGUSR2 resumes (gap of $((gap / 1000000)) ms)" near "$((gap / 1000000))" 1500 300
check "samples after the pause" above "$(sql pause.gasflame 'select count(*) from sample where time_ns > 2600000000')" 50
finish
