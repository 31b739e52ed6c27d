#!/usr/bin/env python3
"""makecapture.py GASFLAME OUT START SECONDS SEED - a made-up recording: cpu, wait and queue of five threads, with blocks, series and
counters, for SECONDS from START (seconds since 1970) on. What is in it is a function of its arguments.

The file is made by gasflame import, and its rows are replaced. Names of functions and threads are hostile on purpose.
"""
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

gasflame, out, start, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(seed)
KERNEL = ["entry_SYSCALL_64_[k]", "do_syscall_64_[k]"]
WAITS = [KERNEL + ["do_futex_[k]", "futex_wait_[k]", "schedule_[k]"], KERNEL + ["vfs_fsync_range_[k]", "io_schedule_[k]", "schedule_[k]"]]
NAMES = ["main", "run", "it's'; drop table samples; --", "back\\slash", "tab\there", "größe::<T>::new", "../../etc/passwd", "100%",
	 '"quoted"', "execute_block", "state_root", "commit"]
THREADS = ["main", "tokio-runtime-w", "o'brien; drop", "../worker", "back\\slash"]


def stack(kind):
	calls = ["main"] + [rng.choice(NAMES) for _ in range(rng.randrange(1, 6))]
	return ";".join(["t"] + calls + (rng.choice(WAITS) if kind else []))


with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(out))) as folder:
	plain = os.path.join(folder, "x.folded")
	stacks = {kind: sorted({stack(kind) for _ in range(60)}) for kind in (0, 1)}
	with open(plain, "w", encoding="utf-8") as f:
		for number, text in enumerate(stacks[0] + stacks[1]):
			f.write(f"{text} {number + 1}\n")
	subprocess.run([gasflame, "-q", "import", plain, "-o", out], check=True)

db = sqlite3.connect(out)
# The weights were the numbers of the lines.
ids = {value: stack for stack, value in db.execute("select stack, coalesce(count, value, 1) from sample")}
cpu_stacks = [ids[i + 1] for i in range(len(stacks[0]))]
wait_stacks = [ids[len(stacks[0]) + i + 1] for i in range(len(stacks[1]))]
for table in ("sample", "weight", "function_sum", "event_sum", "thread", "process", "event", "mark", "summed"):
	db.execute(f"delete from {table}")
ns = 10**9
for key, value in (("start_wall_ns", int(start * ns) + 123456789), ("duration_ns", seconds * ns), ("target", "made up"), ("host", "node'1"),
		   ("kernel", "6.1"), ("finished", 1)):
	db.execute("insert or replace into meta values (?, ?)", (key, value))
db.executemany("insert into event values (?, ?, ?, ?, ?)", [(0, "cpu", "ns", "CPU time", 10**7), (1, "wait", "ns", "time off the CPU", 0),
							     (2, "queue", "ns", "ready, without a CPU", 0)])
db.execute("insert into process values (0, 4242, 1, 'node', '/usr/bin/node', 'node', 0, 0)")
samples, times = [], {}
for at in range(seconds * 20):
	thread = rng.randrange(len(THREADS))
	samples.append((0, thread, at * ns // 20 + rng.randrange(10**6), rng.choice(cpu_stacks), 10**7, None))
	if at % 3 == 0:
		value = rng.randrange(10**5, 4 * 10**7)
		where = rng.choice(wait_stacks)
		samples.append((1, thread, at * ns // 20, where, value, rng.choice([None, None, 7])))
		samples.append((2, thread, at * ns // 20, where, value // 10, None))
db.executemany("insert into sample values (?, ?, ?, ?, ?, ?)", samples)
for thread, name in enumerate(THREADS):
	sums = [sum(s[4] for s in samples if s[0] == event and s[1] == thread) for event in range(3)]
	db.execute("insert into thread values (?, 0, ?, ?, 0, 0, ?, ?, ?, ?)", (thread, 4242 + thread, name, sums[0], sums[0], sums[2], sums[1]))
db.executemany("insert into mark values (?, ?, ?, 'block', null, ?, ?, ?)",
	       [(at * ns + ns // 2, at * ns + ns + 250000000, f"block {1000 + at}", 1000 + at, 15000000 + at, 100 + at) for at in range(0, seconds - 2, 4)])
db.execute("insert or replace into counter values ('samples.lost', 7)")
db.commit()
