"""The form of the page: threads by the hundred, small windows, paper, colours, roles and contrast, names that differ."""
import base64
import itertools
import json

from page import equal, holds, near
from test_flame import format_s

VIEWS = ("flame", "overview", "table", "sandwich")


def test_hundreds_of_threads(p):
	"""More than 20 threads stand by the pattern of their names; each of them can still be chosen."""
	p.open("threads")
	roots = {b["name"]: b["total"] for b in p.boxes() if b["depth"] == 1}
	equal(sorted(roots), ["logger", "rpc-worker-*"], "roots")
	whole = p.files.report("threads")
	equal(roots["rpc-worker-*"], whole["total"] - p.files.report("threads", "--thread", "logger")["total"], "all workers")
	p.menu("rpc-worker-*", "only these threads")
	equal(p.state("threads"), ["rpc-worker-*"])
	equal(p.total(), roots["rpc-worker-*"])
	p.set(threads=None, hidden=["rpc-worker-*"])
	equal(p.total(), roots["logger"], "without them")
	p.set(hidden=[], invert=True)
	holds(p.has("rpc-worker-*") and not p.has("rpc-worker-7"), "leaf first, too")
	p.set(invert=False)
	p.key("m")
	equal(p.state("group"), "each")
	holds(p.has("rpc-worker-7"), "one by one")
	p.set(group="name", view="overview")
	p.press(".account-name button", "rpc-worker-* (300)")
	equal(p.state("threads"), ["rpc-worker-*"], "a row of the overview")
	p.set(threads=None)
	p.key("x")
	p.eval("(() => { const i = document.querySelector('.panel input[type=text]'); i.value = 'worker-299'; i.oninput(); })(), 1")
	equal(p.eval("[...document.querySelectorAll('.panel .checks')[0].querySelectorAll('label span')].map(e => e.textContent)"),
		["rpc-worker-299"], "found")
	p.press(".panel label", "rpc-worker-299")
	equal(p.state("threads"), ["!rpc-worker-299"], "a short word for all but one")
	equal(p.total(), whole["total"] - p.files.report("threads", "--thread", "rpc-worker-299")["total"])


def test_what_leads_to_all_else_is_one_row(p):
	p.open()
	row = [b for b in p.boxes() if b["y"] == p.box("engine")["y"] and b["x"] < p.box("persistence")["x"]]
	equal([b["name"] for b in row], ["engine", "_start", "main", "reth::engine::run"], "the chain of a thread")
	near(sum(b["w"] for b in row), 1270 * row[0]["total"] / p.total(), 0.01, "its width")
	p.click("_start", 2)
	equal(p.state("zoom"), ["engine", "_start"], "a click on a part of it")
	p.click("execute_block")
	rows = {b["name"]: b["y"] for b in p.boxes()}
	equal(rows["all"], rows["reth::engine::on_new_payload"], "what is above the zoom is in one row")
	holds(rows["execute_block"] > rows["all"], "the zoom is below it")
	p.set(zoom=[], chains=False)
	holds(p.box("_start", 2)["y"] > p.box("engine")["y"], "one below the other, if asked")


def test_small_windows(p):
	"""Nothing sticks out at 360 px, the flame graph has most of 720, and the time area folds where there is no room."""
	p.b.resize(1280, 720)
	p.open()
	holds(p.eval("document.querySelector('#main').offsetHeight > innerHeight / 2"), "most for the view at 1280 x 720")
	for width, height in (360, 640), (640, 360):
		p.b.resize(width, height)
		p.b.settle()
		for view in VIEWS:
			p.set(view=view)
			holds(p.eval("document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight"),
				f"{view} fits into {width} x {height}")
			holds(p.eval("document.querySelector('#main').offsetHeight >= 140"), f"{view} has room at {width} x {height}")
	p.b.resize(640, 360)
	p.set(view="flame")
	holds(p.eval("document.querySelector('#time').offsetHeight < 60"), "the time area is folded")
	p.key("T")
	holds(p.eval("document.querySelector('#time').offsetHeight > 60"), "and unfolds when asked")
	p.b.resize(390, 800)
	p.set(view="table")
	heads = p.eval("[...document.querySelectorAll('.view:not([hidden]) .grid-head button')].map(b => b.textContent)")
	equal(heads[0], "name", "the name comes first")
	p.set(view="overview")
	equal(p.eval("getComputedStyle(document.querySelector('.overview')).gridTemplateColumns.split(' ').length"), 1, "columns")


def test_splitter(p):
	p.open()
	x, y = p.b.center(".splitter")
	before = p.eval("document.querySelector('#time').offsetHeight")
	p.b.drag(x, y, x, y - 60)
	p.b.settle()
	near(p.eval("document.querySelector('#time').offsetHeight"), before - 60, 0.05, "height after a drag")
	p.eval("document.querySelector('.splitter').focus()")
	p.key("ArrowDown")
	holds(p.eval("document.querySelector('#time').offsetHeight") > before - 58, "an arrow makes it higher")


def pictures(pdf):
	"""Width and height of the pictures in a PDF, and how many pages it has."""
	found = []
	for part in pdf.split(b"endobj"):
		if b"/Subtype /Image" in part and b"/Width" in part:
			found.append(tuple(int(part.split(key)[1].split()[0]) for key in (b"/Width", b"/Height")))
	return found, pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page ")


def test_paper(p):
	"""Printed from the dark: light, laid out anew, with the pictures of both canvases; then all is as before."""
	p.b.theme("dark")
	p.open()
	look = "[document.documentElement.dataset.theme, document.querySelector('#flame canvas').clientWidth, document.querySelector('#main').offsetHeight]"
	before = p.eval(look)
	p.eval("addEventListener('beforeprint', () => setTimeout(() => 0) && (window.paper = " + look + ")), 1")
	answer = p.b.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
	found, pages = pictures(base64.b64decode(answer["data"]))
	theme, width, _ = p.eval("paper")
	equal(theme, "light", "the theme of paper")
	near(width, 1040, 0.02, "width on paper")
	equal(len([size for size in found if size[0] > 1500]), 2, f"pictures of the time area and of the graph: {found}")
	p.b.settle()
	equal(p.eval(look), before, "as before")


def test_table_has_tip_menu_and_copy(p):
	p.open(fragment="view=table")
	name = p.eval("G.test.table().slice().sort((a, b) => b.self - a.self)[0]")
	x, y = p.b.center(".grid-row .name span")
	p.b.move(x, y)
	p.b.settle()
	tip = p.eval("document.querySelector('#tip').innerText")
	holds(name["name"] in tip and format_s(name["self"]) in tip, tip)
	p.b.rightclick(x, y)
	p.b.settle()
	p.press(".menu button", "copy its name")
	equal(p.eval("G.test.copied"), name["name"])
	p.key("c")
	equal(p.eval("G.test.copied"), name["name"], "by key")
	p.b.rightclick(x, y)
	p.b.settle()
	p.press(".menu button", "focus")
	equal([p.state("view"), p.state("focus")], ["flame", name["name"]])


def test_legend_leaves_one_colour_bright(p):
	p.open()
	box = p.box("malloc")
	before = p.pixel(box["x"] + box["w"] - 4, box["y"] + 3)
	p.press("#swatches button", "kernel")
	equal(p.state("lit"), "kernel")
	holds(p.pixel(box["x"] + box["w"] - 4, box["y"] + 3) != before, "others step back")
	kernel = p.box("ext4_file_write_iter")
	holds(p.pixel(kernel["x"] + kernel["w"] - 4, kernel["y"] + 3) != [255, 255, 255], "the kernel does not")
	p.key("Escape")
	equal(p.pixel(box["x"] + box["w"] - 4, box["y"] + 3), before, "after Esc")


def test_shares_of_few_samples_say_so(p):
	p.open("one")
	holds("only 1 sample" in p.text("#chips"), p.text("#chips"))
	p.hover("only")
	holds("100 % of only 1 sample" in p.status(), p.status())
	p.open()
	holds("only" not in p.text("#chips"), p.text("#chips"))


def test_words_are_explained(p):
	p.open()
	p.key("?")
	text = p.text("#keys")
	for word in ("run queue", "column, cell", "own", "self, total", "sandwich"):
		holds(word in text, f"{word} is explained")
	equal(p.eval("['minor-time', 'io-error', 'sync', 'pressure.io.full', 'constructor'].map(G.model.label)"),
		["minor fault time", "failed I/O", "sync time", "I/O pressure, all", "constructor"])
	said = ("all of it is idle, 3 µs: --idle shows it", "events came too fast (--max-rate, --max-size): they were summed")
	equal(p.eval(f"{json.dumps(said)}.map(G.model.spoken)"),
		["all of it is idle, 3 µs: the key 0 shows it", "events came too fast: they were summed"], "no options of the command line")


def test_names_in_sight_differ(p):
	"""Different functions never have the same text, as long as there is room for what tells them apart."""
	p.open()
	names = [f"alloc::collections::BTreeMap<alloc::string::String, node::{t}>::insert" for t in ("Block", "Header", "Receipt")]
	for room in (90, 50, 30):
		got = p.eval(f"G.model.labels({json.dumps([[n, room] for n in names])})")
		equal(len(set(got)), 3, f"{room}: {got}")
		holds(all(len(text) <= room for text in got), f"{room}: {got}")
	equal(p.eval(f"G.model.labels({json.dumps([[names[0], 30]] * 2)})[0]"), p.eval(f"G.model.shortName({json.dumps(names[0])}, 30)"),
		"one function in two places is as always")


# What red-green blindness makes of linear RGB (Machado, Oliveira and Fernandes, 2009).
BLIND = {"deuteranopia": ((.367322, .860646, -.227968), (.280085, .672501, .047413), (-.01182, .04294, .968881)),
	"protanopia": ((.152286, 1.052583, -.204868), (.114503, .786281, .099216), (-.003882, -.048116, 1.051998))}


def lab(rgb):
	r, g, b = (max(0, min(1, v)) for v in rgb)
	x, y, z = (v ** (1 / 3) if v > .008856 else 7.787 * v + 16 / 116 for v in (
		(.4124 * r + .3576 * g + .1805 * b) / .9505, .2126 * r + .7152 * g + .0722 * b, (.0193 * r + .1192 * g + .9505 * b) / 1.089))
	return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(rgb, matrix):
	linear = [v / 12.92 if v <= .04045 else ((v + .055) / 1.055) ** 2.4 for v in (c / 255 for c in rgb)]
	return lab([sum(m * v for m, v in zip(row, linear)) for row in matrix])


def test_the_colour_blind_can_tell_them_apart(p):
	"""Two causes, and two kinds of code, differ in what a colour-blind person sees, or in their texture."""
	p.open()
	js = """(list => list.map(css => { const e = document.body.appendChild(document.createElement("i"));
		e.style.background = css; const s = getComputedStyle(e), out = [s.backgroundColor.match(/\\d+/g).slice(0, 3).map(Number),
		s.backgroundImage]; e.remove(); return out; }))"""
	keys = p.eval("G.data.causes.map(c => c.key).filter(k => k !== 'idle')")
	holds(len(keys) > 10, f"causes {keys}")
	causes = p.eval(js + f"({json.dumps(keys)}.map(G.colour.cssOfCause))")
	p.set(what="cpu", colour="kind")
	legend = p.eval("G.colour.scheme(G.state.now, G.model.weights(G.state.now)).legend.map(l => [l[1], l[0]])")
	kinds = p.eval(js + f"({json.dumps([css for _, css in legend])})")
	for names, colours in (keys, causes), ([n for n, _ in legend], kinds):
		for (a, (rgb1, texture1)), (b, (rgb2, texture2)) in itertools.combinations(zip(names, colours), 2):
			for kind, matrix in BLIND.items():
				far = sum((x - y) ** 2 for x, y in zip(seen(rgb1, matrix), seen(rgb2, matrix))) ** .5
				holds(far > 11 or texture1 != texture2, f"{a} and {b} look alike with {kind}: {far:.1f}")


def test_pictures_have_the_colours_of_the_page(p):
	p.open()
	svg = p.files.run("report", "--format", "svg", "--what", "wall", "--idle", "-o", "-", p.files.capture("node"))
	for cause in "cpu", "queue", "lock", "disk-write", "sleep", "idle":
		holds(p.eval(f"G.colour.cssOfCause('{cause}')") in svg, f"the colour of {cause} is in the picture")


ACCESS = """(() => {
	const out = [], seen = e => e.offsetParent !== null && getComputedStyle(e).visibility !== "hidden";
	const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return c.startsWith("color(") ? [...m.slice(0, 3).map(v => v * 255), m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
	const light = rgb => { const [r, g, b] = rgb.map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
		return .2126 * r + .7152 * g + .0722 * b; };
	const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
	const ground = e => { const list = []; for (let p = e; p; p = p.parentElement) list.unshift(parse(getComputedStyle(p).backgroundColor));
		return list.reduce((under, c) => over(c, under), [255, 255, 255]); };
	const label = e => (e.getAttribute("aria-label") || e.textContent || e.title || e.placeholder || (e.labels && [...e.labels].map(l => l.textContent).join("")) || "").trim();
	for (const e of document.querySelectorAll("button, select, input, [role=button], [role=separator], [role=grid], [role=tree], [role=dialog], canvas[role]"))
		if (seen(e) && !label(e) && !e.title) out.push("no name: " + e.outerHTML.slice(0, 90));
	const within = { row: "grid", gridcell: "row", columnheader: "row", treeitem: "tree", menuitem: "menu" };
	for (const [role, parent] of Object.entries(within))
		for (const e of document.querySelectorAll("[role=" + role + "]"))
			if (!e.closest("[role=" + parent + "]")) out.push(role + " outside of a " + parent);
	for (const e of document.querySelectorAll("[aria-activedescendant]"))
		if (e.getAttribute("aria-activedescendant") && !document.getElementById(e.getAttribute("aria-activedescendant"))) out.push("points at nothing: " + e.id);
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => out.push("two are called " + id));
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), done = new Set();
	for (let t; t = walk.nextNode();) {
		const e = t.parentElement;
		if (!t.data.trim() || done.has(e) || !seen(e) || e.closest("script, style, noscript, option, .unseen, :disabled")) continue;
		done.add(e);
		const css = getComputedStyle(e), under = ground(e), a = light(over(parse(css.color), under)), b = light(under);
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) out.push(ratio.toFixed(1) + " : 1 in " + (e.className || e.id || e.tagName) + ": " + t.data.trim().slice(0, 30));
	}
	return [...new Set(out)];
})()"""


def test_roles_and_contrast(p):
	"""What has a role has a name and the right parent; all text has a contrast of at least 4.5 : 1, in light and dark."""
	p.open(fragment="search=keccak")
	for theme in "light", "dark":
		for view in VIEWS + ("waits",):
			p.set(view=view, theme=theme)
			equal(p.eval(ACCESS), [], f"{view}, {theme}")
		p.key("x")
		equal(p.eval(ACCESS), [], f"the filters, {theme}")
		p.key("Escape")
		p.key("?")
		equal(p.eval(ACCESS), [], f"the words, {theme}")
		p.key("Escape")
