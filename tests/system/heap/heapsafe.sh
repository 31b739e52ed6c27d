#!/bin/bash
# heapsafe: -e heap on processes that are hard to put hooks into: each is refused with a reason or survives, unharmed.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac
implants=$(dirname "$TRUTH")/implants

# unharmed NAME PID: it runs, nobody traces it, and none of its slots leads to us.
unharmed()
{
	check "$1: it lives" kill -0 "$2"
	check "$1: nobody holds it" grep -qE '^TracerPid:\s+0$' "/proc/$2/status"
	check "$1: no slot leads to us" sh -c "! python3 '$here/heapslots.py' $2"
}
# busy NAME PID: it goes on working.
busy()
{
	local before after
	before=$(awk '{ print $14 + $15 }' "/proc/$2/stat")
	sleep 0.5
	after=$(awk '{ print $14 + $15 }' "/proc/$2/stat")
	check "$1: it goes on working" test "$after" -gt "$before"
}
# survives NAME PROGRAM ARGS…: is recorded, and lives on.
survives()
{
	local name=$1
	shift
	start "$@"
	gf record -e heap --heap-sample 64K -d 2 -o survives.gasflame -p "$PID"
	check_status "$name: is recorded" 0
	unharmed "$name" "$PID"
	check "$name: stacks are complete" above "$(complete survives.gasflame)" 99
}
# refused NAME PATTERN ARGS…: gasflame says why.
refused()
{
	local name=$1 pattern=$2
	shift 2
	gf record -e heap -d 1 -o refused.gasflame "$@"
	check "$name: is refused" test "$STATUS" -eq 1
	check "$name: with the reason" said "$pattern"
}

survives "threads that allocate" heapbad load 4
busy "threads that allocate" "$PID"
kill "$PID"
start heapbad load 1
gf record -e heap --heap-sample 64K -d 1 -o sealed.gasflame -p "$PID"
check "our memory in it cannot be made smaller" python3 - "$PID" <<-'END'
	import fcntl, os, sys
	pid = sys.argv[1]
	for line in open(f"/proc/{pid}/maps"):
	    if "memfd:gasflame-heap" in line and "rw-s" in line:
	        path = "-".join(x.lstrip("0") for x in line.split()[0].split("-"))
	        fd = os.open(f"/proc/{pid}/map_files/{path}", os.O_RDWR)
	        sys.exit(0 if fcntl.fcntl(fd, 1034) & 2 else 1)
	sys.exit(1)
END
kill "$PID"
survives "1,000 threads" heapbad threads 1000
busy "1,000 threads" "$PID"
kill "$PID"
survives "threads that come and go" heapbad short 8
busy "threads that come and go" "$PID"
kill "$PID"
survives "a filter that kills whoever maps code" heapbad seccomp
busy "a filter that kills whoever maps code" "$PID"
kill "$PID"

# Children of fork have the hooks, which do nothing there. Its own figures: 100,000 bytes, at once freed.
survives "forks" heapbad fork
check "forks: children allocate nothing here" sh -c "! '$GASFLAME' report --format folded --what alloc \
	survives.gasflame | grep -q work_once"
kill "$PID"

# A program that changes its own slots meanwhile keeps what it wrote.
start heapbad got
for i in 1 2 3; do
	gf record -e heap --heap-sample 64K -d 0.5 -o got.gasflame -p "$PID"
done
unharmed "a process that changes its slots" "$PID"
busy "a process that changes its slots" "$PID"
kill "$PID"

# Exec takes the hooks away; the new program is as it was.
start heapbad exec
gf record -e heap --heap-sample 64K -d 30 -o exec.gasflame -p "$PID"
check "exec: the recording ends with it" test "$STATUS" -eq 0 -o "$STATUS" -eq 3 -o "$STATUS" -eq 4
check "exec: the new program is noticed" said 'executed another program'
wait "$PID"
check "exec: the program ends well" test $? -eq 0

# Refused.
start heapbad traced
child=$(awk '/ready/ { print $2 }' "$OUT")
refused "traced by another" "is traced by process $PID" -p "$child"
check "traced by another: lives" kill -0 "$child"
kill -9 "$PID" "$child" 2>/dev/null
start heapbad zombie
refused "a zombie" 'ended|zombie|no process|memory|thread' -p "$(awk '/ready/ { print $2 }' "$OUT")"
kill -9 "$PID"
if [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ]; then
	refused "a thread of the kernel" 'thread of the kernel' -p 2
	gf mem 2
	check "a thread of the kernel: mem says so, too" said 'kernel thread'
else
	skip "a thread of the kernel" "there is none in this namespace"
fi
start heapbad trap
refused "SIGTRAP is ignored" SIGTRAP -p "$PID"
unharmed "SIGTRAP is ignored" "$PID"
kill "$PID"
for kind in static direct; do
	[ -x "$TRUTH/truth-heap$kind" ] || { skip "heap$kind" "was not built"; continue; }
	start "heap$kind" 1 "$tmp/never"
	refused "$kind allocator" 'calls it directly' -p "$PID"
	unharmed "$kind allocator" "$PID"
	kill "$PID"
done
# Its functions have no names any more, and nothing says where they are.
if [ -x "$TRUTH/truth-heapstatic" ] && cp "$TRUTH/truth-heapstatic" nameless && strip nameless; then
	./nameless 1 "$tmp/never" >nameless.out 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 5 grep -q ready nameless.out
	refused "static and stripped" 'without symbols.*gasflame mem' -p "$PID"
	unharmed "static and stripped" "$PID"
	kill "$PID"
fi
start heapbad load 1
chmod 777 .
as_user "$GASFLAME" record -e heap -d 1 -o user.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR"
check "an ordinary user is refused" test $? -eq 1
check "and told why" said 'permi|root|capabilit|BPF'
unharmed "an ordinary user" "$PID"
kill "$PID"
if gcc -m32 -x c -o small - <<<'int main(void) { for (;;) __asm__("pause"); }' 2>/dev/null; then
	./small &
	PID=$!
	started+=("$PID")
	refused "a 32-bit program" '32-bit program.*gasflame mem' -p "$PID"
	check "a 32-bit program: lives" kill -0 "$PID"
	kill "$PID"
else
	skip "a 32-bit program" "no compiler for it here"
fi

# Stopped, as by Ctrl-Z: stays stopped, and goes on later.
start heapbad load 2
kill -STOP "$PID"
sleep 0.2
gf record -e heap --heap-sample 64K -d 1 -o stopped.gasflame -p "$PID"
check "stopped: is still stopped" grep -qE '^State:\s+T' "/proc/$PID/status"
kill -CONT "$PID"
unharmed "stopped" "$PID"
busy "stopped" "$PID"

# memfds without the right to execute them: a setting of a namespace of processes.
unshare --pid --fork --mount-proc sh -c "echo 2 >/proc/sys/vm/memfd_noexec && exec '$TRUTH/truth-heapbad' load 1" \
	>noexec 2>&1 &
started+=("$!")
if wait_for 5 grep -q ready noexec; then
	PID=$(pgrep -P "$!")
	started+=("$PID")
	refused "memfd_noexec=2" 'memfd' -p "$PID"
	unharmed "memfd_noexec=2" "$PID"
	kill -9 "$PID"
else
	skip "memfd_noexec=2" "cannot be set here: $(head -1 noexec)"
fi

# Killed: gasflame first. What it left works, and the next one takes over and puts all back.
start heapbad load 2
rm -f "$STDERR"
: >"$STDERR" # what was said before is not waited for
"$GASFLAME" record -e heap --heap-sample 64K -d 60 -o killed.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
recorder=$!
wait_for 20 grep -q Recording "$STDERR"
sleep 0.3
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
busy "after our SIGKILL" "$PID"
check "after our SIGKILL: hooks are still there" python3 "$here/heapslots.py" "$PID"
gf record -e heap --heap-sample 64K -d 1 -o again.gasflame -p "$PID"
check_status "after our SIGKILL: the next recording takes over" 0
unharmed "after our SIGKILL" "$PID"
check "twenty times in and out" "$implants" "$PID" cycle 20
check "ten times killed at random" "$implants" "$PID" kill 10
unharmed "after thirty times" "$PID"
busy "after thirty times" "$PID"
kill "$PID"

# Then the target: at random moments of the injection.
check "targets that die meanwhile" "$implants" "$TRUTH/truth-heapbad" die 20
finish
