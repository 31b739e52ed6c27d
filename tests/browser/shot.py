#!/usr/bin/env python3
"""shot.py - a picture of a page, for people to look at.

	tests/browser/shot.py URL|FILE OUT.png [--dark] [--firefox] [--size 1280x800] [--wait JS] [--eval JS]...
		[--key NAME]... [--click X,Y]... [--move X,Y]... [--drag X1,Y1,X2,Y2]... [--type TEXT]...

Actions happen in the order in which they are given; what --eval gives is printed, as are errors of the page.
A key is "a", "Enter", "ctrl+z", "shift+F3".
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser


class Action(argparse.Action):
	def __call__(self, parser, namespace, values, option=None):
		namespace.actions = (namespace.actions or []) + [(self.dest, values)]


def numbers(text):
	return [float(n) for n in text.split(",")]


def perform(b, what, value):
	if what == "eval":
		print(json.dumps(b.eval(value), ensure_ascii=False))
	elif what == "key":
		*modifiers, name = value.split("+") if len(value) > 1 else [value]
		b.key(name, *modifiers)
	elif what == "type":
		b.type(value)
	else:
		getattr(b, what)(*numbers(value))
	b.settle()


def main():
	p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	p.add_argument("url")
	p.add_argument("out")
	p.add_argument("--dark", action="store_true")
	p.add_argument("--firefox", action="store_true")
	p.add_argument("--size", default="1280x800")
	p.add_argument("--wait", help="until this is true; by default until G.data is there, where G is")
	p.set_defaults(actions=[])
	for name in ("eval", "key", "click", "doubleclick", "rightclick", "move", "drag", "wheel", "type"):
		p.add_argument("--" + name, action=Action)
	o = p.parse_args()
	url = o.url if "://" in o.url else "file://" + os.path.abspath(o.url)
	width, height = map(int, o.size.split("x"))
	with browser.start("firefox" if o.firefox else "chromium", width, height) as b:
		b.theme("dark" if o.dark else "light")
		b.open(url)
		try:
			b.wait(o.wait or "typeof G == 'undefined' || G.data", 20)
			b.settle()
			for what, value in o.actions:
				perform(b, what, value)
		except browser.Failed as e:
			print(f"shot: {e}", file=sys.stderr)
		b.screenshot(o.out)
		problems = b.errors()
	for problem in problems:
		print("page:", problem, file=sys.stderr)
	return 1 if problems else 0


if __name__ == "__main__":
	sys.exit(main())
