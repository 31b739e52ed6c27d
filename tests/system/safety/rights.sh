#!/bin/bash
# Least privilege: what a reader and a recorder may still do. The readers are taken over by truth/safety/evil.c the moment
# that they read the first byte of a stranger's file; all that it tries must fail.
. "$(dirname "$0")/../lib.sh"
need_root

user=54321
EVIL=$TRUTH/libevil.so
mkdir -m 755 theirs && chown $user:$user theirs
echo canary >canary && chmod 600 canary
printf 'main;work 10\nmain;rest 5\n' >own.folded
"$GASFLAME" import own.folded -o own.gasflame 2>"$STDERR" || not_ok "a capture to read" "$(cat "$STDERR")"
cp own.gasflame theirs/x.gasflame && cp own.folded theirs/x.folded && chown $user:$user theirs/*
sleep 600 & victim=$!
started+=($victim)
python3 -c '
import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8)
open("port", "w").write(str(s.getsockname()[1])); time.sleep(600)' & started+=($!)
wait_for 20 test -s port

# evil FILE COMMAND…: the command, taken over when it reads FILE.
evil()
{
	local when=$1
	shift
	printf 'canary\n' >canary && chmod 600 canary
	ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$EVIL EVIL_WHEN=$when EVIL_CANARY=${CANARY:-$tmp/canary} \
		EVIL_VICTIM=${VICTIM:-$victim} EVIL_PORT=$(cat port) timeout 120 "$GASFLAME" "$@" >"$STDOUT" 2>"$STDERR" </dev/null
	STATUS=$?
}
# Signals to others of the same user are kept back by Landlock of Linux 6.12 only.
kernel=$(uname -r | awk -F. '{ print $1 * 1000 + $2 }')
succeeded() { grep 'EVIL .* succeeded' "$STDERR" | if [ "$kernel" -lt 6012 ]; then grep -v 'EVIL kill'; else cat; fi; }
# Not what gasflame says of it: what the kernel says.
landlock=$(python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))')
# tame NAME: it was taken over, tried everything, and nothing worked.
tame()
{
	check "$1: taken over" grep -q 'EVIL is done' "$STDERR"
	check "$1: everything was tried" test "$(grep -cE 'EVIL .* (succeeded|failed)' "$STDERR")" -ge 29
	if [ "$landlock" -gt 0 ]; then
		check "$1: nothing worked" test -z "$(succeeded)"
		check "$1: the canary lives" test "$(stat -c %a canary):$(cat canary)" = 600:canary
	else
		skip "$1: nothing worked" "this kernel has no Landlock"
	fi
}

# --- readers, root on root's files ---
if ! LD_PRELOAD=$EVIL "$GASFLAME" --version >/dev/null 2>&1; then
	skip "readers taken over" "LD_PRELOAD does not go with this build"
else
	for command in "report --format text" report query ls blocks "diff own.gasflame" "report --format svg -o out.svg" stat "top --batch"; do
		evil own.gasflame $command own.gasflame
		tame "${command%% *}${command#"${command%% *}"}"
	done
	for command in "report --format text" "flamegraph -o flame.svg" "diff-folded own.folded" "import -o made.gasflame"; do
		evil own.folded $command own.folded
		tame "$command of folded stacks"
	done
	check "what import made is whole" test "$(samples made.gasflame)" -gt 0
	check "no capability as root" grep -q 'uid 0 caps 0000000000000000' "$STDERR"

	# --- root on another user's files ---
	rm -f theirs/*.html
	evil theirs/x.gasflame report theirs/x.gasflame
	check_status "root reports another user's capture" 0
	tame "another user's capture"
	check "as that user" grep -q "uid $user caps 0000000000000000" "$STDERR"
	check "the page is theirs" test "$(stat -c %u theirs/x.html)" = $user
	evil theirs/x.folded import theirs/x.folded -o theirs/made.gasflame
	check "import as that user" grep -q "uid $user caps 0000000000000000" "$STDERR"
	check "what it made is theirs" test "$(stat -c %u theirs/made.gasflame)" = $user
	chmod 644 own.gasflame
	evil theirs/x.gasflame diff --format text own.gasflame theirs/x.gasflame
	check "root's capture that the user may read beside theirs: as that user" grep -q "uid $user caps 0000000000000000" "$STDERR"
	chmod 600 own.gasflame
	evil theirs/x.gasflame diff --format text own.gasflame theirs/x.gasflame
	tame "captures of two users"
	check "captures of two users as nobody" grep -q 'uid 65534 caps 0000000000000004' "$STDERR"
	evil theirs/x.gasflame ls theirs
	tame "a folder of another user's"
	check "a folder as nobody" grep -q 'uid 65534 caps 0000000000000004' "$STDERR"
fi

mkdir -m 700 mine && cp -p theirs/x.gasflame mine/
gf report --format text mine/x.gasflame
check_status "a user's capture where that user cannot go" 0
ln -s "$tmp/planted" theirs/y.html && cp -p theirs/x.gasflame theirs/y.gasflame
gf report theirs/y.gasflame
check "a link beside another user's capture leads nowhere" test ! -e planted
gf report -o "$tmp/mine/out.html" theirs/x.gasflame
check "what that user may not write is not written" test "$STATUS" -eq 1 -a ! -e mine/out.html
check "and root is told what to do" said 'x.gasflame.*-o -'
gf report --format text -o - theirs/x.gasflame
check_status "and that works" 0
gf clean --all theirs
check "clean removes captures" test ! -e theirs/x.gasflame
check "nothing is left of temporary folders" test -z "$(find "$tmp" "${TMPDIR:-/tmp}" /var/tmp -maxdepth 2 -name '.gasflame-*' -user $user 2>/dev/null)"

# --- recorders ---
start shares 60
# while_recording WHAT CAPABILITIES SECCOMP: what /proc says of a recorder.
while_recording()
{
	local recorder got task have
	: >"$STDERR"
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -v -e "$1" -d 60 -o rec.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=($recorder)
	if ! wait_for 60 grep -q '^Recording' "$STDERR"; then
		skip "rights of -e $1" "cannot be recorded here: $(tail -1 "$STDERR")"
		wait $recorder
		return
	fi
	got=$(awk '/^(CapEff|CapPrm|CapInh|CapAmb|CapBnd|NoNewPrivs|Seccomp):/ { printf "%s%s ", $1, $2 }' /proc/$recorder/status)
	check "rights of -e $1" test "$got" = "CapInh:0000000000000000 CapPrm:$2 CapEff:$2 CapBnd:$2 CapAmb:0000000000000000 NoNewPrivs:1 Seccomp:$3 "
	check "-v names them" said 'capabilities while recording: .*CAP_SYS_PTRACE'
	for task in /proc/$recorder/task/*; do
		have=$(awk '/^CapPrm:/ { print $2 }' "$task/status")
		[ $((0x$have & ~0x$2)) -eq 0 ] || not_ok "every thread of -e $1" "$(cat "$task/comm") has $have"
	done
	kill -INT $recorder
	wait $recorder
	check "a recording of -e $1" test "$(samples rec.gasflame)" -gt 0
}
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
if [ "$kernel" -lt 5009 ] || [ "$paranoid" -gt 2 ]; then
	skip "rights of recorders" "this machine needs CAP_SYS_ADMIN"
else
	# BPF, PERFMON, CHECKPOINT_RESTORE, SYSLOG, SYS_NICE, SYS_PTRACE, SETUID, SETGID, KILL, DAC_READ_SEARCH
	while_recording cpu 000001c4008800e4 2
	while_recording cpu,wait,io,fault,mem 000001c4008800e4 2
	# and SYS_ADMIN; with a filter of our own the kernel would not let us suspend a target's
	while_recording heap,cpu 000001c400a800e4 0
	# In another user's folder: DAC_OVERRIDE
	: >"$STDERR"
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -e cpu -d 60 -o theirs/rec.gasflame -p "$PID" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=($recorder)
	wait_for 60 grep -q '^Recording' "$STDERR"
	check "the right to write in another user's folder" grep -q 'CapEff:.000001c4008800e6' /proc/$recorder/status
	kill -INT $recorder
	wait $recorder
	check "which leaves one file" test "$(ls theirs/rec.gasflame*)" = theirs/rec.gasflame
fi
# What is run has the rights that we were started with.
gf run -e cpu -o run.gasflame -- sh -c 'grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status >of-the-program; sleep 0.2'
check "a program that is run keeps its rights" test "$(cat of-the-program)" = "$(grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status)"
finish
