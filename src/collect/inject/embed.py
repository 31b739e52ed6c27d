#!/usr/bin/env python3
"""embed.py NM BLOB OUT PREFIX [TABLE EACH] - a blob as an array of C, PREFIX_image, with the offsets of its symbols.

Each symbol whose name begins with PREFIX gets a constant: blob_setup is BLOB_SETUP_AT. TABLE: words, separated by commas;
the symbols PREFIX_WORD_0 to PREFIX_WORD_(EACH - 1) of each make PREFIX_hooks[words][EACH].
All of a blob is one segment from offset 0 on: an address is an offset.
"""
import re
import subprocess
import sys


def main():
	nm, blob, out, prefix = sys.argv[1:5]
	said = subprocess.run([nm, blob], check=True, capture_output=True, text=True).stdout
	at = {line.split()[2]: int(line.split()[0], 16) for line in said.splitlines()}
	at = {name: where for name, where in at.items() if re.fullmatch(prefix + r"_\w+", name)}
	with open(blob, "rb") as f:
		# Debuggers of the target find the symbols in .dynsym; what follows the segment is for us alone.
		data = f.read()
	table = [prefix + "_" + word for word in sys.argv[5].split(",")] if len(sys.argv) > 5 else []
	with open(out, "w", encoding="ascii") as f:
		f.write(f"static const unsigned char {prefix}_image[] __attribute__((aligned(8))) = {{\n")
		for i in range(0, len(data), 24):
			f.write("\t" + "".join(f"{b}," for b in data[i:i + 24]) + "\n")
		f.write("};\n")
		for name in sorted(at):
			if re.sub(r"_\d+$", "", name) not in table:
				f.write(f"#define {name.upper()}_AT {at[name]:#x}\n")
		if table:
			each = int(sys.argv[6])
			f.write(f"static const unsigned {prefix}_hooks[{len(table)}][{each}] = {{\n")
			for word in table:
				f.write("\t{ " + ", ".join(f"{at[f'{word}_{k}']:#x}" for k in range(each)) + " },\n")
			f.write("};\n")


main()
