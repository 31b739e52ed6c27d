#!/bin/bash
# An ordinary user on a process of their own: perf events with stack dumps, no BPF.
. "$(dirname "$0")/../lib.sh"

cp "$GASFLAME" "$tmp/gasflame" && cp "$TRUTH/truth-deep" "$tmp/" && chmod 755 "$tmp/gasflame" "$tmp/truth-deep"
mkdir open && chmod 777 open
if [ "$(id -u)" -ne 0 ]; then as_user() { "$@"; }; fi
mine() { as_user env TMPDIR="$tmp/open" XDG_CACHE_HOME="$tmp/open" "$tmp/gasflame" "$@" >"$STDOUT" 2>"$STDERR"; STATUS=$?; }
start_mine()
{
	# Not through as_user: $! would be a shell of root's.
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/truth-deep" 40 20 >"$tmp/open/deep.out" &
	else
		"$tmp/truth-deep" 40 20 >"$tmp/open/deep.out" &
	fi
	PID=$!
	started+=("$PID")
	wait_for 5 grep -q ready "$tmp/open/deep.out"
}
paranoid=/proc/sys/kernel/perf_event_paranoid
level=$(cat $paranoid)

start_mine
if [ "$level" -gt 2 ]; then
	skip "an ordinary user records" "perf_event_paranoid is $level"
else
	mine record -e cpu -d 2 -o open/own.gasflame -p "$PID"
	check_status "an ordinary user records their own process" 0
	check "all 40 levels" grep -qE 'main(;deep_level){40};deep_burn' <(folded open/own.gasflame)
	check "complete" above "$(complete open/own.gasflame)" 99
	mine report --format text open/own.gasflame
	check_status "and reports it" 0
	mine record --backend bpf -e cpu -d 1 -o open/bpf.gasflame -p "$PID"
	check "BPF by name is refused" test "$STATUS" -ne 0
	check "with a sentence" said "CAP_BPF|root|sudo"
fi
mine doctor
check "doctor runs for an ordinary user" test "$STATUS" -le 1

# Debian's stock kernel has a level 3: no events at all without a capability. Elsewhere 3 is as 2.
if [ "$(id -u)" -eq 0 ] && { echo 3 >$paranoid; } 2>/dev/null; then
	cleanups+=("echo $level >$paranoid")
	mine doctor
	check "doctor names level 3" grep -qE 'paranoid.*3' "$STDOUT" "$STDERR"
	mine record -e cpu -d 1 -o open/three.gasflame -p "$PID"
	if [ "$STATUS" -eq 0 ]; then
		skip "record names level 3" "this kernel treats 3 as 2"
	else
		check "record names level 3" said "perf_event_paranoid.*3"
	fi
	echo "$level" >$paranoid
else
	skip "perf_event_paranoid 3" "cannot be written here"
fi
finish
