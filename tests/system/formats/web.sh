#!/bin/bash
# Files for speedscope and the Firefox profiler, read by these two themselves; and traces that others wrote.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../../.." && pwd) || exit 1
. "$here/../lib.sh"
need_root
ask() { python3 "$here/web.py" "$@"; }

start_workload --kinds compute,commit,query --seconds 60
gf record -e cpu,wait -d 1 -o web.gasflame -p "$PID"
check_status "something is recorded" 0
{ kill -9 "$PID" && wait "$PID"; } 2>/dev/null
sql web.gasflame "select event.name, sum(coalesce(sample.value, event.period)) from sample join event on event.id = sample.event group by event.name" | tr ',' ' ' >events
# What is idle is left out unless it is asked for.
gf report --idle --format speedscope -o web.speedscope.json web.gasflame
check_status "it is written for speedscope" 0
check "speedscope: the weights of each event add up to what was recorded" ask totals web.speedscope.json events
gf report --idle --format firefox -o web.json web.gasflame
check_status "it is written for the Firefox profiler" 0

# same_stacks FILE EVENT: its stacks, of threads of the same names, are those of the capture.
same_stacks()
{
	diff <("$GASFLAME" report --format folded --idle --what "$2" web.gasflame 2>/dev/null | sort) \
		<("$GASFLAME" report --format folded --idle --what "$2" "$1" 2>/dev/null | sort)
}
for file in web.speedscope.json web.json; do
	for event in cpu wait; do
		check "$file comes back with the stacks of $event" same_stacks "$file" "$event"
	done
done
gzip -k web.json
check "and so does it when it is packed" same_stacks web.json.gz cpu

# Spans within spans; the list is not closed, which the format allows.
cat >trace.json <<'END'
[{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"engine"}},
{"ph":"B","pid":1,"tid":2,"name":"insert","ts":1000},{"ph":"X","pid":1,"tid":2,"name":"execute","ts":1100.25,"dur":700.5},
{"ph":"B","pid":1,"tid":2,"name":"root","ts":1900},{"ph":"B","pid":1,"tid":2,"name":"hash","ts":1950},
{"ph":"E","pid":1,"tid":2,"name":"hash","ts":2400},{"ph":"E","pid":1,"tid":2,"name":"root","ts":2450},
{"ph":"E","pid":1,"tid":2,"name":"insert","ts":3000},{"ph":"X","pid":1,"tid":2,"name":"commit","ts":4000,"dur":12.25}
END
"$GASFLAME" report --format folded --weigh value trace.json >trace.folded 2>/dev/null
check "a Chrome trace that is cut off is read" grep -q 'engine;insert;root;hash 450000$' trace.folded

# --- speedscope itself ---
if folder=$("$top/tools/speedscope" 2>said); then
	check "speedscope's schema holds" ask schema "$folder/file-format-schema.json" web.speedscope.json
	if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
		if python3 "$top/tests/browser/speedscope.py" "$folder" web.speedscope.json trace.json >page 2>&1; then
			check "speedscope's page shows the totals of the file" ask shown web.speedscope.json page
			check "a Chrome trace has the self times here that it has there" ask self trace.json page trace.folded
		else
			not_ok "speedscope's page loads the file" "$(cat page)"
		fi
	else
		skip "speedscope's page" "there is no Chromium"
	fi
else
	skip "speedscope itself" "$(tail -1 said)"
fi

# --- the Firefox profiler's own reader ---
if cli=$("$top/tools/profiler-cli" 2>said); then
	export PROFILER_CLI_SESSION_DIR=$tmp/session PROFILER_CLI_NO_SYMBOLICATE=1
	cleanups+=("$cli stop --all >/dev/null 2>&1")
	# Its server has half a second to start, which is little on a busy machine: it says itself that a second try often works.
	loads()
	{
		local i
		for i in 1 2 3 4 5 6 7 8; do
			$cli load "$tmp/web.json" && return
		done
		return 1
	}
	check "the Firefox profiler loads the file" loads
	$cli profile info --all --json >info 2>&1
	check "the CPU time that it counts is what was recorded" ask firefox info events
	check "it has the markers of long waits" grep -q '"type":"Wait"' web.json
	$cli stop --all >/dev/null 2>&1
else
	skip "the Firefox profiler itself" "$(tail -1 said)"
fi

# --- what others wrote ---
if command -v node >/dev/null; then
	cat >burn.js <<-'END'
	function burn() { let x = 0; for (let i = 0; i < 2e7; i++) x += i % 7; return x }
	burn()
	END
	node --cpu-prof --cpu-prof-dir=prof burn.js
	wanted=$(python3 -c 'import json, glob
p = json.load(open(glob.glob("prof/*.cpuprofile")[0]))
print((p["endTime"] - p["startTime"] - p["timeDeltas"][0]) * 1000)')
	got=$("$GASFLAME" report --format folded --weigh value prof/*.cpuprofile 2>/dev/null | awk '{ n += $NF } END { printf "%d\n", n }')
	check "a profile of node has the time that it lasted" near "$got" "$wanted" "$((wanted / 50))"
	gf report --table functions prof/*.cpuprofile
	check "and its functions" grep -q burn "$STDOUT"
else
	skip "a profile of node" "node is missing"
fi
finish
