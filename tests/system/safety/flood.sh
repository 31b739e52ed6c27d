#!/bin/bash
# More threads that want to run than the machine has time for: the recording ends when it should, and there is a file.
. "$(dirname "$0")/../lib.sh"
need_root

command -v chrt >/dev/null || skip_all "chrt is missing"
chrt -r -p 1 $$ 2>/dev/null || skip_all "real-time priorities are not permitted here"
# This shell must not be starved, too; what it starts is as usual.
chrt -o 0 "$TRUTH/truth-storm" naps 4000 300 >ready 2>&1 &
PID=$!
started+=("$PID")
wait_for 30 grep -q ready ready
began=$SECONDS
: >"$STDERR" # what was said before is not waited for
chrt -o 0 "$GASFLAME" record -d 2 -o flood.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
recorder=$!
started+=("$recorder")
over() { ! kill -0 "$recorder"; }
# 9 s on two cores; 53 s where the recorder waits for its turn behind every thread.
check "a recording of 2 s ends within 40 s" wait_for 40 over
echo "# it took $((SECONDS - began)) s"
kill -9 "$PID"
wait "$recorder"
STATUS=$?
# Some may be lost, and then it says so.
check "it ends well, or says that it is not fit to read" test "$STATUS" = 0 -o "$STATUS" = 3
check "it has samples" above "$(samples flood.gasflame)" 100
check "of thousands of threads" above "$(sql flood.gasflame 'select count(*) from thread')" 1000
finish
