"""What the sentences of the verdict open: the proof of a lock and of a leak, in full. test_driver.py counts the actions."""
from page import equal, holds, main_path


def shows(p, *words):
	"""All of the words are in the view that is shown."""
	shown = p.eval("document.querySelector('.view:not([hidden])').innerText")
	for w in words:
		holds(w in shown, f"{w!r} is not in {shown[:400]!r}")


@main_path
def test_who_holds_the_lock(p):
	p.open("locks")
	p.press("#verdict .link", "")
	s = p.state()
	equal([s["view"], s["site"]], ["waits", "lock cache::get"], "what the verdict opens")
	equal(s["range"], [2_000_000_000, 5_950_000_000], "the time in which it was")
	shows(p, "Who holds it", "flusher in cache::flush", "100 %", "60 waits", "150 ms on average", "worker × 3", "cache::encode")
	stack = p.eval("[...document.querySelectorAll('.stack li')].map(e => e.innerText)")
	equal(stack, ["_start", "flush_loop", "cache::flush", "pthread_mutex_unlock"], "the waker's stack")
	# The one that holds it waits itself: the chain goes on there.
	p.press(".step", "flusher")
	equal(p.state("site"), "disk-write store::sync", "the next wait of the chain")
	shows(p, "disk write under store::sync", "disk interrupt")
	p.key("z", "ctrl")
	p.press(".wait-page .link", "all stacks")
	holds({"worker", "serve", "cache::get", "__lll_lock_wait"} <= p.names(), f"callers stay: {p.names()}")
	holds(not p.has("store::sync"), "nothing else is there")
	equal(p.total(), 60 * 150_000_000, "all of these waits")


@main_path
def test_what_leaks(p):
	p.open("heap")
	p.press("#verdict .link", "Leak?")
	s = p.state()
	equal([s["view"], s["what"], s["fn"]], ["sandwich", "growth", "leaks"], "what the verdict opens")
	shown = p.eval("G.test.sandwich()")
	equal([c["name"] for c in shown["callers"]], ["main"], "its callers")
	equal(shown["total"], 6 << 20, "what it grew by since the first third")
	shows(p, "leaks", "main")


def test_the_heap_by_who_holds_it(p):
	p.open("heap", "view=overview")
	equal(p.eval("G.memory.holders().map(h => [h.name, h.end / 1048576, h.grew / 1048576])"),
			[["leaks", 10, 6], ["caches", 12, 0], ["buffers", 0, -8]], "what grows first")
	p.press(".holding .link", "leaks")
	equal([p.state("view"), p.state("what"), p.state("fn")], ["sandwich", "growth", "leaks"], "who calls it")


def test_waits_are_of_own_functions(p):
	"""The table of waits has no plumbing, unless it is asked for."""
	p.open("locks", "view=table&what=wait")
	names = [r["name"] for r in p.eval("G.test.table()") if r["self"]]
	equal(names, ["cache::get", "store::sync"], "own functions")
	p.press(".grid-bar button", "function")
	holds("io_schedule" in [r["name"] for r in p.eval("G.test.table()") if r["self"]], "all functions")
	p.key("Home")
	holds("100 % of self under cache::get" in p.status(), f"the own function above it: {p.status()}")
