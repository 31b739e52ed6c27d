#!/bin/bash
# -e hw and stat: counters by function, thread and phase equal what a program counts of itself; compare by categories.
. "$(dirname "$0")/../lib.sh"
need_root

cat >equal.py <<'END'
"""equal.py STAT.json TRUTH: what was sampled and counted against what the program says of itself."""
import json, sys
d = json.load(open(sys.argv[1]))
t = {k: float(v) for k, v in (x.split("=") for x in open(sys.argv[2]).read().split() if "=" in x)}

def value(row, name): return row["counters"][name]["value"]
def near(what, got, wanted, share, plus): assert abs(got - wanted) <= wanted * share + plus, (what, got, wanted)

rows = {f["name"]: f for f in d["functions"]}
# None is lost: what a thread has at a place since its last stack there goes to that stack.
near("faults of toucher", value(rows["toucher"], "minor-faults"), t["touched_faults"], 0.1, 20)
# The nap is the C library's, which is who called the kernel.
naps = sum(value(f, "context-switches") for n, f in rows.items() if "nanosleep" in n)
near("switches of naps", naps, t["napped_switches"], 0.1, 20)
# A clock of 1 ms: the error of its sum is the root of the samples, and four times that is never.
n = rows["spin"]["samples"]["task-clock"]
assert n > 100, n
near("CPU of burner, in what is inlined there", value(rows["spin"], "task-clock") / 1e9, t["burnt_s"], 4 / n ** .5, 0.02)
near("CPU of all", value(d, "task-clock") / 1e9, t["all_s"], 4 / n ** .5, 0.05)
assert d["threads"][0]["name"] == "truth-counted", d["threads"][0]
assert d["hardware"] == ("cycles" in d["counters"]) and d["hardware"] or not {"cycles", "instructions"} & set(d["counters"]), d
if d["hardware"]:
    assert 0.1 < d["ratios"]["instructions a cycle"] < 10, d["ratios"]
for phase in d.get("phases", []):
    near("CPU of " + phase["name"], value(phase, "task-clock") / 1e9, t["half_s"], 4 / n ** .5, 0.05)
END

gf run -e hw --max-overhead 0 -o hw.gasflame -- "$TRUTH/truth-counted" 30
cp "$STDOUT" truth.txt
check_status "a recording with -e hw" 0
if grep -q 'no counters of the processor' "$STDERR"; then
	check "what this machine lacks is said once" [ "$(grep -c 'counters of the processor' "$STDERR")" -eq 1 ]
	check "and is not recorded as 0" [ "$(sql hw.gasflame "select count(*) from event where name in ('hw:cycles', 'hw:instructions')")" -eq 0 ]
else
	check "cycles are recorded" above "$(sql hw.gasflame "select count(*) from sample s join event e on e.id = s.event where e.name = 'hw:cycles'")" 10
fi
gf stat --json -n 0 -o captured.json hw.gasflame
check_status "stat reads the capture" 0
check "functions have what the program counts of itself" python3 equal.py captured.json truth.txt
gf report --what hw:minor-faults --format folded hw.gasflame
check "and there are flame graphs of each counter" grep -q 'toucher' "$STDOUT"
gf stat hw.gasflame
check "a table for people" grep -qE 'toucher$' "$STDOUT"

gf stat --functions --json -n 0 -o sampled.json --phase 'half=TIME SPENT: ([0-9.]+) ms' -- "$TRUTH/truth-counted" 30
cp "$STDOUT" truth.txt
check_status "stat samples a program by itself" 0
check "by function and by phase" python3 equal.py sampled.json truth.txt
check "of which there is one" grep -q '"name":"half","marks":1' sampled.json

gf stat --json -o counted.json --phase 'half=TIME SPENT: ([0-9.]+) ms' -- "$TRUTH/truth-counted" 20
cp "$STDOUT" truth.txt
cat >phases.py <<'END'
import json
d = json.load(open("counted.json"))
t = {k: float(v) for k, v in (x.split("=") for x in open("truth.txt").read().split() if "=" in x)}
half, rest = d["phases"]
assert (half["name"], rest["name"]) == ("half", "rest"), d["phases"]
cpu, faults = half["counters"]["task-clock"]["value"] / 1e9, half["counters"]["minor-faults"]["value"]
# One reading is some milliseconds from the next, and a round has 200 faults and 10 ms.
assert abs(cpu - t["half_s"]) <= 0.03 + 0.05 * t["half_s"], (cpu, t)
assert abs(faults - t["half_faults"]) <= 450 + 0.02 * t["half_faults"], (faults, t)
for k, v in d["counters"].items():
    assert abs(half["counters"][k]["value"] + rest["counters"][k]["value"] - v["value"]) < 2, k
END
check "counted phases are exact to a moment" python3 phases.py
gf stat --phase 'never=never printed ([0-9]+) ms' -- true
check "a phase that was not printed" said "'never' was not printed"
gf stat --phase 'x=([0-9]+) ms' -p $$
check_status "phases are of commands only" 2
start counted 100000
gf stat --functions -d 1 -p "$PID"
check_status "functions of a running program" 0
check "are there" grep -q spin "$STDOUT"
: >node.log
for i in $(seq 40); do
	sleep 0.1
	echo "INFO Block added to canonical chain number=$i hash=0x$(printf '%064x' "$i") txs=3 gas_used=1.50Mgas elapsed=50ms"
done >>node.log &
started+=($!)
gf stat --functions --json --log node.log -d 2 -p "$PID"
check_status "and what it did within the blocks of its log" 0
check "which are a phase" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
block = next(p for p in d["phases"] if p["name"] == "block")
# At least a few of its lines came in time; each is of 50 ms.
assert block["marks"] >= 3 and abs(block["seconds"] - 0.05 * block["marks"]) < 0.05, block
assert 0 < block["counters"]["task-clock"]["value"] < d["counters"]["task-clock"]["value"], block' "$STDOUT"
gf stat --log node.log -p "$PID"
check_status "--log alone is a mistake" 2
kill "$PID" 2>/dev/null
: >empty.gasflame
gf stat empty.gasflame
check_status "a file that is no capture" 1
gf run -e cpu -o cpu.gasflame -- true
gf stat cpu.gasflame
check "a capture without counters says what to record" said 'record with -e hw'

# Why some blocks are slow: the file and the function that it is known to be. Before others on the CPU, where it can:
# a line of the log that is read late is a block at the wrong time.
rt=()
chrt -f 5 true 2>/dev/null && rt=(chrt -f 5)
${rt[@]+"${rt[@]}"} "$GASFLAME" run -e cpu,wait,fault -o slow.gasflame --log - \
	--log-pattern 'block (?<number>[0-9]+) with (?<gas>[0-9.]+M) gas in (?<ms>[0-9.]+) ms' \
	-- "$TRUTH/truth-slowblocks" "$tmp/db.dat" 24 >truth.txt 2>/dev/null
rm -f db.dat
cat >slow.py <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
t = {k: float(v) for k, v in (x.split("=") for x in open("truth.txt").read().split() if "=" in x)}
slow = [r for r in d["rows"] if r["number"] % 8 == 0]
assert len(slow) == 3 and d["difference"], d
# All that the time under state_root went to, as the program has it; what was on the CPU is told by some 15 samples a block.
spent = sum(f["ns"] for r in slow for f in r["functions"] if "state_root" in (f["name"], f.get("under"))) / 3e6
assert abs(spent - t["slow_ms"]) < 3 + 0.25 * t["slow_ms"], (spent, t)
faults = [f for r in slow for f in r["functions"] if f["part"] == "fault"]
most = max(faults, key=lambda f: f["ns"])
assert most["name"] == "state_root" and most["file"].endswith("/db.dat"), faults
END
gf blocks --json slow.gasflame
if [ "$(sed -n 's/.*major=//p' truth.txt)" -ge 50 ]; then
	check "slow blocks have the function and the file that made them slow" python3 slow.py "$STDOUT"
else
	skip "the file of slow blocks" "the kernel keeps all of a file in memory here"
fi

# Why one program is slower than the other: by what its time went to.
for i in 1 2; do
	# How long it sleeps does not depend on what else the machine does.
	printf '#!/bin/bash\ni=0\nwhile [ $i -lt 2000 ]; do i=$((i + 1)); done\nexec sleep 0.0%s\n' $((i * i)) >"wait$i"
	chmod +x "wait$i"
done
gf bench -n 6 --record cpu,wait --record-output runs.gasflame -- ./wait1 ::: ./wait2
check "runs are recorded" [ "$(sql runs.gasflame "select count(*) from mark where kind = 'run'")" -eq 12 ]
gf compare --json --metric wait --fail-on-slower runs.gasflame
check_status "one waits longer: status 7" 7
check "in pairs, with what else the time went to" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
m = {x["name"]: x for x in d["metrics"]}
assert d["design"] == "rounds" and d["metrics"][0]["name"] == "wait" and d["verdict"] == "worse", d
assert {"wall", "cpu"} <= set(m), m.keys()' "$STDOUT"
gf compare --markdown runs.gasflame
check "a table for a pull request" grep -qE '^\| wait \| mean \|' "$STDOUT"
gf compare hw.gasflame hw.gasflame
check_status "a recording without blocks or runs" 1
check "says what can be done" said 'gasflame diff'
finish
