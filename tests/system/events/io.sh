#!/bin/bash
# Reads, writes and syncs: equal to the byte to what the program itself and strace count, by file and in
# total, at any rate and whatever becomes of descriptors and threads meanwhile.
. "$(dirname "$0")/../lib.sh"
need_root

# io_json FILE EXPRESSION: of python, with the report's "io" in io and its rows by name in files and functions.
io_json()
{
	"$GASFLAME" report --what read --limit 0 --format json "$1" 2>/dev/null | python3 -c '
import json, sys
io = json.load(sys.stdin)["io"]
files, functions, ops = ({r["name"]: r for r in io[k]} for k in ("files", "functions", "operations"))
def like(part, key):
    return sum(r[key] for name, r in files.items() if part in name)
print(eval(sys.argv[1]))' "$2"
}
same() { [ "$1" = "$2" ] || { echo "$1, wanted $2"; return 1; }; }

mkdir data
gf run -e io --max-overhead 0 -o io.gasflame -- "$TRUTH/truth-io" "$PWD/data" 20
check_status "recorded" 0
cp "$STDOUT" words
# Names of files as the report has them.
declare -A shown=([a.dat]=$PWD/data/a.dat [b.dat]=$PWD/data/b.dat ["gone.dat"]="$PWD/data/gone.dat (deleted)"
	[deep.dat]=/deep.dat [pipe]=pipe: [unix]="socket:unix stream" [udp]=socket:udp)
while read -r way name bytes calls; do
	case $way in
	read | write)
		check "$way $name: $bytes bytes" same "$(io_json io.gasflame "like('${shown[$name]}', '${way}_bytes')")" "$bytes"
		check "$way $name: $calls calls" same "$(io_json io.gasflame "like('${shown[$name]}', '${way}_calls')")" "$calls"
		;;
	esac
done <words
synced=$(awk '$1 == "sync" && $2 == "a.dat" { print $3 }' words)
check "syncs of a.dat, msync of its mapping among them" \
	same "$(io_json io.gasflame "like('a.dat', 'sync_calls')")" "$((synced + 5))"
check "failed calls" same "$(io_json io.gasflame "io['errors']")" "$(awk '$1 == "errors" { print $2 }' words)"
# What is not in the program's own count: its words at the end, and the loader's reads of libraries.
own=$(awk '$1 == "write" { sum += $3 } END { print sum }' words)
check "all bytes written" same "$(io_json io.gasflame "io['write_bytes']")" "$((own + $(wc -c <words)))"
own=$(awk '$1 == "read" { sum += $3 } END { print sum }' words)
check "all bytes read" same "$(io_json io.gasflame "io['read_bytes'] - like('.so', 'read_bytes')")" "$own"
check "by operation and by file are the same sums" same \
	"$(io_json io.gasflame "sum(o['bytes'] for n, o in ops.items() if 'write' in n or 'send' in n or 'splice' in n or n == 'copy_file_range')")" \
	"$(io_json io.gasflame "io['write_bytes']")"
check "the function is the program's own" same \
	"$(io_json io.gasflame "functions['write_files']['write_calls']")" 140
check "as is the one that copies, in both ways" same \
	"$(io_json io.gasflame "(functions['copy_files']['read_bytes'], functions['copy_files']['write_bytes'])")" \
	"(160000, 130000)"
check "stacks end in the file" grep -qE ";main;write_files;[^;]*writev;$PWD/data/a.dat [0-9]+$" \
	<("$GASFLAME" report --what write --format folded io.gasflame 2>/dev/null)
check "a path too deep is cut at its beginning" grep -qE ';…/(d+/)+deep.dat 4321$' \
	<("$GASFLAME" report --what write --format folded io.gasflame 2>/dev/null)
check "latencies" above "$(io_json io.gasflame "ops['fsync']['p50_ns']")" 0
check "every call has its latency" same \
	"$(sql io.gasflame "select sum(count) from histogram where name = 'io.pwrite64 latency'")" 41
gf report --format text --what sync io.gasflame
check "a table in text" grep -qE '^ *[0-9.]+ % .*sync_files$' "$STDOUT"

# The same program below strace.
if command -v strace >/dev/null; then
	rm -rf data && mkdir data
	strace -f -y -qq -e trace=all -o strace.log "$TRUTH/truth-io" "$PWD/data" 20 >/dev/null
	read -r traced_read traced_write traced_a < <(python3 - <<-'END'
	import re
	reads = {"read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg"}
	writes = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg", "vmsplice"}
	both = {"sendfile", "copy_file_range", "splice"}
	got = put = a = 0
	for line in open("strace.log", errors="replace"):
	    m = re.match(r"\d+ +(\w+)\((.*) = (\d+)", line)
	    if not m:
	        continue
	    name, rest, n = m[1], m[2], int(m[3])
	    if name in ("sendmmsg", "recvmmsg"):
	        n = sum(int(x) for x in re.findall(r"msg_len=(\d+)", rest))
	    if name in reads | both or name == "recvmmsg":
	        got += n
	    if name in writes | both or name == "sendmmsg":
	        put += n
	        if name in writes and "/a.dat>" in rest.split(",")[0]:
	            a += n
	print(got, put, a)
	END
	)
	check "all bytes read, by strace" same "$(io_json io.gasflame "io['read_bytes']")" "$traced_read"
	check "all bytes written, by strace" same "$(io_json io.gasflame "io['write_bytes']")" "$traced_write"
	check "bytes written to a.dat, by strace" same "$(io_json io.gasflame "like('a.dat', 'write_bytes')")" "$traced_a"
else
	skip "the same bytes as strace" "there is no strace"
fi

# More kinds of calls than are added up at a time, as fast as they go: two threads on all CPUs of a small machine, which
# also has to read half a million records a second. Each call is in the capture or is counted as lost. None is
# lost where the recorder gets a CPU for it; where it does not, as on a machine whose time is stolen, that is said.
quiet_moment
gf run -e cpu,io --max-overhead 0 -o rate.gasflame -- "$TRUTH/truth-iorate" 200000
made=$(awk '$1 == "calls" { print $2 }' "$STDOUT")
lost=$(counter rate.gasflame 'io.lost calls')
seen=$(io_json rate.gasflame "io['read_calls'] + io['write_calls']")
# A kernel that preempts programs skips some, and says how many: none is missing beyond these.
missed=$(counter rate.gasflame bpf.missed)
# A few are not in the program's own count: the loader's reads, and its words at the end.
check "$made calls at a high rate: $seen are recorded, $lost are counted as lost, up to $missed were not seen" \
	test $((seen + lost)) -le $((made + 10)) -a $((seen + lost + missed)) -ge "$made"
if [ "$missed" -gt 0 ]; then
	"$GASFLAME" report --what read --format text rate.gasflame >rate.text 2>&1
	check "which is said" grep -q 'not seen' rate.text
	skip "calls of each file at a high rate" "this kernel skips programs"
elif [ "$lost" -eq 0 ]; then
	check_status "recorded at a high rate" 0
	for i in 0 7; do
		check "calls of file $i" same "$(io_json rate.gasflame "(files['$PWD/rate-$i']['read_calls'], files['$PWD/rate-$i']['write_bytes'])")" \
			"($((i ? 50000 : 250000)), 50000)"
		check "calls of function $i" near "$(io_json rate.gasflame "functions['rate_$i']['write_calls']")" 50000 500
	done
	# At high rates stacks are walked for some calls only. Where a place has two, each has its share, within the error that is said.
	read -r often mixed < <(awk '$1 == "mixed" { print $2, $3 }' "$STDOUT")
	stacks() { "$GASFLAME" report --what read --format folded rate.gasflame 2>/dev/null | awk "/;$1;/ { n += \$NF } END { print n + 0 }"; }
	check "all $mixed calls at a place with two stacks" same "$(($(stacks mixed_often) + $(stacks mixed_seldom)))" "$mixed"
	error=$(io_json rate.gasflame "io['calls_error']")
	check "most stacks are remembered" above "$(io_json rate.gasflame "io['stacks_remembered'] / io['stacks_walked']")" 2
	check "there is an error" above "$error" 0
	check "one of two stacks of a place has its share (± $error)" near "$(stacks mixed_often)" "$often" $((6 * error + mixed / 50))
	check "the error is said" grep -qE 'calls of a function ±[0-9,]+ \([0-9.]+ % of all\)' \
		<("$GASFLAME" report --format text --what read rate.gasflame 2>/dev/null)
else
	check "lost calls are said" said "[1-9][0-9,]* lost"
	skip "calls of each file at a high rate" "the recorder did not get a CPU for it: $(grep -o 'own cost.*' "$STDERR" | head -1)"
fi
# In samples of the CPU our programs are a cost like any other, with a name; the share is said.
check "our own programs are in the samples by name" above "$(sql rate.gasflame "select max(total_percent) from top_functions
	where event = 'cpu' and function like '[gasflame] on_sys_enter%' and module = '[gasflame]'")" 0
check "their share is said" said "gasflame's own programs: [0-9.]* % of CPU samples"
check "the capture is small ($(wc -c <rate.gasflame) bytes)" above 8000000 "$(wc -c <rate.gasflame)"

# Calls under way at the start, descriptors that change meanwhile, many of them, threads that end in a call.
start iobad 10000
gf record -e io --max-overhead 0 -d 20 -o bad.gasflame -p "$PID"
check_status "a target that ends" 4
wait "$PID"
many=$(awk '$1 == "many" { print $2 }' "$OUT")
check "$many files, each with its name" same "$(io_json bad.gasflame "sum(r['write_bytes'] == 10 for n, r in files.items() if n.startswith('$PWD/many-'))")" "$many"
check "a call from before the recording" same "$(io_json bad.gasflame "functions['early_reader']['read_bytes']")" 77
check "a descriptor that became another file" same \
	"$(io_json bad.gasflame "(functions['swapped_reader']['read_bytes'], like('/dev/null', 'read_bytes'))")" "(55, 0)"
check "each thread once" same "$(sql bad.gasflame "select count(*) from thread where tid = $PID")" 1

gf run -e io --max-overhead 0 -o uring.gasflame -- "$TRUTH/truth-iouring" 100
check_status "recorded io_uring" 0
if grep -q none "$STDOUT"; then
	skip "io_uring" "this kernel has none"
elif [ "$(counter uring.gasflame 'io.uring not recorded')" = 1 ]; then
	check "it says that io_uring is missing" grep -q io_uring <(io_json uring.gasflame "io['remarks']")
else
	check "bytes through io_uring" same \
		"$(io_json uring.gasflame "(files['$PWD/uring.dat']['read_bytes'], files['$PWD/uring.dat']['write_bytes'])")" \
		"(500000, 500000)"
	check "failed requests of io_uring" same "$(io_json uring.gasflame "ops['io_uring_read']['errors']")" 100
	check "their stacks" same "$(io_json uring.gasflame "functions['submit']['write_bytes']")" 500000
fi
finish
