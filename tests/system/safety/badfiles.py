#!/usr/bin/env python3
"""badfiles.py KIND PATH - an ELF file as nobody honest makes it. All have a function at offset 0x1000 that runs for
a moment and returns, mapped at that address, so that a program can run them (truth/safety/mapper.c).

    plain                  a good one, with a symbol for the function
    symtab, eh_frame, debug, notes, strtab
                           that part alone has SIZE bytes (default 16 GiB) of which the disk holds nothing
    sections               a million sections
    beyond                 sections that end beyond the file
    bomb                   compressed sections that unpack to SIZE bytes, 50 times what they take
    link LINK              names LINK as its debug file

Options: --size BYTES, --id HEX (build-id), --name SYMBOL."""
import argparse
import os
import struct
import zlib

# mov ecx, 1000000; 1: dec ecx; jnz 1b; ret
CODE = bytes.fromhex("b940420f00ffc975fcc3")
p = argparse.ArgumentParser()
p.add_argument("kind")
p.add_argument("path")
p.add_argument("link", nargs="?")
p.add_argument("--size", type=lambda s: int(s, 0), default=16 << 30)
p.add_argument("--id", default="")
p.add_argument("--name", default="burn_here")
a = p.parse_args()

sections = [("", 0, 0, 0, b"", 0, 0, 0)]  # name, type, flags, address, bytes or (offset, size), link, info, entry size
symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1000, len(CODE))
strings = b"\0" + a.name.encode() + b"\0"
hole = ("hole", a.size)
sections.append((".text", 1, 6, 0x1000, (0x1000, len(CODE)), 0, 0, 0))
sections.append((".symtab", 2, 0, 0, hole if a.kind == "symtab" else symbols, 3, 1, 24))
sections.append((".strtab", 3, 0, 0, hole if a.kind == "strtab" else strings, 0, 0, 0))
note = b""
if a.id:
    note = struct.pack("<III", 4, len(bytes.fromhex(a.id)), 3) + b"GNU\0" + bytes.fromhex(a.id)
    sections.append((".note.gnu.build-id", 7, 2, 0, note, 0, 0, 0))
if a.kind == "eh_frame":
    sections.append((".eh_frame", 1, 2, 0x2000, hole, 0, 0, 0))
if a.kind == "debug":
    for name in ("info", "abbrev", "line", "str", "ranges", "aranges"):
        sections.append((".debug_" + name, 1, 0, 0, hole, 0, 0, 0))
if a.kind == "bomb":
    size = a.size // 2
    packer, packed = zlib.compressobj(1), []
    for at in range(0, size, 1 << 20):
        packed.append(packer.compress(os.urandom(16 << 10) + bytes(min(1 << 20, size - at) - (16 << 10))))
    packed = b"".join(packed) + packer.flush()
    for name in ("info", "str"):
        sections.append((".debug_" + name, 1, 0x800, 0, struct.pack("<IIQQ", 1, 0, size, 1) + packed, 0, 0, 0))
if a.kind == "beyond":
    sections.append((".eh_frame", 1, 2, 0x2000, (0x800, 1 << 62), 0, 0, 0))
    sections.append((".debug_info", 1, 0, 0, (1 << 63, 1 << 63), 0, 0, 0))
if a.kind == "link":
    link = a.link.encode() + b"\0"
    sections.append((".gnu_debuglink", 1, 0, 0, link + bytes(-len(link) % 4) + struct.pack("<I", 0x12345678), 0, 0, 0))
if a.kind == "sections":
    sections += [(".debug_x", 1, 0, 0, b"", 0, 0, 0)] * 1000000
names = b"\0"
known = {"": 0}
sections.append((".shstrtab", 3, 0, 0, None, 0, 0, 0))
for s in sections:
    if s[0] not in known:
        known[s[0]] = len(names)
        names += s[0].encode() + b"\0"

with open(a.path, "wb") as f:
    at = 0x2000
    headers = []
    for s in sections:
        data = names if s[0] == ".shstrtab" else s[4]
        if isinstance(data, tuple) and data[0] == "hole":
            offset, size = (at + 4095) & ~4095, data[1]
            at = offset + size
        elif isinstance(data, tuple):
            offset, size = data
        else:
            f.seek(at)
            f.write(data)
            offset, size = at, len(data)
            at = (at + size + 7) & ~7
        if s[0].startswith(".note"):
            note_at = offset
        headers.append(struct.pack("<IIQQQQIIQQ", known[s[0]], s[1], s[2], s[3], offset, size, s[5], s[6], 8, s[7]))
    count = len(headers)
    if count >= 0xff00:
        headers[0] = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, count - 1, 0, 0, 0)
    f.seek(at)
    f.write(b"".join(headers))
    segments = [struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0x1000, 0x1000, 0x1000, 0x1000, 0x1000)]
    if note:
        segments.append(struct.pack("<IIQQQQQQ", 4, 4, note_at, 0, 0, len(note), len(note), 4))
    if a.kind == "notes":
        segments.append(struct.pack("<IIQQQQQQ", 4, 4, 0x2000, 0, 0, a.size, a.size, 4))
        f.truncate(max(at + len(headers) * 64, 0x2000 + a.size))
    f.seek(0)
    f.write(struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 3, 62, 1, 0x1000, 64, at, 0, 64, 56,
                        len(segments), 64, count if count < 0xff00 else 0, count - 1 if count < 0xff00 else 0xffff))
    f.write(b"".join(segments))
    f.seek(0x1000)
    f.write(CODE)
    f.seek(0x2000)
