#!/bin/bash
# Stacks of Go programs: the unwind rows against .debug_frame and against single steps, and recordings of stripped programs
# on goroutine, system and signal stacks, in C code and back. A PIE too.
. "$(dirname "$0")/../lib.sh"
need_root
. "$(dirname "$0")/../go-lib.sh"
sources=$here/tests/system/truth/cpu

build() { CGO_ENABLED=$2 go build -o "$1" "${@:3}" >"$1.build" 2>&1 || { cat "$1.build"; return 1; }; }
# Not waited for by its pid: on a machine with fork storms, another child may have that by then.
{ build pie 0 -buildmode=pie -ldflags='-s -w' "$sources/gostack.go"; : >pie.done; } &
check "a program is built" build plain 0 "$sources/gostack.go"
strip -o exe plain
check "a program with C code is built" build plaincgo 1 "$sources/gostack.go" "$sources/gocgo.go"
strip -o cgo plaincgo

for program in plain plaincgo; do
	check "$program: every row as in .debug_frame, every step as called" env GOSTACK_STEPS=1 "${TRUTH%/system/truth}/unit/test_gosteps" "./$program"
done

# has NAME PATTERN: a stack of the recording has these frames.
has() { grep -qE "$2" "$1.folded" || { grep -E "${2##*;}" "$1.folded" | head -5; return 1; }; }
# rooted NAME PATTERN: percent of the samples whose outermost frame is this.
rooted()
{
	awk -v root="^($2)\$" '
		{ n = $NF; split($0, frame, ";"); sub(/ [0-9.]+$/, "", frame[2]); all += n; if (frame[2] ~ root) good += n }
		END { printf "%.3f\n", all ? good * 100 / all : 0 }' "$1.folded"
}

# Above the switch of the stack stands a function of a goroutine.
check_go()
{
	local name=$1
	record_go "$name" "$2"
	check "$name: recorded" test -s "$name.gasflame"
	# The memory of the last samples, in exit(), is gone already: how many these are depends on how long that takes.
	folded "$name.gasflame" | grep -vE '^[^;]*;(\[truncated: the thread was ending\]|[^;]*_\[k\][; ])' >"$name.folded"
	check "$name: stacks complete" above "$(rooted "$name" '[^[].*')" 99.5
	check "$name: outermost frames are roots" above \
		"$(rooted "$name" 'runtime\.(goexit|mstart|mcall|morestack|gogo|rt0_go|clone)|gogo|(__)?clone3?')" 99.5
	check "$name: goroutines are most of it" above "$(rooted "$name" 'runtime\.goexit')" 75
	check "$name: the collector below systemstack" has "$name" ';runtime\.goexit;runtime\.gcBgMark[^;]*;(.*;)?runtime\.systemstack;'
	check "$name: a growing stack below morestack" \
		has "$name" ';runtime\.goexit;main\.main\.func[^;]*(;main\.growBurn)+;runtime\.morestack;runtime\.newstack'
	check "$name: signal handlers" has "$name" ';runtime\.goexit;.*;(runtime\.sigreturn[^;]*|__restore_rt);runtime\.(s|cgoS)igtramp[; ]'
	check "$name: the clock" has "$name" ';runtime\.goexit;.*;main\.clockBurn;time\.(Now|now)'
	check_not "$name: no stack ends at a switch" has "$name" '^[^;]*;runtime\.(systemstack|asmcgocall|cgocallback)[; ]'
}

check_go exe 900
check_go cgo 900
check "cgo: Go below C below Go" \
	has cgo ';main\.sortBurn;main\._Cfunc_cSort;runtime\.cgocall;runtime\.asmcgocall;.*;crosscall2;runtime\.cgocallback;.*;main\.compare'
check "cgo: and below systemstack once more" \
	has cgo ';main\._Cfunc_cSort;.*;runtime\.cgocallback;.*;main\.compare;.*;runtime\.systemstack;'
wait_for 60 test -e pie.done
check "a PIE is built" test -x pie
check_go pie 700
finish
