#!/usr/bin/env python3
"""store.py [--quick] [BUILD] - a store of ten million rows on two servers: how long a report of one node's hour takes, each map of all nodes
and a day, by `store map` and by the page's own requests, and `watch`; and what roll-ups cost.

The rows are made by the servers themselves (fill.py). The servers are Debian's clickhouse-server, with empty stores in a folder of their own. With --quick a tenth
of the windows.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
from measure import median
from fleet.fill import DAY, NODES, fill, names_of
from fleet.shards import Shards

GOAL_S, GOAL_WATCH_S, SHARDS = 2, 5, 2


def say(text):
	print(f"  {text}", file=sys.stderr, flush=True)


class Rows:
	"""What was measured, in its order."""

	def __init__(self):
		self.all = {}

	def time(self, name, job, goal=None, rounds=5):
		seconds = []
		for _ in range(rounds):
			start = time.monotonic()
			job()
			seconds.append(time.monotonic() - start)
		self.all[name] = {"median_s": median(seconds), "longest_s": max(seconds), "rounds": rounds, "goal_s": goal}
		say(f"{median(seconds):6.2f} s, longest {max(seconds):.2f} s: {name}")

	def lines(self):
		yield from ["| | median | longest | wanted |", "|---|---|---|---|"]
		for name, t in self.all.items():
			wanted = "" if not t["goal_s"] else f"{t['goal_s']} s" + ("" if t["median_s"] <= t["goal_s"] else ": **missed**")
			longest = f"{t['longest_s']:.2f} s" if t["rounds"] > 1 else ""
			yield f"| {name} | {t['median_s']:.2f} s | {longest} | {wanted} |"


def run(command, fine=(0, 3)):
	done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
	if done.returncode not in fine:
		raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode()}")
	return done.stdout


class Page:
	"""gasflame serve --store, asked as the page of nodes asks."""

	def __init__(self, gasflame, url):
		self.child = subprocess.Popen([gasflame, "serve", "--store", url + "?timeout=2m"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
		self.base = self.child.stdout.readline().strip().split("fleet/")[0]

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.child.kill()
		self.child.wait()

	def ask(self, what, **more):
		q = urllib.parse.urlencode({"from": DAY, "to": DAY + 86400, "page": "bench", **more})
		with urllib.request.urlopen(f"{self.base}fleet/{what}?{q}", timeout=120) as answer:
			return answer.read()


def maps(rows, gasflame, store, page, figures, note=""):
	"""A day of all nodes by ten minutes: by the command, and by the request of the page."""
	for title, options in figures:
		words = [w for key, value in options.items() for w in (f"--{key}", value)]
		rows.time(f"`store map`: {title}{note}",
			  lambda w=words: run([gasflame, "store", "map", "--from", str(DAY), "--to", str(DAY + 86400), "--slot", "10m", "--json", *w, store.url + "?timeout=2m"]), GOAL_S)
		rows.time(f"the page: {title}{note}", lambda o=options: page.ask("map", **o), GOAL_S)


def measure_reading(rows, gasflame, store, names):
	early = DAY + 7200
	hour = f"{store.url}?timeout=2m&target=node-%d&from={early}&to={early + 3600}"
	functions = [("share of a function that few stacks have", {"figure": "function", "name": names["few"]}),
		     ("share of a function that many stacks have", {"figure": "function", "name": names["many"]}),
		     ("share of a function without what it calls", {"figure": "self", "name": names["few"]})]
	rows.time("`report` of an hour of one node", lambda: run([gasflame, "report", "--format", "text", hour % 7]), GOAL_S)
	rows.time("the same, of the day", lambda: run([gasflame, "report", "--format", "text", f"{store.url}?timeout=2m&target=node-7"]), None, 3)
	rows.time("`diff` of two nodes' hours", lambda: run([gasflame, "diff", "--format", "text", hour % 7, hour % 8]))
	with Page(gasflame, store.url) as page:
		rows.time("the page: names of nodes, releases and labels", lambda: page.ask("nodes"), GOAL_S)
		maps(rows, gasflame, store, page, [("CPU time", {"figure": "cpu"}), ("blocks, mean", {"figure": "block-mean"}),
						   ("blocks, 95th percentile", {"figure": "block-p95"}), ("blocks, longest", {"figure": "block-max"}),
						   ("share of a cause", {"figure": "cause", "name": "lock"}), ("resident memory", {"figure": "rss"})])
		maps(rows, gasflame, store, page, functions, ", from samples")
		say(f"roll-ups of {NODES} nodes and {SHARDS} servers")
		rows.time("`store rollup` of a day of one node", lambda: run([gasflame, "store", "rollup", "--target", "node-7", store.url]), None, 1)
		rows.time(f"`store rollup` of a day of {NODES - 1} nodes", lambda: run([gasflame, "store", "rollup", store.url]), None, 1)
		store.merge()
		maps(rows, gasflame, store, page, functions, ", from roll-ups")
		rows.time("the page: functions to choose from", lambda: page.ask("choices", figure="function"), GOAL_S)


def measure_watch(rows, gasflame, store, names):
	"""What was planted is found: a function, a cause, the time of blocks."""
	sides = [("six hours with the six before", ["--from", str(DAY + 43200), "--to", str(DAY + 64800)]),
		 ("two releases of twelve hours", ["--from", str(DAY), "--to", str(DAY + 86400), "--release", "v2", "--against", "v1"])]
	for title, options in sides:
		command = [gasflame, "watch", *options, store.url + "?timeout=2m"]
		rows.time(f"`watch` of {NODES} nodes, {title}", lambda c=command: run(c), GOAL_WATCH_S, 3)
		found = run(command).decode().split("\n\n")[1]
		for name in (names["planted"], "lock", "block"):
			if name not in found:
				raise RuntimeError(f"watch does not find {name}:\n{found}")


def measure_store(build, folder, quick):
	"""Figures, and lines of a table."""
	gasflame = os.path.join(build, "src", "cmd", "gasflame")
	own = tempfile.mkdtemp(prefix="store-", dir=folder)
	rows = Rows()
	try:
		with Shards(own, SHARDS) as store:
			run([gasflame, "store", "init", store.url])
			start = time.monotonic()
			fill(store, 10 if quick else 1, say)
			store.merge()
			sizes = store.sizes()
			filled_s = time.monotonic() - start
			names = names_of(store)
			measure_reading(rows, gasflame, store, names)
			measure_watch(rows, gasflame, store, names)
			rolled = store.sizes()
	finally:
		shutil.rmtree(own, ignore_errors=True)
	functions = rolled["functions"]
	lines = ["", "## A store", "", f"{sizes['samples'][1]:,} rows of samples of {NODES} nodes on {SHARDS} servers, {sum(s for s, _ in sizes.values()) / 1e6:.0f} MB on disk, made in "
		 f"{filled_s:.0f} s. Maps are of {NODES} nodes and a day by ten minutes.", "", *rows.lines(), "",
		 f"Roll-ups: {functions[1]:,} rows of functions, {functions[0] / 1e6:.1f} MB, {functions[0] / 1e6 / NODES:.2f} MB a node and day."]
	return {"rows": rows.all, "sizes": sizes, "rolled": rolled, "filled_s": filled_s}, lines


if __name__ == "__main__":
	arguments = [a for a in sys.argv[1:] if a != "--quick"]
	where = os.path.abspath(arguments[0] if arguments else "build")
	figures, text = measure_store(where, where, "--quick" in sys.argv)
	print("\n".join(text))
