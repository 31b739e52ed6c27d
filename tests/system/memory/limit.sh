#!/bin/bash
# limit: a program in a memory limit, up to the kill; and run --fail-on-leak.
if [ "$(id -u)" -eq 0 ] && [ ! -r /sys/kernel/tracing/events/header_page ] && [ -z "${MOUNTED:-}" ]; then
	# In a namespace of its own: the machine stays as it is.
	export MOUNTED=1
	exec unshare -m sh -c 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$0"' "$0"
fi
. "$(dirname "$0")/../lib.sh"
need_root

leaker=$TRUTH/truth-leaker
# Cgroups of ours that are there.
groups() { find /sys/fs/cgroup -type d -name 'gasflame-limit-*' 2>/dev/null; }
no_group() { ! groups | grep . ; }
# json FILE EXPRESSION: of the report's "limit", as l.
json() { "$GASFLAME" report --format json "$1" 2>/dev/null | python3 -c "import json, sys; l = json.load(sys.stdin)['limit']; print($2)"; }

# --- run --fail-on-leak ---

gf run -e heap --fail-on-leak 1M -o leak.gasflame -- "$leaker" 4
check_status "a leak is status 6" 6
check "and is said in bytes" said '^leak: 5\.00 MB in [0-9]+ objects'
check "with the function that leaks first" said '4\.00 MB +79\.[0-9]+ +256 +leaky_cache'
check "and what is alive beside it" said '1\.00 MB +19\.[0-9]+ +1 +settled_table'
check "but not what was freed" sh -c "! grep -q busy_worker '$STDERR'"
gf run -e heap --fail-on-leak 16M -o leak.gasflame -- "$leaker" 4
check_status "less than allowed is none" 0
check "which is said, too" said '^no leak: 5\.00 MB'
gf run -e heap --fail-on-leak 1K -o leak.gasflame -- sh -c 'exit 9'
check_status "the program's own status comes first" 9
gf run -e cpu --fail-on-leak 1M -- "$leaker" 1
check_status "without the heap it is refused" 2
gf record --fail-on-leak 1M -p $$
check_status "record has no such option" 2

# --- limit: words ---

gf limit -- true
check_status "a limit is needed" 2
check "and asked for" said 'memory 8G'
gf limit --memory 64M
check_status "a program, too" 2
gf limit --memory 64M --swap much -- true
check_status "a swap that is none" 2
gf limit --cgroup-of $$ --memory 1G
check_status "the limit of a running program is not changed" 2
gf limit --memory 64M -- /no/such/program
check_status "a program that is not there" 1
check "is named" said "/no/such/program"
check "and nothing is left of it" no_group
as_user "$GASFLAME" limit --memory 64M -- true >"$STDOUT" 2>"$STDERR"
STATUS=$?
check_status "without rights it is refused" 1
check "with what to do" said 'sudo|systemd-run'

gf limit --memory 64M -o probe.gasflame -- true
if said 'not to be had|no cgroups here|no right to make|missing there' >/dev/null; then
	skip "limit" "$(cat "$STDERR")"
	finish
fi
check_status "a program that needs less than its limit" 0
check "is told so" said 'ended with status 0; the limit of 64.0 MB killed nothing'

# --- the kill ---

gf limit --memory 96M --swap 0 -o kill.gasflame -- "$leaker" 500
check_status "killed at the limit: 137" 137
check "which is said" said 'killed at its limit of 96.0 MB: the exit status is 137'
check "and who leaks" said 'the heap filled it: .* allocated by leaky_cache'
check "the report says the same" grep -q 'allocated by leaky_cache' <("$GASFLAME" report --format text kill.gasflame 2>/dev/null)
check "one kill" test "$(json kill.gasflame "l['kills']")" = 1
check "by the heap" test "$(json kill.gasflame "l['filled_by']")" = heap
check "of leaky_cache, more than 95 %" above "$(json kill.gasflame "100 * l['live'][0]['bytes'] / l['live_bytes'] if l['live'][0]['function'] == 'leaky_cache' else 0")" 95
# What is alive is the anonymous memory but for the allocator's own; our own memory is not in the group.
check "the live heap is the limit within 8 %" near "$(json kill.gasflame "l['live_bytes'] / 2**20")" 92 8
check "files are few" above 4 "$(json kill.gasflame "l['points'][-1]['file'] / 2**20")"
check "the limit was met" above "$(json kill.gasflame "l['hits']")" 0
check "the peak is the limit" test "$(json kill.gasflame "l['peak']")" = $((96 << 20))
check "the way there rises" above "$(json kill.gasflame "l['points'][-1]['usage'] / (l['points'][0]['usage'] + 1)")" 2
check "up to the limit" above "$(json kill.gasflame "100 * l['points'][-1]['usage'] / l['memory']")" 80
if [ -r /sys/kernel/tracing/events/header_page ]; then
	check "who asked for the last page" grep -qE '^(leaky_cache|busy_worker)$' <(json kill.gasflame "l['asked_by']")
	unshare -m sh -c 'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug; exec "$0" "$@" 2>&3' \
		"$GASFLAME" limit --memory 32M --swap 0 -o without.gasflame -- "$leaker" 500 >"$STDOUT" 3>"$STDERR" 2>/dev/null
	STATUS=$?
	check_status "without tracefs: killed all the same" 137
	check "without tracefs: and what filled it" said 'the heap filled it: .* allocated by leaky_cache'
	check "without tracefs: what is not known is said" said 'mount -t tracefs'
else
	skip "who asked for the last page" "cannot mount tracefs"
fi
if [ -r /dev/kmsg ]; then
	check "the kernel's words" grep -q 'Killed process .*truth-leaker' <(json kill.gasflame "l['kernel_log']")
else
	skip "the kernel's words" "/dev/kmsg cannot be read"
fi
check "the cgroup is gone" no_group

gf limit --memory 64M -o child.gasflame -- "$leaker" 500 16 child
check_status "a child that is killed: the program's own status" 3
check "which is said, too" said 'killed a process of it; the program ended with status 3'
check "with what touched the memory" grep -q leaky_cache <("$GASFLAME" report --format folded --what minor-faults child.gasflame 2>/dev/null)

gf limit --memory 64K -o small.gasflame -- "$leaker" 100
check_status "a limit that is too small to start" 137
check "is called that" said 'smaller than what it needs to start'
check "and leaves nothing" no_group

# --- other ends ---

: >"$STDERR" # what was said before is not waited for
"$GASFLAME" limit --memory 512M -o int.gasflame -- "$leaker" 200 >int.out 2>"$STDERR" &
runner=$!
started+=("$runner")
wait_for 10 grep -q ready int.out
child=$(pgrep -x -P "$runner" truth-leaker)
[ -z "$child" ] || started+=("$child")
kill -TERM "$runner"
wait "$runner"
check "SIGTERM ends both" sh -c "! kill -0 ${child:-$$} 2>/dev/null"
check "and the cgroup" no_group
check "the capture is kept" above "$(samples int.gasflame)" 10

: >"$STDERR" # what was said before is not waited for
"$GASFLAME" limit --memory 512M -o gone.gasflame -- "$leaker" 150 >gone.out 2>"$STDERR" &
runner=$!
started+=("$runner")
wait_for 10 grep -q ready gone.out
child=$(pgrep -x -P "$runner" truth-leaker)
[ -z "$child" ] || started+=("$child")
kill -KILL "$runner"
wait "$runner" 2>/dev/null
check "SIGKILL of gasflame leaves the program alone" kill -0 "${child:-none}"
check "and in its limit" grep -q "^${child:-none}\$" <(cat "$(groups | head -1)/cgroup.procs")
wait_for 20 no_group
check "the guard removes the cgroup after the program's end" no_group
check_not "and goes" pgrep -f "limit --memory 512M -o gone"

# --- the limits of another ---

: >"$STDERR" # what was said before is not waited for
"$GASFLAME" limit --memory 300M --swap 0 -e cpu -o other.gasflame -- sleep 60 >"$STDOUT" 2>"$STDERR" &
runner=$!
started+=("$runner")
wait_for 10 sh -c "pgrep -x -P $runner sleep"
sleep 0.5
sleeper=$(pgrep -x -P "$runner" sleep)
gf limit --cgroup-of "$sleeper" -o taken.gasflame -- true
check_status "the limits of another cgroup" 0
check "are taken" test "$(json taken.gasflame "l['memory']")" = $((300 << 20))
gf limit --cgroup-of "$sleeper" -d 1 -o watched.gasflame
check "a running program is watched" test "$(json watched.gasflame "l['memory'], len(l['points']) > 2")" = "314572800 True"
check "and lives" kill -0 "$sleeper"
kill "$sleeper" 2>/dev/null
wait "$runner"
check "nothing is left" no_group
finish
