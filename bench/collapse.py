#!/usr/bin/env python3
"""collapse.py - perf script on stdin, folded stacks on stdout: what Perl's stackcollapse-perf does.

Debian has flamegraph.pl but not that script, so the bench brings its own. With --count it says instead how
many samples there are and how many reach the entry of the thread or the program.
"""
import json
import sys

ENTRIES = ("_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "clone", "clone3",
	   "__clone", "__clone3", "__GI___clone", "start_thread", "thread_start", "_dl_start_user", "ret_from_fork",
	   "ret_from_fork_asm")


def samples(lines):
	"""Yields (comm, frames) with the innermost frame first."""
	comm, frames = None, []
	for line in lines:
		line = line.rstrip("\n")
		if not line.strip():
			if comm is not None:
				yield comm, frames
			comm, frames = None, []
		elif line[0] in " \t" and comm is not None:
			parts = line.split(None, 1)
			name = parts[1] if len(parts) > 1 else "[unknown]"
			if name.endswith(")") and " (" in name:
				name = name[:name.rindex(" (")]
			if "+0x" in name:
				name = name[:name.rindex("+0x")]
			if parts[0] != "ffffffffffffffff":
				frames.append(name.replace(";", ":"))
		else:
			comm = line.split()[0]
	if comm is not None:
		yield comm, frames


def is_entry(name):
	return name.split("@")[0] in ENTRIES


def main():
	if sys.argv[1:] == ["--count"]:
		total = complete = 0
		for _, frames in samples(sys.stdin):
			total += 1
			complete += bool(frames) and is_entry(frames[-1])
		print(json.dumps({"samples": total, "complete": complete}))
		return
	stacks = {}
	for comm, frames in samples(sys.stdin):
		key = ";".join([comm] + frames[::-1])
		stacks[key] = stacks.get(key, 0) + 1
	for key in sorted(stacks):
		print(key, stacks[key])


if __name__ == "__main__":
	main()
