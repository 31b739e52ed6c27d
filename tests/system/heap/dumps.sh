#!/bin/bash
# dumps.sh - jemalloc's heap dumps: read as a series, named, compared with jemalloc's own tool; made in a running process.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

need_root
jemalloc=$(jemalloc_library)
[ -n "$jemalloc" ] || skip_all "no libjemalloc.so.2 (Debian: libjemalloc2)"

# profiled CONF ARGS…: the program with jemalloc, profiling as CONF says.
profiled()
{
	local conf=$1
	shift
	OUT=$tmp/out.$RANDOM$RANDOM
	MALLOC_CONF=$conf LD_PRELOAD=$jemalloc "$TRUTH/truth-heapdumps" "$@" >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 5 grep -q ready "$OUT"
}
# megabytes FILE NAME: of its own, by the table on stdout of the last gf.
megabytes() { awk -v name="$1" '{ n = $0; sub(/^ *[0-9.]+ +[0-9.]+% +[0-9.]+% +[0-9.]+ +[0-9.]+% /, "", n) } n == name { print $1 }' "$STDOUT"; }
total() { sed -n 's/^Total: \([0-9.]*\) MB/\1/p' "$1"; }
table() { gf heap --format heap-table -n 0 "$@"; }

# --- a series ---
mkdir dumps
profiled prof:true,lg_prof_sample:12,prof_prefix:"$tmp/dumps/jeprof" 0 12
kill "$PID"
check "jemalloc wrote its dumps" test "$(ls dumps | wc -l)" = 12
first=$(echo dumps/jeprof.*.0.m0.heap) last=$(echo dumps/jeprof.*.11.m11.heap)

table dumps
check_status "a folder of dumps is read" 0
check "twelve dumps are not twelve times the bytes" near "$(total "$STDOUT")" 148 3
check "what leaks is named" near "$(megabytes grows_leak)" 120 3
check "what stays is named" near "$(megabytes holds_cache)" 20 1
check "methods of one trait are kept apart, one" near "$(megabytes '<zoo::Ant as zoo::Animal>::make')" 4 0.5
check "methods of one trait are kept apart, two" near "$(megabytes '<zoo::Bee as zoo::Animal>::make')" 4 0.5
check "none of the allocator's own functions is left" test -z "$(grep -E 'prof_backtrace|libjemalloc|malloc' "$STDOUT")"
cp "$STDOUT" series.table

if command -v jeprof >/dev/null; then
	jeprof --text "$TRUTH/truth-heapdumps" "$last" >jeprof.table 2>/dev/null
	check "the total is jeprof's" test "$(total series.table)" = "$(total jeprof.table)"
	check "so is each function" test "$(awk '/grows_leak|holds_cache/ { print $1, $NF }' jeprof.table)" = \
		"$(awk '/grows_leak|holds_cache/ { print $1, $NF }' series.table)"
else
	skip "the total is jeprof's" "no jeprof (Debian: libjemalloc-dev)"
fi

table --what growth dumps
check "growth is from the first to the last" near "$(total "$STDOUT")" 110 3
check "and names what grew only" test -z "$(megabytes holds_cache)"
table --base "$(echo dumps/jeprof.*.9.m9.heap)" "$last"
check "the difference to a base" near "$(total "$STDOUT")" 20 2
table --select last:3 --what growth dumps
check "last:3 is the last three by number" near "$(total "$STDOUT")" 20 2
table --select 0,4 --what growth dumps
check "a list of numbers" near "$(total "$STDOUT")" 40 2
table --select 0 dumps
check "one of them" near "$(total "$STDOUT")" 38 2
gf heap dumps
check "the table of the series has a line a dump, in order" test "$(awk '/^jeprof/ { print $1 }' "$STDOUT" | tail -1)" = \
	"$(basename "$last")"
gf heap -o series.gasflame dumps
check_status "the series as a recording" 0
check "which weighs the last dump only" near "$(sql series.gasflame "select sum(value) / 1048576.0 from sample s join event e
	on e.id = s.event where e.name = 'heap'")" 148 3
check "names are in it" grep -q grows_leak <<<"$(folded series.gasflame)"
gf report "$first" "$last"
check_status "report does not add dumps up" 1
check "and says what to do" said "gasflame heap"
gf report --format heap-table "$last"
check "report reads a single one" near "$(total "$STDOUT")" 148 3

# --- over time ---
if command -v ms_print >/dev/null; then
	gf heap --format massif dumps
	cp "$STDOUT" massif.out
	check "ms_print reads --format massif" ms_print massif.out
	check "with the peak's tree" grep -q "grows_leak" <<<"$(ms_print massif.out)"
	check "and twelve snapshots" grep -q "Number of snapshots: 12" <<<"$(ms_print massif.out)"
	gf report --format massif series.gasflame
	check "the recording gives the same" cmp massif.out "$STDOUT"
else
	skip "ms_print reads --format massif" "no ms_print (Debian: valgrind)"
fi

# --- files that are elsewhere ---
mkdir -p "root/opt/my node" moved
cp "$TRUTH/truth-heapdumps" "root/opt/my node/node"
touch -d '2020-01-01' "root/opt/my node/node"
sed "s,$TRUTH/truth-heapdumps,/opt/my node/node," "$last" >moved/jeprof.1.1.f.heap
table moved
check "a file that is not here has no names" test -z "$(megabytes grows_leak)"
table --root root moved
check "--root finds it below the container's root" near "$(megabytes grows_leak)" 120 3
table --symbols "root/opt/my node" moved
check "--symbols finds it by its name" near "$(megabytes grows_leak)" 120 3
sed 's,/opt/my node/node,& (deleted),' moved/jeprof.1.1.f.heap >moved/jeprof.1.2.f.heap
table --root root moved/jeprof.1.2.f.heap
check "a file that was deleted is not taken for the new one" test -z "$(megabytes grows_leak)"
table --symbols "root/opt/my node/node" moved/jeprof.1.2.f.heap
check "unless the user says so" near "$(megabytes grows_leak)" 120 3
touch "root/opt/my node/node"
touch -d '2021-01-01' moved/jeprof.1.1.f.heap
table --root root moved/jeprof.1.1.f.heap
check "nor is a file that is newer than the dump" test -z "$(megabytes grows_leak)"

# --- bad files ---
: >empty.heap
gf heap empty.heap
check_status "an empty file is refused" 1
check "with a reason" said "empty"
sed '/MAPPED/,$d' "$last" >nomaps.heap
table nomaps.heap
check "without maps the bytes are right" near "$(total "$STDOUT")" 148 3
check "and the talk says what is missing" said "no list of the mapped files"
head -c 5000 "$last" >cut.heap
gf heap cut.heap
check_status "a file that was cut off gives what it has" 0
check "and says so" said "end in the middle"
gf heap --select last:x dumps
check_status "a selection that is none" 1

# --- in a running process ---
profiled prof:true,lg_prof_sample:12,prof_prefix:"$tmp/own" 3
gf heap dump -o one.gasflame "$PID"
check_status "a dump of a running process" 0
check "has its heap" near "$(sql one.gasflame "select sum(value) / 1048576.0 from sample s join event e on e.id = s.event
	where e.name = 'heap'")" 28 2
check "and its names" grep -q holds_cache <<<"$(folded one.gasflame)"
gf heap dump --every 0.1 -d 1 --keep kept -o many.gasflame "$PID"
check_status "a dump every so often" 0
check "ten of them" test "$(sql many.gasflame "select count(*) from point")" -ge 8
check "which are kept as files" test "$(ls kept | wc -l)" -ge 8
check "that are dumps" "$GASFLAME" heap kept
gf heap dump --active off --no-dump "$PID"
check_status "sampling is switched off" 0
gf heap dump --reset --active on --no-dump "$PID"
check_status "and on again, with nothing in it" 0
gf heap dump -o reset.gasflame "$PID"
check "after a reset the old heap is forgotten" near "$(sql reset.gasflame "select coalesce(sum(value), 0) / 1048576.0 from sample s
	join event e on e.id = s.event where e.name = 'heap'")" 0 1
check "no dump is left in /tmp" test -z "$(ls /tmp | grep -E '^gasflame-[0-9a-f]{16}\.heap$')"
# A dump that was asked for and not collected any more may stay in /tmp.
(for i in $(seq 20); do
	timeout -s KILL "0.0$i" "$GASFLAME" -q heap dump -o killed.gasflame "$PID" >/dev/null
done) 2>/dev/null
cleanups+=("find /tmp -maxdepth 1 -name 'gasflame-????????????????.heap' -newer '$tmp/one.gasflame' -delete")
check "the process survives gasflame's death at any moment" kill -0 "$PID"
gf heap detach "$PID"
check_status "detach" 0
gf heap dump -o after.gasflame "$PID"
check_status "and a dump after that" 0
gf heap detach "$PID"
check "which leaves no slot behind" said " 0 of 0 slots"
kill "$PID"

# --- refused ---
profiled prof:false 1
gf heap dump "$PID"
check_status "a jemalloc whose profiling is off is refused" 1
check "with what to do" said "MALLOC_CONF=prof:true"
kill "$PID"
start heapdumps 1
gf heap dump "$PID"
check_status "a process without jemalloc is refused" 1
check "with the next best" said "record -e heap"
kill "$PID"
profiled prof:true,prof_prefix:"$tmp/none" 1
gf heap dump --collect "$PID"
check_status "where there is nothing to collect" 1
check "it says what to do" said "lg_prof_interval"
kill "$PID"
profiled prof:true 0
gf heap dump --wait 0.5 "$PID"
check_status "a process that allocates nothing is given up" 1
check "with the reason" said "allocated nothing"
kill "$PID"

# --- another root ---
if unshare -m true 2>/dev/null; then
	OUT=$tmp/out.ns
	cp "$TRUTH/truth-heapdumps" "$tmp/heapdumps"
	MALLOC_CONF=prof:true,lg_prof_sample:12,prof_prefix:/tmp/own unshare -m sh -c 'mount -t tmpfs none /tmp &&
		LD_PRELOAD=$1 exec "$2" 1 3' sh "$jemalloc" "/proc/$$/cwd/heapdumps" >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	if wait_for 5 grep -q ready "$OUT"; then
		gf heap dump -o inside.gasflame "$PID"
		check_status "a dump in the target's own /tmp is collected" 0
		check "with its names" grep -q holds_cache <<<"$(folded inside.gasflame)"
		gf heap dump --collect -o own.gasflame "$PID"
		check_status "and so are those that jemalloc wrote there itself" 0
		check "all three" test "$(sql own.gasflame "select count(*) from point")" = 3
	else
		skip "a dump in the target's own /tmp is collected" "no namespace here: $(head -1 "$OUT")"
	fi
	kill "$PID"
else
	skip "a dump in the target's own /tmp is collected" "no mount namespaces here"
fi

# --- over HTTP ---
cp "$last" dump
python3 -u -m http.server --bind 127.0.0.1 0 >http.log 2>&1 &
started+=($!)
disown # its end is not worth a line
if wait_for 5 grep -q port http.log; then
	port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' http.log)
	gf heap dump --url "http://127.0.0.1:$port/dump" -o url.gasflame
	check_status "a dump from a URL" 0
	check "with its names" grep -q grows_leak <<<"$(folded url.gasflame)"
	for kind in "" file; do
		python3 "$here/pprof.py" "$last" "allocs$kind" $kind
		gf heap dump --url "http://127.0.0.1:$port/allocs$kind" -o url.gasflame
		check_status "a dump as nodes offer it, addresses of the ${kind:-process}" 0
		gf report --format heap-table -n 0 url.gasflame
		check "has the same bytes" test "$(total "$STDOUT")" = "$(total series.table)"
		check "and the same names" near "$(megabytes grows_leak)" 120 3
	done
	python3 "$here/pprof.py" "$last" wrong.heap file wrong
	table wrong.heap
	check "the names of another build are not taken" test -z "$(megabytes grows_leak)"
	check "and it says so" said "another build"
	gzip -dc <allocsfile >unpacked
	gf heap dump --url "http://127.0.0.1:$port/unpacked" -o url.gasflame
	check_status "also unpacked" 0
	gf heap dump --url "http://127.0.0.1:$port/http.log" -o url2.gasflame
	check_status "something else from a URL is refused" 1
	gf heap dump --url "http://127.0.0.1:$port/nothing" -o url2.gasflame
	check_status "so is nothing" 1
else
	skip "a dump from a URL" "python's server does not start"
fi
gf run -e cpu --jemalloc-prof -o run.gasflame -- sh -c 'echo "$MALLOC_CONF $_RJEM_MALLOC_CONF"'
check "run --jemalloc-prof sets both variables" grep -q "prof:true prof:true" "$STDOUT"
finish
