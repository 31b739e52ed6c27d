"""heap.py - what it costs to see a heap, and how right it is: gasflame attached and from the start, heaptrack, massif,
jemalloc's own profiler.

A node under load has its slots hooked and put back again and again while it is recorded; a loop of malloc and
free says itself what a pair takes, in CPU time; and a program whose heap is known is recorded by each tool.
"""
import glob
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time

from measure import Urgent, bootstrap, cpu_ns, mean, median
from targets import wait_until

TIMEOUT_S = 300
DEPTHS = (20, 30, 100) # of the stack, below main


def start_recording(gasflame, pid, path, options=(), events="heap"):
	"""gasflame record -e heap, once it records."""
	with open(path + ".said", "wb") as said:
		process = subprocess.Popen([gasflame, "record", "-e", events, "-d", "1000", "-o", path, "-p", str(pid), *options],
					   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
	wait_until(lambda: b"Recording" in open(path + ".said", "rb").read() or process.poll() is not None, 30, "gasflame records")
	if process.poll() is not None:
		with open(path + ".said", encoding="utf-8") as f:
			raise RuntimeError(f.read())
	return process


def stop_recording(process):
	process.send_signal(signal.SIGINT)
	process.wait(60)


def heap_of(gasflame, path):
	said = subprocess.run([gasflame, "report", "--format", "json", "--limit", "0", path], capture_output=True, text=True,
			      check=False)
	return json.loads(said.stdout)["heap"]


def counters(path):
	with sqlite3.connect(path) as db:
		return dict(db.execute("select name, value from counter"))


# --- a node under load ---

def one_slice(target, seconds):
	work, cpu, wall = target.counters.total(target.kind), cpu_ns(target.pid), time.monotonic_ns()
	time.sleep(seconds)
	work2, cpu2, wall2 = target.counters.total(target.kind), cpu_ns(target.pid), time.monotonic_ns()
	return (work2 - work) / (cpu2 - cpu), (work2 - work) / (wall2 - wall)


SLOTS_AT = {
	"heap": 64 + 6 * 12 * 8 + 712, # struct blob_fixed: its head, the functions, an order
	"task": 64 + 2048 * 48, # struct task_fixed: its head, the vtables
}


class Slots:
	"""The slots that gasflame has changed (blobhead.h): to the hooks and back, while it goes on recording."""

	def __init__(self, pid, kind="heap"):
		self.memory = open(f"/proc/{pid}/mem", "r+b", buffering=0)
		with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
			fixed = next(int(line.split()[0].split("-")[1], 16) for line in f if f"/memfd:gasflame-{kind}" in line and "r-xp" in line)
		count, = struct.unpack("<Q", self.read(fixed + 24, 8))
		self.list = [struct.unpack("<QQQ", self.read(fixed + SLOTS_AT[kind] + 24 * i, 24)) for i in range(count)]

	def read(self, at, n):
		self.memory.seek(at)
		return self.memory.read(n)

	def set(self, hooked):
		for address, original, hook in self.list:
			self.memory.seek(address)
			self.memory.write(struct.pack("<Q", hook if hooked else original))


def measure_slices(target, kind, rounds, seconds):
	"""Throughput with hooks by that without, of a node that is recorded: {clock: [ratios]}."""
	ratios, slots = {"cpu": [], "wall": []}, Slots(target.pid, kind)
	time.sleep(2)
	with Urgent():
		slots.set(False)
		before = one_slice(target, seconds)
		for _ in range(rounds):
			slots.set(True)
			during = one_slice(target, seconds)
			slots.set(False)
			after = one_slice(target, seconds)
			for i, clock in enumerate(ratios):
				ratios[clock].append(during[i] / mean([before[i], after[i]]))
			before = after
	return ratios


def measure_node(target, gasflame, folder, quick):
	path = os.path.join(folder, "node.gasflame")
	rounds, seconds = (10, 1) if quick else (60, 1)
	target.start()
	try:
		process = start_recording(gasflame, target.pid, path)
		time.sleep(10 if quick else 30)
		stop_recording(process)
		row = {"heap": heap_of(gasflame, path), "counters": counters(path)}
		quality = json.loads(subprocess.run([gasflame, "report", "--format", "json", "--what", "alloc", path],
						    capture_output=True, text=True, check=False).stdout)["quality"]
		row["complete"] = 100 * quality["complete"] / max(quality["samples"], 1)
		row["samples"] = quality["samples"]
		print(f"  {target.name}: {rounds} slices with and without", file=sys.stderr, flush=True)
		process = start_recording(gasflame, target.pid, path)
		ratios = measure_slices(target, "heap", rounds, seconds)
		stop_recording(process)
		os.kill(target.pid, 0)
	finally:
		target.stop()
	row["ratios"] = {clock: bootstrap(values) for clock, values in ratios.items()}
	row["rounds"] = rounds
	return row


def table_node(name, row):
	heap, c = row["heap"], row["counters"]
	off = 100 * (heap["allocated"]["bytes"] / heap["counted_bytes"] - 1)
	error = 100 * heap["allocated"]["error_bytes"] / heap["counted_bytes"]
	cpu, wall = row["ratios"]["cpu"], row["ratios"]["wall"]
	return ["", f"## -e heap attached to {name} under load, a sample every {heap['interval_bytes'] >> 10} KB", "",
		f"- {row['samples']} samples in {heap['duration_ns'] / 1e9:.0f} s, {row['complete']:.2f} % of the stacks complete, "
		f"{heap['lost']} lost; a thread was stopped for {c.get('heap.stopped ns', 0) / 1e6:.2f} ms",
		f"- allocated, sampled: {heap['allocated']['bytes'] / 1e6:.0f} MB, {off:+.2f} % of the {heap['counted_bytes'] / 1e6:.0f} MB "
		f"that the hooks counted; stated error {error:.2f} %",
		f"- the node's throughput, {row['rounds']} slices with hooks between slices without: {cpu[0]:.3f} per CPU second "
		f"({cpu[1]:.3f} … {cpu[2]:.3f}), {wall[0]:.3f} per wall second ({wall[1]:.3f} … {wall[2]:.3f})"]


# --- a loop ---

def read_rounds(process, n):
	return [float(process.stdout.readline()) for _ in range(n)]


def lowest(values):
	"""Their lowest decile: what a pair takes while nobody else has the CPU's caches and its clock. Of rounds that are long enough
	for some 25 samples each."""
	return sorted(values)[len(values) // 10]


def loop_attached(program, gasflame, folder, rounds):
	"""ns a pair, in turns: with the slots as they were, and with the hooks in them, within one recording; and at last with hooks
	that a dead gasflame left, asleep."""
	path = os.path.join(folder, "loop.gasflame")
	process = subprocess.Popen([program, "200000"], stdout=subprocess.PIPE, text=True)
	found = {"alone": [], "attached": [], "left": []}
	try:
		process.stdout.readline()
		recorder = start_recording(gasflame, process.pid, path)
		slots = Slots(process.pid)
		for i in range(rounds):
			for name in ("alone", "attached") if i % 2 else ("attached", "alone"):
				slots.set(name == "attached")
				drain(process)
				found[name].append(lowest(read_rounds(process, 30)))
		slots.set(True)
		stop_recording(recorder)
		recorder = start_recording(gasflame, process.pid, path, ["--heap-sample", "64"])
		recorder.kill()
		recorder.wait()
		time.sleep(1) # until they have noticed
		drain(process)
		found["left"].append(lowest(read_rounds(process, 60)))
	finally:
		process.kill()
		process.wait()
	return found


def drain(process):
	"""What it said until now is of before."""
	os.set_blocking(process.stdout.fileno(), False)
	while process.stdout.readline():
		pass
	os.set_blocking(process.stdout.fileno(), True)
	process.stdout.readline()


def loop_under(command, environment=None):
	"""ns a pair of three rounds, the best; None: it cannot be had."""
	try:
		said = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
				      env={**os.environ, **(environment or {})})
	except (OSError, subprocess.TimeoutExpired):
		return None
	found = [float(x) for x in re.findall(r"^\d+\.\d+$", said.stdout, re.M)]
	return min(found) if found else None


EXACT = ("200000", "20") # pairs, rounds: many short ones, of which the best counts


def measure_allocator(name, program, gasflame, folder, rounds):
	"""({what: ns a pair}, what the hooks add: (median, low, high), and the same as a ratio)"""
	with Urgent():
		attached = loop_attached(program, gasflame, folder, rounds)
	pairs = list(zip(attached["alone"], attached["attached"]))
	rows = {"alone": median(attached["alone"]), "gasflame, attached": median(attached["attached"]),
		"hooks asleep, gasflame dead": median(attached["left"])}
	run = [gasflame, "run", "-e", "heap", "-o", os.path.join(folder, "r.gasflame"), "--", program, *EXACT]
	rows["gasflame run -e heap, exact"] = loop_under(run)
	rows["gasflame run -e heap, exact, two threads"] = loop_under([*run, "0", "2"])
	more = {"ns": bootstrap([b - a for a, b in pairs], median), "ratio": bootstrap([b / a for a, b in pairs], median)}
	if shutil.which("heaptrack"):
		rows["heaptrack"] = loop_under(["heaptrack", "-o", os.path.join(folder, f"loop-{name}"), program, "200000", "3"])
	return rows, more


def measure_loop(build, gasflame, folder, quick):
	truth = os.path.join(build, "tests", "system", "truth")
	program = os.path.join(truth, "truth-heaploop")
	rounds = 15 if quick else 60
	few = [program, "200000", "3"]
	exact = [gasflame, "run", "-e", "heap", "-o", os.path.join(folder, "r.gasflame"), "--", program, *EXACT]
	libc, libc_more = measure_allocator("libc", os.path.join(truth, "truth-heaploop-libc"), gasflame, folder, rounds)
	rows, more = measure_allocator("jemalloc", program, gasflame, folder, rounds)
	for depth in DEPTHS:
		rows[f"gasflame run -e heap, exact, {depth} frames deeper"] = loop_under([*exact, str(depth)])
	rows["gasflame run -e heap --heap-sample 512K"] = loop_under(
		[gasflame, "run", "-e", "heap", "--heap-sample", "512K", "-o", os.path.join(folder, "s.gasflame"), "--",
		 program, "2000000", "3"])
	for lg in (19, 14):
		rows[f"jemalloc's prof, a sample every {1 << lg - 10} KB"] = loop_under(
			[program, "2000000", "3"], {"MALLOC_CONF": f"prof:true,lg_prof_sample:{lg},prof_prefix:{folder}/je"})
	if shutil.which("heaptrack"):
		for depth in DEPTHS:
			rows[f"heaptrack, {depth} frames deeper"] = loop_under(
				["heaptrack", "-o", os.path.join(folder, "loop-heaptrack"), *few, str(depth)])
	if shutil.which("valgrind"):
		rows["massif"] = loop_under(["valgrind", "--tool=massif", f"--massif-out-file={folder}/loop.massif", *few])
	return {"jemalloc": rows, "glibc": libc}, {"jemalloc": more, "glibc": libc_more}


def table_loop(loops, more):
	lines = []
	for allocator, rows in loops.items():
		lines += ["", f"## malloc and free of 64 bytes, nothing else, {allocator}: CPU time of a pair", "",
			  "| | ns a pair | ratio |", "|---|---|---|"]
		for name, ns in rows.items():
			lines.append(f"| {name} | {ns:.2f} | {ns / rows['alone']:.2f} |" if ns else f"| {name} | not here | |")
		ns, ratio = more[allocator]["ns"], more[allocator]["ratio"]
		lines += ["", f"Attached, a pair takes {ns[0]:.2f} ns more ({ns[1]:.2f} … {ns[2]:.2f}), {ratio[0]:.2f} times as long "
			  f"({ratio[1]:.2f} … {ratio[2]:.2f})."]
	return lines


# --- a heap that is known ---

def run_truth(command, environment=None):
	"""(what the program said, CPU seconds, what the tool said)"""
	before = os.times()
	said = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
			      env={**os.environ, **(environment or {})})
	after = os.times()
	cpu = after.children_user + after.children_system - before.children_user - before.children_system
	return said.stdout, cpu, said.stderr


def truth_of(text):
	rows = {w[0]: tuple(map(int, w[1:])) for w in (line.split() for line in text.splitlines()) if len(w) == 4 and w[1].isdigit()}
	held = rows["keep_small"][0] + rows["keep_large"][0] + rows["hold"][1]
	return {"live": sum(r[0] for r in rows.values()), "allocated": sum(r[1] for r in rows.values()),
		"calls": sum(r[2] for r in rows.values()), "peak": held}


def heaptrack_figures(path):
	said = subprocess.run(["heaptrack_print", path], capture_output=True, text=True, check=False).stdout
	units = {"": 1, "B": 1, "K": 1e3, "M": 1e6, "G": 1e9}

	def number(pattern):
		match = re.search(pattern + r":? *([\d.]+)([BKMG]?)", said)
		return float(match.group(1)) * units[match.group(2)] if match else None
	return {"live": number("total memory leaked"), "peak": number("peak heap memory consumption"),
		"calls": number("calls to allocation functions")}


def massif_figures(path):
	with open(path, encoding="utf-8", errors="replace") as f:
		sizes = [int(x) for x in re.findall(r"^mem_heap_B=(\d+)", f.read(), re.M)]
	return {"peak": max(sizes), "live": None, "calls": None}


def jemalloc_figures(prefix):
	"""Unbiased by stack, as the format asks."""
	files = glob.glob(prefix + "*.f.heap")
	if not files:
		return None
	with open(files[0], encoding="utf-8", errors="replace") as f:
		text = f.read()
	interval = int(re.match(r"heap_v2/(\d+)", text).group(1))
	live = 0
	for objects, size in re.findall(r"^@.*\n  t\*: (\d+): (\d+)", text, re.M):
		if int(objects):
			live += int(size) / -math.expm1(-int(size) / int(objects) / interval)
	return {"live": live, "peak": None, "calls": None}


def own_figures(gasflame, path):
	heap = heap_of(gasflame, path)
	return {"live": heap["live"]["bytes"], "peak": heap["peak"]["bytes"], "calls": heap["allocated"]["objects"],
		"allocated": heap["allocated"]["bytes"], "error": heap["live"]["error_bytes"]}


def measure_figures(build, gasflame, folder):
	truth = os.path.join(build, "tests", "system", "truth", "truth-heap")
	said, _, _ = run_truth([truth, "2"])
	rows = {"the truth": truth_of(said)}
	path = os.path.join(folder, "figures")
	run_truth([gasflame, "run", "-e", "heap", "-o", path + ".gasflame", "--", truth, "2"])
	rows["gasflame run, exact"] = own_figures(gasflame, path + ".gasflame")
	run_truth([gasflame, "run", "-e", "heap", "--heap-sample", "16K", "-o", path + "16.gasflame", "--", truth, "2"])
	rows["gasflame, a sample every 16 KB"] = own_figures(gasflame, path + "16.gasflame")
	if shutil.which("heaptrack"):
		run_truth(["heaptrack", "-o", path + "-heaptrack", truth, "2"])
		written = glob.glob(path + "-heaptrack*")
		rows["heaptrack"] = heaptrack_figures(written[0]) if written else None
	if shutil.which("valgrind"):
		run_truth(["valgrind", "--tool=massif", f"--massif-out-file={path}.massif", truth, "2"])
		rows["massif"] = massif_figures(path + ".massif")
	library = glob.glob("/usr/lib/*/libjemalloc.so.2")
	if library:
		run_truth([truth, "2"], {"LD_PRELOAD": library[0], "MALLOC_CONF":
					 f"prof:true,lg_prof_sample:14,prof_final:true,prof_prefix:{path}-je"})
		rows["jemalloc's prof, a sample every 16 KB"] = jemalloc_figures(path + "-je")
	return rows


def table_figures(rows):
	def show(row, key):
		value = row.get(key) if row else None
		return f"{value:,.0f}" if value is not None else "–"
	lines = ["", "## A heap that is known, two threads", "",
		 "| | never freed, bytes | peak, bytes | allocated, bytes | allocations |", "|---|---|---|---|---|"]
	for name, row in rows.items():
		error = f" ± {row['error']:,.0f}" if row and row.get("error") else ""
		lines.append(f"| {name} | {show(row, 'live')}{error} | {show(row, 'peak')} | {show(row, 'allocated')} | "
			     f"{show(row, 'calls')} |")
	lines += ["", "Others count what the C library allocates for itself, too: some KB."]
	return lines


def measure_heap(build, folder, targets, quick):
	"""(rows, lines of the tables)"""
	gasflame = os.path.join(build, "src", "cmd", "gasflame")
	rows, lines = {}, []
	for target in targets:
		if target.name != "anvil":
			continue
		rows["node"] = measure_node(target, gasflame, folder, quick)
		lines += table_node(target.name, rows["node"])
		rows["node"]["heap"].pop("functions")
	rows["loop"], rows["loop more ns"] = measure_loop(build, gasflame, folder, quick)
	lines += table_loop(rows["loop"], rows["loop more ns"])
	rows["figures"] = measure_figures(build, gasflame, folder)
	lines += table_figures(rows["figures"])
	return rows, lines
