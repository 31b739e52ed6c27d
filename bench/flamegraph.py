#!/usr/bin/env python3
"""flamegraph.py [--stacks N] [--rounds R] [--model N] GASFLAME - folded stacks to a picture, against flamegraph.pl.

Both draw the same stacks (bench/stacks.py), in turns, in the same run, and both pictures must have the same boxes
at the same places. --model also times the import of that many stacks into the model, by `gasflame report`.
Times are wall clock; CPU time and the peak of memory are the child's own. Prints Markdown.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

from measure import median

HERE = os.path.dirname(os.path.abspath(__file__))


def find_perl():
	listed = subprocess.run(["dpkg", "-L", "libdevel-nytprof-perl"], capture_output=True, text=True, check=False)
	paths = [line for line in listed.stdout.splitlines() if line.endswith("/flamegraph.pl")]
	return paths[0] if paths else None


def run(command, source, output):
	"""Seconds, CPU seconds and peak bytes of one run."""
	with open(source, "rb") as stdin, open(output, "wb") as stdout:
		start = time.monotonic()
		child = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL)
		_, status, usage = os.wait4(child.pid, 0)
		child.returncode = os.waitstatus_to_exitcode(status)
		seconds = time.monotonic() - start
	if child.returncode:
		sys.exit(f"{command[0]} failed with {child.returncode}")
	return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def make_stacks(n, path):
	with open(path, "wb") as f:
		subprocess.run([sys.executable, os.path.join(HERE, "stacks.py"), "--stacks", str(n)], stdout=f, check=True)
	return os.path.getsize(path)


def row(name, runs, size):
	middle = [median([r[i] for r in runs]) for i in range(3)]
	return (f"| {name} | {middle[0]:.3f} s | {middle[1]:.3f} s | {middle[2] / 1e6:.0f} MB | "
		f"{size / middle[0] / 1e6:.0f} MB/s |")


def compare(options, perl, folder):
	source = os.path.join(folder, "stacks.folded")
	size = make_stacks(options.stacks, source)
	ours, theirs = os.path.join(folder, "ours.svg"), os.path.join(folder, "theirs.svg")
	runs = {"gasflame": [], "flamegraph.pl": []}
	for _ in range(options.rounds):
		for _ in range(3): # it is short: the median of three is of one round
			runs["gasflame"].append(run([options.gasflame, "flamegraph"], source, ours))
		if perl:
			runs["flamegraph.pl"].append(run(["perl", perl], source, theirs))
	print(f"\n## Folded stacks to SVG: {options.stacks:,} stacks, {size / 1e6:.0f} MB, medians of "
	      f"{options.rounds} rounds\n\n| | time | CPU | memory | |\n|---|---|---|---|---|")
	for name, some in runs.items():
		if some:
			print(row(name, some, size))
	if not perl:
		print("\nflamegraph.pl is not installed: apt-get install libdevel-nytprof-perl")
		return 0
	wall, cpu = (median([r[i] for r in runs["flamegraph.pl"]]) / median([r[i] for r in runs["gasflame"]])
		     for i in (0, 1))
	tool = os.path.join(HERE, "..", "tests", "system", "flamegraph.py")
	same = subprocess.run([sys.executable, tool, "same", theirs, ours], capture_output=True, text=True, check=False)
	print(f"\n{wall:.0f} times as fast, {cpu:.0f} times less CPU; {same.stdout.splitlines()[0]}, "
	      f"{'different' if same.returncode else 'the same'}")
	return same.returncode


def model(options, folder):
	source = os.path.join(folder, "model.folded")
	size = make_stacks(options.model, source)
	runs = [run([options.gasflame, "report", "--format", "summary", source], source, os.devnull)
		for _ in range(options.rounds)]
	print(f"\n## Folded stacks into the model: {options.model:,} stacks, {size / 1e6:.0f} MB\n\n"
	      "| | time | CPU | memory | |\n|---|---|---|---|---|")
	print(row("gasflame report --format summary", runs, size))


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument("--stacks", type=int, default=100000)
	parser.add_argument("--rounds", type=int, default=3)
	parser.add_argument("--model", type=int, default=0)
	parser.add_argument("gasflame")
	options = parser.parse_args()
	with tempfile.TemporaryDirectory() as folder:
		failed = compare(options, find_perl(), folder)
		if options.model:
			model(options, folder)
	return failed


if __name__ == "__main__":
	resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
	sys.exit(main())
