#!/bin/bash
# A Go program whose goroutines wait in known ways, thousands of them: -e goroutine finds their time, reason, place and who ended
# it. The program goes on when the recorder is killed, and its code is as it was.
. "$(dirname "$0")/../lib.sh"
need_root
. "$(dirname "$0")/../go-lib.sh"
sources=$here/tests/system/truth/wait
check "the program is built" go build -o goroutines "$sources/goroutines.go"
[ -x goroutines ] || finish

# The program, which is told by descriptor 3 what to do.
mkfifo in
./goroutines <in >out 2>&1 3>&- &
PID=$!
started+=("$PID")
exec 3>in
wait_for 5 grep -q ready out

# same_code: the three functions with probes are in memory as they are in the file.
same_code()
{
	python3 - "$PID" ./goroutines <<-'END'
	import re, subprocess, sys
	table = subprocess.run(["nm", "-S", sys.argv[2]], capture_output=True, text=True).stdout
	load = re.search(r"LOAD +0x(\w+) 0x(\w+).*\n.* R E", subprocess.run(["readelf", "-l", sys.argv[2]], capture_output=True, text=True).stdout)
	offset, address = (int(x, 16) for x in load.groups())
	for name in "gopark", "ready", "execute":
	    at = int(re.search(r"(\w+) \w+ [tT] runtime\." + name + "\n", table).group(1), 16)
	    with open(f"/proc/{sys.argv[1]}/mem", "rb") as memory, open(sys.argv[2], "rb") as file:
	        memory.seek(at)
	        file.seek(at - address + offset)
	        if memory.read(32) != file.read(32):
	            sys.exit(f"runtime.{name} is not as in the file")
	END
}

# --- a recorder that is killed ---
echo load >&3
wait_for 5 grep -q loading out
"$GASFLAME" record -e goroutine -d 60 -o killed.gasflame -p "$PID" >killed.out 2>&1 3>&- &
recorder=$!
started+=("$recorder")
wait_for 10 grep -q '^Recording' killed.out
check_not "while it is recorded, the code has breakpoints" same_code
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
check "the recorder is killed: the code is as it was" wait_for 5 same_code
echo stop >&3
wait_for 5 grep -q '^loaded' out
check "the program passed values to and fro meanwhile, all right" grep -q '^loaded true' out

# --- waits ---
"$GASFLAME" record -e wait,goroutine -d 60 -o waits.gasflame -p "$PID" >waits.out 2>&1 3>&- &
recorder=$!
started+=("$recorder")
wait_for 10 grep -q '^Recording' waits.out
check "the cost is said" grep -q 'Each time that a goroutine is parked' waits.out
echo wait >&3
wait_for 10 grep -q '^waited' out
kill -INT "$recorder"
wait "$recorder"
ended=$?
# 3: stacks of threads are cut.
check "recorded" [ "$ended" -eq 0 -o "$ended" -eq 3 ]
check "the recorder has ended: the code is as it was" same_code
check "nothing was lost" [ "$(counter waits.gasflame 'goroutines.lost')" -eq 0 -a "$(counter waits.gasflame 'goroutines.no room')" -eq 0 ]

"$GASFLAME" report --format json --limit 0 waits.gasflame >waits.json 2>/dev/null
for event in goroutine goroutine-queue; do
	"$GASFLAME" report --format folded --what $event waits.gasflame 2>/dev/null >$event.folded
done
# found FUNCTION: ms for which goroutines were parked in it, or ready and not run.
found() { cat goroutine.folded goroutine-queue.folded | awk -v f=";main.$1;" 'index($0, f) { s += $NF } END { printf "%.3f\n", s / 1e6 }'; }
# within A B PERCENT SLACK
within() { awk -v a="$1" -v b="$2" -v p="$3" -v s="$4" 'BEGIN { d = a > b ? a - b : b - a; exit !(d <= b * p / 100 + s) }' || { echo "$1 against $2"; return 1; }; }
# rows: a line for each of the report's: FUNCTION|REASON|COUNT|the function that ended most of it.
python3 - >rows <<-'END'
import json
report = json.load(open("waits.json"))
for r in report["goroutines"]["waits"]:
    print(r["function"], r["reason"], r["count"], r["ended_by"][0]["function"] if r["ended_by"] else "", sep="|")
total = report["account"]["total"]
print("idle" if total["idle"] > 4 * (total["lock"] + total["park"]) else total)
END
while IFS='|' read -r function reason more true count; do
	[ -n "$count" ] || { count=$true true=$more more=$reason; }
	ms=$(found "$function")
	# Of the true time a part is spent on a CPU, or without one on a busy machine, before the goroutine is parked.
	check "$function waited $true ms in all, found $ms" within "$ms" "$true" 5 200
	check "$function waited for: $reason" grep -qF -e "main.$function|$reason|" -e "main.$function|$more|" rows
done < <(grep '|' out)
check "five ways were tried" [ "$(grep -c '|' out)" -eq 5 ]
IFS='|' read -r _ _ count ended < <(grep -F 'main.waitSleep|sleep|' rows)
check "each of 2,500 sleeps is counted ($count)" [ "$count" -eq 2500 ]
check "sleeps are ended by the timer ($ended)" [ "$ended" = "[timer]" ]
IFS='|' read -r _ _ count ended < <(grep -F 'main.waitReceive|chan receive|' rows)
check "who sends ends the receive ($ended)" [ "$ended" = main.feed ]
check_not "stacks are complete" grep -q truncated goroutine.folded
"$GASFLAME" report --format text waits.gasflame >waits.txt 2>/dev/null
check "the report says that threads are no goroutines" grep -q 'This is a Go program' waits.txt
check "it has a section on goroutines" grep -q 'Where goroutines wait' waits.txt
check "threads without a goroutine are idle, not in a lock" grep -qx idle rows
exec 3>&-
wait "$PID"
ended=$?
check "the program ends as it should" [ "$ended" -eq 0 ]
# --- a program that ends within a second: its sums are read after that ---
gf run -e goroutine -o run.gasflame -- ./goroutines pass
parks=$(counter run.gasflame goroutines.parks)
waits=$(sql run.gasflame "select sum(coalesce(count, 1)) from sample where event in (select id from event where name in ('goroutine', 'goroutine-idle'))")
check "each of $parks parks has its wait ($waits)" [ "$parks" -gt 5000 -a "$waits" -le "$parks" -a "$waits" -gt $((parks - 50)) ]
# --- what has no goroutines ---
start waits
gf record -e goroutine -d 1 -o no.gasflame -p "$PID"
check "a program that is not of Go is refused" said 'needs a Go program'
finish
