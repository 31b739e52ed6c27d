#!/bin/bash
# Stripped Go programs: names, lines and inlined calls come from the table of Go's runtime, also of a PIE and of a program
# without section headers.
. "$(dirname "$0")/../lib.sh"
need_root
. "$(dirname "$0")/../go-lib.sh"
sources=$here/tests/system/truth/cpu

# build PROGRAM ARGS…
build() { go build -ldflags='-s -w' -o "$1" "${@:2}" "$sources/goshares.go" >"$1.build" 2>&1; }
# A PIE needs all packages compiled anew. Others are recorded meanwhile.
build pie -buildmode=pie &
pie=$!
check "a stripped program is built" build exe "$sources/goprofile.go"
check "gasflame symbols tells of the table" grep -qE "Go's own table +[0-9,]+ functions" <("$GASFLAME" symbols exe)
# The program without section headers: e_shoff, e_shnum and e_shstrndx are 0.
cp exe noheaders
dd if=/dev/zero of=noheaders bs=1 seek=40 count=8 conv=notrunc status=none
dd if=/dev/zero of=noheaders bs=1 seek=60 count=4 conv=notrunc status=none

# named FILE: percent of the frames of all samples that have a name.
named()
{
	python3 - "$1" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	code = {i for i, kind in db.execute("select id, kind from frame") if kind in (0, 1)}
	names = {i for i, in db.execute("select frame from frame_line where function is not null")}
	nodes = {i: (parent, frame) for i, parent, frame in db.execute("select id, parent, frame from stack")}
	good = all = 0
	for stack, n in db.execute("select stack, count(*) from sample group by stack"):
	    while stack and stack in nodes:
	        stack, frame = nodes[stack]
	        all += n * (frame in code)
	        good += n * (frame in code and frame in names)
	print(f"{good * 100 / all:.3f}" if all else 0)
	END
}

# lines FILE FUNCTION: the lines that its frames with inlinedBurn in them have; each must be in goshares.go.
lines()
{
	sql "$1" "select distinct coalesce(substr(file, -11), '') || ':' || coalesce(line, 0) from frames where function = '$2'
		and frame in (select frame from frames where function = 'main.inlinedBurn')"
}
# marked TEXT: the lines of goshares.go with that comment, as lines() gives them.
marked() { grep -n "// $1\$" "$sources/goshares.go" | sed 's/:.*//; s/^/goshares.go:/'; }
# only FILE FUNCTION TEXT: lines() gives some of those that are marked, and no other.
only()
{
	local found
	found=$(lines "$1" "$2")
	[ -n "$found" ] && ! grep -vxFf <(marked "$3") <<<"$found"
}

check_go()
{
	local name found true_share all
	record_go "$1" "$2"
	# The runtime's own work, its monitor and the preemption, depends on how busy the machine is: shares are of the three.
	all=$(share "$1.gasflame" main.burn)
	check "$1: the program burns ($all %)" above "$all" 90
	while read -r name true_share; do
		found=$(awk -v a="$(share "$1.gasflame" "$name")" -v b="$all" 'BEGIN { printf "%.2f\n", a * 100 / b }')
		check "$1: $name is $true_share %, found $found" near "$found" "$true_share" 2
	done < <(grep Burn "$1.out")
	check "$1: the program told all three" [ "$(grep -c Burn "$1.out")" -eq 3 ]
	check "$1: frames have names" above "$(named "$1.gasflame")" 99.5
	check "$1: inlinedBurn is inlined into aroundInlined" \
		grep -qE 'main\.aroundInlined;main\.inlinedBurn(_\[i\])?[; ]' <(folded "$1.gasflame")
	check "$1: lines of the inlined function" only "$1.gasflame" main.inlinedBurn "inlined line"
	check "$1: line of its call" only "$1.gasflame" main.aroundInlined "call site"
}

check_go exe 1500
go tool pprof -top exe.pprof 2>/dev/null | grep Burn | sed "s/^/# Go's own profile of it: /"
check_go noheaders 1000
check "a PIE is built" wait "$pie"
check_go pie 1000
finish
