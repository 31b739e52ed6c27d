#!/usr/bin/env python3
"""perfdata.py DATA CAPTURE PROGRAM - are the totals of each event and function in the capture those of perf report?

Compared are samples and sums of periods. Functions of the program have one name in both: they are compared one by one. The
kernel has several names for some addresses, and libraries have symbols of other files than perf reads: these are compared as
two sums, that of the kernel and that of all the rest. Prints what differs, and fails then.
"""
import re
import subprocess
import sqlite3
import sys

CLOCKS = ("cpu-clock", "task-clock")


def of_perf(data, program):
	"""{event: {row: [samples, period]}}"""
	text = subprocess.run(["perf", "report", "-i", data, "--no-children", "--stdio", "-g", "none", "--no-group", "-F", "sample,period,dso,sym", "-t", "|"],
			      check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
	events, rows = {}, None
	for line in text.splitlines():
		event = re.match(r"# Samples: \S+\s+of events? '(.*)'", line)
		if event:
			rows = events.setdefault(event.group(1), {})
		if line.startswith("#") or line.count("|") < 3 or rows is None:
			continue
		samples, period, dso, symbol = (field.strip() for field in line.split("|", 3))
		name = symbol[4:] if dso == program and symbol.startswith("[.] ") else "kernel" if symbol.startswith("[k]") else "rest"
		row = rows.setdefault(name if name.startswith("pd_") or name in ("main", "kernel") else "rest", [0, 0])
		row[0] += int(samples)
		row[1] += int(period)
	return {event: rows for event, rows in events.items() if rows}


def of_capture(path, program):
	"""The same, by the function in the symbol table of the leaf: the last of those that share its frame."""
	events = {}
	for event, name, module, kind, samples, value in sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("""
		select event.name, f.function, f.module, f.kind, sum(w.samples), sum(w.value)
		from weights as w join event on event.id = w.event join stack on stack.id = w.stack
		join frames as f on f.frame = stack.frame
		where f.depth = (select max(depth) from frames as o where o.frame = f.frame) group by 1, 2, 3, 4"""):
		own = module and module.split("/")[-1] == program and (name.startswith("pd_") or name == "main")
		row = events.setdefault(event, {}).setdefault(name if own else "kernel" if kind == "kernel" else "rest", [0, 0])
		row[0] += samples
		row[1] += value
	return events


def main():
	data, capture, program = sys.argv[1:4]
	theirs, ours = of_perf(data, program), of_capture(capture, program)
	wrong = not theirs
	for event, rows in theirs.items():
		plain = event.split(":")[0] if event.startswith(CLOCKS) else event
		name = event if event in ours else "cpu" if plain.startswith(CLOCKS) else event
		found = ours.get(name, {})
		if found != rows:
			wrong = True
			print(f"{event}: perf {sorted(rows.items())}, gasflame {sorted(found.items())}")
		else:
			print(f"{event}: {sum(r[0] for r in rows.values())} samples in {len(rows)} rows")
	for event in ours.keys() - set(theirs) - {"cpu", "wait", "queue"}:
		wrong = True
		print(f"{event}: only in the capture")
	sys.exit(wrong)


main()
