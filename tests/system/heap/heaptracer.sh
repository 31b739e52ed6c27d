#!/bin/bash
# heaptracer: -e heap where the kernel lets only a tracer write to read-only memory (proc_mem.force_override=ptrace, readonly.c): attach,
# later libraries, detach and what a killed gasflame left, with no target harmed. Where it lets nobody, that is said.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac
. "$here/later.sh"
tools=$(dirname "$TRUTH")

# ruled COMMAND…: under the rule. What it starts is so, too.
ruled() { LD_PRELOAD=$tools/readonly.so "$@"; }
gf_ruled()
{
	ruled "$GASFLAME" "$@" >"$STDOUT" 2>"$STDERR"
	STATUS=$?
}
unharmed()
{
	check "$1: it lives" kill -0 "$2"
	check "$1: nobody holds it" grep -qE '^TracerPid:\s+0$' "/proc/$2/status"
	check "$1: no slot leads to us" sh -c "! python3 '$here/heapslots.py' $2"
}

start heapbad load 2
# The test itself: a write that is not a tracer's is refused.
check "the rule holds" ruled sh -c "python3 - $PID" <<-'END'
	import os, sys
	start = next(int(l.split("-")[0], 16) for l in open(f"/proc/{sys.argv[1]}/maps") if " r--p " in l)
	fd = os.open(f"/proc/{sys.argv[1]}/mem", os.O_RDWR)
	try:
	    os.pwrite(fd, os.pread(fd, 1, start), start)
	except OSError as e:
	    sys.exit(0 if e.errno == 5 else 1)
	sys.exit(1)
END

# Nobody may write.
READONLY=never gf_ruled record -e heap -d 1 -o never.gasflame -p "$PID"
check_status "no write is allowed: is refused" 1
check "no write is allowed: with the reason" said 'kernel does not let us write.*proc_mem.force_override=ptrace'
READONLY=never gf_ruled run -e heap -o never.gasflame -- true
check "no write is allowed: so is run" said 'kernel does not let us write.*proc_mem.force_override=ptrace'
unharmed "no write is allowed" "$PID"
READONLY=never ruled "$GASFLAME" doctor >never.doctor 2>&1
check "no write is allowed: doctor says so" grep -q 'proc_mem.force_override' never.doctor
ruled "$GASFLAME" doctor >tracer.doctor 2>&1
check_not "only a tracer writes: doctor has no objection" grep -q 'proc_mem.force_override' tracer.doctor

gf_ruled record -e heap --heap-sample 64K -d 2 -o one.gasflame -p "$PID"
check_status "only a tracer writes: is recorded" 0
check "only a tracer writes: has samples" above "$(samples one.gasflame)" 0
unharmed "only a tracer writes" "$PID"
check "only a tracer writes: ten times in and out" ruled "$tools/implants" "$PID" cycle 10
check "only a tracer writes: five times killed at random" ruled "$tools/implants" "$PID" kill 5
unharmed "only a tracer writes, after fifteen times" "$PID"

# Killed, and put back by the next one; refused as long as another debugger is there.
rm -f "$STDERR"
: >"$STDERR" # what was said before is not waited for
LD_PRELOAD=$tools/readonly.so "$GASFLAME" record -e heap --heap-sample 64K -d 60 -o killed.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
recorder=$!
started+=("$recorder")
wait_for 20 grep -q Recording "$STDERR"
wait_for 20 python3 "$here/heapslots.py" "$PID"
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
check "after our SIGKILL: hooks are still there" python3 "$here/heapslots.py" "$PID"
READONLY=never gf_ruled heap detach "$PID"
check_status "after our SIGKILL, no write is allowed: not put back" 1
check "after our SIGKILL, no write is allowed: with the reason" said 'proc_mem.force_override'
gf_ruled heap detach "$PID"
check_status "after our SIGKILL: put back" 0
unharmed "after our SIGKILL" "$PID"

# Ctrl-Z: it stays stopped.
kill -STOP "$PID"
wait_for 10 grep -qE '^State:\s+T' "/proc/$PID/status"
check "stopped: in and out" ruled "$tools/implants" "$PID" cycle 2
check "stopped: is stopped again" wait_for 10 grep -qE '^State:\s+T \(stopped' "/proc/$PID/status"
kill -CONT "$PID"
unharmed "stopped" "$PID"
kill "$PID"

# Killed at some of its system calls.
timeout 100 env LD_PRELOAD="$tools/readonly.so" "$tools/steps" "$TRUTH/truth-heapbad" "$tools/implants" group $((RANDOM % 100 + 1)) 157 >"$STDOUT" 2>&1
check "killed at some steps" test $? -eq 0
cat "$STDOUT"

start heapbad short 8
check "threads that come and go: in and out" ruled "$tools/implants" "$PID" cycle 5
unharmed "threads that come and go" "$PID"
kill "$PID"
check "targets that die meanwhile" ruled "$tools/implants" "$TRUTH/truth-heapbad" die 5

record_later dlopen.gasflame env LD_PRELOAD="$tools/readonly.so"
unharmed "a library that was loaded later" "$PID"
kill "$PID"

# From its beginning on, where we are its tracer anyway.
gf_ruled run -e heap -o run.gasflame -- "$TRUTH/truth-heap" 1
check "run: is recorded" above "$(samples run.gasflame)" 10
finish
