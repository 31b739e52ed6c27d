#!/bin/bash
# Waits are complete from the first moment: of threads that sleep, are woken and wait for a CPU while a recording begins, no wait is cut.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root

# More threads than CPUs: at any moment some are on their way from one state to another.
start crowd 8 300
cut=
for i in 1 2 3 4 5 6 7 8 9 10; do
	gf record --backend bpf -e wait -d 0.1 -o "$i.gasflame" -p "$PID"
	[ "$STATUS" -ne 1 ] || ! said BPF >/dev/null || skip_all "no BPF here: $(tail -1 "$STDERR")"
	[ "$STATUS" -eq 0 ] || not_ok "recorded" "$(cat "$STDERR")"
	cut+=$(grep -o '[0-9,]* waits, .* cut)' "$STDERR")
done
if [ -z "$cut" ]; then ok "ten recordings of 0.1 s, and no wait is cut"; else not_ok "ten recordings of 0.1 s, and no wait is cut" "$cut"; fi
# Each thread's account is of all of the recording, whatever the thread did when it began: all are as long.
check "the account of each thread closes" test -z "$("$GASFLAME" query --csv 10.gasflame \
	"select tid, run_ns, queue_ns, blocked_ns from thread where end_ns = 0 and abs(run_ns + queue_ns + blocked_ns - (select max(run_ns + queue_ns + blocked_ns) from thread)) > 1000" 2>&1 | tail -n +2)"
finish
