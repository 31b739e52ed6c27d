"""switches.py - recordings of a program that switches 100,000 times a second, by who can tell where it waits.

Each profiler records for 30 s, several times, in an order that changes; before and after each recording the
program runs alone for some seconds, and its throughput during the recording is compared with those.
"""
import glob
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time

from measure import mean, median
from profilers import Gasflame, Recorder
from targets import Switches

OFFCPUTIME = "/usr/sbin/offcputime"


def task_totals(pid):
	"""Of all its threads: ns on a CPU, and how often they were put there."""
	run = times = 0
	for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
		with open(path, encoding="ascii") as f:
			words = f.read().split()
		run += int(words[0])
		times += int(words[2])
	return run, times


def bpf_programs():
	"""Those in the kernel now, with their statistics."""
	listed = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=False,
				env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
	return json.loads(listed.stdout or "[]")


class GasflameWaits(Gasflame):
	name = "gasflame -e wait"

	def __init__(self, program):
		super().__init__(program, what="wait")

	def found(self, truth):
		counters = self.counters()
		with sqlite3.connect(self.path) as db:
			life, = db.execute("select sum(run_ns + queue_ns + blocked_ns) from thread").fetchone()
			threads, = db.execute("select count(*) from thread").fetchone()
			duration, = db.execute("select value from meta where key = 'duration_ns'").fetchone()
		return {"bpf_ns": counters.get("bpf.run_ns", 0), "lost": counters.get("waits.lost", 0),
			"seen": life / (int(duration) * threads), "bpf_s": int(duration) / 1e9,
			"of": "of all threads' time", "complete": self.count_complete()}


class PerfSwitches(Recorder):
	name = "perf record -e sched:sched_switch -g"

	def start(self, pid, path, hz):
		self.path = path
		self.launch(["perf", "record", "-q", "-e", "sched:sched_switch", "-g", "-p", str(pid), "-o", path])
		time.sleep(1)
		if self.process.poll() is not None:
			raise RuntimeError(f"{self.name}: {self.log()[-300:]}")

	def found(self, truth):
		said = subprocess.run(["perf", "report", "--stats", "-i", self.path], capture_output=True, text=True, check=False)
		match = re.search(r"SAMPLE events:\s+(\d+)", said.stdout)
		samples = int(match.group(1)) if match else 0
		return {"lost": max(0, truth["times"] - samples), "seen": samples / truth["times"], "of": "of the switches"}


class Offcputime(Recorder):
	name = "libbpf-tools' offcputime"

	def start(self, pid, path, hz):
		self.path = path
		with open(path, "wb"):
			pass
		self.others = {prog["id"] for prog in bpf_programs()}
		self.launch([OFFCPUTIME, "-p", str(pid), "--stack-storage-size", "16384", "100000"])
		time.sleep(1)
		if self.process.poll() is not None:
			raise RuntimeError(f"{self.name}: {self.log()[-300:]}")

	def bpf_ns(self):
		"""What its program took so far."""
		return sum(prog.get("run_time_ns", 0) for prog in bpf_programs()
			   if prog["id"] not in self.others and prog.get("name") == "sched_switch")

	def finish(self):
		super().finish()
		size = os.fstat(self.said.fileno()).st_size
		text = os.pread(self.said.fileno(), size, 0)
		with open(self.path, "wb") as f:
			f.write(text)

	def found(self, truth):
		with open(self.path, encoding="utf-8", errors="replace") as f:
			us = sum(int(line) for line in f if re.fullmatch(r"\s+\d+\n", line))
		return {"lost": None, "seen": us * 1000 / truth["off_ns"], "of": "of the time off the CPU"}


def throughput(target, seconds):
	before, begin = target.counters.total(target.kind), time.monotonic()
	time.sleep(seconds)
	return (target.counters.total(target.kind) - before) / (time.monotonic() - begin)


def record_once(target, profiler, path, seconds, rest_s):
	row = {"profiler": profiler.name}
	alone = throughput(target, rest_s)
	# The truth is taken around the whole recording: starting it is part of what it must hold.
	run, times = task_totals(target.pid)
	own = time.monotonic()
	profiler.start(target.pid, path, 999)
	begin, turns = time.monotonic(), target.counters.total(target.kind)
	profiler.watch(seconds)
	took = time.monotonic() - begin
	row["per_s"] = (target.counters.total(target.kind) - turns) / took
	bpf = profiler.bpf_ns() if isinstance(profiler, Offcputime) else 0
	run_after, times_after = task_totals(target.pid)
	whole = time.monotonic() - own
	profiler.finish()
	threads = len(os.listdir(f"/proc/{target.pid}/task"))
	truth = {"times": times_after - times, "off_ns": threads * whole * 1e9 - (run_after - run)}
	row["alone_per_s"] = mean([alone, throughput(target, rest_s)])
	row.update(ratio=row["per_s"] / row["alone_per_s"], bytes=os.path.getsize(path), cpu_s=profiler.cpu_s, seconds=took,
		   switches=truth["times"], whole_s=whole)
	row.update(profiler.found(truth))
	if bpf or row.get("bpf_ns"):
		# By the switches within what it recorded.
		row["ns_a_switch"] = (bpf or row["bpf_ns"]) / (truth["times"] * (row.get("bpf_s", whole) / whole))
	profiler.remove()
	return row


def measure_switches(build, folder, quick):
	"""(rows, lines of the table)"""
	seconds, rest_s, rounds = (5, 2, 1) if quick else (30, 5, 3)
	gasflame = os.path.join(build, "src", "cmd", "gasflame")
	makers = [lambda: GasflameWaits(gasflame), PerfSwitches]
	if os.path.exists(OFFCPUTIME):
		makers.append(Offcputime)
	else:
		print("  without offcputime: apt-get install libbpf-tools", file=sys.stderr)
	rows = []
	target = Switches(build, folder, 112000)
	target.start()
	try:
		for turn in range(rounds):
			random.Random(turn).shuffle(makers)
			for maker in makers:
				profiler = maker()
				print(f"  {profiler.name}", file=sys.stderr, flush=True)
				try:
					rows.append(record_once(target, profiler, os.path.join(folder, "recording"), seconds, rest_s))
				except RuntimeError as problem:
					print(f"  {problem}", file=sys.stderr)
	finally:
		target.stop()
	return rows, table(rows, seconds, rounds)


def table(rows, seconds, rounds):
	alone = median([row["alone_per_s"] for row in rows])
	lines = ["", f"## {alone:,.0f} context switches a second for {seconds} s, {rounds} recordings of each, interleaved (medians)",
		 "", "| profiler | throughput, against none | BPF programs, ns a switch | seen | complete stacks | capture | own CPU |",
		 "|---|---|---|---|---|---|---|"]
	for name in dict.fromkeys(row["profiler"] for row in rows):
		these = [row for row in rows if row["profiler"] == name]

		def middle(key):
			return median([row[key] for row in these])
		low, high = min(r["ratio"] for r in these), max(r["ratio"] for r in these)
		cost = f"{middle('ns_a_switch'):.0f}" if "ns_a_switch" in these[0] else "no BPF"
		lost = f", {middle('lost'):.0f} lost" if these[0]["lost"] is not None else ""
		counts = these[0].get("complete")
		complete = f"{counts['complete'] * 100 / max(counts['samples'], 1):.2f} %" if counts else "frame pointers only"
		lines.append(f"| {name} | {middle('ratio'):.3f} ({low:.3f} … {high:.3f}) | {cost} | "
			     f"{middle('seen') * 100:.1f} % {these[0]['of']}{lost} | {complete} | {middle('bytes') / 1e6:.1f} MB | "
			     f"{middle('cpu_s') / middle('seconds') * 100:.1f} % |")
	return lines
