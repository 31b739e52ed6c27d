#!/bin/bash
# incontainer: gasflame in a container with exactly the capabilities that docs/manual/containers.md states records its neighbour; with fewer it says
# which one is missing. An agent with the rights of the DaemonSet records its neighbour, too.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/../containers-lib.sh"
need_root

image_root
program=gfneighbour$$
image_add "$TRUTH/truth-boxed" /opt/$program
image_add "$GASFLAME" /bin/gasflame
# Those that it loads by itself, for the page of an agent.
for library in libcurl.so.4 libmicrohttpd.so.12; do
	path=$(ldconfig -p | awk -v l=$library '$1 == l { print $NF; exit }')
	[ -z "$path" ] || image_add "$path" "$path"
done
mkdir -p "$tmp/captures"

# The sets of docs/manual/containers.md and of packaging/.
newer=(--cap-drop ALL --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE --cap-add SYSLOG --cap-add CHECKPOINT_RESTORE
	--security-opt seccomp=unconfined)
older=(--cap-drop ALL --cap-add SYS_ADMIN --cap-add SYS_PTRACE --cap-add SYSLOG)
for set in "${newer[@]}"; do
	case $set in
	[A-Z]*_* | BPF | PERFMON | SYSLOG)
		check "the compose file gives $set" grep -q -- "- $set\b" "$here/../../../packaging/compose.yaml"
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

is_recording() { curl -s "http://127.0.0.1:$1/status.json" | grep -q '"recording"'; }
# agent_inside: the agent of packaging/kubernetes/daemonset.yaml with the rights that stand there: a container beside it is found by name, recorded, and its
# windows have its labels.
agent_inside()
{
	local packaging=$here/../../../packaging capability page=$(free_port) name=gf-node-$$ window
	local rights=(--read-only --memory 150m --security-opt no-new-privileges --security-opt seccomp=unconfined --cap-drop ALL)
	if ! python3 -c 'import yaml' 2>/dev/null; then
		skip "an agent in a container" "no python3-yaml here"
		return
	fi
	for capability in $(python3 "$here/../fleet/manifests.py" "$packaging" caps); do
		rights+=(--cap-add "$capability")
	done
	podman_run $name --annotation gasflame.label/region=eu --annotation gasflame.label/image=liar -- /opt/$program 1 300
	mkdir -m 700 state etc
	printf '%s\n' "[agent]" "spool = /var/lib/gasflame/spool" "window = 10s" "budget = 50%" "listen = 127.0.0.1:$page" "[target container:gf-node-*]" \
		"label = tier=rpc" "[sink captures]" "url = file:///var/lib/gasflame/captures" >etc/agent.conf
	gf_podman run -d --name gf-agent-$$ --network host $PODMAN_LIMITS --pid=host "${rights[@]}" -v "$tmp/state:/var/lib/gasflame" \
		-v "$tmp/etc:/etc/gasflame:ro" -v /sys/fs/cgroup:/sys/fs/cgroup:ro -v "$ENGINE/podman:/var/lib/containers/storage:ro" \
		-v "$ENGINE/podrun:/run/containers/storage:ro" "$IMAGE" /bin/gasflame agent /etc/gasflame/agent.conf >"$ENGINE/run.log" 2>&1
	check "an agent in a container records the one beside it" wait_for 60 is_recording "$page"
	check "the probe of the DaemonSet finds it well" gf_podman exec gf-agent-$$ /bin/gasflame agent --status /etc/gasflame/agent.conf
	PID=$(podman_pid $name)
	wait_for 60 had_cpu $(($(had_cpu) + 300))
	gf_podman stop -t 30 gf-agent-$$ >/dev/null 2>&1
	window=$(find state -name '*.gasflame' | head -1)
	cp "$window" captures/window.gasflame
	recorded window.gasflame "an agent"
	check "its windows have the labels of the configuration, of the engine and of the container" diff - <(sql captures/window.gasflame \
		"select name from counter where name like 'agent.label%' order by name") <<-END
	agent.label: container=$name
	agent.label: image=localhost/$IMAGE
	agent.label: region=eu
	agent.label: tier=rpc
	END
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
	agent_inside
else
	skip "in a container of podman" "$NO_PODMAN"
fi
finish
