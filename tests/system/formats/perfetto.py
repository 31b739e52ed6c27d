"""perfetto.py TRACE.txt REPORT.json FOLDED - a Perfetto trace, as protoc decoded it, against the report of the same capture.

The trace must be one that a reader takes: each number refers to something that its sequence has named before, slices of a track
end and do not overlap, times ascend, a flow begins once and ends once. Then sums must be equal: states of each thread to the
account of `report --format json`, samples to its number of them and to the folded stacks. Prints a line for each check.
"""
import collections
import json
import re
import sys

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
LINE = re.compile(r"(\w+)(?:: (.*)| \{)$")


def parse(lines):
	"""The next message of the text: a list of values for each field."""
	message = collections.defaultdict(list)
	for line in lines:
		line = line.strip()
		if line == "}":
			return message
		match = LINE.match(line)
		if not match or match[1].isdigit():
			raise ValueError("a field that is not known: " + line)
		if match[2] is None:
			message[match[1]].append(parse(lines))
		else:
			value = match[2]
			message[match[1]].append(value[1:-1] if value[0] == '"' else float(value) if "." in value or "e" in value else int(value))
	return message


def one(message, field, otherwise=None):
	return message[field][0] if field in message else otherwise


class Sequence:
	TEXTS = ["category", "event_name", "note_name", "function", "path", "file", "note_text", "build_id"]

	def __init__(self):
		self.texts = {kind: {} for kind in self.TEXTS}
		self.modules, self.frames, self.stacks = {}, {}, {}
		self.name, self.count, self.last = "", 0, 0

	def learn(self, tables):
		for kind in self.TEXTS:
			for entry in tables[kind]:
				assert entry["id"][0] and entry["id"][0] not in self.texts[kind], f"{kind} {entry['id'][0]} twice"
				self.texts[kind][entry["id"][0]] = one(entry, "text", "")
		for module in tables["module"]:
			self.modules[module["id"][0]] = [self.texts["path"][number] for number in module["path"]]
			assert "build_id" not in module or module["build_id"][0] in self.texts["build_id"]
		for frame in tables["frame"]:
			assert frame["module"][0] in self.modules, "a frame without its module"
			assert "file" not in frame or frame["file"][0] in self.texts["file"]
			self.frames[frame["id"][0]] = self.texts["function"][frame["function"][0]]
		for stack in tables["stack"]:
			assert stack["frame"], "an empty stack"
			self.stacks[stack["id"][0]] = [self.frames[number] for number in stack["frame"]]


class Trace:
	def __init__(self, lines):
		self.sequences = collections.defaultdict(Sequence)
		self.tracks, self.open, self.slices, self.instants = {}, {}, [], []
		self.flows, self.flow_ends, self.samples, self.points, self.last = {}, {}, [], 0, 0
		self.realtime = 0
		for line in lines:
			assert line.strip() == "packet {", line
			self.packet(parse(lines))
		assert not self.open, "slices that do not end"

	def packet(self, packet):
		number = packet["sequence"][0]
		assert (packet["flags"][0] & 1) == (number not in self.sequences), "a sequence begins once, and says so"
		sequence = self.sequences[number]
		for tables in packet["tables"]:
			sequence.learn(tables)
		for clocks in packet["clocks"]:
			self.realtime = next((one(clock, "now") for clock in clocks["clock"] if one(clock, "id") == 1), 0)
		for defaults in packet["defaults"]:
			sequence.name = defaults["samples"][0]["timebase"][0]["name"][0]
		for track in packet["track"]:
			assert track["number"][0] not in self.tracks and one(track, "parent") in [None, *self.tracks], "a track before its parent"
			self.tracks[track["number"][0]] = track
		if "event" in packet or "sample" in packet:
			assert packet["time"][0] >= self.last, "times that go back"
			self.last = packet["time"][0]
		for event in packet["event"]:
			self.event(sequence, packet["time"][0], event)
		for sample in packet["sample"]:
			assert one(sample, "count") >= sequence.last, "a count that goes back"
			self.samples.append((sequence.name, sample["tid"][0], sequence.stacks[sample["stack"][0]] if "stack" in sample else [],
					     sample["count"][0] - sequence.last))
			sequence.last = sample["count"][0]

	def event(self, sequence, time, event):
		track, kind = event["track"][0], event["type"][0]
		assert track in self.tracks, "an event without its track"
		for flow in event["flow"]:
			assert flow not in self.flows, "a flow that begins twice"
			self.flows[flow] = (time, track)
		for flow in event["flow_end"]:
			assert flow in self.flows and flow not in self.flow_ends, "a flow that ends without a begin, or twice"
			assert self.flows[flow][0] <= time, "a flow back in time"
			self.flow_ends[flow] = track
		if kind == COUNTER:
			assert "value" in event
			self.points += 1
			return
		if kind == END:
			begun, name, category, notes = self.open.pop(track)
			assert time > begun
			self.slices.append((track, name, category, begun, time, notes))
			return
		assert "stack" not in event or event["stack"][0] in sequence.stacks
		notes = {sequence.texts["note_name"][one(note, "name")]: one(note, "number") if "number" in note else
			 sequence.texts["note_text"][one(note, "text")] for note in event["note"]}
		assert len(notes) == len(event["note"]), "an annotation twice"
		name, category = sequence.texts["event_name"][event["name"][0]], sequence.texts["category"][event["category"][0]]
		if kind == INSTANT:
			self.instants.append((track, name, category, notes))
			return
		assert kind == BEGIN and track not in self.open, "slices that overlap"
		self.open[track] = (time, name, category, notes)


NAMES = {"waiting": "unknown", "on CPU": "cpu", "run queue": "queue", "condition": "park", "disk read": "disk-read", "disk write": "disk-write",
	 "page fault": "fault", "pipe/process": "pipe", "CPU quota": "throttled"}


def states(trace):
	"""Nanoseconds of each cause for each thread."""
	sums = collections.defaultdict(collections.Counter)
	for track, name, category, begin, end, notes in trace.slices:
		if category not in ("running", "queue", "wait"):
			continue
		tid, rest = trace.tracks[track]["thread"][0]["tid"][0], end - begin
		for note, value in notes.items():
			if note.startswith("short: "):
				cause = note[len("short: "):-len(" ns")]
				sums[tid][NAMES.get(cause, cause)] += value
				rest -= value
		sums[tid]["cpu" if category == "running" else NAMES.get(name, name)] += rest
	return sums


failed = 0


def say(right, what, more=""):
	global failed
	failed |= not right
	print(("ok - " if right else "not ok - ") + what + ("" if right else ": " + str(more)[:600]))


def compare_account(trace, account):
	"""Time on the CPU is what is left; what the account could not explain is in it, too. The collector's own sums of the queue
	are a little more than its waits in it, where some began before the recording: all that is not blocked is compared as one."""
	found, wrong, threads = states(trace), [], 0
	for row in account["threads"]:
		mine = found.get(row["tid"])
		if mine is None:
			if row["wall"] > row["missing"] > 0 or not row["missing"]:
				wrong.append((row["name"], "no states"))
			continue
		threads += 1
		for cause in row:
			if cause in ("name", "tid", "wall", "waits", "missing", "cpu", "queue", "throttled"):
				continue
			if mine[cause] != row[cause]:
				wrong.append((row["name"], cause, mine[cause], row[cause]))
		ready, mine_ready = row["cpu"] + row["queue"] + row["throttled"] + row["missing"], mine["cpu"] + mine["queue"] + mine["throttled"]
		if abs(ready - mine_ready) > 1000:
			wrong.append((row["name"], "ready", mine_ready, ready))
	say(not wrong, f"states of {threads} threads add up to the account, by cause", wrong)
	say(threads > 3, "there are threads to compare")


def main():
	try:
		with open(sys.argv[1]) as file:
			trace = Trace(iter(file))
	except (AssertionError, ValueError, KeyError, IndexError) as e:
		say(False, "a reader takes the trace", repr(e))
		sys.exit(1)
	say(True, f"a reader takes the trace: {len(trace.slices)} slices, {len(trace.instants)} instants, {len(trace.samples)} samples")
	with open(sys.argv[2]) as file:
		report = json.load(file)
	compare_account(trace, report["account"])
	say(trace.realtime == report["start_wall_ns"], "the clock is that of the recording", (trace.realtime, report["start_wall_ns"]))
	cpu = [sample for sample in trace.samples if sample[0] == "cpu"]
	say(len(cpu) == report["samples"] and sum(sample[3] for sample in cpu) == report["total"], f"{len(cpu)} samples, as the report has",
	    (report["samples"], report["total"]))
	with open(sys.argv[3]) as file:
		folded = collections.Counter()
		for line in file:
			stack, _, count = line.rstrip("\n").rpartition(" ")
			folded[re.sub(r"_\[[ki]\](?=;|$)", "", stack)] += int(count)
	mine = collections.Counter(";".join(sample[2]) for sample in cpu)
	say(mine == folded, f"{len(folded)} stacks with their counts, as folded has them", list(((mine - folded) + (folded - mine)).items())[:3])
	say(trace.flows and len(trace.flow_ends) == len(trace.flows), f"{len(trace.flows)} flows from wakers to the woken",
	    (len(trace.flows), len(trace.flow_ends)))
	say(all(notes.get("function") for _, _, category, _, _, notes in trace.slices if category == "wait"), "each wait has its function")
	sys.exit(failed)


main()
