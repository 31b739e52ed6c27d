#!/bin/bash
# Files that root writes where somebody else writes, too: links, swapped files, the same name twice, dumps of a liar.
. "$(dirname "$0")/../lib.sh"
need_root
shown() { printf '%s\n' "$(ls -ln "$@" 2>&1)"; }
his() { chown -h 65534:65534 "$@"; }
owner() { stat -c %u "$1"; }

start_workload --seconds 3000 --kinds compute --threads 1 --share 40
target=$PID
# It computes little, and so often that each recording of a second sees it, on a busy machine too.
renice -n -5 -p $(ls "/proc/$target/task") >/dev/null
gf record -e cpu -d 1 -o one.gasflame -p "$target"
check_status "a capture" 0
check "is its owner's alone" test "$(stat -c %a one.gasflame)" = 600

# --- a folder of somebody else's, in which links lead to root's ---
mkdir his root
cp one.gasflame his/x.gasflame
his his his/x.gasflame
for name in x.html x.svg x.diff.html; do
	ln -s ../root/NEW "his/$name"
	his "his/$name"
done
refused()
{
	check "$1: refused" test "$STATUS" -eq 1
	check "$1: with the reason" said 'symbolic link|Permission denied; it is written as'
	check "$1: nothing was made" test -z "$(ls root)"
	rm -f root/*
}
gf report his/x.gasflame; refused "report beside a stranger's capture"
gf report --format svg his/x.gasflame; refused "its picture"
gf report -o his/x.svg his/x.gasflame; refused "report -o"
gf diff --format html one.gasflame his/x.gasflame; refused "diff"
gf flamegraph -o his/x.svg <<<'a;b 1'; refused "flamegraph -o"
(cd his && ln -s ../root/NEW palette.map && his palette.map && "$GASFLAME" flamegraph --cp <<<'a;b 1' >"$STDOUT" 2>"$STDERR")
STATUS=$?
refused "the colours of flamegraph --cp"
gf record -e cpu -d 1 -o his/x.svg -p "$target"; refused "record -o"
gf import -o his/x.svg one.gasflame; refused "import -o"
ln -s ../root his/through && his his/through
gf report -o his/through/NEW one.gasflame; refused "a folder that is a link"
gf record -e cpu -d 1 -o his/through/NEW -p "$target"; refused "record into such a folder"
mkdir cwd && his cwd && ln -s ../root cwd/profiling && his cwd/profiling
(cd cwd && "$GASFLAME" record -e cpu -d 1 -p "$target" >"$STDOUT" 2>"$STDERR")
STATUS=$?
refused "profiling/ that is a link"

# What is no link is written, and is his.
rm his/x.html
gf report his/x.gasflame
check_status "without the link the report is written" 0
check "it is the capture's owner's" test "$(owner his/x.html)" = 65534
check "and as readable as the capture" test "$(stat -c %a his/x.html)" = 600
ln his/x.html his/kept
gf report his/x.gasflame
check "a second name of the old report keeps it" test "$(stat -c %h his/kept his/x.html | sort -u)" = 1

# Somebody swaps a file and a link all the time.
(cd his && while :; do ln -sf ../root/NEW x.html; rm -f x.html; : >x.html; done) 2>/dev/null &
started+=("$!")
swapper=$!
for i in $(seq 12); do
	gf report --format html his/x.gasflame
done
kill "$swapper"
wait "$swapper" 2>/dev/null
check "a link that comes and goes is never followed" test -z "$(ls root)"
check "nothing of ours is left in his folder" test -z "$(find his -name '.gasflame*')"

# Names that were typed may be what they are.
check "-o /dev/stdout" test "$("$GASFLAME" report --format folded -o /dev/stdout one.gasflame 2>/dev/null | wc -l)" -gt 0
check "-o /dev/null" "$GASFLAME" report --format svg -o /dev/null one.gasflame
mkfifo fifo
cat fifo >through.folded &
started+=("$!")
check "-o FIFO" "$GASFLAME" report --format folded -o fifo one.gasflame
wait_for 5 test -s through.folded
check "it went through" test -s through.folded

# --- the same name at the same time ---
mkdir twice && cd twice || exit 1
for i in 1 2 3; do
	pids=()
	for k in 1 2 3 4; do
		"$GASFLAME" record -e cpu --max-overhead 0 -d 1 -p "$target" >"said.$i.$k" 2>&1 &
		pids+=("$!")
	done
	wait "${pids[@]}"
done
made=0 read=0
for file in profiling/*/*.gasflame; do
	made=$((made + 1))
	[ "$(samples "$file")" -gt 0 ] && read=$((read + 1))
done
check "twelve recordings, four at a time, are twelve files ($made)" test "$made" -eq 12
check "each with samples ($read)" test "$read" -eq 12
check "each said its own name" test "$(grep -hoE 'profiling/[^ ]+\.gasflame' said.* | sort -u | wc -l)" -eq 12
pids=()
for k in 1 2 3 4; do
	"$GASFLAME" record -e cpu --max-overhead 0 -d 100 -o same.gasflame -p "$target" >/dev/null 2>"same.$k" &
	pids+=("$!")
	started+=("$!")
done
# The one goes on until the others have given up, however late they come.
gave_up() { [ "$(grep -lE 'being written|just been made' same.? | wc -l)" -ge 3 ]; }
wait_for 20 gave_up
wait_for 10 eval '[ "$(samples same.gasflame)" -gt 0 ]'
kill -INT "${pids[@]}" 2>/dev/null
won=0
for pid in "${pids[@]}"; do
	wait "$pid" && won=$((won + 1))
done
check "of four that record into one file one does ($won)" test "$won" -eq 1
check "the others say why" test "$(grep -lE 'being written|just been made' same.? | wc -l)" -eq 3
check "its file is whole" test "$(samples same.gasflame)" -gt 0
cd ..

# --- a name that a recorder writes to ---
start_workload
"$GASFLAME" record -d 100 -o taken.gasflame -p "$PID" >/dev/null 2>taken.err &
recorder=$!
started+=("$recorder")
wait_for 20 grep -q Recording taken.err
printf 'main;run 5\n' >one.folded
gf import -o taken.gasflame one.folded
check_status "import does not take the name of a capture that is being recorded" 1
check "and says why" said 'being recorded|being written'
sleep 0.3 # some samples
kill -INT "$recorder"
wait "$recorder"
check "the recording ends well ($?)" test $? -eq 0
check "and is whole" test "$(samples taken.gasflame)" -gt 0
kill "$PID"
gf import -o taken.gasflame one.folded
check_status "once it is over, the name is free" 0

# --- what clean removes ---
mkdir shared && chmod 1777 shared
echo precious >shared/index.html
cp one.gasflame shared/index.gasflame && his shared/index.gasflame
cp one.gasflame shared/own.gasflame && echo report >shared/own.svg
gf clean --all shared
check_status "clean" 0
check "a stranger's capture does not take root's page with it" test -e shared/index.html
check "and that is said" said 'index.html is not of the owner'
check "a report of its owner goes" test ! -e shared/own.svg

# --- a target that lies about its heap dump ---
mkdir lair && chmod 777 lair
cp "$TRUTH/truth-heapfake" lair/ && cp "$(dirname "$TRUTH/truth-heapfake")/libfakeje.so" lair/ && chmod 755 lair/*
printf 'heap_v2/524288\n  t*: 1: 100 [0: 0]\n@ 0x1000\n  t*: 1: 100 [0: 0]\n\nMAPPED_LIBRARIES:\n00001000-00002000 r-xp 00000000 00:00 0 secret\n' >secret.heap
chmod 600 secret.heap
# It makes its links in /tmp, and nobody but us takes them away.
cleanups+=("find /tmp -maxdepth 1 -type l -lname '$tmp/*' -delete")
LURE=$tmp/secret.heap LD_LIBRARY_PATH=$tmp/lair setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$tmp/lair/truth-heapfake" >lair.out 2>&1 &
PID=$!
started+=("$PID")
wait_for 5 grep -q ready lair.out
gf heap dump -o lie.gasflame "$PID"
check "a link in place of a dump is not read" test "$STATUS" -eq 1
check "with the reason" said 'not a file that process'
check "no capture was made of it" test ! -e lie.gasflame
check "the target lives" kill -0 "$PID"

finish
