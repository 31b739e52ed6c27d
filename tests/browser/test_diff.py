"""The page of two recordings: in the second one function takes half as much again, one is new, one is gone."""
import json
import os
import subprocess

import capture
from page import equal, holds, main_path, near
from test_flame import swatches
from test_views import rows


def opened(p, fragment=""):
	path = os.path.join(p.files.folder, "diff.html")
	if not os.path.exists(path):
		r = subprocess.run([p.files.gasflame, "diff", "--format", "html", "-o", path,
				p.files.capture("node"), p.files.capture("slower")],
				   capture_output=True, text=True, timeout=60)
		holds(r.returncode == 0, f"gasflame diff: {r.stderr}")
	p.b.open("file://" + path + ("#" + fragment if fragment else ""))
	p.b.wait("window.G && G.ready")
	p.b.settle()


def compared(p):
	return json.loads(p.files.run("diff", "--format", "json", "-n", "0", p.files.capture("node"),
			p.files.capture("slower")))


def of_two(function):
	def run(p):
		opened(p)
		return function(p)
	run.__name__, run.main_path = function.__name__, getattr(function, "main_path", False)
	return run


@of_two
@main_path
def test_both_sides_are_there(p):
	w = p.eval("(() => { const w = G.model.weights(G.state.now); return [w.all, w.allB]; })()")
	equal(w, [p.files.report("node")["total"], p.files.report("slower")["total"]], "before and after")
	box = p.box("keccak::f1600")
	holds(box["totalB"] > box["total"], box)
	for name, gone in (("rpc::eth_get_logs", True), ("rpc::eth_get_proof", False)):
		b = p.box(name)
		equal((b["total"] > 0, b["totalB"] > 0), (gone, not gone), name)


@of_two
def test_colours(p):
	"""Red more, blue less, as strong as it is sure."""
	def at(name):
		b = p.box(name)
		return p.pixel(b["x"] + b["w"] - 4, b["y"] + 3)

	more, same, less = at("keccak::f1600"), at("malloc"), at("rpc::eth_get_logs")
	holds(more[0] > more[2] + 60, f"more is {more}")
	holds(max(same) - min(same) < 30, f"the same is {same}")
	holds(less[2] > less[0] + 60, f"less is {less}")
	legend = swatches(p)
	holds(any("less" in k for k in legend) and any("more" in k for k in legend), legend)


@of_two
@main_path
def test_table_of_changes(p):
	p.key("d")
	report = compared(p)
	shown = p.eval("G.data.diff.rows.map(r => [G.data.idents.name[r.ident], r.self, r.total, r.onlyA, r.onlyB])")
	wanted = {f["name"]: f for f in report["functions"]}
	equal(sorted({r[0] for r in shown}), sorted(wanted), "functions")
	for name, self_, total, gone, new in shown:
		for mine, theirs in ((self_, wanted[name]["self"]), (total, wanted[name]["total"])):
			if name == "_start":
				continue # two modules have one
			for a, b in (("a", "before"), ("b", "after"), ("delta", "delta")):
				near(mine[a], theirs[b], 1e-6, f"{b} of {name}")
			equal(mine["significant"], theirs["significant"], f"significance of {name}")
		equal((gone, new), (wanted[name]["gone"], wanted[name]["new"]), f"vanished or new: {name}")
	first = rows(p)[0]
	holds("keccak::f1600" in first, f"the largest change comes first: {first}")
	text = p.eval("document.querySelector('.view:not([hidden])').innerText")
	holds("gone" in text and "new" in text, "vanished and new ones are marked")
	bars = p.eval("""[...document.querySelectorAll('.view:not([hidden]) .bar.more, .view:not([hidden]) .bar.less')].map(b => {
		const r = b.getBoundingClientRect(), c = b.parentNode.getBoundingClientRect();
		return [b.className, (r.left - c.left) / c.width, (r.right - c.left) / c.width]; })""")
	holds(bars and all(abs((left if "more" in k else right) - 0.5) < 0.02 for k, left, right in bars), f"bars begin at the centre: {bars[:4]}")


@of_two
def test_significant_only_and_per_second(p):
	p.key("d")
	before = len(rows(p))
	p.key("q")
	shown = rows(p)
	holds(0 < len(shown) < before, f"{len(shown)} of {before}")
	significant = {f["name"] for f in compared(p)["functions"] if f["self"]["significant"]
			or f["total"]["significant"]}
	holds(all(any(n in cell for cell in r for n in significant) for r in shown), "only significant ones")
	p.key("q")
	shares = rows(p)[0]
	p.key("y")
	equal(p.state("normalized"), False)
	holds(rows(p)[0] != shares and any("/s" in c for c in rows(p)[0]), f"per second: {rows(p)[0]}")


@of_two
def test_width_of_boxes(p):
	widths = {}
	for side in ("both", "a", "b"):
		p.set(side=side)
		box, root = p.box("keccak::f1600"), p.box("all")
		widths[side] = sum(b["w"] for b in p.boxes() if b["name"] == "keccak::f1600") / root["w"]
		holds(box["w"] > 0, side)
	near(widths["a"], 2280 / 7200, 0.01, "before")
	near(widths["b"], 3420 / 8340, 0.01, "after")
	near(widths["both"], (2280 / 7200 + 3420 / 8340) / 2, 0.01, "both, as shares")


@of_two
def test_sandwich_and_table_of_two(p):
	p.key("t")
	holds(len(rows(p)) > 10, "the table")
	p.set(view="sandwich", fn="keccak::f1600")
	equal(p.eval("G.test.sandwich().fn"), "keccak::f1600")
	p.key("v")
	holds("after" in p.eval("document.querySelector('#view-overview').innerText"), "the overview")


@of_two
@main_path
def test_header_says_what_changed(p):
	report, header = compared(p), p.eval("document.querySelector('#verdict').innerText")
	wanted = report["verdict"][:1].upper() + report["verdict"][1:]
	holds(wanted.replace("`", "") in header, f"the verdict of the comparison: {header}")
	equal(p.eval("G.data.diff.scale"), round(report["scale"], 9), "the scale")
	title = p.eval("document.querySelector('#title').innerText")
	holds(title.count("op-node") == 2 and "→" in title, f"both recordings: {title}")
	p.eval("document.querySelector('#verdict button.link').click()")
	equal(p.state("view"), "diff", "what the verdict leads to")


@of_two
def test_threads_of_both_sides(p):
	"""Threads of two recordings have their own numbers: those of both are shown."""
	path = os.path.join(p.files.folder, "diff-thread.html")
	p.files.run("diff", "--format", "html", "-o", path, "--thread", "engine", p.files.capture("node"),
			p.files.capture("slower"))
	p.b.open("file://" + path)
	p.b.wait("window.G && G.ready")
	w = p.eval("(() => { const w = G.model.weights(G.state.now); return [w.all, w.allB]; })()")
	equal(w, [p.files.report(n, "--thread", "engine")["total"] for n in ("node", "slower")],
			"before and after")


def test_what_is_noise_is_grey(p):
	"""Nothing changed, says the verdict: no thread and no function has a colour then."""
	again = os.path.join(p.files.folder, "node-again.gasflame")
	if not os.path.exists(again):
		capture.node(again, seed=7)
	path = os.path.join(p.files.folder, "diff-noise.html")
	p.files.run("diff", "--format", "html", "-o", path, p.files.capture("node"), again)
	p.b.open("file://" + path)
	p.b.wait("window.G && G.ready")
	p.b.settle()
	holds("Nothing changed" in p.eval("G.data.verdict[0].text"), p.eval("G.data.verdict[0].text"))
	for b in p.boxes():
		if b["n"] == 1 and b["w"] > 30 and b["depth"]:
			r, g, blue = p.pixel(b["x"] + b["w"] - 4, b["y"] + 3)
			holds(max(r, g, blue) - min(r, g, blue) < 16, f"{b['name']} is {r} {g} {blue}")
