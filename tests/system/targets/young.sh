#!/bin/bash
# Processes that live for milliseconds: their mappings are found in the kernel, by the files that others have mapped before.
. "$(dirname "$0")/../lib.sh"
need_root

# long_share FILE: of the time in the program's two functions, percent in the one that has two thirds.
long_share()
{
	awk -v a="$(share "$1" young_long)" -v b="$(share "$1" young_short)" 'BEGIN { printf "%.2f\n", a + b ? a * 100 / (a + b) : 0 }'
}

# A file of overlayfs, as in a container: user space and the kernel see different devices.
mkdir lower upper work merged
cp "$TRUTH/truth-young" lower/layered
if mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged 2>/dev/null; then
	cleanups+=("umount $tmp/merged")
else
	cp lower/layered merged
	skip "overlayfs" "it cannot be mounted here"
fi
cat >loop.sh <<-END
	i=0
	while [ \$i -lt 35 ]; do
		"$TRUTH/truth-young" 3
		merged/layered 3
		/bin/true
		/bin/ls / >/dev/null
		i=\$((i + 1))
	done
	exec "$TRUTH/truth-young" 3 60
END
gf run -e cpu,wait -o loop.gasflame -- sh loop.sh
check_status "a shell loop of short programs, and one that forks, vforks and executes from a thread" 0
# The files are read meanwhile, which takes longer on a busy machine.
check "their stacks are complete" above "$(complete loop.gasflame 'time_ns > (select max(time_ns) * 0.4 from sample)')" 95
check "from main on" grep -qE 'main;live;young_long' <(folded loop.gasflame)
check "also on overlayfs" grep -qE '^layered;.*main;live;young_long' <(folded loop.gasflame)
check "with the shares that are true" near "$(long_share loop.gasflame)" 66.7 10
check "who waits in vfork has a caller" grep -qE 'start_by_vfork;(__)?vfork' \
	<("$GASFLAME" report --format folded --what wait loop.gasflame 2>/dev/null)
check "samples in an exec or exit are counted" above "$(counter loop.gasflame 'samples.no memory')" 0

# A file that is written anew in place is another program: the table of the old one must not be used.
cat >replace.sh <<-END
	cp "$TRUTH/truth-young" program
	for i in 1 2 3 4 5 6; do ./program 3; done
	cat "$TRUTH/truth-deep" >program
	for i in 1 2 3; do ./program 30 0.1; done
	cp "$TRUTH/truth-young" next
	mv next program
	for i in 1 2 3 4 5 6; do ./program 3; done
	rm program
	# Programs that nobody has seen before.
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cp "$TRUTH/truth-young" new\$i; ./new\$i 5; done
END
gf run -e cpu -o replaced.gasflame -- sh replace.sh
check_status "a program that is replaced" 0
check "the new one has its own stacks" grep -qE 'main(;deep_level){30};deep_burn' <(folded replaced.gasflame)
check "and the old one its own" grep -qE 'main;live;young_long' <(folded replaced.gasflame)
check_not "none is mixed" grep -qE 'young_[a-z]*.*deep_|deep_.*young_' <(folded replaced.gasflame)
check "the first ones were unwound later" above "$(counter replaced.gasflame 'samples.unwound later')" 0
check "which the quality line says" said 'unwound later'

# With this the loader looks a function up at each call, from behind a frame that is found by rbx.
LD_BIND_NOT=1 gf run -e cpu -o lazy.gasflame -- "$TRUTH/truth-young" 300 -1
check_status "lazy binding" 0
if [ "$(counter lazy.gasflame samples.taken)" -gt 0 ] && grep -q _dl_runtime_resolve <(folded lazy.gasflame); then
	check "its callers are known" grep -qE 'main;young_calls;.*_dl_runtime_resolve[a-z_]*;_dl_fixup' <(folded lazy.gasflame)
	check "and no stack ends there" test "$(counter lazy.gasflame 'truncated.register not known there')" -eq 0
else
	skip "its callers are known" "the program is not bound lazily here"
fi
finish
