"""profilers.py - perf and gasflame behind one interface.

	p = Gasflame(program); p.start(pid, path, hz); p.pause(); p.resume(); p.watch(10); p.finish(); p.to_svg(svg)

After finish(): seconds_to_stop, cpu_s and peak_rss (what the recorder itself took, with its children),
peak_anon. to_svg() returns seconds and, for what was recorded, samples and complete.
"""
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from collapse import is_entry
from measure import anon_bytes, status_bytes, with_children

HERE = os.path.dirname(os.path.abspath(__file__))
FLAMEGRAPH_PL = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"


def find_flamegraph():
	done = subprocess.run(["dpkg", "-L", "libdevel-nytprof-perl"], capture_output=True, text=True, check=False)
	for line in done.stdout.splitlines():
		if line.endswith("flamegraph.pl"):
			return line
	return FLAMEGRAPH_PL


class Recorder:
	"""What both have in common: a child process that is watched and ended by SIGINT."""

	def launch(self, command, pass_fds=()):
		self.peak_anon = self.peak_rss = 0
		self.said = tempfile.TemporaryFile()
		self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said,
						pass_fds=pass_fds)

	def look(self):
		pids = with_children(self.process.pid)
		self.peak_anon = max(self.peak_anon, anon_bytes(pids))
		self.peak_rss = max(self.peak_rss, sum(status_bytes(pid, "VmHWM") for pid in pids))

	def watch(self, seconds):
		end = time.monotonic() + seconds
		while time.monotonic() < end:
			time.sleep(min(0.25, max(0, end - time.monotonic())))
			self.look()

	def log(self):
		return os.pread(self.said.fileno(), 100000, 0).decode(errors="replace").strip()

	def finish(self):
		self.look()
		begin = time.monotonic()
		self.process.send_signal(signal.SIGINT)
		while True:
			pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
			if pid:
				break
			self.look()
			time.sleep(0.005)
		self.process.returncode = os.waitstatus_to_exitcode(status)
		self.seconds_to_stop = time.monotonic() - begin
		self.cpu_s = usage.ru_utime + usage.ru_stime
		if not os.path.exists(self.path) and self.path != os.devnull:
			raise RuntimeError(f"{self.name} recorded nothing: {self.log()[-500:]}")

	def remove(self):
		if self.path != os.devnull and os.path.exists(self.path):
			os.unlink(self.path)


class Perf(Recorder):
	GRAPHS = {"none": [], "fp": ["--call-graph", "fp"], "dwarf 8K": ["--call-graph", "dwarf,8192"],
		  "dwarf 64K": ["--call-graph", "dwarf,65528"]}

	def __init__(self, graph):
		self.name = "perf " + graph
		self.graph = graph

	def start(self, pid, path, hz, paused=False):
		self.path = path
		control, self.control = os.pipe()
		self.answers, answers = os.pipe()
		# A PMU is not everywhere; the same clock for everybody.
		command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "-p", str(pid), "-o", path,
			   "--control", f"fd:{control},{answers}"] + self.GRAPHS[self.graph]
		if paused:
			command += ["--delay=-1"]
		self.launch(command, (control, answers))
		os.close(control)
		os.close(answers)
		self.tell("ping")

	def tell(self, word):
		os.write(self.control, word.encode() + b"\n")
		answer = os.read(self.answers, 100)
		if not answer.startswith(b"ack"):
			raise RuntimeError(f"{self.name} does not answer: {answer!r} {self.log()}")

	def pause(self):
		self.tell("disable")

	def resume(self):
		self.tell("enable")

	def finish(self):
		super().finish()
		os.close(self.control)
		os.close(self.answers)

	def to_svg(self, svg, limit_s):
		"""perf script | collapse | flamegraph.pl, each as far as it comes within the limit."""
		text = self.path + ".txt"
		# Without stacks it is quick: how many samples there are, also when time runs out below.
		listed = subprocess.run(["perf", "script", "-i", self.path, "-F", "tid,time"], stdout=subprocess.PIPE,
					stderr=subprocess.DEVNULL, check=False)
		pipeline = (f"perf script -i {self.path} -F comm,tid,ip,sym 2>/dev/null | tee {text} | "
			    f"{sys.executable} {HERE}/collapse.py | perl {find_flamegraph()} > {svg}")
		begin = time.monotonic()
		child = subprocess.Popen(["bash", "-c", pipeline], start_new_session=True, stderr=subprocess.DEVNULL)
		late, rss = False, 0
		while child.poll() is None:
			rss = max(rss, max(status_bytes(pid, "VmHWM") for pid in with_children(child.pid)))
			if time.monotonic() - begin > limit_s:
				late = True
				os.killpg(child.pid, signal.SIGKILL)
			time.sleep(0.02)
		seconds = time.monotonic() - begin
		with open(text, encoding="utf-8", errors="replace") as f:
			counted = subprocess.run([sys.executable, os.path.join(HERE, "collapse.py"), "--count"], stdin=f,
						 capture_output=True, text=True, check=True)
		os.unlink(text)
		counts = json.loads(counted.stdout)
		return {"seconds": seconds, "late": late, "script_rss": rss, "recorded": listed.stdout.count(b"\n"), **counts}


class Gasflame(Recorder):
	name = "gasflame"

	def __init__(self, program, extra=(), what="cpu"):
		self.program = program
		self.extra = list(extra)
		self.what = what

	def start(self, pid, path, hz, paused=False):
		self.path = path
		self.launch([self.program, "record", "-e", self.what, "-F", str(hz), "-d", "100000", "-o", path, "-p",
			     str(pid)] + self.extra)
		end = time.monotonic() + 20
		while "Recording" not in self.log():
			if self.process.poll() is not None or time.monotonic() > end:
				raise RuntimeError(f"gasflame does not record: {self.log()}")
			time.sleep(0.02)
		if paused:
			time.sleep(1) # warm before it rests
			self.pause()

	def pause(self):
		self.process.send_signal(signal.SIGUSR1)

	def resume(self):
		self.process.send_signal(signal.SIGUSR2)

	def counters(self):
		with sqlite3.connect(self.path) as db:
			return dict(db.execute("select name, value from counter"))

	def to_svg(self, svg, limit_s):
		begin = time.monotonic()
		usage = resource.getrusage(resource.RUSAGE_CHILDREN)
		done = subprocess.run([self.program, "report", "--format", "svg", "-o", svg, self.path],
				      capture_output=True, text=True, timeout=limit_s, check=False)
		seconds = time.monotonic() - begin
		after = resource.getrusage(resource.RUSAGE_CHILDREN)
		if done.returncode not in (0, 3):
			raise RuntimeError("report: " + done.stderr)
		return {"seconds": seconds, "late": False, "recorded": self.counters().get("samples.taken", 0),
			"report_cpu_s": after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime,
			**self.count_complete()}

	def count_complete(self):
		"""From the tables: no marker of truncation, and the outermost frame is an entry, as for perf."""
		db = sqlite3.connect(self.path)
		kind = dict(db.execute("select id, kind from frame"))
		outermost = dict(db.execute("select l.frame, f.name from frame_line l join function f on f.id = l.function "
					    "order by l.depth")) # the last one of a frame stays
		nodes = {i: (parent, frame) for i, parent, frame in db.execute("select id, parent, frame from stack")}
		counts = {"samples": 0, "complete": 0, "unmarked": 0, "ends": {}}
		for stack, n in db.execute("select stack, count(*) from sample group by stack"):
			root = None
			while stack and stack in nodes:
				stack, root = nodes[stack]
			counts["samples"] += n
			if root is None or kind[root] == 2:
				name = outermost.get(root, "empty")
			else:
				counts["unmarked"] += n
				name = outermost.get(root, "no name")
				if is_entry(name):
					counts["complete"] += n
					continue
			counts["ends"][name] = counts["ends"].get(name, 0) + n
		named = db.execute("select count(*), coalesce(sum(exists(select 1 from frame_line l join function f on "
				   "f.id = l.function where l.frame = frame.id and f.name not like '%+0x%')), 0) from frame "
				   "where kind = 0").fetchone()
		counts["user_frames"], counts["named_frames"] = named
		db.close()
		return counts
