#!/usr/bin/env python3
"""graph.py written GASFLAME NAME | read GASFLAME FILE... - call graphs and tables by independent readers.

written: NAME.callgrind, NAME.jsonl, NAME.csv and NAME.samples.csv say what NAME.gasflame has.
read: files of callgrind are read with the costs that callgrind_annotate shows, function by function; the last of them has several
parts, of which callgrind_annotate reads the first header only: it has the totals that its parts say.
"""
import collections
import csv
import json
import re
import shutil
import subprocess
import sys

LINE = re.compile(r"^\s*([\d,]+) \([^)]*\)\s+(.*?):(.*?)(?: \[.*\])?$")


def check(name, fine, detail=""):
	print(f"{'ok' if fine else 'not ok'} - {name}")
	if not fine:
		print(f"# {detail}")


def run(*command):
	return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def annotate(path, event=None, inclusive=False):
	"""What callgrind_annotate says of each function, of all together, and what it complains of."""
	options = [f"--show={event}", f"--sort={event}"] if event else []
	done = run("callgrind_annotate", "--threshold=100", "--auto=no", f"--inclusive={'yes' if inclusive else 'no'}", *options, path)
	costs, total = collections.Counter(), 0
	for line in done.stdout.splitlines():
		if line.endswith("PROGRAM TOTALS"):
			total = int(line.split()[0].replace(",", ""))
		match = LINE.match(line)
		if match:
			costs[match[3]] += int(match[1].replace(",", ""))
	return costs, total, done.stderr


def table(gasflame, path, event=None):
	"""Self cost of each function by gasflame."""
	done = run(gasflame, "report", "--format", "csv", *(["--what", event] if event else []), "-o", "-", path)
	costs = collections.Counter()
	for row in csv.DictReader(done.stdout.splitlines()):
		costs[row["function"]] += int(row["self"])
	return costs


def with_cost(costs):
	return {name: cost for name, cost in costs.items() if cost}


def events_of(path):
	with open(path, encoding="utf-8") as f:
		return next(line for line in f if line.startswith("events:")).split()[1:]


def written_callgrind(gasflame, name, samples):
	if not shutil.which("callgrind_annotate"):
		print("ok - callgrind_annotate # SKIP it is not there")
		return
	for event in events_of(name + ".callgrind"):
		costs, total, complaints = annotate(name + ".callgrind", event)
		expected = sum(int(s["value"]) for s in samples if s["event"] == event)
		check(f"callgrind_annotate: total of {event}", total == expected == sum(costs.values()), f"{total}, {sum(costs.values())}, {expected}")
		check(f"callgrind_annotate reads {event} without a complaint", not complaints, complaints)
		leaves = collections.Counter()
		for s in samples:
			leaves[s["function"] or "[no stack]"] += int(s["value"]) if s["event"] == event else 0
		check(f"callgrind_annotate: {event} of each function", with_cost(costs) == with_cost(leaves),
		      set(with_cost(costs).items()) ^ set(with_cost(leaves).items()))
	costs, total, _ = annotate("one.callgrind", inclusive=True)
	check("inclusive costs count recursion once", costs and max(costs.values()) <= total, f"{costs.most_common(3)} of {total}")
	again = run(gasflame, "report", "--format", "callgrind", "-o", "-", name + ".callgrind").stdout
	with open(name + ".callgrind", encoding="utf-8") as f:
		before = f.read()
	totals = re.compile(r"^totals: .*", re.M)
	check("it comes back with its totals", totals.findall(again) == totals.findall(before), totals.findall(again))


def written_samples(gasflame, name):
	"""The rows of samples.csv, by Python's reader and by SQLite's; they are those of jsonl and of the capture."""
	with open(name + ".samples.csv", newline="", encoding="utf-8") as f:
		samples = list(csv.DictReader(f))
	with open(name + ".jsonl", encoding="utf-8") as f:
		head, *lines = map(json.loads, f)
	lines = [line for line in lines if "event" in line]
	check("a row of csv for each line of jsonl", len(samples) == len(lines) > 0, f"{len(samples)} and {len(lines)}")
	check("the first line is about the recording", head["format"] == "gasflame-jsonl" and head["events"], head)
	same = all(int(s["value"]) == line["value"] and int(s["time_ns"]) == line["time"] and s["event"] == line["event"]
		   and s["stack"] == ";".join(c["name"].replace(";", ":") for c in line["stack"]) for s, line in zip(samples, lines))
	check("with the same times, values and stacks", same)
	query = "select event.name, sum(coalesce(value, period)), sum(coalesce(count, 1)) from sample join event on event.id = event where event.name = 'cpu'"
	done = run(gasflame, "query", "--csv", name + ".gasflame", query).stdout.splitlines()
	if len(done) > 1 and done[1].startswith("cpu,"):
		cpu = [(int(s["value"]), int(s["count"])) for s in samples if s["event"] == "cpu"]
		expected = f"cpu,{sum(v for v, _ in cpu)},{sum(n for _, n in cpu)}"
		check("CPU time as in the capture", done[1] == expected, f"{done[1]} against {expected}")
	again = run(gasflame, "report", "--format", "jsonl", "-o", "-", name + ".jsonl").stdout
	with open(name + ".jsonl", encoding="utf-8") as f:
		check("jsonl comes back byte for byte", again == f.read())
	if shutil.which("sqlite3"):
		said = run("sqlite3", ":memory:", "-cmd", f".import --csv {name}.samples.csv s", "select count(*), sum(value) from s").stdout
		check("sqlite3 imports the rows", said.strip() == f"{len(samples)}|{sum(int(s['value']) for s in samples)}", said)
	else:
		print("ok - sqlite3 imports the rows # SKIP it is not there")
	return samples


def written(gasflame, name):
	samples = written_samples(gasflame, name)
	written_callgrind(gasflame, name, samples)
	with open(name + ".csv", newline="", encoding="utf-8") as f:
		rows = list(csv.DictReader(f))
	event = rows[0]["event"]
	expected = sum(int(s["value"]) for s in samples if s["event"] == event)
	check("the table adds up to all samples", sum(int(r["self"]) for r in rows) == expected > 0, expected)


def read(gasflame, paths):
	for path in paths[:-1]:
		for event in events_of(path):
			costs, _, _ = annotate(path, event)
			ours = table(gasflame, path, event)
			# callgrind_annotate shows no name of a function whose file and name are unknown as we do.
			ours = collections.Counter({"???" if n == "[unknown]" else n: c for n, c in ours.items()})
			check(f"{path}: {event} of each function as callgrind_annotate has it", with_cost(costs) == with_cost(ours),
			      sorted(set(with_cost(costs).items()) ^ set(with_cost(ours).items()))[:6])
	with open(paths[-1], encoding="utf-8") as f:
		parts = [list(map(int, line.split()[1:])) for line in f if line.startswith("totals:")]
	for event, costs in zip(events_of(paths[-1]), zip(*parts)):
		check(f"{paths[-1]}: {event} of all {len(parts)} parts", sum(table(gasflame, paths[-1], event).values()) == sum(costs), costs)
	folded = run(gasflame, "report", "--format", "folded", "--weigh", "value", "-o", "-", paths[0]).stdout
	weights = collections.Counter()
	for line in folded.splitlines():
		stack, _, weight = line.rpartition(" ")
		for name in ("caller_of_most;shared_leaf", "caller_of_some;shared_leaf"):
			weights[name] += int(weight) if stack.endswith(name) else 0
	most, some = weights["caller_of_most;shared_leaf"], weights["caller_of_some;shared_leaf"]
	check("a callee's cost is divided as its calls cost", 1.9 < most / max(some, 1) < 2.1, f"{most} and {some}")
	check("functions that call each other are on one stack", "even;odd" in folded and "fib" in folded)


if sys.argv[1] == "written":
	written(sys.argv[2], sys.argv[3])
else:
	read(sys.argv[2], sys.argv[3:])
