#!/bin/bash
# A program that waits in known ways: each wait is found with its time, its cause, a complete stack and who ended it,
# and the account of every thread closes. The same for a real node, where there is one.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root
quiet_moment
waits() { python3 "$here/waits.py" "$@"; }

# record_waits NAME SECONDS: of $PID into NAME.gasflame, with what the kernel says beside it in NAME.sched.
record_waits()
{
	"$TRUTH/truth-schedstat" "$PID" 5 >"$1.sched" &
	local watcher=$! steal
	started+=("$watcher")
	wait_for 5 grep -q ready "$1.sched"
	steal=$(stolen_ticks)
	gf record --backend bpf -e cpu,wait -d "$2" -o "$1.gasflame" -p "$PID"
	echo $(($(stolen_ticks) - steal)) >"$1.steal"
	sleep 0.1
	kill "$watcher" 2>/dev/null
	wait "$watcher" 2>/dev/null
}

# stolen_ticks: what the hypervisor took of all CPUs so far, in hundredths of a second.
stolen_ticks() { awk '$1 == "cpu" { print $9 }' /proc/stat; }

# end_target: it prints what is true when it ends.
end_target()
{
	kill "$PID"
	wait "$PID"
}

# within A B PERCENT SLACK: a is b, but for so much of b, or the slack.
within()
{
	awk -v a="$1" -v b="$2" -v p="$3" -v s="$4" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= b * p / 100 || d <= s) }' ||
		{ echo "$1 against $2"; return 1; }
}

# The time of each function: on a CPU, waiting for one, and blocked. The cpu part is sampled, hence the slack of
# some samples.
check_times()
{
	local name true found cpu queue wait complete slack
	while read -r name true found cpu queue wait complete; do
		# Who never blocks is given time of those who do (check_samples): the account says what it really had.
		if [ "$name" = burn ] && [ "$queue" != 0.00 ]; then
			cpu=$(waits run "$1.gasflame" burn | awk '{ print $1 }')
			found=$(awk "BEGIN { print $cpu + $queue + $wait }")
		fi
		slack=$(awk -v c="$cpu" 'BEGIN { print 2 + 3 * sqrt(c) }')
		check "$1: $name took $true ms, found $found ($cpu on a CPU, $queue in the queue, $wait blocked)" \
			within "$found" "$true" 3 "$slack"
		[ "$name" = burn ] || check "$1: stacks of $name complete ($complete %)" above "$complete" 99.5
	done < <(waits times "$1.gasflame" "$2")
}

# between A LEAST MOST BELOW ABOVE: a is within the bounds, but for a percent, or for so much below or above them.
between()
{
	awk -v a="$1" -v least="$2" -v most="$3" -v below="$4" -v above="$5" 'BEGIN {
		d = least - a; if (d > 0) exit !(d <= below || d <= least / 100)
		d = a - most; exit !(d <= above || d <= most / 100) }'
}

# check_account NAME THREADS: each thread's account against the kernel's own, and against its life. What the kernel's was at
# the ends of the recording is known within bounds: it was read before and after. It counts what runs at its ticks, 4 ms apart, and a
# wait for a CPU when it is over: the longest one, at either end. Time that the hypervisor takes is neither for the kernel; for us
# it is time in the queue, as is what a switch itself takes, and it is counted (waits.stolen_ns): it is no more than the hypervisor's, as
# /proc/stat has it in hundredths of a second by the tick, and 20 us a switch, which is how far apart the clocks are read.
check_account()
{
	local name tid run run_least run_most queue queue_least queue_most blocked life times longest wrong= n=0 stolen switches=0
	stolen=$(awk -v ns="$(counter "$1.gasflame" 'waits.stolen_ns')" 'BEGIN { print ns / 1e6 }')
	while read -r name tid run run_least run_most queue queue_least queue_most blocked life times longest; do
		n=$((n + 1)) switches=$((switches + times))
		between "$run" "$run_least" "$run_most" 4 4 ||
			wrong+="$name: on a CPU $run ms, the kernel says $run_least to $run_most ($times times)"$'\n'
		between "$queue" "$queue_least" "$queue_most" "$longest" "$(awk "BEGIN { print $longest + $stolen }")" ||
			wrong+="$name: in the queue $queue ms, the kernel says $queue_least to $queue_most ($times times), and $stolen ms of all were stolen"$'\n'
		within "$(awk "BEGIN { print $run + $queue + $blocked }")" "$life" 1 1 >/dev/null ||
			wrong+="$name: $run + $queue + $blocked ms are not $life"$'\n'
	done < <(waits account "$1.gasflame" "$1.sched")
	check "$1: $stolen ms of the queue are not the kernel's ($switches switches)" awk -v ms="$stolen" -v steal="$(cat "$1.steal")" \
		-v switches="$switches" -v cpus="$(nproc)" 'BEGIN { exit !(ms <= (steal + 1) * 10 + 4 * cpus + switches * 0.02) }'
	check "$1: the kernel's account is known for $n threads" test "$n" -ge "$2"
	if [ -z "$wrong" ]; then ok "$1: the account of each is the kernel's"; else not_ok "$1: the account of each is the kernel's" "$wrong"; fi
}

# The samples add up to the account. Those of the queue can be more by what the kernel counts as run, between a
# wake-up and the switch that it causes.
check_sums()
{
	local name tid queue blocked queue_sum wait_sum life all wrong=
	while read -r name tid queue blocked queue_sum wait_sum life all; do
		within "$wait_sum" "$blocked" 0.1 0.01 >/dev/null &&
			awk "BEGIN { run = $all - $queue - $blocked; exit !($queue_sum > $queue - 0.01 && $queue_sum <= $queue + run + 0.01) }" ||
			wrong+="$name $tid: queue $queue, samples $queue_sum; blocked $blocked, samples $wait_sum"$'\n'
	done < <(waits sums "$1.gasflame")
	if [ -z "$wrong" ]; then ok "$1: the samples add up to it"; else not_ok "$1: the samples add up to it" "$wrong"; fi
}

# The samples of all threads together are the time that these ran. Between them some is misplaced: the kernel switches
# with interrupts off, and a sample that is due meanwhile is taken when they are on again, in the next thread. Threads
# that block a thousand times a second lose a part of theirs so, to those that never do.
check_samples()
{
	local run sampled all all_sampled
	read -r run sampled all all_sampled < <(waits run "$1.gasflame" burn)
	check "$1: all threads ran $all ms, their samples are $all_sampled" within "$all_sampled" "$all" 3 10
	check "$1: burn ran $run ms, its samples are $sampled" awk "BEGIN {
		exit !($sampled > $run * 0.97 && $sampled - $run < ($all - $run) / 2) }"
}

# cause NAME CAUSE…: nearly all of what the thread of that name waited below that function has one of these causes.
cause()
{
	local name=$1 below
	shift
	below=$(waits below quiet.gasflame "$name")
	awk -v name="$name" -v below="$below" -v wanted=" $* " '
		$1 == name { for (i = 2; i <= NF; i++) { split($i, part, "="); if (index(wanted, " " part[1] " ")) sum += part[2] } found = $0 }
		END { if (sum < below * 0.95) { print below " ms of " wanted ": " found; exit 1 } }' causes
}
# unknown NAME: percent of the time whose cause nobody knows, or that is missing.
unknown()
{
	"$GASFLAME" report --format json "$1.gasflame" >report.json 2>/dev/null
	waits causes report.json | awk '$1 == "all" {
		for (i = 2; i <= NF; i++) { split($i, part, "="); at[part[1]] = part[2] }
		missing = at["missing"] < 0 ? -at["missing"] : at["missing"]
		printf "%.2f\n", (at["unknown"] + missing) * 100 / at["wall"] }'
}

start waits 300 0 "$tmp"
first_out=$OUT
record_waits quiet 5
end_target
[ "$STATUS" -ne 1 ] || ! said BPF >/dev/null || skip_all "no BPF here: $(tail -1 "$STDERR")"
check_status "recorded" 0
check_times quiet "$first_out"
check_account quiet 16
check_sums quiet
check "nothing lost" test "$(counter quiet.gasflame 'waits.lost')" = 0

"$GASFLAME" report --format json quiet.gasflame >report.json 2>/dev/null
waits causes report.json >causes
while read -r name wanted; do
	check "$name: the cause is $wanted" cause "$name" $wanted
done <<END
hold_lock sleep
wait_lock lock
rw_write sleep
rw_read lock
nap sleep
park park
park_forever park idle
sync_loop disk-write
cold_scan fault
pipe_read pipe
pair_read network
net_read network
poll_idle network idle
epoll_idle idle
wait_child pipe
feed sleep
END
check "of unknown cause, or missing, is $(unknown quiet) % of the time" above 2 "$(unknown quiet)"

read -r waker percent stack < <(waits wakes quiet.gasflame wait_lock)
check "who waits for the mutex is woken by its holder ($waker, $percent %)" \
	test "$waker" = hold_lock -a "${percent%.*}" -ge 95
check "in the function that held it" grep -q ';hold_lock;' <<<"$stack"
read -r waker percent stack < <(waits wakes quiet.gasflame rw_read)
check "the reader is woken by the writer ($waker, $percent %)" test "$waker" = rw_write -a "${percent%.*}" -ge 95
read -r waker percent stack < <(waits wakes quiet.gasflame park)
check "the parked one by who feeds it" grep -q ';feed;' <<<"$stack"

# More wish to run than can: the queue is where the time goes.
start waits 300 $(($(nproc) + 1)) "$tmp"
record_waits busy 3
end_target
check_times busy "$OUT"
check_samples busy
check_account busy 16
check_sums busy

# The burners run all the time, so that most interrupts come while one of them does: none of them woke anybody.
check "no wait is ended by a thread that only computes" test 0 = \
	"$(sql busy.gasflame "select count(*) from wakes where waker = 'burn' and thread in ('nap', 'sync_loop', 'cold_scan')")"
check "a sleep is ended by the timer" above "$(sql busy.gasflame "
	select 100.0 * sum(waker = 'interrupt (timer)') / count(*) from wakes where thread = 'nap'")" 98
# Wakers are kept for waits of a millisecond and more: a quick disk has few. fsync() may be ended by the journal's thread.
reads=$(sql busy.gasflame "select count(*) from wakes where thread = 'cold_scan'")
if [ "$reads" -ge 20 ]; then
	check "the disk by its completion" above "$(sql busy.gasflame "select count(*) from wakes
		where waker = 'interrupt (block I/O completion)' and thread in ('sync_loop', 'cold_scan')")" 0
else
	skip "the disk by its completion" "only $reads reads took a millisecond"
fi
# Neither our programs nor the tracing that calls them: the stack of a wait ends in the scheduler, or in who called it.
tracing="function like 'bpf\_%' escape '\' or function like '%traceiter%' or module = '[gasflame]' or module = '[kernel jit]'"
check "no wait and no wake-up has a frame of ours" test 0 = "$(sql busy.gasflame "
	with recursive up(id) as (
		select stack from sample join event on event.id = sample.event where event.name in ('wait', 'queue')
		union select waker_stack from wake where waker is not null or waker_name like 'interrupt%' or waker_name like 'swapper%'
		union select parent from up cross join stack on stack.id = up.id)
	select count(*) from up cross join stack on stack.id = up.id cross join frames on frames.frame = stack.frame
	where $tracing")"

# A program that goes to sleep before anybody could read its mappings.
gf run -e wait -o soon.gasflame -- sleep 1
"$GASFLAME" report --format folded --what wait --idle soon.gasflame >soon.folded 2>/dev/null
check "a program that sleeps at once has its whole stack" awk '
	/clock_nanosleep/ && !/truncated/ && $NF > 900000 { found = 1 } END { exit !found }' soon.folded
# Until its exec it is our child, which waits for us to open the gate.
check_not "the wait of our child is not the program's" grep -q pipe_read soon.folded
check "its account begins with its exec, and closes" test \
	"$(sql soon.gasflame 'select start_ns > 0 and end_ns - start_ns = run_ns + queue_ns + blocked_ns from thread')" = 1

# A stock node under load.
if ! anvil=$("$here/../../../tools/anvil" 2>why); then
	skip "anvil's account" "$(cat why)"
	finish
fi
port=$(free_port)
"$anvil" --host 127.0.0.1 --port "$port" --no-mining --quiet --gas-limit 3000000000 --accounts 20 \
	--balance 1000000000 --prune-history 8 --transaction-block-keeper 8 >/dev/null 2>&1 &
PID=$!
started+=("$PID")
wait_for 20 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
python3 "$here/../../../bench/anvil_load.py" --port "$port" --seconds 100000 --counters "$tmp/load" >/dev/null 2>&1 &
load=$!
started+=("$load")
loads() { tail -c +65 load | tr -d '\0' | grep -q .; } # its counts, behind their head
wait_for 20 loads
record_waits anvil 3
check_status "anvil recorded" 0
check_account anvil 5
check_sums anvil
check "anvil: of unknown cause, or missing, is $(unknown anvil) % of the time" above 2 "$(unknown anvil)"
check "anvil: complete stacks" above "$(complete anvil.gasflame)" 99
kill -9 "$load" "$PID"
wait "$load" "$PID" 2>/dev/null
finish
