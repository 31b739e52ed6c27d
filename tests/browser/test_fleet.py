"""The nodes of a store over time, in a browser, with a real ClickHouse: what a cell says is what the store says, and a click leads there."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import browser
from page import Wrong, equal, holds, near
from test_serve import Server, served

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE = os.path.join(HERE, "..", "system", "fleet", "makecapture.py")
SECONDS, SLOT = 600, 600
BEGIN = 1790000400 # a multiple of the slot
HOSTILE = "../<img src=x onerror=alert(1)>'\"; drop\x1b[31m"
NODES = {"alpha": BEGIN, HOSTILE: BEGIN + SLOT, "beta*": BEGIN + 2 * SLOT}


def program():
	return shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Store:
	"""One server with a few nodes; started once, ended with its browser test's folder."""
	there = None

	def __init__(self, p):
		self.folder = os.path.join(p.files.folder, "store")
		self.ports = []
		for _ in range(2):
			with socket.socket() as s:
				s.bind(("127.0.0.1", 0))
				self.ports.append(s.getsockname()[1])
		for name in "data", "tmp", "files":
			os.makedirs(os.path.join(self.folder, name))
		self.put("config.xml", f"""<yandex><logger><level>warning</level><console>1</console></logger><http_port>{self.ports[0]}</http_port>
			<tcp_port>{self.ports[1]}</tcp_port><listen_host>127.0.0.1</listen_host><path>{self.folder}/data/</path>
			<tmp_path>{self.folder}/tmp/</tmp_path><user_files_path>{self.folder}/files/</user_files_path><users_config>users.xml</users_config>
			<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>67108864</mark_cache_size></yandex>""")
		self.put("users.xml", """<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles><users><default>
			<password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
			<quotas><default/></quotas></yandex>""")
		with open(os.path.join(self.folder, "log"), "wb") as log:
			self.process = subprocess.Popen([program(), "--config-file=" + os.path.join(self.folder, "config.xml")], stdout=log, stderr=log,
					preexec_fn=browser.die_with_parent)
		self.url = f"clickhouse://127.0.0.1:{self.ports[0]}/gasflame"
		self.wait()
		p.files.run("store", "init", self.url)
		for seed, (name, start) in enumerate(NODES.items()):
			path = os.path.join(p.files.folder, f"node{seed}.gasflame")
			subprocess.run([sys.executable, MAKE, p.files.gasflame, path, str(start), str(SECONDS), str(seed)], check=True)
			p.files.run("store", "push", "--target", name, "--release", f"v1.{seed}", "--label", "region=<b>eu", self.url, path)

	def put(self, name, text):
		with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
			f.write(text)

	def wait(self):
		for _ in range(200):
			try:
				return self.ask("select 1")
			except OSError:
				if self.process.poll() is not None:
					raise Wrong("clickhouse-server does not start") from None
				time.sleep(.1)
		raise Wrong("clickhouse-server does not answer")

	def ask(self, sql):
		request = urllib.request.Request(f"http://127.0.0.1:{self.ports[0]}/?database=" + ("default" if sql == "select 1" else "gasflame"), sql.encode())
		with urllib.request.urlopen(request, timeout=20) as answer:
			return answer.read().decode().strip()

	def number(self, sql, target):
		return float(self.ask(sql % ("target = '" + target.replace("\\", "\\\\").replace("'", "\\'") + "'")))


def with_store(function):
	def run(p):
		if p.b.name != "chromium" or not program():
			return "skip: clickhouse-server is not installed" if not program() else "skip: Chromium only"
		if not Store.there or not os.path.exists(Store.there.folder):
			Store.there = Store(p)
		return function(p, Store.there)
	run.__name__ = function.__name__
	return served(run)


def open_fleet(p, s, figure, **more):
	p.b.open(s.url.split("#")[0] + "#" + urllib.parse.urlencode({"figure": figure, "from": BEGIN - 43200, "to": BEGIN + 43200, **more}))
	p.b.wait("window.G && G.fleet && G.fleet.ready && !G.fleet.state.data.waiting && (G.fleet.state.data.map || G.fleet.state.data.error)")
	p.b.settle()


def value(p, target, at):
	"""What the page has for a node and a time."""
	return p.eval(f"""(() => {{ const m = G.fleet.state.data.map, n = m.nodes.find(n => n.target === {json.dumps(target)});
		return n.values[Math.floor(({at} * 1e3 - m.from_ms) / m.slot_ms)]; }})()""")


def cell(p, target, at):
	return p.eval(f"(() => {{ const m = G.fleet.state.data.map; return G.fleet.map.rectOf({json.dumps(target)}, Math.floor(({at} * 1e3 - m.from_ms) / m.slot_ms)); }})()")


def page_of(p):
	p.b.wait("window.G && G.ready && G.data")
	p.b.settle()


@with_store
def test_a_cell_is_what_the_store_says(p, store):
	by_hand = {
		"cpu": f"select (select sum(value) from samples where event = 'cpu' and %s) / {SECONDS}e9",
		"block-p95": "select quantileExact(0.95)(end_ns - begin_ns) from blocks where kind = 'block' and end_ns > begin_ns and %s",
		"block-max": "select max(end_ns - begin_ns) from blocks where kind = 'block' and %s",
	}
	with Server(p, "--store", store.url) as s:
		for figure, sql in by_hand.items():
			open_fleet(p, s, figure)
			shown = p.eval("G.fleet.state.data.map.nodes.map(n => n.target)")
			equal(sorted(shown), sorted(NODES), "nodes")
			for name, start in NODES.items():
				near(value(p, name, start), store.number(sql, name), 1e-5, f"{figure} of {name}")
				equal(value(p, name, start + SLOT), None, "a time without a recording")
		open_fleet(p, s, "cause")
		holds("on CPU" in p.text("#bar select"), "the causes that there are: " + p.text("#bar select"))
		equal(len(p.eval("G.fleet.state.data.map.nodes")), 3, "a map of the first of them")
		open_fleet(p, s, "function", name="execute_block")
		share = store.number("select sum(if(stack in (select stack from stacks array join frames as frame where frame in (select frame from frames "
				"where has(names, 'execute_block'))), value, 0)) / sum(value) from samples where event = 'cpu' and %s", "alpha")
		near(value(p, "alpha", BEGIN), share, 1e-5, "share of a function")
		# What strangers wrote is text, in the tip, the table and the choices.
		at = cell(p, HOSTILE, BEGIN + SLOT)
		p.b.move(at["x"], at["y"])
		p.b.settle()
		holds(HOSTILE in p.text("#tip") and "region=<b>eu" in p.text("#tip") and "%" in p.text("#tip"), p.text("#tip"))
		p.b.key("t")
		p.b.settle()
		holds(HOSTILE in p.text(".nodes table"), "the table has its name")
		equal(p.eval("document.querySelectorAll('img, main b b').length"), 0, "elements made of names")


@with_store
def test_a_click_opens_that_node_and_time(p, store):
	def weight(*options):
		return json.loads(p.files.run("report", "--json", "--store", store.url, *options, wanted=(0, 3)))["total"]
	with Server(p, "--store", store.url) as s:
		for name, start in list(NODES.items())[1:]:
			open_fleet(p, s, "cpu")
			at = cell(p, name, start)
			p.b.click(at["x"], at["y"])
			page_of(p)
			title = p.text("#title")
			holds(name.split("\x1b")[0] in title and "600 s from " + time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start)) in title, title)
			if "*" not in name:
				p.eval("G.state.set({ what: 'cpu' })")
				near(p.total(), weight("--what", "cpu", "--target", name, "--from", str(start), "--to", str(start + SLOT)), 1e-9, "CPU time of " + name)
		# By keys alone, and the way back shows what was shown.
		open_fleet(p, s, "block-max", sort="most")
		p.eval("document.querySelector('.map').focus()")
		for key in ("ArrowDown", "Home", "ArrowRight"):
			p.b.key(key)
		p.b.settle()
		first = p.eval("G.fleet.map.chosen")
		holds(first["target"] in p.text("#cell"), "a screen reader hears the cell: " + p.text("#cell"))
		p.b.click_on("#bar button[title^='the same as a table']")
		p.b.click_on("#bar button[title^='the same as a table']")
		at = cell(p, "alpha", BEGIN)
		p.b.click(at["x"], at["y"], modifiers=("shift",))
		at = cell(p, HOSTILE, BEGIN + SLOT)
		p.b.click(at["x"], at["y"], modifiers=("shift",))
		p.b.settle()
		holds("Compare A with B" in p.status(), p.status())
		p.b.key("d")
		page_of(p)
		holds(p.eval("G.hasTwo(G.state.now)"), "two sides are compared")
		p.b.click_on("#back")
		p.b.wait("window.G && G.fleet && G.fleet.state.data.map")
		equal(p.eval("G.fleet.state.now.figure + G.fleet.state.now.sort"), "block-maxmost", "what was shown before")


@with_store
def test_a_store_that_is_slow_or_away(p, store):
	with Server(p, "--store", store.url + "?timeout=2s") as s:
		open_fleet(p, s, "cpu")
		os.kill(store.process.pid, signal.SIGSTOP)
		try:
			p.b.key("r")
			p.b.wait("G.fleet.state.data.waiting")
			p.b.key("Escape")
			p.b.wait("!G.fleet.state.data.waiting")
			holds("ended" in p.status(), p.status())
			holds(p.eval("!document.querySelector('.map').hidden"), "the map stays")
			p.b.key("r")
			p.b.wait("G.fleet.state.data.error")
			holds("Try again" in p.text("main .empty"), p.text("main .empty"))
		finally:
			os.kill(store.process.pid, signal.SIGCONT)
		store.wait()
		p.b.errors() # the answer 502 is told on the console
		p.b.click_on("main .empty button")
		p.b.wait("G.fleet.state.data.map && !G.fleet.state.data.error")
		# What makes no sense is refused in a sentence.
		base = s.url.split("#")[0]
		for path, status, words in (("map?figure=cpu&from=2000000000&to=1900000000", 400, "ends before"), ("map?figure=none", 400, "no figure"),
				("open?target=alpha&from=5&to=4", 400, "ends before"), ("open?from=4", 400, "no target"), ("map?from='%3Cb%3E", 400, "no time"),
				("map?figure=cpu&slot=7", 400, "slot"), ("what", 404, "nothing")):
			try:
				urllib.request.urlopen(base + path, timeout=20)
				raise Wrong(path + " is answered")
			except urllib.error.HTTPError as e:
				equal(e.code, status, path)
				text = e.read().decode()
				holds(words in text, path + ": " + text)
	store.process.terminate()
	store.process.wait(20)
	Store.there = None
	shutil.rmtree(store.folder)
