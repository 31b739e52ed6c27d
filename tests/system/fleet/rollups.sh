#!/bin/bash
# rollups.sh - roll-ups of functions in a store, maps of nodes and times, and what changed between releases: on two ClickHouse servers as shards,
# whose tables were of version 1.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/servers.sh"
make_servers 2
serve_all
store="clickhouse://writer:p%40ss%3Aw%2Frd'@127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/gasflame"

# --- tables of version 1, with data ---
gf store init --cluster fleet "$store"
for i in 0 1; do
	for table in functions functions_all rollups rollups_all schema_version; do ask "$i" "drop table $table"; done
	ask "$i" "create table schema_version (version UInt64, keep_days UInt64, changed UInt64) engine = MergeTree order by changed"
	ask "$i" "insert into schema_version values (1, 0, 1)"
done
hour=$((1790000000 / 3600 * 3600 + 3600))
targets=("../o'brien\"; drop table functions; -- \\ %_*" "node-b")
# In the second hour a function, waits and blocks are slower; the third is as the first: nothing changed but the release.
for t in 0 1; do
	for k in 0 1 2; do
		python3 "$here/makefleet.py" "$GASFLAME" "$t.$k.gasflame" $((hour + k * 3600)) 3600 $((t * 10 + k)) $([ $k = 1 ] && echo 1.2 3 3) || not_ok "capture $t.$k is made"
		gf store push --target "${targets[t]}" --release "v$k'" "$store" "$t.$k.gasflame"
		check_status "target $t, hour $k: pushed to tables of version 1" 0
	done
done
at="--from $hour --to $((hour + 10800))"
gf store rollup "$store"
check_status "roll-ups want tables of version 2" 1
check "it says what makes them" said "store init"
gf store map $at --figure function --name state_root --slot 10m --json "$store"
check_status "a map needs none" 0
cp "$STDOUT" raw.json
gf store map $at --figure self --name state_root --slot 10m --json "$store"
cp "$STDOUT" rawself.json
gf store init "$store"
check_status "tables are brought up to date" 0
check "to version 2" said "version 2"
check "what was there is there" test "$(ask 0 'select count() from windows_all')" = 720
check "tables over all shards were added, too" test "$(ask 0 "select count() from system.tables where database = 'gasflame' and name in ('functions_all', 'rollups_all')")" = 2

# --- roll-ups ---
gf store rollup --target node-b "$store"
check "of one target" said "rolled up 3 hours"
gf store rollup "$store"
check "of the others" said "rolled up 3 hours: [0-9,]+ rows$"
gf store rollup "$store"
check "an hour once" said "rolled up 0 hours"
gf store rollup "${store/writer:p/writer:x}"
check_status "a wrong password is an error" 1
check_not "which is in no message" said "p@ss|xass|p%40"
# sums TARGET: what each function cost, in the store.
sums() { for i in 0 1; do ask "$i" "select name, sum(self), sum(total) from functions where event = 'cpu' and target = '$1' and release = 'v0\\'' and name != '' group by name order by name format JSONEachRow"; done; }
sums node-b >sums.json
gf report --format json --limit 0 1.0.gasflame
check "functions cost what reports say, with what they call and without, recursion once" python3 - "$STDOUT" sums.json <<-'EOF'
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
rows = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.strip()]
stored = {r["name"]: (int(r["sum(self)"]), int(r["sum(total)"])) for r in rows}
said = {f["name"]: (f["self"], f["total"]) for f in report["functions"]}
assert len(said) > 20 and stored == said, (sorted(stored.items())[:4], sorted(said.items())[:4])
EOF
# same A B: the cells of two maps.
same()
{
	python3 - "$1" "$2" <<-'EOF'
	import json, sys
	a, b = (json.load(open(p, encoding="utf-8")) for p in sys.argv[1:])
	cells = [{n["target"]: n["values"] for n in m["nodes"]} for m in (a, b)]
	assert len(cells[0]) == 2 and any(v for v in list(cells[0].values())[0]), cells[0]
	assert cells[0] == cells[1], cells
	EOF
}
# map FILE OPTIONS: into that file.
map() { gf store map $at --json "${@:2}" "$store" && cp "$STDOUT" "$1"; }
map rolled.json --figure function --name state_root --slot 10m
check "a map from roll-ups is the one from samples" same raw.json rolled.json
check "it did read them" grep -q '"rolled_hours":6,"raw_hours":0' rolled.json
map rolledself.json --figure self --name state_root --slot 10m
check "the same without what it calls" same rawself.json rolledself.json
map fine.json --figure function --name state_root --slot 5m
check "slots that roll-ups have not come from samples" grep -q '"rolled_hours":0,"raw_hours":6' fine.json
# What is left of a client that died, and what two leave that made an hour at the same time.
for i in 0 1; do
	ask "$i" "insert into functions select day, start, target, release, event, name, self, total, self_count, total_count, 7 from functions"
	ask "$i" "insert into functions select day, start, target, release, event, name, self, total, self_count, total_count, rollup + 1 from functions where rollup > 7"
	ask "$i" "insert into rollups select day, hour, target, rollup + 1, made - 1, method, windows, digest, blocks, block_ns, block_p50, block_p90, block_p99, block_max, gas, transactions from rollups"
done
map twice.json --figure function --name state_root --slot 10m
check "half a roll-up does not count, and of two one" same raw.json twice.json

# --- what comes late ---
python3 "$here/makefleet.py" "$GASFLAME" late.gasflame $((hour + 7)) 60 99 3
gf store push --target node-b --release "v0'" "$store" late.gasflame
map late.json --figure function --name state_root --slot 10m
check "an hour with a late window is read from samples" grep -q '"rolled_hours":5,"raw_hours":1' late.json
check_not "and has that window" same raw.json late.json
# By itself, as a fleet has it: one server is away at first.
kill -9 "${pids[1]}" && wait "${pids[1]}" 2>/dev/null
gf store rollup --every 10s "$store"
check_status "a service that never rests is refused" 2
gf store rollup --every 0 "$store"
check_status "and so is one without a pause" 2
"$GASFLAME" store rollup --every 1m "$store" >service.out 2>service.err &
service=$!
started+=("$service")
check "a server that is away does not end it" wait_for 30 grep -q "^warning" service.err
kill -0 "$service" || not_ok "it goes on"
kill "$service"
wait "$service"
check "it ends when it is told to" test $? = 0
serve 1
wait_for 20 answers 1
"$GASFLAME" store rollup --every 1m "$store" >service.out 2>service.err &
service=$!
started+=("$service")
rolled_again() { map again.json --figure function --name state_root --slot 10m && grep -q '"rolled_hours":6,"raw_hours":0' again.json; }
check "the hour is rolled up again, by itself" wait_for 60 rolled_again
check "which is the same" same late.json again.json
kill "$service"
wait "$service"
# A clock that was wrong by years: hours that are not over.
python3 "$here/makefleet.py" "$GASFLAME" future.gasflame $(($(date +%s) + 90000000)) 60 99
gf store push --target future "$store" future.gasflame
gf store rollup "$store"
check "an hour in the future is not rolled up" said "rolled up 0 hours"

# --- the other figures ---
whole=$at
at="--from $hour --to $((hour + 3600))"
map cpu.json --figure cpu
map block.json --figure block-mean
map max.json --figure block-max
map cause.json --figure cause --name "disk write"
at=$whole
check "figures of the map are those of the captures" python3 - <<-'EOF'
import json
load = lambda p: {n["target"]: [v for v in n["values"] if v is not None] for n in json.load(open(p, encoding="utf-8"))["nodes"]}
mean = lambda v: sum(v) / len(v)
cpu, block, most, cause = (load(p) for p in ("cpu.json", "block.json", "max.json", "cause.json"))
assert all(len(m) == 2 for m in (cpu, block, most, cause)), (cpu, block, most, cause)
assert all(0.045 < mean(v) < 0.056 for v in cpu.values()), cpu
assert all(1.3e8 < mean(v) < 1.7e8 for v in block.values()) and all(1.8e8 < max(v) <= 2e8 for v in most.values()), (block, most)
assert all(0.05 < mean(v) < 0.2 for v in cause.values()), cause
EOF
gf store map $at --figure cpu "$store"
check "a line for each node" test "$(wc -l <"$STDOUT")" = 3
gf store map $at --figure cpu --target 'node-?' "$store"
check "a pattern chooses" test "$(wc -l <"$STDOUT")" = 2
gf store map $at --figure cpu --target '%' "$store"
check "in which % is no wildcard" said "nothing of that"
gf store map --figure tea "$store"
check_status "an unknown figure" 2
gf store map --figure function "$store"
check_status "a function without its name" 2

# --- the dashboard: each query of it runs, and finds something (these captures have no memory) ---
board=$here/../../../packaging/grafana/clickhouse.json
for suffix in "" _all; do
	check "Grafana's queries run${suffix:+ over all shards}" python3 "$here/dashboard.py" "$board" "http://127.0.0.1:${ports[0]}" gasflame "$hour" $((hour + 10800)) "$suffix"
	python3 "$here/dashboard.py" "$board" "http://127.0.0.1:${ports[0]}" gasflame "$hour" $((hour + 10800)) "$suffix" >board.out
	check "and find something: $(tr '\n' ';' <board.out)" test "$(grep -vc "^0 " board.out)" = 7
done

# --- what changed ---
gf watch --store "$store" $at --release "v1'" --against "v0'" --json --fail-on-change
check_status "a function that is a fifth slower is a change" 5
check "it is that function, the waits and the blocks that are slower, and nothing else" python3 - "$STDOUT" <<-'EOF'
import json, sys
w = json.load(open(sys.argv[1], encoding="utf-8"))
found = [r for r in w["rows"] if r["significant"]]
names = {(r["kind"], r["name"]) for r in found}
assert names == {("function", "state_root"), ("cause", "disk write"), ("block", "")}, names
together = {r["kind"]: r for r in found if r["target"] is None}
assert len(together) == 3 and all(together[k]["low_percent"] < p < together[k]["high_percent"] for k, p in (("function", 20), ("cause", 200), ("block", 200))), together
assert w["nodes_common"] == 2 and w["tested"] > 60 and w["hours_without_rollup"] == 0, w
EOF
gf watch --format markdown $at --release "v1'" --against "v0'" "$store"
check "for a channel" grep -q "^| all | state.*_root | .* | +[12][0-9]" "$STDOUT"
check_not "names in it have no meaning" grep -q "[^\\]\*\"\|%_" "$STDOUT"
gf watch $at --release "v1'" --against "v0'" "$store"
check "for people" grep -q "+[12][0-9][.0-9]* %.*state_root" "$STDOUT"
gf watch $at --release "v2'" --against "v0'" --target 'node-*' --fail-on-change "$store"
check_status "no change is none" 0
check "it says so" grep -q "Nothing changed beyond noise" "$STDOUT"
gf watch --from $((hour + 3600)) --to $((hour + 7200)) "$store"
check "two times" grep -q state_root "$STDOUT"
gf watch --release v9 --against "v0'" "$store"
check_status "a release that nobody has is an error" 1
gf watch --release "v1'" "$store"
check_status "a release against nothing" 2

# --- a server is away ---
kill -9 "${pids[1]}" && wait "${pids[1]}" 2>/dev/null
gf store map $at --figure cpu "$store"
check_status "a shard that is away is no error" 0
check "but a warning" said "1 server did not answer"
kill -9 "${pids[0]}" && wait "${pids[0]}" 2>/dev/null
gf store map $at --figure cpu "$store"
check_status "unless all are" 1
gf watch $at --release "v1'" --against "v0'" "$store"
check_status "the same of watch" 1
python3 "$here/badstore.py" >bad.out &
started+=($!)
wait_for 10 grep -q port bad.out
for kind in error200 header half short rows html busy; do
	bad=clickhouse://127.0.0.1:$(awk '{ print $2 }' bad.out)/$kind?timeout=2s
	gf store map --figure function --name x "$bad"
	check_status "$kind: a map is an error" 1
	gf store rollup "$bad"
	check_status "$kind: a roll-up is an error" 1
	gf watch "$bad"
	check_status "$kind: watch is an error" 1
done
finish
