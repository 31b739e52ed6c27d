#!/bin/bash
# report's formats and filters, ls, clean, query and doctor, on one recording.
. "$(dirname "$0")/../lib.sh"
need_root

start_workload --seconds 600 --share 40
gf record -e cpu -d 3 -o one.gasflame -p "$PID"
kill -STOP "$PID" # what follows needs the CPUs more; doctor looks at it once more
check_status "recorded" 0
check "a quality line" said "complete"
check "stdout is empty while recording" test ! -s "$STDOUT"

gf report --format svg -o one.svg one.gasflame
check_status "svg" 0
check "is XML" python3 -c 'import sys, xml.dom.minidom as m; m.parse("one.svg")'
check "loads nothing from elsewhere" sh -c '! grep -oE "(href|src)=\"[a-z]+://[^\"]*" one.svg'
check "names functions" grep -q compute_unit one.svg
gf report --format folded one.gasflame
check_status "folded" 0
check "each line ends in a number" sh -c "! grep -vE ' [0-9]+$' '$STDOUT'"
gf report --format text one.gasflame
check_status "text" 0
for word in mix_state libtrie.so compute-0; do
	check "text has $word" grep -q "$word" "$STDOUT"
done
widest() { script -qec "stty cols 80; '$GASFLAME' report $* one.gasflame 2>/dev/null" /dev/null </dev/null 2>&1 | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' | wc -L; }
check "on a terminal the text is within its width" test "$(widest --format text)" -le 80
check "--wide is not" test "$(widest --wide)" -gt 80
gf report --format svg --wide -o - one.gasflame
check_status "--wide is for text" 2
all=$(folded one.gasflame | awk '{ n += $NF } END { print n }')
gf report --format folded --thread compute-0 one.gasflame
some=$(awk '{ n += $NF } END { print n + 0 }' "$STDOUT")
check "--thread keeps less than all" above "$all" "$some"
check "--thread keeps something" above "$some" 0
check_not "--thread drops other threads" grep -q disk_unit "$STDOUT"
gf report --format folded --from 1 --to 2 one.gasflame
check "--from --to keeps what the capture has of that second" near "$(awk '{ n += $NF } END { print n + 0 }' "$STDOUT")" \
	"$(sql one.gasflame 'select count(*) from sample where time_ns >= 1000000000 and time_ns < 2000000000')" 1
gf report --format folded --function '^trie_fold$' one.gasflame
check "--function keeps something" test -s "$STDOUT"
check "--function keeps only stacks with it" sh -c "! grep -vE '(^|;)trie_fold[; ]' '$STDOUT'"
gf report --format nonsense one.gasflame
check_status "no such format" 2

cp one.gasflame two.gasflame
gf report --format folded one.gasflame two.gasflame
check_status "two captures" 0
check "are summed" near "$(awk -v all="$all" '{ n += $NF } END { print n / all }' "$STDOUT")" 2 0.001

gf query one.gasflame 'select function from top_functions limit 5'
check_status "query" 0
check "gives rows" test "$(wc -l <"$STDOUT")" -ge 5
for view in threads top_functions modules stacks; do
	gf query one.gasflame "select * from $view limit 3"
	check_status "view $view" 0
done
gf query one.gasflame 'drop table sample'
check "query does not write" test "$STATUS" -ne 0
gf query one.gasflame 'select nonsense from nowhere'
check_status "a wrong statement" 1

gf doctor
check "doctor runs" test "$STATUS" -le 1
for word in BTF paranoid tracefs cgroup memlock; do
	check "doctor speaks of $word" grep -qi "$word" "$STDOUT"
done
gf doctor "$PID"
check "doctor TARGET runs" test "$STATUS" -le 1
check "doctor TARGET speaks of unwind tables" grep -qi "unwind" "$STDOUT"

mkdir -p profiling/x && cp one.gasflame profiling/x/cpu-20200101-000000.gasflame
cp one.gasflame profiling/x/cpu-20200102-000000.gasflame
touch -d '10 days ago' profiling/x/cpu-20200101-000000.gasflame
gf ls
check_status "ls" 0
check "lists both" test "$(grep -c cpu-2020010 "$STDOUT")" -eq 2
# Without a file: the newest here, which is said; never somebody else's.
touch -d '1 minute' one.gasflame && touch profiling/x/cpu-20200102-000000.gasflame
chown 12345 one.gasflame
gf report --format folded
check_status "report without a file" 0
check "says which it took" grep -q '^reading profiling/x/cpu-20200102-000000.gasflame, the newest capture here' "$STDERR"
check "and what it passed over" grep -q '^one.gasflame is newer, but belongs to user 12345' "$STDERR"
gf diff --json two.gasflame
check "diff with one file takes the newest other one" grep -q '^comparing two.gasflame (before) with profiling/x/' "$STDERR"
# --open: the page in the browser of who called sudo, never root's.
mkdir bin open && chmod 777 open
printf '#!/bin/sh\n{ id -u; echo "$1"; } >%s\n' "$tmp/open/seen" >bin/xdg-open
chmod 755 bin/xdg-open
cp two.gasflame open/user.gasflame && chown 65534 open open/user.gasflame
opened() { env -u WAYLAND_DISPLAY PATH="$tmp/bin:$PATH" "$@" timeout 60 "$GASFLAME" report --open open/user.gasflame >"$STDOUT" 2>"$STDERR"; }
opened env DISPLAY=:99 SUDO_UID=65534 SUDO_GID=65534
check "report --open opens the page as the user behind sudo" test "$(cat open/seen)" = "65534
$tmp/open/user.html"
rm -f open/seen
opened env -u SUDO_UID DISPLAY=:99
check "not as root" grep -q "no browser is started as root: open $tmp/open/user.html" "$STDERR"
opened env -u DISPLAY -u BROWSER SUDO_UID=65534 SUDO_GID=65534
check "without a display it says what to open" grep -q "no display here: open $tmp/open/user.html" "$STDERR"
check_not "and opens nothing" test -e open/seen
(cd open && env DISPLAY=:99 PATH="$tmp/bin:$PATH" SUDO_UID=65534 SUDO_GID=65534 timeout 60 "$GASFLAME" record --open -d 0.5 -p "$PID" -o new.gasflame) >"$STDOUT" 2>"$STDERR"
check "record --open makes the page and opens it" test "$(cat open/seen)" = "65534
$tmp/open/new.html"
python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' timeout 60 "$GASFLAME" record -d 0.5 -p "$PID" -o 'a b.gasflame' >"$STDOUT"
check "on a terminal record ends with what to type next" test "$(tail -1 "$STDOUT" | tr -d '\r')" = "Next: gasflame report 'a b.gasflame'"
mkdir next
(cd next && python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' timeout 60 "$GASFLAME" record -e cpu -d 0.2 -p "$PID") >"$STDOUT"
check "without a name of its own that is two words" test "$(tail -1 "$STDOUT" | tr -d '\r')" = "Next: gasflame report"
check "after the file, which is the newest one there" test -s "next/$(tail -2 "$STDOUT" | head -1 | tr -d '\r')"
gf record -d 0.5 -p "$PID" -o 'a b.gasflame'
check "in a pipe with the file" test "$(tail -1 "$STDERR")" = "a b.gasflame"
gf clean --older-than 7d
check_status "clean" 0
check_not "removes the old one" test -e profiling/x/cpu-20200101-000000.gasflame
check "keeps the new one" test -e profiling/x/cpu-20200102-000000.gasflame
finish
