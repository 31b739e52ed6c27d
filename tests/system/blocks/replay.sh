#!/bin/bash
# replay.sh - blocks over the Engine API to a real client, with what can go wrong there, and load for a dev node.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")/../../.." && pwd)
tool() { python3 "$here/tests/system/blocks/replay.py" "$@"; }

gunzip -c "$here/tests/system/blocks/chain/blocks.jsonl.gz" >blocks.jsonl
python3 "$here/tests/system/blocks/chain/genesis.py" >genesis.json
printf '0x%064x\n' 12345 >jwt.hex
printf '%064x\n' 54321 >wrong.hex

# A real client, twice: one is the source of the other. They take some seconds to start.
ethereumjs=$("$here/tools/ethereumjs" 2>why) || ethereumjs=
if [ -n "$ethereumjs" ]; then
	read -ra ports <<<"$(tool ports 6)"
	# client NAME PORT RPC ENGINE: starts one; its pid is in $PID.
	client()
	{
		node "$ethereumjs" --gethGenesis genesis.json --dataDir "data-$1" --sync none --discV4 false --discDns false --maxPeers 0 \
			--isSingleNode --port "$2" --rpc --rpcAddr 127.0.0.1 --rpcPort "$3" --rpcEngine --rpcEngineAddr 127.0.0.1 \
			--rpcEnginePort "$4" --rpcEngineAuth --jwtSecret jwt.hex >"$1.log" 2>&1 &
		PID=$!
		started+=("$PID")
		disown
	}
	client a "${ports[@]:0:3}"
	a=$PID a_rpc=http://127.0.0.1:${ports[1]} a_engine=http://127.0.0.1:${ports[2]}
	client b "${ports[@]:3:3}"
	b=$PID b_rpc=http://127.0.0.1:${ports[4]} b_engine=http://127.0.0.1:${ports[5]}
fi

gf replay
check_status "nothing to replay is a mistake" 2
gf replay --blocks blocks.jsonl
check_status "without a secret too" 2
check "that says which one is meant" said 'jwt-secret FILE'
gf replay --blocks blocks.jsonl --jwt-secret genesis.json
check_status "a secret that is none" 1
check "is said to be" said '64 hexadecimal digits'
gf replay --blocks none.jsonl --jwt-secret jwt.hex
check_status "blocks that are not there" 1
gf replay --blocks blocks.jsonl --jwt-secret jwt.hex --record cpu
check_status "a recording of nobody is a mistake" 2
gf replay --load mixed --rpc http://192.0.2.1:8545
check_status "load for another machine is a mistake" 2
check "unless it is allowed" said 'allow-remote'
gf replay --blocks blocks.jsonl --jwt-secret jwt.hex --retries 1 --engine http://127.0.0.1:9
check_status "a node that is not there" 1
check "is named" said '127.0.0.1:9'

# Nodes that misbehave: each is told, soon.
# serve KIND: starts such a node; its port is in $port.
serve()
{
	rm -f port
	python3 "$here/tests/system/blocks/replay.py" serve "$1" blocks.jsonl >port &
	started+=($!)
	disown
	wait_for 20 test -s port
	port=$(head -1 port)
}
# against KIND OPTIONS…: replays the first block to such a node; the seconds that took are in $took.
against()
{
	serve "$1"
	local begin=$SECONDS
	gf replay --blocks blocks.jsonl --to 1 --jwt-secret jwt.hex --retries 1 --timeout 1s --engine "http://127.0.0.1:$port" "${@:2}"
	took=$((SECONDS - begin))
}
for kind in garbage never deep fork; do
	against $kind
	check_status "a node that is $kind is an error" 1
	# Two tries of a second; the one that never answers holds each for 30 s.
	check "a node that is $kind does not hold us up" test $took -lt 25
	check "a node that is $kind is told with the block" said '^gasflame: block 1: '
done
against fork
check "and its words are passed on" said 'Unsupported fork \(-38005\)'
against accepted
check_status "ACCEPTED goes on to the fork choice" 0
check "and is counted" grep -q 'ACCEPTED: 1' "$STDOUT"

serve never
"$GASFLAME" replay --blocks blocks.jsonl --jwt-secret jwt.hex --engine "http://127.0.0.1:$port" >stuck.out 2>stuck.err &
replay=$!
wait_for 20 grep -q asked port
begin=$SECONDS
kill -INT $replay
wait $replay
check "Ctrl-C ends the wait for a node that never answers" test $? -eq 0 -a $((SECONDS - begin)) -lt 20

# A source that fails most of the time.
serve flaky
source=$port
serve valid
gf replay --from-rpc "http://127.0.0.1:$source" --from 1 --to 1 --jwt-secret jwt.hex --json --engine "http://127.0.0.1:$port"
check_status "a source that fails is asked again" 0
check "and that is counted" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["source_retried"] >= 1 and d["blocks"] == 1, d' "$STDOUT"
gf replay --from-rpc http://127.0.0.1:9 --from 2 --to 2 --retries 1 --jwt-secret jwt.hex --engine "http://127.0.0.1:$port"
check_status "but not for ever" 1
check "and how often is said" said 'block 2 could not be had in 2 tries'

# The real client.
if [ -z "$ethereumjs" ]; then
	skip "blocks for ethereumjs" "$(cat why)"
else
	for name in a b; do
		wait_for 100 grep -q 'Client started successfully' $name.log || not_ok "ethereumjs starts" "$(tail -5 $name.log)"
	done

	gf replay --blocks blocks.jsonl --jwt-secret wrong.hex --engine "$a_engine"
	check_status "a wrong secret is an error" 1
	check "that is said plainly" said 'does not take our token \(401\): --jwt-secret must name'
	gf replay --blocks blocks.jsonl --from 5 --retries 1 --jwt-secret jwt.hex --engine "$b_engine"
	check_status "blocks without their parents are an error" 1
	check "SYNCING is said, and where to begin" said 'SYNCING .*must begin with 1'

	record=()
	[ "$(id -u)" -ne 0 ] || record=(--record cpu,wait --record-output node.gasflame "$a")
	gf replay --blocks blocks.jsonl --jwt-secret jwt.hex --engine "$a_engine" -o out "${record[@]}"
	check_status "52 blocks of four forks are replayed" 0
	check "all of them VALID" grep -q '^52 blocks (1 to 52), .*: all VALID$' "$STDOUT"
	check "the CSV files and the JSON are right" tool csv out "$a_rpc" 52
	if [ ${#record[@]} -gt 0 ]; then
		check "each is a mark of the recording" test "$(sql node.gasflame "select count(*) || ',' || min(number) || ',' || max(number) from mark where kind = 'block' and gas > 0 and end_ns > start_ns" | tr -d '"')" = "52,1,52"
		gf blocks --json node.gasflame
		check "as long as the latency, with a split" python3 - "$STDOUT" <<'END'
import csv, json, sys
rows = {r["number"]: r for r in json.load(open(sys.argv[1]))["rows"]}
for row in csv.DictReader(open("out/combined_latency.csv")):
    r = rows[int(row["block_number"])]
    assert abs(r["wall_ns"] / 1e3 - int(row["total_latency"])) <= 1, r
    assert r["gas"] == int(row["gas_used"]) and r["transactions"] == int(row["transaction_count"]), r
assert sum(bool(r["split"]) for r in rows.values()) >= 50
END
	else
		skip "replay --record" "needs root"
	fi

	gf replay --from-rpc "$a_rpc" --to 6 --prefetch 2 --save saved.jsonl -o few --jwt-secret jwt.hex --engine "$b_engine" \
		--wait quiet --wait-every 4 "$b"
	check_status "blocks of a node are replayed on another" 0
	check "how persistence was watched is said" grep -q '^persistence was watched by: .*writes nothing to disk any more' "$STDOUT"
	check "the CSV files are right" tool csv few "$b_rpc" 6
	check "what is saved has the same blocks" python3 -c 'import json; a, b = ([json.loads(l) for l in open(f)] for f in ("saved.jsonl", "blocks.jsonl")); assert a == b[:6]'
	gf compare out/combined_latency.csv few/replay.json
	check_status "compare reads both" 0

	# What a sequencer does: the client builds the next two blocks itself, of transactions in its pool.
	gf replay --build --blocks blocks.jsonl --from 7 --to 8 -o built --jwt-secret jwt.hex --engine "$b_engine" --rpc "$b_rpc"
	check_status "a client builds blocks" 0
	check "the same ones as it was sent elsewhere" grep -q '^built: 2 of 2 blocks have the hash' "$STDOUT"
	check "each step is timed" python3 - <<'END'
import csv
rows = [{k: int(v) for k, v in r.items()} for r in csv.DictReader(open("built/built_latency.csv"))]
assert [r["block_number"] for r in rows] == [7, 8], rows
for r in rows:
    steps = [r[k] for k in ("fcu_attributes_latency", "get_payload_latency", "new_payload_latency", "fcu_latency")]
    assert min(steps) > 0 and abs(sum(steps) - r["total_latency"]) <= 3 and r["transaction_count"] >= 2 and r["gas_used"] > 21000, r
END

	# A block whose state root is wrong: first by its hash, then, with the right hash, by what its execution gives.
	tool tamper blocks.jsonl 9 >bad.jsonl
	gf replay --blocks bad.jsonl --jwt-secret jwt.hex --engine "$b_engine"
	check_status "a block with another state root is an error" 1
	check "INVALID is said" said '^gasflame: block 9: the node answers INVALID(_BLOCK_HASH)? to newPayload: '
	right=$(grep -o '0x[0-9a-f]\{64\}' "$STDERR" | grep -v "$(sed -n '9s/.*"hash":"\(0x[0-9a-f]\{64\}\)","parentHash".*/\1/p' blocks.jsonl)" | head -1)
	tool tamper blocks.jsonl 9 "$right" >worse.jsonl
	gf replay --blocks worse.jsonl --jwt-secret jwt.hex --engine "$b_engine"
	check_status "with the hash that belongs to it too" 1
	check "INVALID is said, with the node's reason" said 'INVALID to newPayload: .*(state|root)'
	{ sed -n 9p blocks.jsonl; tool tamper blocks.jsonl 10; } >mixed.jsonl
	gf replay --blocks mixed.jsonl --jwt-secret jwt.hex -o kept --engine "$b_engine"
	check_status "an error in the middle is an error" 1
	check "what came before is kept" tool csv kept "$b_rpc" 1

	"$GASFLAME" replay --blocks blocks.jsonl --save sent.jsonl --jwt-secret jwt.hex -o stopped --engine "$b_engine" >stopped.out 2>stopped.err &
	replay=$!
	wait_for 20 bash -c '[ "$(wc -l <sent.jsonl)" -ge 4 ]'
	kill -INT $replay
	wait $replay
	check "Ctrl-C is no error" test $? -eq 0
	count=$(($(wc -l <stopped/combined_latency.csv) - 1))
	check "and keeps what was measured" tool csv stopped "$b_rpc" "$count"
	check "which is neither nothing nor all" test "$count" -ge 3 -a "$count" -lt 43
fi

# Load for a dev node.
if ! anvil=$("$here/tools/anvil" 2>why); then
	skip "load for anvil" "$(cat why)"
	finish
fi
read -ra ports <<<"$(tool ports 1)"
"$anvil" --host 127.0.0.1 --port "${ports[0]}" >anvil.log 2>&1 &
node=$!
started+=("$node")
disown
wait_for 20 grep -q Listening anvil.log
rpc=http://127.0.0.1:${ports[0]}
gf replay --load mixed --rpc "$rpc" --count 200 --duration 20s --json -o load
check_status "load for anvil" 0
cat >load.py <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
kinds = {k["kind"]: k for k in d["kinds"]}
assert d["taken"] == 200 and d["errors"] == 0 and d["pending"] == 0, d
assert kinds["transfers"]["taken"] == kinds["calls"]["taken"] == 100, d
assert d["mined"]["transactions"] == 200 and d["mined"]["gas"] > 100 * (21000 + 80000), d
for k in kinds.values():
    l = k["latency_s"]
    assert 0 < l["min"] <= l["median"] <= l["p90"] <= l["p99"] <= l["max"], l
END
check "as many as were asked for, all of them mined" python3 load.py load/load.json
begin=$(date +%s%N)
gf replay --load transfers --rpc "$rpc" --rate 20 --duration 2s --json
check_status "at a rate, for a time" 0
check "which it keeps" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert 10 <= d["taken"] <= 40, d' "$STDOUT"
check "and ends in time" test $((($(date +%s%N) - begin) / 1000000)) -lt 25000
if [ "$(id -u)" -eq 0 ]; then
	gf replay --load calls --rpc "$rpc" --rate 100 --count 150 --record cpu,wait --record-output load.gasflame --log anvil.log "$node"
	check_status "recorded meanwhile" 0
	check "with blocks as marks" above "$(sql load.gasflame "select count(*) from mark where kind = 'block' and transactions > 0")" 20
else
	skip "replay --load --record" "needs root"
fi
kill -9 "$node"
gf replay --load transfers --rpc "$rpc" --count 10
check_status "a node that is gone is an error" 1
finish
