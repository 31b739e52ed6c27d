#!/bin/bash
# standin.sh - replay against a node that is written from the specification: OP Isthmus, Osaka and Amsterdam, reth's own API,
# blocks that the node builds, persistence, and answers that are none.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")/../../.." && pwd)
tool() { python3 "$here/tests/system/blocks/standin.py" "$@"; }
printf '0x%064x\n' 12345 >jwt.hex
COUNT=9

# serve FORK …: starts such a node; its addresses are in $engine, $rpc, $ws and $source.
serve()
{
	rm -f ports
	python3 "$here/tests/system/blocks/standin.py" serve "$1" $COUNT jwt.hex "${@:2}" >ports &
	started+=($!)
	disown
	wait_for 60 grep -qE '^([0-9]+ ){3}[0-9]+$' ports
	read -r engine rpc ws source <ports
	engine=http://127.0.0.1:$engine rpc=http://127.0.0.1:$rpc ws=ws://127.0.0.1:$ws source=http://127.0.0.1:$source
}
# asked METHOD N …: as often was each of them called?
asked()
{
	tool asked "${engine##*:}" | python3 -c '
import json, sys
got, wanted = json.load(sys.stdin), dict(zip(sys.argv[1::2], map(int, sys.argv[2::2])))
assert {k: got.get(k, 0) for k in wanted} == wanted, got' "$@"
}
count() { tool asked "${engine##*:}" | python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], 0))' "$1"; }
replay() { gf replay --jwt-secret jwt.hex --engine "$engine" "$@"; }

while read -r fork payload choice get; do
	serve $fork
	check "$fork: the node refuses what a node must" tool refuse "${engine##*:}" jwt.hex $fork
	before=$(count engine_newPayloadV$payload) chosen=$(count engine_forkchoiceUpdatedV$choice)
	replay --from-rpc "$source" --beacon "$source" --save $fork.jsonl -o $fork
	check_status "$fork: blocks are replayed" 0
	check "$fork: all VALID" grep -q "^$COUNT blocks (1 to $COUNT), .*: all VALID$" "$STDOUT"
	check "$fork: by the right methods" asked engine_newPayloadV$payload $((before + COUNT)) engine_forkchoiceUpdatedV$choice $((chosen + COUNT))
	serve $fork reth
	replay --blocks $fork.jsonl --json -o $fork-reth
	check_status "$fork: as RLP to reth" 0
	check "$fork: by its own methods" asked reth_newPayload $((COUNT + 1)) reth_forkchoiceUpdated $COUNT engine_newPayloadV$payload 0
	check "$fork: with its own times" python3 - $fork-reth/combined_latency.csv "$STDOUT" <<'END'
import csv, json, sys
for row in csv.DictReader(open(sys.argv[1])):
    assert [row[k] for k in ("persistence_wait", "execution_cache_wait", "sparse_trie_wait")] == ["7", "3", "2"], row
d = json.load(open(sys.argv[2]))
assert d["api"] == "reth" and [r["server_latency"] for r in d["commands"][0]["runs"]] == [100 + n for n in range(1, d["blocks"] + 1)], d
END
	serve $fork
	replay --build --blocks $fork.jsonl --rpc "$rpc"
	check_status "$fork: the node builds the blocks" 0
	check "$fork: the same ones" grep -q "^built: $COUNT of $COUNT blocks have the hash of the source's$" "$STDOUT"
	check "$fork: by the right methods" asked engine_forkchoiceUpdatedV$choice $((2 * COUNT)) engine_getPayloadV$get $COUNT engine_newPayloadV$payload $COUNT
done <<'END'
isthmus 4 3 4
osaka 4 3 5
amsterdam 5 4 6
END

# Requests: by their hash they are refused, those of a wrong file are not sent, and a right file has them.
serve osaka
tool requests osaka $COUNT >requests.jsonl
replay --from-rpc "$source" --retries 0
check_status "requests as a hash are refused" 1
check "and what to do is said" said '^gasflame: block 3: .*\(-32602\): .*--beacon'
sed 's/\(0x00..\)../\1ff/' requests.jsonl >wrong.jsonl
replay --from-rpc "$source" --requests wrong.jsonl
check_status "a file with others" 1
check "is found out" said 'block 3: .*do not have its requestsHash'
echo '{"hash":1}' >wrong.jsonl
replay --from-rpc "$source" --requests wrong.jsonl
check "and so is one that is none" said '^gasflame: wrong.jsonl: line 1 '
replay --from-rpc "$source" --requests requests.jsonl
check_status "a file has them" 0
check "all that were missing" grep -q "^$((COUNT - 2)) blocks (3 to $COUNT), .*: all VALID$" "$STDOUT"

# Another fork than the node's.
serve amsterdam
replay --blocks osaka.jsonl --from 1 --to 1 --api engine --retries 0
check_status "blocks of another fork" 1
check "are said to be" said 'Unsupported fork \(-38005\): by its fields the block is of another fork'
replay --blocks osaka.jsonl --api reth
check_status "reth's API of another client" 1
check "is missing" said 'has no reth_newPayload'
sed 's/"blockAccessList":"[^"]*",\{0,1\}//; s/,}$/}/' amsterdam.jsonl >without.jsonl
replay --blocks without.jsonl
check "a block without its access list is said to lack it" said 'debug_getRawBlockAccessList'

# Persistence, as reth tells of it, and an interval.
serve isthmus reth
replay --blocks isthmus.jsonl --wait persisted --ws "$ws" --persist-lag 7 --interval 200ms --json
check_status "blocks on disk are waited for" 0
check "and how is said, and the interval is kept" python3 - "$STDOUT" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
starts = [r["start_ns"] for r in d["commands"][0]["runs"]]
assert "reth_subscribePersistedBlock" in d["persistence_watched"], d
assert d["wall_s"] >= 0.2 * (len(starts) - 1) and starts[-1] - starts[0] >= 0.19e9 * (len(starts) - 1), d
END
replay --blocks isthmus.jsonl --wait persisted --api engine
check_status "without a WebSocket the Engine API does not tell" 2
serve isthmus
replay --blocks isthmus.jsonl --wait persisted --ws "$ws"
check "a node that does not announce them" said 'reth_subscribePersistedBlock is refused'

# Answers that are none.
base=$engine
while read -r kind words; do
	engine=$base/$kind
	replay --blocks isthmus.jsonl --to 1 --retries 1 --timeout 10s
	check_status "an answer that is none ($kind)" 1
	check "is said to be ($kind)" said "^gasflame: block 1: engine_newPayloadV4: http://127.*: .*$words"
done <<'END'
id another request
html a page, not with JSON-RPC
half (remaining|transfer closed)
cut ends in the middle
close (Empty reply|closed|reset)
END
finish
