#!/bin/bash
# heapstats: what jemalloc says of its size classes, against what the program hears from it itself.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac
preload=$(jemalloc_library)

# class_of FILE: "class SIZE OBJECTS SLABS" of class 320, as the program says it.
class_of()
{
	python3 - "$1" <<-'END'
	import json, sys
	a = json.load(open(sys.argv[1]))["allocator"]
	print(*("class %d %d %d" % (c["size"], c["objects"], c["slabs"]) for c in a["classes"] if c["size"] == 320))
	END
}
# holds FILE EXPRESSION: of the whole as d.
holds() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1"; }
# asked NAME: of the process $PID with the words $OUT.
asked()
{
	gf heap stats --json "$PID"
	check_status "$1: is asked" 0
	check "$1: objects and slabs are those that it says" test "$(class_of "$STDOUT")" = "$(grep class "$OUT")"
	check "$1: all classes add up to what is allocated" holds "$STDOUT" \
		"sum(c['allocated_bytes'] for c in d['allocator']['classes']) == d['allocated_bytes'] == d['allocator']['all']['allocated_bytes']"
	check "$1: and hold no more than its active pages" holds "$STDOUT" \
		"0.9 * d['active_bytes'] <= d['allocator']['all']['held_bytes'] <= d['active_bytes']"
	check "$1: it lives" kill -0 "$PID"
	check "$1: no slot leads to us" sh -c "! python3 '$here/heapslots.py' $PID"
}

if [ -n "$preload" ]; then
	OUT=$tmp/dynamic
	LD_PRELOAD=$preload "$TRUTH/truth-heapclass" >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 10 grep -q ready "$OUT"
	asked "dynamic jemalloc"
	gf heap stats -n 3 "$PID"
	check "as a table, most waste first" sh -c "grep -A1 -E 'class +objects +allocated +slabs +held +used +waste' '$STDOUT' |
		grep -qE ' 320 +6,2[0-9]{2} '"
	check "with three rows and a sum" test "$(grep -cE '^ +([0-9,]+|all) .*%' "$STDOUT")" = 4
	gf record -e heap,mem -d 1 -o classes.gasflame -p "$PID"
	gf report --format json classes.gasflame
	cp "$STDOUT" classes.json
	check "a recording has the same" test "$(class_of classes.json)" = "$(grep class "$OUT")"
	check "and calls it fragmentation" holds classes.json \
		"'fragmentation' in d['heap']['symptoms'] and any('class 320' in s for s in d['heap']['verdict'])"
	check "its live heap is jemalloc's, also that from before" holds classes.json \
		"d['memory']['live_heap_from'] == 'jemalloc' and d['memory']['live_heap_bytes'] >= 6250 * 320"
	check "and RSS still adds up" holds classes.json "sum(p['bytes'] for p in d['memory']['parts']) == d['memory']['rss_bytes']"
	gf report --format text classes.gasflame
	check "the report has the table" grep -q "Size classes, by jemalloc's own statistics" "$STDOUT"
	kill "$PID"
	LD_PRELOAD=$preload sleep 60 &
	PID=$!
	started+=("$PID")
	disown
	wait_for 5 grep -q jemalloc "/proc/$PID/maps"
	gf heap stats --wait 0.3 "$PID"
	check_status "a process that allocates nothing is given up" 1
	check "with the reason" said 'allocated nothing|no slot|calls no allocator'
	timeout -s INT 2 "$GASFLAME" heap stats --wait 60 "$PID" >"$STDOUT" 2>"$STDERR"
	check "Ctrl-C ends the waiting" said 'interrupted|no slot|calls no allocator'
	check "and leaves no slot behind" sh -c "! python3 '$here/heapslots.py' $PID"
	kill "$PID"
else
	skip "dynamic jemalloc" "libjemalloc2 is not installed"
fi
if [ -x "$TRUTH/truth-heapclassje" ]; then
	start heapclassje
	asked "jemalloc linked in"
	kill "$PID"
else
	skip "jemalloc linked in" "libjemalloc-dev is not installed"
fi

# Without statistics: said so, and an estimate instead.
start heapfake
gf heap stats "$PID"
check_status "a jemalloc without statistics is refused" 1
check "with the reason" said 'built without statistics'
check "and the next best" said 'record -e heap'
gf record -e heap --heap-sample 4K -d 1 -o fake.gasflame -p "$PID"
gf report --format json fake.gasflame
check "the report says so, too" holds "$STDOUT" "not d.get('allocator') or (d['allocator']['estimate'] and 'without statistics' in d['allocator']['reason'])"
check "and counts it" test "$(counter fake.gasflame 'jemalloc.without stats')" = 1
kill "$PID"
start heapbad load 1
gf heap stats "$PID"
check_status "a process without jemalloc is refused" 1
check "with the reason" said 'no jemalloc'
check "it lives" kill -0 "$PID"
kill "$PID"
gf heap stats
check_status "a target is needed" 2
finish
