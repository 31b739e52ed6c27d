#!/bin/bash
# traces.sh - spans of samply's marker files and of a Chrome trace (--marks), against what the program that wrote them says of
# itself.
. "$(dirname "$0")/../lib.sh"
need_root

# record_traces NAME ROUNDS OPTIONS…: records truth-traces while it works; NAME.gasflame, NAME.out, NAME.err, NAME/. NAME.log,
# if there is one, is the node's log, which the program writes, or $writer at the end.
record_traces()
{
	local name=$1 rounds=$2 pid recorder
	shift 2
	mkdir "$name"
	unset NODE_LOG
	[ ! -e "$name.log" ] || [ -n "$writer" ] || export NODE_LOG=$name.log
	rm -f gate
	mkfifo gate
	# shellcheck disable=SC2086
	"$TRUTH/truth-traces" "$name" "$rounds" $mode <gate >"$name.out" &
	pid=$!
	started+=("$pid")
	exec 7>gate
	wait_for 5 grep -q ready "$name.out"
	"$GASFLAME" record -d 60 -o "$name.gasflame" "$@" -p "$pid" 2>"$name.err" &
	recorder=$!
	wait_for 20 grep -q '^Recording' "$name.err"
	echo >&7
	wait_for 30 grep -q done "$name.out" || cat "$name.out"
	[ -z "$writer" ] || "$writer" "$name" >>"$name.log"
	sleep 0.5
	kill -INT "$recorder"
	wait "$recorder"
	echo >&7
	exec 7>&-
	wait "$pid"
}
writer=
# X Layer's trace.log of the same blocks, built here: the beginning of each comes after its end, and both have their own time.
xlayer_lines()
{
	python3 - "$1.out" <<-'END'
	import sys, time
	ahead = time.time_ns() - time.monotonic_ns()
	def line(event, name, ns, number):
	    hash = "0x%064x" % number
	    print(f"X Layer,{hash},,okx-defi-xlayer-egseqz-pro,X Layer,,196,{event},{name},,,{(ns + ahead) // 1000000},,,{number},{hash},,,,,,,")
	for words in map(str.split, open(sys.argv[1])):
	    if words[:2] == ["span", "on_new_payload"]:
	        number, start, end = map(int, words[2:5])
	        line(15034, "xlayer_seq_package_tx", start + 500000, number)
	        line(15036, "xlayer_seq_end_block", end, number)
	        line(15032, "xlayer_seq_begin_block", start, number)
	END
}
# compare FILE KIND NAME DURATION_US START_US: as many marks of the kind as the program has spans of the name; half of them
# differ in their duration by no more than the one, and in their start from the program's own mark by no more than the other.
compare()
{
	python3 - "$@" <<-'END'
	import csv, os, statistics, subprocess, sys
	base, kind, name, long, start = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])
	def rows(query):
	    answer = subprocess.run([os.environ["GASFLAME"], "query", "--csv", base + ".gasflame", query], capture_output=True, text=True)
	    return [tuple(map(int, r)) for r in list(csv.reader(answer.stdout.splitlines()))[1:]]
	out = os.path.join(os.path.dirname(base), os.environ["SAID"]) if "SAID" in os.environ else base + ".out"
	said = [line.split() for line in open(out)]
	told = sorted((int(w[3]), int(w[4])) for w in said if w[:2] == ["span", name])
	blocks = sorted((int(w[3]), int(w[2])) for w in said if w[:2] == ["span", "on_new_payload"])
	got = sorted(rows(f"select start_ns, end_ns from mark where kind = '{kind}'"))
	assert len(got) == len(told) > 0, (len(got), len(told))
	late = [abs((b - a) - (e - s)) / 1000 for (a, b), (s, e) in zip(got, told)]
	assert statistics.median(late) <= long, statistics.median(late)
	# The recording's clock by the program's own marks, which the kernel timed.
	own = dict((n, s) for n, s in rows("select number, start_ns from mark where kind = 'own'"))
	zero = statistics.median(t - own[n] for t, n in blocks)
	off = [abs(a - (s - zero)) / 1000 for (a, _), (s, _) in zip(got, told)]
	assert statistics.median(off) <= start, statistics.median(off)
	print(f"{len(got)} marks, durations differ by {statistics.median(late):.1f} us, starts by {statistics.median(off):.1f} us")
	END
}
export -f compare

# Marker files: no option.
mode=
record_traces markers 30
check "spans of marker files are found by themselves, at their time" compare markers execute_block execute_block 1 200
check "those of the other thread, too" compare markers prewarm prewarm 1 200
check "and so many short ones" compare markers tx tx 1 200
check "those that insert a block are blocks" compare markers block on_new_payload 1 200
check "each is on the thread that its file names" test \
	"$(sql markers.gasflame "select count(*) from marks where kind = 'prewarm' and thread = 'prewarmer' or kind = 'execute_block' and thread = 'engine'")" -eq 60
check "within the block that they are of" test "$(sql markers.gasflame "select count(*) from mark a join mark b on b.kind = 'block'
	and b.thread = a.thread and b.start_ns <= a.start_ns and a.end_ns <= b.end_ns where a.kind = 'tx'")" -eq $((30 * 60))
check "there are two files" test "$(counter markers.gasflame 'marks.marker files')" -eq 2
: >named.log
record_traces named 20 --log named.log --mark-function none
check "a log names the blocks that the marker files time" compare named block on_new_payload 1 200
check "with number and gas" test "$(sql named.gasflame "select count(*) from marks where kind = 'block' and number >= 1000 and gas = 1500000")" -eq 20
gf blocks --json named.gasflame
check "gasflame blocks has the spans in each block: those of its thread and those beside it" python3 - "$STDOUT" <<'END'
import json, sys
for r in json.load(open(sys.argv[1]))["rows"]:
    spans = {(s["name"], s["beside"]): s for s in r["spans"]}
    execute, tx, root = (spans[name, False] for name in ("execute_block", "tx", "await_state_root"))
    assert tx["count"] == 60 and tx["depth"] == execute["depth"] + 1 and tx["ns"] <= execute["ns"], r
    assert execute["ns"] + root["ns"] <= r["wall_ns"], r
    assert spans["prewarm", True]["count"] == 1, r
END
gf blocks --block 1005 named.gasflame
check "and for people" grep -qE '% +tx, 60 times$' "$STDOUT"
gf blocks named.gasflame
check "summed over all blocks" grep -qE "by the program's own spans: execute_block [0-9.]+ %, await_state_root [0-9.]+ %" "$STDOUT"
mode='' record_traces perf 20 -e cpu --backend perf
check "without BPF they are found as well" test "$(sql perf.gasflame "select count(*) from mark where kind = 'execute_block'")" -eq 20
# Lines that are none, a file that is not the process's, and one that another has open.
mkdir odd
cat >odd.py <<'END'
import os, sys, time
folder, pid = sys.argv[1], os.getpid()
own = open(f"{folder}/marker-{pid}.txt", "w")
foreign = open(f"{folder}/marker-1.txt", "w")
link = open(f"{folder}/marker-{pid}-{pid}.txt", "w")
os.link(link.name, folder + "/another-name")
print("ready", flush=True)
input()
now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
for f in own, foreign, link:
    f.write(f"{now} {now + 1000} good\n{now + 5} {now} backwards\nno line\n{now} 99999999999999999999999 x\n" + "y" * 5000 + f"\n1 2 long ago\n{now} {now + 10**18} not yet over\n")
    f.flush()
print("done", flush=True)
input()
END
rm -f gate && mkfifo gate
python3 odd.py odd <gate >odd.out &
pid=$!
started+=("$pid")
exec 7>gate
wait_for 5 grep -q ready odd.out
"$GASFLAME" record -d 60 -e cpu -o odd.gasflame -p "$pid" 2>odd.err &
recorder=$!
wait_for 20 grep -q '^Recording' odd.err
echo >&7
wait_for 20 grep -q done odd.out
sleep 0.2
kill -INT "$recorder"
wait "$recorder"
echo >&7
exec 7>&-
check "of bad files and lines the good one is a mark" test "$(sql odd.gasflame "select group_concat(kind) from mark" | tr -d '"')" = good
check "and the others are counted" test "$(counter odd.gasflame 'marks.marker malformed')" -eq 4
check "as is what is not over" test "$(counter odd.gasflame 'marks.marker outside')" -eq 1

mode=quiet
record_traces chrome 40 --marks chrome/trace.json
check "the recording says what it made of the trace" grep -qE 'chrome/trace.json: [0-9,]+ spans are marks, 40 of them blocks \(on_new_payload\); its times count from .* before the start' chrome.err
check "blocks of the trace are blocks, at their time" compare chrome block on_new_payload 20 20000
check "and so are the spans within them" compare chrome execute_block execute_block 20 20000
check "each on its thread" test "$(sql chrome.gasflame "select count(*) from marks where kind = 'prewarm' and thread = 'prewarmer'")" -eq 40
check "the blocks have their numbers" test "$(sql chrome.gasflame "select min(number) || '-' || max(number) from marks where kind = 'block'" | tr -d '"')" = 1000-1039
gf blocks --json chrome.gasflame
check "gasflame blocks lists them on the thread that the trace names, and the parts sum to the wall time" python3 - "$STDOUT" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert [r["number"] for r in rows] == list(range(1000, 1040)), rows
for r in rows:
    assert r["thread"] == "engine" and (not r["split"] or sum(r["split"].values()) == r["wall_ns"]), r
END
gf report --marks --format text chrome.gasflame -o -
check "and report the node's own spans by name" grep -q 'await_state_root' "$STDOUT"

# The same afterwards: a trace that is added to a capture, by each kind of clock.
: >plain.log
record_traces plain 40 --log plain.log --mark-function none
export SAID=plain.out
gf import --marks plain/trace.json plain.gasflame -o imported.gasflame
check_status "import adds a trace to a capture" 0
check "by when its file was made" said 'its times count from .* before the start of the recording'
check "its blocks are at their time" compare imported block on_new_payload 20 20000
check "and have the gas of the log, once each" test \
	"$(sql imported.gasflame "select count(*) || ' ' || sum(gas) from marks where kind = 'block'" | tr -d '"')" = '40 60000000'
cat >other.py <<'END'
"""other.py OUT TRACE: the spans of a program's own words as a trace by the wall clock and by the monotonic one, whole."""
import json, sys, time
wall = time.time_ns() - time.monotonic_ns()
for clock, zero in ("wall", wall), ("mono", 0):
    events = []
    for line in open("plain.out"):
        word = line.split()
        if word[0] == "span":
            name, number, start, end = word[1], int(word[2]), int(word[3]), int(word[4])
            at = start + zero
            events.append({"ph": "X", "pid": 9, "tid": 9, "name": name, "ts": "TS%d.%03d" % (at // 1000, at % 1000),
                           "dur": (end - start) / 1000, "args": {"block.number": number} if number else {}})
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
    open(clock + ".json", "w").write(text.replace('"TS', "").replace('", "dur"', ', "dur"'))
END
python3 other.py
for clock in wall mono; do
	gf import --marks "$clock.json" plain.gasflame -o "$clock.gasflame"
	check "a trace by the $clock clock is known as such" said "its times are of the $clock"
	check "and right within a millisecond" compare "$clock" block on_new_payload 20 1000
done
gf import --marks plain/trace.json --marks-offset 1h plain.gasflame -o moved.gasflame
check "spans that are not of the recording's time are counted" said 'spans are not of the time of the recording'
check "and are no marks" test "$(sql moved.gasflame "select count(*) from mark where kind = 'execute_block'")" -eq 0

# A log names and fills the blocks, the trace times them.
: >both.log
record_traces both 20 --marks both/trace.json --log both.log --mark-function none
unset SAID
check "with a log and a trace, the trace times the blocks" compare both block on_new_payload 20 20000
check "and the log has their gas" test "$(sql both.gasflame "select count(*) from marks where kind = 'block' and gas = 1500000 and transactions = 3")" -eq 20

# A sequencer's blocks by its own word: X Layer's trace.log as the log, and as a trace beside a log or afterwards.
: >xlayer.log
writer=xlayer_lines
record_traces xlayer 20 --log xlayer.log --mark-function none
check "blocks of X Layer's trace.log have the times that it says" compare xlayer block on_new_payload 1000 1000
check "and their numbers" test "$(sql xlayer.gasflame "select min(number) || '-' || max(number) || ' ' || count(*) from marks where kind = 'block'" | tr -d '"')" = '1000-1019 20'
check "which are counted" test "$(counter xlayer.gasflame 'marks.xlayer blocks')" -eq 20
writer=
xlayer_lines plain >plain-trace.log
export SAID=plain.out
gf import --marks plain-trace.log plain.gasflame -o sequencer.gasflame
check "it times the blocks that a log has named" compare sequencer block on_new_payload 1000 1000
check "which keep their gas" test "$(sql sequencer.gasflame "select count(*) || ' ' || sum(gas) from marks where kind = 'block'" | tr -d '"')" = '40 60000000'
unset SAID
gf blocks --json plain-trace.log
check "and it is read by itself, without a recording" python3 - "$STDOUT" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
own = {int(w[2]): int(w[4]) - int(w[3]) for w in map(str.split, open("plain.out")) if w[:2] == ["span", "on_new_payload"]}
assert len(rows) == len(own) == 40, len(rows)
assert all(abs((r["elapsed_ns"] or 0) - own[r["number"]]) <= 1000000 and r["client"] == "xlayer" for r in rows), rows
END

# Traces that are none, or bad.
echo 'heap_v2/1' >no.json
gf import --marks no.json plain.gasflame -o x.gasflame
check_status "a file that is no trace is an error" 1
check "that says what is wrong with it" said 'begins with neither'
gf import --marks missing.json plain.gasflame -o x.gasflame
check_status "so is one that is not there" 1
gf import --marks plain/trace.json --marks-offset soon plain.gasflame -o x.gasflame
check_status "and an offset that is no time a mistake" 2
gf record -d 1 -o x.gasflame --marks . -p $$
check_status "and a folder is no trace" 2
gf record -d 0.3 -e cpu -o late.gasflame --marks never.json -p $$
check "a trace that never comes is said, and the recording kept" said 'never.json.*the recording has no spans of it'
{ cat plain/trace.json; printf ',{"ph":"E","pid":1,"tid":0,"name":"never begun","ts":5},{"ph":"B",\001'; } >broken.json
gf import --marks broken.json --marks-offset 0s plain.gasflame -o broken.gasflame
check "what is before the place where it breaks is read, and the place named" said '1 ends have no beginning.*at byte [0-9]+'
check "and counted" test "$(counter broken.gasflame 'marks.trace malformed')" -eq 1

# One that is far larger than the memory that it may take, and has beginnings without an end.
python3 - <<'END'
piece = "".join(',\n{"ph":"%s","pid":1,"tid":%d,"name":"%s","cat":"engine::tree::payload_processor","ts":%d.125}' %
                ("E" if i % 2 else "B", i // 2 % 40 if i % 2 else i // 2 % 41, "tx" if i % 11 else "odd", i) for i in range(20000))
with open("large.json", "w") as f:
    f.write('[{"ph":"M"}')
    for i in range(70):
        f.write(piece)
END
check "the trace is large" test "$(stat -c %s large.json)" -gt 100000000
check "and needs less memory by far" python3 - "$GASFLAME" <<'END'
import resource, subprocess, sys
r = subprocess.run([sys.argv[1], "import", "--marks", "large.json", "--marks-offset", "0s", "plain.gasflame", "-o", "large.gasflame"],
                   capture_output=True, text=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert r.returncode == 0 and "have no" in r.stderr, r.stderr
assert most < 90000, most
END
check "of its spans the longest are kept" test "$(counter large.gasflame 'marks.trace spans')" -le 100000
check "and it is said that it is unbalanced" test "$(counter large.gasflame 'marks.trace unbalanced')" -gt 100000
finish
