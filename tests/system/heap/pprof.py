#!/usr/bin/env python3
"""pprof.py DUMP OUT [file [wrong]] - a heap dump of jemalloc as nodes offer it over HTTP: unbiased, pprof's protobuf, gzipped.

"file": addresses are those of the mapped files, as newer nodes have it, and build-ids are told; "wrong": those of another build.
"""
import gzip
import math
import re
import subprocess
import sys


def varint(x):
	out = b""
	while x > 127:
		out += bytes([x & 127 | 128])
		x >>= 7
	return out + bytes([x])


def number(field, x):
	return varint(field << 3) + varint(x)


def message(field, data):
	return varint(field << 3 | 2) + varint(len(data)) + data


def readelf(option, path):
	return subprocess.run(["readelf", option, path], capture_output=True, text=True, check=False).stdout


def segments(path):
	"""(offset, address, size) of what is loaded."""
	found = re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", readelf("-lW", path))
	return [tuple(int(x, 16) for x in f) for f in found]


def build_id(found, of_file):
	if "wrong" in sys.argv:
		return "00" * 20
	return found.group(1) if found and of_file else ""


def main():
	of_file = len(sys.argv) > 3
	with open(sys.argv[1], encoding="utf-8") as f:
		head, maps = f.read().split("MAPPED_LIBRARIES:\n")
	interval = int(re.match(r"heap_v2/(\d+)", head).group(1))
	strings, out, mappings, locations = ["", "inuse_space", "bytes"], b"", [], {}
	for line in maps.splitlines():
		part = line.split(None, 5)
		if len(part) == 6 and "x" in part[1] and part[5].startswith("/"):
			start, end = (int(x, 16) for x in part[0].split("-"))
			offset = int(part[2], 16)
			loaded = [s for s in segments(part[5]) if s[0] & ~4095 <= offset < s[0] + s[2]]
			address = offset - loaded[-1][0] + loaded[-1][1] if loaded else offset
			build = re.search(r"Build ID: (\w+)", readelf("-n", part[5]))
			strings += [part[5], build_id(build, of_file)]
			mappings.append((start, end, address))
			out += message(3, number(1, len(mappings)) + number(2, start) + number(3, end) + number(4, offset) +
				       number(5, len(strings) - 2) + number(6, len(strings) - 1))
	out += message(1, number(1, 1) + number(2, 2))
	for stack, objects, size in re.findall(r"^@ (.*)\n +t\*: (\d+): (\d+)", head, re.M):
		objects, size, ids = int(objects), int(size), b""
		if not objects:
			continue
		for word in stack.split():
			address = int(word, 16) - 1
			inside = [(i, m) for i, m in enumerate(mappings) if m[0] <= address < m[1]]
			shown = address - inside[0][1][0] + inside[0][1][2] if of_file and inside else address
			key = (shown, inside[0][0] + 1 if inside else 0)
			ids += varint(locations.setdefault(key, len(locations) + 1))
		value = size / (1 - math.exp(-size / objects / interval))
		out += message(2, message(1, ids) + number(2, int(value)))
	for (address, mapping), i in locations.items():
		out += message(4, number(1, i) + number(2, mapping) + number(3, address))
	for s in strings:
		out += message(6, s.encode())
	with gzip.open(sys.argv[2], "wb") as f:
		f.write(out)


main()
