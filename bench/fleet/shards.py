"""shards.py - Debian's clickhouse-server as the shards of a store, each in a folder of its own, for as long as they are used."""
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

CONFIG = """<yandex><logger><level>warning</level><console>1</console></logger><http_port>{port}</http_port>
<listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<user_files_path>{folder}/files/</user_files_path><users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>536870912</mark_cache_size></yandex>"""
USERS = """<yandex><profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles><users><default>
<password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default/></quotas></yandex>"""


class Shard:
	"""One server, and its database bench."""

	def __init__(self, folder):
		program = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")
		if not program:
			raise RuntimeError("there is no clickhouse-server: tools/deps.sh installs it")
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

	def wait(self):
		end = time.monotonic() + 60
		while True:
			try:
				self.ask("SELECT 1", "default")
				return
			except OSError as problem:
				if time.monotonic() > end or self.child.poll() is not None:
					raise RuntimeError(f"clickhouse-server does not answer: {problem}") from problem
				time.sleep(0.1)

	def end(self):
		self.child.kill()
		self.child.wait()

	def ask(self, sql, database="bench"):
		request = urllib.request.Request(f"http://127.0.0.1:{self.port}/?database={database}", data=sql.encode())
		try:
			with urllib.request.urlopen(request, timeout=600) as answer:
				return answer.read().decode().strip()
		except urllib.error.HTTPError as problem:
			raise RuntimeError(f"{problem.read().decode().strip()[:600]}\n{sql[:600]}") from problem


class Shards:
	"""with Shards(folder, 2) as store: store.url, store.ask(0, sql)."""

	def __init__(self, folder, count):
		self.list = [Shard(os.path.join(folder, f"shard{i}")) for i in range(count)]
		self.url = "clickhouse://" + ",".join(f"127.0.0.1:{s.port}" for s in self.list) + "/bench"

	def __enter__(self):
		try:
			for shard in self.list:
				shard.wait()
		except RuntimeError:
			self.__exit__()
			raise
		return self

	def __exit__(self, *_):
		for shard in self.list:
			shard.end()

	def ask(self, shard, sql, database="bench"):
		return self.list[shard].ask(sql, database)

	def ask_all(self, sql, database="bench"):
		return [shard.ask(sql, database) for shard in self.list]

	def merge(self):
		"""All parts of a day become one, so that no merge runs beside a measurement."""
		for shard in self.list:
			for table in shard.ask("SHOW TABLES").split():
				shard.ask(f"OPTIMIZE TABLE {table} FINAL")

	def sizes(self):
		"""Bytes on disk and rows by table, of all shards."""
		all_of = {}
		for text in self.ask_all("SELECT table, sum(bytes_on_disk), sum(rows) FROM system.parts WHERE active AND database = 'bench' GROUP BY table"):
			for line in text.splitlines():
				table, size, rows = line.split("\t")
				before = all_of.get(table, (0, 0))
				all_of[table] = (before[0] + int(size), before[1] + int(rows))
		return all_of
