"""Overview, table and sandwich: figures as the C side has them, links that lead where they say."""
import json
import re

from page import equal, holds, main_path, near
from test_flame import format_s, function_row


def rows(p):
	"""What the grid in sight shows, row by row."""
	return p.eval("""[...document.querySelectorAll('.view:not([hidden]) .grid-row')].filter(e => e.offsetParent)
		.sort((a, b) => a.index - b.index).map(r => [...r.children].map(c => c.lastChild.dataset.whole || c.textContent))""")


def heads(p):
	return p.eval("""[...document.querySelectorAll('.view:not([hidden]) .grid-head button')].map(b => {
		const r = b.getBoundingClientRect(); return [b.textContent, r.left + r.width / 2, r.top + r.height / 2]; })""")


@main_path
def test_table_by_function(p):
	p.open()
	p.key("t")
	report = p.files.report("node")
	shown = rows(p)
	equal(len(shown) >= 15, True, f"{len(shown)} rows")
	for f, row in zip(report["functions"], shown):
		if not f["self"]:
			break
		equal(row[0], format_s(f["self"]), f"self of {f['name']}")
		equal(row[2], format_s(f["total"]), f"total of {f['name']}")
	equal(p.eval("document.querySelector('.view:not([hidden]) .grid').getAttribute('aria-rowcount')"),
			str(len(report["functions"])), "rows")
	tally = p.eval("""(() => { const t = G.tally(G.state.now, "function"), out = {};
		for (let i = 0; i < t.n; i++) if (t.total[i]) out[t.label[i] + " in " + t.module(i)] = [t.self[i], t.total[i]]; return out; })()""")
	equal(tally, {f["name"] + " in " + f["module"]: [f["self"], f["total"]] for f in report["functions"]},
			"all of them")


def test_table_by_module_and_thread(p):
	p.open()
	p.key("t")
	report = p.files.report("node")
	tally = """(by => { const t = G.tally(G.state.now, by), out = {};
		for (let i = 0; i < t.n; i++) if (t.total[i]) out[t.label[i]] = [t.self[i], t.total[i]]; return out; })"""
	p.press(".grid-bar button", "module")
	equal(p.eval(tally + "('module')"), {m["module"]: [m["self"], m["total"]] for m in report["modules"]},
			"modules")
	p.press(".grid-bar button", "thread")
	equal({k: v[1] for k, v in p.eval(tally + "('thread')").items()},
	      {f"{t['name']} {t['tid']}": t["total"] for t in report["threads"]}, "threads")
	p.press(".grid-bar button", "crate")
	crates = p.eval(tally + "('crate')")
	holds("revm" in crates and "keccak" in crates, list(crates))
	equal(crates["revm"][1], p.files.report("node", "--function", "^revm::")["total"], "total of a crate")


@main_path
def test_table_sort_and_filter(p):
	p.open()
	p.key("t")

	def column(i):
		return [row[i] for row in rows(p)]

	name = next(h for h in heads(p) if h[0].startswith("name"))
	p.b.click(*name[1:])
	p.b.settle()
	names = column(4)
	equal(names, sorted(names), "by name")
	p.b.click(*name[1:])
	p.b.settle()
	equal(column(4), sorted(column(4), reverse=True), "the other way round")
	p.set(sort="total", down=True)
	values = [number(v) for v in column(2)]
	equal(values, sorted(values, reverse=True), "by total")
	p.key("\\")
	p.b.type("keccak")
	p.b.settle()
	shown = column(4)
	holds(shown and all("keccak" in n for n in shown), shown)
	p.key("Escape")
	holds(len(rows(p)) > len(shown), "Esc in the filter shows all")
	p.set(filter="no such thing")
	equal(rows(p), [], "rows")
	holds("no such thing" in p.eval("document.querySelector('.view:not([hidden])').innerText"),
			"a sentence says why")


def number(text):
	value, unit = text.replace(",", "").split()
	return float(value) * {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[unit]


def test_table_by_keyboard(p):
	p.open()
	p.key("t")
	p.key("ArrowDown")
	p.key("ArrowDown")
	chosen = p.eval("(document.querySelector('.grid-row[aria-selected=true] .name span') || { dataset: {} }).dataset.whole")
	equal(chosen, p.files.report("node")["functions"][2]["name"])
	p.key("Enter")
	equal(p.state("view"), "sandwich")
	equal(p.state("fn"), chosen)
	p.key("z", "ctrl")
	equal(p.state("view"), "table")


@main_path
def test_sandwich(p):
	"""Callers and callees of one function, as folded stacks have them."""
	p.open()
	p.click("revm::interpreter::run")
	p.key("s")
	equal(p.state("view"), "sandwich")
	s = p.eval("G.test.sandwich()")
	row = function_row(p.files.report("node"), "revm::interpreter::run")
	equal(s["fn"], "revm::interpreter::run")
	equal(s["total"], row["total"], "its total")
	equal(s["self"], row["self"], "its self")
	callers, callees = {}, {}
	for stack, n in p.files.folded("node").items():
		frames = [f.replace("_[k]", "") for f in stack.split(";")]
		if "revm::interpreter::run" in frames:
			i = frames.index("revm::interpreter::run")
			callers[frames[i - 1]] = callers.get(frames[i - 1], 0) + n * 1001001
			callees[frames[i + 1]] = callees.get(frames[i + 1], 0) + n * 1001001
	equal({c["name"]: c["v"] for c in s["callers"]}, callers, "callers")
	equal({c["name"]: c["v"] for c in s["callees"]}, callees, "callees")
	text = p.eval("document.querySelector('.view:not([hidden])').innerText")
	holds("revm::interpreter::run" in text and format_s(row["total"]) in text, text[:200])


def test_sandwich_of_a_recursive_function(p):
	p.open(fragment="view=sandwich&fn=" + "trie::visit")
	s = p.eval("G.test.sandwich()")
	equal(s["total"], function_row(p.files.report("node"), "trie::visit")["total"], "it counts once")
	p.set(fn="no such function")
	holds("not in what is shown" in p.eval("document.querySelector('#main').innerText"), "a sentence")


@main_path
def test_overview(p):
	p.open()
	p.key("v")
	text = p.eval("document.querySelector('#view-overview').innerText")
	report = p.files.report("node", "--what", "wall")
	for words in ("op-node", "10.0 s", "testhost", "persistence", "fdatasync", "mdbx_txn_commit", "lock",
			"What usually helps"):
		holds(words in text, f"{words!r} is not in the overview")
	total = report["account"]["total"]
	for cause, name in (("cpu", "on CPU"), ("lock", "lock"), ("disk-write", "disk write"), ("sleep",
			"sleep")):
		holds(format_s(total[cause]) in text, f"{name}: {format_s(total[cause])} is not in it")
	widths = p.eval("""[...document.querySelectorAll('.account-bar')].map(b => [b.offsetWidth,
		[...b.children].map(c => [c.title, c.offsetWidth])])""")
	for row in report["account"]["threads"]:
		bar = next((b for b in widths if any(t.startswith(row["name"] + ": ") for t, _ in b[1])),
				None)
		if bar and row["name"] == "persistence":
			disk = next(w for t, w in bar[1] if "disk write" in t)
			near(disk / bar[0], row["disk-write"] / row["wall"], 0.05, "the bar of persistence")


@main_path
def test_links_of_the_verdict(p):
	"""The first sentence leads to the page of that wait, and that to its stacks, with callers."""
	p.open()
	p.key("v")
	p.press("#view-overview button.link", "61 %")
	equal([p.state("view"), p.state("site")], ["waits", "disk-write mdbx_txn_commit"], "the wait")
	shown = p.eval("document.querySelector('.wait-page').innerText")
	site = next(w for w in p.files.report("node")["waits"] if w["function"] == "mdbx_txn_commit")
	for words in (format_s(site["ns"]), "persistence", "What helps:"):
		holds(words in shown, f"{words!r} is not in {shown!r}")
	p.press(".wait-page .link", "persistence")
	equal([p.state("view"), p.total()], ["flame", site["ns"]], "its stacks")
	holds({"persistence", "main", "persist", "mdbx_txn_commit", "fdatasync"} <= p.names(), "callers stay")
	p.key("z", "ctrl")
	p.key("z", "ctrl")
	equal(p.state("view"), "overview")
	p.open()
	p.press("#verdict .link", "61 %")
	equal(p.state("site"), "disk-write mdbx_txn_commit")


def test_links_of_the_account(p):
	p.open()
	p.key("v")
	p.press("#view-overview .causes button", "lock")
	s = p.state()
	equal([s["view"], s["what"], s["causes"]], ["flame", "wall", ["lock"]])
	equal(p.total(), p.files.report("node")["account"]["total"]["lock"])


def test_views_by_button(p):
	p.open()
	for view in ("overview", "waits", "table", "sandwich", "flame"):
		p.b.click_on(f'[data-view="{view}"]')
		p.b.settle()
		equal(p.state("view"), view)
		equal(p.eval("[...document.querySelectorAll('.view')].filter(e => !e.hidden).map(e => e.id)"),
				["view-" + view])


def test_views_follow_the_filters(p):
	p.open(fragment="view=table&threads=" + json.dumps(["rpc"]))
	note = p.text(".view:not([hidden]) .note")
	total = p.files.report("node", "--thread", "rpc")["total"]
	holds(format_s(total) in note, f"{format_s(total)} in {note}")
	p.set(threads=["persistence"])
	holds(not any("eth_call" in r[4] for r in rows(p)), "other threads are gone")


def test_first_view_of_the_command_line(p):
	p.open("node", options=("--what", "wait", "--thread", "engine", "--from", "2", "--to", "4"))
	s = p.state()
	equal(s["what"], "wait")
	equal(s["range"], [2_000_000_000, 4_000_000_000])
	p.set(asleep=True)
	near(p.total(), p.files.report("node", "--what", "wait", "--thread", "engine", "--from", "2", "--to",
			"4")["total"], 0.005)
	holds(re.search("engine|5000", p.text("#chips") or ""), p.text("#chips"))
	p.set(threads=None, range=None)
	equal(p.total(), p.files.report("node", "--what", "wait")["total"], "all data are there")


def test_subsystems(p):
	"""The overview has what the report has, and boxes have the colour of the stack's subsystem."""
	p.open()
	shares = p.files.report("node")["subsystems"]
	equal(p.eval("G.data.subsystemShares.rows.map(r => [r.name, r.self, r.total])"),
			[[r["name"], r["self"], r["total"]] for r in shares["rows"]], "rows")
	p.set(view="overview")
	shown = p.eval("document.querySelector('.subsystems').innerText")
	for r in shares["rows"]:
		if r["self"] / shares["all"] > 0.01:
			holds(r["name"] in shown, f"{r['name']} is in the overview")
	p.press(".subsystems button", shares["rows"][0]["name"])
	equal(p.eval("[G.state.now.view, G.state.now.colour]"), ["flame", "subsystem"], "a link to the colours")
	legend = p.eval("[...document.querySelectorAll('#swatches span')].map(e => e.textContent)")
	largest = [r["name"] for r in shares["rows"] if r["self"]]
	holds(set(largest) - {"other"} <= set(legend), f"the legend {legend} has {largest}")


def test_a_sandwich_leaves_the_table_of_threads_alone(p):
	p.open()
	p.key("t")
	p.key("ArrowLeft")
	before = p.eval("G.test.table()")
	p.key("s")
	equal(p.eval("G.test.table()"), before, "rows of threads")


def test_table_search_moves(p):
	p.open()
	p.key("t")
	name = p.eval("G.test.table()[9].name")
	p.eval(f"G.state.set({{ search: {json.dumps(name)} }}), 1")
	p.eval("document.getElementById('matched').click(), 1")
	holds(name in p.eval("document.getElementById('status').textContent"), "the row is chosen, and said")


def test_escape_takes_all_away(p):
	p.open()
	first = p.eval("JSON.stringify(G.state.now)")
	name = p.eval("G.test.table ? G.data.threads[0].name : ''")
	narrow = f"G.state.set({{ threads: [{json.dumps(name)}], range: [0, 1e9], search: 'a', hidden: ['main'] }}), 1"
	p.eval(narrow)
	for _ in range(4):
		p.key("Escape")
	equal(p.eval("JSON.stringify(G.state.now)"), first, "as at first, after four")
	p.eval(narrow)
	p.eval("[...document.querySelectorAll('#chips button')].find(b => b.textContent === 'reset all').click(), 1")
	equal(p.eval("JSON.stringify(G.state.now)"), first, "as at first, after a click")
