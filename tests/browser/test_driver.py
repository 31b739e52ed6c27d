"""What people open the page for, done by a driver as a person would do it: how many actions, how long.

A task is a line of TASKS: what is asked, the capture and what of it is opened, how many actions it may take, and a function that
does it with a Hand and gives the answer as text. An action is a click, a drag, or a word that is typed with its Enter, from the
opened page on; the answer must be in sight. The first five are the questions of a newcomer.

	def leaks(h):
		h.click("#verdict .link", "leaks")
		return h.seen("#main")
"""
import re
import time

from page import Wrong, holds, main_path
from test_diff import opened


class Hand:
	"""Counts what is done, and the time until it is drawn."""

	def __init__(self, p):
		self.p, self.actions, self.spent, self.did = p, 0, 0.0, []

	def count(self, what, act):
		started = time.monotonic()
		act()
		self.p.b.settle()
		self.spent += time.monotonic() - started
		self.actions += 1
		self.did.append(what)

	def key(self, name):
		self.count(name, lambda: self.p.b.key(name))

	def type(self, text):
		"""Into what has the focus, and Enter: one action."""
		def act():
			self.p.b.type(text)
			self.p.b.key("Enter")
		self.count(f"“{text}”", act)

	def click(self, selector, words=""):
		self.count(f"click {words or selector}", lambda: self.p.press(selector, words))

	def drag(self, seconds):
		from test_time import drag
		self.count("drag", lambda: drag(self.p, *seconds))

	def seen(self, selector):
		"""The text that is in sight there: no more than a person sees without scrolling."""
		return self.p.eval(f"""(() => {{ const out = [], root = document.querySelector({selector!r});
			const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
			for (let n; n = walk.nextNode();) {{
				const e = n.parentElement, r = e.getBoundingClientRect();
				if (r.width && r.height && r.top < innerHeight && r.bottom > 0 && r.left < innerWidth && e.checkVisibility())
					out.push(n.textContent);
			}}
			return out.join(" "); }})()""")

	def boxes(self):
		"""Names of the boxes of the flame graph that are wide enough to be read."""
		return " ".join(b["name"] for b in self.p.boxes() if b["w"] > 60)


def hottest(h):
	h.key("t")
	return h.seen("#view-table")


def callers(h):
	h.key("t")
	h.key("Enter")
	return h.seen("#view-sandwich")


def slow_block(h):
	h.key("B")
	h.click("#view-blocks .grid-row .cell", "977")
	return h.seen("#view-blocks aside")


def named_block(h):
	h.key("R")
	h.type("block 977")
	return h.seen("#chips") + h.boxes()


def next_slow(h):
	h.key(")")
	return h.seen("#chips") + h.seen("#status")


def changed(h):
	h.click("#verdict .link")
	return h.seen("#view-diff")


def changed_here(h):
	h.drag((3.9, 6.1))
	h.key("d")
	return h.seen("#view-diff")


def block_against_rest(h):
	h.key(")")
	h.key("d")
	return h.seen("#view-diff")


def typical(h):
	h.key("B")
	h.click("#view-blocks .grid-bar button", "slow against typical")
	return h.seen("#view-diff")


def holder(h):
	h.click("#verdict .link")
	return h.seen("#main")


def leak(h):
	h.click("#verdict .link", "Leak?")
	return h.seen("#main")


def waits(h):
	h.key("W")
	return h.seen("#main")


def blocker(h):
	h.click("#verdict .link", "A worker of the async runtime was blocked")
	return h.seen("#view-tasks")


def link(h):
	h.key("R")
	h.type("block 977")
	return h.p.eval("location.hash")


# Question, capture, most actions, how, what the answer must have.
TASKS = [
	("what is hot?", "node", 3, hottest, r"keccak::f1600"),
	("why is this block slow?", "chain", 3, slow_block, r"Slow: .* in locks.*node::state::Cache::get"),
	("who holds the lock?", "locks", 3, holder, r"Who holds it.*flusher.*cache::flush"),
	("what leaks?", "heap", 3, leak, r"leaks.*callers.*main"),
	("what changed?", "diff", 3, changed, r"keccak::f1600"),
	("the hottest function and its callers", "node", 2, callers, r"keccak::f1600.*callers.*revm::instructions::keccak256"),
	("block 977 by its number", "chain", 2, named_block, r"block 977 · .*evm::keccak256"),
	("the next slow block", "chain", 1, next_slow, r"block 977 · .*slow: .* in locks"),
	("what changed in this range?", "node", 2, changed_here, r"against the rest of the time: "),
	("a block against the rest", "chain", 2, block_against_rest, r"block 977 .* against the rest of the time: "),
	("slow blocks against typical ones", "chain", 2, typical, r"5 slow blocks against \d+ typical blocks"),
	("who waits, and for what?", "node", 1, waits, r"mdbx_txn_commit.*disk write"),
	("which task blocks a worker?", "tasks", 3, blocker, r"task\s+store::flush_loop.*Long polls.*20\.0 ms.*store::sync.*disk write 97"),
	("a link to a block", "chain", 2, link, r"range="),
]


def run(p, question, capture, most, how, answer):
	p.b.resize(1280, 720)
	if capture == "diff":
		opened(p)
	else:
		p.open(capture)
	h = Hand(p)
	text = how(h)
	print(f"#   {question:40} {h.actions} action{'s' if h.actions != 1 else ' '}  {h.spent * 1000:6.0f} ms  {', '.join(h.did)}")
	holds(h.actions <= most, f"{question} took {h.actions} actions, not {most}: {h.did}")
	if not re.search(answer, text, re.S):
		raise Wrong(f"{question} after {', '.join(h.did)} there is no {answer!r}: {text[:400]}")


def as_test(task):
	def test(p):
		run(p, *task)
	test.__name__ = "test_" + re.sub(r"\W+", "_", task[0]).strip("_")
	return main_path(test)


for _task in TASKS:
	globals()[as_test(_task).__name__] = as_test(_task)
