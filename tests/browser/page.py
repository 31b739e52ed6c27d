"""page.py - a page of gasflame in a browser, for the tests: what is where on it, and what the C side says of the same."""
import json
import os
import subprocess

import browser
import capture


class Wrong(AssertionError):
	"""A check that failed."""


def main_path(function):
	"""A test that runs in Firefox too."""
	function.main_path = True
	return function


def equal(got, wanted, what=""):
	if got != wanted:
		raise Wrong(f"{what or 'it'} is {short(got)}, not {short(wanted)}")


def near(got, wanted, share, what=""):
	"""Within a share of what is wanted."""
	if got is None or abs(got - wanted) > abs(wanted) * share + 1e-9:
		raise Wrong(f"{what or 'it'} is {got}, not within {share:.2%} of {wanted}")


def holds(fine, what):
	if not fine:
		raise Wrong(what)


def short(value):
	text = repr(value)
	return text if len(text) < 300 else text[:300] + "…"


class Files:
	"""Captures and their pages, made when they are first wanted."""

	def __init__(self, gasflame, folder):
		self.gasflame, self.folder = gasflame, folder
		self.made = set()

	def capture(self, name):
		path = os.path.join(self.folder, name + ".gasflame")
		if name not in self.made:
			self.made.add(name)
			if name == "slower":
				capture.node(path, slower=1.5, seed=2)
			else:
				getattr(capture, name)(path)
		return path

	def html(self, name, *options):
		path = os.path.join(self.folder, "-".join([name, *options]).replace("/", "_").replace(" ",
				"_") + ".html")
		if not os.path.exists(path):
			self.run("report", "--format", "html", "-o", path, *options, self.capture(name),
					wanted=(0, 3))
		return path

	def run(self, *arguments, wanted=(0,)):
		r = subprocess.run([self.gasflame, *arguments], capture_output=True, text=True, timeout=60,
				errors="replace")
		if r.returncode not in wanted:
			raise Wrong(f"gasflame {' '.join(arguments)} ended with {r.returncode}: {r.stderr[-300:]}")
		return r.stdout

	def report(self, name, *options):
		"""What gasflame report --format json says."""
		return json.loads(self.run("report", "--format", "json", "-n", "0", *options,
				self.capture(name), wanted=(0, 3)))

	def folded(self, name, *options):
		return parse_folded(self.run("report", "--format", "folded", *options, self.capture(name),
				wanted=(0, 3)))


def parse_folded(text):
	out = {}
	for line in text.splitlines():
		stack, _, weight = line.rpartition(" ")
		out[stack] = out.get(stack, 0) + float(weight)
	return out


class Page:
	def __init__(self, b, files):
		self.b, self.files = b, files
		self.name = None

	def open(self, name="node", fragment="", options=()):
		self.name = name
		self.url = "file://" + self.files.html(name, *options)
		self.b.open(self.url + ("#" + fragment if fragment else ""))
		self.b.wait("window.G && G.ready")
		self.b.settle()
		return self

	# --- reading ---

	def eval(self, js):
		return self.b.eval(js)

	def state(self, key=None):
		s = self.b.eval("G.state.now")
		return s[key] if key else s

	def boxes(self):
		return self.b.eval("G.test.boxes()")

	def names(self):
		return {x["name"] for x in self.boxes() if x["n"] == 1}

	def box(self, name, depth=None):
		"""The widest box of that name."""
		found = [x for x in self.boxes() if x["name"] == name and x["n"] == 1 and depth in (None,
				x["depth"])]
		if not found:
			raise Wrong(f"there is no box {short(name)}")
		return max(found, key=lambda x: x["w"])

	def has(self, name):
		return name in self.names()

	def total(self):
		return self.b.eval("G.model.weights(G.state.now).all")

	def text(self, selector):
		return self.b.eval(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent")

	def status(self):
		return self.text("#status")

	def pixel(self, x, y):
		"""The colour of the flame graph's canvas at a place of the window, as [r, g, b]."""
		return self.b.eval(f"""(() => {{ const c = document.querySelector("#flame canvas"), r = c.getBoundingClientRect(),
			k = c.width / r.width;
			return [...c.getContext("2d").getImageData(({x} - r.left) * k, ({y} - r.top) * k, 1, 1).data].slice(0, 3); }})()""")

	# --- doing ---

	def set(self, **patch):
		self.b.eval(f"G.state.set({json.dumps(patch)})")
		self.b.settle()

	def key(self, name, *modifiers):
		self.b.key(name, *modifiers)
		self.b.settle()

	def at(self, name, depth=None):
		x = self.box(name, depth)
		return x["x"] + min(x["w"] / 2, 8), x["y"] + x["h"] / 2

	def click(self, name, depth=None):
		self.b.click(*self.at(name, depth))
		self.b.settle()

	def hover(self, name, depth=None):
		self.b.move(*self.at(name, depth))
		self.b.settle()

	def menu(self, name, words):
		"""Right click on a box, then on what the menu says."""
		self.b.rightclick(*self.at(name))
		self.b.settle()
		self.press(".menu button", words)

	def press(self, selector, words):
		"""A click on the first visible element of those whose text begins so."""
		place = self.b.eval(f"""(() => {{ for (const e of document.querySelectorAll({json.dumps(selector)})) {{
			if (!e.offsetWidth || !e.textContent.trim().startsWith({json.dumps(words)}))
				continue;
			e.scrollIntoView({{ block: "nearest" }});
			const r = e.getBoundingClientRect();
			return [r.left + r.width / 2, r.top + r.height / 2]; }} }})()""")
		if not place:
			raise Wrong(f"no {selector} says {words!r}")
		self.b.click(*place)
		self.b.settle()

	def search(self, text):
		self.b.key("/")
		self.b.type(text)
		self.b.key("Enter")
		self.b.settle()

	def no_errors(self):
		problems = self.b.errors()
		if problems:
			raise Wrong("the page had errors: " + short(problems))
