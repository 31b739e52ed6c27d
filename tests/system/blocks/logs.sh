#!/bin/bash
# logs.sh - the blocks of a log by itself, without a recording: all clients' lines, real logs, and hostile ones.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")/../../.." && pwd)
golden=$here/tests/golden/logs
tool() { python3 "$here/tests/system/blocks/logs.py" "$@"; }
export GASFLAME

check "every line that was read from the clients' sources gives its figures" tool lines "$golden/client-lines.tsv"

reth_line()
{
	echo "INFO Block added to canonical chain number=$1 hash=0x$(printf '%064x' "$1") txs=3 gas_used=1.50Mgas elapsed=$2"
}
{
	for i in 1 2 3 4 5 6 7 8 9; do reth_line "$i" "1${i}ms"; done
	reth_line 10 95ms
	reth_line 11 24.5µs
	echo "INFO [08-01|10:00:00.123] Imported new chain segment number=100 hash=1a2b3c..4d5e6f blocks=64 txs=19,442 mgas=1912.512 elapsed=3.012s"
} >node.log
gf blocks -n 3 node.log
check_status "a log is a table" 0
check "the slowest first, a group as one" grep -qE '^ +100 +1912\.51M +19,442 +3012\.00 +0\.635  geth  64 blocks, from 37$' <(sed -n 2p "$STDOUT")
check "then the slowest block" grep -qE '^ +10 +1\.50M +3 +95\.00 +0\.016  reth$' <(sed -n 3p "$STDOUT")
check "and how many more there are" grep -q '9 more: -n 0 shows all' "$STDOUT"
check "all together" grep -qE '^75 blocks, 1 to 100, 1929\.01 Mgas, 19,475 transactions\.$' "$STDOUT"
check "percentiles of single blocks" grep -q 'of single blocks p5 0\.0.*, median 0\.097, p95 0\.1' "$STDOUT"
check "the slowest of them" grep -q 'median 15.50 ms.*the slowest is 10 with 95.00 ms' "$STDOUT"
check "a change of the client is said" said '1 time the log goes on as that of another client'
check_not "no colours without a terminal" grep -q $'\033' "$STDOUT"
gf blocks -n 0 --in-order node.log
check "in order" grep -qE '^ +1 ' <(sed -n 2p "$STDOUT")
check "an insertion is no block's time" grep -qE '^ +11 +1\.50M +3 +- +-  reth  built here: its insertion took 24\.5' "$STDOUT"
check "colours on a terminal" grep -q $'\033\[33m' <(TERM=xterm script -qec "$GASFLAME blocks node.log" /dev/null </dev/null)
gf blocks --csv node.log
check "CSV" grep -qx '100,1912512000,19442,3012000000,0.634964,37,64,0,geth' "$STDOUT"
gf blocks --json -o blocks.json node.log
check "JSON, into a file" python3 -c 'import json; d = json.load(open("blocks.json")); assert len(d["rows"]) == 12 and d["groups"] == 1 and d["client"] is None'
cp node.log copied.log
gf blocks -o copied.log copied.log
check_status "never over the log itself" 2
check "which stays" cmp -s node.log copied.log
mkfifo pipe
cat node.log >pipe &
gf blocks pipe
check "a pipe is read" grep -q '^75 blocks' "$STDOUT"
if [ "$(id -u)" -eq 0 ]; then
	gf blocks -v node.log
	check "without rights" said 'reading as user'
fi

gf blocks --block 3 node.log
check_status "what needs a recording is a mistake" 2
check "that says so" said '\-\-block is for a recording, and node.log is a log'
gf blocks --by-subsystem node.log
check_status "so are columns that a log has not" 2
gf blocks --log-client nobody node.log
check_status "a client that nobody knows is a mistake" 2
gf blocks --log-client geth node.log
check "a client that is named is the only one" grep -q '^64 blocks of geth' "$STDOUT"
gf blocks --log-pattern 'number=(?<number>[0-9]+) .* txs=(?<txs>[0-9]+)' node.log
check "lines of one's own" grep -q '^12 blocks of own' "$STDOUT"
gzip -k node.log
gf blocks node.log.gz
check_status "a compressed log is a mistake" 2
check "with a way out" said 'zcat LOG | gasflame blocks -'
: >empty.log
gf blocks empty.log
check_status "an empty file has no blocks" 1
gf blocks none.log
check_status "a file that is not there" 1
head -c 300000 /dev/urandom >random.log
gf blocks random.log
check_status "noise has none" 1

tool hostile
gf blocks --csv hostile.log
check_status "a hostile log is read to its end" 0
check "what can be known of each block is" test "$(cut -d, -f1-4 "$STDOUT" | tail -n +2 | tr '\n' ' ')" = \
	"1,1500000,3,20000000 2,1500000,3,20000000 3,,3,20000000 4,1500000,3, 5,1500000,3, 6,2000000,2,30000000 7,,,"$' '
check "lines that are cut, malformed or beyond bounds are counted" said '3 lines should be about blocks'
check "so are those that are too long" said '[0-9]+ lines are longer than 16 KiB'
check "and figures" said '1 line has a figure that is too large'
check "and durations" said '2 durations cannot be'

# Real logs, of several thousand lines.
gunzip -c "$golden/anvil-1.7.1.log.gz" >anvil.log
check "each block of anvil's log, and no other" tool table anvil.log "$golden/anvil-1.7.1.tsv"
gunzip -c "$golden/ethereumjs-0.10.5.log.gz" >ethereumjs.log
gf blocks --json ethereumjs.log
check_status "ethereumjs's log has no line that is known" 1
check "and no false block" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert not d["rows"] and d["lines"] > 5000 and not any(d["counted"].values())' "$STDOUT"
gf blocks --json --log-pattern 'New consensus payload received +number=(?<number>[0-9]+) .*gasUsed=(?<gas>[0-9.]+[kM]?) .*txs=(?<txs>[0-9]+)' ethereumjs.log
check "a pattern finds its 51 blocks" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert [r["number"] for r in d["rows"]] == list(range(1, 52)) and all(r["gas"] > 0 for r in d["rows"])' "$STDOUT"

if anvil=$("$here/tools/anvil" 2>why); then
	port=$(free_port)
	"$anvil" --host 127.0.0.1 --port "$port" --no-mining --gas-limit 3000000000 --accounts 20 --balance 1000000000 >live.log 2>&1 &
	started+=($!)
	disown
	wait_for 20 grep -q Listening live.log
	timeout 60 python3 "$here/bench/anvil_load.py" --port "$port" --seconds 1 --senders 2 >load.out 2>&1
	check "anvil's log has the node's gas and transactions" tool node live.log "$port"
	sed -i '/^    [0-9]*\.[0-9]*\.[0-9]*.* (/d' live.log
	check "also without its banner" tool node live.log "$port"
else
	skip "anvil's log" "$(cat why)"
fi
finish
