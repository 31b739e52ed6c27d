"""budget.py - does --max-overhead keep its promise? Loss of throughput on four loads, against the limit and the stated floor.

Each load (budgetload.c: computing, switches, system calls, page faults) runs on all CPUs. It is recorded with all collectors
at each limit, between stretches without a recording; the seconds in which the budget settles are left out. A loss is
1 - the rate against the mean before and after, over several rounds in a changing order, with its 95 % interval.

The promise is judged by the work of a CPU second of the target, which does not depend on what else runs. It is kept
where the whole interval is below the limit, and broken where it is above. Where the interval has the limit within it
and is wider than the limit, there is no statement. Above the limit, the floor that the recording states is what counts.
"""
import os
import random
import sqlite3
import subprocess
import sys
import time

from measure import Counters, Urgent, bootstrap, cpu_ns, mean, median
from profilers import Gasflame

LOADS = ["cpu", "switches", "syscalls", "faults"]
LIMITS = [1, 3, 10]
WHAT = "cpu,wait,io,fault"
SETTLE_S = 4


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

	def throughput(self, seconds):
		"""Units of work a second, and a second of its CPU time: that does not care for what else runs."""
		with Urgent():
			units, begun, cpu = self.counters.total(), time.monotonic(), cpu_ns(self.pid)
			time.sleep(seconds)
			units = self.counters.total() - units
			return units / (time.monotonic() - begun), units / ((cpu_ns(self.pid) - cpu) / 1e9)

	def stop(self):
		if self.process:
			self.process.kill() # it has nothing to put away
			self.process.wait()


def said(path):
	"""What the capture says of its cost: percent in the seconds that are measured, the floor, what was thinned."""
	with sqlite3.connect(path) as db:
		counters = dict(db.execute("select name, value from counter where name like 'overhead.%' or name like 'thinned.%'"))
		points = db.execute("select series.name, time_ns, value from point join series on series.id = point.series "
				    "where series.name = 'cost.total' or series.name like 'thin.%' order by time_ns").fetchall()
	cost = [value / 1e4 for name, ns, value in points if name == "cost.total" and ns > SETTLE_S * 1e9]
	thinned = {}
	for name, _, value in points:
		if name.startswith("thin.") and value > 1:
			thinned[name[5:]] = value
	return {"cost": mean(cost) if cost else None, "floor": counters.get("overhead.floor", 0) / 1e4, "thinned": thinned}


def measure_load(load, gasflame, path, seconds, rounds):
	rows = []
	before = load.throughput(seconds)
	for turn in range(rounds):
		for limit in random.Random(turn).sample(LIMITS, len(LIMITS)):
			print(f"  {load.kind}: {limit} %", file=sys.stderr, flush=True)
			profiler = Gasflame(gasflame, what=WHAT, extra=["--max-overhead", f"{limit}%"])
			profiler.start(load.pid, path, 999)
			time.sleep(SETTLE_S)
			during = load.throughput(seconds)
			profiler.finish()
			after = load.throughput(seconds)
			loss, cpu_loss = (100 * (1 - x / mean([a, b])) for x, a, b in zip(during, before, after))
			rows.append({"load": load.kind, "limit": limit, "loss": loss, "cpu_loss": cpu_loss,
				     "noise": 100 * (1 - after[0] / before[0]), **said(path)})
			profiler.remove()
			before = after
	return rows


def measure_budget(build, folder, quick):
	"""(rows, lines of the table)"""
	seconds, rounds = (2, 2) if quick else (4, 9)
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
	return rows, table(rows, seconds, rounds)


def table(rows, seconds, rounds):
	lines = ["", f"## The budget: gasflame -e {WHAT} --max-overhead, {rounds} times {seconds} s of each, between stretches without", "",
		 "| load | promised | loss of throughput (95 % interval) | of work a CPU second | own account | stated floor | thinned, 1 in | kept, by work a CPU second |",
		 "|---|---|---|---|---|---|---|---|"]
	for kind in dict.fromkeys(row["load"] for row in rows):
		these = [row for row in rows if row["load"] == kind]
		for limit in LIMITS:
			lines.append(line(kind, limit, [row for row in these if row["limit"] == limit]))
		value, low, high = bootstrap([row["noise"] for row in these])
		lines.append(f"| {kind} | none against none | {value:.1f} % ({low:.1f} … {high:.1f}) | | | | | |")
	return lines


def line(kind, limit, rows):
	value, low, high = bootstrap([row["loss"] for row in rows])
	cpu = bootstrap([row["cpu_loss"] for row in rows])
	cost = [row["cost"] for row in rows if row["cost"] is not None]
	floor = median([row["floor"] for row in rows])
	thinned = ", ".join(f"{name} {one_in}" for name, one_in in rows[-1]["thinned"].items())
	return (f"| {kind} | {limit} % | {value:.1f} % ({low:.1f} … {high:.1f}) | {cpu[0]:.1f} % ({cpu[1]:.1f} … {cpu[2]:.1f}) | "
		f"{f'{median(cost):.1f} %' if cost else ''} | {f'{floor:.1f} %' if floor else ''} | {thinned} | {judge(limit, floor, *cpu)} |")


def judge(limit, floor, value, low, high):
	"""Is a loss within the limit, or the stated floor? Its 95 % interval decides, where it is narrow enough."""
	if high <= limit:
		return "yes"
	if low <= limit and high - low > limit:
		return "no statement"
	if low <= limit:
		return "yes, within the noise" if value <= limit else "not certain"
	return "its floor" if low <= floor else "no"
