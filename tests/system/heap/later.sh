# later.sh - the heap of a program that loads a library while it is recorded. Sourced, with $here, the folder of it.

# leads NAME: a slot of a file of that name leads to the recorder's hooks.
leads() { python3 "$here/heapslots.py" "$PID" | grep -q "$1"; }
# record_later FILE [BEFORE…]: the library is loaded when the program is hooked, and allocates when it is hooked itself,
# however long that takes. BEFORE: words before gasflame.
record_later()
{
	local file=$1 recorder
	start heapbad dlopen "$TRUTH/libheaplib.so"
	"${@:2}" "$GASFLAME" record -e heap --heap-sample 1 -d 600 -o "$file" -p "$PID" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=("$recorder")
	wait_for 60 leads truth-heapbad
	kill -USR1 "$PID"
	wait_for 60 leads libheaplib
	kill -USR1 "$PID"
	wait_for 60 grep -q kept "$OUT"
	kill -INT "$recorder"
	wait "$recorder"
	STATUS=$?
	check "a library that was loaded later is seen" near "$(folded "$file" |
		awk '/library_keep/ { n += $NF } END { print n + 0 }')" 1000000 0
}
