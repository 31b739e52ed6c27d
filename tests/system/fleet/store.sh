#!/bin/bash
# store.sh - captures in a store: two ClickHouse servers as shards, one of which dies and comes back; every window is there once, and
# what commands say of a target and time in the store is what they say of the file. Then servers that misbehave.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/servers.sh"
database="gas flame"
make_servers 2
serve_all

# --- tables ---
store="clickhouse://writer:p%40ss%3Aw%2Frd'@127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/gas%20flame"
shown="clickhouse://127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/gas%20flame"
gf store ls "$store"
check_status "a store without tables is an error" 1
check "the message says what makes them" said "store init"
gf store init --cluster fleet --keep 36500d "$store"
check_status "tables are made" 0
check "it says for how long" said "36500 days"
gf store init "$store"
check_status "a second time changes nothing" 0
check "one row of its version on each shard" test "$(ask 0 'select count() from schema_version') $(ask 1 'select count() from schema_version')" = "1 1"
gf store init "${store/writer:p/writer:x}"
check_status "a wrong password is an error" 1
check_not "which is in no message" said "p@ss|xass|p%40"

# --- captures: three targets, one with a name that is everything at once ---
hostile=$'../o\'brien"; drop table samples; -- \\ `x` \n größe %41'
targets=(alpha beta "$hostile")
begin=1790000010 # 2026-09-21 14:13:30 UTC; each target begins a day later, the third crosses midnight
for i in 0 1 2; do
	python3 "$here/makecapture.py" "$GASFLAME" "$i.gasflame" $((begin + i * 86400 + (i == 2 ? 35150 : 0))) $((95 + i * 100)) "$i" || not_ok "capture $i is made"
done
check "the third one crosses midnight" test $(((begin + 2 * 86400 + 35150) / 86400)) -lt $(((begin + 2 * 86400 + 35150 + 295) / 86400))

# push I [OPTIONS]: the capture of that target.
push() { gf store push --target "${targets[$1]}" --release "v1.$1'" --label "region=it's \"eu\"" "${@:2}" "$store" "$1.gasflame"; }
push 0
check_status "a capture is pushed" 0
check "it says how many windows, rows and bytes" said "pushed 4 windows: [0-9,]+ rows, .*B"
push 0
check_status "again" 0
check "nothing is sent twice" said "pushed 0 windows: 0 rows, .*4 were there already"
# The shard of a target: the one that has its windows.
shard_of() { [ "$(ask 0 "select count() from windows where target = 'alpha'")" -gt 0 ] && echo 0 || echo 1; }
home=$(shard_of)
check "a target is on one shard only" test "$(ask $((1 - home)) "select count() from windows where target = 'alpha'")" = 0

# --- a shard dies in the middle, and comes back ---
# What a pusher that died leaves: rows without a commit. And what one leaves whose commit was not answered: a window twice.
ask "$home" "insert into samples select day, target, start, window_id, 1, event, pid, tid, thread, cause, block, stack, value, count from samples where target = 'alpha'"
ask "$home" "insert into samples select day, target, start, window_id, attempt + 1, event, pid, tid, thread, cause, block, stack, value, count from samples where target = 'alpha' and attempt > 1"
ask "$home" "insert into windows select day, target, start, window_id, attempt + 1, start_ns, duration_ns, sequence, digest, host, kernel, release, labels, events, units, describes, periods, totals, counts, causes, cause_ns from windows where target = 'alpha'"
check "rows of attempts that failed, and of two that did not, count once" python3 "$here/compare.py" "$GASFLAME" report 0.gasflame "$store?target=alpha"

for i in 1 2; do
	for k in 0 1; do
		kill -9 "${pids[k]}" && wait "${pids[k]}" 2>/dev/null
	done
	push "$i" --tries 1
	check_status "target $i: a store that is away is an error" 1
	"$GASFLAME" store push --target "${targets[i]}" --release "v1.$i'" --label "region=it's \"eu\"" --tries 100 "$store" "$i.gasflame" >push.out 2>&1 &
	pusher=$!
	started+=("$pusher")
	serve 0
	serve 1
	wait "$pusher"
	check "target $i: a pusher waits until it is back" test $? -eq 0
	wait_for 20 answers 0
	wait_for 20 answers 1
	push "$i"
	check "target $i: all of it was there then" said "pushed 0 windows"
done
# Killed while a pusher is at work: any of its statements may be the one without an answer (each one is, in tests/unit/fleet/test_push.c).
for round in 1 2 3; do
	"$GASFLAME" store push --target "round $round" --tries 100 "$store" 2.gasflame 1.gasflame 0.gasflame >push.out 2>&1 &
	pusher=$!
	started+=("$pusher")
	# As soon as its first rows are there. What it says between two looks may be all of it: then nothing was in the middle.
	while kill -0 "$pusher" 2>/dev/null && [ "$(ask 0 "select count() from samples where target = 'round $round'")$(ask 1 "select count() from samples where target = 'round $round'")" = 00 ]; do :; done
	for k in 0 1; do
		kill -9 "${pids[k]}" && wait "${pids[k]}" 2>/dev/null
		serve "$k"
	done
	wait "$pusher"
	check "round $round: delivered at last" test $? -eq 0
done
wait_for 20 answers 0
wait_for 20 answers 1
for round in 1 2 3; do
	gf store push --target "round $round" "$store" 2.gasflame 1.gasflame 0.gasflame
	check "round $round: each window is there" said "pushed 0 windows: .*21 were there"
	sums=()
	for k in 0 1; do
		sums+=("$(ask $k "select sum(value) from samples where target = 'round $round' and event = 'cpu' and (window_id, attempt) in (select window_id, min(attempt) from windows group by window_id)")")
	done
	wanted=$(for i in 0 1 2; do sql "$i.gasflame" "select sum(coalesce(s.value, e.period)) from sample s join event e on e.id = s.event where e.name = 'cpu'"; done | awk '{ n += $1 } END { printf "%.0f", n }')
	left=$(for k in 0 1; do ask $k "select uniqExact(attempt) from samples where target = 'round $round' and attempt not in (select attempt from windows)"; done | tr '\n' ' ')
	echo "# round $round: attempts without a commit, by shard: $left"
	check "round $round: CPU time of the files, once" test $((${sums[0]:-0} + ${sums[1]:-0})) = "$wanted"
done

# --- reading back ---
for i in 0 1 2; do
	address="$store?target=$(percent "${targets[i]}")"
	check "target $i: report of the store is that of the file" python3 "$here/compare.py" "$GASFLAME" report "$i.gasflame" "$address"
	check "target $i: so is blocks" python3 "$here/compare.py" "$GASFLAME" blocks "$i.gasflame" "$address"
done
check "diff of two targets" python3 "$here/compare.py" "$GASFLAME" diff 0.gasflame "$store?target=alpha" 1.gasflame "$store?target=beta"
check "diff of a file and a target" python3 "$here/compare.py" "$GASFLAME" diff 0.gasflame 0.gasflame 1.gasflame "$store?target=beta"
# Of a time: the second window and the third, which the range touches.
gf report --format json "$store?target=alpha&from=$((begin + 31))&to=2026-09-21T14:14:40Z"
check "from and to choose windows" test "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["duration_ns"], d["samples"])' <"$STDOUT")" = "60000000000 1200"
gf report "$store?target=alpha&to=1000"
check_status "a time without windows is an error" 1
check "it says what to do" said "store ls"
gf report "$store?target=nobody"
check_status "an unknown target is an error" 1
gf report "$store"
check_status "an address without a target is an error" 1
check "which says how to name one" said "target=NAME"
gf report --format html -o page.html "$store?target=alpha"
check_status "a page" 0
check_not "no password in it" grep -q "p%40ss" page.html
gf import "$store?target=alpha" -o copy.gasflame
check_status "a capture is made of it" 0
check "it has all of the time" test "$(sql copy.gasflame "select sum(value) from sample s join event e on e.id = s.event where e.name = 'wait'")" = "$(sql 0.gasflame "select sum(value) from sample s join event e on e.id = s.event where e.name = 'wait'")"
gf query "$store?target=alpha" 'select count(*) > 100 from sample'
check "query" grep -qx 1 "$STDOUT"
# The same by options.
export GASFLAME_STORE=$store
check "report --target is that of the address" python3 "$here/compare.py" "$GASFLAME" report 2.gasflame "--target=$hostile"
gf report --json --store "$store" --target alpha --from $((begin + 31)) --to 2026-09-21T14:14:40Z
check "--from and --to are times of the store" test "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["duration_ns"], d["samples"])' <"$STDOUT")" = "60000000000 1200"
gf report --json --store "$store" --target '*a' --release "v1.1'" --label "region=it's \"eu\""
check "a pattern, a release and a label" test "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["samples"])' <"$STDOUT")" = $((195 * 20))
total() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$1"; }
gf report --json --target alpha && cp "$STDOUT" alpha.json
gf report --json --target beta && cp "$STDOUT" beta.json
gf report --json --target '*a' && cp "$STDOUT" both.json
check "several nodes are the sum of them" test "$(total both.json)" = $(($(total alpha.json) + $(total beta.json)))
gf diff --json --target beta --base-target alpha && cp "$STDOUT" by-options.json
gf diff --json "$store?target=alpha" "$store?target=beta" && cp "$STDOUT" by-addresses.json
check "diff of two nodes by options" python3 -c 'import json; a, b = (json.load(open(f)) for f in ("by-options.json", "by-addresses.json")); assert a["functions"] == b["functions"] and len(a["functions"]) > 5'
gf diff --target alpha
check_status "diff of one is an error" 2
check "it says which options there are" said "base-from"
gf blocks --csv --target alpha
check "blocks" test "$(wc -l <"$STDOUT")" -gt 5
gf top --batch -n 1 --target alpha
check_status "top" 0
gf query --target alpha 'select count(*) > 100 from sample'
check "query by options" grep -qx 1 "$STDOUT"
gf report --target alpha --from now --to -1h
check_status "a time that ends before it begins" 2
gf report --target "no*body"
check_status "a pattern that nothing matches" 1
unset GASFLAME_STORE
gf report --target alpha
check_status "a target without a store" 2
gf report --from '2026-11-17 10:00' 0.gasflame
check_status "a time of the calendar without a store" 2
check "it says what it wants" said "a time of the recording"
# serve: the page of a target, and that of all; the browser has tests of its own (tests/browser/test_fleet.py).
"$GASFLAME" serve "$store?target=alpha" >serve.out 2>serve.err &
server=$!
started+=("$server")
if wait_for 10 test -s serve.out; then
	data=$(curl -s "$(cat serve.out)" | grep -o 'data?v=[0-9a-f]*')
	check "serve has the data of a target" test "$(curl -s -o /dev/null -w '%{http_code}' "$(cat serve.out)$data")" = 200
	check_not "nobody sees the password" grep -q "p%40ss" "/proc/$server/cmdline"
else
	skip "serve of a store" "$(head -1 serve.err)"
fi
kill "$server" 2>/dev/null

# --- what there is, and what is removed ---
gf store ls --json "$store"
check "ls has all targets with their windows, releases and labels" python3 - "$STDOUT" "$hostile" <<-'END'
import json, sys
rows = {r["target"]: r for r in json.load(open(sys.argv[1], encoding="utf-8"))}
assert set(rows) == {"alpha", "beta", sys.argv[2], "round 1", "round 2", "round 3"}, rows.keys()
assert [rows[t]["windows"] for t in ("alpha", "beta", sys.argv[2])] == [4, 7, 10], rows
assert rows["alpha"]["releases"] == ["v1.0'"] and rows["alpha"]["labels"] == ['region=it\'s "eu"'], rows["alpha"]
assert rows["alpha"]["first_wall_ns"] == 1790000010123456789 and rows["alpha"]["hosts"] == ["node'1"]
END
gf store ls "$store"
check "the table has a line for each" test "$(wc -l <"$STDOUT")" = 7
check "tables over all shards" test "$(ask 0 'select uniqExact(window_id) from windows_all')" = $((4 + 7 + 10 + 3 * 21))
check "nobody dropped a table" test "$(ask 0 "select count() from system.tables where database = 'gas flame'")" = 21
days=$(($(date +%s) / 86400 - begin / 86400 - 1)) # so long ago ended the day in which the first target begins: whole days (UTC), at any hour
gf store drop --older-than "${days}d" "$store"
check_status "a day is dropped" 0
gf report "$store?target=alpha"
check_status "what was in it is gone" 1
check "the rest is not" python3 "$here/compare.py" "$GASFLAME" report 2.gasflame "$store?target=$(percent "$hostile")"
gf store init --keep "$((days - 1))d" "$store"
check_status "old days go where the server has no TTL" 0
check "of all tables" test "$(for k in 0 1; do ask $k "select count() from system.parts where active and database = 'gas flame' and partition < toString(toDate($((begin + 2 * 86400)))) and table != 'schema_version'"; done | tr '\n' ' ')" = "0 0 "

# --- what is refused ---
printf 'main;run 7\n' >x.folded
gf store push --target x "$store" x.folded
check_status "a file that does not say when it was is refused" 1
check "and why" said "when it was recorded"
gf store push --target '' "$store" 0.gasflame
check_status "a target without a name" 2
gf store push --target x --label novalue "$store" 0.gasflame
check_status "a label without a value" 2
python3 "$here/makecapture.py" "$GASFLAME" other.gasflame $((begin + 2 * 86400)) 95 77
python3 "$here/makecapture.py" "$GASFLAME" same.gasflame $((begin + 2 * 86400)) 95 78
gf store push --target twice "$store" other.gasflame
gf store push --target twice "$store" same.gasflame
check_status "another recording of the same target and time is refused" 1
check "it says so" said "other sums"
ask 0 "insert into schema_version values (99, 0, 9999999999999999999)"
ask 1 "insert into schema_version values (99, 0, 9999999999999999999)"
gf store push --target x "$store" 0.gasflame
check_status "tables of a later version are left alone" 1
check "it says so" said "later gasflame"

# --- servers that misbehave ---
python3 "$here/badstore.py" >bad.out &
started+=($!)
wait_for 10 grep -q port bad.out
bad=clickhouse://127.0.0.1:$(awk '{ print $2 }' bad.out)
# bad KIND WORD: reading, listing and pushing fail, and say so.
bad()
{
	gf report "$bad/$1?target=x&timeout=1s"
	check_status "$1: reading is an error" 1
	check "$1: $2" said "$2"
	check "$1: in one line" test "$(wc -l <"$STDERR")" = 1
	gf store ls "$bad/$1?timeout=1s"
	check_status "$1: listing is an error" 1
	gf store push --tries 1 --target x "$bad/$1?timeout=1s" 0.gasflame
	check_status "$1: pushing is an error" 1
}
bad error200 "Code: 241.*Memory limit"
bad header "store init"
bad half "not whole"
bad short "transfer|bytes|end"
bad rows "1 of 2 rows"
bad html "not whole|ClickHouse"
bad busy "Code: 241"
bad hang "timed out|timeout"
gf report "clickhouse://127.0.0.1:1/x?target=x"
check_status "nobody there is an error" 1
if openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=other -days 1 2>/dev/null; then
	cat key.pem cert.pem >both.pem
	python3 "$here/badstore.py" both.pem >tls.out &
	started+=($!)
	wait_for 10 grep -q port tls.out
	gf report "clickhouses://127.0.0.1:$(awk '{ print $2 }' tls.out)/x?target=x"
	check_status "a certificate that nobody signed is refused" 1
	check "and it says so" said "certificate|SSL"
else
	skip "a certificate that nobody signed is refused" "there is no openssl"
fi
finish
