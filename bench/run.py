#!/usr/bin/env python3
"""run.py [--quick] [--only PHASE,…] - gasflame and perf side by side, in one run.

Phases: stacks (recordings of the workload and of anvil with each profiler, interleaved and repeated), overhead
(every profiler attached, switched on and off in short paired slices), slow (99 Hz), symbols (a binary with a
lot of debug information), start (from the command to the first sample, from the end to the prompt), switches (100,000
context switches a second: waits), servers (PostgreSQL and Redis under their own benchmarks), budget
(--max-overhead against the measured loss), heap (heaptrack, massif,
jemalloc beside -e heap), tasks (hooks of -e task), hour (reading captures of 1, 10 and 60 minutes), minutes (a real recording
that is summed), collapse (the text of perf script as folded stacks), perfdata (import of perf.data beside perf script), store (ten
million rows in two ClickHouse servers), agents (what a real agent's windows take in a store, and how fast a spool is delivered). Prints a table. bench/results/ has each phase as soon as it is done: Ctrl-C keeps what was measured.
"""
import argparse
import datetime
import glob
import os
import platform
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from budget import measure_budget
from collapsing import measure_collapse
from heap import measure_heap
from hour import measure_hour, measure_minutes
from measure import Urgent, bootstrap, cpu_ns, host_facts, mean, median, status_bytes, with_children
from perfdata import measure_perfdata
from profilers import Gasflame, Perf
from results import Results
from servers import measure_servers
from start import measure_start
from fleet.agents import measure_agents
from fleet.store import measure_store
from switches import measure_switches
from targets import Anvil, Workload
from tasks import measure_tasks

HERE = os.path.dirname(os.path.abspath(__file__))
STATS = "/proc/sys/kernel/bpf_stats_enabled"
PHASES = ["stacks", "overhead", "slow", "symbols", "start", "switches", "servers", "budget", "heap", "tasks", "hour", "minutes", "collapse", "perfdata", "store", "agents"]


def say(text):
	print(text, file=sys.stderr, flush=True)


class Bench:
	def __init__(self, options):
		self.options = options
		self.build = os.path.abspath(options.build)
		self.gasflame = os.path.join(self.build, "src", "cmd", "gasflame")
		self.folder = tempfile.mkdtemp(prefix="bench-", dir=self.build)
		self.cache = os.path.join(self.build, "bench-cache")
		os.environ["XDG_CACHE_HOME"] = os.path.join(self.folder, "cache")
		self.results = {"host": host_facts(), "quick": options.quick}
		self.lines = []
		with open(STATS, encoding="ascii") as f:
			self.stats = f.read().strip()

	def path(self, name):
		return os.path.join(self.folder, name)

	def targets(self, kinds=None):
		chosen = self.options.targets.split(",")
		found = []
		if "workload" in chosen:
			found.append(Workload(self.build, self.folder, kinds))
		if "anvil" in chosen:
			try:
				found.append(Anvil(self.folder))
			except (RuntimeError, OSError) as problem:
				say(f"without anvil: {problem}")
				self.results["anvil_missing"] = str(problem)
		return found

	# --- recordings: complete stacks, bytes, seconds to a picture, cost of the recorder ---
	def stacks(self):
		seconds = 5 if self.options.quick else 10
		repeats = 1 if self.options.quick else 2
		limit_s = 60 if self.options.quick else 120
		rows = []
		for target in self.targets():
			for turn in range(repeats):
				makers = [lambda: None, lambda: Gasflame(self.gasflame)]
				makers += [lambda g=g: Perf(g) for g in ("fp", "dwarf 8K", "dwarf 64K")]
				random.Random(turn).shuffle(makers)
				target.start() # anew: a node grows
				try:
					for maker in makers:
						rows.append(self.one_recording(target, maker(), seconds, limit_s))
				finally:
					target.stop()
		self.results["recordings"] = rows
		self.table_recordings(rows, seconds, repeats)

	def one_recording(self, target, profiler, seconds, limit_s):
		"""One recording; the target goes on meanwhile, so conversions run beside it, for all alike."""
		name = profiler.name if profiler else "no profiler"
		say(f"  {target.name}: {name}")
		row = {"target": target.name, "profiler": name, "seconds": seconds}
		if profiler:
			profiler.start(target.pid, self.path("recording"), 999)
			begin_watch = time.monotonic()
		before, cpu_before, begin = target.counters.total(target.kind), cpu_ns(target.pid), time.monotonic()
		if profiler:
			profiler.watch(seconds - (time.monotonic() - begin_watch))
		else:
			time.sleep(seconds)
		took = time.monotonic() - begin
		work = target.counters.total(target.kind) - before
		row["work_per_s"] = work / took
		row["work_per_cpu_s"] = work / ((cpu_ns(target.pid) - cpu_before) / 1e9)
		if not profiler:
			return row
		profiler.finish()
		os.kill(target.pid, 0)
		row["bytes"] = os.path.getsize(profiler.path)
		svg = profiler.to_svg(self.path("picture.svg"), limit_s)
		row.update(stop_s=profiler.seconds_to_stop, svg_s=profiler.seconds_to_stop + svg["seconds"],
			   late=svg["late"], recorded=svg["recorded"], samples=svg["samples"], complete=svg["complete"], cpu_s=profiler.cpu_s,
			   rss=profiler.peak_rss, anon=profiler.peak_anon)
		for key in ("unmarked", "ends", "user_frames", "named_frames"):
			if key in svg:
				row[key] = svg[key]
		if isinstance(profiler, Gasflame):
			row["counters"] = {k: v for k, v in profiler.counters().items()
					   if re.match(r"bpf\.|self\.|samples\.|truncated\.|symbols\.(frames|named|ms)", k)}
		profiler.remove()
		return row

	def table_recordings(self, rows, seconds, repeats):
		self.lines += ["", f"## Recordings of {seconds} s at 999 Hz, {repeats} of each, interleaved (medians)", "",
			       "| target | profiler | samples | complete stacks | bytes a sample | end to SVG | own CPU | "
			       "peak RSS (anonymous) | work a second, against none |", "|---|---|---|---|---|---|---|---|---|"]
		for target in dict.fromkeys(r["target"] for r in rows):
			base = median([r["work_per_s"] for r in rows
				       if r["target"] == target and r["profiler"] == "no profiler"])
			for name in ("no profiler", "gasflame", "perf fp", "perf dwarf 8K", "perf dwarf 64K"):
				these = [r for r in rows if r["target"] == target and r["profiler"] == name]
				if not these:
					continue
				ratio = f"{median([r['work_per_s'] for r in these]) / base:.3f}"
				if name == "no profiler":
					self.lines.append(f"| {target} | none | | | | | | | {ratio} |")
					continue
				def middle(key):
					return median([r[key] for r in these])
				complete = median([r["complete"] * 100 / max(r["samples"], 1) for r in these])
				late = "> " if any(r["late"] for r in these) else ""
				part = " (of the part converted in time)" if late else ""
				size = median([r["bytes"] / max(r["recorded"], 1) for r in these])
				self.lines.append(
					f"| {target} | {name} | {middle('recorded'):.0f} | {complete:.2f} %{part} | "
					f"{size:.0f} | {late}{middle('svg_s'):.2f} s | "
					f"{middle('cpu_s'):.2f} s | {middle('rss') / 1e6:.0f} MB ({middle('anon') / 1e6:.0f}) | "
					f"{ratio} |")
		own = [r for r in rows if r["profiler"] == "gasflame"]
		self.lines.append("")
		for row in own:
			c = row["counters"]
			text = f"- gasflame on {row['target']}: {row['unmarked']} of {row['samples']} stacks without a mark"
			if c.get("bpf.run_count"):
				text += (f", BPF {c['bpf.run_ns'] / max(c.get('samples.taken', 0), 1) / 1000:.2f} us a sample "
					 f"({c['bpf.run_ns'] / c['bpf.run_count'] / 1000:.2f} a run, other processes' ticks included)")
			text += f", {row['named_frames']} of {row['user_frames']} user frames named"
			if row["ends"]:
				text += f"; other ends: {row['ends']}"
			self.lines.append(text)
		self.lines += ["", "Complete: the outermost frame is the entry of the thread or of the program. perf's pictures: "
			       "`perf script`, a collapse script of our own (Debian has none), flamegraph.pl."]

	# --- overhead: everybody attached, one at a time switched on ---
	def overhead(self):
		rounds = self.options.rounds or (20 if self.options.quick else 120)
		slice_s, settle_s = 0.4, 0.1
		self.results["overhead"] = {}
		for target in self.targets("compute"):
			target.start()
			profilers = {"nothing": None, "gasflame": Gasflame(self.gasflame), "perf none": Perf("none"),
				     "perf fp": Perf("fp"), "perf dwarf 64K": Perf("dwarf 64K")}
			try:
				for i, p in enumerate(profilers.values()):
					if p:
						# perf writes to nowhere, in its favour: it would be 100 MB a second.
						p.start(target.pid, self.path(f"toggle-{i}") if isinstance(p, Gasflame) else os.devnull,
							999, paused=True)
				say(f"  {target.name}: {rounds} rounds, about {rounds * len(profilers) * 2 * (slice_s + settle_s):.0f} s")
				with Urgent():
					ratios = self.toggle(target, profilers, rounds, slice_s, settle_s)
			finally:
				for p in profilers.values():
					if p and hasattr(p, "process") and p.process.poll() is None:
						p.finish()
						p.remove()
				target.stop()
			self.table_overhead(target, ratios, slice_s)

	def toggle(self, target, profilers, rounds, slice_s, settle_s):
		"""Ratios of work with and without, by profiler: an on-slice against the off-slices around it."""
		source = random.Random(self.options.seed)

		def one_slice():
			time.sleep(settle_s)
			work, cpu, wall = target.counters.total(target.kind), cpu_ns(target.pid), time.monotonic_ns()
			time.sleep(slice_s)
			work2, cpu2, wall2 = target.counters.total(target.kind), cpu_ns(target.pid), time.monotonic_ns()
			return (work2 - work) / (cpu2 - cpu), (work2 - work) / (wall2 - wall)

		ratios = {name: {"cpu": [], "wall": []} for name in profilers}
		off = one_slice()
		for _ in range(rounds):
			order = list(profilers)
			source.shuffle(order)
			for name in order:
				p = profilers[name]
				if p:
					p.resume()
				on = one_slice()
				if p:
					p.pause()
				after = one_slice()
				ratios[name]["cpu"].append(on[0] / mean([off[0], after[0]]))
				ratios[name]["wall"].append(on[1] / mean([off[1], after[1]]))
				off = after
		return ratios

	def table_overhead(self, target, ratios, slice_s):
		kept = {}
		n = len(ratios["nothing"]["cpu"])
		self.lines += ["", f"## Overhead at 999 Hz on {target.name}: {n} on-slices of {slice_s} s for each, between "
			       "off-slices, everybody attached", "",
			       "| profiler | work lost per CPU second (95 % interval) | per wall second (95 % interval) |",
			       "|---|---|---|"]
		for name, both in ratios.items():
			kept[name] = {}
			cells = []
			for clock in ("cpu", "wall"):
				value, low, high = bootstrap([1 - r for r in both[clock]])
				kept[name][clock] = {"lost": value, "low": low, "high": high}
				cells.append(f"{value * 100:.2f} % ({low * 100:.2f} … {high * 100:.2f})")
			self.lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
		for other in ("perf none", "perf fp", "perf dwarf 64K"):
			for clock in ("cpu", "wall"):
				pairs = [b - a for a, b in zip(ratios["gasflame"][clock], ratios[other][clock])]
				value, low, high = bootstrap(pairs)
				kept[f"gasflame minus {other}, {clock}"] = {"lost": value, "low": low, "high": high}
				self.lines.append(f"| gasflame less {other}, per {clock} second | {value * 100:+.2f} points "
						  f"({low * 100:+.2f} … {high * 100:+.2f}) | |")
		self.results["overhead"][target.name] = {"slices": n, "slice_s": slice_s, **kept}

	# --- 99 Hz: too little to see by slices; the counters say it ---
	def slow(self):
		seconds = 10 if self.options.quick else 60
		self.lines += ["", f"## At 99 Hz, {seconds} s: BPF run time and gasflame's CPU, percent of one CPU", "",
			       "| target | BPF | gasflame while recording | sum | gasflame, start and end included | "
			       "samples | bytes a sample |", "|---|---|---|---|---|---|---|"]
		self.results["slow"] = []
		for target in self.targets():
			target.start()
			try:
				p = Gasflame(self.gasflame)
				p.start(target.pid, self.path("slow"), 99)
				pids = with_children(p.process.pid)
				before, begin = sum(cpu_ns(pid) for pid in pids), time.monotonic()
				p.watch(seconds)
				after, took = sum(cpu_ns(pid) for pid in pids), time.monotonic() - begin
				p.finish()
			finally:
				target.stop()
			counters, counts = p.counters(), p.count_complete()
			bpf = counters.get("bpf.run_ns", 0) / 1e9 / took * 100
			own = (after - before) / 1e9 / took * 100
			row = {"target": target.name, "seconds": took, "bpf_percent": bpf, "own_percent": own,
			       "whole_percent": p.cpu_s / took * 100, "bytes": os.path.getsize(p.path), **counts,
			       "counters": counters}
			self.results["slow"].append(row)
			self.lines.append(f"| {target.name} | {bpf:.3f} | {own:.3f} | {bpf + own:.3f} | {row['whole_percent']:.2f} | "
					  f"{counts['samples']} | {row['bytes'] / max(counts['samples'], 1):.0f} |")
			p.remove()

	# --- a lot of debug information ---
	def symbols(self):
		seconds = 4 if self.options.quick else 10
		limit_s = 60 if self.options.quick else 120
		program = make_big_program(self.cache)
		packed = program + "-packed"
		if not os.path.exists(packed):
			subprocess.run(["objcopy", "--compress-debug-sections=zlib", program, packed], check=True)
		rows = []
		for path in (program, packed):
			name = f"{'compressed' if path == packed else 'plain'}, {debug_bytes(path) / 1e6:.0f} MB in the file"
			process = subprocess.Popen([path, "100000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
			time.sleep(0.5)
			try:
				forget_cache()
				rows.append({"binary": name, "who": "gasflame record", **self.big_recording(process.pid, seconds)})
				rows += [{"binary": name, **row} for row in self.big_reports(process.pid, seconds, limit_s)]
				addresses = self.big_addresses()
				rows.append({"binary": name, "who": "addr2line -fi", **run_addr2line(path, addresses, limit_s)})
				if path == program:
					rows.append({"binary": name, "who": "perf script", **self.big_perf(process.pid, seconds, limit_s)})
			finally:
				process.kill()
				process.wait()
		self.results["symbols"] = rows
		self.lines += ["", f"## Lines and inlined frames of {seconds} s at 999 Hz of a program with much debug information", "",
			       "| binary | who | seconds | anonymous memory (peak RSS) | what |", "|---|---|---|---|---|"]
		for r in rows:
			anon = f"{r['anon'] / 1e6:.0f} MB" if "anon" in r else "?"
			self.lines.append(f"| {r['binary']} | {r['who']} | {'> ' if r['late'] else ''}{r['seconds']:.2f} | "
					  f"{anon} ({r['rss'] / 1e6:.0f} MB) | {r['what']} |")

	def big_recording(self, pid, seconds):
		p = Gasflame(self.gasflame)
		p.start(pid, self.path("big"), 999)
		p.watch(seconds)
		p.finish()
		c = p.counters()
		return {"seconds": c.get("symbols.ms", 0) / 1000, "late": False, "anon": p.peak_anon, "rss": p.peak_rss,
			"end_to_exit_s": p.seconds_to_stop,
			"what": f"{c.get('symbols.frames', 0)} addresses, {c.get('symbols.with lines', 0)} with lines, "
				f"{c.get('symbols.inlined', 0)} inlined; {p.seconds_to_stop:.2f} s from the end to its exit"}

	def big_reports(self, pid, seconds, limit_s):
		"""The same addresses twice: a recorder that is killed leaves them to report, here to two copies."""
		p = Gasflame(self.gasflame)
		p.start(pid, self.path("killed"), 999)
		p.watch(seconds)
		p.process.kill()
		p.process.wait()
		copies = []
		for turn in ("first", "cached"):
			folder = self.path(turn)
			os.makedirs(folder, exist_ok=True)
			for name in glob.glob(self.path("killed*")):
				shutil.copy(name, folder)
			copies.append((turn, os.path.join(folder, "killed")))
		forget_cache()
		for turn, path in copies:
			row = run_watched([self.gasflame, "report", "--format", "text", path], limit_s)
			if row["status"] not in (0, 3):
				raise RuntimeError("report: " + row["said"])
			names = re.search(r"([\d,.]+ samples.*name)", row["said"])
			del row["said"]
			yield {"who": f"gasflame report, {turn}", **row, "what": names.group(1) if names else ""}
			shutil.rmtree(os.path.dirname(path))

	def big_addresses(self):
		db = sqlite3.connect(self.path("big"))
		found = [row[0] for row in db.execute("select address from frame join module on module.id = frame.module "
						      "where frame.kind = 0 and module.path like '%bigdebug%'")]
		db.close()
		return found

	def big_perf(self, pid, seconds, limit_s):
		p = Perf("dwarf 8K")
		p.start(pid, self.path("bigperf"), 999)
		p.watch(seconds)
		p.finish()
		svg = p.to_svg(self.path("big.svg"), limit_s)
		p.remove()
		return {"seconds": svg["seconds"], "late": svg["late"], "rss": svg["script_rss"],
			"what": f"{svg['samples']} samples came out"}

	# --- the beginning and the end of a recording ---
	def start(self):
		rows, lines = measure_start(self.build, self.folder, self.options.quick)
		self.results["start"] = rows
		self.lines += lines

	# --- very many switches ---
	def switches(self):
		rows, lines = measure_switches(self.build, self.folder, self.options.quick)
		self.results["switches"] = rows
		self.lines += lines

	# --- servers ---
	def servers(self):
		rows, lines = measure_servers(self.build, self.folder, self.options.quick)
		self.results["servers"] = rows
		self.lines += lines

	# --- an hour ---
	def hour(self):
		rows, lines = measure_hour(self.build, self.folder, self.options.quick)
		self.results["hour"] = rows
		self.lines += lines

	def minutes(self):
		row, lines = measure_minutes(self.build, self.folder, self.options.quick)
		self.results["minutes"] = row
		self.lines += lines

	# --- the budget ---
	def budget(self):
		rows, lines = measure_budget(self.build, self.folder, self.options.quick)
		self.results["budget"] = rows
		self.lines += lines

	# --- the heap ---
	def heap(self):
		rows, lines = measure_heap(self.build, self.folder, self.targets(), self.options.quick)
		self.results["heap"] = rows
		self.lines += lines

	# --- folded stacks ---
	def collapse(self):
		row, lines = measure_collapse(self.build, self.folder, self.options.quick)
		self.results["collapse"] = row
		self.lines += lines

	# --- perf's own files ---
	def perfdata(self):
		rows, lines = measure_perfdata(self.build, self.folder, self.options.quick)
		self.results["perfdata"] = rows
		self.lines += lines

	# --- a store ---
	def store(self):
		figures, lines = measure_store(self.build, self.folder, self.options.quick)
		self.results["store"] = figures
		self.lines += lines

	# --- an agent's windows ---
	def agents(self):
		figures, lines = measure_agents(self.build, self.folder, self.options.quick)
		self.results["agents"] = figures
		self.lines += lines

	# --- tasks ---
	def tasks(self):
		rows, lines = measure_tasks(self.build, self.folder, self.targets(), self.options.quick)
		self.results["tasks"] = rows
		self.lines += lines

	def open_results(self, folder):
		host = self.results["host"]
		slug = re.sub(r"[^a-z0-9.]+", "-", f"{host['cpu']} {host['kernel']}".lower()).strip("-")
		# A run of some phases stands beside that of all, not in its place.
		part = "" if self.options.only == ",".join(PHASES) else "-" + self.options.only.replace(",", "-")
		return Results(os.path.join(folder, f"{datetime.date.today()}-{slug}{part}"))

	def text(self, done, phases):
		host = self.results["host"]
		title = [f"# gasflame and perf, {datetime.date.today()}", "",
			 f"{host['cpu']}, {host['cpus']} CPUs, {host['memory_mb']} MB, Linux {host['kernel']}, "
			 f"{self.results['perf']}, load before {host['load_before']}"
			 f"{', quick run: too short to conclude from' if self.options.quick else ''}"]
		if done < len(phases):
			title += ["", f"Unfinished: {', '.join(phases[:done])} of {', '.join(phases)}."]
		return "\n".join(title + self.lines) + "\n"

	def run(self, phases, folder):
		"""What a phase measured is in the results file as soon as it is done. folder None: print only."""
		results = self.open_results(folder) if folder else None
		for done, phase in enumerate(phases, 1):
			say(f"{phase} …")
			# Counting costs some nanoseconds a run: not while overhead is measured.
			with open(STATS, "w", encoding="ascii") as f:
				f.write(self.stats if phase == "overhead" else "1")
			getattr(self, phase)()
			if results:
				name = results.write(self.text(done, phases), self.results, done == len(phases))
				say(f"written: {os.path.relpath(name)}.md and .json")
		print(self.text(len(phases), phases))


def make_big_program(cache):
	"""The program of bigdebug.sh, made once."""
	folder = os.path.join(cache, "bigdebug")
	program = os.path.join(folder, "bigdebug")
	if not os.path.exists(program):
		say("  making a program with much debug information")
		subprocess.run([os.path.join(HERE, "bigdebug.sh"), folder], check=True, stdout=subprocess.DEVNULL)
	return program


def debug_bytes(path):
	"""Size of the debug sections, as they are in the file."""
	said = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
	return sum(int(size, 16) for size in re.findall(r" \.debug_\S+\s+PROGBITS\s+\S+\s+\S+\s+([0-9a-f]+)", said))


def forget_cache():
	shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)


def run_watched(command, limit_s, given=None):
	"""Runs a command with an eye on its memory and the clock."""
	with tempfile.TemporaryFile("w+") as text, tempfile.TemporaryFile("w+") as answer:
		text.write(given or "")
		text.seek(0)
		begin = time.monotonic()
		child = subprocess.Popen(command, stdin=text, stdout=answer, stderr=answer)
		late, anon, rss = False, 0, 0
		while child.poll() is None:
			pids = with_children(child.pid)
			anon = max(anon, sum(status_bytes(pid, "RssAnon") for pid in pids))
			rss = max(rss, sum(status_bytes(pid, "VmHWM") for pid in pids))
			if time.monotonic() - begin > limit_s:
				late = True
				child.kill()
			time.sleep(0.01)
		seconds = time.monotonic() - begin
		answer.seek(0)
		return {"seconds": seconds, "late": late, "anon": anon, "rss": rss, "status": child.returncode,
			"said": answer.read()}


def run_addr2line(path, addresses, limit_s):
	"""One addr2line for all addresses, which is its best case."""
	row = run_watched(["addr2line", "-a", "-f", "-i", "-e", path], limit_s,
			  "".join(f"{address:#x}\n" for address in addresses))
	done = sum(line.startswith("0x") for line in row.pop("said").splitlines())
	return {**row, "what": f"{done} of {len(addresses)} addresses"}


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument("--build", default="build", help="folder of the build that is measured")
	parser.add_argument("--quick", action="store_true", help="minutes instead of an hour; too short to conclude from")
	parser.add_argument("--only", default=",".join(PHASES), help="phases, by comma: " + ", ".join(PHASES))
	parser.add_argument("--targets", default="workload,anvil")
	parser.add_argument("--rounds", type=int, help="of paired slices in the overhead phase; 120, or 20 with --quick")
	parser.add_argument("--dry", action="store_true", help="print, write no result")
	parser.add_argument("--seed", type=int, default=1)
	options = parser.parse_args()
	if os.getuid():
		parser.error("needs root, for perf's and our own sake")
	for phase in options.only.split(","):
		if phase not in PHASES:
			parser.error(f"no such phase: {phase}")
	bench = Bench(options)
	perf = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=False).stdout.strip()
	bench.results["perf"] = perf
	bench.results["python"] = platform.python_version()
	try:
		bench.run(options.only.split(","), None if options.dry else os.path.join(HERE, "results"))
	except KeyboardInterrupt:
		say("stopped: the phases that were done are in the results file")
		return 130
	finally:
		with open(STATS, "w", encoding="ascii") as f:
			f.write(bench.stats)
		shutil.rmtree(bench.folder, ignore_errors=True)
	return 0


if __name__ == "__main__":
	sys.exit(main())
