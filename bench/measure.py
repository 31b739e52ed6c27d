"""measure.py - reading counters and clocks, and what may be said of the numbers."""
import mmap
import os
import random
import re
import struct
import time

MAGIC = 0x31464C57464C4147


class Counters:
	"""The live counters of workload/workload.h: units of work, by thread."""

	def __init__(self, path):
		with open(path, "rb") as f:
			self.memory = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
		magic, self.slots = struct.unpack_from("<QQ", self.memory, 0)
		if magic != MAGIC:
			raise ValueError(f"{path}: no counters in it yet")

	def total(self, kind=None):
		sum_ = 0
		for i in range(self.slots):
			name, units = struct.unpack_from("<24sQ", self.memory, 64 * (1 + i))
			if units and (kind is None or name.rstrip(b"\0").decode() == kind):
				sum_ += units
		return sum_


def cpu_ns(pid):
	"""CPU time of all of a process's threads, to the nanosecond, running ones included."""
	return time.clock_gettime_ns((~pid << 3) | 2)


def anon_bytes(pids):
	"""RssAnon of these processes."""
	return sum(status_bytes(pid, "RssAnon") for pid in pids)


def status_bytes(pid, field):
	try:
		with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
			match = re.search(rf"^{field}:\s+(\d+) kB", f.read(), re.M)
	except OSError:
		return 0
	return int(match.group(1)) * 1024 if match else 0


def with_children(pid):
	pids = [pid]
	for parent in pids:
		try:
			for task in os.listdir(f"/proc/{parent}/task"):
				with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as f:
					pids += [int(word) for word in f.read().split()]
		except OSError:
			pass
	return pids


def mean(values):
	return sum(values) / len(values)


def median(values):
	ordered = sorted(values)
	half = len(ordered) // 2
	return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def trimmed(values):
	"""The mean without the outermost tenth at each end: a slice that an unrelated process spoilt."""
	ordered = sorted(values)
	cut = len(ordered) // 10
	return mean(ordered[cut:len(ordered) - cut])


def bootstrap(values, statistic=trimmed, turns=2000, seed=1):
	"""The statistic, and its 95 % interval by resampling."""
	source = random.Random(seed)
	found = sorted(statistic(source.choices(values, k=len(values))) for _ in range(turns))
	return statistic(values), found[int(turns * 0.025)], found[int(turns * 0.975) - 1]


class Urgent:
	"""Real-time priority while it lasts, so that reading a clock does not wait for the load that it measures."""

	def __enter__(self):
		try:
			os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))
		except PermissionError:
			pass

	def __exit__(self, *_):
		os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def host_facts():
	"""What a reader needs to judge the numbers; no name of the machine."""
	model = "unknown"
	with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
		match = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
		if match:
			model = match.group(1).strip()
	release = os.uname().release
	with open("/proc/meminfo", encoding="ascii") as f:
		memory = int(re.search(r"MemTotal:\s+(\d+)", f.read()).group(1)) // 1024
	return {"cpu": model, "cpus": os.cpu_count(), "kernel": release, "memory_mb": memory,
		"load_before": round(os.getloadavg()[0], 2)}
