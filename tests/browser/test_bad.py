"""Bad input: hostile names, nothing, next to nothing, very deep, damaged."""
import os
import re

import capture
from page import equal, holds, main_path


def visit_everything(p):
	"""Every view, tool and menu, so that each name is shown wherever it can be."""
	for key in ("v", "a", "ArrowDown", "ArrowDown", "t", "s", "b", "i", "i", "g", "g", "k", "k", "k", "k", "m", "m", "?", "Escape"):
		p.key(key)
	p.b.move(640, 400)
	for x in (3, 200, 640, 1000):
		p.b.move(x, 330)
		p.b.settle()
	p.b.click_on("#filters")
	p.b.settle()
	p.key("Escape")


@main_path
def test_hostile_names_do_not_run(p):
	p.open("hostile")
	names = capture.hostile(os.path.join(p.files.folder, "again.gasflame"))
	visit_everything(p)
	for b in p.boxes():
		if b["depth"] in (1, 3) and b["n"] == 1 and b["w"] > 3:
			p.b.move(b["x"] + b["w"] / 2, b["y"] + 8)
	p.b.rightclick(*p.at("leaf"))
	p.b.settle()
	p.key("Escape")
	equal(p.eval("typeof window.pwned"), "undefined", "what a name ran")
	equal(p.eval("document.querySelectorAll('img, iframe, object, embed, b > script').length"), 0,
			"elements made of names")
	scripts = p.eval("document.querySelectorAll('script').length")
	shown = p.names()
	p.open("one")
	equal(scripts, p.eval("document.querySelectorAll('script').length"), "scripts of the page")
	for name in names:
		if name.isprintable() and name.isascii() and name:
			holds(name in shown or len(name) > 1000, f"{name!r} is not shown as it is")
	with open(p.files.html("hostile"), "rb") as f:
		text = f.read()
	with open(p.files.html("one"), "rb") as f:
		equal(text.count(b"</script"), f.read().count(b"</script"), "ends of script elements")
	holds(b"pwned" not in text, "a name stands in the page as text")


def test_the_shell_is_small(p):
	"""What a page weighs without its data: at most 100 KB."""
	with open(p.files.html("one"), encoding="utf-8") as f:
		text = f.read()
	shell = len(re.sub(r'(id="data">)[^<]*', r"\1", text).encode())
	holds(shell <= 100_000, f"the shell has {shell} bytes, {shell - 100_000} more than 100 KB")


def test_hostile_names_by_the_state(p):
	for name in ("<img src=x onerror=window.pwned=1>", "__proto__", "constructor", "toString",
			"</script><script>window.pwned=1</script>"):
		p.open("hostile")
		for patch in ({"focus": name}, {"focus": None, "hidden": [name]}, {"hidden": [],
				"merged": [name]},
			      {"merged": [], "view": "sandwich", "fn": name}, {"view": "flame",
			      "search": name, "fn": None}, {"threads": [name]}):
			p.set(**patch)
		equal(p.eval("typeof window.pwned"), "undefined")
		equal(p.eval("document.querySelectorAll('img').length"), 0)
		p.no_errors()


def test_nothing_from_elsewhere(p):
	"""The page may load nothing, and has nothing to load."""
	p.open()
	policy = p.eval("document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
	holds("default-src 'none'" in policy and "connect-src 'none'" in policy, policy)
	blocked = p.eval("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')")
	equal(blocked, "refused")
	equal(p.eval("performance.getEntriesByType('resource').map(r => r.name)"), [], "what it loaded")
	p.b.errors() # the refusal is told on the console


@main_path
def test_empty(p):
	p.open("empty")
	text = p.eval("document.querySelector('#main').innerText")
	holds("no samples" in text, f"a sentence: {text!r}")
	for key in ("v", "t", "s", "b", "i", "g", "ArrowDown", "Enter", "n", "e", "z"):
		p.key(key)
	p.b.click(640, 300)
	p.no_errors()


@main_path
def test_one_sample(p):
	p.open("one")
	equal(p.total(), 1001001)
	equal([b["name"] for b in p.boxes()], ["all", "main", "main", "only"])
	visit_everything(p)
	equal(p.total(), 1001001)


@main_path
def test_4000_frames_deep(p):
	p.open("deep")
	boxes = p.boxes()
	equal(max(b["depth"] for b in boxes), 4001, "the deepest")
	equal(sum(b["total"] for b in boxes if b["name"] == "f3999"), 75 * 1001001)
	p.search("f3999")
	holds("75" in p.text("#matched"), p.text("#matched"))
	equal(p.eval("G.test.selected()"), "f3999")
	box = p.box("f3999")
	holds(0 <= box["y"] <= 800, f"it is scrolled to: {box}")
	p.b.click(box["x"] + box["w"] / 2, box["y"] + 8)
	p.b.settle()
	equal(len(p.state("zoom")), 4001)
	holds(p.eval("location.href.length") < 100_000, "the link is of some use")
	p.key("Escape")
	p.key("i")
	holds(p.has("f3998"), "inverted")
	p.key("i")
	p.key("v")
	p.key("t")
	p.key("s")
	p.no_errors()


def test_filters_that_leave_nothing(p):
	p.open()
	for patch, words in (({"threads": ["no such thread"]}, "thread"), ({"threads": None,
			"range": [9_999_000_000, 9_999_100_000]}, "range"),
			     ({"range": None, "focus": "no such function"}, "no such function"),
			     ({"focus": None, "hidden": ["_start"]}, "hidden")):
		p.set(**patch)
		text = p.eval("document.querySelector('#main').innerText")
		if p.total() == 0:
			holds(words in text, f"{patch}: {text!r}")
			holds(p.eval("document.querySelectorAll('#main .empty button').length") >= 1,
					"a way out")
	p.set(hidden=[], focus=None, threads=["no such thread"])
	p.press("#main .empty button", "show all")
	equal(p.total(), p.files.report("node")["total"], "the way out leads out")


def test_a_damaged_page_says_so(p):
	with open(p.files.html("node"), encoding="utf-8") as f:
		text = f.read()
	at = text.index('id="data">') + 200
	path = os.path.join(p.files.folder, "damaged.html")
	with open(path, "w", encoding="utf-8") as f:
		f.write(text[:at] + "AAAA" * 50 + text[at + 200:])
	p.b.open("file://" + path)
	p.b.wait("document.querySelector('#main').innerText.includes('cannot')", 5)
	holds("gasflame report" in p.eval("document.querySelector('#main').innerText"), "what to do")
	p.b.errors()
