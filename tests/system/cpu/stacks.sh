#!/bin/bash
# Stacks that are hard to walk: deep ones, signal handlers, the vdso, code without unwind information.
. "$(dirname "$0")/../lib.sh"
need_root

for backend in $(backends); do
	f=$backend.deep
	start deep 120 600
	record_used 800 --backend "$backend" -e cpu -o "$f"
	kill "$PID"
	check_status "$backend: deep recorded" 0
	check "$backend: all 120 levels" grep -qE 'main(;deep_level){120};deep_burn' <(folded "$f")
	check "$backend: deep stacks complete" above "$(complete "$f")" 99.5
	check "$backend: no other depth" above "$(folded "$f" | awk '
		{ n = $NF; all += n; if (gsub(/;deep_level/, "") == 120) good += n }
		END { print all ? good * 100 / all : 0 }')" 99

	f=$backend.signals
	start signals 600
	record_used 800 --backend "$backend" -e cpu -o "$f"
	kill "$PID"
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
	start vdsoburn 600
	record_used 800 --backend "$backend" -e cpu -o "$f"
	kill "$PID"
	if [ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = hpet ]; then
		skip "$backend: time is read in the vdso" "the clock source needs a system call"
	else
		check "$backend: time is read in the vdso" above "$(share "$f" __vdso_clock_gettime)" 20
	fi
	check "$backend: vdso stacks complete" above "$(complete "$f")" 99.5

	f=$backend.nofde
	start nofde 600
	record_used 800 --backend "$backend" -e cpu -o "$f"
	kill "$PID"
	check "$backend: code without tables is named" above "$(share "$f" nofde_burn)" 95
	check "$backend: its truncation is counted" \
		above "$(counter "$f" 'truncated.%')" "$(($(samples "$f") * 9 / 10))"
	check "$backend: status says not fit to read" test "$STATUS" -eq 3
done

# right NAME FOLDED: percent of the stacks that have one of the functions that burn and are the calls that the program
# made. The C library's own functions, between its entry and main and around the callback, may have any name.
right()
{
	awk -v name="$1" '
		!/;(leaf|asm_burn|step_[abc])[ ;]/ { next }
		{ n = $NF; sub(/ [0-9]+$/, ""); sub(/;[^;]*_\[k\].*/, ""); all += n } # the kernel may be at work
		!/\[truncated/ && (/;main;part_plain;step_a;step_b;step_c(;leaf|;[^;]*memset[^;]*)?$/ || /;main;part_plain;step_a(;[^;]*memset[^;]*|;step_b)?$/ ||
		/;main;part_sorted;([^;]*;)+compare;step_a;step_b;step_c(;leaf|;[^;]*memset[^;]*)?$/ || /;main;part_sorted;([^;]*;)+compare;step_a(;[^;]*memset[^;]*|;step_b)?$/ ||
		/;main;part_assembly;asm_burn$/ || /;main;part_rewritten;rewritten;leaf$/) { good += n; next }
		{ wrong += n }
		END { printf "%.2f %d %d\n", all ? good * 100 / all : 0, wrong, all }' "$2"
}

# No unwind table, and code that is not what the file says: rows come from reading the code, and where it was rewritten
# from the stack, by the calls before return addresses. What is wrong must be among what is counted as guessed.
for name in bare bare-musl bare-stripped bare-pointers; do
	if [ ! -x "$TRUTH/truth-$name" ]; then
		skip "code without unwind tables: $name" "there is no musl-gcc"
		continue
	fi
	start "$name" 600
	record_used 600 -e cpu -F 999 -o "$name.gasflame"
	check_status "$name recorded" 0
	kill "$PID"
	"$GASFLAME" report --format folded --symbols "$TRUTH/truth-bare-musl" "$name.gasflame" >"$name.folded" 2>/dev/null
	read -r percent wrong all < <(right "$name" "$name.folded")
	check "$name: $percent % of $all stacks are what was called" above "$((all + 150))" "$((wrong * 50))"
	guessed=$(counter "$name.gasflame" samples.guessed) derived=$(counter "$name.gasflame" samples.derived)
	check "$name: no more stacks are wrong ($wrong) than are counted as guessed ($guessed)" above "$((guessed + 1))" "$wrong"
	check "$name: rows that were read from the code are counted" above "$derived" "$((all / 2))"
	check "$name: code that was rewritten is guessed" above "$guessed" "$((all / 50))"
	check "$name: stacks complete" above "$(complete "$name.gasflame")" 99
done
finish
