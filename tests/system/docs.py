#!/usr/bin/env python3
"""docs.py TOP GASFLAME: what README.md and docs/ say of files, commands and options is there. Prints a line a check.

Every `gasflame COMMAND …` in code, in a line or a block, must name a command of this program and options that its
--help has; every link to a file must lead to one; pictures must be small enough to load at once.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

top, gasflame = sys.argv[1:3]
PICTURE_BYTES = {".svg": 60_000, ".png": 150_000}
helps = {}


def help_of(words):
    """The --help of a command of one or two words; "" if there is none."""
    key = " ".join(words)
    if key not in helps:
        done = subprocess.run([gasflame, *words, "--help"], capture_output=True, check=False)
        helps[key] = done.stdout.decode() if not done.returncode else ""
    return helps[key]


def snippets(text):
    """Code: lines of blocks, and what stands between backquotes."""
    blocks = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```\n.*?^```", "", text, flags=re.M | re.S)
    for line in "\n".join(blocks).splitlines() + re.findall(r"`([^`\n]+)`", rest):
        for piece in re.split(r"&&|\|\||\\?\||;", line):
            piece = re.sub(r"^[\s$]*(sudo )?", "", piece)
            if piece.startswith("gasflame "):
                yield re.sub(r"\s+# .*", "", piece)


def problems_of(snippet):
    try:
        words = shlex.split(snippet)[1:]
    except ValueError:
        words = snippet.split()[1:]
    if not words or not re.fullmatch(r"[a-z-]+", words[0]) or words[0] == "help":
        return []  # gasflame COMMAND --help, gasflame --version
    command = words[:1]
    if words[:2] in (["heap", "dump"], ["heap", "detach"]):
        command = words[:2]
    known = help_of(command)
    if not known:
        return [f"there is no command {' '.join(command)}"]
    found = []
    for word in words[len(command):]:
        if word in ("--", ":::"):
            break  # another program's
        option = re.match(r"(--[a-z][a-z-]+|-[A-Za-z]$)", word)
        if option and not re.search(rf"(^|[ ,]){re.escape(option[1])}\b", known, re.M):
            found.append(f"{' '.join(command)} has no option {option[1]}")
    return found


def links(path, text):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target and not os.path.exists(os.path.join(os.path.dirname(path), target)):
            yield f"the link to {target} leads nowhere"
    # Anchors within the page, as they are made of its headings.
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        if anchor not in anchors:
            yield f"there is no heading #{anchor}"


def main():
    failed = 0

    def tell(name, problems):
        nonlocal failed
        failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} - {name}")
        for p in problems:
            print(f"#   {p}")

    for path in [os.path.join(top, "README.md")] + sorted(glob.glob(os.path.join(top, "docs/**/*.md"), recursive=True)):
        name = os.path.relpath(path, top)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        code = list(snippets(text))
        tell(f"{name}: links lead somewhere", list(links(path, text)))
        tell(f"{name}: {len(code)} commands have the options that they are given",
             [f"{s}: {p}" for s in code for p in problems_of(s)])
    pictures = glob.glob(os.path.join(top, "docs/pictures/*"))
    tell(f"{len(pictures)} pictures are small", [
        f"{os.path.basename(p)} has {os.path.getsize(p)} bytes" for p in pictures
        if os.path.getsize(p) > PICTURE_BYTES.get(os.path.splitext(p)[1], 0)])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
