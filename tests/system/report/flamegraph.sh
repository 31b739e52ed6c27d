#!/bin/bash
# flamegraph, diff-folded, import and report on folded stacks; side by side with flamegraph.pl where that is
# installed.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
tool() { python3 "$here/flamegraph.py" "$@"; }
fg() { gf flamegraph "$@"; cp "$STDOUT" out.svg; }
is_xml() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"; }

for kind in plain fractions differences ill; do
	tool make $kind >$kind.folded
done

# --- the same boxes at the same places ---
perl=$(dpkg -L libdevel-nytprof-perl 2>/dev/null | grep '/flamegraph\.pl$')
compare()
{
	local input=$1 colours=$2
	shift 2
	perl "$perl" "$@" <"$input" >theirs.svg 2>/dev/null
	"$GASFLAME" flamegraph "$@" <"$input" >ours.svg 2>/dev/null
	tool same theirs.svg ours.svg $colours
}
if [ -n "$perl" ]; then
	for kind in plain fractions ill; do
		check "$kind: boxes of flamegraph.pl" compare $kind.folded ""
		check "$kind: nothing left out" compare $kind.folded "" --minwidth 0
	done
	check "differences: boxes and colours" compare differences.folded colours
	check "differences: negated" compare differences.folded colours --negate --inverted
	check "reversed" compare plain.folded "" --reverse
	check "inverted, narrow" compare plain.folded "" --inverted --width 400 --height 20 --fontsize 9
	check "minwidth" compare plain.folded "" --minwidth 5
	check "total, factor, countname" compare plain.folded "" --total 100000 --factor 10 --countname bytes
	# These it writes in another way before it looks at them.
	grep -v '[<_]' plain.folded >named.folded
	for palette in hot mem io red green blue yellow purple orange; do
		check "colours by hash: $palette" compare named.folded colours --hash --colors $palette
	done
else
	skip "the same boxes as flamegraph.pl" "libdevel-nytprof-perl is not installed"
fi

# --- by itself ---
fg plain.folded
check_status "a file" 0
check "is XML" is_xml out.svg
check "says nothing" test ! -s "$STDERR"
check "loads nothing from elsewhere" sh -c '! grep -oE "(href|src)=\"[a-z]+://[^\"]*" out.svg'
"$GASFLAME" flamegraph <plain.folded >stdin.svg
check "the standard input is the same" cmp out.svg stdin.svg
"$GASFLAME" flamegraph -o file.svg - <plain.folded
check "-o and - are too" cmp out.svg file.svg
head -n 200 plain.folded >one.folded && tail -n +201 plain.folded >two.folded
fg one.folded two.folded
check "two files are one" cmp out.svg stdin.svg
fg --title 'A & B' --subtitle second --notes remark --bgcolors '#aabbcc' --nametype Frame: --countname ms \
	plain.folded
for word in 'A &amp; B' second 'NOTES: remark' '#aabbcc' 'data-nametype="Frame:"' ' ms, '; do
	check "options: $word" grep -qF -- "$word" out.svg
done
fg --color=mem --INVERT -width 700 --subtitle '' plain.folded
check_status "names cut short, in capitals, with one hyphen" 0
check "  inverted" grep -q 'data-inverted="1"' out.svg
check "  width" grep -q 'width="700"' out.svg
check "  palette" grep -q 'fill="rgb(0,' out.svg
fg --minwidth 10% plain.folded
check "a minimum as a share" test "$(tool boxes out.svg | wc -l)" -lt 20
printf 'a;b 1\na;c 1\na;b 1\n' >chart.folded
fg --flamechart chart.folded
check "a flame chart keeps the order" test "$(tool boxes out.svg | grep -c '^b (1 ')" -eq 2
printf 'a;\351t\351 1\n' >latin.folded
fg --encoding ISO-8859-1 latin.folded
check "another encoding" grep -q 'encoding="ISO-8859-1"' out.svg
check "  is right XML" is_xml out.svg
check "  with its letters" python3 -c '
import xml.dom.minidom as m
titles = [t.firstChild.data for t in m.parse("out.svg").getElementsByTagName("title")]
assert "\u00e9t\u00e9 (1 samples, 100.00%)" in titles'
fg --random plain.folded && cp out.svg random.svg && fg --random plain.folded
check_not "random colours differ" cmp -s out.svg random.svg
fg --cp plain.folded
check "--cp leaves a map" grep -q '^main->rgb(' palette.map
sed -i 's/^main->.*/main->rgb(1,2,3)/' palette.map
fg --cp plain.folded
check "  and takes colours from it" grep -q 'rgb(1,2,3)' out.svg
printf 'main\thref=there.html\ttitle=my title\n' >attributes
fg --nameattr attributes plain.folded
check "--nameattr" grep -q '<title>my title</title><a xlink:href="there.html"' out.svg

# --- bad input ---
fg /dev/null
check_status "nothing: status 2" 2
check "  and a picture that says so" grep -q 'ERROR: there is no stack with a count' out.svg
check "  which is XML" is_xml out.svg
fg ill.folded
check_status "ill lines" 0
check "  are counted" said "ignored 4 lines"
fg --colors pink plain.folded
check_status "no such palette" 2
fg --bgcolors pink plain.folded
check_status "no such background" 2
fg --notes '<b>' plain.folded
check_status "notes with <" 2
fg --nonsense plain.folded
check_status "no such option" 2
fg nowhere.folded
check_status "no such file" 1
printf '</title><script>alert(1)</script>;]]>;\033[31m;\377 5\n' >hostile.folded
fg hostile.folded
check "hostile names are text" is_xml out.svg
check "  and no script" test "$(grep -c '<script' out.svg)" -eq 1
python3 -c 'print(";".join(["f"] * 4000), 1)' >deep.folded
fg deep.folded
check "4,000 frames" test "$(tool boxes out.svg | wc -l)" -eq 4001

# --- diff-folded ---
printf 'a;b 10\na;c 5\na;0x1f 1\na;0x2f 1\n' >before.folded
printf 'a;b 20\na;d 7.5\na;0x3f 3\n' >after.folded
gf diff-folded before.folded after.folded
check_status "diff-folded" 0
printf 'a;0x1f 1 0\na;0x2f 1 0\na;0x3f 0 3\na;b 10 20\na;c 5 0\na;d 0 7.5\n' >wanted
check "  has both counts" cmp wanted "$STDOUT"
gf diff-folded -s before.folded after.folded
check "  -s strips addresses" grep -qx 'a;0x... 2 3' "$STDOUT"
printf 'a;b 10\na;c 30\n' >x.folded && printf 'a;b 15\na;c 5\n' >y.folded
gf diff-folded -n x.folded y.folded
check "  -n normalizes" sh -c "printf 'a;b 5 15\na;c 15 5\n' | cmp - '$STDOUT'"
gf diff-folded x.folded
check_status "  wants two files" 2
"$GASFLAME" diff-folded before.folded after.folded 2>/dev/null | "$GASFLAME" flamegraph >out.svg
check "  is drawn" grep -q 'b (20 samples, 65.57%; +32.79%)' out.svg

# --- report and import ---
gf report --format folded plain.folded
check_status "report reads folded stacks" 0
total() { awk '{ n += $NF } END { printf "%.2f\n", n }' "$1"; }
check "  with all of their counts" test "$(total "$STDOUT")" = "$(total plain.folded)"
gf report --format folded - <fractions.folded
check "  and fractions, from the standard input" test "$(total "$STDOUT")" = "$(total fractions.folded)"
gf report --format svg -o report.svg plain.folded
check_status "report draws them" 0
gf report --format folded ill.folded
check "  and says what it left out" said "ignored 4 lines"
printf 'only;this 5\nx 2\n' | "$GASFLAME" report --format svg - >piped.svg 2>/dev/null
check "  a picture of the standard input goes to the standard output" grep -q 'this (5 samples, 71.43%)' piped.svg
check "  where single frames are whole" sh -c '! grep -q "no stack" piped.svg'
gf import plain.folded -o in.gasflame
check_status "import" 0
"$GASFLAME" report --format folded in.gasflame 2>/dev/null >back.folded
"$GASFLAME" report --format folded plain.folded 2>/dev/null >direct.folded
check "  is the same as direct" cmp back.folded direct.folded
gf import plain.folded
check_status "import wants -o" 2
printf 'this is\nno such thing\n' >text
gf report text
check_status "report of something else" 1
check "  says what it takes" said "neither a capture nor in one of these formats"

# --- what a browser makes of it: a link that zooms and searches ---
browser=$(command -v chromium || command -v chromium-browser)
if [ -n "$browser" ]; then
	fg chart.folded
	x=$(tool boxes out.svg | awk -F'\t' '$1 ~ /^c / { print $3 }')
	y=$(grep -o '<title>c ([^/]*</title><rect x="[^"]*" y="[^"]*' out.svg | sed 's/.*y="//')
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/browser" \
		--dump-dom "file://$tmp/out.svg?x=$x&y=$y&s=%5Ec%24" >dom 2>/dev/null
	check "a link zooms" grep -q 'data-at="2,1"[^>]*><title>c .*width="1180"' dom
	check "  fades what is below" grep -q 'class="parent"[^>]*><title>a \|<g[^>]*class="parent"' dom
	check "  hides what is beside" grep -q 'class="hide"' dom
	check "  and searches" grep -q 'Matched: 100%' dom
else
	skip "links in a browser" "chromium is not installed"
fi
finish
