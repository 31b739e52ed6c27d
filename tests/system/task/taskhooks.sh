#!/bin/bash
# taskhooks: hooks in the vtables of a process: each call and its time is seen, and whatever happens, all is put back.
. "$(dirname "$0")/../lib.sh"
need_root
hooks=$(dirname "$TRUTH")/taskhooks
program=$TRUTH/truth-vtables

relay timeout 120 "$hooks" truth "$program" 200
relay timeout 120 "$hooks" life "$program"
relay timeout 120 "$hooks" both "$program"
relay timeout 120 "$hooks" cycle "$program" 20
relay timeout 120 "$hooks" kill "$program" 30
relay timeout 120 "$hooks" die "$program" 10
relay timeout 120 "$hooks" hostile "$program" 4

# A kernel that lets only a tracer write to read-only memory, and one that lets nobody (heap/readonly.c).
readonly=$(dirname "$TRUTH")/readonly.so
check "only a tracer writes: it is all the same" env LD_PRELOAD="$readonly" timeout 120 "$hooks" truth "$program" 50
check "only a tracer writes: a killed one, too" env LD_PRELOAD="$readonly" timeout 120 "$hooks" kill "$program" 10
check "nobody may write: the reason is said" sh -c "READONLY=never LD_PRELOAD='$readonly' timeout 120 '$hooks' truth '$program' 5 |
	grep 'kernel does not let us write.*proc_mem.force_override=ptrace'"

# The command that takes them out, by both of its names.
for command in "detach" "heap detach"; do
	PID=$(timeout 60 "$hooks" left "$program")
	started+=("$PID")
	if [ "$command" = detach ]; then
		# They work, and nobody reads: stacks go through a poll that is under way, as if there were no hook.
		record_used 200 -e cpu -o polls.gasflame
		"$GASFLAME" report --format folded polls.gasflame >polls.folded 2>/dev/null
		check "stacks go through polls" grep -q 'round_of;poll_task;poll_outer;poll_common' polls.folded
		check "they are complete" above "$(complete polls.gasflame)" 99
	fi
	gf $command "$PID"
	check_status "$command: takes hooks out that a killed recorder left" 0
	check "$command: says how many" said '12 of 12 slots put back'
	gf $command "$PID"
	check "$command: once" said ': 0 of 0 slots put back'
	check "$command: the process lives" kill -0 "$PID"
	kill -9 "$PID"
done
finish
