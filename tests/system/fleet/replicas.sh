#!/bin/bash
# replicas.sh - a store whose tables are replicated: two ClickHouse servers that are one shard, with a ZooKeeper. A window that is pushed to one of
# them, and again to the other, counts once on both; one that dies catches up. Debian's zookeeper is wanted for it, which is not among the
# tools that other tests need: without it, this is skipped.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/servers.sh"
jars=/usr/share/java
[ -e "$jars/zookeeper.jar" ] && command -v java >/dev/null || skip_all "there is no zookeeper (apt-get install zookeeper)"
keeper=$(free_port)
mkdir -p keeper
printf 'tickTime=500\ndataDir=%s/keeper\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\n' "$tmp" "$keeper" >keeper.cfg
java -Xmx256m -cp "/etc/zookeeper/conf:$jars/*" org.apache.zookeeper.server.quorum.QuorumPeerMain keeper.cfg >keeper.log 2>&1 &
started+=($!)
well() { (exec 3<>"/dev/tcp/127.0.0.1/$keeper" && printf ruok >&3 && grep -q imok <&3) 2>/dev/null; }
wait_for 30 well || { tail -5 keeper.log; skip_all "zookeeper does not start here"; }
make_servers 2 "<zookeeper><node><host>127.0.0.1</host><port>$keeper</port></node></zookeeper><macros><shard>1</shard><replica>@I@</replica></macros>
<interserver_http_host>127.0.0.1</interserver_http_host>"
for i in 0 1; do
	sed -i "s|<macros>|<interserver_http_port>$(free_port)</interserver_http_port><macros>|" "server$i/config.xml"
	# One shard of two replicas, which know of each other's rows.
	sed -i 's|</replica></shard><shard><replica>|</replica><replica>|; s|<shard><replica>|<shard><internal_replication>true</internal_replication><replica>|' "server$i/config.xml"
done
serve_all
both="clickhouse://127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/gasflame"
one=("clickhouse://127.0.0.1:${ports[0]}/gasflame" "clickhouse://127.0.0.1:${ports[1]}/gasflame")

gf store init --cluster fleet --replicated "$both"
check_status "replicated tables are made on both" 0
check "they are" test "$(ask 0 "select count() from system.tables where database = 'gasflame' and engine like 'Replicated%'")" = 10
gf store init "$both"
check_status "again, without a word about replicas" 0
python3 "$here/makefleet.py" "$GASFLAME" x.gasflame $((1790000000 / 3600 * 3600)) 3600 1
gf store push --target x "${one[0]}" x.gasflame
check_status "pushed to one" 0
# count I WHAT: of the windows that count.
count() { ask "$1" "select $2 from samples where (window_id, attempt) in (select window_id, min(attempt) from windows group by window_id)"; }
there() { [ "$(count "$1" "sum(value)")" = "$(count 0 "sum(value)")" ] && [ "$(ask "$1" "select count() from windows")" -ge 120 ]; }
check "it arrives at the other" wait_for 30 there 1
gf store push --target x "${one[1]}" x.gasflame
check "where nothing is sent twice" said "pushed 0 windows.*120 were there"
gf report --format json x.gasflame
total=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$STDOUT")
gf report --format json "${one[1]}?target=x"
check "a report of the other one is that of the file" test "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$STDOUT")" = "$total"
gf store rollup "${one[1]}"
check "rolled up there" said "rolled up 1 hour"
# One dies, the other takes what comes, and the first one gets it when it is back.
kill -9 "${pids[1]}" && wait "${pids[1]}" 2>/dev/null
python3 "$here/makefleet.py" "$GASFLAME" y.gasflame $((1790000000 / 3600 * 3600 + 7200)) 600 2
gf store push --target x "${one[0]}" y.gasflame
check_status "one replica is enough to push" 0
serve 1
wait_for 20 answers 1
gf store push --target x "${one[1]}" y.gasflame
check_status "to one that just came back, which may not know of it yet" 0
settled() { there 1 && [ "$(count 1 "uniqExact(window_id)")" = 140 ] && [ "$(count 0 "uniqExact(window_id)")" = 140 ]; }
check "both have all of it, once" wait_for 30 settled
# Replicas fetch parts of tables one after the other.
rolled()
{
	gf store map --from $((1790000000 / 3600 * 3600)) --to $((1790000000 / 3600 * 3600 + 3600)) --figure function --name state_root --slot 10m --json "${one[0]}"
	grep -q '"rolled_hours":1,"raw_hours":0' "$STDOUT"
}
check "roll-ups are replicated, too" wait_for 30 rolled
gf store init "${one[0]%gasflame}plain"
gf store init --replicated "${one[0]%gasflame}plain"
check_status "tables that are there do not become replicated" 1
check "it says so" said "not replicated"
finish
