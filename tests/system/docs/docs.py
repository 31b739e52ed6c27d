#!/usr/bin/env python3
"""docs.py TOP GASFLAME: what the documents say of files, commands and options is true. Prints a line a check.

The documents are *.md in TOP, docs/ and below, and the README.md of every other folder.

- Every `gasflame COMMAND …` in code, in a line or a block, names a command of this program, and options that its
  --help has.
- Every relative link leads to a file, and to a heading of it where it names one.
- Every path of the tree in code (`src/…`, `tests/…`) exists.
- Every document in docs/ is linked from another one, and every command of the program is in the manual.
- The README is short, and pictures are small enough to load at once.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

README_LINES = 150
PICTURE_BYTES = {".svg": 60_000, ".png": 150_000}
FENCE = re.compile(r"^ *```\w*\n(.*?)^ *```", re.M | re.S)
# Parts of a path in a how-to that stand for a new file's name.
NEW_NAME = re.compile(r"NAME|EXTENSION|<|\*|…|FILE")
# Old decisions name files as they were when they were written.
HISTORY = "docs/decisions/"
top, gasflame = sys.argv[1:3]
helps = {}


def help_of(words):
    """The --help of a command of one or two words; "" if there is none."""
    key = " ".join(words)
    if key not in helps:
        done = subprocess.run([gasflame, *words, "--help"], capture_output=True, check=False)
        helps[key] = done.stdout.decode() if not done.returncode else ""
    return helps[key]


def usage_of(command):
    return help_of([command]).split("\n\n")[0]


def documents():
    paths = glob.glob(os.path.join(top, "*.md")) + glob.glob(os.path.join(top, "docs/**/*.md"), recursive=True)
    for folder in sorted(os.listdir(top)):
        # Neither a build's nor a cache's: the folders of the repository.
        if not folder.startswith((".", "build")) and folder not in ("docs", "profiling", "node_modules"):
            paths += glob.glob(os.path.join(top, folder, "**/README.md"), recursive=True)
    return sorted(set(paths))


# --- commands ---

def code_of(text):
    """Lines of code: those of blocks, and what stands between backquotes."""
    yield from "\n".join(FENCE.findall(text)).splitlines()
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def snippets(text):
    """Each command line of gasflame in the code."""
    for line in code_of(text):
        for piece in re.split(r"&&|\|\||\\?\||;", line):
            piece = re.sub(r"^[\s$]*(sudo |docker compose .* run --rm )?", "", piece)
            if piece.startswith("gasflame "):
                yield re.sub(r"\s+# .*", "", piece)


def command_of(words):
    """One word, or two where the usage of the first one lists the second: heap dump."""
    if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) and \
            re.search(rf"[ |]{words[1]}[| ]", usage_of(words[0])):
        return words[:2]
    return words[:1]


def problems_of(snippet):
    try:
        words = shlex.split(snippet)[1:]
    except ValueError:
        words = snippet.split()[1:]
    if not words or not re.fullmatch(r"[a-z-]+", words[0]) or words[0] == "help":
        return []  # gasflame COMMAND --help, gasflame --version
    command = command_of(words)
    known = help_of(command)
    if not known:
        return [f"there is no command {' '.join(command)}"]
    found = []
    for word in words[len(command):]:
        if word in ("--", ":::"):
            break  # another program's
        option = re.match(r"(--[a-z][a-z-]+|-[A-Za-z]$)", word)
        # flamegraph takes options that are cut short, as flamegraph.pl does.
        end = "" if command == ["flamegraph"] else r"(?![\w-])"
        if option and not re.search(rf"(^|[ ,]){re.escape(option[1])}{end}", known, re.M):
            found.append(f"{' '.join(command)} has no option {option[1]}")
    return found


# --- links and paths ---

def headings(text):
    """The anchors of a page, as they are made of its headings."""
    text = FENCE.sub("", text)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


def targets(path, text):
    """(file, anchor) of each relative link."""
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", FENCE.sub("", text)):
        if "://" not in target:
            yield os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path, anchor


def bad_links(path, text, texts):
    for file, anchor in targets(path, text):
        name = os.path.relpath(file, top)
        if not os.path.exists(file):
            yield f"the link to {name} leads nowhere"
        elif anchor and file not in texts:
            yield f"{name} is no document, and has no heading #{anchor}"
        elif anchor and anchor not in headings(texts[file]):
            yield f"{name} has no heading #{anchor}"


def bad_paths(text):
    for line in code_of(text):
        for path in re.findall(r"(?<![\w/.-])((?:src|tests|tools|bench|fuzz|configs|packaging|docs|ui|include)/[^\s`'\",:;()]+)", line):
            if not NEW_NAME.search(path) and not os.path.exists(os.path.join(top, path.rstrip("."))):
                yield f"there is no {path}"


def orphans(texts):
    linked = {f for path, text in texts.items() for f, _ in targets(path, text) if f != path}
    for path in texts:
        name = os.path.relpath(path, top)
        # Decisions are linked as a folder.
        if name.startswith("docs/") and path not in linked and not name.startswith(HISTORY):
            yield f"no document links to {name}"


def commands():
    done = subprocess.run([gasflame, "--help"], capture_output=True, check=False)
    return re.findall(r"^  ([a-z][a-z-]*) ", done.stdout.decode().split("Quick start")[0], re.M)


def main():
    failed = 0

    def tell(name, problems):
        nonlocal failed
        problems = list(problems)
        failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} - {name}")
        for p in problems:
            print(f"#   {p}")

    texts = {}
    for path in documents():
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
    for path, text in texts.items():
        name = os.path.relpath(path, top)
        code = list(snippets(text))
        tell(f"{name}: links lead somewhere", bad_links(path, text, texts))
        tell(f"{name}: {len(code)} commands have the options that they are given",
             [f"{s}: {p}" for s in code for p in problems_of(s)])
        if not name.startswith(HISTORY):
            tell(f"{name}: the paths that it names are there", bad_paths(text))
    tell("every document in docs/ is linked", orphans(texts))
    manual = "\n".join(s for path, text in texts.items() if "/docs/manual/" in path for s in snippets(text))
    tell("every command is in the manual",
         [f"no page has a line with gasflame {c}" for c in commands()
          if not re.search(rf"^gasflame {c}(\s|$)", manual, re.M)])
    lines = texts[os.path.join(top, "README.md")].count("\n")
    tell(f"the README has at most {README_LINES} lines", [f"it has {lines}"] if lines > README_LINES else [])
    pictures = glob.glob(os.path.join(top, "docs/pictures/*"))
    tell(f"{len(pictures)} pictures are small", [
        f"{os.path.basename(p)} has {os.path.getsize(p)} bytes" for p in pictures
        if os.path.getsize(p) > PICTURE_BYTES.get(os.path.splitext(p)[1], 0)])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
