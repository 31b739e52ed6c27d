#!/bin/bash
# heapfiles: heaps that valgrind's massif and DHAT and heaptrack record are imported with the figures that these tools say, and those
# that are exported have them for ms_print, heaptrack_print and jeprof. The program's heap is known to the byte.
. "$(dirname "$0")/../lib.sh"
known=$TRUTH/truth-heapknown

# sums FILE: of each event of a capture, and of each function on its stacks, the bytes and objects; in FILE.sums.
sums()
{
	python3 - "$1" >"$1.sums" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	names, sums = {}, {}
	for frame, name in db.execute("select l.frame, f.name from frame_line l join function f on f.id = l.function"):
	    names.setdefault(frame, set()).add(name)
	nodes = {i: (parent, frame) for i, parent, frame in db.execute("select id, parent, frame from stack")}
	for event, stack, value, count in db.execute("select e.name, s.stack, s.value, s.count from sample s join event e on e.id = s.event"):
	    on = {"-"}
	    while stack and stack in nodes:
	        stack, frame = nodes[stack]
	        on |= names.get(frame, set())
	    for name in on:
	        sum = sums.setdefault((event, name), [0, 0])
	        sum[0] += value
	        sum[1] += count or 1
	for (event, name), (bytes, objects) in sums.items():
	    print(event, bytes, objects, name)
	END
}
# sum FILE EVENT [FUNCTION]: bytes and objects, of stacks through a function.
sum()
{
	awk -v event="$2" -v name="${3:--}" -v none="none$RANDOM" '{ e = $1; n = $2 " " $3; sub(/^[^ ]+ [0-9]+ [0-9]+ /, "") }
		e == event && $0 == name { print n; found = 1 } END { if (!found) print none, none }' "$1.sums"
}
bytes() { sum "$@" | cut -d' ' -f1; }
objects() { sum "$@" | cut -d' ' -f2; }
# has FILE EVENT BYTES OBJECTS [FUNCTION]
has()
{
	local seen
	seen=$(sum "$1" "$2" "${@:5}")
	[ "$seen" = "$3 $4" ] || { echo "$2: $seen, wanted $3 $4"; return 1; }
}
# shown BYTES: as heaptrack_print writes them.
shown()
{
	awk -v n="$1" 'BEGIN { split("K M G", unit); for (i = 0; n >= 1000; i++) n /= 1000; printf i ? "%.2f%s\n" : "%d%s\n", n, i ? unit[i] : "B" }'
}
# printed FILE PATTERN: what heaptrack_print says after it.
printed() { heaptrack_print "$1" 2>/dev/null | sed -n "s/^$2: \([^ ]*\).*/\1/p"; }
# tracked FILE CAPTURE [LOST]: heaptrack_print says of the one what the other has; so many temporary allocations less.
tracked()
{
	local wrong=0 lost=${3:-0} pair seen
	set -- "$1" "$(sum "$2" alloc)" "$(sum "$2" temporary)" "$(sum "$2" peak)" "$(sum "$2" heap)"
	for pair in "calls to allocation functions=${2#* }" \
		"peak heap memory consumption=$(shown "${4% *}")" "total memory leaked=$(shown "${5% *}")"; do
		[ "$(printed "$1" "${pair%=*}")" = "${pair#*=}" ] || { echo "$pair, printed $(printed "$1" "${pair%=*}")"; wrong=1; }
	done
	seen=$(printed "$1" "temporary memory allocations")
	[ "$seen" -le "${3#* }" ] && [ $((seen + lost)) -ge "${3#* }" ] || { echo "$seen temporary of ${3#* }"; wrong=1; }
	return $wrong
}
# jeprofed FILE TOTAL [OPTION]: jeprof's total, in bytes.
jeprofed()
{
	local total
	total=$(jeprof --text --show_bytes "${@:3}" "$1" 2>/dev/null | sed -n 's/^Total: \([0-9]*\) B$/\1/p')
	[ "$total" = "$2" ] || { echo "jeprof: $total, wanted $2"; return 1; }
}
# import FILE CAPTURE
import() { check "$1 is known by its content" "$GASFLAME" import -o "$2" "$1" && sums "$2"; }

# --- what the tools recorded ---

if ! command -v valgrind >/dev/null; then
	skip "massif and DHAT" "there is no valgrind"
elif ! valgrind --tool=massif --peak-inaccuracy=0.0 --detailed-freq=1 --massif-out-file=massif.out "$known" >valgrind.log 2>&1 ||
	! valgrind --tool=dhat --dhat-out-file=dhat.json "$known" >>valgrind.log 2>&1; then
	skip "massif and DHAT" "valgrind does not run here: $(tail -1 valgrind.log)"
else
	import massif.out massif.gasflame
	check "massif: the last tree has what is alive" test "$(bytes massif.gasflame heap)" = 60000
	check "massif: the peak is the true one" test "$(bytes massif.gasflame peak)" = 600000
	check "massif: the same by function" test "$(bytes massif.gasflame heap outer)" = 40000
	check "massif: a point for each snapshot" test "$(sql massif.gasflame "select count(*) from point p join series s on s.id = p.series
		where s.name = 'heap.live'")" = "$(grep -c ^snapshot= massif.out)"
	gf report --format massif -o again.massif massif.gasflame
	import again.massif again.gasflame
	check "massif: exported and imported it is the same" test "$(sum again.gasflame heap) $(sum again.gasflame peak)" = "$(
		sum massif.gasflame heap) $(sum massif.gasflame peak)"
	check "massif: ms_print reads it" sh -c "ms_print again.massif | grep -q '600,000 *600,000 '"
	import dhat.json dhat.gasflame
	check "DHAT: allocated" has dhat.gasflame alloc 625010 153
	check "DHAT: at the peak" has dhat.gasflame peak 600000 101
	check "DHAT: at the end" has dhat.gasflame heap 60000 41
	check "DHAT: the same by function" has dhat.gasflame alloc 5000 50 temporary
	check "DHAT: what was written to it" test "$(bytes dhat.gasflame writes keep)" = 600000
	command -v heaptrack_print >/dev/null && gf report --format heaptrack -o dhat.heaptrack dhat.gasflame &&
		check "DHAT as heaptrack: its peak" test "$(printed dhat.heaptrack 'peak heap memory consumption')" = 600.00K
fi

if ! command -v heaptrack >/dev/null || ! command -v heaptrack_print >/dev/null; then
	skip "heaptrack" "it is not there"
elif ! heaptrack -o track "$known" >heaptrack.log 2>&1 || ! heaptrack --raw -o raw "$known" >>heaptrack.log 2>&1; then
	skip "heaptrack" "it does not run here: $(tail -1 heaptrack.log)"
else
	track=$(ls track.*) raw=$(ls raw.*)
	import "$track" track.gasflame
	check "heaptrack: the figures of heaptrack_print" tracked "$track" track.gasflame
	# heaptrack's own library allocates, too.
	check "heaptrack: allocated by the program" has track.gasflame alloc 625010 153 main
	check "heaptrack: temporary" has track.gasflame temporary 505010 52 main
	check "heaptrack: at the peak" has track.gasflame peak 600000 101 main
	check "heaptrack: never freed" has track.gasflame heap 60000 41
	import "$raw" raw.gasflame
	check "heaptrack, raw: our symbolizer names its addresses" has raw.gasflame alloc 600000 101 keep
	check "heaptrack, raw: the same figures" test "$(for e in alloc temporary peak heap freed; do sum raw.gasflame $e; done)" = "$(
		for e in alloc temporary peak heap freed; do sum track.gasflame $e; done)"
	# The file that ran is gone: another one is at its path.
	cp "$known" moved
	heaptrack --raw -o moved "$tmp/moved" >>heaptrack.log 2>&1
	touch -d '+1 hour' moved
	import "$(ls moved.*)" moved.gasflame
	check_not "heaptrack, raw: a newer program names nothing" has moved.gasflame alloc 600000 101 keep
	check "heaptrack, raw: its bytes are there" test "$(bytes moved.gasflame heap)" = 60000
	gf report --format heaptrack -o track.heaptrack track.gasflame
	check "heaptrack: exported, heaptrack_print says the same" tracked track.heaptrack track.gasflame
fi

# --- what we recorded ---

if [ "$(id -u)" -ne 0 ]; then
	skip "heaps of ours for others" "needs root"
	finish
fi
gf run -e heap -o own.gasflame -- "$known"
check_status "the program is recorded" 0
sums own.gasflame
check "recorded: each allocation" has own.gasflame alloc 625010 153
# With threads, and in samples: what is estimated is the same estimate everywhere.
gf run -e heap --heap-sample 16K -o sampled.gasflame -- "$TRUTH/truth-heap" 1
sums sampled.gasflame
for what in own sampled; do
	if command -v heaptrack_print >/dev/null; then
		gf report --format heaptrack -o $what.heaptrack $what.gasflame
		# Temporary objects of other threads that were alive at the peak are ordinary ones there.
		check "$what: heaptrack_print says the same" tracked $what.heaptrack $what.gasflame $([ $what = own ] || echo 8)
	else
		skip "$what: heaptrack_print" "it is not there"
	fi
	if command -v ms_print >/dev/null; then
		gf report --format massif -o $what.massif $what.gasflame
		check "$what: ms_print has the peak" sh -c "ms_print $what.massif | tr -d , | grep -q ' $(bytes $what.gasflame peak) *$(
			bytes $what.gasflame peak) '"
		import $what.massif again.gasflame
		check "$what: the peak survives massif" test "$(bytes again.gasflame peak)" = "$(bytes $what.gasflame peak)"
	else
		skip "$what: ms_print" "it is not there"
	fi
	if command -v jeprof >/dev/null; then
		gf report --format heap_v2 -o $what.heap $what.gasflame
		check "$what: jeprof's total is what is alive" jeprofed $what.heap "$(bytes $what.gasflame heap)"
		check "$what: and what was allocated" jeprofed $what.heap "$(bytes $what.gasflame alloc)" --alloc_space
		check "$what: and the objects" test "$(jeprof --text --inuse_objects $what.heap 2>/dev/null | sed -n 's/^Total: \([0-9]*\) .*/\1/p')" = \
			"$(objects $what.gasflame heap)"
		import $what.heap again.gasflame
		check "$what: it is read again" test "$(sum again.gasflame heap) $(sum again.gasflame alloc)" = "$(sum $what.gasflame heap) $(
			sum $what.gasflame alloc)"
	else
		skip "$what: jeprof" "it is not there"
	fi
done
if command -v jeprof >/dev/null; then
	check "jeprof has our names" sh -c "jeprof --text --show_bytes own.heap 2>/dev/null | grep -qE '^ *40000 .* keep$'"
	# The dump without its symbols is jemalloc's: jeprof asks the program.
	sed '1,/^--- heap/d' own.heap >plain.heap
	check "jeprof finds the same names by addresses" sh -c "jeprof --text --show_bytes '$known' plain.heap 2>/dev/null | grep -qE '^ *40000 .* keep$'"
fi
finish
