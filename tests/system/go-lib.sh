# go-lib.sh - for tests of Go programs, after lib.sh: where they are built, and how one is recorded.
command -v go >/dev/null || skip_all "Go is not installed (make deps)"
# The same for all tests and all runs: packages of the language's library are compiled once.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export GOCACHE=$here/build-cache/go GOPATH=$tmp/go GO111MODULE=off GOFLAGS=
mkdir -p "$GOCACHE"

# record_go NAME MILLISECONDS: records the program NAME until it has burnt so much CPU time and ends.
record_go()
{
	local recorder
	mkfifo "$1.in"
	GOPROFILE=$tmp/$1.pprof "./$1" <"$1.in" >"$1.out" 2>&1 3>&- &
	PID=$!
	started+=("$PID")
	exec 3>"$1.in"
	wait_for 5 grep -q ready "$1.out"
	"$GASFLAME" record -e cpu -F 1999 -d 120 -o "$1.gasflame" -p "$PID" >/dev/null 2>"$1.err" 3>&- &
	recorder=$!
	started+=("$recorder")
	wait_for 10 grep -q '^Recording' "$1.err"
	echo "$2" >&3
	exec 3>&-
	wait "$recorder"
}
