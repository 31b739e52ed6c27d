#!/bin/bash
# Captures that mean harm: nothing outside is touched, and everything ends, with a sentence.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
py="python3 $here/hostile.py"
# One is enough, and it needs no rights: what another tool recorded.
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "main;outer_%d;inner_%d %d\n", i % 50, i, 1 + i % 7 }' >stacks.folded
gf import -o good.gasflame stacks.folded
check_status "a sound capture is made" 0

# asked COMMAND FILE: the commands that read captures, within a time that a bomb never keeps.
asked()
{
	case $1 in
	ls) timeout 60 "$GASFLAME" ls "$2" ;;
	query) timeout 60 "$GASFLAME" query "$2" 'select * from meta' ;;
	diff) timeout 60 "$GASFLAME" diff --format text good.gasflame "$2" ;;
	report) timeout 60 "$GASFLAME" report --format text "$2" ;;
	esac >"$STDOUT" 2>"$STDERR"
	STATUS=$?
}
readers="ls query diff report"
# refused NAME KIND PATTERN: each command says so; ls tells it in its table, the others fail.
refused()
{
	local command bad=
	$py "$2" good.gasflame evil.gasflame
	for command in $readers; do
		asked "$command" evil.gasflame
		if [ "$command" != ls ] && [ "$STATUS" -ne 1 ]; then bad+=" $command ended with $STATUS;"; fi
		cat "$STDERR" "$STDOUT" | grep -qE "$3" || bad+=" $command said $(head -c 200 "$STDERR");"
	done
	if [ -z "$bad" ]; then ok "$1"; else not_ok "$1" "$bad"; fi
}

# --- what lies beside ---
mkdir beside && echo precious >victim
for command in $readers; do
	$py journal good.gasflame beside/x.gasflame victim
	asked "$command" beside/x.gasflame
	check "$command: a journal that names a file deletes nothing" grep -q precious victim
	check "$command: it is refused, with what to do" grep -q 'journal lies beside the capture.*move it away' "$STDERR" "$STDOUT"
	echo precious >victim
done
check "the journal is left alone" test -s beside/x.gasflame-journal
rm beside/*

# beside NAME: the log is as the caller made it; reports do not hang on it and refuse it.
refuses_log()
{
	cp good.gasflame beside/x.gasflame
	asked report beside/x.gasflame
	if [ "$STATUS" -eq 1 ] && grep -q 'x.gasflame-wal beside the capture.*move it away' "$STDERR"; then
		ok "$1"
	else
		not_ok "$1" "status $STATUS: $(cat "$STDERR")"
	fi
	rm -f beside/*
}
ln -s ../victim beside/x.gasflame-wal
refuses_log "a log that is a symbolic link is refused"
mkfifo beside/x.gasflame-wal
refuses_log "a log that is a pipe is refused, and does not hang"
if [ "$(id -u)" -eq 0 ]; then
	# Readable: root reads without the right to read what others keep to themselves.
	cp good.gasflame beside/x.gasflame-wal && chmod 644 beside/x.gasflame-wal && chown 65534 beside/x.gasflame-wal
	refuses_log "a log of another user than the capture's is refused"
else
	skip "a log of another user than the capture's is refused" "needs root"
fi
cp good.gasflame beside/x.gasflame && head -c 100000 /dev/urandom >beside/x.gasflame-wal && ln -s /nowhere beside/x.gasflame-shm
asked report beside/x.gasflame
check_status "noise as a log, and a link as shared memory, change nothing" 0
check "and both stay as they are" test -L beside/x.gasflame-shm -a -s beside/x.gasflame-wal
rm beside/*
ln -s "$PWD/good.gasflame" beside/link.gasflame
asked report beside/link.gasflame
check_status "a link to a capture is followed" 0

# --- swapped while it is opened ---
mkdir swap && cp good.gasflame swap/a && $py journal good.gasflame swap/b victim && mv swap/b-journal swap/x-journal.hidden
( end=$((SECONDS + 4)); while [ "$SECONDS" -lt "$end" ]; do
	cp good.gasflame swap/x.new && mv swap/x.new swap/x; ln -sf /etc/passwd swap/x.new && mv swap/x.new swap/x
	cp swap/x-journal.hidden swap/x-journal; rm -f swap/x-journal; done ) 2>/dev/null &
swapper=$!
bad=
for _ in $(seq 15); do
	asked query swap/x
	[ "$STATUS" -le 1 ] || bad+=" $STATUS"
	! grep -q root: "$STDOUT" "$STDERR" || bad+=" passwd"
done
wait "$swapper"
if [ -z "$bad" ] && grep -q precious victim; then ok "a file that is swapped again and again is read or refused"; else not_ok "a file that is swapped again and again is read or refused" "$bad"; fi

# --- what is in it ---
$py bomb good.gasflame bomb.gasflame
for command in diff report; do
	asked "$command" bomb.gasflame
	check_status "$command: a tree of 10^18 rows in 1 MB ends" 1
	check "$command: and says what it is" said 'more rows than its size has room for'
done
for command in ls query; do
	asked "$command" bomb.gasflame
	check_status "$command: a tree of 10^18 rows is not counted" 0
done
refused "a tree of schemas is refused" schema 'damaged'
refused "4 billion pages that are claimed are refused" sparse 'damaged'
refused "a file of nothing but holes is refused" holes 'full of holes'
refused "a generated column is refused" generated 'a table that is not as gasflame makes it'
refused "a view in place of a table is refused" view 'a view in place of a table'
refused "a trigger is refused" trigger 'a trigger'
refused "an index is refused" index 'an index'
$py overflow good.gasflame evil.gasflame
asked report evil.gasflame
check_status "one text that hundreds of rows share ends" 1
check "and is refused" said 'more text than its size has room for|damaged'
$py text good.gasflame evil.gasflame
asked report evil.gasflame
check_status "a name of 10 MB is a name" 0

# --- the user's own statement ---
forever='with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n'
# What a script starts in the background ignores SIGINT, unless it is told not to.
env --default-signal=INT "$GASFLAME" query good.gasflame "$forever" >/dev/null 2>&1 &
PID=$!
started+=("$PID")
# At work: some CPU time is spent (the 14th field is in ticks).
wait_for 60 awk '{ exit $14 < 10 }' "/proc/$PID/stat"
kill -INT "$PID"
( sleep 60; kill -9 "$PID" ) >/dev/null 2>&1 &
started+=("$!")
wait "$PID"
if [ "$?" -eq 130 ]; then ok "Ctrl-C ends a query without an end"; else not_ok "Ctrl-C ends a query without an end"; fi
for statement in "attach 'out.db' as x" "vacuum into 'out.db'" "select load_extension('x.so')" "pragma temp_store_directory = '/tmp'" \
	"pragma journal_mode = delete" "create temp table t(x)" "pragma query_only = off" "detach main"; do
	gf query good.gasflame "$statement"
	check_status "a query may not: $statement" 1
done
check "and nothing was made" test ! -e out.db
finish
