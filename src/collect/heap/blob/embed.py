#!/usr/bin/env python3
"""embed.py NM BLOB OUT - the blob as an array of C, with the offsets of its hooks.

All of it is one segment from offset 0 on: an address is an offset.
"""
import subprocess
import sys

SHAPES = ["size", "size_2nd", "product", "out", "resize", "free"]
EACH = 12


def main():
	nm, blob, out = sys.argv[1:]
	said = subprocess.run([nm, blob], check=True, capture_output=True, text=True).stdout
	at = {line.split()[2]: int(line.split()[0], 16) for line in said.splitlines()}
	with open(blob, "rb") as f:
		# Debuggers of the target find the symbols in .dynsym; what follows the segment is for us alone.
		data = f.read()
	with open(out, "w", encoding="ascii") as f:
		f.write("static const unsigned char blob_image[] __attribute__((aligned(8))) = {\n")
		for i in range(0, len(data), 24):
			f.write("\t" + "".join(f"{b}," for b in data[i:i + 24]) + "\n")
		f.write("};\n")
		f.write(f"enum {{ BLOB_FIXED_AT = {at['blob_fixed']:#x}, BLOB_LOCAL_AT = {at['blob_local']:#x}, "
			f"BLOB_SHARED_AT = {at['blob_shared']:#x} }};\n")
		f.write(f"static const unsigned blob_hooks[{len(SHAPES)}][{EACH}] = {{\n")
		for shape in SHAPES:
			f.write("\t{ " + ", ".join(f"{at[f'blob_{shape}_{k}']:#x}" for k in range(EACH)) + " },\n")
		f.write("};\n")
		f.write(f"#define BLOB_SETUP_AT {at['blob_setup']:#x}\n")
		for name in ("alloc", "out", "exact", "free"):
			f.write(f"#define BLOB_{name.upper()}_SEEN_AT {at[f'blob_{name}_seen']:#x}\n")


main()
