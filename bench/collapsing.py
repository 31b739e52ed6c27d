"""collapsing.py - perf script's text as folded stacks: gasflame collapse, from a file and from a pipe, beside stackcollapse-perf.pl, in turn.

The text is that of `perf script` of everything that runs while a node is under load, repeated to 128 MB. The Perl script is that of
PATH, or the one that STACKCOLLAPSE names; without it gasflame is measured alone.
"""
import os
import shutil
import subprocess
import sys
import time

from measure import bootstrap
from targets import Anvil

SIZE = 128 << 20


def make_text(folder, seconds):
	"""The path of the text."""
	data, path = os.path.join(folder, "perf.data"), os.path.join(folder, "perf.txt")
	node = Anvil(folder)
	node.start()
	try:
		subprocess.run(["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", "999", "-o", data, "sleep", str(seconds)], check=True,
			       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	finally:
		node.stop()
	text = subprocess.run(["perf", "script", "-i", data], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
	os.unlink(data)
	with open(path, "wb") as f:
		while f.tell() < SIZE:
			f.write(text)
	return path


def run_once(command, path, output, piped=False):
	"""Wall time, CPU time and largest memory (MB); piped: of the command only, cat's work is its own."""
	begin = time.monotonic()
	with open(output, "wb") as f:
		feeder = subprocess.Popen(["cat", path], stdout=subprocess.PIPE) if piped else None
		child = subprocess.Popen(command + ([] if piped else [path]), stdin=feeder.stdout if piped else None, stdout=f,
					 stderr=subprocess.DEVNULL)
		if feeder:
			feeder.stdout.close()
		_, status, usage = os.wait4(child.pid, 0)
		if feeder:
			feeder.wait()
	if status:
		raise RuntimeError(f"{command[0]} failed")
	return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure_collapse(build, folder, quick):
	path, output = make_text(folder, 5 if quick else 15), os.path.join(folder, "folded")
	perl = os.environ.get("STACKCOLLAPSE") or shutil.which("stackcollapse-perf.pl")
	ours = [os.path.join(build, "src", "cmd", "gasflame"), "collapse"]
	commands = {"gasflame collapse": ours, "the same, from a pipe": ours}
	if perl:
		commands["stackcollapse-perf.pl"] = ["perl", perl]
	else:
		print("  without stackcollapse-perf.pl: set STACKCOLLAPSE to its path", file=sys.stderr)
	size, runs, outputs = os.path.getsize(path), {name: [] for name in commands}, {}
	for _ in range(2 if quick else 5):
		for name, command in commands.items():
			runs[name].append(run_once(command, path, output, "pipe" in name))
			with open(output, "rb") as f:
				outputs[name] = f.read()
	same = len(set(outputs.values())) == 1
	lines = ["", f"## perf script's text ({size >> 20} MB, {outputs['gasflame collapse'].count(chr(10).encode())} stacks) as folded stacks", "",
		 "| | wall time | CPU time | MB a second | memory |", "|---|---|---|---|---|"]
	for name, of in runs.items():
		wall, cpu, memory = (bootstrap([run[i] for run in of]) for i in range(3))
		lines.append(f"| {name} | {wall[0]:.2f} s ({wall[1]:.2f} … {wall[2]:.2f}) | {cpu[0]:.2f} s | {size / wall[0] / 1e6:.0f} | {memory[0]:.0f} MB |")
	if perl:
		ratio = bootstrap([theirs[0] / ours[0] for ours, theirs in zip(runs["gasflame collapse"], runs["stackcollapse-perf.pl"])])
		lines += ["", f"× {ratio[0]:.0f} ({ratio[1]:.0f} … {ratio[2]:.0f}); the output is {'the same' if same else 'NOT the same'}."]
	os.unlink(path)
	return {"bytes": size, "runs": runs, "same": same}, lines
