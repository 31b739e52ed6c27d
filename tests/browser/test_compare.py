"""A part of a recording against the rest: the same statistics as `gasflame diff`, on the page."""
import json
import os

from page import equal, holds, near
from test_blocks import block, span
from test_diff import of_two
from test_views import rows

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "stats.json")


def test_statistics_are_those_of_the_recorder(p):
	"""The figures that tests/unit/stats/test_stats.c wrote."""
	p.open("one")
	with open(GOLDEN, encoding="utf-8") as f:
		wanted = json.load(f)
	got = p.eval(f"""(w => ({{ tP: w.tP.map(([t, df]) => G.stats.tP(t, df)), tBound: w.tBound.map(([p, df]) => G.stats.tBound(p, df)),
		q: [...G.stats.adjust(w.adjust.p)], spread: w.spread.map(s => G.stats.sumSpread(s.e)),
		sumDf: G.stats.sumDf(w.spread.map(s => G.stats.sumSpread(s.e))) }}))({json.dumps(wanted)})""")
	for (t, df, value), mine in zip(wanted["tP"], got["tP"]):
		near(mine, value, 1e-4 if df > 1e6 else 1e-6, f"P of t = {t}, df = {df}")
	for (_, df, value), mine in zip(wanted["tBound"], got["tBound"]):
		near(mine, value, 1e-5, f"the bound at df = {df}")
	for mine, value in zip(got["q"], wanted["adjust"]["q"]):
		near(mine, value, 1e-9, "q")
	for mine, value in zip(got["spread"], wanted["spread"]):
		near(mine["variance"], value["variance"], 1e-6, "variance")
		near(mine["df"], value["df"], 1e-6, "df")
	near(got["sumDf"], wanted["sumDf"], 1e-6, "df of a sum")


@of_two
def test_two_recordings_as_the_recorder_compares_them(p):
	"""Both sides of a diff are in its page, with their times: the page must find what src/analyze/diff/diff.c found."""
	got = p.eval("""(() => { const side = k => ({ spans: [[0, G.data.meta.durationNs]], thread: Uint8Array.from(G.data.threads, t => +(t.side === k)) });
		const d = G.compare.make(G.state.now, side(0), side(1)), { plain } = G.test;
		return { ...d, rows: d.rows.map(r => ({ ...r, self: plain(r.self), total: plain(r.total) })) }; })()""")
	wanted = p.eval("G.data.diff")
	names = p.eval("G.data.idents.name")
	near(got["scale"], wanted["scale"], 0.002, "the scale")
	mine = {r["ident"]: r for r in got["rows"]}
	compared = 0
	for w in wanted["rows"]:
		for part in "self", "total":
			a, b, what = mine[w["ident"]][part], w[part], f"{part} of {names[w['ident']]}"
			for k in "a", "b":
				near(a[k], b[k], 1e-6, f"{k}: {what}")
			equal(a["significant"], b["significant"], what)
			if b["a"] > 0.5:
				# Samples are in slots on the page: a few fall into the slice beside theirs.
				near(a["high"] - a["low"], b["high"] - b["low"], 0.1, f"the interval: {what}")
				holds(abs(a["delta"] - b["delta"]) < 0.2 * (b["high"] - b["low"]), f"the change: {what}")
				compared += 1
	holds(compared > 15, f"{compared} rows are heavy enough to be compared")
	holds(any(r["self"]["significant"] and names[r["ident"]] == "keccak::f1600" for r in got["rows"]), "the one that is slower")


def test_a_range_against_the_rest(p):
	p.open("chain")
	wanted = span(block(p, 977))
	p.set(range=wanted, what="wall")
	p.key("d")
	equal([p.state("view"), p.state("against")], ["diff", "rest"])
	said = p.text("#view-diff .said")
	holds(said.startswith("block 977 · ") and "against the rest of the time" in said, said)
	text = [" ".join(r) for r in rows(p)]
	holds(any("Cache::get" in r or "futex_wait" in r for r in text[:12]), f"the lock is among the first: {text[:12]}")
	# Values are those of the range and of all but the range.
	both = p.eval("(w => [w.all, w.allB])(G.model.weights(G.state.now))")
	whole = p.eval("G.model.weights({ ...G.state.now, range: null, against: '' }).all")
	part = p.eval("G.model.weights({ ...G.state.now, against: '' }).all")
	near(sum(both), whole, 1e-6, "both together")
	near(both[1], part, 0.02, "the range alone")
	p.key("b")
	equal(p.eval("G.colour.mode(G.state.now)"), "diff", "the flame graph is that of a diff")
	holds(p.has("node::state::Cache::get"), "with the lock")
	holds("against the rest" in p.text("#chips"), p.text("#chips"))
	p.key("Escape")
	equal([p.state("against"), p.state("range")], ["", wanted], "Esc takes the comparison away first")
	equal(p.eval("G.colour.mode(G.state.now)"), "cause")


def test_nothing_differs_and_what_would_have_shown(p):
	"""Two ranges of one steady load."""
	p.open("node", "what=cpu")
	p.set(range=[500_000_000, 2_000_000_000], view="diff", against="6500000000-9500000000")
	said = p.text("#view-diff .said")
	holds("Nothing differs beyond noise; a change of about" in said and "would have shown" in said, said)
	equal(p.eval("G.diffOf(G.state.now).rows.filter(r => r.self.significant || r.total.significant).length"), 0)


def test_slow_blocks_against_typical_ones(p):
	p.open("chain", "view=blocks")
	p.press("#view-blocks .grid-bar button", "slow against typical")
	equal([p.state("view"), p.state("against"), p.state("range")], ["diff", "typical", None])
	said = p.text("#view-diff .said")
	holds(said.startswith("5 slow blocks against ") and "typical blocks" in said, said)


def test_threads_against_the_others(p):
	p.open("node")
	p.set(threads=["engine"])
	p.key("d")
	said = p.text("#view-diff .said")
	holds("the chosen threads against all other threads" in said, said)
	shown = p.eval("G.test.diff()")
	only = [r["name"] for r in shown if r["onlyB"]]
	holds("execute_block" in only, only)


def test_nothing_to_compare_says_what_to_do(p):
	p.open("node")
	p.press("#bar button", "compare")
	holds("Choose a range" in p.text("#view-diff"), p.text("#view-diff"))
	p.set(range=[2_000_000_000, 3_000_000_000])
	holds("against the rest of the time" in p.text("#view-diff .said"), "a range is compared as soon as it is there")
	# Another range: this one is kept, the next one is compared with it.
	p.eval("""(() => { const s = document.querySelector("#view-diff select"); s.value = "2000000000-3000000000"; s.onchange(); })()""")
	p.b.settle()
	equal([p.state("against"), p.state("range")], ["2000000000-3000000000", None])
	p.set(range=[5_000_000_000, 6_000_000_000])
	holds("against 2" in p.text("#view-diff .said"), p.text("#view-diff .said"))
	p.open("one", "view=diff&against=typical")
	p.no_errors()
