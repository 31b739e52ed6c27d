"""Makes one page of the viewer's files: build.py [--packed | --alone] OUTPUT page.html FILES...

Comments, blanks and ends of lines that no reader needs are left out; names and everything else stay, so that the place of an
error can be found. With --packed the script and the styles stand in the page compressed, and a few lines unpack them: that halves the
page, which has no other reader than the browser. Hashes of the scripts are in the page's policy: no other can run. @CONNECT@ and @DATA@ are left for the C side,
but for a page with --alone, which has no data in it and asks the server that it is from.
"""
import base64
import hashlib
import json
import re
import sys
import zlib

BUDGET = 100 * 1000  # of the page before its data
# 13 bits are two of 91 digits, where base64 needs 2.17: the characters from "!" to "~" but for three that mean something in the page.
DIGITS = [chr(c) for c in range(33, 127) if chr(c) not in "<@\\"]
LOADER = """(async () => {
const packed = document.getElementById("code"), text = packed.textContent, bytes = new Uint8Array(packed.dataset.size);
const digit = i => (i = text.charCodeAt(i)) - 33 - (i > 60) - (i > 64) - (i > 92);
for (let i = 0, at = 0, held = 0, bits = 0; i < text.length; i += 2) {
held |= digit(i) * 91 + digit(i + 1) << bits;
for (bits += 13; bits > 7; bits -= 8, held >>>= 8)
bytes[at++] = held;
}
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")), script = document.createElement("script");
script.textContent = await new Response(stream).text();
packed.replaceWith(script);
})();
"""


# What a script is made of, as far as blanks are concerned. A slash begins a regular expression where no value can end.
TOKEN = re.compile(r"""
    (?P<whole>`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<regex>(?<=[=(,:&|!?\[;{}\n])[ \t]*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[gimsuy]*)
    |(?P<blank>[ \t]+)
    |(?P<word>[\w$]+)
    |(?P<other>.)""", re.S | re.X)


def needs_blank(before, after):
    """Would the two characters become another token without a blank between them?"""
    return bool(re.fullmatch(r"[\w$]{2}|\+\+|--|.?/|/.?", before + after))


def strip_script(text):
    tokens = [(m.lastgroup, m.group()) for m in TOKEN.finditer(text) if m.lastgroup != "comment"]
    out = ["\n"]
    for i, (kind, token) in enumerate(tokens):
        after = tokens[i + 1][1][:1] if i + 1 < len(tokens) else ""
        if token == "\n" and out[-1][-1] in "{([,;":
            continue
        if kind != "blank" or needs_blank(out[-1][-1], after):
            out.append(" " if kind == "blank" else "let" if token == "const" else token)
    return re.sub(r"\n[\n ]+", "\n", "".join(out)).lstrip("\n")


def strip_style(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r'("[^"]*")|;?\s*(})\s*|\s*([{;,])\s*|(:)\s+', r"\1\2\3\4", text).strip() + "\n"


def strip(path):
    return (strip_style if path.endswith(".css") else strip_script)(read(path))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def digest(script):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def pack(script):
    """The script compressed, as digits, and the number of its bytes. The reader drops what the last digits have more."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    data = deflate.compress(script.encode()) + deflate.flush()
    held, bits, out = 0, 0, []
    for byte in data + b"\0\0":
        held |= byte << bits
        bits += 8
        if bits > 12:
            out += [DIGITS[held % 8192 // 91], DIGITS[held % 8192 % 91]]
            held >>= 13
            bits -= 13
    return "".join(out), len(data)


def put(text, key, value):
    if text.count(key) != 1:
        sys.exit("%s stands %d times in the page" % (key, text.count(key)))
    return text.replace(key, value)


def tell_size(text, files):
    n = len(text.encode())
    if n <= BUDGET:
        return
    print("page: the shell has %d bytes, %d more than it may" % (n, n - BUDGET))
    for size, name in sorted((-len(strip(f).encode()), f.rsplit("/", 1)[-1]) for f in files):
        print("  %6d  %s" % (-size, name))


def main(arguments):
    packed, alone = arguments[0] == "--packed", arguments[0] == "--alone"
    target, page, *files = arguments[packed or alone:]
    style = "".join(strip(f) for f in files if f.endswith(".css"))
    script = "".join(strip(f) for f in files if f.endswith(".js"))
    text, hashes = read(page), digest(script)
    if "</script" in script.lower() or "<!--" in script:
        sys.exit("the script would end itself, or be taken for a comment")
    if packed:
        # The styles come with the script: packed they are a third of what they were.
        script = "document.head.append(Object.assign(document.createElement(\"style\"),{textContent:%s}));\n" % json.dumps(style) + script
        style, hashes, (code, size) = "", digest(script), pack(script)
        text = put(text, "<script>@SCRIPT@</script>",
                   '<script type="text/plain" id="code" data-size="%d">%s</script>\n<script>%s</script>' % (size, code, LOADER))
        hashes += " " + digest(LOADER)
    else:
        text = put(text, "@SCRIPT@", script)
    text = put(text, "@STYLE@", style)
    text = put(text, "@CSP@", "default-src 'none'; script-src %s; style-src 'unsafe-inline'; connect-src @CONNECT@; "
               "base-uri 'none'; form-action 'none'" % hashes)
    if alone:
        text = put(text, "@CONNECT@", "'self'")
    for key in () if alone else ("@CONNECT@", "@DATA@"):
        put(text, key, "")
    tell_size(text, files)
    with open(target, "w", encoding="utf-8") as f:
        f.write(text)


main(sys.argv[1:])
