"""The page of a heap: what was alive at any moment, what grew between two, what stands out."""
from page import equal, holds, main_path

MB = 1 << 20


def weights(p, **state):
	"""MB of each function under a state, whatever is shown."""
	p.eval("G.state.set(" + str({"what": "growth", **state}).replace("None", "null") + ")")
	p.b.settle()
	return p.eval("""(() => { const w = G.model.weights(G.state.now), t = G.data.tree, out = {};
		for (let i = 1; i < t.n; i++)
			if (w.self[i])
				out[G.data.idents.name[t.ident[i]]] = Math.round(w.self[i] / 1048576);
		return out; })()""")


def seconds(a, b):
	return [int(a * 1e9), int(b * 1e9)]


@main_path
def test_the_heap_at_any_moment(p):
	p.open("heap")
	equal(weights(p, range=seconds(0, 0.5)), {"leaks": 1, "caches": 4, "buffers": 8}, "alive after half a second")
	equal(weights(p, range=seconds(0, 1)), {"leaks": 1, "caches": 4}, "alive after a second")
	equal(weights(p, range=seconds(0, 10)), {"leaks": 10, "caches": 12}, "alive at the end")
	equal(weights(p, range=None), {"leaks": 10, "caches": 12}, "without a range")


def test_growth_between_two_moments(p):
	p.open("heap")
	equal(weights(p, range=seconds(5, 10)), {"leaks": 5}, "what grew in the second half")
	# What was freed meanwhile and allocated before is not less than nothing.
	equal(weights(p, range=seconds(0.6, 0.9)), {}, "where only frees are")
	equal(weights(p, what="freed", range=None), {"buffers": 80}, "what was freed")


def test_what_can_be_weighed_of_a_heap(p):
	p.open("heap")
	equal(p.eval("G.model.whats().map(w => w.key)"), ["heap", "growth", "alloc", "temporary", "freed"], "the choice")
	equal(p.eval("G.curves().map(c => c.name)"), ["heap.live", "mem.rss", "pressure.cpu.some"], "the series")


def test_rss_adds_up(p):
	p.open("heap", "view=overview")
	text = p.eval("[...document.querySelectorAll('.overview .hottest')].map(e => e.innerText).join(' ')").replace("\u2003", "")
	holds("Resident memory" in p.eval("document.querySelector('.overview').innerText"), "there is no table")
	for words in ("9.00 MB heap 50.0 %", "6.00 MB mapped files 33.3 %", "5.00 MB /lib/<b>lib", "1.00 MB stacks 5.6 %"):
		holds(words in " ".join(text.split()), f"{words!r} is not in {text!r}")


def test_the_verdict_of_a_heap(p):
	p.open("heap")
	found = p.eval("G.data.verdict.filter(v => v.text.startsWith('Leak?'))")
	holds(found and "`leaks`" in found[0]["text"], "the leak is not named")
	p.eval("G.follow(G.data.verdict.find(v => v.text.startsWith('Leak?')).state)")
	p.b.settle()
	equal([p.state("view"), p.state("what"), p.state("fn"), p.state("range")],
			["sandwich", "growth", "leaks", [3_333_333_333, 10_000_000_000]], "where it leads to")
	holds("--what" not in p.eval("G.data.verdict.map(v => v.text + v.advice).join(' ')"), "no options of the command line")
