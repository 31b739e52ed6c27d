#!/usr/bin/env python3
"""heapslots.py PID - does any word of its writable file mappings lead to our hooks? Prints where; 0: there is one."""
import sys


def slots_of(pid):
	"""What leads to the hooks: (path, address, value)."""
	hooks, tables, found = [], [], []
	for line in open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace"):
		words = line.split(None, 5)
		start, end = (int(x, 16) for x in words[0].split("-"))
		path = words[5].strip() if len(words) > 5 else ""
		if path.startswith("/memfd:gasflame-") and "x" in words[1]:
			hooks.append((start, end))
		elif path.startswith("/") and "s" not in words[1] and words[1][0] == "r" and "x" not in words[1]:
			tables.append((start, end, path))
	if not hooks:
		return found
	with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
		for start, end, path in tables:
			try:
				memory.seek(start)
				data = memory.read(end - start)
			except OSError:
				continue
			for at in range(0, len(data) - 7, 8):
				value = int.from_bytes(data[at:at + 8], "little")
				if any(a <= value < b for a, b in hooks):
					found.append((path, start + at, value))
	return found


if __name__ == "__main__":
	left = slots_of(int(sys.argv[1]))
	for where, address, word in left:
		print(f"{where} {address:x}: {word:x}")
	sys.exit(0 if left else 1)
