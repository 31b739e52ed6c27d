"""The flame graph. The capture "node" is made by capture.py: its figures are known, and asked of the C side."""
import json
import os
import re

from page import equal, holds, main_path, near, parse_folded


def function_row(answer, name):
	return next(f for f in answer["functions"] if f["name"] == name)


@main_path
def test_first_picture_is_right(p):
	"""Every box's total is what the tables say, for each thing that was recorded."""
	p.open()
	report = p.files.report("node")
	equal(p.state("what"), report["event"])
	equal(p.total(), report["total"], "the whole")
	boxes = p.boxes()
	equal(boxes[0]["name"], "all")
	near(boxes[0]["w"], 1280, 0.02, "the root's width")
	for depth in range(1, 4):
		row = [b for b in boxes if b["depth"] == depth]
		holds(row and sum(b["w"] for b in row) <= boxes[0]["w"] + 1,
				f"row {depth} is wider than the root")
		for left, right in zip(row, row[1:]):
			holds(left["x"] + left["w"] <= right["x"] + 0.01, f"boxes of row {depth} overlap")
	near(p.box("execute_block")["w"] / boxes[0]["w"], 0.5083, 0.001, "share of execute_block")
	equal(p.box("execute_block")["total"], function_row(report, "execute_block")["total"])
	holds("op-node" in p.text("#title") and "7,200 samples" in p.text("#title"), p.text("#title"))


@main_path
def test_what_is_weighed(p):
	"""Keys 1 to 6 and the buttons; each weight is the C side's."""
	p.open()
	keys = p.eval("G.model.whats().map(w => w.key)")
	equal(sorted(keys), sorted(["wall", "wait", "queue", "cpu", "write", "minor-faults"]))
	equal(keys[:3], ["wall", "cpu", "wait"], "the first ones")
	p.set(asleep=True)
	for i, what in enumerate(keys):
		p.key(str(i + 1))
		equal(p.state("what"), what, f"key {i + 1}")
		equal(p.total(), p.files.report("node", "--what", what)["total"], what)
		equal(p.eval(f"document.querySelector('[data-what=\"{what}\"]').getAttribute('aria-pressed')"), "true", what)
	p.b.click_on('[data-what="wait"]')
	p.b.settle()
	equal(p.state("what"), "wait")


def test_what_the_command_line_says(p):
	"""Each --what is what the page shows first; read and written bytes together are io."""
	for name, whats in (("transfers", ("cpu", "io", "read", "write")), ("node", ("cpu", "wall", "queue", "fault", "io"))):
		for what in whats:
			report = p.files.report(name, "--what", what)
			p.open(name, options=("--what", what))
			equal(p.state("what"), report["event"], "--what " + what)
			equal(p.total(), report["total"], what)
	p.open("transfers")
	equal(p.eval("G.model.whats().map(w => w.key)"), ["cpu", "io", "write", "read"], "the order")


def test_all_functions_have_their_figures(p):
	"""The total of each function in the flame graph and the folded tree is that of the report, for three weights."""
	p.open()
	for what in ("cpu", "wait", "wall"):
		report = p.files.report("node", "--what", what)
		p.set(what=what, group="name", asleep=True)
		totals = p.eval("""(() => { const w = G.model.weights(G.state.now), t = G.data.tree, d = G.data, out = {};
			for (let i = 1; i < t.n; i++) {
				if (d.idents.note[t.ident[i]] === 1) continue;
				let p = t.parent[i], outer = true;
				for (; p; p = t.parent[p]) if (t.ident[p] === t.ident[i]) outer = false;
				const key = d.idents.name[t.ident[i]] + " in " + d.modules[d.idents.module[t.ident[i]]].replace(/.*\\//, "");
				out[key] = out[key] || [0, 0];
				out[key][0] += w.self[i];
				if (outer) out[key][1] += w.total[i];
			}
			return out; })()""")
		for f in report["functions"]:
			key = f["name"] + " in " + f["module"].rsplit("/", 1)[-1]
			holds(key in totals, f"{what}: {key} is not on the page")
			equal(totals[key], [f["self"], f["total"]], f"{what}: self and total of {key}")


@main_path
def test_zoom_back_and_reset(p):
	p.open()
	p.click("execute_block")
	near(p.box("execute_block")["w"], 1280, 0.02, "the zoomed box")
	equal(p.state("zoom")[-1], "execute_block")
	holds(not p.has("persist"), "what is beside it is gone")
	holds(p.has("main"), "what is above it stays")
	p.click("revm::instructions::keccak256")
	near(p.box("revm::instructions::keccak256")["w"], 1280, 0.02)
	p.key("Backspace")
	equal(p.state("zoom")[-1], "execute_block", "one step back")
	near(p.box("execute_block")["w"], 1280, 0.02, "it")
	near(p.box("revm::instructions::keccak256")["w"], 1280 * 22 / 61, 0.02, "its share of what is zoomed")
	p.key("Escape")
	equal(p.state("zoom"), [], "after Esc")
	holds(p.has("persist"), "all is there again")
	p.click("execute_block")
	p.b.click(*p.at("all", 0))
	p.b.settle()
	equal(p.state("zoom"), [], "after a click on the root")
	p.click("execute_block")
	p.key("z", "ctrl")
	equal(p.state("zoom"), [], "undo of a zoom")
	p.key("z", "ctrl", "shift")
	equal(p.state("zoom")[-1], "execute_block", "redo of it")


def test_keyboard_moves(p):
	p.open()
	p.key("ArrowDown")
	p.key("ArrowDown")
	p.key("ArrowDown")
	first = p.eval("G.test.selected()")
	equal(first, "_start")
	p.key("ArrowUp")
	equal(p.eval("G.test.selected()"), "engine")
	p.key("ArrowRight")
	equal(p.eval("G.test.selected()"), "persistence")
	p.key("ArrowLeft")
	equal(p.eval("G.test.selected()"), "engine")
	p.key("Enter")
	equal(p.state("zoom"), ["engine"])
	near(p.box("engine")["w"], 1280, 0.02)
	holds(p.status().startswith("engine"), p.status())


@main_path
def test_icicle_and_flame(p):
	p.open()
	icicle = p.state("icicle")
	for wanted in (icicle, not icicle):
		root, leaf = p.box("all"), p.box("execute_block")
		equal(root["y"] < leaf["y"], wanted, "the root is above its callees")
		p.key("g")
	equal(p.state("icicle"), icicle)
	p.press("#bar button", "icicle")
	equal(p.state("icicle"), not icicle)


@main_path
def test_invert(p):
	"""Leaves first: the first row is self by function, their callers below them."""
	p.open()
	p.key("i")
	report = p.files.report("node")
	row = {b["name"]: b["total"] for b in p.boxes() if b["depth"] == 1}
	wanted = {f["name"]: f["self"] for f in report["functions"] if f["self"]}
	equal(row, wanted, "the first row")
	holds(p.has("revm::instructions::keccak256") and p.has("trie::visit"), "callers of keccak::f1600")
	p.key("i")
	holds(p.has("engine"), "and back")


@main_path
def test_search_text(p):
	p.open()
	p.search("keccak")
	report, function = p.files.report("node"), p.files.report("node", "--function", "keccak")
	share = function["total"] / report["total"]
	said = p.text("#matched")
	m = re.match(r"([\d.]+)\s*%", said)
	holds(m, f"the share is not told: {said!r}")
	near(float(m.group(1)) / 100, share, 0.01, "share matched")
	box = p.box("keccak::f1600")
	match = p.eval("getComputedStyle(document.documentElement).getPropertyValue('--match').trim()")
	colour = p.pixel(box["x"] + box["w"] - 4, box["y"] + 3)
	equal("#%02x%02x%02x" % tuple(colour), match.lower(), "colour of a match")
	other = p.box("persist")
	holds("#%02x%02x%02x" % tuple(p.pixel(other["x"] + other["w"] - 4, other["y"] + 3)) != match.lower(),
			"others keep theirs")
	seen = set()
	for _ in range(4):
		seen.add((p.eval("G.test.selected()"),
				json.dumps(p.eval("document.querySelector('#status').textContent"))))
		p.key("n")
	holds(all("keccak" in (name or "") for name, _ in seen) and len(seen) > 1,
			f"n goes from match to match: {seen}")
	now = p.status()
	p.key("n")
	p.key("N")
	equal(p.status(), now, "N goes back")
	p.search("no such function")
	equal(p.text("#matched"), "no match")


def test_search_regex_and_case(p):
	p.open()
	p.search("^revm::.*(sload|keccak)")
	equal(p.text("#matched"), "no match", "as text")
	p.b.click_on("#regex")
	p.b.settle()
	report, function = p.files.report("node"), p.files.report("node", "--function",
			"^revm::.*(sload|keccak)")
	near(float(re.match(r"[\d.]+", p.text("#matched")).group(0)) / 100,
			function["total"] / report["total"], 0.01)
	p.search("((")
	holds("regex" in p.text("#matched"), p.text("#matched"))
	p.b.click_on("#regex")
	p.search("KECCAK")
	holds(p.text("#matched") != "no match", "case does not matter")
	p.key("i", "ctrl")
	equal(p.text("#matched"), "no match", "with Ctrl-I it does")
	p.key("f", "ctrl")
	equal(p.eval("document.activeElement.id"), "search", "Ctrl-F")
	p.key("Escape")
	p.key("F3")
	equal(p.eval("document.activeElement.id"), "search", "F3")


@main_path
def test_filter_by_thread(p):
	p.open()
	p.set(threads=["rpc"])
	equal(p.total(), p.files.report("node", "--thread", "rpc")["total"])
	p.set(threads=[5002])
	equal(p.total(), p.files.report("node", "--thread", "5002")["total"])
	p.key("Escape")
	p.set(threads=None)
	p.b.click_on("#filters")
	p.b.settle()
	p.press(".panel label", "persistence")
	equal(p.state("threads"), ["!persistence"], "a click on what is ticked takes that away")
	persistence = p.files.report("node", "--thread", "persistence")["total"]
	equal(p.total(), p.files.report("node")["total"] - persistence)
	p.press(".panel label", "persistence")
	equal(p.state("threads"), None, "and once more brings it back")
	p.press(".panel h2 button", "none")
	holds("of these threads" in p.text("#main"), "none of them: a sentence")
	p.press(".panel label", "persistence")
	equal(p.state("threads"), ["persistence"])
	equal(p.total(), persistence)
	p.press(".panel label", "rpc 5003")
	equal(p.state("threads"), ["persistence", 5003], "one of two threads that have the same name")
	equal(p.eval("[...document.querySelectorAll('.check')].find(e => e.textContent.startsWith('rpc (2)')).querySelector('input').indeterminate"),
			True, "their group is neither ticked nor not")
	p.press(".panel label", "rpc (2)")
	equal(p.state("threads"), ["persistence", "rpc"], "both of them")
	p.eval("[...document.querySelectorAll('.check')].find(e => e.textContent.startsWith('persistence')).querySelector('button').click(), 1")
	equal(p.state("threads"), ["persistence"], "only that one")
	p.key("Escape")
	p.press("#chips button", "persistence")
	equal(p.state("threads"), None, "the chip takes it away")
	p.menu("rpc", "only this thread")
	equal(p.state("threads"), ["rpc"])


def test_filter_by_process(p):
	p.open()
	p.key("x")
	p.press(".panel label", "4242")
	equal(p.state("processes"), [4343])
	equal(p.total(), p.files.report("node", "--process", "sidecar")["total"])


def test_filter_by_cause(p):
	p.open(fragment="what=wait")
	account = p.files.report("node")["account"]["total"]
	for cause in ("lock", "disk-write", "sleep"):
		p.set(causes=[cause])
		equal(p.total(), account[cause], cause)
	p.set(causes=None)
	p.key("x")
	p.press(".panel label", "lock")
	holds("lock" not in p.state("causes") and "disk-write" in p.state("causes"), "all that were shown, but that one")
	p.press(".panel label", "lock")
	equal(p.state("causes"), None, "as it was")
	p.key("Escape")
	p.press("#swatches button", "lock")
	equal(p.state("causes"), ["lock"], "a click on the legend")
	equal(p.total(), account["lock"])
	p.press("#swatches button", "lock")
	equal(p.state("causes"), None, "and once more")


def test_idle_waits(p):
	"""Idle waits are left out, and sleep where waits are weighed; the page says so."""
	p.open(fragment="what=wait")
	asleep = p.files.report("node")["account"]["total"]["sleep"]
	holds(asleep > 0, "some sleep")
	equal(p.total(), p.files.report("node", "--what", "wait")["total"] - asleep)
	p.press("#chips button", "without sleep")
	equal(p.total(), p.files.report("node", "--what", "wait")["total"])
	p.key("0")
	equal(p.total(), p.files.report("node", "--what", "wait", "--idle")["total"], "with idle ones")
	p.key("0")
	equal(p.total(), p.files.report("node", "--what", "wait")["total"])


def test_counts(p):
	p.open(fragment="what=wait&asleep=true")
	p.key("9")
	equal(p.total(), p.files.report("node", "--what", "wait")["samples"])
	p.set(what="write")
	equal(p.total(), p.files.report("node", "--what", "write")["samples"])


@main_path
def test_hide_and_undo(p):
	p.open()
	all_ = p.total()
	hidden = p.box("revm::instructions::sload")["total"] + 0
	everywhere = p.files.report("node", "--function", "^revm::instructions::sload$")["total"]
	p.menu("revm::instructions::sload", "hide")
	holds(not p.has("revm::instructions::sload"), "it is gone")
	holds(hidden > 0, "it was there")
	equal(p.total(), all_ - everywhere, "what is left")
	p.key("z", "ctrl")
	equal(p.total(), all_, "after undo")
	holds(p.has("revm::instructions::sload"), "it is back")
	p.key("z", "ctrl", "shift")
	equal(p.total(), all_ - everywhere, "after redo")
	p.press("#chips button", "without")
	equal(p.total(), all_, "the chip takes it back")


@main_path
def test_focus_and_undo(p):
	p.open()
	all_ = p.total()
	p.click("execute_block")
	p.key("f")
	equal(p.state("focus"), "execute_block")
	equal(p.total(), p.files.report("node", "--function", "^execute_block$")["total"])
	holds(not p.has("persist") and not p.has("main"), "only what is under it")
	p.key("z", "ctrl")
	equal(p.total(), all_, "after undo")
	holds(p.has("main"), "all is back")


def test_collapse_recursion_and_undo(p):
	p.open()
	before = [b for b in p.boxes() if b["name"] == "trie::visit"]
	equal(len({b["depth"] for b in before}), 5, "levels of recursion")
	p.key("r")
	after = [b for b in p.boxes() if b["name"] == "trie::visit"]
	equal(len(after), 1, "boxes of the recursive function")
	equal(after[0]["total"], function_row(p.files.report("node"), "trie::visit")["total"])
	holds(p.has("core::ptr::drop_in_place<T>"), "its callees are there")
	p.key("z", "ctrl")
	equal(len({b["depth"] for b in p.boxes() if b["name"] == "trie::visit"}), 5, "levels after undo")


def test_merge_into_caller_and_undo(p):
	p.open()
	all_ = p.total()
	p.menu("revm::interpreter::run", "merge it")
	holds(not p.has("revm::interpreter::run"), "it is gone")
	equal(p.total(), all_, "nothing is lost")
	box, above = p.box("revm::instructions::keccak256"), p.box("execute_block")
	equal(box["depth"], above["depth"] + 1, "its callees are its caller's")
	p.key("z", "ctrl")
	holds(p.has("revm::interpreter::run"), "it is back")


def test_merge_threads_and_undo(p):
	p.open()
	all_ = p.total()
	p.key("m")
	holds(not p.has("engine") and p.box("_start")["depth"] == 1, "no threads")
	equal(p.total(), all_)
	report = p.files.folded("node", "--merged")
	node_start = sum(v for k, v in report.items() if k.startswith("_start;") and "poll_loop" not in k)
	near(p.box("_start")["total"] / 1001001, node_start, 1e-6, "_start of all threads")
	p.key("z", "ctrl")
	holds(p.has("engine"), "they are back")


def test_by_task(p):
	"""Stacks below the unit of work that they belong to: boxes, folded stacks, causes and inverted as the C side has them."""
	p.open("pools")
	every = p.total()
	p.key("m")
	equal(p.state("group"), "task", "the next grouping")
	names = ["blocking app::read", "main", "runtime tokio", "task app::Node", "task app::serve"]
	for what in ("cpu", "wall"):
		p.set(what=what)
		equal(sorted(b["name"] for b in p.boxes() if b["depth"] == 1), names, what)
		report = p.files.folded("pools", "--by-task", "--what", what)
		for below in ("", *names):
			path = "G.model.view(G.state.now)" + (f".kids().find(k => k.name === {json.dumps(below)})" if below else "")
			folded = parse_folded("".join(p.eval(f"G.folded({path}, G.state.now)")))
			equal(folded, {k: v for k, v in report.items() if k.startswith(below)}, f"{what} of {below or 'all'}")
	near(p.box("task app::serve")["total"], 60 * 1001001 + 7e6, 1e-9, "wall time of a task")
	causes = p.eval("[...G.model.view(G.state.now).kids().find(k => k.name === 'runtime tokio').byCause()]")
	near(sum(causes), 5 * 1001001, 1e-9, "causes of a runtime without its tasks")
	holds("by task" in p.eval("G.words(G.state.now)"), "the state in words")
	p.set(what="cpu")
	equal(p.total(), every, "nothing is lost")
	p.key("i")
	hashes = p.eval("Object.fromEntries(G.model.view(G.state.now).kids().find(k => k.name === 'app::hash').kids().map(k => [k.name, k.total]))")
	near(hashes["app::read::{{closure}}"], 15 * 1001001, 1e-9, "who calls a function, inverted")
	equal(p.eval("""G.model.view(G.state.now).kids().find(k => k.name === 'app::hash').kids()
		.find(k => k.name === 'app::read::{{closure}}').kids().map(k => k.name)"""), ["blocking app::read"], "the unit is the last")
	p.open()
	holds(not p.eval("G.model.groupings().includes('task')"), "a program without pools is not grouped by task")


def test_order(p):
	p.open()
	by_name = [b["name"] for b in p.boxes() if b["depth"] == 1]
	equal(by_name, sorted(by_name))
	p.key("o")
	for depth in (1, 4, 7):
		totals = [b["total"] for b in p.boxes() if b["depth"] == depth]
		equal(totals[:2], sorted(totals, reverse=True)[:2], f"the heaviest of row {depth} come first")
	first = p.box("revm::instructions::sload")["x"]
	holds(first < p.box("revm::instructions::keccak256")["x"] < p.box("alloc::vec::Vec<T,A>::push")["x"],
			"callees by weight")
	p.key("o")
	holds(p.box("alloc::vec::Vec<T,A>::push")["x"] < p.box("revm::instructions::keccak256")["x"] <
	      p.box("revm::instructions::sload")["x"], "and by name again")


def swatches(p):
	"""The legend: words to colours."""
	found = p.eval("""[...document.querySelectorAll('#swatches span')].filter(e => e.querySelector('i')).map(e =>
		[e.textContent, getComputedStyle(e.querySelector('i')).backgroundColor])""")
	return {words: [int(n) for n in re.findall(r"\d+", rgb)[:3]] for words, rgb in found}


def test_colours_and_legend(p):
	p.open()
	box = p.box("keccak::f1600")
	colours = {}
	for colour in ("kind", "module", "cause"):
		p.set(colour=colour)
		colours[colour] = p.pixel(box["x"] + box["w"] - 4, box["y"] + 3)
		legend = p.eval("[...document.querySelectorAll('#swatches span')].map(e => e.textContent)")
		holds(len(legend) > 0, f"no legend for {colour}")
		# Functions of a kind differ a little.
		far = [max(abs(a - b) for a, b in zip(colours[colour], c)) for c in swatches(p).values()]
		holds(min(far) <= (12 if colour == "kind" else 0),
				f"{colours[colour]} of {colour} is not in the legend {swatches(p)}")
	equal(colours["cause"], [0xE6, 0x9F, 0x00], "on CPU")
	holds(colours["kind"] != colours["cause"], "kinds and causes differ")
	p.set(what="wait", colour="cause")
	disk = p.box("fdatasync")
	equal(p.pixel(disk["x"] + disk["w"] - 4, disk["y"] + 3), swatches(p)["disk write"], "disk write")
	lock = p.box("futex_wait")
	equal(p.pixel(lock["x"] + lock["w"] - 4, lock["y"] + 3), [0xD5, 0x5E, 0x00], "lock")
	kinds = {}
	p.set(what="cpu", colour="kind")
	for name in ("malloc", "ext4_file_write_iter", "execute_block", "memchr"):
		b = p.box(name)
		kinds[name] = tuple(p.pixel(b["x"] + b["w"] - 4, b["y"] + 3))
	for a, b in (("malloc", "memchr"), ("malloc", "ext4_file_write_iter"), ("memchr",
			"ext4_file_write_iter"), ("malloc", "execute_block")):
		holds(max(abs(x - y) for x, y in zip(kinds[a], kinds[b])) > 20,
				f"{a} and {b} look alike: {kinds}")
	p.set(what="wall", colour="cause", idle=True)
	legend = swatches(p)
	equal(len({tuple(c) for c in legend.values()}), len(legend),
			f"different colours of the legend {legend}")
	for words, colour in {"on CPU": "e69f00", "run queue": "f0e442", "lock": "d55e00",
			"sleep": "999999"}.items():
		equal("%02x%02x%02x" % tuple(legend[words]), colour, words)


def test_wall_boxes_are_split_by_cause(p):
	"""mdbx_txn_commit is on the CPU and on the disk: both colours are in its box, in proportion."""
	p.open(fragment="what=wall&colour=cause&threads=" + json.dumps(["persistence"]))
	b = p.box("mdbx_txn_commit")
	y, found = b["y"] + 2, {}
	for i in range(20):
		c = tuple(p.pixel(b["x"] + b["w"] * (i + 0.5) / 20, y))
		found[c] = found.get(c, 0) + 1
	disk = tuple(swatches(p)["disk write"])
	holds((0xE6, 0x9F, 0x00) in found and disk in found, f"colours {found}")
	near(found[disk] / sum(found.values()), 0.89, 0.1, "share of the disk")


@main_path
def test_dark_and_light(p):
	p.b.theme("dark")
	p.open()
	ground = "getComputedStyle(document.body).backgroundColor"
	dark = p.eval(ground)
	p.b.theme("light")
	p.b.settle()
	p.b.wait(f"{ground} !== {json.dumps(dark)}", 3)
	light = p.eval(ground)
	brightness = [sum(map(int, re.findall(r"\d+", c)[:3])) for c in (dark, light)]
	holds(brightness[0] < 200 and brightness[1] > 600, f"{dark} and {light}")
	p.b.click_on("#theme")
	p.b.settle()
	equal(p.eval(ground), dark, "the button chooses dark")
	p.key("D")
	equal(p.eval(ground), light, "the key chooses light")


def test_tooltip(p):
	p.open()
	p.hover("revm::instructions::sload")
	holds(p.eval("document.querySelector('#tip').offsetHeight") > 30, "it is to be seen")
	text = p.eval("document.querySelector('#tip').innerText")
	row = function_row(p.files.report("node", "--thread", "engine"), "revm::instructions::sload")
	holds("revm::instructions::sload" in text, text)
	holds(format_s(row["total"]) in text, f"total {format_s(row['total'])} is not in {text!r}")
	holds("self" in text and "parent" in text, text)
	parent = p.box("revm::interpreter::run")["total"]
	share = re.search(r"([\d.]+)\s*%\s*of its parent", text)
	holds(share, text)
	near(float(share.group(1)) / 100, row["total"] / parent, 0.01, "share of its parent")
	holds("/usr/bin/node" in text, "the module")
	p.b.move(2, 400)
	p.b.move(640, 790)
	p.b.settle()
	holds(p.eval("document.querySelector('#tip').hidden"), "it goes away")


def format_s(ns):
	"""Three significant digits, as the page and the tables write them."""
	for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
		if ns >= size:
			v = ns / size
			return f"{v:.{0 if v >= 100 else 1 if v >= 10 else 2}f} {unit}"
	return f"{ns:.0f} ns"


def test_long_names_are_cut_and_whole_in_the_status(p):
	import capture
	p.open()
	p.hover(capture.LONG)
	holds(capture.LONG in p.status(), "the whole name in the status line")
	holds(capture.LONG in p.text("#tip"), "and in the tooltip")
	for columns in (10, 20, 40, 80):
		text = p.eval(f"G.model.shortName({json.dumps(capture.LONG)}, {columns})")
		holds(len(text) <= columns, f"{columns}: {text!r}")
	text = p.eval(f"G.model.shortName({json.dumps(capture.LONG)}, 60)")
	equal(text, "DatabaseProvider<Tx<RO>, Spec>::state_root_with_updates", "the type stays where there is room for it")
	equal(p.eval("G.model.shortName('execute_block', 40)"), "execute_block")


def test_copy_name_and_stack(p):
	p.open()
	p.click("execute_block")
	p.key("c")
	equal(p.eval("navigator.clipboard.readText()"), "execute_block")
	p.key("C")
	stack = p.eval("navigator.clipboard.readText()").split("\n")
	equal(stack, ["engine", "_start", "main", "reth::engine::run", "reth::engine::on_new_payload",
			"execute_block"])


@main_path
def test_export_folded(p):
	"""What is saved is what gasflame report --format folded writes."""
	p.open()
	p.key("e")
	got = parse_folded(open(p.b.downloaded(), encoding="utf-8").read())
	equal(got, p.files.folded("node"), "the stacks")
	os.unlink(p.b.downloaded())
	p.set(what="wait", threads=["engine"], asleep=True)
	p.key("e")
	got = parse_folded(open(p.b.downloaded(), encoding="utf-8").read())
	equal(got, p.files.folded("node", "--what", "wait", "--thread", "engine"), "waits of a thread")
	os.unlink(p.b.downloaded())


def test_export_of_a_box(p):
	p.open()
	p.menu("execute_block", "save its stacks")
	got = parse_folded(open(p.b.downloaded(), encoding="utf-8").read())
	os.unlink(p.b.downloaded())
	wanted = {k: v for k, v in p.files.folded("node", "--thread",
			"engine").items() if ";execute_block" in k}
	equal(got, wanted)


@main_path
def test_a_link_restores_the_view(p):
	p.open()
	p.set(what="wait", invert=True)
	p.set(threads=["engine"], colour="cause", search="lock", icicle=not p.state("icicle"))
	p.set(range=[2_000_000_000, 5_000_000_000])
	url, state, boxes = p.eval("location.href"), p.state(), p.boxes()
	p.b.open("about:blank")
	p.b.open(url)
	p.b.wait("window.G && G.ready")
	p.b.settle()
	equal(p.state(), state, "the state")
	equal(p.boxes(), boxes, "the picture")


def test_a_link_to_a_zoom(p):
	p.open()
	p.click("revm::interpreter::run")
	boxes, url = p.boxes(), p.eval("location.href")
	p.b.open("about:blank")
	p.b.open(url)
	p.b.wait("window.G && G.ready")
	p.b.settle()
	equal(p.boxes(), boxes)


def test_a_link_may_be_anything(p):
	for fragment in ("what=nothing", "zoom=[1,2", "zoom={}", "range=[5,1]", "threads=7", "hidden=null",
			"view=__proto__", "view=nowhere",
			 "__proto__=1", "constructor=x", "%", "colour=toString", "search=%28%28&regex=true",
			 "fn=nothing&view=sandwich",
			 "zoom=" + json.dumps(["a"] * 5000), "sort=x", "theme=%3Cscript%3E",
			 "focus=no%20such", "range=[0,1e30]"):
		p.open(fragment=fragment)
		holds(p.eval("G.ready"), fragment)
		p.no_errors()
		holds(p.eval("document.querySelector('#main').textContent.length + G.test.boxes().length > 0"), fragment)


@main_path
def test_history_goes_back(p):
	"""The browser's own buttons walk the views too."""
	p.open()
	p.click("execute_block")
	p.key("i")
	p.eval("history.back()")
	p.b.wait("!G.state.now.invert", 3)
	p.eval("history.back()")
	p.b.wait("!G.state.now.zoom.length", 3)


def test_keys_are_listed(p):
	p.open()
	p.key("?")
	text = p.text("#keys") or ""
	for key in ("Enter", "Backspace", "Esc", "/", "Ctrl-F", "F3", "Ctrl-I", "Ctrl-Z", "1", "?"):
		holds(key in text, f"{key} is not in the list")
	listed = p.eval("G.keys.filter(k => k[1]).map(k => k[0]).join(' ')")
	for letter in "nNfhuscCeigrmokxvtz":
		holds(letter in listed.replace("Ctrl", "").replace("Shift",
				"").split() or letter in listed.split() or letter in listed,
		      f"{letter} is not listed")
	p.key("Escape")
	equal(p.text("#keys"), None, "Esc closes it")


def test_screen_reader_tree(p):
	p.open()
	p.key("ArrowDown")
	p.key("ArrowDown")
	p.key("ArrowDown")
	items = p.eval("""[...document.querySelectorAll('[role=treeitem]')].map(e => [e.getAttribute('aria-level'),
		e.getAttribute('aria-selected'), e.textContent])""")
	chosen = [i for i in items if i[1] == "true"]
	equal(len(chosen), 1, "items that are chosen")
	holds(chosen[0][2].startswith("_start") and chosen[0][0] == "3", chosen)
	total = p.box("_start")["total"]
	holds(format_s(total) in chosen[0][2], f"{format_s(total)} in {chosen[0][2]}")
	holds(any(i[2].startswith("engine") and i[0] == "2" for i in items), "its parent")
	if p.b.name == "chromium":
		tree = p.b.tree()
		holds(any(role == "tree" for role, _, _ in tree), "a tree")
		holds(any(role == "treeitem" and "_start" in (name or "") for role, name, _ in tree),
				"with the chosen row")
		holds(any(role == "button" and name == "flame" for role, name, _ in tree),
				"buttons with names")


def test_context_menu_by_keyboard(p):
	p.open()
	p.click("execute_block")
	p.b.rightclick(*p.at("execute_block"))
	p.b.settle()
	items = p.eval("[...document.querySelectorAll('.menu [role=menuitem]')].map(e => e.textContent)")
	holds(len(items) >= 8, items)
	p.key("ArrowDown")
	p.key("ArrowUp")
	p.key("Escape")
	equal(p.eval("document.querySelectorAll('.menu').length"), 0, "menus after Esc")


def test_narrow_boxes_are_one_bar(p):
	p.open("wide")
	boxes = p.boxes()
	bars, root = [b for b in boxes if b["n"] > 1], boxes[0]
	holds(bars, "boxes that are several")
	for b in bars:
		near(b["w"] / root["w"], b["total"] / root["total"], 1e-6, f"width of {b['n']} boxes")
	for depth in (1, 3, 4):
		equal(sum(b["total"] for b in boxes if b["depth"] == depth), p.total(), f"row {depth}")
	bar = max(bars, key=lambda b: b["w"])
	p.b.move(bar["x"] + bar["w"] / 2, bar["y"] + 8)
	p.b.settle()
	holds(str(bar["n"]) in p.text("#tip"), f"how many is told: {p.text('#tip')}")


def test_nothing_overlaps(p):
	"""At 1280 x 800 and smaller: parts of the page do not lie on each other, and nothing sticks out."""
	for size in ((1280, 800), (1024, 700), (1920, 1080)):
		p.b.resize(*size)
		p.open()
		parts = p.eval("""["header", "#verdict", "#time", "#bar", "#main", "footer"].map(s => {
			const r = document.querySelector(s).getBoundingClientRect(); return [s, r.left, r.top, r.right, r.bottom]; })""")
		for (_, _, _, _, bottom), (name, left, top, right, b) in zip(parts, parts[1:]):
			holds(top >= bottom - 0.5, f"{name} begins at {top}, above {bottom}")
		for name, left, top, right, bottom in parts:
			holds(left >= 0 and right <= size[0] + 0.5 and bottom <= size[1] + 0.5,
					f"{name} at {size}: {left} {right} {bottom}")
		holds(p.eval("document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"),
		      f"the page scrolls at {size}")
		wide = p.eval("""[...document.querySelectorAll('#bar button, #bar select, header *')].filter(e => {
			const r = e.getBoundingClientRect(); return r.width && (r.right > innerWidth + 1 || r.left < -1); }).map(e => e.textContent)""")
		equal(wide, [], f"buttons that stick out at {size}")


def test_keys_mean_the_box_under_the_mouse(p):
	p.open()
	p.key("ArrowDown")
	p.key("ArrowDown")
	p.hover("revm::instructions::sload")
	p.key("f")
	equal(p.state("focus"), "revm::instructions::sload", "the one that the hint is about, not the selected one")
