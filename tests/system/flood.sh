#!/bin/bash
# More threads that want to run than the machine has time for: the recording ends when it should, and there is a file.
. "$(dirname "$0")/lib.sh"
need_root

start storm naps 10000 60
began=$SECONDS
"$GASFLAME" record -d 2 -o flood.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
recorder=$!
started+=("$recorder")
over() { ! kill -0 "$recorder"; }
check "a recording of 2 s ends within 40 s" wait_for 40 over
echo "# it took $((SECONDS - began)) s"
kill -9 "$PID"
wait "$recorder"
STATUS=$?
check_status "it ends well" 0
check "it has samples" above "$(samples flood.gasflame)" 100
check "of thousands of threads" above "$(sql flood.gasflame 'select count(*) from thread')" 1000
finish
