#!/bin/bash
# A recording as a Perfetto trace: decoded by protoc with the numbers of the format's fields, its states, samples and flows are
# those of the report. (Perfetto's own trace_processor is in no package that can be had here.)
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root
command -v protoc >/dev/null || skip_all "needs protoc (protobuf-compiler)"

# decode FILE: as text on the standard output; a field that perfetto.proto does not know is a number there.
decode() { protoc --decode=Trace -I"$here" perfetto.proto <"$1"; }

start waits 20 1 "$tmp"
gf record -e cpu,wait,mem -d 1 -o waits.gasflame -p "$PID"
kill "$PID"
check "recorded" test -s waits.gasflame
gf report --format perfetto -o waits.pftrace waits.gasflame
check "a trace was written" test "$STATUS" = 0 -a -s waits.pftrace
check "the extension names the format" "$GASFLAME" report -o other.pftrace waits.gasflame
check "the same capture gives the same bytes" cmp waits.pftrace other.pftrace
decode waits.pftrace >waits.txt
"$GASFLAME" report --format json waits.gasflame >waits.json 2>/dev/null
"$GASFLAME" report --format folded --merged waits.gasflame >waits.folded 2>/dev/null
relay python3 "$here/perfetto.py" waits.txt waits.json waits.folded

# Only what --what names; then nothing is known of the time between waits.
gf report --format perfetto --what wait -o some.pftrace waits.gasflame
decode some.pftrace >some.txt
check "with --what wait there are waits" grep -q '"wait"' some.txt
check_not "with --what wait nothing runs" grep -q '"running' some.txt
gf report --format perfetto --what cpu -o some.pftrace waits.gasflame
decode some.pftrace >some.txt
check "with --what cpu something runs" grep -q '"running"' some.txt
check_not "with --what cpu nothing waits" grep -q '"wait"' some.txt

# What has no times.
echo 'main;work 7' >a.folded
gf report --format perfetto -o none.pftrace a.folded
check "folded stacks are refused" test "$STATUS" != 0
check "with the reason" grep -q 'no times' "$STDERR"
finish
