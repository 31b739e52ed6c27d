"""perfdata.py - perf.data of a Rust node: gasflame import beside perf script, in turn.

The node is recorded with `perf record -F 999 --call-graph dwarf`, once; both read the same file. perf script runs as it is, and
without inlined functions, which spares it addr2line. Complete stacks end in the entry of the program or of a thread. The
first import has no cache of names, the others have.
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

from measure import bootstrap
from targets import Anvil

ENDS = re.compile(r"\b(_start|__?clone3?|clone3)\b")


def record(folder, seconds, dump):
	"""The path of perf's file, of all threads of the node."""
	path = os.path.join(folder, f"perf-{dump}.data")
	node = Anvil(folder)
	node.start()
	try:
		subprocess.run(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock", "--call-graph", f"dwarf,{dump}", "-p", str(node.pid),
				"-o", path, "sleep", str(seconds)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	finally:
		node.stop()
	return path


def run_once(command, output, limit_s):
	"""Wall time; None where it took longer than the limit."""
	begin = time.monotonic()
	with open(output, "wb") as f:
		child = subprocess.Popen(command, stdout=f, stderr=subprocess.DEVNULL, start_new_session=True)
		try:
			if child.wait(limit_s):
				raise RuntimeError(f"{' '.join(command)} failed")
		except subprocess.TimeoutExpired:
			os.killpg(child.pid, 9) # with the addr2line that it started
			child.wait()
			return None
	return time.monotonic() - begin


def stacks_of_text(path):
	"""Samples, complete ones, frames."""
	samples = complete = frames = 0
	with open(path, encoding="utf-8", errors="replace") as f:
		for record_text in f.read().split("\n\n"):
			lines = record_text.strip().split("\n")
			if len(lines) > 1:
				samples += 1
				frames += len(lines) - 1
				complete += bool(ENDS.search(lines[-1]))
	return samples, complete, frames


def stacks_of_capture(path):
	"""The same. Inlined calls count as frames, as perf script prints them."""
	samples = complete = frames = 0
	with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
		for text, count in db.execute("select stack, samples from stacks"):
			calls = [c for c in text.split(";") if not c.startswith("[truncated")]
			samples += count
			frames += count * len(calls)
			complete += count * bool(calls and ENDS.search(calls[0]) and not text.startswith("[truncated"))
	return samples, complete, frames


def measure_perfdata(build, folder, quick):
	gasflame, rows, lines = os.path.join(build, "src", "cmd", "gasflame"), {}, []
	limit_s, turns = (60, 1) if quick else (300, 3)
	for dump in (8192, 65528):
		data, text, capture = record(folder, 2 if quick else 5, dump), os.path.join(folder, "script.txt"), os.path.join(folder, "import.gasflame")
		runs = {"gasflame import": [], "perf script": [], "perf script --no-inline": []}
		stacks = {}
		for _ in range(turns):
			shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
			if os.path.exists(capture):
				os.unlink(capture)
			runs["gasflame import"].append(run_once([gasflame, "import", data, "-o", capture], os.devnull, limit_s))
			stacks["gasflame import"] = stacks_of_capture(capture)
			for name, more in (("perf script", []), ("perf script --no-inline", ["--no-inline"])):
				print(f"  {name}, {dump} bytes of stack", file=sys.stderr, flush=True)
				runs[name].append(run_once(["perf", "script", "-i", data, *more], text, limit_s))
				stacks[name] = stacks_of_text(text)
		lines += table(data, dump, runs, stacks, limit_s)
		rows[dump] = {"bytes": os.path.getsize(data), "runs": runs, "stacks": stacks}
		os.unlink(data)
	return rows, lines


def table(data, dump, runs, stacks, limit_s):
	lines = ["", f"## perf.data of anvil, dwarf,{dump} ({os.path.getsize(data) / 1e6:.0f} MB), without a cache of names", "",
		 "| | wall time | × | samples | complete | frames a stack |", "|---|---|---|---|---|---|"]
	ours = runs["gasflame import"]
	for name, of in runs.items():
		late = any(t is None for t in of)
		taken = [limit_s if t is None else t for t in of]
		wall, ratio = bootstrap(taken), bootstrap([theirs / own for theirs, own in zip(taken, ours)])
		samples, complete, frames = stacks[name]
		lines.append(f"| {name} | {'> ' if late else ''}{wall[0]:.2f} s ({wall[1]:.2f} … {wall[2]:.2f}) | "
			     f"{'> ' if late else ''}{ratio[0]:.0f} ({ratio[1]:.0f} … {ratio[2]:.0f}) | {samples} | {complete} | {frames / max(samples, 1):.1f} |")
	return lines
