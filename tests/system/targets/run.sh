#!/bin/bash
# run: a program that gasflame starts; and where captures go.
. "$(dirname "$0")/../lib.sh"
need_root

gf run -e cpu -o run.gasflame -- "$TRUTH/truth-deep" 30 2
check_status "run passes on 0" 0
check "the program's stdout is its own" grep -q '^levels 30' "$STDOUT"
check "recorded from its start" above "$(share run.gasflame deep_burn)" 90
# The first moments after exec pass before its mappings are known: more on a busy machine.
check "complete" above "$(complete run.gasflame)" 95
gf run -e cpu -o status.gasflame -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 7'
check_status "run passes the exit status on" 7
gf run -e cpu -o none.gasflame -- /no/such/program
check "a program that is not there" test "$STATUS" -ne 0
check "is named" said "/no/such/program"

# SIGTERM to gasflame reaches the program; the capture is kept.
: >"$STDERR" # what was said before is not waited for
"$GASFLAME" run -e cpu --max-overhead 0 -o term.gasflame -- "$TRUTH/truth-deep" 10 30 >"$STDOUT" 2>"$STDERR" &
runner=$!
started+=("$runner")
# Most of a second of CPU time, however long that takes here.
has_run() { child=$(pgrep -x -P "$runner" truth-deep) && [ "$(awk '{ print $14 + $15 }' "/proc/$child/stat")" -ge 80 ]; }
wait_for 30 has_run
[ -z "$child" ] || started+=("$child")
begin=$SECONDS
kill -TERM "$runner"
wait "$runner"
check "run passes SIGTERM on ($((SECONDS - begin)) s)" test $((SECONDS - begin)) -lt 10
check "to a program that then ends" sh -c "! kill -0 ${child:-$$} 2>/dev/null"
check "and keeps the capture" above "$(share term.gasflame deep_burn)" 90

# -d ends the recording; the program goes on to its own end.
begin=$SECONDS
gf run -e cpu -d 1 -o short.gasflame -- "$TRUTH/truth-deep" 10 3
check "that the program goes on is said" said "The program goes on, and is not recorded any more"
check "the program runs to its own end" grep -q '^levels 10' "$STDOUT"
check "the recording is shorter" above 1500 "$(samples short.gasflame)"
check "it took the program's time" test $((SECONDS - begin)) -ge 3

# The default path, and its owner behind sudo.
start deep 10 10
SUDO_UID=65534 SUDO_GID=65534 gf record -e cpu -d 1.2 -p "$PID"
check_status "default path" 0
path=$(find profiling -name '*.gasflame')
check "is profiling/<target>/cpu-YYYYMMDD-HHMMSS.gasflame ($path)" \
	grep -qxE 'profiling/truth-deep/cpu-[0-9]{8}-[0-9]{6}\.gasflame' <(echo "$path")
check "is owned by the user behind sudo" test "$(stat -c %u:%g "$path")" = 65534:65534
check "its folders too" test "$(stat -c %u profiling profiling/truth-deep | sort -u)" = 65534
check "the path is said" said "$path"
finish
