#!/usr/bin/env python3
"""inject.py [OPTIONS] - lets each allocation and each system call of gasflame fail, one in each run, and looks at what is left.

For each command, a run in which nothing fails (with inject.c preloaded) tells the places: stacks from which a call is
made. A point is a place, which of its calls (the first; where there are many, one in the middle, too), and what happens:
an error, half of the work, or the death of gasflame (--kinds kill). After each run:

	it ended by itself, with a status, not by a signal (but abort() after "out of memory" or "out of threads"), within a minute
	status 0: the result is what it is without a fault, or stderr has a warning that says what is missing
	any other: stderr says why
	the target lives, is neither stopped nor traced, and none of its slots leads to hooks
	what is left of the capture can be read; no other file is left

Prints the points that failed, a table, and one line ("ok - …") for each command and class. From the environment: GASFLAME,
TRUTH, INJECT (inject.c as a library).
"""
import argparse
import collections
import concurrent.futures
import errno
import hashlib
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../heap"))
from heapslots import slots_of

GASFLAME, TRUTH, LIBRARY = (os.path.realpath(os.environ[name]) for name in ("GASFLAME", "TRUTH", "INJECT"))
PATIENCE = 60  # seconds until a run counts as hanging
CALLS = 500  # a place with more calls than this in one run is busy: its middle is not the same in each run
ALLOC_DEPTH = 5  # callers that make two allocations two places

# inject.c has the same list and layout.
CLASSES = "alloc write open read ptrace map fork bpf wait close other".split()
HEAD, PLACE, DEPTH, PLACES = struct.Struct("<IIIiiIqQ11Q"), struct.Struct("<QIIII30Q"), 30, 1 << 14
ALLOCATION = 1000
NAMES = {0: "read", 1: "write", 3: "close", 9: "mmap", 10: "mprotect", 12: "brk", 16: "ioctl", 17: "pread64", 18: "pwrite64",
	 46: "sendmsg", 47: "recvmsg", 56: "clone", 61: "wait4", 74: "fsync", 77: "ftruncate", 101: "ptrace", 217: "getdents64",
	 257: "openat", 298: "perf_event_open", 310: "process_vm_readv", 321: "bpf", 435: "clone3", 437: "openat2"}
KINDS = {
	"alloc": ["ENOMEM"],
	"write": ["ENOSPC", "EIO", "short", "ENOSPC+"],
	"open": ["EMFILE", "EACCES", "ENOENT"],
	"read": ["EIO", "short"],
	"ptrace": ["ESRCH", "EPERM"],
	"map": ["ENOMEM"],
	"fork": ["EAGAIN"],
	"bpf": ["EPERM", "ENOMEM"],
	"wait": ["EINTR"],
	"close": ["EIO"],
	"other": ["EPERM"],
}
# wait4, waitid: of who is alive they fail in no other way. Descriptors without a path: dup, socket, socketpair, eventfd2,
# epoll_create1, dup3, pipe2, memfd_create, pidfd_open, pidfd_getfd.
KINDS_OF_CALL = {61: ["EINTR"], 247: ["EINTR"],
		 **{call: ["EMFILE"] for call in (32, 33, 41, 53, 290, 291, 292, 293, 319, 434, 438)}}
SILENT = "without a fault, and nothing was said"
REMOVALS = {84, 87, 263}  # rmdir, unlink, unlinkat
SHORT = {0, 1, 17, 18}  # the calls that inject.c can do half of

Place = collections.namedtuple("Place", "hash group call count stack")
Point = collections.namedtuple("Point", "place nth kind")


class Log:
	"""The file that inject.c counts in."""

	def __init__(self, path):
		self.path = path
		with open(path, "wb") as f:
			f.truncate(HEAD.size + PLACES * PLACE.size)

	def read(self):
		with open(self.path, "rb") as f:
			data = f.read()
		(self.started, self.hits, self.full, self.call, self.pid, _, self.argument, self.entry, *self.counts) = \
			HEAD.unpack_from(data)
		self.places = []
		for i in range(PLACES):
			h, group, call, depth, count, *stack = PLACE.unpack_from(data, HEAD.size + i * PLACE.size)
			if h:
				self.places.append(Place(h, CLASSES[group], call, count, tuple(stack[:depth])))
		return self


class Outcome:
	"""What a run of gasflame came to."""

	def __init__(self, status, out, said, hung=""):
		self.status, self.out, self.said, self.hung = status, out, said, hung


def run_gasflame(folder, args, env, patience=PATIENCE):
	"""In a session of its own, so that whatever it leaves behind can be found, and ended."""
	with open(os.path.join(folder, ".out"), "w+b") as out, open(os.path.join(folder, ".err"), "w+b") as err:
		process = subprocess.Popen(["setarch", "-R", GASFLAME, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
					   cwd=folder, env=env, start_new_session=True)
		hung = ""
		try:
			process.wait(patience)
		except subprocess.TimeoutExpired:
			hung = where_it_hangs(process.pid)
			os.killpg(process.pid, signal.SIGKILL)
			process.wait()
		out.seek(0)
		err.seek(0)
		return Outcome(process.returncode, out.read(), err.read().decode(errors="replace"), hung)


def where_it_hangs(pid):
	tool = shutil.which("eu-stack") or shutil.which("gdb")
	command = [tool, "-p", str(pid)] if tool and tool.endswith("eu-stack") else \
		[tool, "-p", str(pid), "--batch", "-ex", "thread apply all bt 12"]
	if tool:
		done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
		return done.stdout[-3000:]
	with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
		return f.read()


def session_members(session):
	"""Processes that are left of it, but for zombies."""
	left = []
	for name in os.listdir("/proc"):
		if name.isdigit():
			try:
				with open(f"/proc/{name}/stat", encoding="latin1") as f:
					fields = f.read().rpartition(")")[2].split()
			except OSError:
				continue
			if int(fields[3]) == session and fields[0] != "Z":
				left.append(int(name))
	return left


# --- the target ---

class Target:
	def __init__(self, folder):
		self.folder = folder
		self.process = subprocess.Popen([os.path.join(TRUTH, "truth-allsorts"), folder], stdout=subprocess.PIPE,
						stdin=subprocess.DEVNULL, cwd=folder)
		self.process.stdout.readline()  # "ready"
		self.pid = self.process.pid

	def wrong(self, slots=True):
		"""What is not as it was, as a sentence; None: all is well."""
		deadline = time.monotonic() + 10
		while True:
			if self.process.poll() is not None:
				return f"the target is dead ({self.process.returncode})"
			trouble = self.trouble()
			if not trouble:
				break
			if time.monotonic() > deadline:
				return trouble
			time.sleep(0.02)
		if slots and slots_of(self.pid):
			return "slots of the target lead to hooks"
		if not self.works():
			return "the target has ceased to work"
		return None

	def trouble(self):
		for task in os.listdir(f"/proc/{self.pid}/task"):
			try:
				with open(f"/proc/{self.pid}/task/{task}/status", encoding="ascii", errors="replace") as f:
					status = dict(line.split(":", 1) for line in f if ":" in line)
			except OSError:
				continue
			if status["State"].strip()[0] in "Tt":
				return "a thread of the target is stopped"
			if int(status["TracerPid"]):
				return "a thread of the target is traced"
		return None

	def works(self):
		"""It makes a system call or two in each millisecond."""
		def switches():
			with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as f:
				return sum(int(line.split()[1]) for line in f if "voluntary_ctxt" in line)
		before, deadline = switches(), time.monotonic() + 10
		while time.monotonic() < deadline:
			if switches() > before:
				return True
			time.sleep(0.005)
		return False

	def end(self):
		self.process.kill()
		self.process.wait()
		self.process.stdout.close()


# --- the commands ---

class Command:
	"""One that only reads: its output must be the same, whatever happened, or it says so."""
	needs_target = needs_hooks = parent_only = False
	never = set()  # kinds of faults that make no sense
	quick = 7  # points of make test
	output = None

	def __init__(self, name, args, output=None, captures=("a.gasflame",)):
		self.name, self.args, self.output, self.captures = name, args, output, captures

	def prepare(self, folder, inputs):
		for name in self.captures:
			shutil.copy(os.path.join(inputs, name), folder)

	def arguments(self, _target):
		return self.args

	def result(self, folder, outcome):
		if not self.output:
			return outcome.out
		path = os.path.join(folder, self.output)
		if not os.path.exists(path):
			return None
		with open(path, "rb") as f:
			return f.read()

	def expected_files(self):
		return {*self.captures, self.output}

	def wrong(self, folder, outcome, baseline):
		"""Of a run that ended with 0."""
		if self.result(folder, outcome) != baseline:
			return "the result is another one, and nothing was said"
		return None

	def unreadable(self, _folder, _env):
		return None


class Listing(Command):
	"""ls: a capture that it cannot read has the reason in its row."""

	def wrong(self, folder, outcome, baseline):
		rows = outcome.out.decode().splitlines()
		if len(rows) != len(baseline.decode().splitlines()):
			return "rows are missing, and nothing was said"
		if outcome.out != baseline and not any(": " in row for row in rows):
			return "a row is another one, and nothing was said"
		return None


class Recording(Command):
	"""One that makes a capture: its events must be there, in about the same number."""
	quick = 3
	needs_target = True

	def __init__(self, name, args, parent_only=False, hooks=False):
		super().__init__(name, args, "out.gasflame", ())
		self.parent_only, self.hooks = parent_only, hooks
		self.needs_target = not parent_only

	def arguments(self, target):
		if self.needs_target:
			return [*self.args, "-o", self.output, "-p", str(target.pid)]
		return [*self.args, "-o", self.output, "--", os.path.join(TRUTH, "truth-allsorts"), ".", "0.3"]

	def result(self, folder, outcome):
		"""How many samples of each event, points of series, and names."""
		path = os.path.join(folder, self.output)
		if not os.path.exists(path):
			return None
		try:
			with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as c:
				rows = dict(c.execute("select event.name, count(*) from sample join event on event.id = sample.event "
						      "group by 1"))
				for what in ("thread", "module", "function"):
					rows["." + what] = c.execute(f"select count(*) from {what}").fetchone()[0]
				return rows
		except sqlite3.Error as e:
			return {"error": str(e)}

	def wrong(self, folder, outcome, baseline):
		now = self.result(folder, outcome)
		if now is None:
			return "status 0, but there is no capture"
		if "error" in now:
			return now["error"]
		for name, count in baseline.items():
			if count >= 20 and now.get(name, 0) < max(1, count / 200):
				return f"{name}: {now.get(name, 0)}, {count} {SILENT}"
		return None

	def expected_files(self):
		return {self.output, "allsorts.dat"}

	def unreadable(self, folder, env):
		"""Whatever is there must be a capture that can be read, or refused with a reason."""
		if not os.path.exists(os.path.join(folder, self.output)):
			return None
		shown = run_gasflame(folder, ["report", "--format", "text", self.output], env)
		if shown.status in (0, 3) or (shown.status == 1 and "gasflame:" in shown.said and "nothing" in shown.said):
			return None
		return f"the capture cannot be read: {shown.status}: {shown.said.strip()[-300:]}"


class Detach(Command):
	"""heap detach, of a target in which a recorder that was killed left its hooks."""
	needs_target = needs_hooks = True
	never = {"ENOENT"}  # says that the target has ended, and is believed
	quick = 4

	def __init__(self):
		super().__init__("heap detach", [], None, ())

	def arguments(self, target):
		return ["heap", "detach", str(target.pid)]

	def result(self, folder, outcome):
		return b""  # the slots are

	def expected_files(self):
		return {"allsorts.dat"}


COMMANDS = [
	Recording("record", ["record", "-e", "cpu,wait,io,fault,mem", "-d", "0.3"]),
	Recording("heap", ["record", "-e", "heap", "--heap-sample", "16K", "-d", "0.2"], hooks=True),
	Detach(),
	Recording("run", ["run", "-e", "cpu,wait"], parent_only=True),
	Recording("run heap", ["run", "-e", "heap"], parent_only=True, hooks=True),
	Command("report text", ["report", "--format", "text", "a.gasflame"]),
	Command("report html", ["report", "a.gasflame"], "a.html"),
	Command("report svg", ["report", "--format", "svg", "-o", "a.svg", "a.gasflame"], "a.svg"),
	Command("report folded", ["report", "--format", "folded", "a.gasflame"]),
	Command("query", ["query", "a.gasflame", "select count(*), sum(value) from sample"]),
	Listing("ls", ["ls", "."]),
	Command("diff", ["diff", "a.gasflame", "b.gasflame"], "b.diff.html", ("a.gasflame", "b.gasflame")),
]


class Harness:
	def __init__(self, options, base):
		self.options, self.base = options, base
		self.inputs = os.path.join(base, "inputs")
		self.local = threading.local()
		self.names = {}
		self.lock = threading.Lock()
		self.entry = 0
		self.places = []

	def environment(self, folder, **more):
		return {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": folder, "XDG_CACHE_HOME": os.path.join(folder, ".cache"),
			"TMPDIR": os.path.join(folder, ".tmp"), "TZ": "UTC",
			**{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}, **more}

	def make_inputs(self):
		os.mkdir(self.inputs)
		os.mkdir(os.path.join(self.inputs, ".tmp"))
		target = Target(self.inputs)
		for name in ("a", "b"):
			done = run_gasflame(self.inputs, ["record", "-e", "cpu,wait,io,fault,mem", "-d", "0.5", "-o", name + ".gasflame",
							  "-p", str(target.pid)], self.environment(self.inputs))
			if done.status:
				sys.exit(f"not ok - the captures to read: {done.said}")
		target.end()

	def leave_hooks(self, target, folder):
		"""A recorder that is killed."""
		with open(os.path.join(folder, ".killed"), "w+b") as err:
			recorder = subprocess.Popen([GASFLAME, "record", "-e", "heap", "-d", "100", "-o", ".killed.gasflame", "-p",
						     str(target.pid)], stdin=subprocess.DEVNULL, stdout=err, stderr=err, cwd=folder,
						    env=self.environment(folder))
			deadline = time.monotonic() + PATIENCE
			while b"Recording" not in err.read() and recorder.poll() is None and time.monotonic() < deadline:
				time.sleep(0.01)
				err.seek(0)
			while not slots_of(target.pid) and time.monotonic() < deadline:
				time.sleep(0.01)
			recorder.kill()
			recorder.wait()

	def attempt(self, command, fault):
		"""One run in a folder of its own: Outcome, Log, and what is wrong (a list of sentences)."""
		folder = tempfile.mkdtemp(dir=self.base)
		os.mkdir(os.path.join(folder, ".tmp"))
		target = None
		try:
			command.prepare(folder, self.inputs)
			if command.needs_target:
				target = Target(folder)
			if command.needs_hooks:
				self.leave_hooks(target, folder)
			log = Log(os.path.join(folder, ".log"))
			env = self.environment(folder, LD_PRELOAD=LIBRARY, INJECT_EXE=GASFLAME, INJECT_LOG=log.path)
			if fault:
				env["INJECT_FAULT"] = fault
			if command.parent_only:
				env["INJECT_PARENT_ONLY"] = "1"
			outcome = run_gasflame(folder, command.arguments(target), env)
			log.read()
			if not fault:
				command.baseline, command.warnings = command.result(folder, outcome), warnings_in(outcome.said)
			return outcome, log, self.judge(command, folder, target, outcome, log, fault)
		finally:
			if target:
				target.end()
			shutil.rmtree(folder, ignore_errors=True)

	def judge(self, command, folder, target, outcome, log, fault):
		wrong = []
		if fault and fault.startswith("alloc") and self.in_library(fault, outcome):
			return wrong
		killed = fault and fault.endswith("kill") and outcome.status == -signal.SIGKILL
		aborted = outcome.status == -signal.SIGABRT and "gasflame: out of " in outcome.said
		mute = fault and log.hits and fault.startswith("write") and log.argument == 2  # what it said went astray
		if outcome.hung:
			wrong.append("it hangs: " + outcome.hung)
		elif outcome.status < 0 and not aborted and not killed:
			wrong.append(f"it was killed by signal {-outcome.status}")
		elif outcome.status > 0 and not mute and not says_why(outcome):
			wrong.append(f"status {outcome.status}, and stderr does not say why")
		for word in ("AddressSanitizer", "runtime error:", "LeakSanitizer", "Assertion"):
			if word in outcome.said:
				wrong.append(word)
		if target:
			self.judge_target(command, folder, target, outcome, wrong, aborted or killed)
		if outcome.status == 0 and fault and not new_warning(outcome.said, command.warnings):
			wrong.append(command.wrong(folder, outcome, command.baseline))
		self.judge_files(command, folder, outcome, log, wrong, aborted or killed)
		return [w for w in wrong if w]

	def judge_target(self, command, folder, target, outcome, wrong, cut_off):
		if cut_off or "gasflame heap detach" in outcome.said or (command.needs_hooks and outcome.status):
			# Nobody could take the hooks out, and said so if there was time: the next one does.
			wrong.append(target.wrong(slots=False))
			if slots_of(target.pid):
				run_gasflame(folder, ["heap", "detach", str(target.pid)], self.environment(folder))
		wrong.append(target.wrong())

	def judge_files(self, command, folder, outcome, log, wrong, cut_off):
		wrong.append(command.unreadable(folder, self.environment(folder)))
		allowed = command.expected_files()
		for name in sorted(os.listdir(folder)):
			left_by_death = cut_off and name.startswith("out.gasflame")
			if name not in allowed and not name.startswith(".") and not left_by_death and name not in outcome.said:
				wrong.append(f"a file is left: {name}")
		left = os.listdir(os.path.join(folder, ".tmp"))
		# Also where it is a child that had no memory, or the removal itself that failed.
		if left and not cut_off and "out of memory" not in outcome.said and log.call not in REMOVALS:
			wrong.append(f"a temporary file is left: {left}")
		for path, _, files in os.walk(os.path.join(folder, ".cache")):
			wrong.extend(f"a temporary file is left in the cache: {path}/{name}" for name in files
				     if "tmp" in name or "XXXX" in name)

	def in_library(self, fault, outcome):
		"""Some do not survive the want of memory, and we do not hear of it: regcomp() of glibc 2.36 frees twice,
		regexec() has places where it takes it for a mismatch, and seccomp_load() of libseccomp 2.5 writes to NULL, or loads half of a filter, under which we cannot go on."""
		place = next((p for p in self.places if f"{p.hash:x}" == fault.split()[1]), None)
		own = self.name_stack(place, 1) if place else ""
		if outcome.status == 0:
			return own.startswith("match_regex ")
		return ("double free" in outcome.said and re.match(r"(add_regex|know_any|compile) ", own)) or \
			(outcome.status in (-signal.SIGSEGV, -signal.SIGILL) and re.match(r"filter_[a-z]+ filter.c|enter_filter ", own))

	# --- points ---

	def count(self, command):
		"""A run without a fault: what it says, what comes of it, and its places."""
		command.baseline, command.warnings = None, set()
		outcome, log, wrong = self.attempt(command, None)
		if outcome.status or wrong or command.baseline is None:
			print(f"not ok - {command.name}: without a fault: {outcome.status} {wrong} {outcome.said[-800:]}")
			return None
		self.entry = log.entry
		if log.full:
			print(f"# {command.name}: more places than there is room for")
		self.places = log.places
		return log.places

	def points_of(self, command, places):
		points, seen = [], set()
		for p in sorted(places):
			if self.options.classes and p.group not in self.options.classes:
				continue
			# Thousands of ways lead to a few hundred allocations: one of each that differs in the innermost callers.
			if p.group == "alloc" and p.stack[:ALLOC_DEPTH] in seen:
				continue
			seen.add(p.stack[:ALLOC_DEPTH])
			for kind in self.options.kinds or KINDS_OF_CALL.get(p.call) or KINDS[p.group]:
				if kind in command.never or (kind == "short" and p.call not in SHORT):
					continue
				points.append(Point(p, 1, kind))
				if 3 <= p.count <= CALLS and p.group != "alloc":
					points.append(Point(p, p.count // 2 + 1, kind))
		return points

	def name_stack(self, place, frames=7):
		"""Its functions, innermost first, of our own program."""
		with open(GASFLAME, "rb") as f:
			entry = struct.unpack_from("<Q", f.read(64), 24)[0]
		base = self.entry - entry if self.entry else 0
		size = os.path.getsize(GASFLAME)
		own = [pc - base - 1 for pc in place.stack if base <= pc < base + size * 2]
		with self.lock:
			unknown = [a for a in own if a not in self.names]
			if unknown:
				done = subprocess.run(["addr2line", "-f", "-s", "-e", GASFLAME, *map(hex, unknown)],
						      capture_output=True, text=True, check=False).stdout.splitlines()
				for a, function, line in zip(unknown, done[::2], done[1::2]):
					self.names[a] = f"{function} {line.split(' ')[0]}"
			return " < ".join(self.names.get(a, hex(a)) for a in own[:frames])

	def try_point(self, command, point):
		kind, sticky = point.kind.rstrip("+"), "+" if point.kind.endswith("+") else ""
		number = getattr(errno, kind, None)
		fault = f"{point.place.group} {point.place.hash:x} {point.nth}{sticky} {number or kind}"
		for _ in range(3):
			outcome, log, wrong = self.attempt(command, fault)
			# A machine that is busy with something else gives the target, or us, no CPU in a recording this short.
			if not any(SILENT in sentence for sentence in wrong):
				break
		return outcome, log, wrong, fault


def warnings_in(said):
	return {line.split(":")[1][:20] for line in said.splitlines() if line.startswith("warning:")}


def new_warning(said, known):
	return any(w not in known for w in warnings_in(said)) or any(line.startswith("gasflame:") for line in said.splitlines())


def says_why(outcome):
	lines = outcome.said.splitlines()
	if any(line.startswith("gasflame:") and len(line) > 20 for line in lines):
		return True
	return outcome.status == 3 and any(line.startswith("warning:") for line in lines)


def chosen(points, share, budget):
	"""Places in an order that is the same each time, the classes in turns, so that a part of them is a sample."""
	def key(point):
		text = f"{point.place.hash} {point.nth} {point.kind}"
		return hashlib.sha256(text.encode()).digest()
	by_class = collections.defaultdict(list)
	for point in sorted(points, key=key):
		by_class[point.place.group].append(point)
	if share < 1:
		for group in by_class:
			by_class[group] = by_class[group][:max(1, int(len(by_class[group]) * share))]
	if not budget:
		return [p for group in by_class.values() for p in group]
	order, queues = [], [collections.deque(group) for group in sorted(by_class.values(), key=lambda group: key(group[0])) if group]
	while len(order) < budget and any(queues):
		for queue in queues:
			if queue and len(order) < budget:
				order.append(queue.popleft())
	return order


def parse():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("--commands", help="only these, separated by commas")
	parser.add_argument("--classes", help="only these: " + ",".join(CLASSES))
	parser.add_argument("--kinds", help="these instead of those of the class: errors by name, short, kill, stop")
	parser.add_argument("--share", type=float, default=1, help="this part of the points of each class")
	parser.add_argument("--budget", type=int, default=0, help="so many points of each command; 0: all")
	parser.add_argument("--quick", action="store_true", help="a few points of each command, for make test: the same for one build")
	parser.add_argument("--jobs", type=int, default=os.cpu_count())
	parser.add_argument("--one", help="only this fault, as inject.py prints it, and all that gasflame says")
	parser.add_argument("--list", action="store_true", help="the places, and no faults")
	options = parser.parse_args()
	for name in ("commands", "classes", "kinds"):
		text = getattr(options, name)
		setattr(options, name, text.split(",") if text else None)
	return options


def show_failure(harness, command, point, fault, outcome, wrong):
	call = NAMES.get(point.place.call, "allocation" if point.place.call == ALLOCATION else f"call {point.place.call}")
	print(f"not ok - {command.name}: {call} {point.kind} #{point.nth} at {harness.name_stack(point.place)}")
	print(f"#   --commands '{command.name}' --one '{fault}'")
	for sentence in wrong:
		print("#   " + sentence.replace("\n", "\n#   "))
	print("#   said: " + outcome.said.strip()[-600:].replace("\n", "\n#   "))
	sys.stdout.flush()


def try_command(harness, command, table):
	options = harness.options
	places = harness.count(command)
	if places is None:
		return 1
	if options.list:
		for p in sorted(places, key=lambda p: (p.group, p.call)):
			print(f"{command.name}: {p.group} {p.hash:x} call {p.call} {p.count} times: {harness.name_stack(p)}")
		return 0
	points = harness.points_of(command, places)
	todo = chosen(points, options.share, command.quick if options.quick else options.budget)
	for p in points:
		table[command.name, p.place.group]["points"] += 1
	failures = done = 0
	with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
		futures = {pool.submit(harness.try_point, command, p): p for p in todo}
		for future in concurrent.futures.as_completed(futures):
			point = futures[future]
			outcome, log, wrong, fault = future.result()
			row = table[command.name, point.place.group]
			row["run"] += 1
			row["hit"] += bool(log.hits)
			row["passed"] += not wrong
			done += 1
			if done % 100 == 0:
				print(f"# {command.name}: {done} of {len(todo)} points, {failures} failed", file=sys.stderr, flush=True)
			if wrong:
				failures += 1
				show_failure(harness, command, point, fault, outcome, wrong)
	return failures


def show_table(table):
	print(f"# {'command':<14} {'class':<7} {'points':>7} {'run':>6} {'hit':>6} {'passed':>7}")
	total = collections.Counter()
	for (command, group), row in table.items():
		print(f"# {command:<14} {group:<7} {row['points']:7} {row['run']:6} {row['hit']:6} {row['passed']:7}")
		total.update(row)
	print(f"# {'all':<14} {'':<7} {total['points']:7} {total['run']:6} {total['hit']:6} {total['passed']:7}")
	for (command, group), row in table.items():
		if row["run"] and row["run"] == row["passed"]:
			print(f"ok - {command}: {group}: {row['passed']} of {row['run']} faults passed")


def main():
	options = parse()
	table = collections.defaultdict(collections.Counter)
	failures = 0
	with tempfile.TemporaryDirectory(prefix="gasflame-inject-") as base:
		harness = Harness(options, base)
		harness.make_inputs()
		for command in COMMANDS:
			if options.commands and command.name not in options.commands:
				continue
			if options.one:
				harness.count(command)
				outcome, log, wrong = harness.attempt(command, options.one)
				print(f"status {outcome.status}, {log.hits} hits, wrong: {wrong}\n{outcome.said}{outcome.hung}")
				sys.stdout.flush()
				sys.stdout.buffer.write(outcome.out[:2000])
				failures += bool(wrong)
			else:
				failures += try_command(harness, command, table)
	if not options.one and not options.list:
		show_table(table)
	return 1 if failures else 0


if __name__ == "__main__":
	sys.exit(main())
