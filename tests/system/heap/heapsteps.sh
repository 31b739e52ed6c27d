#!/bin/bash
# heapsteps: an attach of -e heap that is ended at one of its system calls leaves a target that works. Here at some; all: make soak.
. "$(dirname "$0")/../lib.sh"
need_root
tools=$(dirname "$TRUTH")

for how in group parent; do
	timeout 150 "$tools/steps" "$TRUTH/truth-heapbad" "$tools/implants" "$how" $((RANDOM % 40 + 1)) 43 >"$STDOUT" 2>&1
	check "killed at some steps ($how)" test $? -eq 0
	cat "$STDOUT"
	check "of an attach in many ($how)" grep -qE '^1[0-9] of [0-9]{3} system calls|^2[0-9] of [0-9]{3,4} system calls' "$STDOUT"
done
# Whole ones, to targets that do at random what is hard on us.
mkdir files
echo "of root's" >files/one
before=$(sha256sum files/one)
wrong=0
for i in $(seq 6); do
	seed=$((RANDOM * 32768 + RANDOM))
	"$TRUTH/truth-hostile" "$seed" "$tmp/files/one" >hostile.out 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 10 grep -q ready hostile.out
	timeout 60 "$tools/implants" "$PID" cycle 3 >cycle.out 2>&1
	[ $? -le 1 ] || { wrong=$((wrong + 1)); echo "#   seed $seed"; cat cycle.out; }
	wait "$PID"
	case $? in 0 | 7) ;; *) wrong=$((wrong + 1)); echo "#   seed $seed"; cat hostile.out ;; esac
done
check "hostile targets live, and we do" test "$wrong" -eq 0
check "files that they hold are as they were" test "$before" = "$(sha256sum files/one)"
finish
