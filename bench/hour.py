"""hour.py - how long captures of 1, 10 and 60 minutes take to read: page, report, blocks, diff, the server, each view.

longcapture makes them, a million rows a minute, with old rows summed as a recorder sums them by default. A command's cost
is its CPU time and its largest memory, as the kernel says when it ends. The last column is the growth from the shortest to the longest for each minute: 1 is linear,
less is better.
"""
import os
import re
import signal
import subprocess
import time
import urllib.request

VIEWS = ["threads", "modules", "stacks", "top_functions", "sites", "waits", "wakes", "marks", "notes"]


def cost(command, limit_s):
	"""CPU seconds, wall seconds and peak megabytes of one command; None where it takes longer than the limit."""
	start = time.monotonic()
	with open(os.devnull, "r+b") as null:
		child = subprocess.Popen(command, stdin=null, stdout=null, stderr=null)
	signal.signal(signal.SIGALRM, lambda *_: child.kill())
	signal.alarm(limit_s)
	_, status, used = os.wait4(child.pid, 0)
	signal.alarm(0)
	child.returncode = os.waitstatus_to_exitcode(status)
	if child.returncode == -signal.SIGKILL:
		return None
	if child.returncode not in (0, 3):
		raise RuntimeError(f"{' '.join(command)}: status {child.returncode}")
	return {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - start, "rss_mb": used.ru_maxrss / 1024}


def serve(gasflame, capture):
	"""From the command to the last byte of the data of the first picture."""
	start = time.monotonic()
	with subprocess.Popen([gasflame, "serve", capture], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
		try:
			url = child.stdout.readline().strip()
			with urllib.request.urlopen(url) as page:
				data = re.search(rb'data-url="([^"]+)"', page.read()).group(1).decode()
			with urllib.request.urlopen(url + data.replace("&amp;", "&")) as answer:
				answer.read()
			wall = time.monotonic() - start
			with open(f"/proc/{child.pid}/stat", encoding="ascii") as f:
				ticks = f.read().rpartition(")")[2].split()[11:13]
			with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
				peak = re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)
		finally:
			child.send_signal(signal.SIGINT)
	return {"cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), "wall_s": wall, "rss_mb": int(peak) / 1024}


def jobs(gasflame, capture, page):
	yield "page", [gasflame, "report", "--format", "html", "-o", page, capture]
	yield "report, text", [gasflame, "report", "--format", "text", capture]
	yield "blocks", [gasflame, "blocks", capture]
	yield "diff", [gasflame, "diff", capture, capture]
	for view in VIEWS:
		yield f"view {view}", [gasflame, "query", capture, f"select * from {view}"]


def show(row):
	return "longer" if row is None else f"{row['cpu_s']:.2f} s, {row['rss_mb']:.0f} MB"


def measure_hour(build, folder, quick):
	gasflame, maker = (os.path.join(build, *path) for path in (("src", "cmd", "gasflame"), ("bench", "longcapture")))
	subprocess.run(["ninja", "-C", build, "bench/longcapture"], check=True, stdout=subprocess.DEVNULL)
	lengths = [1, 4] if quick else [1, 10, 60]
	rows = {}
	for minutes in lengths:
		capture = os.path.join(folder, f"{minutes}.gasflame")
		rows.setdefault("written by longcapture", {})[minutes] = cost([maker, capture, str(minutes)], 1800)
		for name, command in jobs(gasflame, capture, os.path.join(folder, "page.html")):
			rows.setdefault(name, {})[minutes] = cost(command, 600)
		rows.setdefault("serve, to the first picture", {})[minutes] = serve(gasflame, capture)
		os.unlink(capture)
	lines = ["", "## Long captures", "", "A million rows a minute, old ones summed as by default; CPU time and peak memory.", "",
		 "| | " + " | ".join(f"{m} min" for m in lengths) + " | time, each minute | memory |",
		 "|---|" + "---|" * (len(lengths) + 2)]
	for name, row in rows.items():
		first, last = row[lengths[0]], row[lengths[-1]]
		growth = "| |" if not first or not last else (
			f"× {last['cpu_s'] / max(first['cpu_s'], 0.01) / lengths[-1] * lengths[0]:.2f} | "
			f"× {last['rss_mb'] / first['rss_mb']:.1f} |")
		lines.append(f"| {name} | " + " | ".join(show(row[m]) for m in lengths) + f" | {growth}")
	return rows, lines
