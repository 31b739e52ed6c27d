#!/bin/bash
# A program whose names steer a terminal: of its file, arguments, threads, functions and files. None of that leaves as it is.
. "$(dirname "$0")/../lib.sh"
need_root
command -v objcopy >/dev/null || skip_all "no objcopy (Debian: binutils)"

# ESC [ 2 J, CSI as a byte and as UTF-8, DEL, a line break with words that look like ours, right-to-left override
evil=$'E\e[2J\x9b31m\xc2\x9b\x7f\xe2\x80\xae\nFAKE'
mkdir "dir$evil"
objcopy --strip-debug --redefine-sym "escape_burn=escape$evil" "$TRUTH/truth-escapes" "dir$evil/prog$evil" || skip_all "objcopy refuses the name"
(exec -a "argv$evil" "dir$evil/prog$evil" "dir$evil/file$evil" "argument$evil") >out 2>&1 &
PID=$!
started+=("$PID")
wait_for 5 grep -q ready out
check "the program runs" grep -q ready out

# harmless FILE…: nothing but printable characters, tabs and line ends; no line that a name made.
harmless()
{
	python3 - "$@" <<-'END'
	import sys
	bad = 0
	for path in sys.argv[1:]:
	    data = open(path, "rb").read()
	    try:
	        text = data.decode()
	    except UnicodeDecodeError as e:
	        print(f"{path}: not UTF-8 at {e.start}: {data[max(0, e.start - 40):e.start + 40]!r}")
	        bad = 1
	        continue
	    for i, c in enumerate(text):
	        o = ord(c)
	        if (o < 0x20 and c not in "\n\t") or 0x7f <= o < 0xa0 or 0x202a <= o <= 0x202e or 0x2066 <= o <= 0x2069:
	            print(f"{path}: U+{o:04X} in {text[max(0, i - 40):i + 40]!r}")
	            bad = 1
	            break
	    for line in text.split("\n"):
	        if line.startswith("FAKE"):
	            print(f"{path}: a name made the line {line!r}")
	            bad = 1
	            break
	sys.exit(bad)
	END
}
# clean NAME STATUS ARGS…: what gasflame says to these arguments, on both outputs, and in a file that it writes.
clean()
{
	local name=$1 wanted=$2
	shift 2
	gf "$@"
	[ "$wanted" = any ] || check_status "$name: status" "$wanted"
	check "$name: says something" test -s "$STDOUT" -o -s "$STDERR"
	check "$name: harmless" harmless "$STDOUT" "$STDERR"
}

clean "ps" 0 ps
clean "ps --json" 0 ps --json
clean "doctor" any doctor "$PID"
clean "doctor --json" any doctor --json "$PID"
clean "record" 0 -v record -e cpu,wait,io,fault,mem -d 2 -o c.gasflame -p "$PID"
clean "record by default" 0 record -e cpu -d 1 -p "$PID"
clean "heap" any -v record -e heap -d 2 -o h.gasflame -p "$PID"
check "the function is in the capture as it is called" \
	test "$(sql c.gasflame "select count(*) from function where instr(name, 'escape') and instr(name, char(27))")" -gt 0
for format in text summary folded json svg html massif; do
	clean "report --format $format" any report --format $format -o "out.$format" c.gasflame
	[ ! -e "out.$format" ] || check "report --format $format: harmless file" harmless "out.$format"
done
for what in functions modules threads tree callers crates waits wakers io fault mem phases marks groups files; do
	clean "report --what $what" any report --format text --what $what c.gasflame
done
clean "report of the heap" any report --format text h.gasflame
clean "top --batch" 0 top --batch -n 1 -p "$PID"
clean "top --batch of a capture" any top --batch c.gasflame
clean "query" 0 query c.gasflame "select name from function union all select name from thread union all select command from process"
clean "query --json" 0 query --json c.gasflame "select name from function union all select name from thread"
clean "blocks" any blocks c.gasflame
clean "mem" 0 mem "$PID"
clean "mem --json" 0 mem --json "$PID"
clean "stat" any stat -d 1 "$PID"
clean "ls" 0 ls
clean "diff" any diff c.gasflame c.gasflame
clean "heap stats" any heap stats "$PID"
# What was typed comes back in sentences.
clean "no such target" any record -d 1 "none$evil"
clean "no such file" 1 report "none$evil.gasflame"
clean "no such option" 2 report "--none$evil"
clean "no such command" 2 "none$evil"
mkdir old && cp c.gasflame "old/c$evil.gasflame"
clean "ls of such a name" 0 ls old
clean "clean" 0 clean --all old

# On a terminal data are looked at once more.
script -qec "'$GASFLAME' query --csv c.gasflame 'select name from thread union all select name from function'" /dev/null \
	</dev/null 2>/dev/null | tr -d '\r' | grep -v '^FAKE' >terminal # within quotes a line break is CSV's own
check "CSV on a terminal" test -s terminal
check "CSV on a terminal: harmless" harmless terminal

finish
