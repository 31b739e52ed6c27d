"""Makes one page of the viewer's files: build.py [--packed] OUTPUT page.html FILES...

Comments and blanks that no reader needs are left out; lines, names and everything else stay, so that an error's line can be
found. With --packed the script and the styles stand in the page compressed, and a few lines unpack them: that halves the
page, which has no other reader than the browser. Hashes of the scripts are in the page's policy: no other can run. @CONNECT@ and @DATA@ are left for the C side.
"""
import base64
import hashlib
import json
import re
import sys
import zlib

BUDGET = 100 * 1000  # of the page before its data
# Four bytes are five digits, where base64 has five and a third. Digits are the characters from "(" on; three of these mean
# something in the page, and have others for them.
DIGITS = {chr(i + 40): chr(i + 40) for i in range(85)} | {"<": "!", "@": "#", "\\": "$"}
LOADER = """(async () => {
const packed = document.getElementById("code"), script = document.createElement("script"), others = { "!": "<", "#": "@", $: "\\\\" };
const text = packed.textContent.replace(/[!#$]/g, c => others[c]), bytes = new Uint8Array(text.length / 5 * 4);
for (let i = 0, at = 0; i < text.length; at += 4) {
let v = 0;
for (const end = i + 5; i < end; i++)
v = v * 85 + text.charCodeAt(i) - 40;
for (let k = 0; k < 4; k++)
bytes[at + k] = v >>> 24 - 8 * k;
}
const stream = new Blob([bytes.subarray(0, packed.dataset.size)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
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
        if kind != "blank" or needs_blank(out[-1][-1], after):
            out.append(" " if kind == "blank" else token)
    return re.sub(r"\n[\n ]+", "\n", "".join(out)).lstrip("\n")


def strip_style(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^[ \t]+|\n(?=\n)", "", text, flags=re.M)


def strip(path):
    return (strip_style if path.endswith(".css") else strip_script)(read(path))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def digest(script):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def pack(script):
    """The script compressed, as digits, and the number of its bytes."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    data = deflate.compress(script.encode()) + deflate.flush()
    whole, out, digits = data + bytes(-len(data) % 4), [], list(DIGITS.values())
    for at in range(0, len(whole), 4):
        v = int.from_bytes(whole[at:at + 4], "big")
        out += [digits[v // 85 ** k % 85] for k in (4, 3, 2, 1, 0)]
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
    packed = arguments[0] == "--packed"
    target, page, *files = arguments[packed:]
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
    for key in "@CONNECT@", "@DATA@":
        put(text, key, "")
    tell_size(text, files)
    with open(target, "w", encoding="utf-8") as f:
        f.write(text)


main(sys.argv[1:])
