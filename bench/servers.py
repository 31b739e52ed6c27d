"""servers.py - what recording takes from servers under their own benchmarks: PostgreSQL's pgbench, Redis's redis-benchmark.

Each profiler records while the benchmark runs for some seconds, between runs without any; its throughput is compared with
the mean of the runs before and after. The order changes from round to round. Both cores are saturated.
"""
import glob
import os
import pwd
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from measure import bootstrap, mean, median
from profilers import Gasflame, Recorder

OFFCPUTIME = "/usr/sbin/offcputime"


def run(command, **options):
	done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
	if done.returncode:
		raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout)[-300:]}")
	return done.stdout


class Postgres:
	"""Read-only transactions, four clients: some 100,000 switches a second."""
	name = "pgbench -S"

	def __init__(self):
		found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
		if not found:
			raise RuntimeError("apt-get install postgresql")
		self.bin = found[-1]
		self.user = pwd.getpwnam("postgres") # it refuses to run as root
		self.folder = self.process = None

	def command(self, tool, *arguments):
		return ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups",
			os.path.join(self.bin, tool), *arguments]

	def start(self):
		self.folder = tempfile.mkdtemp(prefix="bench-postgres-") # where another user can reach it
		os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
		data = os.path.join(self.folder, "data")
		run(self.command("initdb", "-D", data, "-A", "trust", "--no-sync"))
		self.process = subprocess.Popen(self.command("postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=",
							     "-c", "shared_buffers=256MB"),
						stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		self.pid = self.process.pid
		end = time.monotonic() + 30
		while subprocess.run(self.command("pg_isready", "-q", "-h", self.folder), check=False).returncode:
			if time.monotonic() > end or self.process.poll() is not None:
				raise RuntimeError("PostgreSQL does not start")
			time.sleep(0.1)
		run(self.command("pgbench", "-q", "-i", "-s", "10", "-h", self.folder, "postgres"))

	def throughput(self, seconds):
		said = run(self.command("pgbench", "-S", "-n", "-c", "4", "-j", "1", "-T", str(seconds), "-h", self.folder, "postgres"))
		return float(re.search(r"tps = ([\d.]+) \(without", said).group(1))

	def stop(self):
		if self.process:
			self.process.send_signal(2)
			self.process.wait()
		if self.folder:
			shutil.rmtree(self.folder, ignore_errors=True)


class Redis:
	"""GET and SET by fifty clients."""
	name = "redis-benchmark"

	def __init__(self):
		if not shutil.which("redis-server"):
			raise RuntimeError("apt-get install redis-server")
		self.process = None
		self.per_s = 0

	def start(self):
		with socket.socket() as s:
			s.bind(("127.0.0.1", 0))
			self.port = str(s.getsockname()[1])
		self.process = subprocess.Popen(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
						stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		self.pid = self.process.pid
		end = time.monotonic() + 20
		while subprocess.run(["redis-cli", "-p", self.port, "ping"], capture_output=True, check=False).returncode:
			if time.monotonic() > end:
				raise RuntimeError("Redis does not start")
			time.sleep(0.1)
		self.per_s = self.requests(100000)

	def requests(self, n):
		said = run(["redis-benchmark", "-p", self.port, "-c", "50", "-n", str(n), "-t", "get,set", "--csv"])
		rates = [float(line.split(",")[1].strip('"')) for line in said.splitlines() if re.match(r'"(GET|SET)"', line)]
		return len(rates) / sum(1 / rate for rate in rates)

	def throughput(self, seconds):
		return self.requests(int(self.per_s * seconds / 2))

	def stop(self):
		if self.process:
			self.process.terminate()
			self.process.wait()


class System(Recorder):
	"""A profiler of the whole machine: processes that start later are recorded too."""

	def __init__(self, name, command):
		self.name = name
		self.command = command

	def start(self, pid, path, hz):
		self.path = path
		with open(path, "wb"):
			pass
		self.launch([path if word == "FILE" else word for word in self.command])
		time.sleep(1)
		if self.process.poll() is not None:
			raise RuntimeError(f"{self.name}: {self.log()[-300:]}")


class Ours(Gasflame):
	def __init__(self, program, what, extra=()):
		super().__init__(program, what=what, extra=extra)
		self.name = " ".join(["gasflame -e", what, *extra])


def makers_of(gasflame):
	found = [lambda: Ours(gasflame, "cpu"), lambda: Ours(gasflame, "cpu,wait"), lambda: Ours(gasflame, "cpu,wait,io,fault"),
		 lambda: System("perf -F 999 -g -a", ["perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-a", "-o", "FILE"]),
		 lambda: System("perf sched_switch -g -a", ["perf", "record", "-q", "-e", "sched:sched_switch", "-g", "-a", "-o", "FILE"])]
	if os.path.exists(OFFCPUTIME):
		found.append(lambda: System("offcputime", [OFFCPUTIME, "--stack-storage-size", "16384", "100000"]))
	else:
		print("  without offcputime: apt-get install libbpf-tools", file=sys.stderr)
	return found


def measure_server(server, makers, path, seconds, rounds):
	rows = []
	before = server.throughput(seconds)
	for turn in range(rounds):
		random.Random(turn).shuffle(makers)
		for maker in makers:
			profiler = maker()
			print(f"  {server.name}: {profiler.name}", file=sys.stderr, flush=True)
			profiler.start(server.pid, path, 999)
			per_s = server.throughput(seconds)
			profiler.finish()
			after = server.throughput(seconds)
			row = {"server": server.name, "profiler": profiler.name, "per_s": per_s, "alone_per_s": mean([before, after]),
			       "ratio": per_s / mean([before, after]), "noise": after / before}
			if isinstance(profiler, Gasflame):
				counters = profiler.counters()
				row.update(bpf_s=counters.get("bpf.run_ns", 0) / 1e9 / seconds, own_s=profiler.cpu_s / seconds)
			rows.append(row)
			profiler.remove()
			before = after
	return rows


def measure_servers(build, folder, quick):
	"""(rows, lines of the table)"""
	seconds, rounds = (2, 2) if quick else (5, 7)
	gasflame = os.path.join(build, "src", "cmd", "gasflame")
	rows = []
	for kind in (Postgres, Redis):
		try:
			server = kind()
		except (RuntimeError, KeyError) as problem:
			print(f"  without {kind.name}: {problem}", file=sys.stderr)
			continue
		try:
			server.start()
			rows += measure_server(server, makers_of(gasflame), os.path.join(folder, "recording"), seconds, rounds)
		finally:
			server.stop()
	return rows, table(rows, seconds, rounds)


def table(rows, seconds, rounds):
	lines = ["", f"## Servers under their own benchmarks: {rounds} recordings of {seconds} s of each, between runs without any", "",
		 "| server | profiler | throughput, against none (95 % interval) | BPF, of a CPU | own CPU, start and end included |",
		 "|---|---|---|---|---|"]
	for server in dict.fromkeys(row["server"] for row in rows):
		these = [row for row in rows if row["server"] == server]
		for name in sorted({row["profiler"] for row in these}):
			own = [row for row in these if row["profiler"] == name]
			value, low, high = bootstrap([row["ratio"] for row in own])
			cost = [f"{median([row[key] for row in own]) * 100:.1f} %" if key in own[0] else "" for key in ("bpf_s", "own_s")]
			lines.append(f"| {server} | {name} | {value:.3f} ({low:.3f} … {high:.3f}) | {cost[0]} | {cost[1]} |")
		value, low, high = bootstrap([row["noise"] for row in these])
		lines.append(f"| {server} | none against none | {value:.3f} ({low:.3f} … {high:.3f}) | | |")
	return lines
