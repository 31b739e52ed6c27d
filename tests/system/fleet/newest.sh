#!/bin/bash
# newest.sh - the current engine of ClickHouse (chdb) beside Debian's: the same tables, pushes, roll-ups and questions, with the same answers. Skips where there is no chdb.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/servers.sh"
command -v node >/dev/null || skip_all "there is no node"
modules=$("$here/../../../tools/chdb" --there 2>&1) || skip_all "$modules"
make_servers 1
serve_all
mkdir new
node "$here/newserver.cjs" "$modules" "$tmp/new" >new.out 2>new.err &
started+=($!)
wait_for 60 grep -q port new.out || { head -5 new.err; skip_all "chdb does not start here"; }
old=clickhouse://127.0.0.1:${ports[0]}/gasflame
new=clickhouse://127.0.0.1:$(awk '/port/ { print $2 }' new.out)/gasflame
hour=$((1790000000 / 3600 * 3600 + 3600))
target="o'brien \\ \"x\" %_*"
for k in 0 1; do
	python3 "$here/makefleet.py" "$GASFLAME" "$k.gasflame" $((hour + k * 3600)) 3600 $k $([ $k = 1 ] && echo 1.3 3 3) || not_ok "capture $k is made"
done
python3 "$here/makecapture.py" "$GASFLAME" other.gasflame $((hour + 600)) 2>/dev/null
for store in "$old" "$new"; do
	gf store init --keep 30000d "$store"
	check_status "tables are made" 0
	said "ClickHouse [0-9.]*" | tail -1
	gf store init --keep 30001d "$store"
	check_status "and kept for another time" 0
	for k in 0 1; do
		gf store push --target "$target" --release "v$k" --label "region=e'u" "$store" "$k.gasflame"
		check_status "windows are pushed" 0
		gf store push --target "$target" --release "v$k" --label "region=e'u" "$store" "$k.gasflame"
		check "a second time they are there" said "120.*there|there.*120|all.*there"
	done
done
# same WORDS COMMAND...: with @ for the store, the answers are the same, and not empty.
same()
{
	local what=$1
	shift
	gf "${@//@/$old}"
	cp "$STDOUT" old.txt
	gf "${@//@/$new}"
	sed "s|${new%/gasflame}|${old%/gasflame}|g" "$STDOUT" >new.txt
	check "$what" cmp old.txt new.txt
	check "$what: there is something" test -s old.txt
}
time="--from $hour --to $((hour + 7200))"
name=$(percent "$target")
figures=("cpu" "block-mean" "block-p95" "block-max" "rss" "cause --name lock" "function --name state_root" "self --name state_root" "function --event wait --name run")
for figure in "${figures[@]}"; do same "a map from samples: $figure" store map $time --slot 10m --json --figure $figure @; done
for store in "$old" "$new"; do
	gf store rollup "$store"
	check "hours are rolled up" said "rolled up 2 hours"
	gf store rollup "$store"
	check "once" said "rolled up 0 hours"
done
for figure in "${figures[@]}"; do same "a map: $figure" store map $time --slot 10m --json --figure $figure @; done
same "targets" store ls --json @
same "a report" report --format json "@?target=$name"
same "a report of all targets" report --format json --limit 20 "@?targets=*&release=v1&label=region%3De%27u"
same "blocks" blocks "@?target=$name&from=$hour&to=$((hour + 1800))"
same "what changed between releases" watch $time --release v1 --against v0 --json @
same "what changed between times" watch --from $((hour + 3600)) --to $((hour + 7200)) --json @
for store in "$old" "$new"; do
	gf store drop --older-than 1d "$store"
	check_status "days are removed" 0
	gf store ls "$store"
	check_not "they are gone" grep -q brien "$STDOUT"
done
finish
