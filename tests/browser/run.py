#!/usr/bin/env python3
"""run.py GASFLAME [--browser NAME] [--shots FOLDER] [WORD...] - the pages in a real browser, feature by feature.

Runs each test_* of the files test_*.py here (with words: only those whose name has one of them), each on a page
that was opened for it, and prints a line for each as tests/system/lib.sh does. In Firefox only those marked as main
paths run. With --shots a picture of each failure is left in the folder.
"""
import argparse
import glob
import importlib
import os
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import browser
import page

failed = 0


def tests():
	for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
		module = importlib.import_module(os.path.basename(path)[:-3])
		for name, function in list(vars(module).items()):
			if name.startswith("test_") and callable(function):
				yield module.__name__[5:] + ": " + name[5:].replace("_", " "), function


def run_one(name, function, p, shots):
	"""A test may say by "skip: reason" that it does not apply."""
	global failed
	started = time.monotonic()
	try:
		p.b.errors()
		p.b.theme("light")
		p.b.resize(1280, 800)
		said = function(p)
		p.no_errors()
	except Exception as e: # whatever it is, the others still run
		failed += 1
		print(f"not ok - {p.b.name}: {name}")
		at = [f for f in traceback.extract_tb(e.__traceback__)
				if os.path.basename(f.filename).startswith("test_")]
		where = f" ({os.path.basename(at[-1].filename)}:{at[-1].lineno})" if at else ""
		print("#   " + (str(e) if isinstance(e, (page.Wrong,
				browser.Failed)) else repr(e)).replace("\n", "\n#   ")[:800] + where)
		if shots:
			try:
				p.b.screenshot(os.path.join(shots, f"{p.b.name}-{function.__name__}.png"))
			except (browser.Failed, OSError):
				pass
		return
	if isinstance(said, str) and said.startswith("skip: "):
		print(f"ok - {p.b.name}: {name} # SKIP {said[6:]}")
	else:
		print(f"ok - {p.b.name}: {name}")
	if os.environ.get("GASFLAME_TEST_TIMES"):
		print(f"#   {time.monotonic() - started:.2f} s")


def main():
	a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	a.add_argument("gasflame")
	a.add_argument("words", nargs="*")
	a.add_argument("--browser", choices=browser.PROGRAMS, action="append")
	a.add_argument("--shots")
	o = a.parse_intermixed_args()
	there = [n for n in o.browser or browser.PROGRAMS if n in browser.available()]
	for name in o.browser or browser.PROGRAMS:
		if name not in there:
			print(f"ok - {name} # SKIP it is not installed (Debian: {browser.PROGRAMS[name][0]})")
	if o.shots:
		os.makedirs(o.shots, exist_ok=True)
	with tempfile.TemporaryDirectory(prefix="gasflame-pages-") as folder:
		files = page.Files(os.path.abspath(o.gasflame), folder)
		for name in there:
			with browser.start(name) as b:
				p = page.Page(b, files)
				for title, function in tests():
					if o.words and not any(w in title or w in function.__name__
							for w in o.words):
						continue
					if name == "chromium" or getattr(function, "main_path", False):
						run_one(title, function, p, o.shots)
						sys.stdout.flush()
	return 1 if failed else 0 if there else 77


if __name__ == "__main__":
	sys.exit(main())
