#!/bin/bash
# A program whose true shares are known: each is found within 2 points.
. "$(dirname "$0")/../lib.sh"
need_root
quiet_moment

for backend in $(backends); do
	start shares 60
	gf record --backend "$backend" -e cpu -d 3 -o "$backend.gasflame" -p "$PID"
	check_status "$backend: recorded" 0
	kill "$PID"
	wait "$PID"
	while read -r name true_share; do
		found=$(share "$backend.gasflame" "$name")
		check "$backend: $name is $true_share %, found $found" near "$found" "$true_share" 2
	done < <(grep burn "$OUT")
	check "$backend: inlined_burn is called by around_inlined" \
		grep -qE 'around_inlined;inlined_burn(_\[i\])?[; ]' <(folded "$backend.gasflame")
	check "$backend: 100 levels above bottom_burn" \
		grep -qE '(;recurse){100};bottom_burn[; ]' <(folded "$backend.gasflame")
	check "$backend: complete stacks" above "$(complete "$backend.gasflame")" 99.5
	# Against the kernel's own account of the same time; the recorder reads it a little before and after.
	taken=$(($(samples "$backend.gasflame") + $(counter "$backend.gasflame" samples.lost)))
	cpu=$(sql "$backend.gasflame" 'select sum(cpu_ns) / 1000000 from thread')
	check "$backend: 999 samples a CPU second ($taken in $cpu ms)" \
		near "$taken" $((cpu * 999 / 1000)) $((cpu / 8 + 20))
done
finish
