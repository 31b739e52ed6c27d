"""budget.py - does --max-overhead keep its promise? Loss of work on four loads, against the limit and the stated floor.

Each load (budgetload.c: computing, switches, system calls, page faults) runs on all CPUs. It is recorded with all collectors
at each limit, between stretches without a recording, in a changing order; the seconds in which the budget settles are left
out. The loss is that of work in a CPU second of the target: what else runs on the machine does not take from it. It is
taken from many short slices, so that one that was disturbed does not count. The 95 % interval is that of the mean of the
rounds, with the spread of all rounds of that load.

A cell is
	kept            the interval is below the promise, or its mean is and the interval reaches beyond it ("within the noise")
	at its floor    the recording said that it cannot keep the promise and what the least is, and the loss is not above that
	BROKEN          the whole interval is above the promise, and above the floor where one was stated
	not decided     else: the interval has the promise, or the floor, within it
"""
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time

from measure import Counters, Urgent, cpu_ns, mean, median, trimmed
from profilers import Gasflame

LOADS = ["cpu", "switches", "syscalls", "faults"]
LIMITS = [1, 3, 10]
WHAT = "cpu,wait,io,fault"
SETTLE_S = 4
SLICE_S = 0.1
# Student's t of a 95 % interval, by degrees of freedom.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 9: 2.26, 12: 2.18, 15: 2.13, 18: 2.10, 21: 2.08, 24: 2.06}


class Load:
	def __init__(self, build, folder, kind):
		self.kind = kind
		self.program = os.path.join(build, "bench", "budgetload")
		self.path = os.path.join(folder, kind + ".counters")
		self.process = None

	def start(self):
		self.process = subprocess.Popen([self.program, self.kind, self.path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
		if self.process.stdout.readline().strip() != b"ready":
			raise RuntimeError(f"{self.program} {self.kind} does not start")
		self.pid = self.process.pid
		self.counters = Counters(self.path)

	def look(self):
		return self.counters.total(), time.monotonic(), cpu_ns(self.pid)

	def throughput(self, seconds):
		"""Units of work in a second, and in a second of its CPU time."""
		slices = []
		with Urgent():
			first = before = self.look()
			while before[1] - first[1] < seconds:
				time.sleep(SLICE_S)
				now = self.look()
				slices.append((now[0] - before[0]) / max(now[2] - before[2], 1) * 1e9)
				before = now
		return (before[0] - first[0]) / (before[1] - first[1]), trimmed(slices)

	def stop(self):
		if self.process:
			self.process.kill() # it has nothing to put away
			self.process.wait()


def said(path):
	"""What the capture says of its cost: percent in the seconds that are measured, the floor, what was thinned."""
	with sqlite3.connect(path) as db:
		counters = dict(db.execute("select name, value from counter where name like 'overhead.%' or name like 'thinned.%'"))
		points = db.execute("select series.name, time_ns, value from point join series on series.id = point.series "
				    "where series.name like 'cost.%' or series.name like 'thin.%' order by time_ns").fetchall()
	cost, thinned = {}, {}
	for name, ns, value in points:
		if name.startswith("thin."):
			thinned[name[5:]] = value
		elif ns > SETTLE_S * 1e9:
			cost.setdefault(name[5:], []).append(value / 1e4)
	return {"cost": {name: mean(values) for name, values in cost.items()}, "floor": counters.get("overhead.floor", 0) / 1e4,
		"thinned": {name: value for name, value in thinned.items() if value > 1},
		"run_ns": {name: value for name, value in counters.items() if name.startswith("overhead.run_")}}


def measure_load(load, gasflame, path, seconds, rounds):
	rows = []
	before = load.throughput(seconds)
	for turn in range(rounds):
		for limit in random.Random(turn).sample(LIMITS, len(LIMITS)):
			print(f"  {load.kind}: {limit} %", file=sys.stderr, flush=True)
			profiler = Gasflame(gasflame, what=WHAT, extra=["--max-overhead", f"{limit}%"])
			profiler.start(load.pid, path, 999)
			time.sleep(SETTLE_S)
			during = load.throughput(1.5 * seconds)
			profiler.finish()
			after = load.throughput(seconds)
			wall_loss, loss = (100 * (1 - x / mean([a, b])) for x, a, b in zip(during, before, after))
			rows.append({"load": load.kind, "limit": limit, "loss": loss, "wall_loss": wall_loss,
				     "noise": 100 * (1 - after[1] / before[1]), **said(path)})
			profiler.remove()
			before = after
	return rows


def measure_budget(build, folder, quick):
	"""(rows, lines of the table)"""
	seconds, rounds = (1, 2) if quick else (1.2, 3)
	subprocess.run(["ninja", "-C", build, "bench/budgetload"], check=True, stdout=subprocess.DEVNULL)
	rows = []
	for kind in LOADS:
		load = Load(build, folder, kind)
		try:
			load.start()
			rows += measure_load(load, os.path.join(build, "src", "cmd", "gasflame"), os.path.join(folder, "recording"),
					     seconds, rounds)
		finally:
			load.stop()
	return rows, table(rows, rounds)


def half_width(rows, rounds):
	"""Of the 95 % interval of a cell's mean: the spread within the cells of a load, all of them together."""
	cells = [[row["loss"] for row in rows if row["limit"] == limit] for limit in LIMITS]
	freedom = sum(len(cell) - 1 for cell in cells)
	spread = (sum((x - mean(cell)) ** 2 for cell in cells for x in cell) / max(freedom, 1)) ** 0.5
	return T95.get(freedom, 2.0) * spread / rounds ** 0.5


def table(rows, rounds):
	lines = ["", f"## The budget: gasflame -e {WHAT} --max-overhead, {rounds} recordings of each, between stretches without", "",
		 "| load | promise | loss of work a CPU second (95 % interval) | stated floor | verdict | own account | by collector | "
		 "thinned, 1 in | loss of throughput |",
		 "|---|---|---|---|---|---|---|---|---|"]
	verdicts = []
	for kind in dict.fromkeys(row["load"] for row in rows):
		these = [row for row in rows if row["load"] == kind]
		half = half_width(these, rounds)
		for limit in LIMITS:
			verdict, line = judge_cell(kind, limit, [row for row in these if row["limit"] == limit], half)
			lines.append(line)
			verdicts.append(verdict)
		lines.append(f"| {kind} | none against none | {mean([row['noise'] for row in these]):.1f} % "
			     f"(each ± {statistics.stdev(row['noise'] for row in these):.1f}) | | | | | | |")
	counts = {word: sum(v.startswith(word) for v in verdicts) for word in ("kept", "at its floor", "not decided", "BROKEN")}
	return lines + ["", f"Of {len(verdicts)} cells: " + ", ".join(f"{n} {word}" for word, n in counts.items()) + "."]


def judge_cell(kind, limit, rows, half):
	loss = mean([row["loss"] for row in rows])
	floor = median([row["floor"] for row in rows])
	last = rows[-1]
	verdict = judge(limit, floor, loss, loss - half, loss + half)
	costs = ", ".join(f"{name} {value:.2f}" for name, value in sorted(last["cost"].items(), key=lambda item: -item[1])
			  if name != "total" and value >= 0.005)
	thinned = ", ".join(f"{name} {one_in}" for name, one_in in last["thinned"].items())
	totals = [row["cost"]["total"] for row in rows if "total" in row["cost"]]
	return verdict, (f"| {kind} | {limit} % | {loss:.1f} % ({loss - half:.1f} … {loss + half:.1f}) | {f'{floor:.1f} %' if floor else ''} | "
			 f"{verdict} | {f'{mean(totals):.1f} %' if totals else ''} | {costs} | {thinned} | "
			 f"{mean([row['wall_loss'] for row in rows]):.1f} % |")


def judge(limit, floor, loss, low, high):
	"""Is a loss within the promise, or within the stated floor?"""
	if loss <= limit:
		return "kept" if high <= limit else "kept, within the noise"
	if floor > limit and loss <= floor:
		return "at its floor" if high <= floor else "at its floor, within the noise"
	return "BROKEN" if low > max(limit, floor) else "not decided"
