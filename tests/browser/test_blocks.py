"""Blocks: the table has what `gasflame blocks` says, a block that is chosen is the range everywhere."""
import json

import capture
from page import equal, holds
from test_views import heads, rows

SLOW = [970 + i for i in sorted(capture.SLOW_BY_LOCK + capture.SLOW_BY_GAS)]


def said(p):
	return json.loads(p.files.run("blocks", "--json", p.files.capture("chain")))


def block(p, number):
	return next(r for r in said(p)["rows"] if r["number"] == number)


def span(r):
	return [r["start_ns"], r["start_ns"] + r["wall_ns"]]


def test_table_has_what_the_command_says(p):
	p.open("chain")
	p.key("B")
	equal(p.state("view"), "blocks")
	report = said(p)
	by_number = {r["number"]: r for r in report["rows"]}
	shown = p.eval("G.test.blocks().rows")
	equal(len(shown), len(report["rows"]), "blocks")
	keys = p.eval("G.data.blocks.parts.map(p => p.key)")
	for r in shown:
		w = by_number[r["number"]]
		equal([r["gas"], r["transactions"], r["startNs"], r["wallNs"], r.get("reason")],
				[w["gas"], w["transactions"], w["start_ns"], w["wall_ns"], w["reason"]], f"block {r['number']}")
		equal(r["ns"], [w["split"][k + "_ns"] for k in keys], f"parts of {r['number']}")
	equal(sorted(r["number"] for r in shown if r.get("reason")), SLOW, "slow ones")
	equal(p.eval("G.data.blocks.difference"), report["difference"])
	walls = [r["wallNs"] for r in shown]
	equal(walls, sorted(walls, reverse=True), "slowest first")
	text = p.eval("document.querySelector('#view-blocks').innerText")
	holds(report["difference"].replace("`", "") in text, f"the difference: {text[:300]}")
	holds(any(r["reason"] and r["reason"][:30] in text for r in report["rows"]), "a reason is in sight")
	x, y = next(h for h in heads(p) if h[0].startswith("gas"))[1:]
	p.b.click(x, y)
	p.b.settle()
	gas = [r["gas"] for r in p.eval("G.test.blocks().rows")]
	equal(gas, sorted(gas, reverse=True), "by gas")


def test_a_block_that_is_chosen_is_the_range(p):
	p.open("chain")
	p.key("B")
	p.key("\\")
	p.b.type("977")
	p.key("Enter")
	equal([r["number"] for r in p.eval("G.test.blocks().rows")], [977], "found by its number")
	p.press("#view-blocks .grid-row .cell", "977")
	wanted = block(p, 977)
	equal(p.state("range"), span(wanted), "the range")
	chip = p.text("#chips button")
	holds(chip.startswith("block 977 · ") and "ms" in chip, f"the chip: {chip}")
	low, high = p.state("span")
	holds(low <= wanted["start_ns"] and high >= span(wanted)[1] and high - low < 1e9, f"the axis: {low} to {high}")
	equal(p.state("view"), "blocks", "the table stays")
	detail = p.text("#view-blocks aside")
	holds("locks" in detail and "node::state::Cache::get" in detail and "false" not in detail, f"what it was made of: {detail}")
	p.key("Enter")
	equal([p.state("view"), p.state("what")], ["flame", "wall"], "Enter opens its flame graph")
	holds(p.has("node::state::Cache::get"), "with the lock")
	p.key("Escape")
	equal([p.state("range"), p.state("span")], [None, None], "Esc: all of the time")


def test_next_and_previous_slow_block(p):
	p.open("chain")
	seen = []
	for _ in SLOW:
		p.key(")")
		seen.append(p.eval("G.blockOf(G.state.now.range).number"))
	equal(seen, SLOW, "by time, in the flame graph")
	p.key(")")
	holds("no further" in p.status(), p.status())
	p.key("(")
	equal(p.eval("G.blockOf(G.state.now.range).number"), SLOW[-2], "and back")


def test_scatter(p):
	p.open("chain", "view=blocks")
	points = p.eval("G.test.blocks().points")
	equal(sorted(d["number"] for d in points if d["kind"] == 2), [970 + i for i in capture.SLOW_BY_LOCK], "slow for their gas")
	equal(sorted(d["number"] for d in points if d["kind"] == 1), [970 + i for i in capture.SLOW_BY_GAS], "slow by more gas")
	x, y = p.eval("(() => { const r = document.querySelector('.scatter').getBoundingClientRect(); return [r.left, r.top]; })()")
	one = next(d for d in points if d["number"] == 977)
	p.b.click(x + one["x"], y + one["y"])
	p.b.settle()
	equal(p.eval("G.blockOf(G.state.now.range).number"), 977, "a click on a point")


def test_range_that_is_typed(p):
	p.open("chain")
	p.key("R")
	p.b.type("block 977")
	p.key("Enter")
	equal(p.state("range"), span(block(p, 977)), "block 977")
	p.key("R")
	p.eval("document.activeElement.value = ''")
	p.b.type("1.2s-2.5s")
	p.key("Enter")
	equal(p.state("range"), [1_200_000_000, 2_500_000_000])
	for text, wanted in (("500-700ms", [5e8, 7e8]), ("1s+20ms", [1e9, 1.02e9]), ("3.5s-", [3.5e9, 4e9]), ("-1s", [0, 1e9]),
			("#977", span(block(p, 977))), ("977", span(block(p, 977)))):
		got = p.eval(f"(r => r.block ? [r.block.startNs, r.block.startNs + r.block.wallNs] : r.range)(G.parseRange({json.dumps(text)}))")
		equal(got, wanted, text)
	for text in ("block 5", "12.3 apples", "3s-2s", "1e9-2", "1-2-3"):
		holds(p.eval(f"!!G.parseRange({json.dumps(text)}).error"), f"{text} is refused")
	p.key("R")
	p.eval("document.activeElement.value = ''")
	p.b.type("block 5")
	p.key("Enter")
	holds("not in this recording" in p.text(".panel"), p.text(".panel"))
	p.key("Escape")


def test_a_range_by_ticks_of_the_axis(p):
	p.open("chain")
	tick = p.eval("(() => { const a = G.test.time(); return a.tick(); })()")
	p.key("]")
	equal(p.state("range"), [0, tick], "the first tick")
	p.key("]")
	equal(p.state("range"), [tick, 2 * tick], "the next one")
	p.key("}")
	equal(p.state("range"), [tick, 3 * tick], "its end")
	p.key("[")
	equal(p.state("range"), [0, 2 * tick], "and back")


def test_the_verdict_leads_to_the_blocks(p):
	p.open("chain")
	p.press("#verdict .link", "The 5 slow of 40 blocks") if "slow of 40" in p.text("#verdict") else p.key("v")
	if p.state("view") == "overview":
		p.press("#view-overview .verdict .link", "The 5 slow of 40 blocks")
	equal(p.state("view"), "blocks")


def test_a_page_without_blocks_has_no_table_of_them(p):
	p.open("one")
	p.key("B")
	equal(p.state("view"), "flame")
	holds(not p.eval("!!document.querySelector('[data-view=blocks]')"), "no button")
