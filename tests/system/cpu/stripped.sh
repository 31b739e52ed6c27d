#!/bin/bash
# A program without symbols: a box for each function, by its start; and names, when they turn up.
. "$(dirname "$0")/../lib.sh"
need_root
command -v strip >/dev/null && command -v nm >/dev/null || skip_all "strip and nm are missing: make deps"

full=$TRUTH/truth-split
mkdir bare debug
strip -s -o bare/split "$full"
# Another build of the same sources, as far as its build-id says.
python3 - "$full" other-split <<'END'
import re, sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.index(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0") + 16
data[at] ^= 255
open(sys.argv[2], "wb").write(data)
END

gf run -e cpu -o split.gasflame -- bare/split 1.2
check_status "a stripped program is recorded" 0
check "its functions are shown by their start, and that is said" said "shown by their start.*gasflame symbols"
mv "$STDOUT" out
starts=0
while read -r name true_share; do
	start=$(nm "$full" | awk -v name="$name" '$3 == name { sub(/^0*/, "", $1); print $1 }')
	found=$(share split.gasflame "split+0x$start")
	check "$name, at $start, is $true_share %, found $found" near "$found" "$true_share" 2
	starts=$((starts + 1))
done < <(grep burn out)
check "that was three functions" test "$starts" -eq 3
boxes=$("$GASFLAME" report --json --table functions --limit 0 split.gasflame 2>/dev/null | python3 -c '
import json, sys
rows = json.load(sys.stdin)["functions"]
print(sum(1 for r in rows if r["module"].endswith("/split") and r["self_samples"] * 100 > sum(x["self_samples"] for x in rows)))')
check "three boxes have more than a hundredth, not one for each address" test "$boxes" -eq 3
check "the capture says that these are no names" \
	test "$(sql split.gasflame "select count(*) from function_named where named = 'start'")" -ge 3
gf symbols split.gasflame
check "symbols lists the modules, and what to do" grep -q "0.0 %  .*bare/split" "$STDOUT"

# named NAME ARGS…: report with these arguments has the names.
named()
{
	gf report --format text --no-cache "${@:2}" split.gasflame
	check "$1" grep -qE " split +burn_sixty" "$STDOUT"
}
id=$(sql split.gasflame "select build_id from module where path like '%/bare/split'")
mkdir -p "debug/usr/lib/debug/.build-id/${id:0:2}"
ln -s /split "debug/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
cp "$full" debug/split
named "report --symbols names a capture by the unstripped program" --symbols "$full"
named "and by the root of an image, whose links stay in it" --symbols debug
named "and by another build whose functions agree" --symbols other-split
check "which is said, with how many" said "other-split .* are used for split: [0-9]+ of [0-9]+ functions agree"
mv bare/split bare/gone
named "also when the program is gone" --symbols other-split
check "by the functions that the capture kept" said "sampled functions agree"
gf report --format text --no-cache --symbols "$GASFLAME" split.gasflame
check "another program is refused, and why" said "gasflame was not used: .* agree in start and size, and 99 % must"
check_not "and names nothing" grep -q burn_sixty "$STDOUT"

mkfifo pipe
truncate -s 10G holes
for what in . pipe /dev/zero holes /nowhere 4194305; do
	gf symbols "$what"
	check_status "symbols $what is refused" 1
done
gf symbols $$ bare/gone
check_status "files are not read with the rights that a process takes" 2
gf symbols $$
check "symbols of a process" grep -q bash "$STDOUT"
gf symbols --json bare/gone
check "symbols as JSON" python3 -c '
import json, sys
f = json.load(open(sys.argv[1]))["files"][0]
assert f["symtab_functions"] == 0 and f["unwind_functions"] > 3 and f["unwind_percent_of_text"] > 30, f' "$STDOUT"
finish
