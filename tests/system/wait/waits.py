#!/usr/bin/env python3
"""waits.py - what a recording with -e cpu,wait says, against what is true. One line for each thing, for wait.sh.

	waits.py times CAPTURE OUT      by function: name, true ms, found ms, and of that cpu, queue, wait; percent of
	                                the wait below complete stacks. OUT is what truth-waits printed
	waits.py account CAPTURE LOG    by thread: name, tid, run ms, the kernel's least and most, queue ms, the kernel's least
	                                and most, blocked ms, life ms, times run, longest time in the queue. LOG is from
	                                truth-schedstat
	waits.py run CAPTURE NAME       of the threads of that name, and of all: run ms by the account, and by samples
	waits.py sums CAPTURE           by thread: name, tid, and in ms the account's queue and blocked, the samples'
	                                queue and wait, life
	waits.py causes REPORT          by thread of a report in JSON: name, and ms of each cause as cause=ms; then "all"
	waits.py paths CAPTURE OUT      often and rarely of truth-switches: name, true share, found share, and the standard
	                                error that the recording states, all in percent
	waits.py below CAPTURE NAME     ms of waits below a function
	waits.py share CAPTURE NAME     the same in percent of all waits
	waits.py children CAPTURE OUT   how many children truth-storm made meanwhile, and how many were seen napping
	waits.py wakes CAPTURE NAME     who ended most of the time of the waits below a function: the waker's thread, percent of
	                                them, its stack
"""
import json
import sqlite3
import sys

ENTRIES = {"_start", "__libc_start_main", "clone3", "__clone3", "clone", "__clone", "_dl_start_user", "_dl_start"}


class Capture:
	def __init__(self, path):
		self.db = sqlite3.connect(path)
		meta = dict(self.db.execute("select key, value from meta"))
		self.start_ns = int(meta["start_wall_ns"])
		self.duration_ns = int(meta["duration_ns"])
		self.end_ns = self.start_ns + self.duration_ns
		self.kind = dict(self.db.execute("select id, kind from frame"))
		self.nodes = {i: (parent, frame) for i, parent, frame in
			      self.db.execute("select id, parent, frame from stack")}
		self.names = {}
		for frame, name in self.db.execute("select l.frame, f.name from frame_line l join function f "
						   "on f.id = l.function order by l.depth"):
			self.names.setdefault(frame, []).append(name)

	def stack(self, stack):
		"""Frame ids, outermost first."""
		found = []
		while stack and stack in self.nodes:
			stack, frame = self.nodes[stack]
			found.append(frame)
		return found[::-1]

	def functions(self, stack):
		"""Names, outermost first, inlined ones too."""
		return [name for frame in self.stack(stack) for name in self.names.get(frame, ["?"])[::-1]]

	def complete(self, stack):
		frames = self.stack(stack)
		return bool(frames) and self.kind[frames[0]] != 2 and self.names.get(frames[0], ["?"])[-1] in ENTRIES

	def weights(self, keys="s.stack"):
		"""{(event, keys…): value}"""
		return {row[:-1]: row[-1] for row in self.db.execute(
			f"select e.name, {keys}, sum(coalesce(s.value, e.period)) from sample s join event e on e.id = s.event "
			f"group by e.name, {keys}")}

	def threads(self):
		for row in self.db.execute("select t.id, t.name, t.tid, t.start_ns, t.end_ns, t.run_ns, t.queue_ns, t.blocked_ns "
					   "from thread t order by t.id"):
			yield row


def read_spans(path, offset=None):
	"""{name: [(begin, end, ns)]}, by the wall clock."""
	spans = {}
	with open(path, encoding="ascii") as f:
		lines = [line.split() for line in f]
	for words in lines:
		if words[:1] == ["clock"]:
			offset = int(words[2]) - int(words[1])
	for words in lines:
		if words[:1] == ["span"]:
			begin, end = int(words[3]) + (offset or 0), int(words[4]) + (offset or 0)
			spans.setdefault(words[1], []).append((begin, end, int(words[5]) if len(words) > 5 else end - begin))
	return spans


def times(capture, out):
	c = Capture(capture)
	spans = read_spans(out)
	true = {name: sum(max(0, min(end, c.end_ns) - max(begin, c.start_ns)) for begin, end, _ in list_)
		for name, list_ in spans.items()}
	found = {}
	for (event, stack), value in c.weights().items():
		functions = set(c.functions(stack)) & true.keys()
		for name in functions:
			sums = found.setdefault(name, {"cpu": 0, "queue": 0, "wait": 0, "complete": 0})
			sums[event] += value
			sums["complete"] += value if event == "wait" and c.complete(stack) else 0
	for name, ns in true.items():
		sums = found.get(name, {"cpu": 0, "queue": 0, "wait": 0, "complete": 0})
		whole = sums["cpu"] + sums["queue"] + sums["wait"]
		print(name, *(f"{x / 1e6:.2f}" for x in (ns, whole, sums["cpu"], sums["queue"], sums["wait"])),
		      f"{sums['complete'] * 100 / max(sums['wait'], 1):.2f}")


def bounds(points, at):
	"""The least and the most that each count can have been at a moment. Before the first point the thread was not there."""
	least = [value for _, after, *value in points if after <= at]
	most = [value for before, _, *value in points if before >= at]
	return least[-1] if least else [0, 0, 0], most[0] if most else points[-1][2:]


def account(capture, log):
	c = Capture(capture)
	points = {}
	with open(log, encoding="ascii") as f:
		for words in (line.split() for line in f):
			if len(words) == 6:
				points.setdefault(int(words[2]), []).append((int(words[0]), int(words[1]), *map(int, words[3:])))
	longest = dict(c.db.execute("select s.thread, max(s.value) from sample s join event e on e.id = s.event "
				    "where e.name = 'queue' group by s.thread"))
	for i, name, tid, start, end, run, queue, blocked in c.threads():
		life = (end or c.duration_ns) - start
		# What the kernel counts for a thread that ends is gone with it.
		if tid not in points or life < 1e8 or points[tid][-1][0] < c.end_ns:
			continue
		first, last = bounds(points[tid], c.start_ns), bounds(points[tid], c.end_ns)
		least, most = ([max(b - a, 0) for a, b in zip(first[1 - k], last[k])] for k in (0, 1))
		print(name or "?", tid, *(f"{x / 1e6:.3f}" for x in (run, least[0], most[0], queue, least[1], most[1], blocked, life)),
		      most[2], f"{longest.get(i, 0) / 1e6:.3f}")


def run(capture, name):
	c = Capture(capture)
	by_thread = c.weights("s.thread")
	rows = [(thread, run_ns, by_thread.get(("cpu", i), 0)) for i, thread, _, _, _, run_ns, _, _ in c.threads()]
	for chosen in ([row for row in rows if row[0] == name], rows):
		print(*(f"{sum(row[k] for row in chosen) / 1e6:.2f}" for k in (1, 2)), end=" ")
	print()


def sums(capture):
	c = Capture(capture)
	by_thread = c.weights("s.thread")
	for i, name, tid, start, end, run, queue, blocked in c.threads():
		life = (end or c.duration_ns) - start
		print(name or "?", tid, *(f"{x / 1e6:.3f}" for x in (queue, blocked, by_thread.get(("queue", i), 0),
								    by_thread.get(("wait", i), 0), life, run + queue + blocked)))


def paths(capture, out):
	c = Capture(capture)
	true, tids = {"often": 0, "rarely": 0}, set()
	with open(out, encoding="ascii") as f:
		lines = [line.split() for line in f]
	# Only one thread takes both.
	tids = {int(words[2]) for words in lines if words[:2] == ["span", "rarely"]}
	for words in lines:
		if words[:1] == ["span"] and int(words[2]) in tids and int(words[3]) >= c.start_ns and int(words[4]) <= c.end_ns:
			true[words[1]] += int(words[5])
	found = {"often": 0, "rarely": 0}
	of_thread = {i: tid for i, _, tid, *_ in c.threads()}
	# Long waits, which are kept one by one, are left out on both sides.
	for (_, thread, stack, long_), value in c.weights("s.thread, s.stack, s.count <= 1 and s.value >= 1000000").items():
		if of_thread.get(thread) in tids and not long_:
			for name in set(c.functions(stack)) & found.keys():
				found[name] += value
	error_ns = c.db.execute("select coalesce(sum(value), 0) from counter where name = 'waits.error_ns'").fetchone()[0]
	whole = max(sum(found.values()), 1)
	for name in found:
		print(name, f"{true[name] * 100 / max(sum(true.values()), 1):.2f}", f"{found[name] * 100 / whole:.2f}",
		      f"{error_ns * 100 / whole:.2f}")


def causes(report):
	with open(report, encoding="utf-8") as f:
		account = json.load(f)["account"]
	for row in account["threads"] + [{"name": "all", **account["total"]}]:
		print(row["name"].replace(" ", "_"), *(f"{key}={value / 1e6:.2f}" for key, value in row.items()
						       if isinstance(value, int) and key not in ("tid", "waits")))


def waited(c, name):
	waits = {stack: value for (event, stack), value in c.weights().items() if event == "wait"}
	return sum(value for stack, value in waits.items() if name in c.functions(stack)), sum(waits.values())


def below(capture, name):
	print(f"{waited(Capture(capture), name)[0] / 1e6:.2f}")


def share(capture, name):
	part, whole = waited(Capture(capture), name)
	print(f"{part * 100 / max(whole, 1):.2f}")


def children(capture, out):
	c = Capture(capture)
	with open(out, encoding="ascii") as f:
		made = {int(words[1]) for words in (line.split() for line in f)
			if words[:1] == ["child"] and c.start_ns + 5e7 < int(words[2]) < c.end_ns - 5e7}
	pid_of = dict(c.db.execute("select t.id, p.pid from thread t join process p on p.id = t.process"))
	seen = {pid_of[thread] for (event, thread, stack) in c.weights("s.thread, s.stack")
		if event == "wait" and "child_nap" in c.functions(stack)}
	print(len(made), len(made & seen))


def wakes(capture, name):
	c = Capture(capture)
	found = {}
	for stack, ns, waker, waker_name, waker_stack in c.db.execute(
			"select w.stack, w.blocked_ns, t.name, w.waker_name, w.waker_stack from wake w left join thread t on t.id = w.waker"):
		if name in c.functions(stack):
			key = (waker or waker_name or "?", ";".join(c.functions(waker_stack)))
			found[key] = found.get(key, 0) + ns
	whole = sum(found.values())
	if found:
		(waker, stack), ns = max(found.items(), key=lambda item: item[1])
		print(waker.replace(" ", "_"), f"{ns * 100 / whole:.2f}", stack)


if __name__ == "__main__":
	{"times": times, "account": account, "run": run, "sums": sums, "paths": paths, "below": below, "share": share, "causes": causes,
	 "children": children, "wakes": wakes}[sys.argv[1]](*sys.argv[2:])
