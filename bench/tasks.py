"""tasks.py - what it costs to see async tasks: a poll and a wake that do nothing, and a node under load.

A node has the slots of its vtables hooked and put back again and again while it is recorded, as heap.py does it.
"""
import os
import re
import subprocess
import sys
import time

from heap import counters, measure_slices, start_recording, stop_recording
from measure import bootstrap

TIMEOUT_S = 300


def measure_calls(build, quick):
	"""More ns for a poll and a wake, asleep and at work, in turns with none: {state: [poll, wake]}."""
	system = os.path.join(build, "tests", "system")
	said = subprocess.run([os.path.join(system, "taskhooks"), "bench", os.path.join(system, "truth", "truth-vtables"),
			       "15" if quick else "101"], capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
	return {state: [float(poll), float(wake)]
		for state, poll, wake in re.findall(r"bench ([a-z ]+): poll \+?(-?[\d.]+) ns, wake \+?(-?[\d.]+) ns", said)}


def measure_node(target, gasflame, folder, quick):
	path = os.path.join(folder, "tasks.gasflame")
	rounds, seconds = (10, 1) if quick else (60, 1)
	target.start()
	try:
		process = start_recording(gasflame, target.pid, path, events="task")
		time.sleep(5 if quick else 30)
		stop_recording(process)
		row = {"counters": counters(path), "rounds": rounds}
		print(f"  {target.name}: {rounds} slices with and without", file=sys.stderr, flush=True)
		process = start_recording(gasflame, target.pid, path, events="task")
		ratios = measure_slices(target, "task", rounds, seconds)
		stop_recording(process)
		os.kill(target.pid, 0)
	finally:
		target.stop()
	row["ratios"] = {clock: bootstrap(values) for clock, values in ratios.items()}
	return row


def sum_of(counted, end):
	return sum(value for name, value in counted.items() if name.startswith("task.") and name.endswith(end))


def table_node(name, row):
	counted, cpu, wall = row["counters"], row["ratios"]["cpu"], row["ratios"]["wall"]
	return ["", f"## -e task attached to {name} under load", "",
		f"- {sum_of(counted, '.polls'):,} polls, {sum_of(counted, '.wakes'):,} wakes of {counted.get('task.vtables', 0)} vtables, "
		f"{counted.get('task.lost', 0)} lost",
		f"- the node's throughput, {row['rounds']} slices with hooks between slices without: {cpu[0]:.3f} per CPU second "
		f"({cpu[1]:.3f} … {cpu[2]:.3f}), {wall[0]:.3f} per wall second ({wall[1]:.3f} … {wall[2]:.3f})"]


def measure_tasks(build, folder, targets, quick):
	"""(rows, lines of the tables)"""
	rows = {"calls": measure_calls(build, quick)}
	lines = ["", "## Hooks of tasks: more ns for a call that does nothing", "", "| | poll | wake |", "|---|---|---|"]
	lines += [f"| {state} | {poll:.2f} | {wake:.2f} |" for state, (poll, wake) in rows["calls"].items()]
	for target in targets:
		if target.name == "anvil":
			rows["node"] = measure_node(target, os.path.join(build, "src", "cmd", "gasflame"), folder, quick)
			lines += table_node(target.name, rows["node"])
	return rows, lines
