"""What the sentences of the verdict open: the proof of a lock, of a leak and of a blocked worker, in full. test_driver.py counts the
actions."""
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


@main_path
def test_which_task_blocks_a_worker(p):
	p.open("tasks")
	p.key("a")
	shows(p, "task store::flush_loop", "Long polls", "10 times", "20.0 ms", "store::sync", "disk write 97.5 %", "2 queued")
	equal(p.eval("G.test.tasks()"), {"rows": ["store::flush_loop", "rpc::server::handle_connection", "store::actor::run", "metrics::tick"],
			"shown": "store::flush_loop"}, "the longest poll first")
	rows = p.eval("G.test.time().rows")
	equal([r["name"] for r in rows if r["type"] == "task"], ["rpc::server::handle_connection", "store::actor::run", "store::flush_loop", "metrics::tick"],
			"a strip for each type")
	p.press(".facts .link", "at 0.500 s")
	opened = p.state()
	equal([opened["view"], opened["what"], opened["range"], opened["threads"]], ["flame", "wall", [500_000_000, 520_000_000], [5000]], "its time and thread")
	holds({"store::flush_loop", "store::sync"} <= p.names() and not p.has("rpc::encode"), f"its stacks: {p.names()}")
	p.key("Escape")
	p.set(threads=None, range=None, span=None, view="table", what="cpu")
	# The same from the mark in the time area.
	area = p.eval("(({ left, width, rows }) => ({ left, width, y: rows.find(r => r.name === 'long poll').y }))(G.test.time())")
	p.b.click(area["left"] + area["width"] * 0.051, area["y"] + 8)
	p.b.settle()
	equal([p.state(k) for k in ("view", "what", "range", "threads")], [opened[k] for k in ("view", "what", "range", "threads")], "what a mark opens")


def test_who_wakes_a_task(p):
	p.open("tasks", "view=tasks&task=rpc::server::handle_connection")
	holds("woken by" in p.text("#view-tasks"), "its column")
	p.press(".facts .link", "task store::actor::run")
	equal(p.state("task"), "store::actor::run", "the chain goes on")
	p.press(".facts .link", "task rpc::server::handle_connection")
	equal(p.state("task"), "rpc::server::handle_connection", "and back, as each waits for the other")
	p.press(".wait-page .link", "its awaits")
	equal(p.total(), 16_000_000_000, "its awaits, all of them")
	holds({"task rpc::server::handle_connection", "store::actor::run", "tokio::sync::oneshot::Sender<T>::send"} <= p.names(), f"who ended them: {p.names()}")
	p.key("a")
	p.key("\\")
	p.b.type("TICK")
	p.b.settle()
	equal(p.eval("G.test.tasks().rows"), ["metrics::tick"], "only rows with the word")
	p.b.type("zzz")
	p.key("Enter")
	p.key("ArrowDown")
	equal(p.eval("G.test.tasks().rows"), [], "no row has that, and keys do nothing")
