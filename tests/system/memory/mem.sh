#!/bin/bash
# mem: every part of RSS against a program that says what it maps, and against smaps added up by others.
. "$(dirname "$0")/../lib.sh"

# part FILE PART: its bytes.
part()
{
	python3 - "$@" <<-'END'
	import json, sys
	m = json.load(open(sys.argv[1]))
	m = m.get("memory", m)
	print(sum(p["bytes"] for p in m["parts"] if p["part"] == sys.argv[2]))
	END
}
# value FILE a.b.c
value()
{
	python3 - "$@" <<-'END'
	import json, sys
	m = json.load(open(sys.argv[1]))
	for key in sys.argv[2].split("."):
	    m = m[key]
	print(m)
	END
}
# true_of WHAT: bytes that the program says it has.
true_of() { awk -v w="$1" '$1 == w { n += $2 } END { print n + 0 }' "$OUT"; }
# smaps_of FIELD: added up by awk, in bytes.
smaps_of() { awk -v f="$1:" '$1 == f { n += $2 } END { print n * 1024 }' "/proc/$PID/smaps"; }
# same A B: to the byte.
same() { [ "$1" = "$2" ] || { echo "$1 against $2"; return 1; }; }
# least A B SLACK: B <= A <= B + SLACK
least() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a >= b && a <= b + t) }' || { echo "$1 against $2"; return 1; }; }

# --- a program whose memory is known, and does not change ---
KB=1024
MB=$((1 << 20))
start mem "$tmp/a file" || skip_all "the truth program does not start"
gf mem --json -n 0 "$PID"
check_status "mem shows a process" 0
cp "$STDOUT" once.json
check "RSS is that of smaps, to the page" same "$(value once.json rss_bytes)" "$(smaps_of Rss)"
check "the parts add up to RSS" python3 -c "
import json
m = json.load(open('once.json'))
assert sum(p['bytes'] for p in m['parts']) == m['rss_bytes'], m['parts']
files = {p['part']: p['bytes'] for p in m['parts']}['files']
assert sum(f['bytes'] for f in m['files']) == files, (m['files'], files)"
check "PSS is that of smaps" near "$(value once.json process.pss_bytes)" "$(smaps_of Pss)" $((64 * KB))
check "anonymous memory is that of smaps" same "$(value once.json process.anon_bytes)" "$(smaps_of Anonymous)"
check "stacks are found" least "$(part once.json stacks)" "$(true_of stacks)" $((400 * KB))
check "and counted" same "$(value once.json process.stacks)" 6
check "heap: brk, arenas, and what is named so" least "$(part once.json heap)" "$(true_of heap)" $((700 * KB))
check "other anonymous" least "$(part once.json anonymous)" "$(true_of anonymous)" $((300 * KB))
check "shared memory" same "$(part once.json shared)" "$(true_of shared)"
check "data: written copies" least "$(part once.json data)" "$(true_of data)" $((300 * KB))
check "the mapped file by its name" same "$(python3 -c "
import json
print(sum(f['bytes'] for f in json.load(open('once.json'))['files'] if f['path'] == '$tmp/a file'))")" "$(true_of file)"
check "the program's own file is one of them" grep -q truth-mem once.json
check "other is nearly nothing" above 32768 "$(part once.json other)"
huge=$(smaps_of AnonHugePages)
if [ "$huge" -gt 0 ]; then
	check "transparent huge pages" same "$(value once.json process.huge_pages_bytes)" "$huge"
else
	skip "transparent huge pages" "there were none to have"
fi
check "locked memory" least "$(value once.json process.locked_bytes)" "$(true_of locked)" 0
check "page tables are status's" same "$(value once.json process.page_tables_bytes)" \
	"$(awk '/VmPTE/ { print $2 * 1024 }' "/proc/$PID/status")"
check "threads are counted" same "$(value once.json process.threads)" 6
check "an idle program has no faults" near "$(value once.json rates.minor_faults_per_second)" 0 1
if [ "$(awk 'END { print NR }' /proc/swaps)" -gt 1 ]; then
	check "swap is smaps's" same "$(python3 -c "
import json; print(json.load(open('once.json'))['process'].get('swap_bytes', 0))")" "$(smaps_of Swap)"
else
	skip "swap" "this machine has none"
fi
gf mem "$PID"
check "the table ends in RSS" grep -qE '100 %  = RSS' "$STDOUT"
check "and has the file" grep -q 'a file$' "$STDOUT"
check_not "without bars where there is no terminal" grep -q '▁' "$STDOUT"
gf mem --csv "$PID"
check "CSV: a header and a row of as many columns" awk -F, 'NR == 1 { n = NF } NF != n { exit 1 } END { exit NR != 2 }' "$STDOUT"

# --- without rights ---
if [ "$(id -u)" -eq 0 ]; then
	as_user "$GASFLAME" mem --json "$PID" >other.json 2>other.err
	check "of another user's process the totals are shown" above "$(value other.json rss_bytes)" $((50 * MB))
	check_not "and no parts" grep -q '"parts"' other.json
	check "and the reason is said" grep -q 'may not be read' other.err
	own=$(mktemp -d) && chmod 777 "$own" && cleanups+=("rm -rf '$own'")
	as_user "$TRUTH/truth-mem" "$own/file" >"$own/out" &
	started+=("$!")
	wait_for 5 grep -q ready "$own/out"
	user=$(pgrep -u 65534 -f "truth-mem $own/file" | head -1)
	as_user "$GASFLAME" mem --json "$user" >own.json 2>own.err
	check "one's own process needs no root" above "$(part own.json stacks)" $((5 * MB))
	kill -9 "$user"
else
	skip "without rights" "this is an ordinary user already, and the tests above were"
fi
kill -9 "$PID"

# --- over time ---
start mem "$tmp/a file" faults
faults() { echo "$(sed 's/.*) //' "/proc/$PID/stat" | cut -d' ' -f8) $(date +%s.%N)"; }
before=$(faults)
gf mem -d 3 --every 0.5 --json -o watch.gasflame "$PID"
check_status "looked at for 3 s" 0
cp "$STDOUT" watch.json
rate=$(echo "$before $(faults)" | awk '{ print ($3 - $1) / ($4 - $2) }')
check "faults a second are what the kernel counted" near "$(value watch.json rates.minor_faults_per_second)" "$rate" \
	"$(awk -v r="$rate" 'BEGIN { print r * 0.35 }')"
check "each look is a point" least "$(value watch.json looks)" 6 3
check "the capture has the series" above "$(sql watch.gasflame "select count(*) from point p join series s
	on s.id = p.series where s.name = 'mem.rss'")" 5
gf report --format text watch.gasflame
check_status "a capture of memory alone is fit to read" 0
check "report shows the table" grep -q '= RSS' "$STDOUT"
gf report --json watch.gasflame
cp "$STDOUT" report.json
check "report has the same parts as JSON" same "$(part report.json stacks)" "$(part watch.json stacks)"
timeout -s INT 3 "$GASFLAME" mem --watch 1s --json "$PID" >lines.json 2>/dev/null
check "--watch: one object a line until Ctrl-C" python3 -c "
import json
lines = [json.loads(l) for l in open('lines.json')]
assert 2 <= len(lines) <= 4, len(lines)
assert all(sum(p['bytes'] for p in l['parts']) == l['rss_bytes'] for l in lines)"
if command -v script >/dev/null; then
	script -qec "stty cols 100; '$GASFLAME' mem -d 2 --every 0.3 $PID" /dev/null >terminal.txt 2>&1 </dev/null
	check "bars on a terminal" grep -q '[▁▂▃▄▅▆▇█]' terminal.txt
	check "no line is wider than it" python3 -c "
import re
text = re.sub('\x1b\\\\[[0-9;]*[mKHJ]', '', open('terminal.txt', encoding='utf-8').read())
wide = [l for l in text.split('\n') if '%' in l and len(l.rstrip('\r').split('\r')[-1]) > 100 and 'a second' not in l]
assert not wide, wide"
fi
(sleep 1; kill -9 "$PID") &
gf mem -d 10 "$PID"
check_status "a target that ends is told by the status" 4
check "and what was seen is shown" grep -q '= RSS' "$STDOUT"
gf mem --every 2s $$
check_status "an option that would do nothing is an error" 2
gf mem 999999999
check_status "no such process" 1

# --- jemalloc's own statistics ---
cat >metrics.txt <<END
# HELP reth_jemalloc_active Total number of bytes in active pages
# TYPE reth_jemalloc_active gauge
reth_jemalloc_active{chain="a b"} 12000000
reth_jemalloc_allocated 9000000
reth_jemalloc_mapped 3.2e7
reth_jemalloc_metadata 1000000
reth_jemalloc_resident 14000000
reth_jemalloc_retained 5e6
END
mkdir -p www && cp metrics.txt www/metrics
python3 - www >port 2>/dev/null <<-'END' &
import functools, http.server, sys
h = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
s = http.server.HTTPServer(("127.0.0.1", 0), h)
print(s.server_port, flush=True)
s.serve_forever()
END
started+=("$!")
start mem "$tmp/a file"
if wait_for 5 test -s port; then
	url=http://127.0.0.1:$(cat port)
	gf mem --json --metrics "$url/metrics" "$PID"
	if said 'without HTTP'; then
		skip "metrics" "built without HTTP"
	else
		check_status "metrics are read" 0
		cp "$STDOUT" jemalloc.json
		check "fragmentation is 1 - allocated / active" near "$(value jemalloc.json jemalloc.fragmentation)" 0.25 0.0001
		check "live heap is what jemalloc allocated" same "$(part jemalloc.json live_heap)" 9000000
		check "slack is resident less allocated" same "$(part jemalloc.json slack)" 5000000
		check "the parts still add up" python3 -c "
import json
m = json.load(open('jemalloc.json'))
assert sum(p['bytes'] for p in m['parts']) == m['rss_bytes'], m['parts']"
		gf mem --metrics "$url/none" "$PID"
		check_status "no such page is an error" 1
		check "that says so" said 'no such page'
	fi
else
	skip "metrics" "no server to ask"
fi

# --- a cgroup with a limit ---
group=
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	[ -e "$root/memory.limit_in_bytes" ] || [ -e "$root/cgroup.controllers" ] || continue
	mkdir "$root/gasflame-mem-$$" 2>/dev/null && group=$root/gasflame-mem-$$ && break
done
limit()
{
	[ -n "$group" ] || return
	cleanups+=("for i in 1 2 3 4 5; do rmdir '$group' 2>/dev/null && break; sleep 0.2; done")
	for name in memory.limit_in_bytes memory.max; do
		[ ! -e "$group/$name" ] || { echo $((256 << 20)) >"$group/$name"; return; }
	done
	return 1
}
if limit; then
	OUT=$tmp/out.group
	(echo "$BASHPID" >"$group/cgroup.procs" && exec "$TRUTH/truth-mem" "$tmp/a file") >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 10 grep -q ready "$OUT"
	gf mem --json "$PID"
	cp "$STDOUT" group.json
	check "the cgroup's limit" same "$(value group.json cgroup.limit_bytes)" $((256 * MB))
	usage=$(cat "$group/memory.usage_in_bytes" "$group/memory.current" 2>/dev/null | head -1)
	check "and its usage" near "$(value group.json cgroup.usage_bytes)" "$usage" $((4 * MB))
	check "and its path" same "$(value group.json cgroup.path)" "$group"
	kill -9 "$PID"
else
	skip "a cgroup with a limit" "no cgroup can be made here"
fi

# --- in a recording ---
if [ "$(id -u)" -ne 0 ]; then
	skip "in a recording" "needs root"
	finish
fi
start mem "$tmp/a file"
gf record -e cpu,mem -d 2 -o both.gasflame -p "$PID"
check "series beside samples" above "$(sql both.gasflame "select count(*) from point p join series s
	on s.id = p.series where s.name = 'mem.part.stacks'")" 1
gf record -e cpu,mem --backend perf -d 2 -o perf.gasflame -p "$PID"
check "and without BPF" above "$(sql perf.gasflame "select count(*) from point p join series s
	on s.id = p.series where s.name = 'mem.rss'")" 1
gf record -e mem -d 2 -o alone.gasflame -p "$PID"
check_status "mem alone" 0
kill -9 "$PID"

# The heap beside it: what is alive and resident, of what the allocator has.
gf run -e heap,mem -o heap.gasflame -- "$TRUTH/truth-mem" "$tmp/a file" 3
gf report --json heap.gasflame
cp "$STDOUT" heap.json
live=$(((12 + 5) * MB))
check "the heap's live bytes split anonymous memory" near "$(part heap.json live_heap)" "$live" $((live / 50))
check "what was never touched is alive, but not resident" near "$(value heap.json memory.live_heap_bytes)" \
	$((live + 8 * MB)) $((live / 50))
check "slack is small here" above $((2 * MB)) "$(part heap.json slack)"
check "what the program maps itself is no slack" least "$(part heap.json anonymous)" $((26 * MB)) $((300 * KB))
check "other is at most 5 % of RSS" python3 -c "
import json
m = json.load(open('heap.json'))['memory']
other = sum(p['bytes'] for p in m['parts'] if p['part'] == 'other')
assert other * 20 <= m['rss_bytes'], m['parts']
assert sum(p['bytes'] for p in m['parts']) == m['rss_bytes']"
check "and the series is there" above "$(sql heap.gasflame "select count(*) from point p join series s
	on s.id = p.series where s.name = 'heap.resident'")" 0
finish
