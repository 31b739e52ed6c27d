"""hour.py - how long captures of 1, 10 and 60 minutes take to read: page, report, blocks, diff, the server, each view; and ten
real minutes, recorded with sums.

longcapture makes the captures that are read, a million rows a minute, with old rows summed as a recorder sums them by default,
and the longest once more with all rows. A command's cost is its CPU time and its largest memory, as the kernel says when it
ends.
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
	"""From the command, and from the request of the page, to the last byte of the data of the first picture."""
	start = time.monotonic()
	with subprocess.Popen([gasflame, "serve", capture], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
		try:
			url = child.stdout.readline().strip()
			asked = time.monotonic()
			with urllib.request.urlopen(url) as page:
				text = page.read()
			data = (re.search(rb'data-first="([^"]+)"', text) or re.search(rb'data-url="([^"]+)"', text)).group(1).decode()
			with urllib.request.urlopen(url + data.replace("&amp;", "&")) as answer:
				answer.read()
			end = time.monotonic()
			with open(f"/proc/{child.pid}/stat", encoding="ascii") as f:
				ticks = f.read().rpartition(")")[2].split()[11:13]
			with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
				peak = re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)
		finally:
			child.send_signal(signal.SIGINT)
	return {"cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), "wall_s": end - start, "from_request_s": end - asked,
		"rss_mb": int(peak) / 1024}


def jobs(gasflame, capture, page):
	yield "page", [gasflame, "report", "--format", "html", "-o", page, capture]
	yield "report, text", [gasflame, "report", "--format", "text", capture]
	yield "blocks", [gasflame, "blocks", capture]
	yield "diff", [gasflame, "diff", capture, capture]
	for view in VIEWS:
		yield f"view {view}", [gasflame, "query", capture, f"select * from {view}"]


def show(row):
	return "longer" if row is None else f"{row['cpu_s']:.2f} s, {row['wall_s']:.2f} s, {row['rss_mb']:.0f} MB"


def measure_one(gasflame, maker, folder, minutes, keep_all, rows, key):
	"""All jobs on one capture; of one that keeps all, those that an hour is read with."""
	capture = os.path.join(folder, f"{key}.gasflame".replace(" ", "-"))
	rows.setdefault("written by longcapture", {})[key] = cost([maker, *["--keep-all"][:keep_all], capture, str(minutes)], 1800)
	for name, command in jobs(gasflame, capture, os.path.join(folder, "page.html")):
		if not keep_all or name in ("page", "blocks") or name.startswith("view "):
			rows.setdefault(name, {})[key] = cost(command, 300)
	rows.setdefault("serve, to the first picture", {})[key] = serve(gasflame, capture)
	os.unlink(capture)


def measure_hour(build, folder, quick):
	gasflame, maker = (os.path.join(build, *path) for path in (("src", "cmd", "gasflame"), ("bench", "longcapture")))
	subprocess.run(["ninja", "-C", build, "bench/longcapture"], check=True, stdout=subprocess.DEVNULL)
	lengths = [1, 4] if quick else [1, 10, 60]
	keys, rows = [f"{m} min" for m in lengths], {}
	for minutes, key in zip(lengths, keys):
		measure_one(gasflame, maker, folder, minutes, False, rows, key)
	kept = f"{lengths[-1]} min, all kept"
	measure_one(gasflame, maker, folder, lengths[-1], True, rows, kept)
	lines = ["", "## Long captures", "", "A million rows a minute, old ones summed as by default: CPU time, wall time, peak memory. Growth of "
		 "the CPU time from the first to the last, for each minute (1 is linear, less is better), and of the memory.", "",
		 "| | " + " | ".join(keys + [kept]) + " | time | memory |", "|---|" + "---|" * (len(keys) + 3)]
	for name, row in rows.items():
		first, last = row[keys[0]], row[keys[-1]]
		growth = "| |" if not first or not last else (
			f"× {last['cpu_s'] / max(first['cpu_s'], 0.01) / lengths[-1] * lengths[0]:.2f} | "
			f"× {last['rss_mb'] / first['rss_mb']:.1f} |")
		lines.append(f"| {name} | " + " | ".join(show(row[k]) if k in row else "" for k in keys + [kept]) + f" | {growth}")
	return rows, lines


# --- ten real minutes ---

SUMS = "select event, thread, stack, sum(samples), sum(value) from weights group by event, thread, stack"
BY_EVENT = "select event.name, sum(samples), sum(value) from weights join event on event.id = weights.event group by event.id"


def query(gasflame, capture, sql):
	return subprocess.run([gasflame, "query", capture, sql], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


def watch(recorders, seconds):
	"""Peak memory of each at a tenth of the time, and at its end."""
	def peak(child):
		with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
			return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024

	time.sleep(seconds / 10)
	early = [peak(child) for child in recorders]
	time.sleep(seconds * 0.85)
	late = [peak(child) for child in recorders]
	for child in recorders:
		if child.wait(120) not in (0, 3):
			raise RuntimeError(f"the recorder ended with {child.returncode}")
	return early, late


def measure_minutes(build, folder, quick):
	"""Two recorders of PostgreSQL at the same time, one of which sums; then the full recording is written again, with sums."""
	from servers import Postgres # it is not needed to read captures
	gasflame, maker = (os.path.join(build, *path) for path in (("src", "cmd", "gasflame"), ("bench", "longcapture")))
	subprocess.run(["ninja", "-C", build, "bench/longcapture"], check=True, stdout=subprocess.DEVNULL)
	seconds, limit, keep = (60, 2 << 20, 10) if quick else (600, 24 << 20, 30)
	paths = {name: os.path.join(folder, name + ".gasflame") for name in ("summed", "full", "again")}
	options = {"summed": ["--capture-limit", str(limit), "--keep-full", str(keep)], "full": ["--keep-all"]}
	server = Postgres()
	try:
		server.start()
		recorders = [subprocess.Popen([gasflame, "record", "-p", str(server.pid), "-e", "cpu,wait,io,fault", "--max-overhead", "0", "-d",
					       str(seconds), "-o", paths[name], *options[name]], stdin=subprocess.DEVNULL,
					      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for name in ("summed", "full")]
		# Processes that begin later are recorded: those that serve the clients.
		end = time.monotonic() + 60
		while not all(os.path.exists(paths[name]) for name in ("summed", "full")):
			if time.monotonic() > end:
				raise RuntimeError("the recorders do not begin")
			time.sleep(0.1)
		load = subprocess.Popen(server.command("pgbench", "-S", "-n", "-c", "4", "-j", "1", "-R", "2000", "-T", str(seconds), "-h",
						       server.folder, "postgres"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
					stderr=subprocess.DEVNULL)
		early, late = watch(recorders, seconds)
		load.wait(120)
	finally:
		server.stop()
	subprocess.run([maker, "--again", paths["full"], paths["again"], str(limit), str(keep)], check=True)
	slots = {name: int(query(gasflame, path, "select count(*) from summed").split()[1]) for name, path in paths.items()}
	full, again = (query(gasflame, paths[name], SUMS) for name in ("full", "again"))
	result = {"seconds": seconds, "slots": slots, "bytes": {name: os.path.getsize(path) for name, path in paths.items()},
		  "rss_mb_early": early, "rss_mb_late": late, "equal_sums": full == again, "sums": full.count("\n") - 1,
		  "by_event": {name: query(gasflame, path, BY_EVENT) for name, path in paths.items()}}
	if not slots["summed"] or not slots["again"]:
		raise RuntimeError(f"nothing was summed: the recording is too small for the limit of {limit} bytes: {result['bytes']}, {slots}")
	lines = ["", f"## {seconds} s of PostgreSQL, summed", "",
		 f"`--capture-limit {limit >> 20}M --keep-full {keep}`: {slots['summed']} slots, {result['bytes']['summed'] >> 10} KB, beside "
		 f"{result['bytes']['full'] >> 10} KB with `--keep-all`; the recorder's memory after a tenth of the time and at the end: "
		 f"{early[0]:.0f} and {late[0]:.0f} MB (with `--keep-all` {early[1]:.0f} and {late[1]:.0f} MB). The full recording written again "
		 f"with sums ({slots['again']} slots): {'all' if full == again else 'NOT all'} of {result['sums']} sums by event, thread and stack "
		 "are equal.", "", "| event | samples, summed | full | value, summed | full |", "|---|---|---|---|---|"]
	both = [dict((line.split("\t")[0], line.split("\t")[1:]) for line in result["by_event"][name].splitlines()[1:])
		for name in ("summed", "full")]
	for event in both[1]:
		a, b = both[0].get(event, ["", ""]), both[1][event]
		lines.append(f"| {event} | {a[0]} | {b[0]} | {a[1]} | {b[1]} |")
	return result, lines
