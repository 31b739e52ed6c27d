#!/bin/bash
# heap: programs of whose heap all is known. Exact under run; within the error that is stated when attached.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac

. "$here/later.sh"
preload=$(jemalloc_library)

# exact NAME PROGRAM ARGS…: under run.
exact()
{
	local name=$1
	shift
	gf run -e heap -o exact.gasflame -- "$@"
	cp "$STDOUT" truth
	check_status "$name: run" 0
	check "$name: every figure is exact" python3 "$here/heap.py" "$GASFLAME" exact.gasflame truth exact
}
# sampled NAME PROGRAM ARGS…: attached before the first allocation.
sampled()
{
	local name=$1
	shift
	rm -f go
	"$@" "$tmp/go" >truth 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 10 grep -q ready truth
	rm -f "$STDERR"
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -e heap --heap-sample 16K -d 100 -o sampled.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
	local recorder=$!
	started+=("$recorder")
	wait_for 20 grep -q Recording "$STDERR"
	touch go
	wait_for 30 grep -q done truth
	sleep 0.3
	kill -INT "$recorder"
	wait "$recorder"
	check "$name: attached, every figure within its error" \
		python3 "$here/heap.py" "$GASFLAME" sampled.gasflame truth sampled
	check "$name: it lives on" kill -0 "$PID"
	check "$name: no slot leads to us any more" sh -c "! python3 '$here/heapslots.py' $PID"
	kill "$PID"
}

both()
{
	exact "$1" "${@:2}"
	sampled "$1" "${@:2}"
}
both "one thread, the C library" "$TRUTH/truth-heap" 1
both "four threads, the C library" "$TRUTH/truth-heap" 4
if [ -n "$preload" ]; then
	export LD_PRELOAD=$preload
	exact "dynamic jemalloc" "$TRUTH/truth-heap" 2
	unset LD_PRELOAD
	sampled "dynamic jemalloc" env LD_PRELOAD="$preload" "$TRUTH/truth-heap" 2
else
	skip "dynamic jemalloc" "libjemalloc2 is not installed"
fi
if [ -x "$TRUTH/truth-heapje" ]; then
	both "jemalloc linked in" "$TRUTH/truth-heapje" 2
else
	skip "jemalloc linked in" "libjemalloc-dev is not installed"
fi
if [ -x "$TRUTH/truth-heapmi" ]; then
	both "mimalloc, by its own names" "$TRUTH/truth-heapmi" 2
else
	skip "mimalloc, by its own names" "libmimalloc-dev is not installed"
fi
if [ -x "$TRUTH/truth-heaprust" ]; then
	both "Rust" "$TRUTH/truth-heaprust"
else
	skip "Rust" "rustc is not installed"
fi
cp "$TRUTH/truth-heap" stripped && strip stripped
gf run -e heap -o stripped.gasflame -- ./stripped 1
check "a stripped program's figures are the same" test "$(sql stripped.gasflame \
	"select sum(value) from sample join event on event.id = sample.event where event.name = 'alloc'")" = \
	"$(counter stripped.gasflame 'heap.allocated bytes')"

# What a library that is loaded meanwhile allocates.
record_later dlopen.gasflame
kill "$PID"

# The report.
"$GASFLAME" report --format text exact.gasflame >text 2>/dev/null
check "the report says what stands out" grep -qE 'Churn: |was not freed when the program ended' text
check "and that figures are exact" grep -q 'figures are exact' text
"$GASFLAME" report --format text sampled.gasflame >text 2>quality
check "or their error" grep -qE 'alive at end +[0-9.]+ MB ± [0-9.]+ KB' text
check "quality counts samples" grep -qE '^[0-9,]+ samples for [0-9,]+ objects' quality
finish
