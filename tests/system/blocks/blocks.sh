#!/bin/bash
# blocks.sh - blocks of a real node's log and RPC as marks, their split, and logs and nodes that misbehave.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(cd "$(dirname "$0")/../../.." && pwd)

# A program that is busy, and lines of a log that somebody writes beside it.
reth_line()
{
	echo "INFO Block added to canonical chain number=$1 hash=0x$(printf '%064x' "$1") txs=3 gas_used=1.50Mgas elapsed=20ms"
}
start_workload --seconds 1200 --kinds compute,disk --threads 1 --share 30
busy=$PID
recorded=0
# log_recording NAME OPTIONS…: records $busy in the background, until end_recording.
log_recording()
{
	"$GASFLAME" record -d 60 -o "$1.gasflame" --log "$1.log" "${@:2}" -p "$busy" 2>"$1.err" &
	recorded=$!
	wait_for 20 grep -q '^Recording' "$1.err"
}
end_recording()
{
	kill -INT "$recorded"
	wait "$recorded"
}
# seen NAME NUMBER: the block is in the capture, which is written once a second. So its line was read.
seen() { [ "$(sql "$1.gasflame" "select count(*) from mark where number = $2")" -ge 1 ]; }

: >plain.log
log_recording plain
sleep 0.1 # the block of the first line takes 20 ms, and must not have begun before the recording
reth_line 1 >>plain.log
printf 'INFO Block added to canonical chain num' >>plain.log
sleep 0.1
printf '\n' >>plain.log
wait_for 10 seen plain 1
mv plain.log plain.log.1
{ reth_line 2; reth_line 2; echo "Block added to canonical chain number=9 elapsed=9999h"; } >plain.log
wait_for 10 seen plain 9
: >plain.log
reth_line 4 >>plain.log # shorter than what was there: it is only read if that was noticed
wait_for 10 seen plain 4
{
	reth_line 3
	reth_line 101 | sed 's/=20ms/=24.5µs/' # was built here
	echo "INFO [08-01|10:00:00.123] Imported new chain segment number=100 hash=1a2b3c..4d5e6f blocks=64 txs=128 mgas=9.5 elapsed=30ms"
	printf '%020000d\n' 0
} >>plain.log
wait_for 10 seen plain 100
end_recording
check "a recording with a log that is cut, rotated, emptied and out of order ends well" test $? -eq 0
check "each block is a mark, once" test "$(sql plain.gasflame 'select group_concat(number) from mark' | tr -d '"')" = "1,2,9,4,3,101,100"
check "many blocks in one line are one, with their name" test "$(sql plain.gasflame 'select name || gas from mark where number = 100' | tr -d '"')" = \
	"blocks 37 to 1009500000"
check "the insertion of a block that was built here is not its time" \
	test "$(sql plain.gasflame 'select end_ns - start_ns from mark where number = 101')" = 0
check "with the gas and the transactions of its line" \
	test "$(sql plain.gasflame 'select gas || transactions from mark where number = 2' | tr -d '"')" = 15000003
check "and its duration" near "$(sql plain.gasflame 'select ms from marks where number = 1')" 20 0.001
for name in "lines malformed" "log rotated" "log shortened" "repeated" "out of order" "bad durations" "lines too long" "groups" "inserted" "client changed"; do
	check "counted: $name" test "$(counter plain.gasflame "marks.$name")" -ge 1
done
gf blocks --csv plain.gasflame
check_status "they are listed" 0
check "the parts of each sum to its wall time" awk -F, 'NR > 1 && $7 != "" { s = 0; for (i = 7; i <= 19; i++) s += $i
	n++; if (s != $5) { print; bad = 1 } } END { exit bad || n < 4 }' "$STDOUT"
gf blocks plain.gasflame
check "many in one line are shown as such" grep -q '(blocks 37 to 100, 64 in one line of the log)$' "$STDOUT"
gf blocks --json plain.gasflame
check "also in JSON" python3 -c 'import json, sys; assert [r["count"] for r in json.load(open(sys.argv[1]))["rows"] if r["number"] == 100] == [64]' "$STDOUT"
gf blocks --block 1 plain.gasflame
check "one of them in full says where the page is, opened on its time" grep -qE "^  file://.*/plain.html#range=%5B[0-9]+%2C[0-9]+%5D&what=wall$" "$STDOUT"
check "which is there" grep -q '<title>' plain.html
check "and the range is the block's" test "$(sed -n 's/.*range=%5B\([0-9]*\)%2C\([0-9]*\)%5D.*/\1 \2/p' "$STDOUT")" = \
	"$(sql plain.gasflame 'select start_ns || " " || end_ns from mark where number = 1' | tr -d '"')"
gf blocks --crates --html plain.gasflame
check "by crate, and all of them in the page" grep -q 'cpu \.\.  queue' "$STDOUT"
check "whose address is said" said 'The page: file://.*/plain.html#view=overview'
gf blocks --block 77 plain.gasflame
check_status "a block that is not there is an error" 1
said "not in this recording" && ok "that says so" || not_ok "that says so"

log_recording late
sleep 0.2
echo "noise" >late.log
sleep 0.5 # its name is looked up ten times a second
end_recording
check "a log that appears late, and has no blocks, is named" grep -q 'no line of late.log was about a block' late.err
gf blocks late.gasflame
check_status "and there is nothing to list" 1

gf record -d 1 -o x.gasflame --log / -p "$busy"
check_status "a folder is no log" 2
gf record -d 1 -o x.gasflame --log plain.log --log-client nobody -p "$busy"
check_status "a client that nobody knows is a mistake" 2
check "and those that are known are named" said "anvil"
gf record -d 1 -o x.gasflame --log-client reth -p "$busy"
check_status "--log-client without --log is a mistake" 2
gf record -d 1 -o x.gasflame --log plain.log --log-pattern 'no number' -p "$busy"
check_status "a pattern without a number is a mistake" 2
gf record -d 1 -o x.gasflame --rpc ftp://x -p "$busy"
check_status "an address that is none is a mistake" 2

# What a program writes, passed on as it is.
cat >talk.sh <<'END'
for i in 1 2 3; do sleep 0.05; echo "made block $i with 1.5M gas in 10 ms"; echo "word $i" >&2; done
exit 7
END
gf run -e cpu -o run.gasflame --log - --log-pattern 'block (?<number>[0-9]+) with (?<gas>[0-9.]+M) gas in (?<ms>[0-9]+) ms' \
	-- bash talk.sh
check_status "run with its output as the log keeps the exit status" 7
check "its output comes through" test "$(grep -c 'made block' "$STDOUT")" -eq 3
check "and its errors" test "$(grep -c '^word' "$STDERR")" -eq 3
check "and each block is a mark" test "$(sql run.gasflame 'select count(*) from mark where gas = 1500000')" -eq 3

# Nodes that answer garbage, slowly, never, or not at all.
cat >node.py <<'END'
import http.server, json, sys, time
class Node(http.server.BaseHTTPRequestHandler):
	def log_message(self, *args): pass
	def do_POST(self):
		question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
		if sys.argv[1] == "never":
			time.sleep(60)
		if sys.argv[1] == "slow": # a byte now and then
			self.send_response(200)
			self.send_header("Content-Length", "1000")
			self.end_headers()
			try:
				for i in range(100):
					self.wfile.write(b" ")
					time.sleep(0.2)
			except OSError:
				return
		body = b"<html>\xff" if sys.argv[1] == "garbage" else json.dumps({"id": question["id"], "result": {"number": "0x7",
			"hash": "0x" + "9" * 64, "gasUsed": "0x0", "transactions": []}}).encode()
		self.send_response(200)
		self.send_header("Content-Length", str(len(body)))
		self.end_headers()
		self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node)
print(server.server_port, flush=True)
server.serve_forever()
END
# All of them at once: each is waited for by a recording of its own.
declare -A recorders=()
for kind in garbage never slow other; do
	python3 node.py "$kind" >"$kind.port" &
	started+=($!)
	disown
done
for kind in garbage never slow other gone; do
	port=9 # nobody is there
	if [ "$kind" != gone ]; then
		wait_for 20 test -s "$kind.port"
		port=$(cat "$kind.port")
	fi
	: >"$kind.log"
	log_recording "$kind" --rpc "http://127.0.0.1:$port"
	recorders[$kind]=$recorded
done
for kind in garbage never slow other gone; do
	reth_line 5 | sed 's/=20ms/=1ms/' >>"$kind.log" # the last recording has just begun: the block must not have begun before
done
sleep 1
begin=$SECONDS
kill -INT "${recorders[@]}"
for kind in garbage never slow other gone; do
	wait "${recorders[$kind]}"
	status=$?
	check "a node that is $kind: the recording goes on and ends in time" test $status -eq 0 -a $((SECONDS - begin)) -lt 20
	check "a node that is $kind: the block has what its log says" \
		test "$(sql "$kind.gasflame" 'select gas from mark where number = 5')" = 1500000
	check "a node that is $kind: counted" test "$(counter "$kind.gasflame" 'marks.rpc failures')" -gt 0 -o \
		"$(counter "$kind.gasflame" 'marks.another block answered')" -gt 0
done

# WebSockets that misbehave: the recording goes on without them. All of them at once, too.
sockets="good reorg mute http liar noise closing huge"
for kind in $sockets; do
	python3 "$here/tests/system/blocks/wsnode.py" "$kind" >"ws-$kind.port" &
	started+=($!)
	disown
done
begin=$SECONDS
for kind in $sockets; do
	wait_for 20 test -s "ws-$kind.port"
	"$GASFLAME" record -d 3 -e cpu --rpc "ws://127.0.0.1:$(cat "ws-$kind.port")" -o "ws-$kind.gasflame" -p "$busy" 2>"ws-$kind.err" &
	recorders[$kind]=$!
done
for kind in $sockets; do
	wait "${recorders[$kind]}"
	status=$?
	check "a WebSocket that is $kind: the recording ends in time" test "$status" -eq 0 -a $((SECONDS - begin)) -lt 25
	if [ "$kind" = good ]; then
		check "what it tells, in pieces, is a block" \
			test "$(sql ws-good.gasflame 'select number || gas || transactions from mark' | tr -d '"')" = 5210001
	elif [ "$kind" = reorg ]; then
		check "a reorganized chain is told in its order" \
			test "$(sql ws-reorg.gasflame 'select group_concat(number) from mark' | tr -d '"')" = 5,6,5
	else
		check "a WebSocket that is $kind: counted" test "$(counter "ws-$kind.gasflame" 'marks.rpc failures')" -gt 0
	fi
done
kill "$busy"

# A real node under load.
if ! anvil=$("$here/tools/anvil" 2>why); then
	skip "anvil's blocks" "$(cat why)"
	finish
fi
port=$(free_port)
"$anvil" --host 127.0.0.1 --port "$port" --no-mining --gas-limit 3000000000 --accounts 20 --balance 1000000000 >anvil.log 2>&1 &
node=$!
started+=("$node")
wait_for 20 grep -q Listening anvil.log
cat >judge.py <<'END'
"""judge.py PORT SPANLESS: of blocks.json, number, gas and transactions of each block are the node's, none is missing between
the first and the last, parts sum to the wall time, unknown is at most 2 %, and at most SPANLESS have no span, of the first ones:
they began before it was looked. With "log" an eighth may have none: a block whose first and last line are read at once, as on a busy
machine, has no time by the log alone."""
import json, sys, urllib.request
print(open("last.err").read())
def call(method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["result"]
rows = json.load(open("blocks.json"))["rows"]
numbers = sorted(r["number"] for r in rows)
assert len(rows) >= 5, len(rows)
assert numbers == list(range(numbers[0], numbers[-1] + 1)), numbers
for r in rows:
    b = call("eth_getBlockByNumber", hex(r["number"]), False)
    assert int(b["gasUsed"], 16) == r["gas"] and len(b["transactions"]) == r["transactions"], r["number"]
split = [r for r in rows if r["split"]]
bare = [r["number"] - numbers[0] for r in rows if not r["split"]]
if sys.argv[2] == "log":
    assert len(bare) <= 1 + len(rows) / 8, bare
else:
    assert len(bare) <= int(sys.argv[2]) and all(n < 6 for n in bare), bare
wall = sum(r["wall_ns"] for r in split)
for r in split:
    assert abs(sum(r["split"].values()) - r["wall_ns"]) <= 0.02 * r["wall_ns"], r["number"]
unknown = sum(r["split"]["unknown_ns"] for r in split)
assert unknown <= 0.02 * wall, (unknown, wall)
print(len(rows), "blocks,", len(bare), "without a span,", round(100 * unknown / wall, 3), "% unknown")
END
# anvil_recording NAME SENDERS OPTIONS…: for a moment under load; what gasflame blocks makes of it is in blocks.json.
anvil_recording()
{
	local name=$1 senders=$2
	shift 2
	"$GASFLAME" record -d 120 -o "$name.gasflame" "$@" -p "$node" 2>"$name.err" &
	recorded=$!
	wait_for 20 grep -q "^Recording" "$name.err"
	# Until there are some, however slow the machine is.
	for try in 1 2 3 4 5 6; do
		timeout 60 python3 "$here/bench/anvil_load.py" --port "$port" --seconds 1.5 --senders "$senders" >load.out 2>&1
		blocks=$(sed -n 's/.*"blocks": \([0-9]*\).*/\1/p' load.out)
		[ "${blocks:-0}" -lt $((before + 12)) ] || break
	done
	before=${blocks:-0}
	sleep 0.5 # the last block is seen
	kill -INT "$recorded"
	wait "$recorded"
	check "anvil is recorded: $name" test $? -eq 0
	cp "$name.err" last.err
	gf blocks --json "$name.gasflame"
	cp "$STDOUT" blocks.json
}
before=0
anvil_recording log-and-rpc 3 --log anvil.log --rpc "http://127.0.0.1:$port"
check "anvil: every mined block is a mark with a span, its number and gas are the node's, parts sum to the wall time" \
	python3 judge.py "$port" 1
# On a busy machine the spans of some calls arrive more than a second after their blocks, which are timed by the log then.
named=$(counter log-and-rpc.gasflame 'marks.spans named')
check "which is that of its function" test "$named" -ge 1 -a $((named + $(counter log-and-rpc.gasflame 'marks.without a span'))) -ge 5
anvil_recording log 1 --log anvil.log --mark-function none
check "anvil: the log alone gives the same gas, and nearly each block a span" python3 judge.py "$port" log
"$GASFLAME" record -d 300 -o untimed.gasflame --rpc "http://127.0.0.1:$port" --mark-function none -p "$node" 2>untimed.err &
untimed=$!
wait_for 20 grep -q "^Recording" untimed.err
anvil_recording rpc 1 --rpc "http://127.0.0.1:$port"
check "anvil: the node's answers name what the function timed" python3 judge.py "$port" 1
kill -INT "$untimed"
wait "$untimed"
# The same blocks by a Chrome trace, which anvil does not write: what the probes saw stands in, by the wall clock, as
# tracing-chrome writes it. It times the blocks of another recording, in which they are moments.
cat >trace.py <<'END'
"""trace.py WHAT: make anvil.json of the blocks of rpc.gasflame, or compare them with those of timed.gasflame."""
import csv, json, os, subprocess, sys
def blocks(name):
    def ask(query):
        said = subprocess.run([os.environ["GASFLAME"], "query", "--csv", name, query], capture_output=True, text=True, check=True)
        return list(csv.reader(said.stdout.splitlines()))[1:]
    wall = int(ask("select value from meta where key = 'start_wall_ns'")[0][0])
    rows = ask("select number, start_ns, end_ns from mark where kind = 'block' and number is not null and end_ns > start_ns")
    return {int(n): (wall + int(a), wall + int(b)) for n, a, b in rows}
seen = blocks("rpc.gasflame")
if sys.argv[1] == "make":
    with open("anvil.json", "w") as f:
        f.write('[\n{"ph":"M","pid":1,"name":"thread_name","tid":0,"args":{"name":"tokio"}}')
        for number, times in sorted(seen.items(), key=lambda x: x[1]):
            for phase, ns in zip("BE", times):
                f.write(',\n{"args":{"block_num":"%d"},"name":"do_mine_block","ph":"%s","pid":1,"tid":0,"ts":%d.%03d}' %
                        (number, phase, ns // 1000, ns % 1000))
else:
    timed = blocks("timed.gasflame")
    both = seen.keys() & timed.keys()
    assert len(both) >= 5 and both == seen.keys(), (len(both), len(seen))
    far = max(abs(a - b) for n in both for a, b in zip(seen[n], timed[n]))
    assert far < 1000000, far
    print(len(both), "blocks,", far, "ns apart at most")
END
python3 trace.py make
gf import --marks anvil.json untimed.gasflame -o timed.gasflame
check_status "anvil: a trace of its blocks is added to a recording in which they are moments" 0
check "anvil: they are the same blocks, within a millisecond" python3 trace.py compare
check "anvil: none is there twice" test "$(sql timed.gasflame "select count(*) - count(distinct number) from mark where kind = 'block'")" -eq 0
# A node that is looked at now and then may be ahead of it by more blocks than are asked about.
check "anvil: they keep their gas" test "$(sql timed.gasflame "select count(*) from mark where kind = 'block' and end_ns > start_ns and gas > 0")" -ge 5
anvil_recording websocket 1 --rpc "ws://127.0.0.1:$port"
check "anvil: so do its news over a WebSocket" python3 judge.py "$port" 1
anvil_recording moments 1 --rpc "http://127.0.0.1:$port" --mark-function none
check "anvil: without a log and a function blocks are moments" \
	test "$(sql moments.gasflame 'select count(*) from mark where start_ns = end_ns and gas > 0')" -gt 0
anvil_recording function 1 --mark-function anvil
check "anvil: the function alone times blocks without a number" \
	test "$(sql function.gasflame "select count(*) from mark where kind = 'block' and number is null and end_ns > start_ns")" -ge 5
finish
