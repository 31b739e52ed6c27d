#!/bin/bash
# Code that a JIT compiler made: walked by frame pointers, named from /tmp/perf-PID.map.
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
finish
