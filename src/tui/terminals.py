#!/usr/bin/env python3
"""terminals.py INFOCMP - descriptions of the usual terminals as a table in C, for a program that may find none where it runs
(screen.c). ncurses takes such a line in place of a folder's name."""
import subprocess
import sys

# The beginning of TERM, and the description that serves it; the first that fits is taken.
FAMILIES = {"xterm": "xterm-256color", "screen": "screen-256color", "tmux": "screen-256color", "rxvt": "xterm-256color",
	    "alacritty": "xterm-256color", "linux": "linux", "vt": "vt220"}


def main(infocmp):
	print("static const struct { const char *family, *name, *description; } terminals[] = {")
	for family, name in FAMILIES.items():
		# In base64 of the compiled form; it has no line breaks.
		line = subprocess.run([infocmp, "-0", "-Q2", "-q", name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
		assert line.startswith("b64:") and not set(line) & set('"\\\n')
		print(f'\t{{ "{family}", "{name}", "{line}" }},')
	print("};")


main(sys.argv[1])
