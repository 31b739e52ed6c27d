#!/bin/bash
# follow: one recording through restarts, of a program by its name and of a container; and who joins a container later.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../containers-lib.sh"
need_root

marks() { sql "$1" "select name from mark where kind = 'restart' order by start_ns"; }
# cpu_ms FILE PID: samples, a millisecond each, of the process with this pid.
cpu_ms() { sql "$1" "select count(*) from sample where event in (select id from event where name = 'cpu') and thread in (select thread.id from thread join process on thread.process = process.id where process.pid = $2)"; }

# --- words ---

gf record --follow -p $$
check_status "a pid does not come back" 2
check "which is said" said 'needs a name'
gf record --follow -e heap,cpu bash
check_status "the heap cannot be followed" 2
gf record --follow -- true
check_status "nor a command" 2
gf run --follow -- true
check_status "run has no such option" 2

# --- by name ---

program=$tmp/gfollow$$
name=gfollow$$
cp "$TRUTH/truth-boxed" "$program"
run()
{
	OUT=$tmp/ready.$RANDOM
	"$program" "$@" >"$OUT" &
	PID=$!
	started+=("$PID")
	wait_for 60 grep -q ready "$OUT"
}
recorder=0
# record_in_background ARGUMENTS...
record_in_background()
{
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record "$@" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=("$recorder")
	wait_for 60 grep -q "^Recording" "$STDERR"
}
restarts() { [ "$(grep -c '^restart ' "$STDERR")" -ge "$1" ]; }
ended() { [ "$(grep -c 'waiting for it' "$STDERR")" -ge "$1" ]; }

run 1 300
first=$PID
record_in_background --follow -d 60 -o name.gasflame $name
kill -9 "$first"
wait_for 60 ended 1
# Its name in another's command line is not it.
bash -c 'exec -a decoy sleep 5' "$name" & started+=($!)
sleep 0.5
run 1 0.7 3
second=$PID
wait_for 10 restarts 1
wait_for 60 ended 2
sleep 0.5
run 2 300
third=$PID
wait_for 10 restarts 2
sleep 0.7
kill -INT "$recorder"
wait "$recorder"
STATUS=$?
check_status "one recording through two restarts; Ctrl-C ends it" 0
check "all three were recorded" test "$(sql name.gasflame "select count(*) from process where pid in ($first, $second, $third) and name = '${name:0:15}'")" = 3
check "the third with its work" above "$(cpu_ms name.gasflame "$third")" 50
check "functions are named in it" grep -q 'boxed_work;boxed_burn' <(folded name.gasflame)
check "the first restart is a mark: how it ended, who came" grep -qE "^\"?restart 1: was killed by SIGKILL, not running for .*, then pid $second" <(marks name.gasflame)
check "the second, too" grep -qE "^\"?restart 2: exited with status 3, not running for .*, then pid $third" <(marks name.gasflame)
check "they last as long as nothing ran" above "$(sql name.gasflame "select min(end_ns - start_ns) / 1e6 from mark where kind = 'restart'")" 300
check "the report tells them" grep -q 'not running for .* in all' <("$GASFLAME" report --format text name.gasflame 2>/dev/null)
check "and so does the JSON" test "$(json name.gasflame "r['restarts']['count']")" = 2
check "no thread has more time than it lived" above 1 "$(json name.gasflame "max(0, -100 * r['account']['total']['missing'] / r['account']['total']['wall'])")"
kill -9 "$third" 2>/dev/null

run 1 300
record_in_background --follow -d 2.5 -o gone.gasflame $name
kill -9 "$PID"
wait "$recorder"
STATUS=$?
check_status "one that does not come back: the time ends it" 0
check "and the rest is not running" grep -q 'to the end of the recording' <(marks gone.gasflame)

run 1 300
record_in_background -d 30 -o plain.gasflame $name
kill -9 "$PID"
wait "$recorder"
STATUS=$?
check_status "without --follow the recording ends with the target" 4

# --- a container ---

image_root
image_add "$TRUTH/truth-boxed" /opt/boxed
if ! docker_up; then
	skip "a container that is restarted" "$NO_DOCKER"
	finish
fi
box=gf-follow-$$
docker_run $box --init -- /opt/boxed 1 300
record_in_background --follow -d 60 -o box.gasflame $box
before=$(docker top $box -o pid,comm 2>/dev/null | awk '/boxed/ { print $1 }')
timeout 30 docker restart -t 0 $box >/dev/null
wait_for 15 restarts 1
after=$(docker top $box -o pid,comm 2>/dev/null | awk '/boxed/ { print $1 }')
# The recorder looks once a second.
joined() { [ "$(docker top $box -o pid,comm | grep -c boxed)" = 2 ] && sleep 1.5; }
timeout 30 docker exec -d $box /opt/boxed 1 300
wait_for 5 joined
kill -INT "$recorder"
wait "$recorder"
STATUS=$?
check_status "a container through docker restart" 0
check "it is one restart" test "$(counter box.gasflame restarts)" = 1
check "before and after are recorded" test "$(sql box.gasflame "select count(*) from process where name = 'boxed' and pid in (${before:-0}, ${after:-0})")" = 2
check "after it with its work, named" above "$(cpu_ms box.gasflame "${after:-0}")" 50
check "functions of the image's program" grep -q 'boxed_work;boxed_burn' <(folded box.gasflame)
check "what docker exec started is recorded, too" test "$(sql box.gasflame "select count(*) from process where name = 'boxed'")" = 3
docker_remove $box
finish
