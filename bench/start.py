#!/usr/bin/env python3
"""start.py [--rounds N] GASFLAME [OTHER-GASFLAME] - from the command to the first sample, from the end to the prompt.

Records a program with 100 MB of code (made once, in the folder of --cache) that computes on one thread, for a second, by
GASFLAME and, interleaved, by OTHER-GASFLAME (an older build) and `perf record -g -a`. The first sample is the earliest in
the capture, by the clock of the machine, less the moment before the command was executed; the end is Ctrl-C. "new files":
the cache folder is empty, so that unwind tables and names are made. Prints Markdown.
"""
import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from measure import bootstrap, median

FUNCTIONS, FUNCTION_BYTES = 200000, 512
SOURCE = f"""	.text
	.globl main
main:
	.cfi_startproc
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
1:	call work
	jmp 1b
	.cfi_endproc
work:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	movl $100000000, %ebx
1:	decl %ebx
	jnz 1b
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.rept {FUNCTIONS}
	.cfi_startproc
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	subq $64, %rsp
	.cfi_adjust_cfa_offset 64
	.skip {FUNCTION_BYTES - 11}, 0x90
	addq $64, %rsp
	.cfi_adjust_cfa_offset -64
	popq %rbp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.endr
	.section .note.GNU-stack, "", @progbits
"""


def make_program(cache):
	"""A program with 100 MB of code in functions that are never called, and unwind information for all of it."""
	program = os.path.join(cache, f"bigtext-{FUNCTIONS}-{FUNCTION_BYTES}")
	if not os.path.exists(program):
		os.makedirs(cache, exist_ok=True)
		subprocess.run(["cc", "-o", program + ".new", "-x", "assembler", "-"], input=SOURCE, text=True, check=True)
		os.replace(program + ".new", program)
	return program


def end_after(process, began, seconds):
	"""Ctrl-C after so many seconds of it; the moment of the signal and of the end, and the CPU time of all of it."""
	time.sleep(max(0, seconds - (time.monotonic_ns() - began) / 1e9))
	asked = time.monotonic_ns()
	process.send_signal(signal.SIGINT)
	_, status, usage = os.wait4(process.pid, 0)
	process.returncode = os.waitstatus_to_exitcode(status)
	return (time.monotonic_ns() - asked) / 1e6, (usage.ru_utime + usage.ru_stime) * 1e3


def wait_for_line(process, word):
	"""Until the recorder says that it records."""
	for line in process.stderr:
		if word in line:
			return
	sys.exit(f"{process.args[0]} does not record")


def by_gasflame(program, pid, path, seconds, cache):
	began_wall, began = time.time_ns(), time.monotonic_ns()
	process = subprocess.Popen([program, "record", "-d", "60", "-o", path, "-p", str(pid)], stdout=subprocess.DEVNULL,
				   stderr=subprocess.PIPE, text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
	wait_for_line(process, "Recording")
	end, cpu = end_after(process, time.monotonic_ns(), seconds)
	process.stderr.close()
	with sqlite3.connect(path) as db:
		start, = db.execute("select value from meta where key = 'start_wall_ns'").fetchone()
		first, = db.execute("select min(time_ns) from sample join event on event.id = sample.event "
				    "where event.name = 'cpu'").fetchone()
	os.unlink(path)
	return {"first": (int(start) + first - began_wall) / 1e6, "end": end, "cpu": cpu}


def by_perf(pid, path, seconds):
	began = time.monotonic_ns()
	process = subprocess.Popen(["perf", "record", "-k", "CLOCK_MONOTONIC", "-F", "999", "-g", "-a", "-o", path],
				   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	end, cpu = end_after(process, began, seconds + 1)
	said = subprocess.run(["perf", "script", "-i", path, "-F", "time", "--ns", "-G", "--pid", str(pid)], capture_output=True, text=True,
			      check=False).stdout
	times = [int(float(word.rstrip(":")) * 1e9) for word in said.split() if word[0].isdigit()]
	os.unlink(path)
	return {"first": (min(times) - began) / 1e6 if times else None, "end": end, "cpu": cpu}


def measure(programs, folder, cache, rounds, seconds=1):
	"""Rows by who measured; programs: name to path."""
	big = make_program(cache)
	target = subprocess.Popen([big], stdin=subprocess.DEVNULL)
	rows, path = {}, os.path.join(folder, "start.capture")
	kept = {name: os.path.join(folder, f"cache-{i}") for i, name in enumerate(programs)}
	turns = [(name, cold) for name in programs for cold in (False, True)] + [("perf record -g -a", False)]
	try:
		for name, program in programs.items():
			by_gasflame(program, target.pid, path, seconds, kept[name]) # fills its cache
		for i in range(rounds):
			random.Random(i).shuffle(turns)
			for name, cold in turns:
				if name not in programs:
					row = by_perf(target.pid, path, seconds)
				elif cold:
					with tempfile.TemporaryDirectory(dir=folder) as empty:
						row = by_gasflame(programs[name], target.pid, path, seconds, empty)
				else:
					row = by_gasflame(programs[name], target.pid, path, seconds, kept[name])
				rows.setdefault(name + (", new files" if cold else ""), []).append(row)
	finally:
		target.kill()
		target.wait()
		for each in kept.values():
			shutil.rmtree(each, ignore_errors=True)
	return rows


def table(rows, rounds, against=None):
	lines = ["", f"## Start and end of a recording of a program with {FUNCTIONS * FUNCTION_BYTES / 1e6:.0f} MB of code, "
		 f"{rounds} of each, interleaved (medians, 95 % intervals)", "",
		 "| who | command to first sample | end to prompt | CPU time of the recorder |", "|---|---|---|---|"]
	for name in sorted(rows):
		cells = []
		for key in ("first", "end", "cpu"):
			# perf may have nothing of the target on a machine that is too busy.
			value, low, high = bootstrap([row[key] for row in rows[name] if row[key] is not None] or [0], median)
			cells.append(f"{value:.0f} ms ({low:.0f} … {high:.0f})")
		lines.append(f"| {name} | {' | '.join(cells)} |")
	for name, other in against or []:
		cells = []
		for key in ("first", "end", "cpu"):
			value, low, high = bootstrap([a[key] / b[key] for a, b in zip(rows[name], rows[other])], median)
			cells.append(f"{value:.2f} ({low:.2f} … {high:.2f})")
		lines.append(f"| {name} / {other} | {' | '.join(cells)} |")
	return lines


def measure_start(build, folder, quick):
	"""The phase of run.py."""
	rounds = 3 if quick else 15
	rows = measure({"gasflame": os.path.join(build, "src", "cmd", "gasflame")}, folder, os.path.join(build, "bench-cache"), rounds)
	return rows, table(rows, rounds)


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("--rounds", type=int, default=15)
	parser.add_argument("--cache", default="build/bench-cache")
	parser.add_argument("gasflame")
	parser.add_argument("other", nargs="?")
	options = parser.parse_args()
	programs = {"gasflame": options.gasflame}
	against = []
	if options.other:
		programs["other"] = options.other
		against = [("gasflame", "other"), ("gasflame, new files", "other, new files")]
	with tempfile.TemporaryDirectory() as folder:
		print("\n".join(table(measure(programs, folder, options.cache, options.rounds), options.rounds, against)))


if __name__ == "__main__":
	main()
