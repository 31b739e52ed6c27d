#!/usr/bin/env python3
"""viewer.py [--gasflame PROGRAM] [--only CASE] [--stacks N] [--slow] [--json FILE] - what large pages take.

Four pages: of a million folded stacks (stacks.py), of a recording of four minutes (longcapture), of 5,000 threads, and of
40,000 functions of which a part is compared with the rest. Of each: the size of the file, seconds and memory of the C
side, the time from opening the file to the first picture, and changes of the view. A change is measured twice: from the
call to the painted frame, and as the CPU time of the page's own thread, which does not depend on what else the machine
does; limits are of the latter. With --slow flamegraph.pl does the same stacks, which takes minutes. One line a figure, with
its limit where there is one; the status is 1 when a limit is exceeded.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/browser"))
import browser
import capture

FLAMEGRAPH = ("flamegraph.pl", "/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
# Runs before the page does: when the first picture was painted, in ms since the file was opened.
WATCH = """(() => { const wait = () => window.G && G.ready ? requestAnimationFrame(() => setTimeout(() =>
	window.firstPicture = performance.now())) : setTimeout(wait, 2); wait(); })()"""
# An action, from the call to the painted frame.
ACT = """new Promise(done => { const t = performance.now(); %s;
	requestAnimationFrame(() => setTimeout(() => done(performance.now() - t))); })"""
ANY_MS, FIRST_S, RECORDING_S = 100, 1, 1.5


class Figures:
	def __init__(self):
		self.rows, self.exceeded = [], False

	def add(self, what, value, unit, limit=None):
		over = limit is not None and value > limit
		self.exceeded |= over
		self.rows.append({"what": what, "value": round(value, 3), "unit": unit, "limit": limit})
		number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
		print(f"{what:52} {number:>10} {unit}" + ("" if limit is None
				else f"   (at most {limit:g}{', EXCEEDED' if over else ''})"))
		sys.stdout.flush()


def run(command, **options):
	"""Seconds, CPU seconds and the largest RSS in MB of a program that must succeed."""
	started = time.monotonic()
	p = subprocess.Popen(command, **options)
	_, status, usage = os.wait4(p.pid, 0)
	if status:
		raise SystemExit(f"viewer: {' '.join(command[:3])} … ended with {os.waitstatus_to_exitcode(status)}")
	return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def write_page(gasflame, stacks, page, figures, limits):
	quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
	command = [gasflame, "report", "--format", "html", "-o", page, stacks]
	wall, cpu, rss = run(command, **quiet)
	figures.add("gasflame report --format html", wall, "s", 3 if limits else None)
	figures.add("  CPU time", cpu, "s")
	figures.add("  memory", rss, "MB", 700 if limits else None)
	figures.add("  the page", os.path.getsize(page) / 1e6, "MB", 20 if limits else None)


def paths(b):
	"""Boxes worth zooming to, wide and narrow."""
	return b.eval("""(() => { const out = []; let n = G.model.view(G.state.now);
		for (let d = 0; d < 12 && n.kids().length; d++) {
			n = n.kids().reduce((a, k) => k.width > a.width ? k : a);
			out.push(n.path());
		}
		return out; })()""")


def cpu_ms(b):
	"""CPU time of the page's main thread so far."""
	metrics = b.call("Performance.getMetrics")["metrics"]
	return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def act(b, js):
	"""Milliseconds of wall and of CPU time."""
	before = cpu_ms(b)
	wall = b.eval(ACT % js)
	return wall, cpu_ms(b) - before


def measure(b, label, actions, figures, limit=ANY_MS):
	"""Actions are changes of the state, or JavaScript. The slowest is what a person notices."""
	times = [act(b, a if isinstance(a, str) else f"G.state.set({json.dumps(a)})") for a in actions]
	slowest = max(range(len(times)), key=lambda i: times[i][1])
	figures.add(f"{label}, slowest of {len(times)}, CPU", times[slowest][1], "ms", limit)
	if len(times) > 1:
		figures.add("  median", statistics.median(t[1] for t in times), "ms")
	figures.add(f"  to the painted frame, at most ({str(actions[slowest])[:60]})", max(t[0] for t in times), "ms")


def first_picture(b, page, figures, limit):
	b.call("Performance.enable", timeDomain="threadTicks")
	b.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
	before = cpu_ms(b)
	b.open("file://" + page, 120)
	b.wait("window.firstPicture", 120)
	figures.add("first picture, CPU", max(0, cpu_ms(b) - before) / 1000, "s", limit)
	figures.add("  from opening the file", b.eval("firstPicture") / 1000, "s")
	figures.add("  nodes", b.eval("G.data.tree.n"), "")
	figures.add("  memory of the script", b.eval("performance.memory.usedJSHeapSize") / 1e6, "MB")


def look(page, figures, first_s, changes):
	"""changes(b, figures) does them."""
	with browser.start("chromium") as b:
		first_picture(b, page, figures, first_s)
		changes(b, figures)
		problems = b.errors()
		if problems:
			raise SystemExit("viewer: the page had errors: " + problems[0])


WORDS = ["state", "root", "keccak", "tokio", "nothing_matches_this", "s", "commit", "reth_trie", ""]


def changes_of_stacks(b, figures):
	zooms = paths(b)
	measure(b, "zoom", [{"zoom": z} for z in zooms] + [{"zoom": []}], figures)
	measure(b, "search by text", [{"search": w} for w in WORDS], figures)
	measure(b, "search by regex", [{"regex": True, "search": w} for w in ("^reth_.*root", "(seek|next)$", "tokio|hyper", "")], figures)
	measure(b, "invert, and back", [{"invert": True}, {"invert": False}], figures)
	measure(b, "hide, focus, collapse, and back", [{"hidden": [zooms[-1][-1]]}, {"hidden": []}, {"focus": zooms[-1][-1]},
		{"focus": None}, {"collapse": True}, {"collapse": False}], figures)
	measure(b, "overview, table, sandwich", [{"view": "overview"}, {"view": "table"}, {"view": "sandwich"}, {"view": "flame"}], figures)


def changes_of_recording(b, figures):
	end = b.eval("G.data.meta.durationNs")
	zooms = paths(b)
	measure(b, "zoom", [{"zoom": z} for z in zooms[:6]] + [{"zoom": []}], figures)
	measure(b, "search by text", [{"search": w} for w in ("f", "func", "7", "nothing_matches_this", "")], figures)
	measure(b, "range", [{"range": [int(end * x), int(end * (x + w))]} for x, w in ((.1, .01), (.3, .1), (.2, .5), (.5, .5))] +
		[{"range": None}], figures)
	measure(b, "one thread, one cause, and back", ["G.state.set({ threads: [G.data.threads[0].name] })", {"threads": None},
		{"causes": ["cpu"]}, {"causes": None}], figures)
	measure(b, "what is weighed", ["G.state.set({ what: G.model.whats()[%d].key })" % i for i in (1, 2, 0)], figures)
	measure(b, "overview, waits, table, blocks", [{"view": v} for v in ("overview", "waits", "table", "blocks", "flame")], figures)
	measure(b, "a range against the rest", [{"range": [int(end * .3), int(end * .5)]}, {"view": "diff", "against": "rest"}], figures)


def changes_of_threads(b, figures):
	box = "[...document.querySelectorAll('.panel .checks')[0].querySelectorAll('input')][%d].click()"
	find = "(i => { i.value = '%s'; i.oninput(); })(document.querySelector('.panel input[type=text]'))"
	measure(b, "the panel of filters", ["G.bar.filters()"], figures)
	measure(b, "a thread found by name", [find % w for w in ("4", "worker-4999", "")], figures)
	measure(b, "a box ticked", [box % i for i in (0, 0)] + [find % "99"] + [box % i for i in (0, 1, 2, 0)], figures)
	b.eval("G.close(), G.state.set({ threads: null })")
	measure(b, "threads one by one, and by pattern", [{"group": "each"}, {"group": "name"}], figures)
	measure(b, "overview, table of threads", [{"view": "overview"}, {"view": "table", "by": "thread"}, {"view": "flame"}], figures)


def changes_of_functions(b, figures):
	end = b.eval("G.data.meta.durationNs")
	rest = {"view": "diff", "against": "rest"}
	measure(b, "a range against the rest", [{"range": [int(end * .3), int(end * .5)], **rest}, {"range": [int(end * .1), int(end * .2)]}], figures)
	measure(b, "the rows sorted, searched, as rates", [{"diffsort": "name"}, {"filter": "leaf_1"}, {"filter": ""}, {"normalized": False}], figures)
	measure(b, "the flame graph of both", [{"view": "flame"}], figures)


def perl(stacks, svg, figures):
	script = next((p for p in FLAMEGRAPH if shutil.which(p) or os.path.exists(p)), None)
	if not script:
		print("flamegraph.pl is not installed (Debian: libdevel-nytprof-perl)")
		return
	with open(svg, "wb") as out:
		wall, _, rss = run(["perl", shutil.which(script) or script, stacks], stdout=out,
				stderr=subprocess.DEVNULL)
	figures.add("flamegraph.pl", wall, "s")
	figures.add("  memory", rss, "MB")
	figures.add("  the picture", os.path.getsize(svg) / 1e6, "MB")


def make_functions(path, functions=40_000):
	"""As many functions as a large program has, with times: two of a hundred are slower in a fifth of the time."""
	c = capture.Capture("functions", 60)
	cpu = c.event("cpu", "ns", "CPU time, sampled at 999 Hz", 1001001)
	threads = [c.thread(f"worker-{i}") for i in range(8)]
	for i in range(functions):
		stack = c.stack("main", f"service_{i % 17}", f"handler_{i % 1931}", f"leaf_{i}")
		for k in range(1 + 200 // (1 + i % 997)):
			at = (i * 7919 + k * 104729) % 60000 / 1000
			for _ in range(2 if i % 50 == 0 and 18 <= at < 30 else 1):
				c.sample(cpu, threads[i % 8], at, stack)
	c.save(path)


def make_input(case, o, folder):
	"""What gasflame report reads."""
	path = os.path.join(folder, case + (".folded" if case == "stacks" else ".gasflame"))
	if case == "stacks":
		if o.input:
			return o.input
		with open(path, "wb") as f:
			run([sys.executable, os.path.join(HERE, "stacks.py"), "--stacks", str(o.stacks)], stdout=f)
	elif case == "recording":
		build = os.path.join(os.path.dirname(o.gasflame), "../..")
		run(["ninja", "-C", build, "bench/longcapture"], stdout=subprocess.DEVNULL)
		run([os.path.join(build, "bench/longcapture"), path, "4"], stdout=subprocess.DEVNULL)
	elif case == "threads":
		capture.threads(path, 5000)
	else:
		make_functions(path)
	return path


CASES = {"stacks": ("1,000,000 stacks", FIRST_S, changes_of_stacks), "recording": ("four minutes", RECORDING_S, changes_of_recording),
	"threads": ("5,000 threads", FIRST_S, changes_of_threads), "functions": ("40,000 functions", FIRST_S, changes_of_functions)}


def main():
	a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	a.add_argument("--gasflame", default=os.path.join(HERE, "../build/src/cmd/gasflame"))
	a.add_argument("--only", action="append", choices=CASES)
	a.add_argument("--stacks", type=int, default=1_000_000)
	a.add_argument("--input", help="folded stacks that are there already")
	a.add_argument("--keep", help="a folder for inputs and pages; those that are there are used again")
	a.add_argument("--slow", action="store_true", help="flamegraph.pl too")
	a.add_argument("--json", help="write the figures there as well")
	o = a.parse_args()
	o.gasflame = os.path.abspath(o.gasflame)
	sys.argv[1:] = [o.gasflame] # of which capture.py takes the schema
	figures = Figures()
	with tempfile.TemporaryDirectory(prefix="gasflame-viewer-") as folder:
		for case in o.only or CASES:
			title, first_s, changes = CASES[case]
			print(f"--- {title}")
			page = os.path.join(o.keep or folder, case + ".html")
			if not o.keep or not os.path.exists(page):
				data = make_input(case, o, o.keep or folder)
				figures.add("input", os.path.getsize(data) / 1e6, "MB")
				write_page(o.gasflame, data, page, figures, case == "stacks" and o.stacks == 1_000_000)
			if "chromium" in browser.available():
				look(os.path.abspath(page), figures, first_s, changes)
			else:
				print("chromium is not installed: the page was not looked at")
		if o.slow:
			perl(make_input("stacks", o, folder), os.path.join(folder, "picture.svg"), figures)
	if o.json:
		with open(o.json, "w", encoding="utf-8") as f:
			json.dump(figures.rows, f, indent=1)
	return 1 if figures.exceeded else 0


if __name__ == "__main__":
	sys.exit(main())
