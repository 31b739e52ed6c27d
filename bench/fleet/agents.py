#!/usr/bin/env python3
"""agents.py [--quick] [BUILD [BEFORE]] - what a node costs a store in a day, from the windows of a real agent; and how fast an agent delivers a spool
that waited for a store that was away.

The agent records the bundled workload (a fifth of a CPU) and anvil under its load, as it does by default but with a budget that leaves nothing out, in windows of 60 s. What a target
takes is measured in tables of its own, with all parts merged. For the second measurement its windows are copied, each with another time and number, into a new spool:
1,000 of them, or 100 with --quick. BEFORE: another gasflame, to compare that with.
"""
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
from fleet.shards import Shards
from measure import cpu_ns
from targets import Anvil, stop_process, wait_until

DAY_S, WINDOW_S, MINUTE_NS = 86400, 60, 60 * 10**9
TABLES = ["windows", "samples", "threads", "blocks", "counters", "points", "stacks", "frames"]


def say(text):
	print(f"  {text}", file=sys.stderr, flush=True)


class Agent:
	"""gasflame agent, with a folder for its configuration and spool."""

	def __init__(self, gasflame, folder, targets, sinks):
		os.makedirs(folder, exist_ok=True)
		with socket.socket() as s:
			s.bind(("127.0.0.1", 0))
			self.port = s.getsockname()[1]
		path = os.path.join(folder, "agent.conf")
		lines = ["[agent]", f"spool = {folder}/spool", f"window = {WINDOW_S}s", "spool-size = 20G", "budget = 40%", "memory = 1G", f"listen = 127.0.0.1:{self.port}"]
		for name, what in targets.items():
			lines += [f"[target {what}]", f"name = {name}"]
		for name, url in sinks.items():
			lines += [f"[sink {name}]", f"url = {url}"]
		with open(path, "w", encoding="utf-8") as f:
			f.write("\n".join(lines) + "\n")
		with open(os.path.join(folder, "agent.log"), "wb") as log:
			self.process = subprocess.Popen([gasflame, "agent", path], stdout=log, stderr=log)

	def status(self):
		with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status.json", timeout=5) as answer:
			return json.load(answer)

	def sink(self, name):
		return next(s for s in self.status()["sinks"] if s["name"] == name)

	def stop(self):
		stop_process(self.process)


# --- bytes a day ---

def sizes_of(store, target):
	"""Bytes on disk and rows of what is one target's, by table."""
	for table in TABLES:
		names = "stack IN (SELECT stack FROM samples WHERE target = '{0}')"
		where = {"stacks": names, "frames": "frame IN (SELECT arrayJoin(frames) FROM stacks WHERE " + names + ")"}.get(table, "target = '{0}'").format(target)
		store.ask(0, f"CREATE TABLE only_{table} AS {table}")
		store.ask(0, f"INSERT INTO only_{table} SELECT * FROM {table} WHERE {where}")
		store.ask(0, f"OPTIMIZE TABLE only_{table} FINAL")
	sizes = {table: store.sizes().get("only_" + table, (0, 0)) for table in TABLES}
	for table in TABLES:
		store.ask(0, f"DROP TABLE only_{table}")
	return sizes


def measure_bytes(gasflame, build, folder, store, minutes):
	"""By target; and the folder with the windows as captures."""
	captures = os.path.join(folder, "captures")
	workload = subprocess.Popen([os.path.join(build, "workload", "gasflame-workload"), "--quiet", "--seconds", "100000", "--share", "20"])
	anvil, agent = Anvil(folder), None
	try:
		anvil.start()
		agent = Agent(gasflame, os.path.join(folder, "record"), {"workload": f"pid:{workload.pid}", "anvil": f"pid:{anvil.pid}"},
			      {"store": store.url, "files": "file://" + captures})
		say(f"an agent records the workload and anvil for {minutes} minutes")
		wait_until(lambda: agent.sink("store")["delivered"] >= 2 * minutes, 60 * minutes + 120, "the agent's windows are in the store")
	finally:
		if agent:
			agent.stop()
		anvil.stop()
		stop_process(workload)
	figures = {}
	for target in ("workload", "anvil"):
		seconds = int(store.ask(0, f"SELECT sum(duration_ns) FROM windows WHERE target = '{target}'")) / 1e9
		tables = sizes_of(store, target)
		names = sum(tables[t][0] for t in ("stacks", "frames"))
		rows = sum(size for t, (size, _) in tables.items() if t not in ("stacks", "frames"))
		figures[target] = {"seconds": seconds, "tables": tables, "names_bytes": names, "rows_bytes": rows, "rows_bytes_per_day": rows * DAY_S / seconds,
				   "samples_per_window": tables["samples"][1] * WINDOW_S / seconds, "samples_per_day": tables["samples"][1] * DAY_S / seconds}
		say(f"{target}: {figures[target]['rows_bytes_per_day'] / 1e6:.1f} MB a day, and {names / 1e3:.0f} KB of names")
	return figures, captures


# --- a spool that waited ---

def copy_windows(captures, spool, count):
	"""So many windows, a minute apart, in the queue of the sink."""
	found = [os.path.join(top, name) for top, _, names in os.walk(captures) for name in sorted(names)]
	new = os.path.join(spool, "to", "store")
	os.makedirs(new, mode=0o700)
	for folder in (spool, os.path.join(spool, "to")):
		os.chmod(folder, 0o700)
	for i in range(count):
		part = os.path.join(new, "copy")
		shutil.copy(found[i % len(found)], part)
		db = sqlite3.connect(part)
		start = db.execute("select value from meta where key = 'start_wall_ns'").fetchone()[0] - (i + 60) * MINUTE_NS
		db.execute("update meta set value = ? where key = 'start_wall_ns'", (start,))
		db.execute("update counter set value = ? where name = 'agent.sequence'", (i + 1,))
		db.commit()
		db.close()
		when = time.strftime("%Y%m%dT%H%M%S", time.gmtime(start // 10**9))
		os.chmod(part, 0o600)
		os.rename(part, os.path.join(new, f"{when}.{start // 10**6 % 1000:03}Z-{i + 1:06}-{i % len(found):08x}.gasflame"))


def measure_spool(gasflame, folder, store, captures, count):
	"""Windows a second from a full spool to an empty one, and what is in the store then."""
	where = os.path.join(folder, "waiting")
	shutil.rmtree(where, ignore_errors=True)
	os.makedirs(where)
	copy_windows(captures, os.path.join(where, "spool"), count)
	store.ask_all("DROP DATABASE IF EXISTS bench", "default")
	subprocess.run([gasflame, "store", "init", store.url], check=True, stderr=subprocess.DEVNULL)
	say(f"{count} windows wait in a spool")
	start = time.monotonic()
	agent = Agent(gasflame, where, {"nobody": "name:no-such-program"}, {"store": store.url})
	try:
		wait_until(lambda: agent.sink("store")["delivered"] >= count and agent.sink("store")["waiting"] == 0, 600, "all windows are delivered")
		seconds = time.monotonic() - start
		sender = agent.status()["sender_pid"]
		cpu = cpu_ns(sender) / 1e9
	finally:
		agent.stop()
	there = sum(int(n) for n in store.ask_all("SELECT uniqExact(window_id) FROM windows"))
	twice = sum(int(n) for n in store.ask_all("SELECT count() - uniqExact(window_id) FROM windows"))
	if (there, twice) != (count, 0):
		raise RuntimeError(f"{there} of {count} windows are there, {twice} twice")
	say(f"{count / seconds:.1f} windows a second")
	return {"windows": count, "seconds": seconds, "windows_per_second": count / seconds, "sender_cpu_s": cpu}


def measure_agents(build, folder, quick, before=None):
	"""Figures, and lines of a table. before: another gasflame, to compare the delivery with."""
	gasflame = os.path.join(build, "src", "cmd", "gasflame")
	own = tempfile.mkdtemp(prefix="agents-", dir=folder)
	try:
		with Shards(own, 1) as store:
			subprocess.run([gasflame, "store", "init", store.url], check=True, stderr=subprocess.DEVNULL)
			nodes, captures = measure_bytes(gasflame, build, own, store, 1 if quick else 3)
			spools = {"": measure_spool(gasflame, own, store, captures, 100 if quick else 1000)}
			if before:
				spools["before"] = measure_spool(before, own, store, captures, 100 if quick else 1000)
	finally:
		shutil.rmtree(own, ignore_errors=True)
	lines = ["", "## An agent's windows in a store", "", "| a node at 19 Hz, windows of 60 s | recorded | rows of samples a window | a day, without names | of it samples | threads | stacks and frames |",
		 "|---|---|---|---|---|---|---|"]
	for target, n in nodes.items():
		day = DAY_S / n["seconds"] / 1e6
		lines += [f"| {target} | {n['seconds']:.0f} s | {n['samples_per_window']:.0f} | {n['rows_bytes_per_day'] / 1e6:.1f} MB | {n['tables']['samples'][0] * day:.1f} MB | "
			  f"{n['tables']['threads'][0] * day:.1f} MB | {n['names_bytes'] / 1e3:.0f} KB |"]
	lines += ["", *[f"A spool of {s['windows']:,} windows{', ' + name if name else ''}: {s['seconds']:.1f} s, {s['windows_per_second']:.1f} windows a second, {s['sender_cpu_s']:.1f} s of CPU "
			"time of the process that delivers." for name, s in spools.items()]]
	return {"nodes": nodes, "spools": spools}, lines


if __name__ == "__main__":
	arguments = [a for a in sys.argv[1:] if a != "--quick"]
	where = os.path.abspath(arguments[0] if arguments else "build")
	print("\n".join(measure_agents(where, where, "--quick" in sys.argv, arguments[1] if len(arguments) > 1 else None)[1]))
