"""fill.py - ten million rows of samples, as agents would have left them, made by the servers of a store themselves.

40 nodes, a day of windows of 30 s, 87 rows each, a block in 12 s, 5,000 stacks of 30 frames in 3,000 functions. Stacks share their callers, as calls of a
program do, and some are far more frequent than others. A node is on one server. From noon on the release is v2, in which three things are slower: one function by 30 %,
waits for locks by 100 %, blocks by 150 %.
"""
import time

NODES, ROWS, STACKS, FRAMES, FUNCTIONS = 40, 87, 5000, 20000, 3000
DAY, NS = 1794873600, 10**9 # 2026-11-17, UTC
NOON = DAY + 43200
PIECES = 12


def spread(*what):
	"""A number from 0 to 1 that looks random and is always the same."""
	return f"(cityHash64({', '.join(what)}) % 1000003) / 1000003"


class Filler:
	def __init__(self, store, step):
		self.store, self.step = store, step # of each so many windows one is made
		self.windows = 86400 // 30 // step
		self.key = "toDate(second), concat('node-', toString(node)), toDateTime(second), cityHash64(node, slot), 1"

	def each(self, shard, rows, first=0, count=None):
		"""A subquery: node, slot and second of windows, each rows times, with number k of them."""
		shards = len(self.store.list)
		nodes, count = NODES // shards, self.windows if count is None else count
		return (f"(SELECT {shard} + {shards} * (intDiv(number, {rows}) % {nodes}) AS node, {first} + intDiv(number, {rows * nodes}) AS slot, "
			f"{DAY} + slot * {30 * self.step} AS second, number % {rows} AS k FROM numbers({rows * nodes * count}))")

	def samples(self, shard, first, count):
		stack = f"toUInt64({STACKS} * pow({spread('node', 'slot', 'k')}, 3))"
		self.store.ask(shard, f"INSERT INTO samples SELECT {self.key}, 'cpu', 4242, 4242 + k % 16, 'tokio-runtime-w', '', 0, cityHash64('stack', {stack} AS s), "
			       f"toUInt64(10000000 * (1 + k % 5) * if(s = 0 AND second >= {NOON}, 1.3, 1)), 1 + k % 5 FROM {self.each(shard, ROWS, first, count)}")

	def others(self, shard):
		"""The rest of a window, and the row that commits it."""
		begin = f"(second + 12 * k) * {NS}"
		self.store.ask(shard, f"INSERT INTO blocks SELECT {self.key}, cityHash64(node, slot, k), 'block', '', {begin}, {begin} + toUInt64((100000000 + 200000000 * "
			       f"{spread('slot', 'node', 'k')}) * if(second >= {NOON}, 2.5, 1)), slot * 3 + k, 15000000, 100, 7 FROM {self.each(shard, 3)} WHERE k < 2 OR slot % 2")
		self.store.ask(shard, f"INSERT INTO points SELECT {self.key}, 'mem.rss', 'bytes', second * {NS}, toInt64(4000000000 + slot * 1000) FROM {self.each(shard, 1)}")
		lock = f"toUInt64(1000000000 * (0.9 + 0.2 * {spread('node', 'start')}) * if(start >= toDateTime({NOON}), 2, 1))"
		self.store.ask(shard, f"INSERT INTO windows SELECT day, target AS node, start, window_id, 1, toUInt64(toUInt32(start)) * {NS}, 30 * {NS}, intDiv(toUInt32(start) - {DAY}, 30), 1, "
			       f"node, 'kernel', if(start < toDateTime({NOON}), 'v1', 'v2'), ['region=eu'], ['cpu', 'wait'], ['ns', 'ns'], ['CPU time', 'time off the CPU'], "
			       f"[toUInt64(10000000), 0], [sum(value), 9000000000], [sum(count), 300], ['disk read', 'lock', 'idle'], [toUInt64(2000000000), {lock}, 6000000000] FROM samples "
			       "GROUP BY day, target, start, window_id")

	def names(self, shard):
		day = f"toDate({DAY // 86400})"
		# From the leaf on: the outermost frames are the same for all stacks, the innermost of each one's own.
		self.store.ask(shard, f"INSERT INTO stacks SELECT {day}, cityHash64('stack', number), arrayMap(i -> cityHash64('frame', toUInt64(cityHash64(i, intDiv(number, "
			       f"toUInt64(pow(1.5, i)))) % {FRAMES})), range(30)) FROM numbers({STACKS})")
		self.store.ask(shard, f"INSERT INTO frames SELECT {day}, cityHash64('frame', number), 0, 0, '/usr/bin/node', '00112233', number * 64, "
			       f"[concat('crate_', toString(number % 200), '::module::function_', toString(number % {FUNCTIONS}))], ['src/lib.rs'], [toUInt32(number)], [0] "
			       f"FROM numbers({FRAMES})")


def fill(store, step, say):
	"""All of it; step: of so many windows one. say: is told how far it is."""
	filler, start = Filler(store, step), time.monotonic()
	for piece in range(PIECES):
		first = filler.windows * piece // PIECES
		for shard in range(len(store.list)):
			filler.samples(shard, first, filler.windows * (piece + 1) // PIECES - first)
		say(f"made {ROWS * NODES * filler.windows * (piece + 1) // PIECES:,} rows of samples in {time.monotonic() - start:.0f} s")
	for shard in range(len(store.list)):
		filler.others(shard)
		filler.names(shard)
	say(f"and blocks, memory and names: {time.monotonic() - start:.0f} s")


def names_of(store):
	"""Functions to ask for: that which is slower in v2, one that few stacks have and one that many have."""
	def name(stack, frame):
		return store.ask(0, f"SELECT names[1] FROM frames WHERE frame IN (SELECT frames[{frame}] FROM stacks WHERE stack = cityHash64('stack', toUInt64({stack})))")
	return {"planted": name(0, 1), "few": name(40, 3), "many": name(0, 18)}
