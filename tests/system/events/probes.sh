#!/bin/bash
# Programs at uprobes can be preempted by themselves: none of ours may run on a stack that there is once for each CPU
# (docs/decisions/0013). tools/test-kernels preempts them; here it is read in the code that this kernel made of them.
. "$(dirname "$0")/../lib.sh"
need_root

# stacks_of NAME: the line about a program. Without the right to see the kernel's code it says "unseen".
stacks_of() { grep -E "$1: (the task's|an unseen) stack" "$STDERR"; }

start crowd 8 40
gf record -v -e heap -d 1 -o heap.gasflame -p "$PID"
check_status "the heap" 0
for program in on_heap_alloc on_heap_exact on_heap_free; do
	check "$program runs on the stack of its task" stacks_of $program
done
gf record -v -e cpu --mark-function crowd_round -d 1 -o span.gasflame -p "$PID"
check_status "spans" 0
check "on_span runs on the stack of its task" stacks_of on_span
check "nothing was missed" test "$(counter span.gasflame 'bpf.missed')" = 0
check "the target goes on" kill -0 "$PID"
if [ -x "$TRUTH/truth-crowd-jemalloc" ]; then
	start crowd-jemalloc 8 20
	gf record -v -e alloc -d 1 -o alloc.gasflame -p "$PID"
	check_status "allocation rates" 0
	check "on_alloc_rate runs on the stack of its task" stacks_of on_alloc_rate
	check "complete" above "$(complete alloc.gasflame)" 95
else
	skip "jemalloc" "its static library is not installed"
fi
# Where the kernel runs a copy of an instruction for a probe, the stack is the instruction's: here of a store that faults.
if [ -x "$TRUTH/truth-stepped" ]; then
	"$TRUTH/truth-stepped" 60 >stepped.out 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 5 test -s stepped.out
fi
if grep -qs ready stepped.out; then
	gf record -e fault -d 1 -o stepped.gasflame -p "$PID"
	check_status "a thread in the copy of an instruction" 0
	check "its stacks are complete" above "$(complete stepped.gasflame)" 99
	check "they begin at the instruction" above "$(share stepped.gasflame stepped_touch)" 99
else
	skip "a thread in the copy of an instruction" "$(cat stepped.out 2>/dev/null || echo "it is a program of x86-64")"
fi
finish
