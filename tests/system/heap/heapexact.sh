#!/bin/bash
# heapexact: `run -e heap` sees each allocation, whatever stack it is on, whoever executes whom, and whoever dies; at a small price.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac

# figures NAME HOW: of run.gasflame, against what the program said.
figures() { check "$1" python3 "$here/heap.py" "$GASFLAME" run.gasflame truth "$2"; }
# whole FILE: nothing was lost, and as much was seen as the hooks counted.
whole()
{
	local seen
	seen=$(sql "$1" "select sum(value) from sample join event on event.id = sample.event where event.name = 'alloc'")
	[ "$(counter "$1" heap.lost)" = 0 ] && [ "$seen" = "$(counter "$1" 'heap.allocated bytes')" ] ||
		{ echo "$seen seen, $(counter "$1" heap.%)"; return 1; }
}

# Handlers, coroutines, children that share the memory, 240 threads in the same memory.
gf run -e heap -o run.gasflame -- "$TRUTH/truth-heapodd"
cp "$STDOUT" truth
check_status "odd stacks: the program ends well" 0
figures "odd stacks: every figure is exact" exact
check "odd stacks: each thread has what it allocated" python3 - <<'END2'
import sqlite3, sys
db = sqlite3.connect("run.gasflame")
seen = dict(db.execute("select t.tid, sum(s.value) from sample s join event e on e.id = s.event "
                       "join thread t on t.id = s.thread where e.name = 'alloc' group by t.tid"))
true = {}
for line in open("truth"):
    words = line.split()
    if words[0] == "thread":
        true[int(words[1])] = true.get(int(words[1]), 0) + int(words[2])
wrong = {tid: (bytes, seen.get(tid)) for tid, bytes in true.items() if seen.get(tid) != bytes}
print(len(true), wrong)
sys.exit(len(true) < 100 or bool(wrong))
END2
peak=$(sql run.gasflame "select sum(value) from sample join event on event.id = sample.event where event.name = 'peak'")
check "the heap over time has the same peak" test "$("$GASFLAME" report --format massif run.gasflame 2>/dev/null |
	awk -F= '/^mem_heap_B/ && $2 > most { most = $2 } END { print most }')" = "$peak"

# Wrappers: what is executed last is seen from its beginning.
gf run -e heap -o run.gasflame -- env X=1 sh -c "exec '$TRUTH/truth-heap' 2"
cp "$STDOUT" truth
check_status "wrapped in env and sh: the program ends well" 0
figures "wrapped in env and sh: every figure is exact" exact
gf run -e heap --heap-sample 16K -o sampled.gasflame -- env X=1 "$TRUTH/truth-heap" 1
check "wrapped and sampled: nothing of it is missing" test "$(counter sampled.gasflame heap.execs)" = 0
check "wrapped and sampled: its functions are there" sh -c "'$GASFLAME' report --format folded --what alloc sampled.gasflame 2>/dev/null |
	grep -q keep_large"
gf run -e heap -o static.gasflame -- env X=1 "$TRUTH/truth-heapstatic" 1
check "a wrapped program that cannot be hooked: ends well" grep -q done "$STDOUT"
check "a wrapped program that cannot be hooked: is said" said 'whose heap is not recorded'

# The program is killed: what it did is there.
rm -f go
: >"$STDERR" # what was said before is not waited for
"$GASFLAME" run -e heap -o run.gasflame -- "$TRUTH/truth-heapodd" "$tmp/go" >truth 2>"$STDERR" &
recorder=$!
started+=("$recorder")
wait_for 20 test -e go
sleep 0.2
kill -9 "$(pgrep -P "$recorder" -x truth-heapodd)"
wait "$recorder"
check "killed: the status says so" test $? -eq 137
figures "killed: every figure is exact" killed

# gasflame is stopped meanwhile: the program waits for it, and nothing is lost.
: >"$STDERR" # what was said before is not waited for
"$GASFLAME" run -e heap -o run.gasflame -- "$TRUTH/truth-heaploop" 300000 8 20 >loop 2>"$STDERR" &
recorder=$!
started+=("$recorder")
wait_for 20 grep -q '^[0-9]' loop
kill -STOP "$recorder"
sleep 1
kill -CONT "$recorder"
wait "$recorder"
check "gasflame stops for a second: nothing is lost" whole run.gasflame
check "and the program ends well" test "$(grep -c '^[0-9]' loop)" -eq 8
# A uprobe and a walk in the kernel for each of them would be 3,000.
check "a pair of malloc and free takes below 1,000 ns" above 1000 "$(grep '^[0-9]' loop | sort -n | head -1)"

# gasflame is killed: the program waits a while, then goes on without.
rm -f loop # what it says now is waited for
: >"$STDERR" # what was said before is not waited for
"$GASFLAME" run -e heap -o run.gasflame -- "$TRUTH/truth-heaploop" 2000000 6 >loop 2>"$STDERR" &
recorder=$!
wait_for 20 grep -q '^[0-9]' loop
program=$(pgrep -P "$recorder" -x truth-heaploop)
started+=("$program")
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
check "gasflame is killed: the program ends well" wait_for 90 sh -c '[ "$(grep -c "^[0-9]" loop)" -eq 6 ]'
finish
