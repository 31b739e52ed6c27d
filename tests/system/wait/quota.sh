#!/bin/bash
# quota: the time for which a cgroup's CPU quota stopped threads, against the kernel's own count; with a group of our own, and in a
# real container.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../containers-lib.sh"
need_root

# ms_of FILE EVENT: the sum of its samples.
ms_of() { sql "$1" "select coalesce(sum(value), 0) / 1e6 from sample where event in (select id from event where name = '$2')"; }
# kernel_ms FILE: what the group's cpu.stat has grown by meanwhile.
kernel_ms() { sql "$1" "select coalesce(sum(value), 0) / 1e6 from counter where name like 'cgroup.cpu.throttled_ns:%'"; }
# agrees FILE: within 5 %, and 5 ms, where there is little.
agrees() { near "$(ms_of "$1" throttled)" "$(kernel_ms "$1")" "$(awk -v k="$(kernel_ms "$1")" 'BEGIN { print k / 20 + 5 }')"; }
# stat_ms FOLDER: throttled so far, version 1 or 2.
stat_ms() { awk '$1 == "throttled_time" { print $2 / 1e6 } $1 == "throttled_usec" { print $2 / 1e3 }' "$1/cpu.stat"; }

# --- a group of our own ---

# make_group QUOTA_US: of each 20 ms; its folder in GROUP. The kernel counts a stop when it is over, so that at both ends of a recording
# up to one may count differently: with short periods that is little.
make_group()
{
	local root=/sys/fs/cgroup
	if [ -w "$root/cpu/cpu.shares" ] || [ -d "$root/cpu" ]; then
		GROUP=$root/cpu/gasflame-quota-$$
		mkdir "$GROUP" && echo 20000 >"$GROUP/cpu.cfs_period_us" && echo "$1" >"$GROUP/cpu.cfs_quota_us" && echo 262144 >"$GROUP/cpu.shares"
	else
		GROUP=$root/gasflame-quota-$$
		mkdir "$GROUP" && echo "$1 20000" >"$GROUP/cpu.max" && echo 10000 >"$GROUP/cpu.weight"
	fi 2>/dev/null
}
# start_in_group ARGUMENTS...: of truth-boxed; PID.
start_in_group()
{
	OUT=$tmp/boxed.$RANDOM
	bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$GROUP" "$TRUTH/truth-boxed" "$@" >"$OUT" &
	PID=$!
	started+=("$PID")
	wait_for 10 grep -q ready "$OUT"
}

# no_groups_left: Docker makes the same folder in each hierarchy.
no_groups_left()
{
	find /sys/fs/cgroup -depth -type d -path "*/gasflame-quota-$$*" -exec rmdir {} \; 2>/dev/null
	! find /sys/fs/cgroup -type d -name "gasflame-quota-$$" | grep -q .
}
remove_groups()
{
	docker_down # its containers are below
	kill -9 $(cat "$GROUP/cgroup.procs") 2>/dev/null
	wait_for 5 eval '! grep -q . "$GROUP/cgroup.procs"'
	wait_for 5 no_groups_left
}
GROUP=""
if make_group 2000; then
	cleanups=("remove_groups" ${cleanups[@]+"${cleanups[@]}"})
	start_in_group 1 300
	before=$(stat_ms "$GROUP")
	gf record -d 1.5 -o one.gasflame -p "$PID"
	after=$(stat_ms "$GROUP")
	check_status "a thread with a tenth of a CPU is recorded" 0
	check "it was stopped most of the time" above "$(kernel_ms one.gasflame)" 500
	check "throttled is what the kernel counts, within 5 %" agrees one.gasflame
	check "and what cpu.stat says from outside, which looks longer" above "$(awk -v a="$after" -v b="$before" 'BEGIN { print a - b + 1 }')" "$(kernel_ms one.gasflame)"
	check "the account has it as a cause of its own" near "$(json one.gasflame "r['account']['total']['throttled'] / 1e6")" "$(ms_of one.gasflame throttled)" 1
	check "and nothing is missing" near "$(json one.gasflame "r['account']['total']['missing'] / 1e6")" 0 20
	check "the verdict names the quota and the thread" grep -q 'quota of 0.1 CPUs stopped thread `box-0`' <(json one.gasflame "' '.join(r['verdict']['sentences'])")
	check "quota and period" test "$(json one.gasflame "r['cgroups'][0]['quota_us'], r['cgroups'][0]['period_us']")" = "2000 20000"
	check "periods in which it was used up" above "$(json one.gasflame "r['cgroups'][0]['throttled_periods']")" 4
	check "the text says so" grep -q '0.1 CPUs (2.00 ms of each 20.0 ms), used up in' <("$GASFLAME" report --format text one.gasflame 2>/dev/null)
	gf report --format svg --what wall -o one.svg one.gasflame
	check "the picture has it" grep -q 'CPU quota' one.svg
	gf report --format folded --what throttled one.gasflame
	check "with the stack that it was stopped in" grep -q 'boxed_work;boxed_burn' "$STDOUT"

	# A quota that is lifted while it is recorded.
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -d 2 -o lifted.gasflame -p "$PID" 2>"$STDERR" &
	recorder=$!
	wait_for 10 grep -q Recording "$STDERR"
	echo -1 >"$GROUP/cpu.cfs_quota_us" 2>/dev/null || echo max >"$GROUP/cpu.max"
	wait "$recorder"
	check "a quota that is lifted meanwhile stops nobody afterwards" above 600 "$(ms_of lifted.gasflame throttled)"
	check "nothing is throttled without a quota" near "$("$GASFLAME" record -e wait -d 0.5 -o none.gasflame -p "$PID" 2>/dev/null; ms_of none.gasflame throttled)" 0 0
	kill -9 "$PID" # it takes a CPU before all others
	wait "$PID" 2>/dev/null
else
	skip "a group of our own" "no CPU quotas can be set here"
fi

# --- a container ---

# Below our group, whose weight lets it have its share on a busy machine, too.
parent=()
case $GROUP in
/sys/fs/cgroup/cpu/*) parent=(--cgroup-parent "/${GROUP##*/}") ;;
esac
# stopped FILE NAME: was the quota used up at all? On a machine where it never gets that far there is nothing to compare.
stopped()
{
	above "$(kernel_ms "$1")" "$2" >/dev/null || { skip "how long it was stopped" "the machine is too busy: the quota was not used up"; return 1; }
}

image_root
program=gfquota$$
image_add "$TRUTH/truth-boxed" /opt/$program
if ! docker_up; then
	skip "a container with --cpus" "$NO_DOCKER"
	finish
fi
docker_run gf-quota-$$ ${parent[@]+"${parent[@]}"} --cpu-period 20000 --cpu-quota 2000 --cpu-shares 262144 --memory 128m -- /opt/$program 1 300
wait_for 5 pgrep $program
gf record -d 1.5 -o box.gasflame gf-quota-$$
check_status "a container with a quota, by its name" 0
check "throttled is what its cpu.stat says, within 5 %" agrees box.gasflame
if stopped box.gasflame 300; then
	check "the verdict says by what" grep -q 'quota of 0.1 CPUs' <(json box.gasflame "' '.join(r['verdict']['sentences'])")
fi
check "its memory limit is told" test "$(json box.gasflame "[g['memory_limit'] for g in r['cgroups'] if g['quota_us']][0]")" = $((128 << 20))
docker_remove gf-quota-$$

docker_run gf-crowd-$$ ${parent[@]+"${parent[@]}"} --cpu-period 20000 --cpu-quota 2000 --cpu-shares 262144 -- /opt/$program 4 300
wait_for 5 pgrep $program
gf record -e wait -d 1 -o crowd.gasflame gf-crowd-$$
! stopped crowd.gasflame 300 || check "four threads in one quota all stand" test "$(json crowd.gasflame "sum(1 for t in r['account']['threads'] if t['name'].startswith('box-') and t['throttled'] * 4 > t['wall'])")" = 4
check "and their times add up" near "$(json crowd.gasflame "100 * r['account']['total']['missing'] / r['account']['total']['wall']")" 0 1
finish
