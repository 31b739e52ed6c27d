#!/bin/bash
# Code that a JIT compiler made: walked by frame pointers, named from /tmp/perf-PID.map, wherever and whenever that is written.
. "$(dirname "$0")/../lib.sh"
need_root

for backend in $(backends); do
	start jit 100
	gf record --backend "$backend" -e cpu -d 1.5 -o "$backend.jit" -p "$PID"
	check_status "$backend: recorded" 0
	check "$backend: named" above "$(share "$backend.jit" jit_burn)" 90
	check "$backend: below its caller" grep -qE ';main;enter_jit;jit_burn' <(folded "$backend.jit")
	check "$backend: complete" above "$(complete "$backend.jit")" 99
	kill "$PID"
done

# Code in the place of other code: a dump has times, and it is gone with its process.
mkdir elsewhere
gf run -e cpu -F 499 -o replaced -- "$TRUTH/truth-jitdump" elsewhere 1
check "the dump is gone" test -z "$(ls elsewhere)"
if emulated; then
	check "code that was replaced, and what replaced it" test "$(share replaced jit_early)" != 0.00 -a "$(share replaced jit_late)" != 0.00
else
	check "code that was replaced" near "$(share replaced jit_early)" 33 10
	check "and what replaced it" near "$(share replaced jit_late)" 66 10
fi
check "on disk, too" test "$("$GASFLAME" query replaced "select count(distinct f.name) from sample s join stack k on k.id = s.stack
	join frame_line l on l.frame = k.frame join function f on f.id = l.function where f.name like 'jit_%'" | tail -1)" = 2

# A process with a /tmp and a pid of its own that writes its map late, removes it and ends: all that is left is what was held.
OUT=$tmp/contained.out
# shellcheck disable=SC2016 # the inner shell's
unshare --pid --fork --mount sh -c 'mount -t tmpfs none /tmp && exec "$0" 200 late' "$TRUTH/truth-jit" >"$OUT" 2>&1 &
outer=$!
started+=("$outer")
if ! wait_for 5 grep -q ready "$OUT"; then
	skip "contained" "no namespaces: $(head -1 "$OUT")"
	finish
fi
PID=$(pgrep -P "$outer")
started+=("$PID")

gf record -e cpu -d 1 -o unnamed -p "$PID"
check "without a name: one box a page" above "$(share unnamed '[jit]+0x0 (page)')" 90
check "code in a memfd is no file" test "$("$GASFLAME" query unnamed "select count(*) from module where path like '/memfd:%'" |
	tail -1)" = 0
check "and what to do about it" said 'have it write /tmp/perf-1.map'

"$GASFLAME" record -e cpu -o late -p "$PID" 2>late.err &
recorder=$!
started+=("$recorder")
wait_for 5 grep -q Recording late.err
kill -USR1 "$PID"
holds_map() { ls -l "/proc/$recorder/fd" | grep -q 'perf-1.map'; }
check "a late map in a container is found" wait_for 5 holds_map
# Some samples more, then nothing is left of it.
sleep 0.3
kill -TERM "$PID"
wait "$recorder"
check "and used after the end of both" above "$(share late jit_burn)" 90
finish
