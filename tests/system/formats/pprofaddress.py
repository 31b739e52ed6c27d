"""pprofaddress.py PROGRAM SYMBOL START - a profile of pprof without names on the standard output: one sample of five, four bytes
into SYMBOL of PROGRAM, whose code is mapped at START, as the loader maps it."""
import subprocess
import sys


def said(*command):
	return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def varint(n):
	out = b""
	while n >= 0x80:
		out += bytes([n & 0x7F | 0x80])
		n >>= 7
	return out + bytes([n])


def number(field, n):
	return varint(field << 3) + varint(n)


def message(field, content):
	return varint(field << 3 | 2) + varint(len(content)) + content


program, symbol, start = sys.argv[1], sys.argv[2], int(sys.argv[3], 16)
for words in map(str.split, said("readelf", "-lW", program)):
	if words[:1] == ["LOAD"] and "E" in "".join(words[6:8]):
		offset, address, size = (int(words[i], 16) for i in (1, 2, 5))
at = next(int(w[0], 16) for w in map(str.split, said("nm", program)) if w[-1] == symbol)
page = offset & ~0xFFF
sys.stdout.buffer.write(
	message(1, number(1, 1) + number(2, 2)) +
	message(2, message(1, varint(1)) + message(2, varint(5))) +
	message(3, number(1, 1) + number(2, start) + number(3, start + size + 0x1000) + number(4, page) + number(5, 3)) +
	message(4, number(1, 1) + number(2, 1) + number(3, start + at + 4 - address + offset - page)) +
	b"".join(message(6, s) for s in (b"", b"samples", b"count", program.encode())))
