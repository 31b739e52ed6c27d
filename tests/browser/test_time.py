"""The time area: the brush, which everything follows, and the rows that it is drawn over."""
from page import equal, holds, main_path, near

NAMES, PAD = 150, 8 # the column of names, and what is free at the right


def row(p, kind, nth=0):
	"""Middle of a row of the time area, from the top of the window."""
	found = [r for r in p.eval("G.test.time().rows") if r["type"] == kind]
	holds(len(found) > nth, f"there is no {kind} row {nth}")
	return found[nth]["y"] + found[nth]["h"] / 2


def left(p):
	return p.eval("document.querySelector('#time canvas').getBoundingClientRect().left")


def at(p, seconds, kind="axis"):
	"""A point of the time area: of the axis, of the heat map, or of the first strip."""
	width = p.eval("document.querySelector('#time canvas').getBoundingClientRect().width")
	return left(p) + NAMES + (width - NAMES - PAD) * seconds / 10, row(p, kind)


def drag(p, a, b, kind="strip"):
	x1, y1 = at(p, a, kind)
	x2, y2 = at(p, b, kind)
	p.b.drag(x1, y1, x2, y2)
	p.b.wait("G.state.now.range", 3)
	p.b.settle()


def snapped(p):
	"""The range as the page counts it: whole slots."""
	slot, (a, b) = p.eval("G.data.meta.slotNs"), p.state("range")
	return [-(-round(t) // slot) * slot for t in (a, b)]


def between(p, what, a, b):
	return p.files.report("node", "--what", what, "--from", f"{a / 1e9:.9f}", "--to", f"{b / 1e9:.9f}")


def test_colours_of_canvases_are_there(p):
	"""One that the style sheets lack paints black: the veil over what a brush leaves out did."""
	p.open()
	for theme in "light", "dark":
		p.eval(f"G.state.set({{ theme: '{theme}' }})")
		lacking = p.eval("Object.entries(G.colours()).filter(([k, v]) => k !== 'theme' && !v).map(([k]) => k)")
		equal(lacking, [], f"colours that are not defined, {theme}")


@main_path
def test_a_brush_and_everything_follows(p):
	p.open()
	all_ = p.total()
	drag(p, 2, 5)
	a, b = p.state("range")
	near(a, 2e9, 0.02, "the beginning")
	near(b, 5e9, 0.02, "the end")
	report = between(p, "cpu", *snapped(p))
	equal(p.total(), report["total"], "the flame graph's total")
	equal(p.box("all")["total"], report["total"], "the root's box")
	for f in report["functions"][:5]:
		equal(sum(x["total"] for x in p.boxes() if x["name"] == f["name"]
				and f["self"] == f["total"]),
		      f["total"] if f["self"] == f["total"] else 0, f["name"])
	p.key("t")
	rows = p.eval("[...document.querySelectorAll('.grid-row')].filter(e => e.offsetParent).map(e => e.innerText.split('\\n').map(x => x.trim()))")
	holds(rows and rows[0][-2:-1] and any(report["functions"][0]["name"].split("::")[-1] in c
			for c in rows[0]), f"the table follows: {rows[:1]}")
	p.key("b")
	p.key("Escape")
	equal(p.state("range"), None, "after Esc")
	equal(p.total(), all_, "all again")


def test_waits_are_cut_at_the_borders(p):
	for what in ("wait", "wall", "queue"):
		p.open(fragment="asleep=true&what=" + what)
		p.set(range=[2_105_000_000, 3_013_000_000])
		near(p.total(), between(p, what, 2_105_000_000, 3_013_000_000)["total"], 0.005, what)
		p.set(range=[5_000_000_000, 5_001_000_000])
		wanted = between(p, what, 5_000_000_000, 5_001_000_000)["total"]
		near(p.total(), wanted, 0.25, what + " in a millisecond")
	p.set(what="write", range=[3_000_000_000, 7_000_000_000])
	equal(p.total(), between(p, "write", 3_000_000_000, 7_000_000_000)["total"], "bytes written")


def test_double_click_and_undo(p):
	p.open()
	drag(p, 6, 8)
	first = p.state("range")
	p.b.doubleclick(*at(p, 7, "strip"))
	p.b.settle()
	equal(p.state("range"), None, "after a double click")
	p.key("z", "ctrl")
	equal(p.state("range"), first, "after undo")


@main_path
def test_heat_map_cell(p):
	"""A click on a cell chooses it; its weight is what the C side says of that time."""
	p.open()
	x, y = at(p, 4.55, "heat")
	p.b.move(x, y)
	p.b.settle()
	said = p.status()
	holds(" of cpu" in said, said)
	p.b.click(x, y)
	p.b.wait("G.state.now.range", 3)
	a, b = p.state("range")
	holds(0 < b - a <= 1e9 and a <= 4.6e9 and b >= 4.4e9, f"the cell is {a} to {b}")
	equal(p.total(), between(p, "cpu", *snapped(p))["total"], "what is in it")


def test_heat_map_is_darker_where_more_is(p):
	"""Between 4 and 6 s twice as much happens."""
	p.open()
	ink = p.eval("""(() => {
		const c = document.querySelector('#time canvas'), box = c.getBoundingClientRect(), k = c.width / box.width;
		const heat = G.test.time().rows.find(r => r.type === "heat"), w = box.width - 158;
		const mean = (a, b) => {
			const d = c.getContext('2d').getImageData((150 + w * a) * k, (heat.y - box.top + 6) * k,
				w * (b - a) * k, (heat.h - 12) * k).data;
			let s = 0;
			for (let i = 0; i < d.length; i += 4)
				s += 255 * 3 - d[i] - d[i + 1] - d[i + 2];
			return s / d.length;
		};
		return [mean(0.1, 0.3), mean(0.42, 0.58), mean(0.7, 0.9)]; })()""")
	holds(ink[1] > ink[0] * 1.2 and ink[1] > ink[2] * 1.2, f"ink {ink}")


def test_a_click_on_a_thread(p):
	p.open()
	x, first_y, second_y = left(p) + 40, row(p, "strip", 0), row(p, "strip", 1)
	p.b.click(x, first_y)
	p.b.settle()
	first = p.state("threads")
	holds(first and len(first) == 1, f"one thread is chosen: {first}")
	equal(p.total(), p.files.report("node", "--thread", str(first[0]))["total"])
	p.b.click(x, second_y, modifiers=("shift",))
	p.b.settle()
	both = p.state("threads")
	equal(len(both), 2, "with shift a second one")
	equal(p.total(), p.files.report("node", *[a for t in both for a in ("--thread", str(t))])["total"])
	p.b.click(x, first_y)
	p.b.click(x, first_y)
	p.b.settle()
	equal(p.state("threads"), None, "once more: all of them")


def test_strips_show_what_threads_did(p):
	"""The colours of each strip, in proportion of its account."""
	p.open()
	sums = p.eval("""(() => { const out = {}; G.data.threads.forEach((t, i) => {
		const v = G.bins.strip(i, 0, G.data.meta.durationNs, 500), n = G.data.causes.length, s = new Array(n).fill(0);
		for (let k = 0; k < v.length; k++) s[k % n] += v[k];
		out[t.tid] = Object.fromEntries(G.data.causes.map((c, k) => [c.key, s[k]])); }); return out; })()""")
	report = p.files.report("node", "--what", "wait")
	for row in report["account"]["threads"]:
		for cause in ("lock", "disk-write", "sleep"):
			near(sums[str(row["tid"])][cause], row[cause], 0.02, f"{cause} of {row['name']}")


def test_series_and_zoom_of_the_axis(p):
	p.open()
	curves = p.eval("G.curves().map(c => [c.name, c.low, c.high])")
	equal([c[0] for c in curves], ["rss", "Cost of recording"])
	equal(curves[0][1:], [1_000_000_000, 1_380_000_000])
	equal(p.eval("G.curves().map(c => c.base ?? c.low)"), [0, 0], "bytes are drawn from zero on")
	equal(curves[1][1:], [0, 4])
	# What it was made of, and what was thinned at that time.
	equal(p.eval("[.5e9, 2.5e9, 3.5e9].map(G.curves()[1].say)"), ["wait 0.90 %", "wait 2.7 %, wait: 1 in 8", "wait 3.6 %"])
	drag(p, 2, 4)
	p.key("z")
	span = p.state("span")
	near(span[0], 2e9, 0.02)
	near(span[1], 4e9, 0.02)
	p.key("z")
	equal(p.state("span"), None)
	before = p.eval("document.querySelector('#time').offsetHeight")
	p.key("T")
	holds(p.eval("document.querySelector('#time').offsetHeight") < before / 2, "T folds it away")
	p.key("T")
	equal(p.eval("document.querySelector('#time').offsetHeight"), before, "and back")


def test_it_leaves_room(p):
	p.open()
	holds(p.eval("document.querySelector('#time').offsetHeight <= innerHeight * 0.36"),
			"not more than a third")


def test_marks(p):
	p.open()
	equal(p.eval("G.data.marks.map(m => m.name)"), ["#101", "#102", "#103", "#104"])
	p.key(".")
	equal(p.state("range"), [500_000_000, 2_000_000_000], "the first block")
	equal(p.total(), between(p, "cpu", 500_000_000, 2_000_000_000)["total"])
	p.key(".")
	equal(p.state("range"), [3_000_000_000, 4_500_000_000], "the next one")
	p.key(",")
	equal(p.state("range"), [500_000_000, 2_000_000_000], "and back")


def test_spans_of_a_node_do_not_hide_its_blocks(p):
	p.open()
	p.eval("""G.data.marks.unshift(...[["tx", 0, 1e6], ["tx", 2e6, 3e6], ["execute", 0, 9e9]].map(([kind, startNs, endNs]) =>
			({ name: kind, kind, startNs, endNs, thread: 0 })))""")
	equal(p.eval("G.markKinds()"), ["block", "execute", "tx"], "blocks, then those with the most time")
	p.key(".")
	equal(p.state("range"), [500_000_000, 2_000_000_000], "the first block, not the first span")


def test_range_by_keyboard(p):
	p.open()
	p.set(range=[2_000_000_000, 4_000_000_000])
	p.key("]")
	a, b = p.state("range")
	holds(a > 2e9 and abs(b - a - 2e9) < 1, f"{a} to {b}")
	p.key("[")
	equal(p.state("range"), [2_000_000_000, 4_000_000_000])


def test_a_zoomed_axis_follows_the_marks(p):
	p.open()
	p.key(".")
	p.key("z")
	equal(p.state("span"), [500_000_000, 2_000_000_000], "the axis is the first block")
	p.key(".")
	low, high = p.state("span")
	holds(low <= 3e9 and high >= 4.5e9 and high - low < 3e9, f"the next block is in sight: {low} to {high}")
