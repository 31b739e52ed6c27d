#!/usr/bin/env python3
"""heapv2.py GASFLAME CAPTURE [STACKS] - a heap dump with as many stacks as a Rust node has: gasflame and jeprof.

The stacks are those of a recording of the node (-e cpu or any other), the sizes are drawn; so the dump is as deep and
as wide as a real one, and both programs read the very same file. Printed: CPU seconds to a table with names, the
total, and how many functions each of them tells apart.
"""
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time


def write_dump(capture, path, wanted):
	"""Returns the program's path and the number of stacks."""
	db = sqlite3.connect(f"file:{capture}?mode=ro", uri=True)
	modules = {i: (p, k) for i, p, k in db.execute("select id, path, kind from module")}
	mappings = list(db.execute("select process, module, start, end, bias from mapping"))
	bias = {(p, m): b for p, m, _, _, b in mappings}
	process = db.execute("select t.process from sample s join thread t on t.id = s.thread "
			     "group by 1 order by count(*) desc limit 1").fetchone()[0]
	frames = {i: (m, a) for i, m, a in db.execute("select id, module, address from frame")}
	nodes = {i: (p, f) for i, p, f in db.execute("select id, parent, frame from stack")}
	seen = set()
	for (stack,) in db.execute("select distinct stack from sample s join thread t on t.id = s.thread "
				   "where t.process = ?", (process,)):
		addresses = []
		while stack:
			stack, frame = nodes[stack]
			module, address = frames[frame]
			if (process, module) not in bias or modules.get(module, ("", ""))[1] != "file":
				continue
			addresses.append(address + bias[process, module] + (1 if addresses else 0))
		if addresses:
			seen.add(tuple(addresses))
		if len(seen) == wanted:
			break
	rng = random.Random(1)
	with open(path, "w", encoding="utf-8") as f:
		f.write("heap_v2/524288\n  t*: 1: 1 [0: 0]\n")
		for addresses in sorted(seen):
			objects = rng.randrange(1, 9)
			size = objects * rng.choice([48, 4096, 100000, 3000000])
			f.write("@ " + " ".join(f"0x{a:x}" for a in addresses) + "\n")
			f.write(f"  t*: {objects}: {size} [0: 0]\n  t7: {objects}: {size} [0: 0]\n")
		f.write("\nMAPPED_LIBRARIES:\n")
		for p, m, start, end, _ in sorted(mappings, key=lambda x: x[2]):
			if p != process or modules[m][1] != "file":
				continue
			f.write(f"{start:x}-{end:x} r-xp {offset_of(modules[m][0], start - bias[p, m]):08x} 08:01 42 {modules[m][0]}\n")
	exe = db.execute("select exe from process where id = ?", (process,)).fetchone()[0]
	return exe, len(seen)


def offset_of(path, address):
	"""The file's offset of a virtual address, as its program headers have it."""
	said = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=False).stdout
	for line in said.splitlines():
		m = re.match(r"\s*LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", line)
		if m:
			offset, start, size = (int(x, 16) for x in m.groups())
			if start - 0x1000 < address <= start + size and address - start + offset >= 0:
				return (address - start + offset) & ~0xfff
	return address & ~0xfff


def run(command, env=None):
	before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
	done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
	wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
	if done.returncode:
		sys.exit(f"{command[0]}: {done.stderr.strip()[-400:]}")
	return done.stdout, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(table):
	"""Of the columns that both write: name to megabytes of its own."""
	out = {}
	for line in table.splitlines():
		m = re.match(r"\s*(-?[\d.]+)\s+-?[\d.]+%\s+-?[\d.]+%\s+-?[\d.]+\s+-?[\d.]+% (.*)", line)
		if m:
			out[m.group(2)] = out.get(m.group(2), 0) + float(m.group(1))
	return out


def main():
	gasflame, capture = sys.argv[1:3]
	wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
	with tempfile.TemporaryDirectory() as folder:
		dump = folder + "/node.1.0.f.heap"
		exe, stacks = write_dump(capture, dump, wanted)
		env = dict(os.environ, XDG_CACHE_HOME=folder + "/cache")
		ours = [gasflame, "-q", "heap", "--format", "heap-table", "-n", "0", dump]
		print(f"{stacks} stacks, {os.path.getsize(dump) / 1e6:.1f} MB\n")
		print(f"{'':34}{'wall s':>9}{'CPU s':>9}{'total MB':>10}{'functions':>11}")
		results = []
		for name, command in (("gasflame, first time", ours), ("gasflame, names cached", ours),
				      ("gasflame --no-inline --no-cache", ours + ["--no-inline", "--no-cache"])):
			table, wall, cpu = run(command, env)
			results.append((name, table, wall, cpu))
		if shutil.which("jeprof"):
			table, wall, cpu = run(["jeprof", "--text", exe, dump])
			results.append(("jeprof --text", table, wall, cpu))
		for name, table, wall, cpu in results:
			total = re.search(r"Total: (-?[\d.]+)", table).group(1)
			print(f"{name:34}{wall:9.2f}{cpu:9.2f}{total:>10}{len(rows(table)):11}")


main()
