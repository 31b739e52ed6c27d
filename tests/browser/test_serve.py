"""gasflame serve in a browser: the same page, and what was left out of it comes when it is zoomed into."""
import os
import re
import shutil
import subprocess

import capture
from page import Wrong, equal, holds, main_path, near


class Server:
	"""Ends with the block that it is used in."""

	def __init__(self, p, *arguments):
		self.process = subprocess.Popen([p.files.gasflame, "serve", *arguments],
				stdout=subprocess.PIPE,
						stderr=subprocess.PIPE, text=True)
		self.url = self.process.stdout.readline().strip()
		if not self.url and "built without" in self.process.stderr.read():
			raise Skip

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.process.terminate()
		if self.process.wait(10):
			raise Wrong("gasflame serve did not end well")


class Skip(Exception):
	pass


def served(function):
	def run(p):
		try:
			return function(p)
		except Skip:
			return "skip: built without libmicrohttpd"
	run.__name__ = function.__name__
	run.main_path = getattr(function, "main_path", False)
	return run


def open_url(p, url):
	p.b.open(url)
	p.b.wait("window.G && G.ready")
	p.b.settle()


@served
@main_path
def test_the_same_page(p):
	"""The figures of a page from a file, over HTTP; several captures side by side."""
	with Server(p, p.files.capture("node"), p.files.capture("one")) as s:
		p.b.open(s.url)
		rows = p.eval("[...document.querySelectorAll('tr')].map(r => r.innerText)")
		equal(len(rows), 3, "rows of the list")
		holds("op-node" in rows[1] and "10.0 s" in rows[1], rows)
		p.b.click_on('a[href="0/"]')
		p.b.wait("window.G && G.ready")
		p.b.settle()
		equal(p.total(), p.files.report("node")["total"])
		p.click("execute_block")
		near(p.box("execute_block")["w"], p.eval("document.querySelector('#flame canvas').clientWidth"), 0.001, "zoom")
		open_url(p, s.url + "1/")
		equal(p.total(), 1001001, "the other one")


def subtree(p, *path):
	"""How many nodes there are below a path, how many places are left out there, and the weight of all."""
	return p.eval(f"""(() => {{ const d = G.data, t = d.tree, w = G.model.weights(G.state.now); let n = 0;
		for (const name of {list(path)}) {{
			let c = n + 1, end = n + t.size[n];
			while (c < end && d.idents.name[t.ident[c]] !== name) c += t.size[c];
			if (c >= end) return null;
			n = c;
		}}
		let out = 0;
		for (let i = n; i < n + t.size[n]; i++) out += d.idents.note[t.ident[i]] === G.LEFT_OUT;
		return [t.size[n], out, w.total[n]]; }})()""")


@served
@main_path
def test_what_was_left_out_comes(p):
	with Server(p, p.files.capture("wide")) as s:
		open_url(p, s.url)
		paths = [("worker-1",), ("worker-3", "main", "service_2"), ("worker-3", "main", "service_5"),
				()]
		whole = {path: subtree(p, *path) for path in paths}
		equal(whole[()][1], 0, "places that are left out where there is room")
	with Server(p, "--max-size", "60K", p.files.capture("wide")) as s:
		open_url(p, s.url)
		first = subtree(p)
		holds(first[0] < whole[()][0] / 2 and first[1] > 0, f"{first} of {whole[()]}")
		equal(first[2], whole[()][2], "what is left out still counts")
		holds("left out" in p.text("#verdict"), p.text("#verdict"))
		nodes = p.eval("G.data.meta.leftOut.nodes")
		for path in (("worker-3", "main", "service_5"), ("worker-3", "main", "service_2")):
			before = subtree(p, *path)
			holds(before[1] > 0, f"nothing is left out at {path}")
			p.set(zoom=list(path))
			p.b.wait("!G.test.fetching", 30)
			p.b.settle()
			equal(subtree(p, *path), whole[path], f"below {path}")
			equal(subtree(p)[2], whole[()][2], "the whole weighs the same")
			holds(p.eval("G.data.meta.leftOut.nodes") < nodes, "less is left out")
			nodes = p.eval("G.data.meta.leftOut.nodes")
		boxes = {b["name"] for b in p.boxes()}
		holds("handler_2_2" in boxes, "the picture has it")
		p.set(zoom=[], range=[1_000_000_000, 2_000_000_000])
		near(p.total(), p.files.report("wide", "--from", "1", "--to", "2")["total"], 0.01,
				"the brush fits what came")
		p.set(range=None, search="leaf_5")
		holds(re.match(r"[\d.]+", p.text("#matched")), p.text("#matched"))


@served
def test_a_click_on_what_was_left_out(p):
	with Server(p, "--max-size", "60K", p.files.capture("wide")) as s:
		open_url(p, s.url + "#threads=[%22worker-1%22]")
		box = max((b for b in p.boxes() if b["name"] == "[left out]" and b["n"] == 1),
				key=lambda b: b["w"])
		p.b.click(box["x"] + box["w"] / 2, box["y"] + box["h"] / 2)
		p.b.wait("!G.test.fetching", 30)
		p.b.settle()
		path = p.state("zoom")
		path = path[:-1] if path[-1] == "[left out]" else path
		equal(subtree(p, *path)[1], 0, f"places that are left out below {path}")
		near(p.box(path[-1])["w"], p.eval("document.querySelector('#flame canvas').clientWidth"), 0.001, "what is zoomed")


@served
def test_a_capture_that_was_replaced(p):
	path = os.path.join(p.files.folder, "moving.gasflame")
	shutil.copy(p.files.capture("wide"), path)
	with Server(p, "--max-size", "60K", path) as s:
		open_url(p, s.url)
		os.unlink(path)
		capture.one(path)
		# Another window sees the new one.
		p.b.eval(f"fetch({s.url!r}).then(r => r.text()).then(t => fetch({s.url!r} + /data-url=\"([^\"]+)/.exec(t)[1]))"
				".then(r => r.arrayBuffer()).then(() => 1)")
		p.set(zoom=["worker-3", "main", "service_5"])
		p.b.wait("document.querySelector('#status').textContent.includes('reload')", 5)
		p.b.errors() # the answer 410 is told on the console
		open_url(p, s.url)
		equal(p.total(), 1001001, "after a reload")


@served
def test_a_long_recording_has_a_first_picture(p):
	"""Then the page opens itself again, with all of it, and shows what it showed."""
	path = os.path.join(p.files.folder, "long.gasflame")
	shutil.copy(p.files.capture("wide"), path)
	os.truncate(path, 16 << 20) # pages that nothing refers to
	with Server(p, path) as s:
		p.b.open(s.url + "#search=leaf_5")
		p.b.wait("window.G && G.ready && G.data.samples && !document.querySelector('#data').dataset.first", 30)
		p.b.settle()
		total = p.files.report("wide")["total"]
		equal(p.total(), total)
		equal(p.state("search"), "leaf_5", "the search, after all of it came")
		first = p.b.eval("""fetch(document.querySelector('#data').dataset.url.replace('data', 'first')).then(r => r.arrayBuffer())
			.then(b => G.decode(new Uint8Array(b))).then(d => [d.samples, d.entries.value.reduce((a, b) => a + b), d.tree.n,
				d.idents.name.includes('[left out]'), d.meta.warnings.length])""")
		equal(first[:2], [None, total], "times, and the sum, of the first picture")
		holds(100 < first[2] < p.eval("G.data.tree.n") and first[3] and first[4] == 1, first)


@served
def test_two_of_the_list_are_compared(p):
	with Server(p, p.files.capture("node"), p.files.capture("slower")) as s:
		p.b.open(s.url)
		p.b.click_on("button")
		p.b.wait("window.G && G.ready")
		p.b.settle()
		holds("/0-1/" in p.b.eval("location.href"), p.b.eval("location.href"))
		equal(p.eval("[G.data.meta.sides, G.data.diff.rows.length > 3]"), [2, True], "what is compared")
		p.b.click_on("#back")
		p.b.wait("document.querySelector('button') && !window.G")
		equal(p.b.eval("location.href"), s.url, "the way back")
