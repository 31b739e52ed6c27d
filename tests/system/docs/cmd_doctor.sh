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
