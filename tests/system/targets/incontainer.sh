#!/bin/bash
# incontainer: gasflame in a container with exactly the capabilities that docs/manual/containers.md states records its neighbour; with fewer it says
# which one is missing.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../containers-lib.sh"
need_root

image_root
program=gfneighbour$$
image_add "$TRUTH/truth-boxed" /opt/$program
image_add "$GASFLAME" /bin/gasflame
mkdir -p "$tmp/captures"

# The sets of docs/manual/containers.md and of packaging/.
newer=(--cap-drop ALL --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE --cap-add SYSLOG --cap-add CHECKPOINT_RESTORE
	--security-opt seccomp=unconfined)
older=(--cap-drop ALL --cap-add SYS_ADMIN --cap-add SYS_PTRACE --cap-add SYSLOG)
for set in "${newer[@]}"; do
	case $set in
	[A-Z]*_* | BPF | PERFMON | SYSLOG)
		check "the compose file gives $set" grep -q -- "- $set\b" "$(dirname "$0")/../../../packaging/compose.yaml"
		;;
	esac
done

# inside OPTIONS... -- SCRIPT: in a container of docker; STATUS, $STDOUT, $STDERR as gf.
inside()
{
	split_run "$@"
	timeout 60 docker run --rm --network none --cpu-shares 8192 --pid=host -v "$tmp/captures:/captures" "${BEFORE[@]}" "$IMAGE" /bin/sh -c "${BEHIND[0]}" \
		>"$STDOUT" 2>"$STDERR"
	STATUS=$?
}
# recorded FILE: the neighbour, with whole stacks that are named, the kernel's as well.
recorded()
{
	check "$2: complete stacks" above "$(complete "captures/$1")" 99
	check "$2: the neighbour's functions, from its image" grep -q 'boxed_work;boxed_burn' <(folded "captures/$1")
	check "$2: nothing without a name" above 2 "$("$GASFLAME" report --format json "captures/$1" 2>/dev/null |
		python3 -c 'import json, sys; q = json.load(sys.stdin)["quality"]; print(100 * q["unnamed"] / q["frames"])')"
}

if docker_up; then
	docker_run gf-neighbour-$$ --user 1000 --cpus 0.5 -- /opt/$program 1 300
	neighbour=$(docker_pid gf-neighbour-$$)

	inside "${older[@]}" -v /sys/fs/cgroup:/sys/fs/cgroup:ro -- "gasflame doctor $neighbour && exec gasflame record -d 1 -o /captures/older.gasflame -p $neighbour"
	check_status "Docker 20.10: SYS_ADMIN, SYS_PTRACE and SYSLOG are enough" 0
	recorded older.gasflame "Docker 20.10"
	check "with /sys/fs/cgroup its quota is told" grep -q '0.5 CPUs (50.0 ms of each 100 ms)' <("$GASFLAME" report --format text captures/older.gasflame 2>/dev/null)
	check_not "doctor in there misses no capability" grep -q '^missing  CAP_' "$STDOUT"
	check "and sees the machine's processes" grep -q '^ok       pid namespace' "$STDOUT"

	inside --cap-drop ALL -- "gasflame doctor $neighbour; exec gasflame record -d 1 -o /captures/none.gasflame -p $neighbour"
	check_status "without any nothing is recorded" 1
	check "record says how to start the container" said 'start this container with --pid=host --cap-add BPF'
	check "doctor names each capability that is missing" grep -q '^missing  CAP_SYS_PTRACE' "$STDOUT"
	check "and that others' cgroups want a mount" grep -q -- '--cgroupns=host -v /sys/fs/cgroup' "$STDOUT"
	docker_remove gf-neighbour-$$
	docker_down
else
	skip "in a container of Docker" "$NO_DOCKER"
fi

if unshare --pid --fork --mount-proc true 2>/dev/null; then
	unshare --pid --fork --mount-proc "$GASFLAME" doctor >"$STDOUT" 2>"$STDERR"
	check "a pid namespace of its own is told" grep -q '^missing  pid namespace' "$STDOUT"
	check "and that BPF is of no use in it" grep -q 'On this machine: fallback' "$STDOUT"
else
	skip "a pid namespace of its own" "none can be made here"
fi

# podman knows the newer names.
unset DOCKER_CONFIG
if podman_up; then
	"$tmp/engine/rootfs/opt/$program" 1 300 >/dev/null &
	neighbour=$!
	started+=("$neighbour")
	gf_podman run --rm --network none $PODMAN_LIMITS --pid=host -v "$tmp/captures:/captures" "${newer[@]}" "$IMAGE" /bin/gasflame \
		record -d 1 -o /captures/newer.gasflame -p "$neighbour" >"$STDOUT" 2>"$STDERR"
	STATUS=$?
	check_status "BPF, PERFMON, SYS_PTRACE, SYSLOG and CHECKPOINT_RESTORE are enough" 0
	recorded newer.gasflame "podman"
else
	skip "in a container of podman" "$NO_PODMAN"
fi
finish
