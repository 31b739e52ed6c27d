#!/bin/bash
# doctor: as root and as an ordinary user, of the machine and of a process.
. "$(dirname "$0")/../lib.sh"

has() { case $3 in *"$2"*) ok "$1" ;; *) not_ok "$1" "no \"$2\" in: $3" ;; esac; }
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "wanted: $2
got: $3"; fi; }
settings() { cat /proc/sys/kernel/{perf_event_paranoid,kptr_restrict,perf_event_mlock_kb} /proc/sys/net/core/bpf_jit_enable; }

before=$(settings 2>/dev/null)
output=$("$GASFLAME" doctor)
code=$?
case $output in
*"On this machine: full recording"* | *"On this machine: fallback"*) is "it says what can be recorded" 0 $code ;;
*"On this machine: no recording"*) is "it says that nothing can be recorded" 1 $code ;;
*) not_ok "it ends with a summary" "$output" ;;
esac
for line in kernel BTF BPF CAP_PERFMON cpu-clock PMU tracefs cgroups "locked memory" debuginfod; do
	has "it tells of $line" "  $line  " "$output"
done
is "every line that is not ok has a remedy or says what works" "" "$(printf '%s\n' "$output" |
	awk '/^(limited|missing)/ { if (bad) print bad; bad = $0; next } / it: / { bad = "" } END { if (bad) print bad }')"
if command -v python3 >/dev/null; then
	check "--json is JSON" bash -c '"$GASFLAME" doctor --json | python3 -m json.tool'
else
	skip "--json is JSON" "no python3"
fi

sleep 300 &
sleeper=$!
started+=("$sleeper")
wait_for 5 grep -q sleep "/proc/$sleeper/comm"
output=$("$GASFLAME" doctor "$sleeper")
has "a process: its name" "$sleeper sleep: sleep 300" "$output"
case $output in
*"ok       unwind tables           "[1-9]*) ok "a process: its unwind tables" ;;
*) not_ok "a process: its unwind tables" "$output" ;;
esac
has "a process: its allocator" "allocator" "$output"
output=$("$GASFLAME" doctor gasflame-no-such-process 2>&1)
is "no such process: an error" 1 $?
has "no such process: says so" "process is named gasflame-no-such-process" "$output"

# One of several stays; the others end while they are looked at.
cp "$(command -v sleep)" "$tmp/gf-churn"
"$tmp/gf-churn" 300 &
stays=$!
started+=("$stays")
for i in 1 2 3; do
	while kill -0 "$stays" 2>/dev/null; do "$tmp/gf-churn" 0.005; done &
	started+=($!)
done
wait_for 5 grep -q gf-churn "/proc/$stays/comm"
gone=0
for i in 1 2 3 4 5; do
	output=$("$GASFLAME" doctor name:gf-churn 2>&1) && [[ $output == *"$stays gf-churn"* ]] || gone=$((gone + 1))
done
is "processes that end meanwhile are left out" 0 $gone
kill "$stays"

# A program that says what a node's file says, and has a jemalloc: names, stripped, and with the wrong variable.
# told NAME WORD...: the line NAME of the last output has all of them.
told()
{
	local line word
	line=$(printf '%s\n' "$output" | grep -A2 "^[a-z]*  *$1  ")
	for word in "${@:2}"; do
		has "$where: $1: $word" "$word" "$line"
	done
}
examine() # PROGRAM [VARIABLE=VALUE...]
{
	env "${@:2}" "$1" >"$tmp/nodelike.out" &
	node=$!
	started+=("$node")
	wait_for 10 grep -q ready "$tmp/nodelike.out"
	output=$("$GASFLAME" doctor "$node" 2>/dev/null)
	facts=$("$GASFLAME" doctor --json "$node" 2>/dev/null)
	kill "$node"
}
if [ -x "$TRUTH/truth-nodelike" ]; then
	where="a node" && examine "$TRUTH/truth-nodelike" _RJEM_MALLOC_CONF=prof_active:true
	told client "reth 2.5.1" "(7b3432d95003)"
	told build "GCC" "profile maxperf-symbols" "features asm-keccak,jemalloc" "names and lines"
	told jemalloc "without a prefix" "reads MALLOC_CONF" "prof:true,prof_active:false,lg_prof_sample:19"
	told _RJEM_MALLOC_CONF "no effect" "set MALLOC_CONF instead"
	told "heap profiling" "not active" "heap dump --active on"
	told "heap endpoint" "/debug/pprof/heap of the metrics port" "503"
	check "$where: --json" python3 -c "
import json, sys
b = json.loads(sys.argv[1])['targets'][0]['build']
assert (b['client'], b['version'], b['heap_profiling'], b['malloc_conf_ignored'], b['symbols']) == ('reth', '2.5.1-7b3432d95', 'inactive', '_RJEM_MALLOC_CONF', True), b
assert b['malloc_conf_compiled'].startswith('prof:true') and b['malloc_conf'] == b['malloc_conf_compiled'], b" "$facts"
	where="its variable" && examine "$TRUTH/truth-nodelike" MALLOC_CONF=prof_active:true
	told "heap profiling" "on and active"
	where="switched off" && examine "$TRUTH/truth-nodelike" MALLOC_CONF=prof:false
	told "heap profiling" "but off" "MALLOC_CONF=prof:true"
	if command -v strip >/dev/null; then
		strip -o "$tmp/stripped-node" "$TRUTH/truth-nodelike"
		where="stripped" && examine "$tmp/stripped-node"
		told client "reth 2.5.1"
		told build "stripped" "the official container image" "maxperf-symbols"
		told jemalloc "prof:true,prof_active:false"
	fi
else
	skip "a node with jemalloc" "there is no static jemalloc to build it with"
fi
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	skip "as an ordinary user" "needs root to become one"
	finish
fi
# A copy, for the build folder may be closed to others.
cp "$GASFLAME" "$tmp/gasflame" && chmod 755 "$tmp/gasflame"
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
output=$(as_nobody "$tmp/gasflame" doctor)
code=$?
has "an ordinary user: BPF is missing" "missing  CAP_BPF" "$output"
has "an ordinary user: how to get it" "sudo setcap" "$output"
case $output in
*"fallback: perf events"*) is "an ordinary user: the fallback" 0 $code ;;
*"no recording"*) has "an ordinary user: why nothing works" "sudo sysctl kernel.perf_event_paranoid=1" "$output" ;;
*) not_ok "an ordinary user: a summary" "$output" ;;
esac
output=$(as_nobody "$tmp/gasflame" doctor "$sleeper")
is "another user's process cannot be recorded" 1 $?
has "another user's process: why" "missing  rights" "$output"

# Root of a user namespace, as in a rootless container: its capabilities are not the machine's.
if as_nobody unshare -Ur true 2>/dev/null; then
	for who in "" as_nobody; do
		output=$($who unshare -Ur "$tmp/gasflame" doctor)
		is "a user namespace${who:+ of nobody}: no capability is shown as one that counts" "" "$(printf '%s\n' "$output" | grep '^ok  *CAP_')"
		has "a user namespace${who:+ of nobody}: it is named" "missing  user namespace" "$output"
		has "a user namespace${who:+ of nobody}: where to run it" "run it on the host" "$output"
		is "a user namespace${who:+ of nobody}: no remedy that does not help there" "" "$(printf '%s\n' "$output" | grep -o 'sudo setcap\|in spite of the rights\|start this container' | head -1)"
	done
	# A map of all users to themselves is no right either.
	output=$(unshare -U --map-users=0,0,65536 --map-groups=0,0,65536 "$tmp/gasflame" doctor 2>/dev/null)
	if [ -n "$output" ]; then
		has "a user namespace with everybody in it" "missing  user namespace" "$output"
	else
		skip "a user namespace with everybody in it" "this unshare makes none"
	fi
else
	skip "a user namespace" "nobody may make one here"
fi
case $("$GASFLAME" doctor) in *"user namespace"*) not_ok "the machine's own user namespace is not named" ;; *) ok "the machine's own user namespace is not named" ;; esac

# A look-alike of Debian's setting, seen by this process alone.
echo 3 >"$tmp/three"
if unshare -m mount --bind "$tmp/three" /proc/sys/kernel/perf_event_paranoid 2>/dev/null; then
	output=$(unshare -m bash -c 'mount --bind "$1" /proc/sys/kernel/perf_event_paranoid && exec "$2" doctor' - \
		"$tmp/three" "$GASFLAME")
	has "Debian's stock paranoid level is named" "Debian's stock value" "$output"
else
	skip "Debian's stock paranoid level is named" "no mounts here"
fi
is "it changed nothing" "$before" "$(settings 2>/dev/null)"
finish
