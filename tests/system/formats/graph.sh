#!/bin/bash
# Call graphs and tables: files of callgrind are read with the totals that callgrind_annotate says, and what is written is read by
# callgrind_annotate, Graphviz, Python's csv and json, and SQLite.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

# A capture with CPU time and waits of several threads; without root imported stacks.
capture()
{
	if [ "$(id -u)" -eq 0 ]; then
		start_workload --seconds 600 --share 40
		record_used 400 -e cpu,wait -o real.gasflame
		kill "$PID"
		check_status "recorded" 0
	else
		printf 'main;run;parse 40\nmain;run;execute;hash 35\nworker;execute;hash 20\nworker;wait 5\n' >real.folded
		gf import -o real.gasflame real.folded
		check_status "imported" 0
	fi
}
# formats_of FILE NAME: the file in every format of this group, as NAME.*
formats_of()
{
	local format
	for format in callgrind dot jsonl csv samples.csv; do
		gf report -o "$2.$format" "$1"
		check_status "$2 as $format" 0
	done
}

capture
formats_of real.gasflame real
gf report --format callgrind --what "$(sql real.gasflame 'select name from event join sample on event.id = event limit 1')" \
	-o one.callgrind real.gasflame
check_status "one event as callgrind" 0
relay python3 "$here/graph.py" written "$GASFLAME" real

if command -v dot >/dev/null; then
	check "Graphviz draws it" dot -Tsvg -o real.svg real.dot
	check "with a box for each function" test "$(grep -c 'class="node"' real.svg)" -eq \
		"$(grep -cE '^	(n[0-9]+|legend) \[' real.dot)"
	printf '%s\n' 'a";b -> c;"\;x\;<b>;%s%n;{rank=same} 5' 'é漢;\N\G;|port|;[URL="x"] 3' >odd.folded
	gf report --format dot -o odd.dot odd.folded
	check "and one with odd names" dot -Tsvg -o odd.svg odd.dot
	check "no name becomes a link" test "$(grep -c '<a xlink:href="x"' odd.svg)" -eq 0
else
	skip "Graphviz draws it" "no dot"
fi

if command -v valgrind >/dev/null && command -v callgrind_annotate >/dev/null; then
	check "callgrind runs" valgrind -q --tool=callgrind --callgrind-out-file=plain.out "$TRUTH/truth-calls"
	all="--separate-threads=yes --dump-instr=yes --collect-jumps=yes --cache-sim=yes"
	check "and with all of the format" valgrind -q --tool=callgrind --callgrind-out-file=all.out $all "$TRUTH/truth-calls"
	check "and in one file of two parts" valgrind -q --tool=callgrind --callgrind-out-file=parts.out $all --combine-dumps=yes \
		"$TRUTH/truth-calls"
	relay python3 "$here/graph.py" read "$GASFLAME" plain.out all.out-01 all.out-02 parts.out
else
	skip "callgrind's own files" "no valgrind"
fi

# What is damaged is said with its place, and nothing is written.
printf 'events: Ir\nfn=(1) f\n1 5\ncfn=(2)\n' >bad.out
gf report --format text bad.out
check_status "a bad file is an error" 1
check "that names the file and the line" said 'bad.out: line 4: the name \(2\) was never given'
head -c 300 real.jsonl | gzip >cut.jsonl.gz
gf report --format text cut.jsonl.gz
check_status "a cut file is an error" 1
check "with its line" said 'cut.jsonl.gz: line [12]: '
finish
