#!/bin/bash
# agent.sh - an agent with several targets and two sinks, one of them a store of two shards: a shard dies and comes back, the process that delivers and
# the agent are killed, a configuration is wrong, a target comes and goes. Every window is in the store exactly once, with the sums of the folder's.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root
. "$here/servers.sh"
umask 077

# --- configurations that are wrong ---
conf() { printf '%s\n' "$@" >bad.conf; gf agent --check bad.conf; }
base=("[agent]" "spool = $tmp/spool")
conf "${base[@]}" "spol-size = 1G"
check_status "an unknown key is an error" 2
check "with its line" said "line 3: spol-size"
conf "${base[@]}" "[target x]"
check_status "an agent without a sink is an error" 2
conf "${base[@]}" "[target *]" "log = /x" "[sink a]" "url = file://$tmp/files"
check_status "a log is of one target" 2
conf "${base[@]}" "[target x]" "events = heap" "[sink a]" "url = file://$tmp/files"
check_status "an agent hooks nothing" 2
check "and says what it records" said "cpu, wait, mem"
conf "${base[@]}" "[target x]" "[sink ../a]" "url = file://$tmp/files"
check_status "the name of a sink is no path" 2
conf "${base[@]}" "[target x]" "[sink a]" "url = gopher://x"
check_status "an address that no sink has is an error" 2
echo secret >token && chmod 644 token
conf "${base[@]}" "[target x]" "[sink a]" "url = file://$tmp/files" "token-file = $tmp/token"
check_status "a secret that others may read is refused" 1
check "with what to do" said "chmod 600"
mkdir -m 777 open && ln -s "$tmp/elsewhere" open/spool
conf "[agent]" "spool = $tmp/open/spool" "[target x]" "[sink a]" "url = file://$tmp/files"
check_status "a spool where others may write is refused" 1

# --- targets, servers ---
make_servers 2
serve_all
store="clickhouse://writer:p%40ss%3Aw%2Frd'@127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/gasflame"
gf store init "$store"
check_status "the store has tables" 0
# work: a target that does little; PID.
work() { "$WORKLOAD" --seconds 600 --quiet --threads 1 --kinds compute,produce,consume --share 2 & PID=$!; started+=("$PID"); }
work && one=$PID
work && two=$PID
hostile="../o'brien <b>\\ \"x\""
page=$(free_port)
write_conf()
{
	cat >agent.conf <<-END
	[agent]
	spool = $tmp/spool
	window = 10s
	listen = 127.0.0.1:$page
	budget = 50%
	[target pid:$one]
	name = $hostile
	release = v1
	label = region=eu
	[target pid:$two]
	name = second
	[target name:agent-gue*]
	name = {target}
	events = cpu
	[sink store]
	url = $store
	timeout = 5s
	every = 3s
	[sink files]
	url = file://$tmp/files
	$1
	END
}
write_conf ""
gf agent --check agent.conf
check_status "the configuration is right" 0
check "and says what it means here" said "each that matches"

# --- the agent ---
run_agent() { "$GASFLAME" agent agent.conf >>agent.log 2>&1 & agent=$!; started+=("$agent"); }
status() { curl -s "http://127.0.0.1:$page/status.json"; }
# is EXPRESSION: holds of the status, as s?
is() { status | python3 -c 'import json, sys
s = json.load(sys.stdin)
sinks = {x["name"]: x for x in s["sinks"]}
targets = {x["name"]: x for x in s["targets"]}
sys.exit(not ('"$1"'))' 2>/dev/null; }
run_agent
check "the status page answers" wait_for 60 is 's["pid"] == '"$agent"
check "targets are recorded" wait_for 60 is 'all(targets[n]["state"] == "recording" for n in ("second",)) and sum(t["state"] == "recording" for t in s["targets"]) == 2'
check "windows are delivered to both" wait_for 90 is 'all(x["delivered"] >= 2 for x in sinks.values())'
check "the metrics have them" grep -q '^gasflame_cpu_seconds_total{.*target="second"' <(curl -s "http://127.0.0.1:$page/metrics")
check_not "a page of a stranger reads nothing" grep -q target <(curl -s -H 'Host: evil.example' "http://127.0.0.1:$page/status.json")
gf agent --status agent.conf
check "--status tells the same" grep -q second "$STDOUT"
sender=$(status | python3 -c 'import json, sys; print(json.load(sys.stdin)["sender_pid"])')
check "the process that delivers has no rights" grep -q '^CapEff:.*0000000000000000$' "/proc/$sender/status"

# --- what goes wrong ---
for i in 0 1; do kill -9 "${pids[i]}"; done
check "a store that is away is said" wait_for 90 is 'sinks["store"]["waiting"] > 0 and sinks["store"]["note"] != ""'
check "the folder goes on" wait_for 60 is 'sinks["files"]["delivered"] > sinks["store"]["delivered"]'
kill -9 "$sender"
check "another process delivers" wait_for 60 is 's["sender_pid"] not in (0, '"$sender"')'
escape=$'\033[31m'
cp -p /bin/sleep "agent-gue${escape}" 2>/dev/null
cp -p "$WORKLOAD" agent-guest
LD_LIBRARY_PATH=$(dirname "$WORKLOAD") ./agent-guest --seconds 600 --quiet --threads 1 --kinds compute --share 2 & guest=$!
started+=("$guest")
"./agent-gue${escape}" 600 & started+=("$!")
check "a target that comes is found by its pattern" wait_for 90 is 'targets["agent-guest"]["state"] == "recording"'
write_conf "nonsense = 1"
kill -HUP "$agent"
check "a configuration that is wrong changes nothing, and is said" wait_for 30 is '"nonsense" in s["note"] and targets["second"]["state"] == "recording"'
write_conf ""
kill -HUP "$agent"
check "one that is right is taken" wait_for 30 is 's["reloaded_wall_ns"] > 0 and s["note"] == ""'
kill -9 "$guest"
check "a target that goes is let go" wait_for 60 is '"agent-guest" not in targets or targets["agent-guest"]["state"] == "waiting"'
recorders=$(pgrep -P "$agent")
kill -9 "$agent"
gone() { local p; for p in $recorders; do [ ! -e "/proc/$p" ] || return 1; done; }
check "what a killed agent leaves ends by itself" wait_for 60 gone
serve 0
serve 1
wait_for 30 answers 0 && wait_for 30 answers 1
run_agent
check "another agent goes on" wait_for 60 is 's["pid"] == '"$agent"
check "and delivers what waited" wait_for 90 is 'all(x["waiting"] == 0 for x in sinks.values()) and sinks["store"]["delivered"] > 0'
kill "$agent"
ended() { ! kill -0 "$agent" 2>/dev/null; }
check "it ends when it is told to" wait_for 60 ended
check "and leaves an empty spool" test -z "$(find spool -name '*.gasflame' -o -name '*.part')"

# --- every window once ---
check "each window is in the store once, with the sums of the folder's" \
	python3 "$here/agentwindows.py" "$GASFLAME" files gasflame "$hostile" second agent-guest -- "http://127.0.0.1:${ports[0]}" "http://127.0.0.1:${ports[1]}"
check "no name leads out of the folder" test -z "$(find . -path ./files -prune -o -name '*.gasflame' -print)"
gf report --format text "$store?target=second"
check_status "a report reads the windows from the store" 0
check "a name with an escape sequence was recorded" grep -q 'agent-gue.*31m' agent.log
check_not "and reached no terminal as it is" grep -q "$escape" agent.log
check_not "no secret is in the log" grep -E "p@ss|p%40ss" agent.log
finish
