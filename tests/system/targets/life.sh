#!/bin/bash
# Processes and threads that come and go, libraries loaded late, exec, several targets.
. "$(dirname "$0")/../lib.sh"
need_root

# A name that no other test's program has.
name=life$$
cp "$TRUTH/truth-deep" "$tmp/$name"
# start_named LEVELS: as start.
start_named()
{
	OUT=$tmp/out.$RANDOM$RANDOM
	"$tmp/$name" "$1" 60 >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 5 grep -q ready "$OUT"
}

for backend in $(backends); do
	record_whole forker 10 -- --backend "$backend" -e cpu -o "$backend.fork"
	check_status "$backend: forker recorded, until it ends" 4
	check "$backend: children that it forks are seen" above "$(share "$backend.fork" child_burn)" 30
	check "$backend: passing threads are seen" above "$(share "$backend.fork" thread_burn)" 30
	check "$backend: several processes" \
		above "$(sql "$backend.fork" 'select count(distinct pid) from process')" 5
	# All ten; but a name of the last one that is read when the process is over is not believed.
	check "$backend: passing threads have their name" \
		above "$(sql "$backend.fork" "select count(*) from threads where name = 'passing'")" 8
	check "$backend: forked stacks complete" above "$(complete "$backend.fork")" 99

	record_whole loader 1 -- --backend "$backend" -e cpu -o "$backend.load"
	check "$backend: a library loaded while recording is named" \
		above "$(share "$backend.load" loaded_burn)" 30
	check "$backend: stacks through it complete" above "$(complete "$backend.load")" 99

	record_whole execer 1 -- --backend "$backend" -e cpu -o "$backend.exec"
	check "$backend: before exec" above "$(share "$backend.exec" before_exec_burn)" 5
	check "$backend: after exec" above "$(share "$backend.exec" after_exec_burn)" 30
	check "$backend: stacks around exec complete" above "$(complete "$backend.exec")" 99

	record_whole deep 5 1 -- --backend "$backend" -e cpu -o "$backend.gone"
	check_status "$backend: a target that exits ends the recording" 4
	check "$backend: and what was recorded is kept" above "$(share "$backend.gone" deep_burn)" 90
	check "$backend: and it says so" said 'exit|ended|gone'

	start_named 11
	first=$PID
	start_named 22
	gf record --backend "$backend" -e cpu -d 1 -o "$backend.two" -p "$first" -p "$PID"
	check_status "$backend: two pids recorded" 0
	check "$backend: the first" grep -qE 'main(;deep_level){11};deep_burn' <(folded "$backend.two")
	check "$backend: the second" grep -qE 'main(;deep_level){22};deep_burn' <(folded "$backend.two")

	gf record --backend "$backend" -e cpu -d 0.5 -o "$backend.name" "$name"
	check_status "$backend: found by name" 0
	check "$backend: both of that name" grep -qE 'main(;deep_level){22};deep_burn' <(folded "$backend.name")
	gf record --backend "$backend" -e cpu -d 0.5 -o "$backend.pattern" "$name 11 "
	check_status "$backend: found by a pattern of the command line" 0
	check "$backend: only the one that matches" \
		test "$(sql "$backend.pattern" 'select count(distinct pid) from process')" = 1
	kill "$first" "$PID" 2>/dev/null
	wait "$first" "$PID" 2>/dev/null
done

# To its end: half way through it loads a library.
start_workload --seconds 5 --fork 1 --exec
gf record -e cpu -d 60 -o workload.gasflame -p "$PID"
check_status "the workload, with all it does, until it ends" 4
check "its stacks complete" above "$(complete workload.gasflame)" 99
check "60 frames of trie" grep -qE '(;node_fold){60}' <(folded workload.gasflame)
check "a callback through qsort" grep -qE 'qsort[^;]*;.*compare_words' <(folded workload.gasflame)
check "the timer's handler" grep -qE 'handle_timer;mix_state' <(folded workload.gasflame)
check "the late library" grep -q late_work <(folded workload.gasflame)
check "kernel frames above user frames" grep -qE 'disk_unit;.*(pwrite|pread).*;.*(vfs|ksys|do_syscall)' \
	<(folded workload.gasflame)
finish
