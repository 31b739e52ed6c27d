#!/usr/bin/env python3
"""calls.py BUILD... - what a system call costs while -e io records it: BPF time by the kernel's statistics.

A program that reads a file and a pipe in small pieces is recorded by each build in turn, for some rounds; -p records
another process instead, -e other collectors. For each BPF program: runs a second, the mean time of one, and the least of
the rounds. The statistics of other recordings at the same time are not mixed in, their load is.
"""
import argparse
import collections
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

LOAD = """
import os
source, sink = os.pipe()
file = os.open("/etc/passwd", os.O_RDONLY)
while True:
	os.write(sink, b"x" * 100)
	os.read(source, 100)
	os.pread(file, 64, 0)
"""
WARM_S, SPAN_S = 1.2, 1.8


def read_programs(pid):
	"""The BPF programs that a process holds: name to runs and nanoseconds."""
	ids = set()
	for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
		try:
			with open(path, encoding="utf-8") as f:
				found = re.search(r"prog_id:\s+(\d+)", f.read())
		except OSError:
			continue
		if found:
			ids.add(int(found[1]))
	shown = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=True).stdout
	return {p["name"]: (p.get("run_cnt", 0), p.get("run_time_ns", 0)) for p in json.loads(shown) if p["id"] in ids}


def record(build, pid, what, path):
	"""Runs and nanoseconds of each program within SPAN_S."""
	command = [os.path.join(build, "src/cmd/gasflame"), "record", "-e", what, "-d", "1000", "-o", path, str(pid)]
	with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as recorder:
		said = []
		while not said or not said[-1].startswith("Recording"):
			said.append(recorder.stderr.readline())
			if not said[-1]:
				raise RuntimeError("".join(said))
		time.sleep(WARM_S)
		before = read_programs(recorder.pid)
		time.sleep(SPAN_S)
		after = read_programs(recorder.pid)
		recorder.send_signal(signal.SIGINT)
		recorder.communicate()
	return {name: (runs - before[name][0], ns - before[name][1]) for name, (runs, ns) in after.items() if name in before}


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("builds", nargs="+", metavar="BUILD")
	parser.add_argument("-e", dest="what", default="io")
	parser.add_argument("-p", dest="pid", type=int)
	parser.add_argument("--rounds", type=int, default=3)
	options = parser.parse_args()
	load = None if options.pid else subprocess.Popen([sys.executable, "-c", LOAD])
	seen = collections.defaultdict(list)
	try:
		with tempfile.TemporaryDirectory() as folder:
			for number in range(options.rounds):
				for build in options.builds:
					path = os.path.join(folder, f"{number}-{len(seen)}.gasflame")
					for name, cost in record(build, options.pid or load.pid, options.what, path).items():
						if cost[0]:
							seen[name, build].append(cost)
					if os.path.exists(path):
						os.unlink(path)
	finally:
		if load:
			load.kill()
			load.wait()
	for (name, build), costs in sorted(seen.items()):
		runs, ns = sum(c[0] for c in costs), sum(c[1] for c in costs)
		least = min(c[1] / c[0] for c in costs)
		print(f"{name:20} {runs / len(costs) / SPAN_S:10.0f}/s {ns / runs:6.0f} ns, least {least:6.0f}  {build}")


if __name__ == "__main__":
	main()
