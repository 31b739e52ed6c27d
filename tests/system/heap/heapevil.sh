#!/bin/bash
# heapevil: -e heap on processes that are hostile, or that notice how they were stopped. Nothing outside is touched, none dies.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac
tools=$(dirname "$TRUTH")

# lives NAME PID
lives()
{
	check "$1: it lives" kill -0 "$2"
	check "$1: nobody holds it" grep -qE '^TracerPid:\s+0$' "/proc/$2/status"
	check "$1: no slot leads to us" sh -c "! python3 '$here/heapslots.py' $2"
}
# once PID: hooks in and out, without the rest of a recording. What it says is in $STDOUT.
once() { timeout 60 "$tools/implants" "$1" cycle 1 >"$STDOUT" 2>&1; STATUS=$?; }
# end_recorder NAME: ends it as Ctrl-C does.
end_recorder()
{
	kill -INT "$recorder"
	wait "$recorder"
	STATUS=$?
	# 3: too much was lost, and it says so. The target allocates without a pause, and each 4 KiB are a sample.
	check "$1: is recorded" test "$STATUS" -eq 0 -o "$STATUS" -eq 3
	[ "$STATUS" -eq 0 ] || sed 's/^/#   /' recorder
}
# ours PID: how many mappings of our name it has.
ours() { grep -c 'memfd:gasflame-heap' "/proc/$1/maps"; }

# A file of root's, in the place of the memory that the target makes for us.
echo "of root's" >victim
chmod 644 victim
unharmed=$(sha256sum <victim)
touched=0
for i in $(seq 8); do
	start heapevil swap "$tmp/victim"
	once "$PID"
	[ "$(sha256sum <victim)" = "$unharmed" ] || touched=$((touched + 1))
	[ "$STATUS" -le 1 ] || touched=$((touched + 1))
	[ "$i" -eq 8 ] || kill "$PID"
done
check "a file in the place of our memory: it is not written to" test "$touched" -eq 0
lives "a file in the place of our memory" "$PID"
kill "$PID"

# A file of root's that is called as our memory is, and begins with the same bytes.
start heapbad load 1
once "$PID"
mkdir detached
cat "/proc/$PID/map_files/$(awk '/r-xp.*memfd:gasflame-heap/ { split($1, a, "-"); sub(/^0*/, "", a[1]); sub(/^0*/, "", a[2]);
	print a[1] "-" a[2] }' "/proc/$PID/maps")" >detached/memfd:gasflame-heap
truncate -s 64K detached/memfd:gasflame-heap
truncate -s 100M detached/memfd:gasflame-heap
kill "$PID"
before=$(sha256sum <detached/memfd:gasflame-heap)
start heapevil path "$tmp/detached"
if grep -q cannot "$OUT"; then
	skip "a file of our memory's name" "$(cat "$OUT")"
else
	check "a file of our memory's name: is one" grep -q ' /memfd:gasflame-heap' "/proc/$PID/maps"
	gf record -e heap --heap-sample 64K -d 1 -o path.gasflame -p "$PID"
	check "a file of our memory's name: it is not written to" test "$before" = "$(sha256sum <detached/memfd:gasflame-heap)"
	lives "a file of our memory's name" "$PID"
	kill "$PID"
fi
rm -rf detached

# A memfd that is shorter than ours.
start heapevil short
gf record -e heap --heap-sample 64K -d 1 -o short.gasflame -p "$PID"
check_status "a short memfd of our name: is refused" 1
check "a short memfd of our name: with the reason" said 'not ours'
lives "a short memfd of our name" "$PID"
kill "$PID"

# A thread that changes our code before it was run.
start heapevil loop
once "$PID"
check "code that another thread changes: we end" test "$STATUS" -le 1
# It may die of what it has written.
free_or_gone() { ! kill -0 "$PID" 2>/dev/null || grep -qE '^TracerPid:\s+0$' "/proc/$PID/status"; }
check "code that another thread changes: nobody holds it" free_or_gone
kill "$PID" 2>/dev/null

start heapevil closer
for i in 1 2 3 4 5; do
	once "$PID"
done
lives "a thread that closes all descriptors" "$PID"
kill "$PID"

# A child that gave up its rights.
start heapevil scribble
"$GASFLAME" record -e heap --heap-sample 4K -d 600 -o scribble.gasflame -p "$PID" >recorder 2>&1 &
recorder=$!
started+=("$recorder")
wait_for 60 grep -q "child found" "$OUT"
check "a child that writes to our memory: has none" grep -q "child found 0" "$OUT"
check "a child that writes to our memory: its parent lives" kill -0 "$PID"
end_recorder "a child that writes to our memory"
lives "a child that writes to our memory" "$PID"
kill "$PID"

# A child of fork has slots that lead to hooks, and no memory that it shares with us.
start heapevil family
"$GASFLAME" record -e heap --heap-sample 4K -d 600 -o family.gasflame -p "$PID" >recorder 2>&1 &
recorder=$!
started+=("$recorder")
wait_for 60 sh -c "test \"\$(grep -c child '$OUT')\" = 2"
first=$(awk '/child/ { print $2; exit }' "$OUT") second=$(awk '/child/ { p = $2 } END { print p }' "$OUT")
started+=("$first" "$second")
check "a child: has the hooks" python3 "$here/heapslots.py" "$first"
check "a child: and no memory that it shares with us" sh -c "! grep 'rw-s.*memfd:gasflame-heap' /proc/$first/maps"
gf heap detach "$first"
check_status "a child: is detached while its parent is recorded" 0
lives "a child" "$first"
gf record -e heap --heap-sample 4K -d 1 -o child.gasflame -p "$second"
check_status "another child: is recorded while its parent is" 0
check "another child: has samples" above "$(samples child.gasflame)" 100
lives "another child" "$second"
check "their parent: still has its hooks" python3 "$here/heapslots.py" "$PID"
end_recorder "their parent"
check "their parent: has samples" above "$(samples family.gasflame)" 100
lives "their parent" "$PID"
kill "$PID" "$first" "$second"

# Refused before anything was mapped.
for kind in static direct; do
	[ -x "$TRUTH/truth-heap$kind" ] || { skip "heap$kind" "was not built"; continue; }
	start "heap$kind" 1 "$tmp/never"
	gf record -e heap -d 1 -o refused.gasflame -p "$PID"
	check_status "$kind allocator: is refused" 1
	check "$kind allocator: with nothing of ours in it" test "$(ours "$PID")" -eq 0
	kill "$PID"
done

# Threads that notice when they are not what they were. $2 stops take a fraction of a second; a machine that is too busy for
# that makes as many as it can in 20 s.
stopped()
{
	local threads times rest
	start stopped "$1"
	threads=$(ls "/proc/$PID/task" | wc -l)
	timeout 100 "$tools/remotes" "$PID" "$2" 20 >"$STDOUT" 2>&1
	read -r times rest <"$STDOUT"
	check "$1: is stopped and goes on, $times times" test "${times:-0}" -ge $(($2 / 10))
	check "$1: always, and not in vain ($rest)" grep -qE "^[0-9]+ times, 0 refused, 0 in vain" "$STDOUT"
	check "$1: it lives" kill -0 "$PID"
	check "$1: with all its threads" test "$(ls "/proc/$PID/task" | wc -l)" -eq "$threads"
}
stopped filter 100
kill -9 "$PID"
stopped strict 100
kill -9 "$PID"
stopped sleeper 200
kill -9 "$PID"
# Looks at once: when nobody stops it any more it ends its sleep in any case.
start stopped sleeps
timeout 100 "$tools/remotes" "$PID" 2000 20 >"$STDOUT" 2>&1
grep -q slept "$OUT"
check "sleeps: goes on with the time that was left" test $? -eq 0
kill -9 "$PID"
stopped signals 300
sleep 0.1
check "signals: none is lost" sh -c "! grep lost '$OUT'"
kill -9 "$PID"
OUT=$tmp/none
start stopped rseq
if grep -q none "$OUT"; then
	skip "rseq" "the C library has none"
else
	kill -9 "$PID"
	stopped rseq 200
	kill -USR1 "$PID"
	wait "$PID"
	check "rseq: no increment is lost" grep -qE "lost 0$" "$OUT"
fi
finish
