#!/bin/bash
# subsystems.sh - a real node by subsystem: nearly all of its time has a name, and a load that stresses one thing moves that
# share and no other; by block, for compare and diff; tables of a user.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(cd "$(dirname "$0")/../../.." && pwd)
anvil=$("$here/tools/anvil" 2>why) || skip_all "$(cat why)"
port=$(free_port)
"$anvil" --host 127.0.0.1 --port "$port" --no-mining --gas-limit 3000000000 --accounts 20 --balance 1000000000 >anvil.log 2>&1 &
node=$!
started+=("$node")
wait_for 20 grep -q Listening anvil.log

# ticks: the node's CPU time, in hundredths of a second.
ticks() { awk '{ print $14 + $15 }' "/proc/$node/stat"; }
# recording KIND EVENTS: of the node while it does one kind of work, for 0.6 s of its CPU time at least, however slow the machine is.
recording()
{
	local kind=$1 recorder before try
	"$GASFLAME" record -e "$2" -d 300 -o "$kind.gasflame" --log anvil.log -p "$node" 2>"$kind.err" &
	recorder=$!
	wait_for 20 grep -q "^Recording" "$kind.err"
	before=$(ticks)
	for try in $(seq 30); do
		timeout 60 python3 "$here/bench/anvil_load.py" --port "$port" --seconds 0.7 --senders 2 --kind "$kind" >load.out 2>&1 ||
			cat load.out
		[ $(($(ticks) - before)) -lt 60 ] || break
	done
	kill -INT "$recorder"
	wait "$recorder"
	check "anvil is recorded: $kind" test $? -eq 0
	"$GASFLAME" report --json --table subsystems "$kind.gasflame" >"$kind.json" 2>/dev/null
}
recording all cpu,wait
recording storage cpu
recording keccak cpu
recording ecrecover cpu

cat >judge.py <<'END'
"""judge.py named: under mixed load nine tenths of the CPU time, and of the blocked time, are in a named subsystem. The run queue
is no part of it: a thread that is preempted often has no stack.
judge.py FIGURE: the load that stresses it has at least 15 % of the CPU time there, and three times as much as the other two."""
import json, sys
figures = open("figures", "a")
def read(kind):
    s = json.load(open(kind + ".json"))["subsystems"]
    assert sum(r["self"] for r in s["rows"]) == s["all"]
    return s
def cpu(row):
    return row["self_by_cause"].get("cpu", 0)
def blocked(row):
    return sum(ns for cause, ns in row["self_by_cause"].items() if cause not in ("cpu", "queue", "throttled"))
if sys.argv[1] == "named":
    s = read("all")
    assert s["of"] == "wall"
    for what in cpu, blocked:
        every, other = sum(map(what, s["rows"])), sum(what(r) for r in s["rows"] if r["name"] == "other")
        assert every > 0 and other <= 0.1 * every + 1e6, (what.__name__, other, every, s["unknown"])
        print(what.__name__, f"{100 - 100 * other / every:.2f} % named", file=figures)
    names = {r["name"] for r in s["rows"]}
    assert {"EVM", "Keccak", "sender recovery", "state root", "state reads", "RPC", "engine", "transaction pool"} <= names, names
    sys.exit()
def share(kind, figure):
    s = read(kind)
    assert s["of"] == "cpu", s["of"]
    rows = s["operations"] if figure == "ecrecover" else s["rows"]
    name = {"storage": "state reads", "keccak": "Keccak", "ecrecover": "ecrecover"}[figure]
    return sum(r["total" if figure == "ecrecover" else "self"] for r in rows if r["name"] == name) / s["all"]
figure = sys.argv[1]
shares = {kind: share(kind, figure) for kind in ("storage", "keccak", "ecrecover")}
print(figure, {k: f"{100 * v:.1f} %" for k, v in shares.items()}, file=figures)
assert shares[figure] >= 0.15 and all(shares[figure] >= 3 * v for k, v in shares.items() if k != figure), shares
END
check "anvil under mixed load: nine tenths of the CPU time and of the blocked time are in a named subsystem" python3 judge.py named
check "SLOAD and SSTORE move the share of state reads" python3 judge.py storage
check "KECCAK256 moves that of Keccak" python3 judge.py keccak
check "ecrecover moves that of the precompile" python3 judge.py ecrecover
sed 's/^/# /' figures
python3 -c "import json; print('# unknown:', json.load(open('all.json'))['subsystems']['unknown'])"

gf blocks --by-subsystem all.gasflame
check_status "blocks have columns of subsystems" 0
check "which are named" grep -q '^Along their paths, by subsystem: .*EVM [0-9.]* %' "$STDOUT"
gf blocks --json all.gasflame
check "those of a block sum to its wall time" python3 -c "
import json
rows = [r for r in json.load(open('$STDOUT'))['rows'] if r['split']]
known = sum(r['wall_ns'] - r['split']['unknown_ns'] - r['split']['unnamed_ns'] for r in rows)
named = sum(i['ns'] for r in rows for i in r['subsystems'])
assert rows and abs(named - known) <= 0.05 * known, (named, known)"
gf compare --metric keccak --json ecrecover.gasflame keccak.gasflame
check_status "compare judges by a subsystem, for CI" 0
# The wall time of a block has its waits for a CPU in it: whose is more is judged by the CPU time above.
check "of each block" python3 -c "
import json
first = json.load(open('$STDOUT'))['metrics'][0]
assert first['name'] == 'keccak' and min(first['n']) > 0 and min(first['figures']['mean'][x] for x in 'ab') > 0, first"
gf diff --group subsystem --json keccak.gasflame ecrecover.gasflame
check "diff compares subsystems" grep -q '"name":"Keccak"' "$STDOUT"
gf report --group subsystem --format folded all.gasflame
check "stacks become subsystems" grep -qE '^[^;]*;engine;EVM(;Keccak)? [0-9]' "$STDOUT"

# The gas of opcodes, from the node's own tracer: without the 21,000 of each transaction it is what the blocks used.
cat >light.py <<'END'
"""light.py PORT BENCH [CONTRACT]: deploys a contract that hashes 20 times and prints its address; or calls it in 60 blocks,
once in each. It stores nothing, so that there are no refunds."""
import sys
sys.path.insert(0, sys.argv[2])
from anvil_load import KINDS, Client, deploy, loop_code
client = Client(int(sys.argv[1]))
account = client.call("eth_accounts")[5]
if len(sys.argv) < 4:
    print(deploy(client, account, loop_code(*KINDS["keccak"][:2], 20)))
else:
    for i in range(60):
        client.call("eth_sendTransaction", {"from": account, "to": sys.argv[3], "gas": hex(2_000_000)})
        client.call("evm_mine")
END
contract=$(python3 light.py "$port" "$here/bench")
"$GASFLAME" record -e cpu,wait -d 300 -o light.gasflame --log anvil.log -p "$node" 2>light.err &
recorder=$!
wait_for 20 grep -q "^Recording" light.err
check "sixty light blocks" python3 light.py "$port" "$here/bench" "$contract"
sleep 0.5 # the last block is seen
kill -INT "$recorder"
wait "$recorder"
"$GASFLAME" blocks --json light.gasflame >light-blocks.json 2>/dev/null
gf report --json --table subsystems --rpc "http://127.0.0.1:$port" light.gasflame
check_status "the node is asked for the gas of opcodes" 0
check "which sums to that of the blocks" python3 -c "
import json
gas = json.load(open('$STDOUT'))['subsystems']['gas']
rows = [r for r in json.load(open('light-blocks.json'))['rows'] if r['wall_ns'] and r['transactions']]
traced = sum(o['gas'] for o in gas['operations']) + 21000 * gas['transactions']
# All of them have the same gas; a slow machine may not trace all in time.
n = gas['blocks']
assert 5 <= n <= len(rows) and traced == sum(r['gas'] for r in rows[:n]), (n, len(rows), traced)
keccak = next(o for o in gas['operations'] if o['name'] == 'KECCAK256')
assert keccak['count'] == 20 * gas['transactions'], keccak"
gf report --table subsystems --rpc "http://127.0.0.1:9" light.gasflame
check_status "a node that is not there is an error" 1

# Tables of a user.
printf '[mining]\nfunction = do_mine_block\n' >mine.conf
gf report --table subsystems --subsystems mine.conf all.gasflame
check "a table of the user's comes first" grep -q '  mining' "$STDOUT"
printf '[mining]\nfunktion = do_mine_block\n' >wrong.conf
gf report --table subsystems --subsystems wrong.conf all.gasflame
check_status "a mistake in it is an error" 1
check "that says where" said 'wrong.conf:2: keys are'
mkdir -p settings/gasflame
cp mine.conf settings/gasflame/subsystems.conf
chmod 755 settings settings/gasflame
chmod 644 settings/gasflame/subsystems.conf
export XDG_CONFIG_HOME=$PWD/settings
gf report --table subsystems all.gasflame
check "one in the folder of settings is read" grep -q '  mining' "$STDOUT"
for mode in file folder owner link; do
	case $mode in
	file) chmod 666 settings/gasflame/subsystems.conf ;;
	folder) chmod 644 settings/gasflame/subsystems.conf; chmod 777 settings/gasflame ;;
	owner) chmod 755 settings/gasflame; chown 65534 settings/gasflame/subsystems.conf ;;
	link) rm settings/gasflame/subsystems.conf; ln -s "$PWD/mine.conf" settings/gasflame/subsystems.conf ;;
	esac
	gf report --table subsystems all.gasflame
	check "but not one that others could have written: $mode" said 'subsystems.conf is not read'
	check_not "and it has no effect: $mode" grep -q '  mining' "$STDOUT"
done
finish
