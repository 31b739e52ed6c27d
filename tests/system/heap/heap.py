#!/usr/bin/env python3
"""heap.py GASFLAME CAPTURE TRUTH exact|killed|sampled - compares a recording's figures with what the program said of itself."""
import json
import math
import subprocess
import sys

gasflame, capture, truth_path, how = sys.argv[1:]
# Who is killed may be within a call, which is counted but not seen: of at most so many bytes.
unseen = 48 if how == "killed" else 0
how = "exact" if how == "killed" else how
said = subprocess.run([gasflame, "report", "--format", "json", "--limit", "0", capture], capture_output=True, text=True,
		      check=False)
heap = json.loads(said.stdout)["heap"]
functions = {row["name"].split("::")[-1]: row for row in heap["functions"]}
interval = max(heap["interval_bytes"], 1)
bad = []


def compare(what, true, row, one=0):
	"""A figure may be off by four of its errors: once in 16,000 times by chance. one: bytes of an object; of a few large ones
	nearly all are sampled, and what is missing are whole objects, up to three more."""
	if how == "exact":
		allowed = 0
	else:
		# Of few samples the stated error is itself uncertain.
		allowed = 4 * max(row["error_bytes"], math.sqrt(true * interval)) + 4 * interval
		if abs(row["bytes"] - true) > 4 * row["error_bytes"] + 64 + 3 * one and true > 100 * interval:
			bad.append(f"{what}: {row['bytes']} ± {row['error_bytes']}, true is {true}")
	if abs(row["bytes"] - true) > allowed:
		bad.append(f"{what}: {row['bytes']}, true is {true}, allowed {allowed:.0f}")


none = {"bytes": 0, "objects": 0, "error_bytes": 0}
empty = {"live": none, "allocated": none, "temporary": none, "peak": none}
held = 0
for line in open(truth_path, encoding="ascii"):
	words = line.split()
	if len(words) != 4:
		continue
	name, (live, allocated, calls) = words[0], map(int, words[1:])
	row = functions.get(name, empty)
	one = allocated / max(calls, 1)
	compare(name + " live", live, row["live"], one)
	compare(name + " allocated", allocated, row["allocated"], one)
	if how == "exact" and row["allocated"]["objects"] != calls:
		bad.append(f"{name}: {row['allocated']['objects']} objects, true is {calls}")
	if name.startswith("churn"):
		compare(name + " temporary", allocated, row["temporary"], one)
	if name.startswith("hold"):
		compare(name + " peak", allocated, row["peak"], one)
		compare(name + " temporary", 0, row["temporary"])
		held = allocated

if not held:
	bad.append("the program did not say what is true")
# The hooks' own count against what was sampled.
if unseen and 0 <= heap["counted_bytes"] - heap["allocated"]["bytes"] <= unseen:
	heap["counted_bytes"] = heap["allocated"]["bytes"]
	heap["counted"] = min(heap["counted"], heap["allocated"]["objects"] + 1)
	heap["allocated"]["objects"] = heap["counted"]
compare("all allocated", heap["counted_bytes"], heap["allocated"])
if how == "exact" and (heap["allocated"]["objects"] != heap["counted"] or not heap["exact"] or heap["lost"]):
	bad.append(f"{heap['allocated']['objects']} objects of {heap['counted']}, {heap['lost']} lost")
print("\n".join(bad))
sys.exit(1 if bad else 0)
