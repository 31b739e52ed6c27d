#!/usr/bin/env python3
"""viewer.py [--gasflame PROGRAM] [--stacks N] [--slow] [--json FILE] - the page of a million stacks.

Makes folded stacks (stacks.py), has gasflame write the page, opens it in Chromium and measures: the size of the file,
seconds and memory of the C side, the time from opening the file to the first picture, and zooms, searches and other
changes of the view from the call to the painted frame. With --slow flamegraph.pl does the same stacks, which takes
minutes. One line a figure, with its limit where there is one; the status is 1 when a limit is exceeded.
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

FLAMEGRAPH = ("flamegraph.pl", "/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
# Runs before the page does: when the first picture was painted, in ms since the file was opened.
WATCH = """(() => { const wait = () => window.G && G.ready ? requestAnimationFrame(() => setTimeout(() =>
	window.firstPicture = performance.now())) : setTimeout(wait, 2); wait(); })()"""
# A change of the state, from the call to the painted frame.
CHANGE = """new Promise(done => { const t = performance.now(); G.state.set(%s);
	requestAnimationFrame(() => setTimeout(() => done(performance.now() - t))); })"""


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
	figures.add("gasflame report --format html", wall, "s", limits and 3)
	figures.add("  CPU time", cpu, "s")
	figures.add("  memory", rss, "MB", limits and 700)
	figures.add("  the page", os.path.getsize(page) / 1e6, "MB", limits and 20)


def paths(b):
	"""Boxes worth zooming to, wide and narrow."""
	return b.eval("""(() => { const out = []; let n = G.model.view(G.state.now);
		for (let d = 0; d < 12 && n.kids().length; d++) {
			n = n.kids().reduce((a, k) => k.width > a.width ? k : a);
			out.push(n.path());
		}
		return out; })()""")


def measure(b, label, patches, figures, limit):
	"""The slowest is what a person notices."""
	times = [b.eval(CHANGE % json.dumps(p)) for p in patches]
	figures.add(f"{label}, slowest of {len(times)}", max(times), "ms", limit)
	figures.add("  median", statistics.median(times), "ms")


def look(page, figures, limits):
	with browser.start("chromium") as b:
		b.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
		b.open("file://" + page, 120)
		b.wait("window.firstPicture", 120)
		figures.add("Chromium: first picture", b.eval("firstPicture") / 1000, "s", limits and 3)
		figures.add("  nodes", b.eval("G.data.tree.n"), "")
		figures.add("  memory of the script", b.eval("performance.memory.usedJSHeapSize") / 1e6, "MB")
		zooms = paths(b)
		measure(b, "zoom", [{"zoom": z} for z in zooms] + [{"zoom": []}], figures, limits and 100)
		words = ["state", "root", "keccak", "tokio", "nothing_matches_this", "s", "commit",
				"reth_trie", ""]
		measure(b, "search by text", [{"search": w} for w in words], figures, limits and 100)
		measure(b, "search by regex", [{"regex": True, "search": w} for w in ("^reth_.*root",
				"(seek|next)$", "tokio|hyper", "")], figures,
			limits and 100)
		measure(b, "invert, and back", [{"invert": True}, {"invert": False}], figures, None)
		measure(b, "hide, focus, collapse, and back", [{"hidden": [zooms[-1][-1]]}, {"hidden": []},
				{"focus": zooms[-1][-1]}, {"focus": None},
			{"collapse": True}, {"collapse": False}], figures, None)
		measure(b, "table, sandwich", [{"view": "table"}, {"view": "sandwich"}, {"view": "flame"}],
				figures, None)
		problems = b.errors()
		if problems:
			raise SystemExit("viewer: the page had errors: " + problems[0])


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


def main():
	a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	a.add_argument("--gasflame", default=os.path.join(HERE, "../build/src/cmd/gasflame"))
	a.add_argument("--stacks", type=int, default=1_000_000)
	a.add_argument("--input", help="folded stacks that are there already")
	a.add_argument("--slow", action="store_true", help="flamegraph.pl too")
	a.add_argument("--json", help="write the figures there as well")
	o = a.parse_args()
	figures, limits = Figures(), True if o.stacks == 1_000_000 else None
	with tempfile.TemporaryDirectory(prefix="gasflame-viewer-") as folder:
		stacks, page = o.input or os.path.join(folder, "stacks.folded"), os.path.join(folder,
				"page.html")
		if not o.input:
			with open(stacks, "wb") as f:
				run([sys.executable, os.path.join(HERE, "stacks.py"), "--stacks",
						str(o.stacks)], stdout=f)
		figures.add("input, folded", os.path.getsize(stacks) / 1e6, "MB")
		write_page(os.path.abspath(o.gasflame), stacks, page, figures, limits)
		if "chromium" in browser.available():
			look(page, figures, limits)
		else:
			print("chromium is not installed: the page was not looked at")
		if o.slow:
			perl(stacks, os.path.join(folder, "picture.svg"), figures)
	if o.json:
		with open(o.json, "w", encoding="utf-8") as f:
			json.dump(figures.rows, f, indent=1)
	return 1 if figures.exceeded else 0


if __name__ == "__main__":
	sys.exit(main())
