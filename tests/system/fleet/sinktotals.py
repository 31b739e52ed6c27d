#!/usr/bin/env python3
"""sinktotals.py otlp TEXT - of each profile in what protoc --decode made of OTLP: its type and the sum of its values.
sinktotals.py push BODY OUT - takes the pprof out of a push to Pyroscope: field 1 of field 2 of field 1."""
import re
import sys


def fields(data):
	"""Number and bytes of each field of a message that has no others."""
	at = 0

	def varint():
		nonlocal at
		value = shift = 0
		while True:
			byte = data[at]
			at += 1
			value |= (byte & 127) << shift
			shift += 7
			if byte < 128:
				return value
	while at < len(data):
		tag, n = varint(), varint()
		yield tag >> 3, data[at:at + n]
		at += n


if sys.argv[1] == "push":
	with open(sys.argv[2], "rb") as f:
		series = dict(fields(f.read()))[1]
	with open(sys.argv[3], "wb") as f:
		f.write(dict(fields(dict(fields(series))[2]))[1])
else:
	strings, profiles, inside = [], [], False
	with open(sys.argv[2], encoding="utf-8") as f:
		for line in f:
			string = re.match(r'  string_table: "(.*)"$', line)
			value = re.match(r"        values: (\d+)", line)
			kind = re.match(r"        type: (\d+)", line)
			if string:
				strings.append(string.group(1))
			elif line.startswith("    profiles {"):
				profiles.append([0, 0])
			elif line.startswith("      sample_type {"):
				inside = True
			elif line.startswith("      }"):
				inside = False
			elif kind and inside:
				profiles[-1][0] = int(kind.group(1))
			elif value:
				profiles[-1][1] += int(value.group(1))
	for kind, total in profiles:
		print(strings[kind], total)
