#!/bin/bash
# perftext.sh - what perf script, bpftrace and libbpf-tools print, imported with the totals that these tools say themselves; and exported as
# perf script's text, read by gasflame collapse and, where it is, by stackcollapse-perf.pl.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

need_root
command -v perf >/dev/null || skip_all "no perf (Debian: linux-perf)"

# weights FILE: folded stacks with their values, "thread;outer;leaf 123", on stdout.
weights() { "$GASFLAME" report --format folded --weigh value --merged "$1" 2>/dev/null; }
by_thread() { "$GASFLAME" report --format folded --weigh value "$1" 2>/dev/null; }
sum() { awk '{ s += $NF } END { printf "%d\n", s }' "$@"; }
# by_comm: sums of the first names of folded stacks.
by_comm() { awk '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/;.*/, ""); s[$0] += n } END { for (c in s) printf "%s %d\n", c, s[c] }' | sort; }
# by_leaf: sums of the last names, without those that are not known.
by_leaf() { awk '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/.*;/, ""); sub(/_\[k\]$/, ""); if ($0 !~ /unknown|^0x/) s[$0] += n } END { for (c in s) printf "%s %d\n", c, s[c] }' | sort; }
# perf_says FIELD: what perf report says, in the same form.
perf_says()
{
	perf report -i perf.data --no-children --no-inline -g none --stdio -t '|' -F "period,$1" 2>/dev/null |
		awk -F '|' '!/^#/ && NF > 1 { gsub(/^ +| +$/, "", $2); sub(/^\[[.kgH]\] /, "", $2); if ($2 !~ /unknown|^0x/) s[$2] += $1 }
			END { for (c in s) printf "%s %d\n", c, s[c] }' | sort
}
same() { diff <(echo "$1") <(echo "$2"); }

# --- perf script ---
perf record -q -g -e cpu-clock -F 997 -o perf.data -- sh -c '
	timeout 0.3 "$0" --quiet; ls -lR /usr/share/doc /etc >/dev/null 2>&1' "$WORKLOAD" >/dev/null 2>&1 ||
	skip_all "perf cannot record here"
perf script -i perf.data --no-inline --header >perf.txt 2>/dev/null
check "perf recorded something" test "$(grep -c cpu-clock perf.txt)" -gt 20
comms=$(perf_says comm)
check "by thread's name: what perf report says" same "$comms" "$(by_thread perf.txt | by_comm)"
check "by function: what perf report says" same "$(perf_says sym)" "$(weights perf.txt | by_leaf)"
perf script -i perf.data --no-inline -F comm,pid,tid,time,period,event,ip,sym,symoff,dso 2>/dev/null >fields.txt
check "with pid and tid" same "$comms" "$(by_thread fields.txt | by_comm)"
perf script -i perf.data --no-inline -G 2>/dev/null >lines.txt
check "a line a sample" same "$comms" "$(by_thread lines.txt | by_comm)"
gzip -k perf.txt && xz -k -0 perf.txt
check "packed by gzip" same "$(weights perf.txt)" "$(weights perf.txt.gz)"
check "packed by xz" same "$(weights perf.txt)" "$(weights perf.txt.xz)"
"$GASFLAME" collapse perf.txt >plain.folded 2>/dev/null
check "collapse of what is packed" same "$(cat plain.folded)" "$(cat perf.txt.gz | "$GASFLAME" collapse 2>/dev/null)"
check "collapse --inline: other names, the same sum" test "$("$GASFLAME" collapse --inline --context perf.txt 2>/dev/null | sum)" = "$(sum plain.folded)"
check "collapse has the sum that the import has" test "$(sum plain.folded)" = "$(weights perf.txt | sum)"

if perf record -q -a -g -e sched:sched_switch,sched:sched_wakeup -o sched.data -- sleep 0.3 >/dev/null 2>&1; then
	perf script -i sched.data >sched.txt 2>/dev/null
	slept=$("$GASFLAME" report --what wait --idle --weigh value --format folded sched.txt 2>/dev/null | awk '/^sleep/ { s += $NF } END { print s / 1e6 }')
	check "switches become waits: sleep slept" above "$slept" 0.29
else
	skip "switches become waits: sleep slept" "perf cannot record sched_switch here"
fi

# --- the way back ---
gf report --format perf-script -o out.perf perf.txt
check_status "exported" 0
check "and read back: the same stacks" same "$(weights perf.txt)" "$(weights out.perf)"
check "collapsed: the same sum" test "$("$GASFLAME" collapse out.perf 2>/dev/null | sum)" = "$(sum plain.folded)"
gf report --format perf-script -o again.perf out.perf
check "a second export is the first" cmp out.perf again.perf
start_workload
gf record -e cpu -d 0.5 -o one.gasflame -p "$PID"
gf report --format perf-script -o one.perf one.gasflame
check "a capture as perf script's text, collapsed: the same sum" test "$("$GASFLAME" collapse one.perf 2>/dev/null | sum)" = "$(weights one.gasflame | sum)"
perl=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}
if [ -n "$perl" ]; then
	for text in perf.txt out.perf one.perf; do
		check "stackcollapse-perf.pl says the same of $text" same "$(perl "$perl" "$text" 2>/dev/null | sort)" "$("$GASFLAME" collapse "$text" 2>/dev/null | sort)"
	done
else
	skip "stackcollapse-perf.pl says the same" "it is not there (STACKCOLLAPSE names it)"
fi

# --- bpftrace ---
if command -v bpftrace >/dev/null && timeout 30 bpftrace -e 'profile:hz:99 { @[kstack, ustack, comm] = count(); } interval:ms:500 { exit(); }' >bt.txt 2>/dev/null &&
	grep -q '^@' bt.txt; then
	check "bpftrace's maps" test "$(sed -n 's/.*]: \([0-9]*\)$/\1/p' bt.txt | sum)" = "$(weights bt.txt | sum)"
	timeout 30 bpftrace -f json -e 'profile:hz:99 { @[kstack, comm, pid] = count(); } interval:ms:500 { exit(); }' >bt.json 2>/dev/null
	counted=$(python3 -c 'import json, sys
print(sum(n for line in sys.stdin if line.strip() for d in [json.loads(line)] if d["type"] == "map" for m in d["data"].values() for n in m.values()))' <bt.json)
	check "and as JSON" test "$counted" = "$(weights bt.json | sum)"
else
	skip "bpftrace's maps" "no bpftrace, or it cannot trace here"
fi
offcputime=$(PATH=$PATH:/usr/sbin command -v offcputime)
if [ -n "$offcputime" ] && timeout -s INT 20 "$offcputime" 1 >off.txt 2>/dev/null && grep -q '^    -  ' off.txt; then
	"$GASFLAME" report --what wait --idle --weigh value --format folded --merged off.txt >off.folded 2>/dev/null
	check "offcputime's microseconds are waits" near "$(sum off.folded)" "$(grep -E '^ +[0-9]+$' off.txt | sum)" 200
else
	skip "offcputime's microseconds are waits" "no offcputime of libbpf-tools, or it cannot trace here"
fi
finish
