#!/usr/bin/env python3
"""compare.py GASFLAME report|blocks|diff FILE ADDRESS [FILE2 ADDRESS2] - what a command says of a file and of the same recording in
a store, as JSON, must be the same but for what the store does not keep: the target's own name, single waits (the longest one, who
ended it), and times within a window. Prints what differs; the exit status says whether something does.
"""
import json
import subprocess
import sys


def run(gasflame, *arguments):
	done = subprocess.run([gasflame, "-q", *arguments], stdout=subprocess.PIPE, check=False)
	if done.returncode not in (0, 3): # 3: said, but of poor quality
		sys.exit(f"{arguments} ended with {done.returncode}")
	return json.loads(done.stdout)


def ordered(rows, *leave_out):
	return sorted(json.dumps({k: v for k, v in row.items() if k not in leave_out}, sort_keys=True) for row in rows)


def report(gasflame, path):
	kept = {}
	for event in ("cpu", "wait", "queue", "wall"):
		r = run(gasflame, "report", "--format", "json", "--idle", "--limit", "0", "--what", event, path)
		for key in ("host", "kernel", "start_wall_ns", "duration_ns", "event", "unit", "samples", "total"):
			kept[event, key] = r[key]
		for key in ("functions", "modules", "threads"):
			kept[event, key] = ordered(r[key])
		for key in ("samples", "complete", "lost", "frames", "unnamed"):
			kept[event, "quality", key] = r["quality"][key]
		if event == "cpu":
			kept["account"] = r["account"]["total"]
			kept["waits"] = ordered([{k: w[k] for k in ("cause", "function", "ns", "count")} for w in r["waits"]])
	return kept


def blocks(gasflame, path):
	r = run(gasflame, "blocks", "--json", path)
	kept = ("name", "number", "gas", "transactions", "start_ns", "wall_ns")
	return {"median_ns": r["median_ns"], "rows": [{k: row[k] for k in kept} for row in r["rows"]],
		# Waits that leave their block are cut there, and where they begin in it is not kept: the CPU's part is exact.
		"cpu": [row["split"]["dependency_ns"] + row["parallel_ns"] for row in r["rows"]]}


def diff(gasflame, *paths):
	r = run(gasflame, "diff", "--format", "json", *paths)
	return {"functions": ordered([{"name": f["name"], "samples": (f["samples_before"], f["samples_after"]),
				       "self": (f["self"]["before"], f["self"]["after"]),
				       "total": (f["total"]["before"], f["total"]["after"])} for f in r["functions"]])}


gasflame, what, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
make = {"report": report, "blocks": blocks, "diff": diff}[what]
file, store = make(gasflame, *rest[0::2]), make(gasflame, *rest[1::2])
different = 0
for key in file:
	if file[key] != store[key]:
		different += 1
		print(f"{key}:\n  file  {str(file[key])[:1500]}\n  store {str(store[key])[:1500]}")
if not any(file.values()):
	sys.exit("there is nothing to compare")
sys.exit(different > 0)
