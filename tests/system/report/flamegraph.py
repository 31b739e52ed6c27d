#!/usr/bin/env python3
"""flamegraph.py - what the tests of flamegraph need.

  flamegraph.py boxes FILE.svg             prints its boxes: title, depth, x, width, colour
  flamegraph.py same A.svg B.svg [colours] fails unless both have the same boxes at the same places
  flamegraph.py make KIND                  writes folded stacks of that kind to stdout

flamegraph.pl of Debian is older than the one that is followed: it writes < and > as ( and ), and keeps marks
like _[k], and has another grey for separators; that is evened out.
"""
import collections
import html
import random
import re
import sys

BOX = re.compile(r'<title>(.*?)</title>(?:<a [^>]*>)?\s*<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" '
                 r'height="([\d.]+)" fill="([^"]*)"', re.S)


def boxes(path):
	with open(path, encoding="utf-8", errors="replace") as f:
		found = [m.groups() for m in BOX.finditer(f.read())]
	root = [float(y) for title, _, y, _, _, _ in found if title.startswith("all (")]
	if len(root) != 1:
		sys.exit(f"{path}: {len(root)} roots")
	rows = [abs(float(b[2]) - root[0]) for b in found]
	row = min([r for r in rows if r > 0], default=1)
	out = []
	for (title, x, _, width, _, fill), above in zip(found, rows):
		title = html.unescape(title).replace("<", "(").replace(">", ")")
		title = re.sub(r"_\[[kwij]\] \(", " (", title, count=1)
		if title.startswith(("- (", "-- (")):
			fill = "grey"
		out.append((title, round(above / row), x, width, fill))
	return out


def rounds_alike(a, b):
	pattern = r"^(.*) \(([\d,]+) (\w+), ([\d.]+)%(.*)$"
	x, y = re.match(pattern, a), re.match(pattern, b)
	if not x or not y or (x[1], x[3], x[5]) != (y[1], y[3], y[5]):
		return False
	return abs(int(x[2].replace(",", "")) - int(y[2].replace(",", ""))) <= 1


def same(a, b, colours):
	first, second = (collections.Counter(x if colours else x[:4] for x in boxes(f)) for f in (a, b))
	print(f"{sum(first.values())} and {sum(second.values())} boxes")
	missing, added = sorted((first - second).elements()), sorted((second - first).elements())
	# Half a sample is rounded up or down: sums of decimals are not exact in Perl.
	for box in list(missing):
		near = [other for other in added if other[1:] == box[1:] and rounds_alike(box[0], other[0])]
		if near:
			missing.remove(box)
			added.remove(near[0])
	for sign, some in (("-", missing), ("+", added)):
		for box in some[:8]:
			print(sign, *box)
	return bool(missing or added)


def make(kind):
	rng = random.Random(kind)
	names = ["main", "f", "f1", "f10", "f2", "std::vec::Vec<T>::push", "std::vec", "operator<<", "a b",
	         "a b c", "x'y\"z", "a&b", "foo.part.0", "-", "--", "schedule_[k]", "Lorg/x", "日本", "",
	         "lambda(int)"]
	seen = set() # it takes only the first difference of a stack that is there twice
	while len(seen) < 400:
		stack = [rng.choice(names[:6])] + [rng.choice(names) for _ in range(rng.randrange(0, 12))]
		if not stack[-1]:
			stack[-1] = "leaf"
		if ";".join(stack) in seen:
			continue
		seen.add(";".join(stack))
		count = rng.randrange(1, 200)
		if kind == "fractions":
			count = f"{count}.{rng.randrange(100):02d}"
		elif kind == "differences":
			count = f"{rng.randrange(0, 200)} {count}"
		print(";".join(stack), count)
	if kind == "ill":
		print("no count here\n\na;b -5\na;b 1e3\n;;; 4\n 3")


if sys.argv[1] == "boxes":
	for box in boxes(sys.argv[2]):
		print(*box, sep="\t")
elif sys.argv[1] == "same":
	sys.exit(same(sys.argv[2], sys.argv[3], len(sys.argv) > 4))
else:
	make(sys.argv[2])
