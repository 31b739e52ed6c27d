#!/bin/bash
# top, on a pseudo-terminal and into a pipe: what is on the screen after which key, against report's figures.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root
# part ARGUMENTS…: top.py prints its own lines.
part()
{
	if [ -n "$no_terminal" ]; then
		skip "$1" "built without ncurses"
		return
	fi
	python3 "$here/top.py" "$@" || failed=$((failed + 1))
	passed=$((passed + 1))
}
# json FILE EXPRESSION: of python, with the lines in d.
json() { python3 -c 'import json, sys; d = [json.loads(l) for l in open(sys.argv[1])]; print(eval(sys.argv[2]))' "$@"; }

gf top --json no-such-program
check_status "no such program" 1
gf top
check_status "nothing named" 2
check "says what to name" said "no capture in this folder .*gasflame top TARGET"

start_workload --seconds 1000 --share 40
gf record -e cpu,wait,io,fault -d 3 -o one.gasflame -p "$PID"
kill -STOP "$PID" # while only the capture is looked at
check_status "recorded" 0

gf top one.gasflame </dev/null
check_status "without a terminal" 1
check "says what to do then" said "[-]-batch"
no_terminal=$(grep "without ncurses" "$STDERR")
gf top --batch --what nonsense one.gasflame
check_status "no such event" 1
gf top --batch --from 2 --to 1 one.gasflame
check_status "a range the wrong way round" 2
gf top --json --limit 0 one.gasflame
check_status "json" 0
"$GASFLAME" report --format json --limit 0 one.gasflame >report.json 2>/dev/null
check "every function has report's figures" python3 - <<-'END'
	import json
	top = {(f["function"], f["module"]): f for f in json.loads(open("stdout").read())["functions"]}
	wrong = n = 0
	for f in json.load(open("report.json"))["functions"]:
	    mine = top.get((f["name"], f["module"].rsplit("/", 1)[-1]))
	    n += 1
	    wrong += not mine or mine["self"] != f["self"] or mine["total"] != f["total"]
	assert n > 50 and not wrong, (n, wrong)
END
gf top --batch --page threads one.gasflame
check "batch: the page that was asked for" grep -q "WHAT ITS TIME WAS" "$STDOUT"
check_not "and no other" grep -q "SELF%" "$STDOUT"
check "no line is wider than 110" awk 'length > 110 { exit 1 }' "$STDOUT"

part recording one.gasflame
part signals one.gasflame
kill -CONT "$PID"
part live "$PID"

gf top --batch -n 3 --interval 0.5 --page functions -p "$PID"
check_status "batch, live" 0
check "three refreshes" test "$(grep -c '^gasflame top' "$STDOUT")" -eq 3
gf top --json -n 3 --interval 1 --window 2 --limit 0 -p "$PID"
check_status "json, live" 0
check "three lines" test "$(json "$STDOUT" 'len(d)')" = 3
check "each thread's time is all there" python3 - <<-'END'
	import json
	last = [json.loads(l) for l in open("stdout")][-1]
	old = [t for t in last["threads"] if t["thread"] in ("compute-0", "compute-1", "disk-0", "query-0", "pool-0")]
	bad = [t for t in old if abs(sum(t["time"].values()) / 1e9 - last["seconds"]) > 0.05 * last["seconds"]]
	assert len(old) >= 5 and not bad, (last["seconds"], bad)
END

kill "$PID"

# Blocks of a log that is written meanwhile: each with its gas, its time and what that was.
start_workload --seconds 100 --kinds compute --threads 1
: >node.log
"$GASFLAME" top --json --interval 0.5 --page blocks --log node.log -p "$PID" >blocks.json 2>blocks.err &
watching=$!
# split_block: one of the blocks has a split. On a busy machine the target may not have run within the first ones.
split_block()
{
	python3 - <<-'END'
		import json
		rows = [b for l in open("blocks.json") if l.endswith("\n") for b in json.loads(l)["blocks"] if b["time"]]
		assert rows[-1]["gas"] == 1500000 and rows[-1]["transactions"] == 3 and rows[-1]["ns"] == 40000000, rows[-1]
		assert sum(rows[-1]["time"].values()) == rows[-1]["ns"], rows[-1]
	END
}
for number in $(seq 200); do
	echo "INFO Block added to canonical chain number=$number hash=0x$(printf '%064x' "$number") txs=3 gas_used=1.50Mgas elapsed=40ms" >>node.log
	sleep 0.2
	grep -q '"time":{"' blocks.json && split_block >/dev/null 2>&1 && break
done
kill -INT "$watching"
wait "$watching"
check "live: a block of the log has its gas and its time, split by cause" split_block
gf top --log node.log one.gasflame
check_status "--log is for a running node" 2

kill "$PID"

# True shares are known: a second of it, by name.
start shares 100
gf top --json -n 5 --window 4 -F 999 -e cpu --limit 0 -p "$PID"
check_status "shares" 0
kill "$PID"
wait "$PID"
while read -r name true_share; do
	found=$(json "$STDOUT" "[f['total_percent'] for f in d[-1]['functions'] if f['function'] == '$name'][0]")
	check "$name is $true_share %, found $found" near "$found" "$true_share" 3
done < <(grep burn "$OUT")

# Tables that have grown beyond the limit start over, and all goes on.
start_workload --seconds 300 --share 40
gf top --batch -n 4 --interval 0.5 --max-memory 1K --page functions -p "$PID"
check_status "starts over" 0
check "says so" said "started over"
check "and still has figures" sh -c "tail -15 '$STDOUT' | grep -q %"
kill "$PID"

start_workload --seconds 600 --kinds compute --threads 1 --share 40
part ending "$PID"
gf top --batch --backend perf one.gasflame
check_status "an option that it does not have" 2
# An ordinary user on a process of their own: without BPF there are functions, and threads by the clock.
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
	skip "an ordinary user" "perf_event_paranoid is above 2"
else
	cp "$GASFLAME" "$TRUTH/truth-deep" "$tmp/" && mkdir -m 777 open
	setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/truth-deep" 40 300 >deep.out &
	PID=$!
	started+=("$PID")
	wait_for 5 grep -q ready deep.out
	for refreshes in 5 10 40; do # longer where the target got no CPU
		as_user env XDG_CACHE_HOME="$tmp/open" "$tmp/gasflame" top --batch -n $refreshes --interval 0.5 -p "$PID" >"$STDOUT" 2>"$STDERR"
		STATUS=$?
		! grep -q deep_burn "$STDOUT" || break
	done
	check_status "an ordinary user" 0
	check "the functions by name" grep -q deep_burn "$STDOUT"
	check "the thread" grep -qE "[0-9] % .*truth-deep" "$STDOUT"
	kill "$PID"
fi

start idle
: >"$STDOUT"
"$GASFLAME" top --batch -p "$PID" >"$STDOUT" 2>"$STDERR" &
batch=$!
started+=("$batch")
check "batch prints" wait_for 20 grep -q "gasflame top" "$STDOUT"
kill -INT "$batch"
wait "$batch"
check "Ctrl-C ends batch" test $? -eq 0
finish
