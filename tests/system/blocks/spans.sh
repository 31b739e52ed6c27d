#!/bin/bash
# spans.sh - marks from entry and return of functions, from polls of a future, and from the program itself (gasflame.h),
# against what a program measured of itself.
. "$(dirname "$0")/../lib.sh"
need_root
quiet_moment

# record_spans MODE N OPTIONS…: records truth-spans while it does that; MODE.gasflame, MODE.out and MODE.err.
record_spans()
{
	local mode=$1 n=$2 pid recorder
	shift 2
	rm -f gate
	mkfifo gate
	"$TRUTH/truth-spans" "$mode" "$n" <gate >"$mode.out" &
	pid=$!
	started+=("$pid")
	exec 7>gate
	wait_for 5 grep -q ready "$mode.out"
	"$GASFLAME" record -d 30 -o "$mode.gasflame" "$@" -p "$pid" 2>"$mode.err" &
	recorder=$!
	wait_for 10 grep -q '^Recording' "$mode.err"
	echo >&7
	wait_for 20 grep -q done "$mode.out" || cat "$mode.out"
	sleep 0.2
	kill -INT "$recorder"
	wait "$recorder"
	echo >&7
	exec 7>&-
	wait "$pid"
}
# compare FILE KIND NAME MICROSECONDS: as many spans as the program says, none longer than what it saw of it, and half of them
# shorter by no more than that: probes are between its looks at the clock.
compare()
{
	python3 - "$@" <<-'END'
	import csv, os, statistics, subprocess, sys
	base, kind, name, limit = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
	own = {}
	for line in open(base + ".out"):
	    word = line.split()
	    if word and word[0] == "span" and word[1] == name:
	        own.setdefault(int(word[2]), []).append(int(word[3]))
	told = sorted(ns for all in own.values() for ns in all)
	query = "select number, end_ns - start_ns from mark where kind = '%s'" % kind
	answer = subprocess.run([os.environ["GASFLAME"], "query", "--csv", base + ".gasflame", query], capture_output=True, text=True)
	rows = list(csv.reader(answer.stdout.splitlines()))[1:]
	got = sorted(int(ns) for _, ns in rows)
	assert len(got) == len(told) > 0, (len(got), len(told), answer.stderr)
	numbered = {int(number): int(ns) for number, ns in rows if number}
	pairs = [(own[n][0], ns) for n, ns in numbered.items()] if len(numbered) == len(got) else list(zip(told, got))
	late = [a - b for a, b in pairs]
	assert min(late) > -2000, min(late)
	assert statistics.median(late) <= limit * 1000, statistics.median(late)
	print(f"{len(got)} spans, {statistics.median(late) / 1000:.1f} us apart")
	END
}

record_spans words 20
check "the program's own blocks are marks, each as long as it says" compare words block block 100
check "so are spans that end on another thread" compare words 'passed on' passed-on 100
check "with their number, gas and transactions" \
	test "$(sql words.gasflame 'select count(*) from mark where number - 1000 = transactions and gas = 21000 * transactions and number >= 1000')" -eq 20
check "names are made at run time" test "$(sql words.gasflame "select count(*) from marks where kind like 'made _' and ms = 0")" -eq 20
check "a name that cannot be read is no name" test "$(sql words.gasflame "select count(*) from marks where kind = 'mark'")" -eq 1
check "an end without a beginning is counted" test "$(counter words.gasflame 'marks.spans begun before')" -eq 1
check "so is a beginning without an end" test "$(counter words.gasflame 'marks.spans under way')" -eq 1
gf blocks --json words.gasflame
check "gasflame blocks lists them, and the parts sum to the wall time" python3 - "$STDOUT" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert [r["number"] for r in rows] == list(range(1000, 1020)), rows
for r in rows:
    assert r["thread"] == "truth-spans" and (not r["split"] or sum(r["split"].values()) == r["wall_ns"]), r
END

record_spans functions 20 --mark-function marked_work --mark-function marked_deep --mark-function marked_escape
check "calls of a function, on three threads, are spans as long as they say" compare functions block marked_work 200
check "of recursive calls the outermost counts" compare functions marked_deep marked_deep 200
check "and the inner ones are counted" test "$(counter functions.gasflame 'marks.spans nested')" -eq 300
check "calls that are left by longjmp do not spoil the next" compare functions marked_escape marked_escape 200
# Only one that is taken while the kernel steps over a return is not.
check "stacks through marked functions are whole" above 3 "$(counter functions.gasflame 'truncated.%')"

record_spans futures 20 --mark-function 'later::{{closure}}'
check "polls of a future on two threads are one span" compare futures block later 300
check "three polls each" test "$(counter futures.gasflame marks.polls)" -eq 60

record_spans often 1.5 --mark-function marked_small
check "a function that is called too often loses its probes" test "$(counter often.gasflame 'marks.functions given up')" -eq 1
check "which is said" grep -q 'marked_small is called too often' often.err
# Within a look or two of a fifth of a second, at 2,000 a second.
check "and its spans are few" above 4001 "$(sql often.gasflame 'select count(*) from mark')"

# What cannot be marked is refused, and something else is named.
refuse()
{
	local what=$1 pattern=$2
	shift 2
	gf record -d 1 -o refused.gasflame "$@" -p "$idle"
	check_status "$what is refused" "$want"
	check "$what: says why" said "$pattern"
}
"$TRUTH/truth-spans" words 1 < <(exec sleep 60 2>/dev/null) >/dev/null &
idle=$!
started+=("$idle")
sleep 0.2
want=1
refuse "a function that begins with a stepped instruction" 'single-step.*gasflame.h' --mark-function marked_leaf
refuse "a function that is not there" 'no function of the target.*nm -C' --mark-function no_such_function
refuse "functions without BPF" 'needs BPF' --mark-function marked_work --backend perf
want=2
refuse "a pattern that is too short" 'too short' --mark-function x
gf record -d 0.5 -e cpu --backend perf -o perf.gasflame -p "$idle"
check "without BPF, and without functions, the rest is recorded" test "$STATUS" -ne 1 -a "$STATUS" -ne 2
check "what the program says of itself is missing then, which is said" said 'gasflame.h.*needs BPF'
sleep 60 &
plain=$!
started+=("$plain")
gf record -d 0.5 -e cpu,mem --backend perf -o plain.gasflame -p "$plain"
check "of a program that says nothing it is not said" eval '! said "gasflame\.h"'

# A program that is started is marked from its first instruction on.
printf '\n\n' >two
gf run -e cpu -o run.gasflame --mark-function marked_work -- "$TRUTH/truth-spans" functions 5 <two
cp "$STDOUT" run.out
check "run marks functions, too" compare run block marked_work 300
gf run -e cpu -o run2.gasflame -- "$TRUTH/truth-spans" words 5 <two
check "and hears the program" test "$(sql run2.gasflame "select count(*) from marks where kind = 'block'")" -eq 5

# A second recorder looks at the file while the breakpoints of the first one are in all private mappings of it.
"$GASFLAME" record -d 60 --mark-function marked_work -o first.gasflame -p "$idle" 2>first.err &
recorder=$!
wait_for 10 grep -q '^Recording' first.err
gf record -d 0.2 --mark-function marked_work -o second.gasflame -p "$idle"
check "two recorders mark one function" test "$(counter second.gasflame 'marks.probed functions')" -eq 1
kill -INT "$recorder"
wait "$recorder"

# The journal of a unit: what journalctl is asked for, and what it says.
mkdir bin
cat >bin/journalctl <<'END'
#!/bin/sh
echo "$*" >asked
while sleep 0.1; do # what is said before the recording begins is not of it; the rest is said more than once
	printf '{"_PID":"7","F_NUMBER":"7","F_HASH":"0x%064x","F_TXS":"3","MESSAGE":"%s","F_GAS_USED":"0gas","F_ELAPSED":"1ms"}\n' 7 \
		"Block added to canonical chain" || exit
done
END
chmod +x bin/journalctl
PATH=$PWD/bin:$PATH gf record -d 2 -o journal.gasflame --log journal:node@1.service -p "$idle"
check "a unit's journal is read as a log, with the fields of its entries" test "$(sql journal.gasflame 'select group_concat(number) from mark' | tr -d '"')" = 7
check "by journalctl, for that unit, from now on" grep -q -- '--follow --output=json .*--lines=0 --unit node@1.service' asked
check "a block without gas is one" test "$(sql journal.gasflame 'select gas from mark where number = 7')" = 0
check_not "and it ends with the recording" pgrep -f "$PWD/bin/journalctl"
gf blocks journal.gasflame
check "its Ggas/s are not known" grep -qE '^ +7 +0.00M +3 +1.00 +- ' "$STDOUT"
gf record -d 1 -o x.gasflame --log 'journal:-x;y' -p "$idle"
check_status "what is no unit's name is a mistake" 2

# A container's log: JSON around each line.
: >box.log
"$GASFLAME" record -d 1.5 -o box.gasflame --log box.log -p "$idle" 2>box.err &
recorder=$!
wait_for 10 grep -q '^Recording' box.err
echo '{"log":"\u001b[32m INFO\u001b[0m Block added to canonical chain number=8 hash=0x'"$(printf %064x 8)"' txs=1 gas_used=1.50Mgas elapsed=2ms\n","stream":"stdout","time":"2026-01-01T00:00:00.000000001Z"}' >>box.log
wait "$recorder"
check "a container's log is read" test "$(sql box.gasflame 'select number || gas from mark' | tr -d '"')" = 81500000
finish
