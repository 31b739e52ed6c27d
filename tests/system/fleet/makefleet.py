#!/usr/bin/env python3
"""makefleet.py GASFLAME OUT START SECONDS SEED [FACTOR [WAITS [BLOCKS]]] - a recording of a node at five samples a second, with blocks of 2 s, in which the function
state_root costs FACTOR times what it costs else (by default 1), waits for the disk WAITS times and blocks BLOCKS times, and everything else the same. For tests of roll-ups and watch.

Stacks are of 24 functions below main and run; one of them calls itself.
"""
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

gasflame, out, start, seconds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
factor, waits, blocks = ([float(a) for a in sys.argv[6:]] + [1.0, 1.0, 1.0])[:3]
rng = random.Random(seed)
NAMES = [f"crate_{i}::work" for i in range(23)] + ["state_root"]
WEIGHTS = [1.0 + i % 5 for i in range(23)] + [8.0 * factor]
ns = 10**9

with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(out))) as folder:
	plain = os.path.join(folder, "x.folded")
	with open(plain, "w", encoding="utf-8") as f:
		for number, name in enumerate(NAMES):
			f.write(f"t;main;run;{'again;again;' if number % 2 else ''}{name} {number + 1}\n")
		f.write(f"t;main;run;entry_SYSCALL_64_[k];vfs_fsync_range_[k];io_schedule_[k];schedule_[k] {len(NAMES) + 1}\n")
	subprocess.run([gasflame, "-q", "import", plain, "-o", out], check=True)
db = sqlite3.connect(out)
ids = {value: stack for stack, value in db.execute("select stack, coalesce(count, value, 1) from sample")}
for table in ("sample", "weight", "function_sum", "event_sum", "thread", "process", "event", "mark", "summed"):
	db.execute(f"delete from {table}")
for key, value in (("start_wall_ns", start * ns), ("duration_ns", seconds * ns), ("target", "made up"), ("host", "node"), ("kernel", "6.1"), ("finished", 1)):
	db.execute("insert or replace into meta values (?, ?)", (key, value))
db.executemany("insert into event values (?, ?, ?, ?, ?)", [(0, "cpu", "ns", "CPU time", 10**7), (1, "wait", "ns", "time off the CPU", 0)])
db.execute("insert into process values (0, 4242, 1, 'node', '/usr/bin/node', 'node', 0, 0)")
db.execute("insert into thread values (0, 0, 4242, 'node', 0, 0, 0, 0, 0, 0)")
# More work to do is more samples: what else there is stays as it was.
count = int(seconds * 5 * sum(WEIGHTS) / (sum(WEIGHTS) - 8.0 * factor + 8.0))
times = sorted(rng.randrange(seconds * ns) for _ in range(count))
rows = [(0, 0, t, ids[1 + i], 10**7, None) for t, i in zip(times, rng.choices(range(len(NAMES)), WEIGHTS, k=count))]
rows += [(1, 0, t * ns, ids[len(NAMES) + 1], int(waits * rng.randrange(10**7, 3 * 10**7)), None) for t in range(0, seconds, 3)]
db.executemany("insert into sample values (?, ?, ?, ?, ?, ?)", rows)
db.executemany("insert into mark values (?, ?, ?, 'block', null, ?, ?, ?)",
	       [(at * ns, at * ns + int(blocks * (10**8 + rng.randrange(10**8))), f"block {at}", start + at, 15000000, 100) for at in range(0, seconds - 2, 12)])
db.commit()
