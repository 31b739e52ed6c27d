#!/usr/bin/env python3
"""young.py [--processes N] [--rounds R] GASFLAME YOUNG [OTHER-GASFLAME] - processes of some milliseconds.

Records a shell loop that starts YOUNG (truth-young: 3 ms of CPU time in two functions, 2 to 1), /bin/true and /bin/ls in
turn, N processes in all, by GASFLAME and, interleaved, by OTHER-GASFLAME (an older build). The cost is the CPU time of the
recorder while it records and that of its BPF programs, by their own account, for each process. Prints Markdown.
"""
import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile

from measure import median


def record(gasflame, script, capture):
	"""Samples, percent complete, percent of time in the longer function, and the cost in us for all processes."""
	done = subprocess.run([gasflame, "run", "-e", "cpu,wait", "-o", capture, "--", "sh", script],
			      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
	if done.returncode not in (0, 3):
		sys.exit(f"{gasflame}: {done.stderr}")
	db = sqlite3.connect(capture)
	counters = dict(db.execute("select name, value from counter"))
	taken = counters["samples.taken"]
	cut = sum(n for name, n in counters.items() if name.startswith("truncated."))
	folded = subprocess.run([gasflame, "report", "--format", "folded", "--what", "cpu", capture], capture_output=True,
				text=True, check=False).stdout.splitlines()
	burnt = [sum(int(line.rsplit(" ", 1)[1]) for line in folded if f";{name};" in line + ";" or f";{name} " in line)
		 for name in ("young_long", "young_short")]
	cost = (counters.get("self.cpu_ns", 0) + counters.get("bpf.run_ns", 0)) / 1e3
	return taken, 100 * (taken - cut) / taken, 100 * burnt[0] / max(sum(burnt), 1), cost, counters.get("bpf.run_ns", 0) / 1e3


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("--processes", type=int, default=3000)
	parser.add_argument("--rounds", type=int, default=3)
	parser.add_argument("gasflame")
	parser.add_argument("young")
	parser.add_argument("other", nargs="?")
	options = parser.parse_args()
	results = {program: [] for program in (options.gasflame, options.other) if program}
	with tempfile.TemporaryDirectory() as folder:
		script, capture = os.path.join(folder, "loop.sh"), os.path.join(folder, "young.gasflame")
		with open(script, "w", encoding="utf-8") as f:
			f.write(f"i=0\nwhile [ $i -lt {options.processes // 3} ]; do\n{os.path.abspath(options.young)} 3\n/bin/true\n"
				"/bin/ls / >/dev/null\ni=$((i + 1))\ndone\n")
		for _ in range(options.rounds):
			for program, runs in results.items():
				runs.append(record(program, script, capture))
				os.unlink(capture)
	print(f"{options.processes} processes, {options.rounds} rounds, medians\n")
	print("| gasflame | samples | complete stacks | share of the function with two thirds | recorder and BPF, for each process "
	      "| BPF alone |")
	print("|---|---|---|---|---|---|")
	for program, runs in results.items():
		m = [median([run[i] for run in runs]) for i in range(5)]
		print(f"| {program} | {m[0]:,.0f} | {m[1]:.1f} % | {m[2]:.1f} % | {m[3] / options.processes:.0f} us "
		      f"| {m[4] / options.processes:.0f} us |")


main()
