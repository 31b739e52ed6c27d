#!/usr/bin/env python3
"""speedscope.py FOLDER FILE... - loads files into speedscope's own page, in Chromium, and prints what it shows of each as JSON:
the text of the page, and the rows of its tables of profiles and functions, as they are written.

FOLDER is that of speedscope's index.html (tools/speedscope).
"""
import argparse
import base64
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser

ROWS = """[...document.querySelectorAll('table tr')].map(r => [...r.querySelectorAll('td')].map(c => c.innerText.trim()))
	.filter(c => c.length >= 3)"""


def wait_for(b, js, seconds=60):
	end = time.monotonic() + seconds
	while time.monotonic() < end:
		value = b.eval(js)
		if value:
			return value
		time.sleep(0.05)
	raise browser.Failed("waited in vain for " + js + ": " + b.eval("document.body.innerText")[:300])


def show(b, folder, path, picture):
	with open(path, "rb") as f:
		data = base64.b64encode(f.read()).decode()
	# As speedscope's own program does it: a page of a file may load a script, and no other file.
	script = os.path.join(b.folder, "load.js")
	with open(script, "w", encoding="utf-8") as f:
		f.write(f"speedscope.loadFileFromBase64({json.dumps(os.path.basename(path))}, {json.dumps(data)})")
	b.open("file://" + os.path.join(folder, "index.html") + "#localProfilePath=" + script)
	wait_for(b, "document.body.innerText.includes('Sandwich')")
	if picture:
		b.screenshot(f"{picture}/{os.path.basename(path)}.png")
	b.key("3") # the sandwich view has a table of functions
	return {"rows": wait_for(b, f"(r => r.length ? r : null)({ROWS})"), "text": b.eval("document.body.innerText")[:500]}


def main():
	a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	a.add_argument("folder")
	a.add_argument("files", nargs="+")
	a.add_argument("--pictures")
	o = a.parse_args()
	with browser.start("chromium", 1280, 800) as b:
		print(json.dumps({os.path.basename(f): show(b, o.folder, f, o.pictures) for f in o.files}))


if __name__ == "__main__":
	try:
		main()
	except browser.Failed as e:
		sys.exit(f"speedscope.py: {e}")
