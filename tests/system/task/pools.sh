#!/bin/bash
# What the threads of pools ran (report's pool_work): units of work of tokio, rayon, a pool of the program's own and threads whose
# CPU time is known (truth/task/pools.rs), by their stacks alone.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$("$here/../../../tools/tokio" pools 2>"$tmp/reason") || skip_all "no program with tokio and rayon: $(tail -1 "$tmp/reason")"

gf run -e cpu,wait -F 2999 -o pools.gasflame -- "$program" 40
[ "$STATUS" -ne 3 ] || STATUS=0 # few samples are judged as such below
check_status "its pools are recorded, to their end" 0
grep '^pools::' "$STDOUT" >truth.txt
"$GASFLAME" report --json --limit 0 -o pools.json pools.gasflame 2>/dev/null
relay python3 - <<'END'
import json

with open("truth.txt", encoding="utf-8") as f:
	truth = {name: int(ns) for name, ns in (line.split() for line in f)}
with open("pools.json", encoding="utf-8") as f:
	work = json.load(f)["pool_work"]
units = {u["name"]: (p["pool"], u["kind"], u["cpu_ns"]) for p in work["pools"] for u in p["units"] if u["named"]}
kinds = {"poller": ("tokio", "task"), "boxed": ("tokio", "task"), "Counter": ("tokio", "task"), "read_blocks": ("tokio blocking", "blocking"),
	"drive": ("block_on", "block_on"), "sum_rows": ("rayon", "rayon"), "spawn_on_rayon": ("rayon", "rayon"),
	"watch": ("threads", "thread"), "index_one": ("threads", "job")}
all_ns, samples = sum(truth.values()), sum(p["samples"] for p in work["pools"])
print("# %d samples" % samples)


def error(share):
	"""Five times the error of a sampled share, and a point for what a unit does outside of its own clock."""
	return 1 + 5 * (share * (100 - share) / samples) ** 0.5


for name, kind in kinds.items():
	pool, what, ns = units.get("pools::" + name, ("none", "nothing", 0))
	print("ok" if (pool, what) == kind else "not ok", f"- {name} is a {kind[1]} of {kind[0]}: {what} of {pool}")
	share, real = 100 * ns / work["cpu_ns"], 100 * truth["pools::" + name] / all_ns
	print("ok" if abs(share - real) < error(real) else "not ok", f"- {name} has {real:.1f} % of the CPU time: {share:.1f} %")
named = 100 * work["named_cpu_ns"] / work["cpu_ns"]
print("ok" if named > 95 else "not ok", f"- {named:.1f} % of the pools' CPU time has a name")
END
finish
