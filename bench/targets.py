"""targets.py - what is profiled: the bundled workload, and a stock Rust node under load.

A target has pid, and counters for its work; start() and stop(). `kind` names the counter that is its
throughput.
"""
import os
import signal
import socket
import subprocess
import sys
import time

from measure import Counters

HERE = os.path.dirname(os.path.abspath(__file__))


def wait_until(condition, seconds, what):
	end = time.monotonic() + seconds
	while time.monotonic() < end:
		try:
			if condition():
				return
		except (OSError, ValueError):
			pass
		time.sleep(0.05)
	raise RuntimeError(f"{what}: not within {seconds} s")


def stop_process(process):
	if not process or process.poll() is not None:
		return
	process.send_signal(signal.SIGTERM)
	try:
		process.wait(10)
	except subprocess.TimeoutExpired:
		process.kill()
		process.wait()


class Workload:
	name = "workload"
	kind = "compute"

	def __init__(self, build, folder, kinds=None):
		self.program = os.path.join(build, "workload", "gasflame-workload")
		self.path = os.path.join(folder, "workload.counters")
		self.kinds = kinds
		self.process = None

	def start(self):
		command = [self.program, "--seconds", "100000", "--quiet", "--counters", self.path]
		if self.kinds:
			command += ["--kinds", self.kinds]
		self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
		self.pid = self.process.pid
		wait_until(lambda: Counters(self.path).total(self.kind) > 100, 10, "the workload works")
		self.counters = Counters(self.path)

	def stop(self):
		stop_process(self.process)
		if os.path.exists(self.path):
			os.unlink(self.path)


class Switches:
	"""Pairs of threads that hand each other the turn, one pair for each CPU: the truth program of the tests."""
	name = "switches"
	kind = "turns"

	def __init__(self, build, folder, per_second):
		self.program = os.path.join(build, "tests", "system", "truth", "truth-switches")
		self.path = os.path.join(folder, "switches.counters")
		self.per_second = per_second
		self.process = None

	def start(self):
		self.process = subprocess.Popen([self.program, "100000", str(self.per_second), "4", self.path],
						stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
		self.pid = self.process.pid
		if self.process.stdout.readline().strip() != b"ready": # it has found the amount of work by then
			raise RuntimeError("the switching program does not start")
		self.counters = Counters(self.path)

	def stop(self):
		if self.process:
			self.process.kill() # it has nothing to put away
			self.process.wait()
		if os.path.exists(self.path):
			os.unlink(self.path)


class Anvil:
	"""A stock release of a Rust node. It keeps states in memory and grows: start it anew for each phase."""
	name = "anvil"
	kind = "transactions"

	def __init__(self, folder):
		self.path = os.path.join(folder, "anvil.counters")
		self.program = install_anvil()
		self.process = self.load = None

	def start(self):
		with socket.socket() as probe:
			probe.bind(("127.0.0.1", 0))
			port = probe.getsockname()[1]
		self.process = subprocess.Popen(
			[self.program, "--host", "127.0.0.1", "--port", str(port), "--no-mining", "--quiet",
			 "--gas-limit", "3000000000", "--accounts", "20", "--balance", "1000000000",
			 "--prune-history", "8", "--transaction-block-keeper", "8"],
			stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
		self.pid = self.process.pid
		wait_until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() or True, 20, "anvil listens")
		self.load = subprocess.Popen([sys.executable, os.path.join(HERE, "anvil_load.py"), "--port", str(port),
					      "--seconds", "100000", "--counters", self.path],
					     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
		wait_until(lambda: Counters(self.path).total(self.kind) > 500, 30, "anvil mines")
		self.counters = Counters(self.path)

	def stop(self):
		if self.load:
			self.load.kill() # it has nothing to put away
			self.load.wait()
		stop_process(self.process)
		if os.path.exists(self.path):
			os.unlink(self.path)


def install_anvil():
	"""The program, from npm's package."""
	done = subprocess.run([os.path.join(HERE, "..", "tools", "anvil")], capture_output=True, text=True, check=False)
	if done.returncode:
		raise RuntimeError(done.stderr.strip())
	return done.stdout.strip()
