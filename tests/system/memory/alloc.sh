#!/bin/bash
# -e alloc: the rate of allocations by stack, from jemalloc's slow path, without a write to the target.
. "$(dirname "$0")/../lib.sh"
need_root

# weight FILE NAME: percent of the allocated bytes with this function on the stack.
weight()
{
	"$GASFLAME" report --format folded --what alloc-rate "$1" 2>/dev/null | awk -v name="$2" '
		{ n = $NF; total += n; if (index(";" $0, ";" name ";") || $0 ~ ";" name " [0-9]+$") sum += n }
		END { printf "%.2f\n", total ? sum * 100 / total : 0 }'
}

start spender 100 20
gf record -e alloc -d 1 -o glibc.gasflame -p "$PID"
check_status "glibc's malloc is refused" 1
check "with the reason and another way" said 'te_event_trigger.*-e heap'
check "and the target goes on" kill -0 "$PID"
start dear 20
gf record -e alloc -d 1 -o dear.gasflame -p "$PID"
check_status "an instruction that would be stepped over is refused" 1
check "with its bytes" said 'begins with an instruction \(48 89 f8\).*20 µs'

if [ ! -x "$TRUTH/truth-spender-jemalloc" ]; then
	skip "jemalloc" "its static library is not installed"
	finish
fi
# Long enough that the first moments after exec, which pass before its mappings are known, are few.
gf run -e alloc -o run.gasflame -- "$TRUTH/truth-spender-jemalloc" 2000000
check_status "run" 0
bytes=$(awk '/^bytes/ { print $2 }' "$STDOUT")
# jemalloc counts what it hands out: 640 is one of its sizes. The last part of 64 KiB has no event.
check "all bytes from the first on" near "$(sql run.gasflame "select sum(value) from sample") " "$bytes" 300000
check "64 KiB each" near "$(counter run.gasflame 'alloc.interval bytes')" 65920 1000
check "three quarters are big_spender's" near "$(weight run.gasflame big_spender)" 75 2
check "one is small_spender's" near "$(weight run.gasflame small_spender)" 25 2
check "complete" above "$(complete run.gasflame)" 95
check "the allocator's functions are not shown" sh -c "! '$GASFLAME' report --format folded --what alloc-rate run.gasflame 2>/dev/null | grep -E 'je_|malloc'"
check "it says that it is periodic" grep -q 'periodic, not random' <("$GASFLAME" report --format text --what alloc-rate run.gasflame 2>/dev/null)
check "nothing lost, nothing odd" test "$(counter run.gasflame 'alloc.lost') $(counter run.gasflame 'alloc.odd')" = "0 0"

start spender-jemalloc 2000 20
gf record -e alloc -d 2 -o attach.gasflame -p "$PID"
check_status "a running program" 0
check "three quarters again" near "$(weight attach.gasflame big_spender)" 75 3
check "complete" above "$(complete attach.gasflame)" 99
check "the series rises" above "$(sql attach.gasflame "select max(p.value) - min(p.value) from point p join series s on s.id = p.series where s.name = 'alloc.allocated'")" 1000000
check "the target goes on" kill -0 "$PID"
finish
