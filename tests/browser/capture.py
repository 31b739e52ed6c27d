"""capture.py - captures made by hand (docs/capture-format.md): pages need no root then, and their figures are known.

	c = Capture("node", seconds=10)
	cpu = c.event("cpu", "ns", "CPU time, sampled at 999 Hz", 1001001)
	engine = c.thread("engine")
	c.sample(cpu, engine, 0.5, c.stack("main", "execute", "hash"))
	c.save("x.gasflame")

The same every time: random numbers come from a fixed seed.
"""
import functools
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

USER, KERNEL = 0, 1


@functools.cache
def schema():
	"""The version and the tables, from a capture that the program under test (the first argument) makes."""
	with tempfile.TemporaryDirectory() as folder:
		stacks, path = os.path.join(folder, "one.folded"), os.path.join(folder, "one.gasflame")
		with open(stacks, "w", encoding="utf-8") as f:
			f.write("main 1\n")
		subprocess.run([sys.argv[1], "import", stacks, "-o", path], check=True, capture_output=True)
		db = sqlite3.connect(path)
		tables = [row[0] for row in db.execute("select sql from sqlite_master where type = 'table'")]
		version = db.execute("pragma user_version").fetchone()[0]
		db.close()
	return version, ";".join(tables)


class Capture:
	def __init__(self, target, seconds, processes=(("node", 4242),), first_tid=5000):
		self.first_tid = first_tid
		self.meta = {"target": target, "host": "testhost", "kernel": "6.1.0", "made_by": "tests",
			     "start_wall_ns": 1794727354_000000000, "duration_ns": int(seconds * 1e9),
			     "finished": 1}
		self.rows = {name: [] for name in ("event", "process", "thread", "module", "function",
				"frame",
						   "frame_line", "stack", "sample", "series", "point", "wake",
						   "mark", "counter", "task_wake")}
		self.modules, self.frames, self.stacks = {}, {}, {}
		for name, pid in processes:
			self.add("process", pid, 1, name, "/usr/bin/" + name, "/usr/bin/" + name + " --run",
					0, 0)

	def add(self, table, *values):
		rows = self.rows[table]
		rows.append((len(rows), *values))
		return len(rows) - 1

	def event(self, name, unit, describe, period=0):
		return self.add("event", name, unit, describe, period)

	def thread(self, name, process=0, run_s=0, queue_s=0, blocked_s=0):
		tid = self.first_tid + len(self.rows["thread"])
		return self.add("thread", process, tid, name, 0, 0, int(run_s * 1e9), int(run_s * 1e9),
				int(queue_s * 1e9), int(blocked_s * 1e9))

	def module(self, path):
		if path not in self.modules:
			self.modules[path] = self.add("module", path,
					"kernel" if path == "[kernel]" else "file", None, None)
		return self.modules[path]

	def frame(self, spec):
		"""A name, or (name, module), or ([names, the innermost first], module) of inlined functions."""
		name, module = (spec, "/usr/bin/node") if isinstance(spec, (str, bytes)) else spec
		key = (tuple(name) if isinstance(name, list) else name, module)
		if key not in self.frames:
			kind = KERNEL if module == "[kernel]" else USER
			m = self.module(module) if module else None
			frame = self.add("frame", m, kind, 0x1000 + 16 * len(self.frames))
			names = name if isinstance(name, list) else [name]
			for depth, n in enumerate(names):
				function = self.add("function", n, None, None, m)
				self.rows["frame_line"].append((frame, depth, function, 0,
						int(depth < len(names) - 1)))
			self.frames[key] = frame
		return self.frames[key]

	def stack(self, *specs):
		"""Outermost first."""
		node = 0
		for spec in specs:
			key = (node, self.frame(spec))
			if key not in self.stacks:
				self.stacks[key] = len(self.stacks) + 1
				self.rows["stack"].append((self.stacks[key], *key))
			node = self.stacks[key]
		return node

	def sample(self, event, thread, second, stack, value=None, count=None):
		self.rows["sample"].append((event, thread, int(second * 1e9), stack, value, count))

	def wake(self, thread, second, stack, blocked, waker, waker_stack):
		"""A wait that a thread ended; waker None: an interrupt did."""
		self.rows["wake"].append((thread, int(second * 1e9), stack, int(blocked * 1e9), 0, waker,
				None if waker is not None else "swapper", waker_stack))

	def series(self, name, unit, points):
		series = self.add("series", name, unit)
		self.rows["point"] += [(series, int(t * 1e9), v) for t, v in points]

	def save(self, path):
		if os.path.exists(path):
			os.unlink(path)
		version, tables = schema()
		db = sqlite3.connect(path)
		db.executescript(f"pragma application_id = {0x47617346}; pragma user_version = {version};" + tables)
		db.executemany("insert into meta values (?, ?)", self.meta.items())
		known = {row[0] for row in db.execute("select name from sqlite_master where type = 'table'")}
		for table, rows in self.rows.items():
			if rows and table in known:
				db.executemany(f"insert into {table} values ({', '.join('?' * len(rows[0]))})", [
					tuple(undecoded(v) for v in row) for row in rows])
		# Names are text, whatever their bytes: those that are no UTF-8 too.
		for table, column in (("function", "name"), ("thread", "name"), ("module", "path")):
			db.execute(f"update {table} set {column} = cast({column} as text)")
		db.commit()
		db.close()
		return path


def undecoded(value):
	return value.encode("utf-8", "surrogateescape") if isinstance(value,
			str) and not value.isascii() else value


LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LONG = ("<reth_provider::providers::database::provider::DatabaseProvider<reth_db::mdbx::tx::Tx<reth_libmdbx::"
	"transaction::RO>, reth_node::Spec> as reth_storage_api::state::StateRootProvider>::state_root_with_updates")


def kernel(*names):
	return [(n, "[kernel]") for n in names]


def node(path, slower=1.0, seed=1, seconds=10):
	"""A node of a chain: cpu, wait, queue, bytes and faults; two processes; recursion; long names; a busy middle.

	With slower, keccak takes that much more, and one function has made room for another.
	"""
	r = random.Random(seed)
	c = Capture("op-node", seconds, (("op-node", 4242), ("sidecar", 4343)), 4000 + 1000 * seed)
	wait = c.event("wait", "ns", "time blocked, from leaving the CPU to being woken")
	queue = c.event("queue", "ns", "time ready to run, but without a CPU")
	cpu = c.event("cpu", "ns", "CPU time, sampled at 999 Hz", 1001001)
	write = c.event("write", "bytes", "bytes written, as the calls returned them")
	faults = c.event("minor-faults", "count", "page faults served from memory")
	engine = c.thread("engine", run_s=5.5, queue_s=0.5, blocked_s=4)
	store = c.thread("persistence", run_s=1.5, queue_s=0.2, blocked_s=8.3)
	rpc = [c.thread("rpc", run_s=0.8, queue_s=0.1, blocked_s=9.1) for _ in range(2)]
	side = c.thread("sidecar", 1, run_s=0.4, blocked_s=9.6)
	main = ["_start", "main", "reth::engine::run"]
	execute = main + ["reth::engine::on_new_payload", "execute_block"]
	visit = ["trie::visit"]
	work = [
		(engine, 30, execute + ["revm::interpreter::run", "revm::instructions::sload",
		"reth_db::cursor::seek"]),
		(engine, 22, execute + ["revm::interpreter::run", "revm::instructions::keccak256",
		"keccak::f1600"]),
		(engine, 9, execute + ["revm::interpreter::run", "alloc::vec::Vec<T,A>::push", ("malloc",
		LIBC)]),
		(engine, 16, main + [LONG, "state_root"] + visit * 3 + ["keccak::f1600"]),
		(engine, 11, main + [LONG, "state_root"] + visit * 5 + ["core::ptr::drop_in_place<T>",
		("free", LIBC)]),
		(store, 12, ["_start", "main", "persist", "mdbx_txn_commit"] + kernel("__x64_sys_write",
		"ext4_file_write_iter")),
		(store, 5, ["_start", "main", "persist", (["serde::ser::to_vec", "encode"],
		"/usr/bin/node")]),
		(rpc[0], 6, ["_start", "rpc::serve", "rpc::eth_call", "revm::interpreter::run",
		"revm::instructions::sload"]),
		(rpc[1], 5, ["_start", "rpc::serve", "rpc::eth_get_proof" if slower > 1
		else "rpc::eth_get_logs", ("memchr", LIBC)]),
		(side, 4, [("_start", "/usr/bin/sidecar"), ("poll_loop", "/usr/bin/sidecar")]),
	]
	for thread, share, frames in work:
		weight = share * (slower if "keccak::f1600" in frames else 1)
		stack = c.stack(*frames)
		for _ in range(int(weight * 6 * seconds)):
			# Twice as much happens between 4 and 6 s.
			t = r.random() * seconds * 1.2
			c.sample(cpu, thread, t if t < seconds else seconds * (0.4 + 0.2 * r.random()), stack)
	slots = int(seconds * 100)
	fsync = c.stack("_start", "main", "persist", "mdbx_txn_commit", ("fdatasync", LIBC),
			*kernel("__x64_sys_fdatasync", "ext4_sync_file", "io_schedule"))
	lock = c.stack(*execute, "parking_lot::raw_mutex::RawMutex::lock_slow",
		       *kernel("__x64_sys_futex", "futex_wait", "schedule"))
	sleep = c.stack(*main, "std::thread::sleep", *kernel("__x64_sys_clock_nanosleep", "hrtimer_nanosleep",
			"schedule"))
	epoll = c.stack("_start", "rpc::serve", "tokio::runtime::park", ("epoll_wait", LIBC),
			*kernel("__x64_sys_epoll_wait", "ep_poll", "schedule"))
	for i in range(slots):
		t = i / 100
		if i % 4 == 0:
			c.sample(wait, store, t, fsync, r.randrange(20, 30) * 1_000_000, None)
		if i % 3 == 0:
			c.sample(wait, engine, t, lock, r.randrange(1, 9) * 1_000_000, r.randrange(1, 4))
		if i % 50 == 0:
			c.sample(wait, engine, t, sleep, 40_000_000, None)
		for thread in rpc:
			if i % 25 == 0:
				c.sample(wait, thread, t, epoll, 180_000_000, None)
		if i % 5 == 0:
			c.sample(queue, engine, t, c.stack(*execute), r.randrange(100_000, 900_000), 2)
		if i % 10 == 0:
			c.sample(write, store, t, c.stack("_start", "main", "persist", "mdbx_txn_commit",
					("pwrite64", LIBC)),
				 r.randrange(1, 64) * 4096, r.randrange(1, 5))
		if i % 7 == 0:
			c.sample(faults, engine, t, c.stack(*execute, ("memcpy", LIBC)), r.randrange(1, 20),
					None)
	c.series("rss", "bytes", [(s / 2, 1_000_000_000 + 20_000_000 * s) for s in range(2 * seconds)])
	c.series("cost.total", "ppm", [(s, 10_000 * s) for s in range(1, 5)])
	c.series("cost.wait", "ppm", [(s, 9_000 * s) for s in range(1, 5)])
	c.series("thin.wait", "1 in", [(0, 1), (2, 8), (3, 1)])
	for i, s in enumerate((0.5, 3.0, 5.5, 8.0)):
		c.rows["mark"].append((int(s * 1e9), int((s + 1.5) * 1e9), f"#{101 + i}", "block", 0, 101 + i, None, None))
	return c.save(path)


def locks(path):
	"""Workers wait for a lock; who holds it waits for the disk, then encodes; all of it between 2 and 6 of 10 seconds."""
	c = Capture("locks", 10)
	wait = c.event("wait", "ns", "time blocked, from leaving the CPU to being woken")
	cpu = c.event("cpu", "ns", "CPU time, sampled at 100 Hz", 10_000_000)
	workers = [c.thread("worker", run_s=0.5, blocked_s=9) for _ in range(3)]
	flusher = c.thread("flusher", run_s=2, blocked_s=4)
	get = c.stack("_start", "main", "serve", "cache::get", ("pthread_mutex_lock", LIBC), ("__lll_lock_wait", LIBC),
			*kernel("__x64_sys_futex", "futex_wait", "schedule"))
	sync = c.stack("_start", "flush_loop", "cache::flush", "store::sync", ("fdatasync", LIBC),
			*kernel("__x64_sys_fdatasync", "ext4_sync_file", "io_schedule"))
	unlock = c.stack("_start", "flush_loop", "cache::flush", ("pthread_mutex_unlock", LIBC),
			*kernel("__x64_sys_futex", "futex_wake", "wake_up_q", "try_to_wake_up"))
	disk = c.stack(*kernel("asm_common_interrupt", "blk_mq_complete_request", "blk_update_request", "try_to_wake_up"))
	encode = c.stack("_start", "flush_loop", "cache::flush", "cache::encode")
	for i in range(20):
		t = 2 + i * 0.2
		for w in workers:
			c.sample(wait, w, t, get, 150_000_000, None)
			c.wake(w, t, get, 0.15, flusher, unlock)
		c.sample(wait, flusher, t, sync, 100_000_000, None)
		c.wake(flusher, t, sync, 0.1, None, disk)
		for k in range(5):
			c.sample(cpu, flusher, t + 0.1 + k / 100, encode)
		c.sample(cpu, workers[i % 3], t + 0.16, c.stack("_start", "main", "serve", "cache::get"))
	return c.save(path)


def threads(path, workers=300):
	"""Many threads whose names differ in a number, and one other."""
	c = Capture("rpcd", 10)
	cpu = c.event("cpu", "ns", "CPU time, sampled at 999 Hz", 1001001)
	work = [c.stack("start_thread", "work", name) for name in ("get", "put", "list")]
	for i, name in enumerate([f"rpc-worker-{i}" for i in range(workers)] + ["logger"]):
		thread = c.thread(name, run_s=0.1)
		for k in range(2 + i % 5):
			c.sample(cpu, thread, (i * 7 + k * 13) % 100 / 10, work[(i + k) % 3])
	return c.save(path)


SLOW_BY_LOCK, SLOW_BY_GAS, BLOCKS = (7, 19, 31), (12, 25), 40


def chain(path):
	"""40 blocks from number 970 on, of about 40 ms in 100 ms each: three of them are slow for a lock that the cache holds, two
	because they have three times the gas."""
	r = random.Random(7)
	c = Capture("chain-node", BLOCKS / 10)
	wait = c.event("wait", "ns", "time blocked, from leaving the CPU to being woken")
	c.event("queue", "ns", "time ready to run, but without a CPU")
	cpu = c.event("cpu", "ns", "CPU time, sampled at 999 Hz", 1001001)
	engine, cache = c.thread("engine", run_s=2, blocked_s=2), c.thread("cache", run_s=1, blocked_s=3)
	main = ["_start", "main", "node::engine::run", "node::engine::execute_block"]
	run = [c.stack(*main, *tail) for tail in (["evm::run", "evm::sload"], ["evm::run", "evm::keccak256"], ["trie::root", "trie::hash"],
		["evm::run"])]
	lock = c.stack(*main, "node::state::Cache::get", "parking_lot::raw_mutex::RawMutex::lock_slow", *kernel("__x64_sys_futex", "futex_wait", "schedule"))
	between = c.stack("_start", "main", "node::engine::run", "node::engine::next_block",
			*kernel("__x64_sys_clock_nanosleep", "hrtimer_nanosleep", "schedule"))
	holder = c.stack("_start", "cache::run", "cache::evict")
	for i in range(BLOCKS):
		start, gas = 0.01 + i / 10, r.randrange(9_500_000, 10_500_000)
		wall, waits = 0.030 + 0.001 * r.random(), 0.0
		if i in SLOW_BY_LOCK:
			waits = 0.045
			c.sample(wait, engine, start + 0.005, lock, int(waits * 1e9), None)
			for k in range(40):
				c.sample(cpu, cache, start + 0.006 + k / 1000, holder)
		elif i in SLOW_BY_GAS:
			gas, wall = 3 * gas, 0.085
		for k in range(int(wall * 999)):
			t = start + k / 999
			c.sample(cpu, engine, t if t < start + 0.005 else t + waits, r.choice(run))
		end = start + wall + waits
		c.sample(wait, engine, end, between, int((min(0.11 + i / 10, BLOCKS / 10) - end) * 1e9), None)
		c.rows["mark"].append((int(start * 1e9), int(end * 1e9), f"block {970 + i}", "block", engine, 970 + i, gas, 100 + i))
	return c.save(path)


def tasks(path):
	"""A runtime of two workers for 10 seconds. Requests await the store, which awaits the disk; each second a flush blocks a worker
	for 20 ms in fdatasync while ticks, which are due meanwhile, lie in the queue."""
	c = Capture("async-node", 10)
	wait = c.event("wait", "ns", "time blocked, from leaving the CPU to being woken")
	cpu = c.event("cpu", "ns", "CPU time, sampled at 999 Hz", 1001001)
	poll = c.event("poll", "ns", "time in polls of tasks")
	awaits = c.event("await", "ns", "time that tasks awaited, by who ended it")
	queued = c.event("taskqueue", "ns", "time of tasks in the runtime's queue, by what ran meanwhile")
	spawn = c.event("spawn", "tasks", "tasks that were spawned")
	first, second = (c.thread("tokio-runtime-w", run_s=4, blocked_s=6) for _ in range(2))
	request, store, flush, tick = types = ["rpc::server::handle_connection", "store::actor::run", "store::flush_loop", "metrics::tick"]
	runtime = ["start_thread", "tokio::runtime::scheduler::multi_thread::worker::run", "tokio::runtime::task::raw::poll"]
	at = {name: c.stack(("task " + name, None)) for name in types}
	replies = c.stack(("task " + request, None), *runtime, "store::actor::run", "tokio::sync::oneshot::Sender<T>::send")
	asks = c.stack(("task " + store, None), *runtime, "rpc::server::handle_connection", "tokio::sync::mpsc::Sender<T>::send")
	parks = ["start_thread", "tokio::runtime::scheduler::multi_thread::worker::run", "tokio::runtime::time::Driver::park"]
	ticks, flushes, driver = (c.stack(*root, *parks) for root in ([("task " + tick, None)], [("task " + flush, None)], []))
	sync = c.stack(*runtime, "store::flush_loop", "store::sync", ("fdatasync", LIBC), *kernel("__x64_sys_fdatasync", "ext4_sync_file", "io_schedule"))
	serve = c.stack(*runtime, "rpc::server::handle_connection", "rpc::encode")
	get = c.stack(*runtime, "store::actor::run", "store::get")
	for i in range(1000):
		t = i / 100
		blocked = i % 100 in (50, 51)
		for name, worker, ns, n in (request, second, 3_000_000, 30), (store, first, 1_000_000, 20), (tick, second, 20_000, 1):
			if not (blocked and name == tick):
				c.sample(poll, worker, t, at[name], ns, n)
		c.sample(awaits, first, t, replies, 16_000_000, 20)
		c.sample(awaits, second, t, asks, 8_000_000, 20)
		c.sample(awaits, second, t, ticks, 9_000_000, 1)
		c.sample(cpu, second, t, serve)
		if not blocked:
			c.sample(cpu, first, t, get)
		if i % 100 == 50:
			c.sample(poll, first, t, at[flush], 20_000_000, 1)
			c.sample(awaits, first, t, flushes, 980_000_000, 1)
			c.sample(wait, first, t, sync, 19_500_000, 1)
			for _ in range(2):
				c.sample(queued, first, t + 0.02, c.stack(("task " + tick, None), ("task " + flush, None)), 9_000_000, 1)
			c.rows["mark"].append((int(t * 1e9), int((t + 0.02) * 1e9), flush, "long poll", first, None, None, None))
			c.rows["task_wake"].append((int(t * 1e9), 980_000_000, 100_000, flush, 3, first, first, None, 0, driver))
	for i in range(40):
		c.sample(spawn, second, i / 4, c.stack("start_thread", "rpc::server::accept", ("task " + request, None)), 1, 1)
	counted = {request: (40, 28, 12, 30_000, 20_000, 3_000_000_000, 700_000, 500_000_000, 16_000_000_000),
		store: (1, 0, 1, 20_000, 20_000, 1_000_000_000, 400_000, 300_000_000, 8_000_000_000),
		flush: (1, 0, 1, 10, 10, 200_000_000, 20_000_000, 1_000_000, 9_800_000_000),
		tick: (1, 0, 1, 980, 980, 19_600_000, 60_000, 180_000_000, 9_000_000_000)}
	keys = ("spawned", "finished", "alive", "polls", "wakes", "poll_ns", "poll_max_ns", "queue_ns", "await_ns")
	for name, values in counted.items():
		c.rows["counter"] += [(f"task.{name}.{key}", value) for key, value in zip(keys, values)]
	c.rows["counter"] += [("task.version", 1_043_000), ("task.vtables", 4)]
	c.series("task.queue", "ns", [(s / 10, 36_000_000 if s % 10 == 6 else 0) for s in range(1, 100)])
	return c.save(path)


def heap(path):
	"""A heap in MB: a leak of one a second, a cache that is full after 3 s, buffers that live for half a second."""
	c, mb = Capture("node", 10), 1 << 20
	heap, alloc, freed, temporary = (c.event(n, "bytes", n) for n in ("heap", "alloc", "freed", "temporary"))
	thread = c.thread("main", run_s=9)
	leak, cache, buffer = (c.stack("_start", "main", name) for name in ("leaks", "caches", "buffers"))
	for i in range(10):
		for stack, bytes, lives in (leak, mb, None), (cache, 4 * mb if i < 3 else 0, None), (buffer, 8 * mb, 0.5):
			if not bytes:
				continue
			c.sample(alloc, thread, i + 0.2, stack, bytes, 1)
			if lives:
				c.sample(freed, thread, i + 0.2 + lives, stack, bytes, 1)
			else:
				c.sample(heap, thread, i + 0.2, stack, bytes, 1)
	c.sample(temporary, thread, 1, buffer, mb, 1)
	c.series("pressure.cpu.some", "us", [(s, 20_000 * s) for s in range(10)])
	c.series("pressure.io.some", "us", [(s, 500 * s) for s in range(10)])
	c.series("heap.live", "bytes", [(s, mb * s) for s in range(10)])
	c.series("mem.rss", "bytes", [(s, 2 * mb * s) for s in range(10)])
	for part, bytes in ("heap", 9), ("files", 6), ("stacks", 1), ("data", 2):
		c.series("mem.part." + part, "bytes", [(9, bytes * mb)])
	c.series("mem.file:/lib/<b>lib", "bytes", [(9, 5 * mb)])
	return c.save(path)


def hostile(path):
	"""Names that want to be something else than names."""
	names = ["</script><script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>",
			"a&b<c>\"d'e", "\u202egnp.exe",
		 "line\nfeed\ttab\r\x1b[31mred\x07", "javascript:window.pwned=1",
		 "{{constructor.constructor('window.pwned=1')()}}",
		 "<!--<script>", "]]>", "${window.pwned=1}", "`;window.pwned=1;`", "\\u003cscript\\u003e",
		 "__proto__", "constructor",
		 "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
		 "\udcff\udcfe bad utf-8 \udc80", "toString", "",
		 "x" * 5000]
	c = Capture("<script>window.pwned=1</script>", 2, (("<b>proc</b>", 7),))
	cpu = c.event("cpu", "ns", "<i>CPU</i> time", 1001001)
	poll, awaits = (c.event(n, "ns", f"<i>{n}</i>") for n in ("poll", "await"))
	for i, name in enumerate(names):
		thread = c.thread(name[:200] or "empty")
		stack = c.stack("_start", (name, "/lib/" + name[:100]), name, "leaf")
		for k in range(20 + i):
			c.sample(cpu, thread, 2 * (k + 0.5) / (20 + i), stack)
		c.sample(poll, thread, 1, c.stack(("task " + name, None)), 5_000_000, 1)
		c.sample(awaits, thread, 1, c.stack(("task " + name, None), name), 5_000_000, 1)
		c.rows["mark"].append((10**9, 10**9 + 5_000_000, name, "long poll", thread, None, None, None))
	c.series("<u>rss</u>", "bytes", [(0, 1), (1, 2)])
	c.save(path)
	return names


def deep(path, frames=4000):
	c = Capture("deep", 1)
	cpu = c.event("cpu", "ns", "CPU time", 1001001)
	thread = c.thread("main")
	whole = c.stack(*[f"f{i}" for i in range(frames)])
	half = c.stack(*[f"f{i}" for i in range(frames // 2)], "half")
	for k in range(100):
		c.sample(cpu, thread, k / 100, whole if k % 4 else half)
	c.save(path)


def one(path):
	c = Capture("one", 1)
	c.sample(c.event("cpu", "ns", "CPU time", 1001001), c.thread("main"), 0.5, c.stack("main", "only"))
	c.save(path)


def transfers(path):
	"""CPU time, and bytes both ways."""
	c = Capture("transfers", 1)
	cpu, main = c.event("cpu", "ns", "CPU time", 1001001), c.thread("main")
	write, read = (c.event(n, "bytes", "bytes") for n in ("write", "read"))
	c.event("sync", "ns", "never happened")
	for k in range(10):
		c.sample(cpu, main, k / 10, c.stack("main", "work"))
		c.sample(read, main, k / 10, c.stack("main", "load"), 4096, 1)
		c.sample(write, main, k / 10, c.stack("main", "store"), 512 + k, 1)
	c.save(path)


def pools(path):
	"""Two workers of tokio that run two tasks, a job of the blocking pool that calls what a task does, and the main thread."""
	c = Capture("pools", 1)
	cpu, wait = c.event("cpu", "ns", "CPU time", 1001001), c.event("wait", "ns", "time blocked")
	main, *workers = (c.thread(name) for name in ("main", "tokio-rt-worker", "tokio-rt-worker", "tokio-rt-worker"))
	pool = ("start_thread", "std::sys::backtrace::__rust_begin_short_backtrace", "tokio::runtime::blocking::pool::Inner::run",
		"tokio::runtime::task::raw::poll")
	worker = (*pool, "tokio::runtime::scheduler::multi_thread::worker::run", "tokio::runtime::task::raw::poll")
	stacks = [(workers[0], (*worker, "app::serve::{{closure}}", "app::handle", "app::hash"), 40),
		(workers[1], (*worker, "app::serve::{{closure}}", "app::handle"), 20),
		(workers[1], (*worker, "<app::Node<N> as core::future::future::Future>::poll", "app::hash"), 30),
		(workers[0], (*worker[:-1], "tokio::runtime::time::Driver::park"), 5),
		(workers[2], (*pool, "app::read::{{closure}}", "app::hash"), 15), (main, ("_start", "main"), 10)]
	for thread, stack, n in stacks:
		for k in range(n):
			c.sample(cpu, thread, k / 100, c.stack(*stack))
	c.sample(wait, workers[0], 0.5, c.stack(*worker, "app::serve::{{closure}}", "parking_lot::raw_mutex::RawMutex::lock_slow",
		("syscall", LIBC), *kernel("__x64_sys_futex", "futex_wait_queue", "schedule")), 7000000, 3)
	c.save(path)


def empty(path):
	c = Capture("empty", 1)
	c.event("cpu", "ns", "CPU time", 1001001)
	c.thread("main")
	c.save(path)


def wide(path, stacks=20000, seed=3):
	"""Many stacks of different weight: more than a small --max-size holds."""
	r = random.Random(seed)
	c = Capture("wide", 4)
	cpu = c.event("cpu", "ns", "CPU time", 1001001)
	threads = [c.thread(f"worker-{i}") for i in range(4)]
	for i in range(stacks):
		a, b = i % 7, i % 131
		stack = c.stack("main", f"service_{a}", f"handler_{a}_{b}", f"step_{i}", f"leaf_{i}")
		for _ in range(1 + int(20 / (1 + b))):
			c.sample(cpu, threads[i % 4], 4 * r.random(), stack)
	c.save(path)
