#!/bin/bash
# perf.data: totals by function are those of perf report, of all kinds of call graphs, of compressed, piped and packed files, and
# of several events; dwarf stacks are no less complete; the scheduler's events become waits.
. "$(dirname "$0")/../lib.sh"

need_root
command -v perf >/dev/null || skip_all "perf is missing: make deps"
command -v "${CC:-cc}" >/dev/null || skip_all "a C compiler is missing"
here=$(dirname "$(readlink -f "$0")")
export HOME=$tmp # perf keeps builds and the kernel's symbols there
"${CC:-cc}" -O1 -g -o program "$here/perfdata.c" || skip_all "the program cannot be built"
perf record -q -e cpu-clock -o probe.data true >/dev/null 2>&1 || skip_all "perf record does not work here"

# make FILE OPTIONS…: a recording of the program.
make() { perf record -q -o "$1" "${@:2}" -- ./program 25 >log 2>&1 || { not_ok "perf record ${*:2}" "$(cat log)"; return 1; }; }
# same NAME FILE [DATA]: FILE is imported; its totals are those that perf report gives of DATA.
same()
{
	rm -f out.gasflame
	check "$1: import" "$GASFLAME" import "$2" -o out.gasflame
	check "$1: the totals of perf report" python3 "$here/perfdata.py" "${3:-$2}" out.gasflame program
}

make fp.data -e cpu-clock -F 999 -g && same "frame pointers" fp.data
gzip -k fp.data && same "packed by gzip" fp.data.gz fp.data
make flat.data -e cpu-clock -F 999 && same "no call graph" flat.data
make packed.data -e cpu-clock -F 999 -g -z && same "-z" packed.data
make several.data -e cpu-clock -e page-faults -e context-switches -c 10000 -g && same "several events" several.data
make group.data -e '{task-clock,page-faults}' -F 499 && same "a group" group.data
make leader.data -e '{task-clock,page-faults}:S' -c 2000000 && same "a group that is read at once" leader.data
make dwarf.data -e cpu-clock -F 999 --call-graph dwarf && same "dwarf" dwarf.data
[ "$("$GASFLAME" query out.gasflame "select count(*) from stacks where stack like '%pd_middle;pd_leaf'" | tail -1)" -gt 0 ] &&
	ok "dwarf: callers are there" || not_ok "dwarf: callers are there"

# complete_perf FILE: stacks whose outermost frame is the program's or the thread's begin. complete CAPTURE: the same.
complete_perf()
{
	perf script -i "$1" --no-inline -F comm,ip,sym 2>/dev/null |
		awk 'NF { last = $0 } !NF { n += last ~ /_start|clone/ } END { print n + 0 }'
}
complete() { "$GASFLAME" query "$1" "select coalesce(sum(samples), 0) from stacks where stack like '\_start%' escape '\' or stack like '%clone%'" | tail -1; }
ours=$(complete out.gasflame) theirs=$(complete_perf dwarf.data)
[ "$ours" -ge "$theirs" ] && [ "$ours" -gt 0 ] && ok "dwarf: as many complete stacks as perf has, or more" ||
	not_ok "dwarf: as many complete stacks as perf has, or more" "$ours of ours, $theirs of perf's"

# A pipe: perf report reads it from a pipe, too.
perf record -q -e cpu-clock -F 999 -g -o - -- ./program 25 >piped.data 2>log
rm -f out.gasflame
check "a pipe" sh -c "'$GASFLAME' import - -o out.gasflame <piped.data"
samples=$(perf report -i - --stdio -g none -F sample,sym -t '|' <piped.data 2>/dev/null | awk -F'|' '/^[^#]/ && NF > 1 { n += $1 } END { print n + 0 }')
[ "$("$GASFLAME" query out.gasflame 'select sum(samples) from weights' | tail -1)" = "$samples" ] && [ "$samples" -gt 0 ] &&
	ok "a pipe: as many samples" || not_ok "a pipe: as many samples" "$samples in perf report"

# Waits. The naps are 5 times 20 ms, and cannot be shorter. On a busy machine perf may lose events, and says so: once more then.
sched_recorded()
{
	local i
	for i in 1 2 3 4 5; do
		perf record -q -m 16M -e sched:sched_switch -e sched:sched_wakeup -a --call-graph dwarf,2048 -o sched.data -- ./program 1 5 \
			>log 2>&1 || return 1
		rm -f out.gasflame
		"$GASFLAME" import sched.data -o out.gasflame >log 2>&1 || return 0
		[ "$("$GASFLAME" query out.gasflame "select coalesce(sum(value), 0) from counter where name = 'samples.lost'" | tail -1)" != 0 ] || return 0
	done
}
if sched_recorded; then
	check "sched events: import" test -s out.gasflame
	naps="select coalesce(sum(value), 0) from stacks where event = 'wait' and stack like '%pd_naps;%'"
	[ "$("$GASFLAME" query out.gasflame "$naps" | tail -1)" -ge 100000000 ] &&
		ok "sched events: naps are waits" || not_ok "sched events: naps are waits" "$("$GASFLAME" query out.gasflame 'select * from waits limit 20')"
	[ "$("$GASFLAME" query out.gasflame "select count(*) from wakes where thread = 'program' and ms >= 19" | tail -1)" -ge 5 ] &&
		ok "sched events: who woke it is known" || not_ok "sched events: who woke it is known" "$("$GASFLAME" query out.gasflame 'select * from wakes limit 20')"
else
	skip "sched events" "this kernel has no tracepoints for perf"
fi

# The files of another machine, or of a container: below --root only, for names and for unwinding; or by build-id in --symbols.
mkdir -p "root$tmp" elsewhere && mv program "root$tmp/" && rm -rf "$tmp/.debug"
callers() { "$GASFLAME" query out.gasflame "select count(*) from stacks where stack like '%main;%pd_middle;pd_leaf'" | tail -1; }
named()
{
	rm -f out.gasflame
	"$GASFLAME" import --no-cache "$@" -o out.gasflame dwarf.data >log 2>&1
}
named
[ "$(callers)" = 0 ] && ok "without the program there are no names" || not_ok "without the program there are no names" "$(callers)"
named --root root
[ "$(callers)" -gt 0 ] && ok "--root: names and callers" || not_ok "--root: names and callers" "$(cat log)"
mv "root$tmp/program" elsewhere/program
named --symbols elsewhere
[ "$(callers)" -gt 0 ] && ok "--symbols FOLDER: names and callers" || not_ok "--symbols FOLDER: names and callers" "$(cat log)"
mv elsewhere/program elsewhere/other-name
named --symbols elsewhere/other-name
[ "$(callers)" -gt 0 ] && ok "--symbols FILE: by its build-id" || not_ok "--symbols FILE: by its build-id" "$(cat log)"

# What cannot be read is refused with a sentence.
{ printf '2ELIFREP'; tail -c +9 fp.data; } >big.data
check_not "big-endian files are refused" "$GASFLAME" import big.data -o big.gasflame
head -c 100 fp.data >cut.data
check_not "a cut header is refused" "$GASFLAME" import cut.data -o cut.gasflame
head -c 40000 packed.data >part.data
"$GASFLAME" import part.data -o part.gasflame >log 2>&1
[ $? -le 2 ] && ok "a part of a file: an error or a part of the samples" || not_ok "a part of a file" "$(cat log)"
finish
