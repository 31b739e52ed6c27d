#!/bin/bash
# bench, compare and stat: figures as Python has them, runs in turn, a slower program found, what is missing said.
. "$(dirname "$0")/../lib.sh"

cat >program <<'END'
#!/bin/bash
# program MICROSECONDS: prints what a block took, as a client does; a little noise that is the same in each test.
n=$(cat "count.$1" 2>/dev/null || echo 0)
echo $((n + 1)) >"count.$1"
us=$(($1 + (n * 7919 % 13 - 6) * $1 / 1000))
echo "starting up"
printf '\033[32mINFO\033[0m TIME SPENT: %d.%03d ms. Gas Used: 37500000\n' $((us / 1000)) $((us % 1000))
sleep 0.07
END
chmod +x program

gf bench -n 12 -w 2 --phase 'exec=TIME SPENT: ([0-9.]+) ms' --gas 37.5M -o out/runs.json -o out/runs.csv -o out/runs.html \
	-- ./program 60000 ::: ./program 63000
check_status "two programs in turn" 0
check "a table for people" grep -q "exec is 5.0. % slower" "$STDOUT"

cat >reference.py <<'END'
"""The figures of out/runs.json again, from its runs: equal to the last digits. Its bootstrap has the same generator."""
import json, math, statistics as st
d = json.load(open("out/runs.json"))
MASK = (1 << 64) - 1
T = 2.200985160082949  # Student's, 11 degrees of freedom

def draw(state, n):
    state = x = (state + 0x9e3779b97f4a7c15) & MASK
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return state, (((x ^ (x >> 31)) >> 32) * n) >> 32

def bootstrap(v):
    state, medians = len(v), []
    for _ in range(10000):
        chosen = []
        for _ in v:
            state, i = draw(state, len(v))
            chosen.append(v[i])
        medians.append(st.median(chosen))
    medians.sort()
    out = st.NormalDist().cdf(-math.sqrt(len(v) / (len(v) - 1)) * T)
    def quantile(p):
        at = (len(medians) - 1) * p
        return medians[int(at)] + (at - int(at)) * (medians[int(at) + 1] - medians[int(at)])
    return quantile(out), quantile(1 - out)

def same(what, a, b):
    assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12), (what, a, b)

for c in d["commands"]:
    assert [r["run"] for r in c["runs"]] == list(range(1, 13)), c["runs"]
    for name, s in c["stats"].items():
        v = [r[name] for r in c["runs"] if name in r]
        assert s["n"] == len(v) == 12, name
        same(name, s["mean"], st.mean(v))
        same(name, s["median"], st.median(v))
        same(name, s["stddev"], st.stdev(v))
        same(name, s["p90"], st.quantiles(v, n=10, method="inclusive")[8])
        assert s["min"] == min(v) and s["max"] == max(v) and "p95" not in s
        mad = st.median(abs(x - st.median(v)) for x in v)
        same(name, s["mad"], mad)
        far = [r["run"] for r in c["runs"] if mad and abs(r[name] - st.median(v)) > 3.5 * 1.482602218505602 * mad]
        assert s["outliers"] == far, (name, far, s["outliers"])
        if name in ("exec_s", "wall_s"):
            low, high = bootstrap(v)
            same(name, s["median_low"], low)
            same(name, s["median_high"], high)
    for r in c["runs"]:
        assert 0.07 <= r["wall_s"] and r["wall_s"] > r["exec_s"], r
        same("rest", r["rest_s"], r["wall_s"] - r["exec_s"])
        same("rate", r["gas_per_s"], 37.5e6 / r["exec_s"])
        assert r["minor_faults"] > 0 and r["peak_rss_bytes"] > 1e6 and r["waits"] > 0, r
runs = sorted((r["start_ns"], r["run"], i) for i, c in enumerate(d["commands"]) for r in c["runs"])
assert [r[1] for r in runs] == [i for i in range(1, 13) for _ in "ab"], runs
assert [r[2] for r in runs] == [0, 1, 1, 0] * 6, runs
END
check "the figures are Python's, and the runs were made in turn" python3 reference.py
check "two to warm up and twelve that count" [ "$(cat count.60000)" -eq 14 ]
check "the page has a dot for each run" [ "$(grep -c '<title>run' out/runs.html)" -gt 24 ]
check_not "the page has no script" grep -qi '<script' out/runs.html

for file in json csv; do
	gf compare --fail-on-slower "out/runs.$file"
	check_status "slower is status 7, from $file" 7
	gf compare --fail-on-slower --a 2 --b 1 "out/runs.$file"
	check_status "faster is status 0, from $file" 0
	check "and said" grep -q "exec is 4.7. % faster" "$STDOUT"
done
gf compare --markdown out/runs.json
check "a table for a pull request" grep -q '^| exec | mean | 6[0-9.]* ms | 6[0-9.]* ms | +5' "$STDOUT"
gf compare --json out/runs.json
check "and JSON" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["verdict"] == "worse" and d["design"] == "rounds", d' "$STDOUT"
gf bench -n 5 --csv --phase 'exec=TIME SPENT: ([0-9.]+) ms' -- ./program 60000
cp "$STDOUT" again.csv
gf compare --fail-on-slower again.csv again.csv
check_status "the same is no change" 0
check "runs one after the other are said to be that" grep -q "one side after the other" "$STDOUT"

# What goes wrong.
gf bench -n 3 -- sh -c 'echo why it failed; exit 7'
check_status "a program that fails ends the bench" 1
check "with its status and its words" said 'why it failed'
check "and how to go on" said 'status 7.*--ignore-failure'
gf bench -n 3 --ignore-failure -- sh -c 'exit 7'
check_status "unless that is wanted" 0
gf bench -- ./no-such-program
check_status "no such program" 1
# ethrex-replay, as it prints one run and three; gas is in gigagas.
{ printf '%s\n' '--- Run 1/3 ---' '[METRIC] BLOCK EXECUTION THROUGHPUT (7): 0.633 Ggas/s TIME SPENT: 60 ms. Gas Used: 0.038 (63%), #Txs: 442.'{,,}
	printf '%s\n' '=== Profiling Results (3 runs) ===' '  # '{1,2,3}': prep=   1.10s exec= 61.00ms total=   1.16s'; } >three.txt
echo 'add_block_pipeline execution time: 59.75ms' >one.txt
gf bench -n 2 --json --preset ethrex -- cat three.txt ::: cat one.txt
check_status "what ethrex-replay prints is read" 0
check "of several runs the mean, and of one its time" python3 -c '
import json, sys
three, one = (c["runs"][0] for c in json.load(open(sys.argv[1]))["commands"])
for name, got, wanted in ("block", three["block_s"], 0.06), ("pipeline", three["pipeline_s"], 0.061), ("gas", three["gas"], 38e6), \
        ("rate", three["gas_per_s"], 38e6 / 0.06), ("one", one["block_s"], 0.05975):
    assert abs(got / wanted - 1) < 1e-9, (name, got)' "$STDOUT"
gf bench -n 2 --phase 'exec=never printed ([0-9]+) ms' -- true
check "a phase that was not printed" said "'exec' was not printed in 2 of 2 runs"
gf bench --phase 'exec=no group' -- true
check_status "a pattern without a number" 2
gf bench -o runs.txt -- true
check_status "a file of no known kind" 2
head -c 300 out/runs.json >cut.json
gf compare cut.json again.csv
check_status "a file that is cut" 1
check "is named" said '^gasflame: cut.json: '
gf bench -n 2 --json -- sh -c 'sleep 5 & echo left one behind'
check "a child that is left behind holds nothing up" python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["commands"][0]["stats"]["wall_s"]["max"] < 4' "$STDOUT"

# One recording of all the runs.
cat >busy <<'END'
#!/bin/bash
i=0
while [ $i -lt 20000 ]; do i=$((i + 1)); done
echo "TIME SPENT: 5.0 ms"
END
chmod +x busy
gf bench -n 2 --record nonsense -- true
check_status "nothing that can be recorded" 2
if [ "$(id -u)" -eq 0 ]; then
	gf bench -n 3 -w 1 --json --record cpu --record-output runs.gasflame --phase 'exec=TIME SPENT: ([0-9.]+) ms' \
		-- ./busy ::: ./busy
	check "recorded runs are measured" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert len(d["commands"][1]["runs"]) == 3' "$STDOUT"
	check "each is a mark, with those to warm up" [ "$(sql runs.gasflame "select count(*) from mark where kind = 'run'")" -eq 8 ]
	check "and so is its phase, within it" [ "$(sql runs.gasflame "select count(*) from mark p join mark r on p.start_ns >= r.start_ns and p.end_ns <= r.end_ns where p.kind = 'phase' and r.kind = 'run' and p.end_ns - p.start_ns between 4900000 and 5000001")" -eq 8 ]
	check "with samples inside" above "$(sql runs.gasflame "select count(*) from sample s join mark m on s.time_ns between m.start_ns and m.end_ns where m.kind = 'run'")" 20
	gf run -e nonsense -- true
	check_status "run ends where nothing can be recorded" 2
else
	skip "bench --record" "needs root"
fi

# stat: some counters there always are.
if ! "$GASFLAME" stat -- true >/dev/null 2>&1; then
	skip "stat" "the kernel does not let us count"
	finish
fi
gf stat --json -o stat.json -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; exit 5'
check_status "stat ends as the program does" 5
cat >counted.py <<'END'
import json
d = json.load(open("stat.json"))
c = d["counters"]
assert 1e6 < c["task-clock"]["value"] < d["seconds"] * 1.1e9, d
assert c["minor-faults"]["value"] > 10, d
assert d["hardware"] == ("cycles" in c), d
assert d["hardware"] or not {"instructions", "cache-misses", "branch-misses"} & set(c), d
END
check "CPU time and faults are counted, and nothing is 0 that is not known" python3 counted.py
if grep -q '"hardware":false' stat.json; then
	check "what is missing is said once" [ "$(grep -c 'no counters of the processor' "$STDERR")" -eq 1 ]
else
	check "instructions a cycle" grep -q '"instructions a cycle"' stat.json
fi
if [ "$(id -u)" -eq 0 ] && cp "$GASFLAME" gasflame-for-all && chmod 755 gasflame-for-all &&
	as_user ./gasflame-for-all stat --json -- sleep 0.1 >user.json 2>user.err; then
	check_not "without the kernel's part, switches are not known rather than 0" grep -q '"context-switches":{"value":0,' user.json
else
	skip "stat as nobody" "needs root, and a kernel that lets others count"
fi
# make bench: Ctrl-C keeps the phases that were done, beside the last whole run.
check "bench/run.py writes each phase when it is done" env PYTHONPATH="$(dirname "$0")/../../../bench" PYTHONDONTWRITEBYTECODE=1 python3 - <<'END'
import argparse, json, os, run

run.STATS = "stats"
open("stats", "w").write("0")
os.mkdir("benchbuild")

class Fake(run.Bench):
	def one(self):
		self.lines.append("| one |")
		self.results["one"] = 1
	def two(self):
		self.lines.append("| half of two")
		if not finish:
			raise KeyboardInterrupt

def start():
	bench = Fake(argparse.Namespace(build="benchbuild", quick=False, only="one,two"))
	bench.results["perf"] = ""
	bench.run(["one", "two"], "kept")

finish = True
start()
whole = set(os.listdir("kept"))
assert len(whole) == 2 and not any("unfinished" in name for name in whole), whole
finish = False
try:
	start()
	assert False, "not interrupted"
except KeyboardInterrupt:
	pass
partial = {name for name in os.listdir("kept") if "unfinished" in name}
assert len(partial) == 2 and whole < set(os.listdir("kept")), os.listdir("kept")
text, figures = (open(os.path.join("kept", name)).read() for name in sorted(partial, reverse=True))
assert "| one |" in text and "half" not in text and "Unfinished: one of one, two." in text, text
assert json.loads(figures)["one"] == 1
finish = True
start()
assert set(os.listdir("kept")) == whole, os.listdir("kept")
END
start_workload
gf stat -d 1 --per-thread -p "$PID"
check_status "stat of a running program" 0
check "has its threads" [ "$(grep -cE ' [0-9]+ [a-z]+-[0-9]+$' "$STDOUT")" -gt 2 ]
gf stat --per-thread -- true
check_status "threads are of a target only" 2
gf stat
check_status "nothing to count" 2
finish
