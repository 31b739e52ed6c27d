#!/bin/bash
# What goes wrong, and the sentence that says what to do.
. "$(dirname "$0")/../lib.sh"

gf record -e cpu -d 1 no-such-process-here
check_status "no such target" 1
check "says so" said "no-such-process-here"
gf record -e cpu -d 1 -p 4194000
check_status "no such pid" 1
check "names the pid" said "4194000"
gf record -e nonsense -d 1 -p $$
check "no such event" test "$STATUS" -ne 0
check "names those there are" said "cpu"
gf record -d nonsense -p $$
check_status "a duration that is none" 2
gf record --no-such-option
check_status "an option that is none" 2
gf record -e cpu -d 1
check "no target at all" test "$STATUS" -ne 0
gf record --keep-all --capture-limit 950M -p $$
check_status "a limit of a capture that has none" 2
check "and which of the two to leave out" said "leave --capture-limit and --keep-full out, or --keep-all"
gf frobnicate
check_status "no such command" 2
gf report no-such-file.gasflame
check_status "report on a file that is not there" 1
check "names the file" said "no-such-file"
head -c 10000 /dev/urandom >garbage.gasflame
gf report garbage.gasflame
check_status "report on garbage" 1
: >empty.gasflame
gf report empty.gasflame
check_status "report on an empty file" 1

need_root
start deep 5 20
gf record -e cpu -d 1 -o /proc/nowhere.gasflame -p "$PID"
check_status "an output that cannot be made" 1
check "names the path" said "/proc/nowhere"
echo precious >precious.txt
gf record -e cpu -d 1 -o precious.txt -p "$PID"
check "a file that is no capture is not written over" grep -qx precious precious.txt
check "and that is an error" test "$STATUS" -eq 1

# A disk that fills up.
mkdir small
if mount -t tmpfs -o size=320k tmpfs small; then
	cleanups+=("umount -l $tmp/small")
	start_workload --seconds 20
	gf record -e cpu -F 4000 --max-overhead 0 -d 8 -o small/full.gasflame -p "$PID"
	check "a full disk ends with an error" test "$STATUS" -ne 0
	check "and says so" said "space|full"
	check "what was recorded before is kept" above "$(samples small/full.gasflame)" 10
	kill "$PID"
else
	skip "a full disk" "cannot mount a tmpfs"
fi

# Rights. A copy that everybody may run, and a process of root's.
cp "$GASFLAME" "$tmp/gasflame" && chmod 755 "$tmp/gasflame"
mkdir open && chmod 777 open
start deep 5 20
as_user env XDG_CACHE_HOME="$tmp/open" "$tmp/gasflame" record -e cpu -d 1 -o open/x.gasflame -p "$PID" \
	>"$STDOUT" 2>"$STDERR"
STATUS=$?
check_status "nobody on a process of root's" 1
check "says what is missing" said "CAP_|root|sudo|permission|perf_event_paranoid"
finish
