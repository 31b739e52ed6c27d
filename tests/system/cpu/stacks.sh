#!/bin/bash
# Stacks that are hard to walk: deep ones, signal handlers, the vdso, code without unwind information.
. "$(dirname "$0")/../lib.sh"
need_root

for backend in $(backends); do
	f=$backend.deep
	start deep 120 3
	gf record --backend "$backend" -e cpu -d 1.5 -o "$f" -p "$PID"
	check_status "$backend: deep recorded" 0
	check "$backend: all 120 levels" grep -qE 'main(;deep_level){120};deep_burn' <(folded "$f")
	check "$backend: deep stacks complete" above "$(complete "$f")" 99.5
	check "$backend: no other depth" above "$(folded "$f" | awk '
		{ n = $NF; all += n; if (gsub(/;deep_level/, "") == 120) good += n }
		END { print all ? good * 100 / all : 0 }')" 99

	f=$backend.signals
	start signals 3
	gf record --backend "$backend" -e cpu -d 1.5 -o "$f" -p "$PID"
	check "$backend: handler above the interrupted function" \
		grep -qE ';main;interrupted_burn;.*on_stack;handler_burn' <(folded "$f")
	if [ "$backend" = bpf ]; then
		check "$backend: handler on the alternate stack too" \
			grep -qE ';main;interrupted_burn;.*on_alternate;alternate_burn' <(folded "$f")
		check "$backend: signal stacks complete" above "$(complete "$f")" 99.5
	else
		# The copy of the stack is of the alternate one; the interrupted one is not in it.
		check "$backend: cut at the alternate stack, and marked" \
			grep -qE '\[truncated[^;]*\];.*on_alternate;alternate_burn' <(folded "$f")
		check "$backend: the others complete" near "$(complete "$f")" \
			"$(awk -v a="$(share "$f" alternate_burn)" 'BEGIN { print 100 - a }')" 1.5
	fi

	f=$backend.vdso
	start vdsoburn 3
	gf record --backend "$backend" -e cpu -d 1.5 -o "$f" -p "$PID"
	if [ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = hpet ]; then
		skip "$backend: time is read in the vdso" "the clock source needs a system call"
	else
		check "$backend: time is read in the vdso" above "$(share "$f" __vdso_clock_gettime)" 20
	fi
	check "$backend: vdso stacks complete" above "$(complete "$f")" 99.5

	f=$backend.nofde
	start nofde 3
	gf record --backend "$backend" -e cpu -d 1.5 -o "$f" -p "$PID"
	check "$backend: code without tables is named" above "$(share "$f" nofde_burn)" 95
	check "$backend: its truncation is counted" \
		above "$(counter "$f" 'truncated.%')" "$(($(samples "$f") * 9 / 10))"
	check "$backend: status says not fit to read" test "$STATUS" -eq 3
done
finish
