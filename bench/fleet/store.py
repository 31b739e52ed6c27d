#!/usr/bin/env python3
"""store.py [--quick] [BUILD] - a store of ten million rows: how long a report of one node's hour takes, and a map of all nodes and
times; what roll-ups cost; and what a node costs it in a day, from a real recording.

The rows are made by the server itself: 40 nodes, a day of windows of 30 s, 87 rows each, a block in 12 s, 5,000 stacks of 30 frames, which
share their callers as calls of a program do, in 3,000 functions. One node's day is rolled up by gasflame; the others get a copy of it. The server is
Debian's clickhouse-server, with an empty store in a folder of its own. With --quick a tenth of the windows.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from measure import median

NODES, ROWS, STACKS, FRAMES, FUNCTIONS = 40, 87, 5000, 20000, 3000
DAY = 1794873600 # 2026-11-17, UTC
NS = 10**9
CONFIG = """<yandex><logger><level>warning</level><console>1</console></logger><http_port>{port}</http_port>
<listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<user_files_path>{folder}/files/</user_files_path><users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>536870912</mark_cache_size></yandex>"""
USERS = """<yandex><profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles><users><default>
<password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default/></quotas></yandex>"""


class Server:
	"""A ClickHouse, for as long as it is used."""

	def __init__(self, folder):
		program = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")
		if not program:
			raise RuntimeError("there is no clickhouse-server")
		with socket.socket() as s:
			s.bind(("127.0.0.1", 0))
			self.port = s.getsockname()[1]
		for name in ("data", "tmp", "files"):
			os.makedirs(os.path.join(folder, name))
		for name, text in (("config.xml", CONFIG), ("users.xml", USERS)):
			with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
				f.write(text.format(port=self.port, folder=folder))
		with open(os.path.join(folder, "log"), "wb") as log:
			self.child = subprocess.Popen([program, f"--config-file={folder}/config.xml"], stdout=log, stderr=log)
		self.url = f"clickhouse://127.0.0.1:{self.port}/bench"

	def __enter__(self):
		end = time.monotonic() + 60
		while True:
			try:
				self.ask("SELECT 1", "default")
				return self
			except OSError as problem:
				if time.monotonic() > end:
					raise RuntimeError(f"clickhouse-server does not answer: {problem}") from problem
				time.sleep(0.1)

	def __exit__(self, *_):
		self.child.kill()
		self.child.wait()

	def ask(self, sql, database="bench"):
		request = urllib.request.Request(f"http://127.0.0.1:{self.port}/?database={database}", data=sql.encode())
		with urllib.request.urlopen(request, timeout=600) as answer:
			return answer.read().decode().strip()

	def bytes_of(self):
		"""Bytes on disk and rows by table, when all parts are merged."""
		for table in self.ask("SHOW TABLES").split():
			self.ask(f"OPTIMIZE TABLE {table} FINAL")
		lines = self.ask("SELECT table, sum(bytes_on_disk), sum(rows) FROM system.parts WHERE active AND database = 'bench' GROUP BY table").split("\n")
		return {table: (int(size), int(rows)) for table, size, rows in (line.split("\t") for line in lines)}


def fill(server, windows):
	"""Ten million rows, as `store push` would have left them."""
	key = "toDate(second), concat('node-', toString(node)), toDateTime(second), cityHash64(node, slot), 1"
	each = f"intDiv(number, {{rows}}) % {NODES} AS node, intDiv(number, {{rows}} * {NODES}) AS slot, {DAY} + slot * 30 AS second"
	server.ask(f"INSERT INTO windows SELECT {key}, second * {NS}, 30 * {NS}, slot, 1, 'host', 'kernel', 'v1', ['region=eu'], ['cpu', 'wait'], ['ns', 'ns'], "
		   f"['CPU time', 'time off the CPU'], [toUInt64(10000000), 0], [toUInt64({ROWS} * 30000000), 9000000000], [toUInt64({ROWS} * 3), 300], "
		   f"['disk read', 'lock', 'idle'], [toUInt64(2000000000), 1000000000, 6000000000] FROM "
		   f"(SELECT {each.format(rows=1)} FROM numbers({NODES * windows}))")
	server.ask(f"INSERT INTO samples SELECT {key}, 'cpu', 4242, 4242 + k % 16, 'tokio-runtime-w', '', 0, "
		   f"cityHash64('stack', (k * 57 + slot * 31 + node) % {STACKS}), 10000000 * (1 + k % 5), 1 + k % 5 FROM "
		   f"(SELECT {each.format(rows=ROWS)}, number % {ROWS} AS k FROM numbers({NODES * windows * ROWS}))")
	server.ask(f"INSERT INTO blocks SELECT {key}, number + 1, 'block', '', (second + number % 18) * {NS}, (second + number % 18) * {NS} + 100000000 + cityHash64(number) % "
		   f"200000000, slot * 5 + number % 5, 15000000, 100, 7 FROM (SELECT {each.format(rows=2)}, number FROM numbers({NODES * windows * 5 // 2}))")
	server.ask(f"INSERT INTO points SELECT {key}, 'mem.rss', 'bytes', second * {NS}, 4000000000 + slot FROM (SELECT {each.format(rows=1)} FROM numbers({NODES * windows}))")
	# From the leaf on: the outermost ones are the same for all, the innermost of each stack's own.
	server.ask(f"INSERT INTO stacks SELECT toDate({DAY // 86400}), cityHash64('stack', number), "
		   f"arrayMap(i -> cityHash64('frame', cityHash64(i, intDiv(number, toUInt64(pow(1.5, i)))) % {FRAMES}), range(30)) FROM numbers({STACKS})")
	server.ask(f"INSERT INTO frames SELECT toDate({DAY // 86400}), cityHash64('frame', number), 0, 0, '/usr/bin/node', '00112233', number * 64, "
		   f"[concat('crate_', toString(number % 200), '::module::function_', toString(number % {FUNCTIONS}))], ['src/lib.rs'], [toUInt32(number)], [0] "
		   f"FROM numbers({FRAMES})")


def timed(job, rounds=5):
	"""Seconds: median, and the longest."""
	seconds = []
	for _ in range(rounds):
		start = time.monotonic()
		job()
		seconds.append(time.monotonic() - start)
	print(f"# {median(seconds):.2f} s, longest {max(seconds):.2f} s", file=sys.stderr, flush=True)
	return {"median_s": median(seconds), "longest_s": max(seconds)}


def run(command):
	done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
	if done.returncode not in (0, 3):
		raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode()}")


def copy_rollups(server):
	"""The roll-ups of node 7 for all other nodes, with what their own windows add up to."""
	for node in range(NODES):
		if node == 7:
			continue
		server.ask(f"INSERT INTO functions SELECT day, start, 'node-{node}', release, event, name, self, total, self_count, total_count, rollup + {node + 1} FROM functions "
			   "WHERE target = 'node-7'")
		server.ask(f"INSERT INTO rollups SELECT day, hour, 'node-{node}', rollup + {node + 1}, made, method, n, d, blocks, block_ns, block_p50, block_p90, block_p99, block_max, gas, "
			   "transactions FROM (SELECT * FROM rollups WHERE target = 'node-7') ANY INNER JOIN (SELECT toDateTime(intDiv(toUInt32(start), 3600) * 3600) AS hour, count() AS n, "
			   f"sum(bitXor(window_id, digest)) AS d FROM windows WHERE target = 'node-{node}' GROUP BY hour) USING hour")


def map_of(gasflame, server, *options):
	return timed(lambda: run([gasflame, "store", "map", "--from", str(DAY), "--to", str(DAY + 86400), "--slot", "10m", "--json", *options, server.url]))


def measure_reading(server, gasflame):
	noon = DAY + 7200
	function = ["--figure", "function", "--name", "crate_7::module::function_7"]
	figures = {
		"report of an hour of one node": timed(lambda: run([gasflame, "report", "--format", "text", f"{server.url}?target=node-7&from={noon}&to={noon + 3600}"])),
		"the same, of a day": timed(lambda: run([gasflame, "report", "--format", "text", f"{server.url}?target=node-7"]), 3),
		"diff of two nodes' hours": timed(lambda: run([gasflame, "diff", "--format", "text", f"{server.url}?target=node-7&from={noon}&to={noon + 3600}",
							 f"{server.url}?target=node-8&from={noon}&to={noon + 3600}"])),
		"map of 40 nodes and a day by 10 minutes: CPU time": map_of(gasflame, server, "--figure", "cpu"),
		"the same: share of a cause": map_of(gasflame, server, "--figure", "cause", "--name", "lock"),
		"the same: time of blocks, 95th percentile": map_of(gasflame, server, "--figure", "block-p95"),
		"the same: resident memory": map_of(gasflame, server, "--figure", "rss"),
		"the same: share of a function, without roll-ups": map_of(gasflame, server, *function),
		"roll-ups of a day of one node": timed(lambda: run([gasflame, "store", "rollup", "--target", "node-7", server.url]), 1),
	}
	copy_rollups(server)
	figures["map of 40 nodes and a day: share of a function, from roll-ups"] = map_of(gasflame, server, *function)
	figures["watch of 40 nodes, six hours with the six before"] = timed(
		lambda: run([gasflame, "watch", "--from", str(DAY + 43200), "--to", str(DAY + 64800), server.url + "?timeout=10m"]), 1)
	return figures


def measure_node(server, gasflame, workload, folder, seconds, events):
	"""Bytes of a node and day: a recording at 19 Hz, in windows. What has names is sent once a day."""
	capture = os.path.join(folder, f"{events}.gasflame")
	child = subprocess.Popen([workload, "--quiet", "--seconds", str(seconds * 4), "--share", "20"])
	try:
		run([gasflame, "record", "-F", "19", "-e", events, "-d", str(seconds), "-o", capture, "-p", str(child.pid)])
	finally:
		child.kill()
		child.wait()
	server.ask("DROP DATABASE bench", "default")
	run([gasflame, "store", "init", server.url])
	before = time.monotonic()
	sent = subprocess.run([gasflame, "store", "push", "--target", "real", server.url, capture], stderr=subprocess.PIPE, check=True)
	sizes = server.bytes_of()
	names = sum(sizes[t][0] for t in ("stacks", "frames"))
	rows = sum(size for t, (size, _) in sizes.items() if t not in ("stacks", "frames", "schema_version"))
	return {"seconds": seconds, "push_s": time.monotonic() - before, "said": sent.stderr.decode().strip(), "tables": sizes,
		"rows_per_window": sizes["samples"][1] * 30 / seconds, "names_bytes": names, "rows_bytes": rows,
		"rows_bytes_per_day": rows * 86400 / seconds}


def measure_store(build, folder, quick):
	"""Figures, and lines of a table."""
	gasflame = os.path.join(build, "src", "cmd", "gasflame")
	workload = os.path.join(build, "workload", "gasflame-workload")
	own = tempfile.mkdtemp(prefix="store-", dir=folder)
	try:
		with Server(own) as server:
			run([gasflame, "store", "init", server.url])
			fill(server, 288 if quick else 2880)
			sizes = server.bytes_of() # and no merges beside the measurement
			reading = measure_reading(server, gasflame)
			rolled = {t: server.ask(f"SELECT count(), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench' AND table = '{t}'").split("\t")[1]
				  for t in ("functions", "rollups")}
			rows = server.ask("SELECT count() FROM functions")
			nodes = {events: measure_node(server, gasflame, workload, own, 60 if quick else 120, events) for events in ("cpu", "cpu,wait")}
	finally:
		shutil.rmtree(own, ignore_errors=True)
	lines = ["", "## A store", "", f"{sizes['samples'][1]:,} rows of samples, {NODES} nodes, {sizes['samples'][0] / 1e6:.0f} MB on disk.", "",
		 "| | median | longest |", "|---|---|---|"]
	lines += [f"| {name} | {t['median_s']:.2f} s | {t['longest_s']:.2f} s |" for name, t in reading.items()]
	lines += ["", f"Roll-ups: {int(rows):,} rows of functions, {int(rolled['functions']) / 1e6:.1f} MB, {int(rolled['functions']) / 1e6 / NODES:.2f} MB a node and day."]
	lines += ["", "| a node at 19 Hz | rows of samples a window | a day, without names | stacks and frames |", "|---|---|---|---|"]
	lines += [f"| `-e {events}` | {n['rows_per_window']:.0f} | {n['rows_bytes_per_day'] / 1e6:.1f} MB | {n['names_bytes'] / 1e3:.0f} KB after {n['seconds']} s |"
		  for events, n in nodes.items()]
	return {"reading": reading, "rolled": rolled, "sizes": sizes, "nodes": nodes}, lines


if __name__ == "__main__":
	arguments = [a for a in sys.argv[1:] if a != "--quick"]
	where = os.path.abspath(arguments[0] if arguments else "build")
	figures, text = measure_store(where, where, "--quick" in sys.argv)
	print("\n".join(text))
	print(figures)
