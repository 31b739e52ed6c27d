"""Writes a text file as a C array of bytes: embed.py INPUT OUTPUT NAME"""
import sys

source, target, name = sys.argv[1:]
with open(source, "rb") as f:
    data = f.read()
with open(target, "w") as f:
    f.write("static const char %s[] = {\n" % name)
    for i in range(0, len(data), 24):
        # As signed char, so that bytes above 127 are no narrowing.
        f.write("".join("%d," % (b - 256 if b > 127 else b) for b in data[i:i + 24]) + "\n")
    f.write("0 };\n")
