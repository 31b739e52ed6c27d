#!/bin/bash
# heapurl.sh - heap dumps that nodes offer over HTTP: where they are, and what their refusals mean.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

# A small dump of jemalloc: a sample of 4096 bytes without a stack that could be named.
printf 'heap_v2/524288\n  t*: 1: 4096 [0: 0]\n@ 0x1000 0x2000\n  t*: 1: 4096 [0: 0]\n\nMAPPED_LIBRARIES:\n' >dump.heap
python3 "$here/heapnode.py" dump.heap >node.out &
started+=($!)
wait_for 10 grep -q port node.out || skip_all "python3 does not start a server here"
base=http://127.0.0.1:$(awk '{ print $2 }' node.out)

# refused PATH WORD...: it fails, and the message has all of them.
refused()
{
	local path=$1 word
	gf heap dump --url "$base$path" --wait 300ms -o refused.gasflame
	check_status "$path is an error" 1
	for word in "${@:2}"; do
		check "$path: $word" said "$word"
	done
	check_not "$path: nothing is written" test -e refused.gasflame
}
refused /reth-plain/debug/pprof/heap "answers 501" "features jemalloc-prof" "record -e heap TARGET"
refused /reth-stuck/debug/pprof/heap "answers 503" "another heap dump" "wait longer"
refused /reth-broken/debug/pprof/heap "answers 500" "datadir.pprof-dumps"
refused /ethrex-plain/debug/pprof/allocs "answers 501" "jemalloc_profiling"
refused /ethrex-off/debug/pprof/allocs "answers 403" "prof_active:true" "heap dump --active on --no-dump TARGET"
refused /geth/debug/pprof/heap "answers 404" "metrics port" "HTTP RPC port" "geth and erigon"
refused /html/debug/pprof/heap "something else than a heap dump"

gf heap dump --url "$base/reth-busy/debug/pprof/heap" --wait 30s -o busy.gasflame
check_status "a node that is busy with another's dump is asked again" 0
check "its heap is there" test "$(sql busy.gasflame "select sum(value) > 4096 from sample")" = 1
gf heap dump --url "$base" -o found.gasflame
check_status "the page of a node is found without its path" 0
gf heap dump --url "$base/" -o found.gasflame
check_status "also behind a slash" 0
gf heap dump --url "http://127.0.0.1:1/debug/pprof/heap" -o none.gasflame
check_status "nobody there is an error" 1
finish
