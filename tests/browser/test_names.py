"""Names, numbers, links and crates as the page writes them; most are functions of their arguments alone."""
import json
import os

from page import equal, holds


def each(p, function, cases):
	arguments = json.dumps([c[:-1] for c in cases])
	got = p.eval(f"({arguments}).map(a => G.model.{function}(...a))")
	for case, text in zip(cases, got):
		equal(text, case[-1], f"{function}{case[:-1]}")


def test_short_names(p):
	"""Arguments go first, then the left of the path; the last part stays whole as long as it fits. test_label.c has the
	same cases."""
	p.open()
	with open(os.path.join(os.path.dirname(__file__), "..", "golden", "shortnames.tsv"), encoding="utf-8") as cases:
		rows = [line.rstrip("\n").split("\t") for line in cases]
	each(p, "shortName", [(name, int(columns), text) for name, columns, text in rows])


def test_numbers(p):
	"""A unit always, three digits, thousands apart."""
	p.open()
	each(p, "format", [
		(0, "ns", "0 ns"), (999, "ns", "999 ns"), (1000, "ns", "1.00 µs"), (3214567890, "ns", "3.21 s"),
		(999600, "ns", "1.00 ms"), (45.1e9, "ns", "45.1 s"), (1234e9, "ns", "1,234 s"), (-5e6, "ns", "−5.00 ms"),
		(512, "bytes", "512 B"), (1048576, "bytes", "1.00 MB"), (4.78e6, "bytes", "4.56 MB"),
		(118204, "count", "118,204"), (7, "count", "7"), (2.5, "count", "2.50"),
	])
	each(p, "percent", [(0.124, "12.4 %"), (1, "100 %"), (0.0004, "0.04 %"), (1e-9, "<0.01 %"), (0, "0 %"), (-0.5, "−50.0 %")])
	each(p, "plural", [(1, "sample", "1 sample"), (1200, "sample", "1,200 samples")])


def test_links_are_short(p):
	"""A zoom thirty functions deep, with long names, is still a link that one can paste."""
	p.open()
	names = [f"crate::module::Type<alloc::vec::Vec<u8>>::function_{i}" for i in range(30)]
	fragment = p.eval(f"G.state.fragment({{...G.state.now, zoom: {names!r}}})")
	holds(len(fragment) < 400, fragment)
	holds(p.eval(f"G.state.parse({fragment!r}).zoom.every((z, i) => G.state.means(z, {names!r}[i]))"), "it means the same")


def test_colours_by_crate(p):
	"""Each of the heaviest crates has a colour of its own, in the legend and in the boxes; the rest share one."""
	p.open()
	p.set(colour="crate")
	legend = dict(p.eval("[...document.querySelectorAll('#swatches span')].map(e => [e.textContent, e.firstChild.style.background])"))
	holds("other" in legend and "reth_db" in legend, str(legend))
	equal(len(set(legend.values())), len(legend), "colours")
	colour = """(() => {
		const fill = G.colour.scheme(G.state.now, G.model.weights(G.state.now)).fill, e = document.createElement("i");
		e.style.background = fill({ ident: G.data.idents.name.indexOf("reth_db::cursor::seek") });
		return e.style.background;
	})()"""
	equal(p.eval(colour), legend["reth_db"])
	p.b.click_on('select[aria-label="colour"]')
	equal(p.eval("[...document.querySelector('select[aria-label=\"colour\"]').options].map(o => o.value)"),
		["auto", "kind", "module", "crate", "subsystem", "cause"])
