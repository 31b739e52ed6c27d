#!/bin/bash
# Targets by name, against real engines: a container of Docker, of podman with runc and of containerd (as a pod), whose
# program is in no file of the host, is found, recorded and told apart; gasflame ps lists it.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/../containers-lib.sh"

need_root
docker_up || skip_all "$NO_DOCKER"

docker_run reth-a
docker_run reth-b --init
docker create --name reth-off "$IMAGE" /bin/sleep 1 >/dev/null
A=$(docker_pid reth-a) ID_A=$(docker_id reth-a)
wait_for 20 eval "docker top reth-b | grep -q '/opt/imagenode 10 600 40$'"
B=$(pgrep -P "$(docker_pid reth-b)")

# --- by name, recorded, named ---

record_busy a.gasflame "$A" reth-a
check_status "a container is recorded by its name" 0
check "it says what was found" said "Found container reth-a \(docker, image $IMAGE\), pid 1 inside, $A here"
check "functions that exist only in the image have names" above "$(share a.gasflame deep_burn)" 90
check "stacks are whole" above "$(complete a.gasflame)" 99
gf report --format text a.gasflame
check "the report says whose it is" grep -q "^container reth-a (docker, image $IMAGE), pid 1 inside, $A here" "$STDOUT"
check "the capture holds the container" [ "$(sql a.gasflame 'select name, engine, image, container from owner')" = \
	"reth-a,docker,$IMAGE,$ID_A" ]

# A bare number is a pid, also where it begins an id.
prefix=${ID_A:0:12}
case $prefix in *[a-f]*) ;; *) prefix=container:$prefix ;; esac
gf mem --json "$prefix"
check "a container is found by the beginning of its id" said "Found container reth-a"
record_busy both.gasflame "$A $B" reth-a container:reth-b
check_status "two containers of one image are recorded together" 0
check "the wrapper of --init is seen through" said "container reth-b .*, 2 processes, pid [0-9]+ inside, [0-9]+ here \(imagenode\), below "
both=$(samples both.gasflame)
gf report --format json --process reth-b both.gasflame
one=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["samples"])' <"$STDOUT")
check "and kept apart by the container's name" eval "above $one 0 && above $both $one"
gf stat -d 0.1 imagenode
check "a process name finds it in both, and says so" said "processes of [0-9]+ containers \(.*reth-[ab]"

# --- every command that takes a target ---

gf mem --json reth-a
check_status "mem takes the same names" 0
gf stat -d 0.2 reth-a
check_status "stat, too" 0
gf top --batch -n 1 --interval 0.5 reth-a
check_status "top, too" 0
gf doctor reth-b
check "doctor, too: it tells the pid inside" grep -qE "container +yes: $(docker_id reth-b | cut -c1-12) of docker, pid [0-9]+ inside" "$STDOUT"
gf heap detach reth-b
check "heap detach, too: of the one process that is no wrapper" said "has no hooks of gasflame"
docker_run limited --memory 64m -- /bin/sleep 600
if [ -d /sys/kernel/tracing/events ] || [ -d /sys/kernel/debug/tracing/events ]; then
	gf limit --cgroup-of limited -d 0.2 -o limit.gasflame
	check "limit --cgroup-of finds the container's limit" said "Memory limit: 64.0 MB"
else
	skip "limit --cgroup-of" "tracefs is not mounted"
fi
docker_remove limited

# --- what is refused ---

gf record -d 1 reth-off
check_status "one that is stopped is refused" 1
check "and said to be" said "container reth-off \(docker\) is not running"
gf record -d 1 reth-z
check "a name that is near is told" said "there is .*reth-[ab]"
docker_run "${ID_A:0:6}" -- /bin/sleep 600 # a name that is the beginning of another's id
gf mem --json "container:${ID_A:0:6}"
check "a whole name goes before the beginning of an id" said "Found container ${ID_A:0:6} "
docker_remove "${ID_A:0:6}"
for name in 'container:../reth-a' 'container:reth-a"' 'container:reth a' $'container:reth-a\nx' 'pod:../../etc' 'unit:a b'; do
	gf record -d 1 "$name"
	check_status "refused: $(printf %q "$name")" 2
done

# --- an engine that fails ---

kill -STOP "$DOCKERD_PID"
# One thread takes the signal and tells the others: where all CPUs are busy that takes a while.
all_stopped() { ! grep -h ^State "/proc/$DOCKERD_PID/task/"*/status | grep -qv 'T (stopped)'; }
wait_for 20 all_stopped
before=$(date +%s%N)
gf mem --json reth-a
check_status "an engine that does not answer: its files tell" 0
after=$(date +%s%N)
check "and that is said" said "docker does not answer at .*; its state files are read instead"
waited=$(((after - before) / 1000000))
kill -CONT "$DOCKERD_PID"
before=$(date +%s%N)
gf mem --json reth-b
usual=$((($(date +%s%N) - before) / 1000000))
check "an engine that answers again" said "Found container reth-b"
# Two seconds of patience, and what the command takes by itself, which on a busy machine is not the same each time.
check "one that does not answer is waited for two seconds ($waited ms, $usual where it answers)" above $((5000 + 3 * usual)) "$waited"
DOCKER_HOST=tcp://127.0.0.1:1 gf mem reth-a
check_status "DOCKER_HOST of another machine is refused" 1
check "in words" said "only unix:// is asked"

# --- what stands where the program's file should be ---

docker exec reth-a /bin/busybox rm /opt/imagenode
for what in "mkfifo /opt/imagenode" "ln -s /etc/shadow /opt/imagenode" "mknod /opt/imagenode c 1 5"; do
	docker exec reth-a /bin/busybox $what
	record_busy odd.gasflame "$A" reth-a
	check "${what%% *} in place of the program: recorded all the same, by the file that is mapped" \
		above "$(share odd.gasflame deep_burn)" 90
	docker exec reth-a /bin/busybox rm /opt/imagenode
done

# --- ps ---

gf ps --interval 1 --look 20 --json
python3 - "$STDOUT" "$ID_A" "$(docker_pid reth-b)" <<'END' >ps.txt 2>&1
import json, sys
rows = json.load(open(sys.argv[1]))
by_name = {r["name"]: r for r in rows if r["kind"] == "container"}
a, b = by_name["reth-a"], by_name["reth-b"]
assert a["container"] == sys.argv[2] and a["engine"] == "docker" and a["image"] == "tiny:1", a
assert a["inner_pid"] == 1 and a["target"] == "container:reth-a", a
assert len(b["pids"]) == 2 and b["pid"] != int(sys.argv[3]), b
assert b["allocator"] == "glibc" and b["symbols"] == "debug" and b["unwind_tables"], b
assert a["cpu_percent"] > 0, a
assert [r["cpu_percent"] for r in rows] == sorted((r["cpu_percent"] for r in rows), reverse=True)
assert not any("kthreadd" in r["name"] for r in rows)
print("fine")
END
check "ps lists containers with what is known of them" eval "grep -q fine ps.txt || { cat ps.txt; false; }"
check "ps on a terminal has colours" eval "script -qec '$GASFLAME ps reth-b' /dev/null </dev/null | grep -q $'\\033\\[1mreth-b'"
gf ps reth-b
check "ps WORD: a table of what has it in its name" eval "grep -q 'container  *reth-b ' '$STDOUT' && ! grep -q 'reth-a ' '$STDOUT'"
check "in a pipe it has no colours" eval "! grep -q $'\\033' '$STDOUT'"

# --- a unit, as systemd keeps one ---

# unit_start: a process in a group as systemd would make it, in a hierarchy that can be written to.
unit_start()
{
	local root
	for root in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
		UNIT=$root/gf-system-$$/system.slice/gfunit$$.service
		mkdir -p "$UNIT" 2>/dev/null && [ -w "$UNIT/cgroup.procs" ] && break
		UNIT=""
	done
	[ -n "$UNIT" ] || return 1
	cleanups+=("unit_stop")
	sleep 600 &
	UNIT_PID=$!
	disown
	echo "$UNIT_PID" >"$UNIT/cgroup.procs"
}
unit_stop()
{
	kill -9 "$UNIT_PID" 2>/dev/null
	wait_for 5 rmdir "$UNIT"
	rmdir "${UNIT%/*}" "${UNIT%/*/*}" 2>/dev/null
}
if unit_start; then
	gf mem --json "gfunit$$"
	check "a unit is found by its name" said "Found unit gfunit$$.service, pid $UNIT_PID"
	gf ps --json "gfunit$$"
	check "ps lists it" grep -q "\"kind\":\"unit\",\"name\":\"gfunit$$.service\"" "$STDOUT"
else
	skip "units" "no control group can be made here"
fi

# --- it stops ---

"$GASFLAME" record -e cpu -d 100 -o gone.gasflame reth-b 2>gone.txt &
waiting=$!
wait_for 60 grep -q Recording gone.txt
wait_for 60 has_used "$B" $(($(cpu_ms "$B") + 200))
docker_remove reth-b
wait "$waiting"
check "a container that stops ends the recording" grep -q "the target ended after" gone.txt
check "which is kept" above "$(samples gone.gasflame)" 0
gf record -d 1 reth-b
check_status "and is not found any more" 1

# --- containerd, as Kubernetes uses it ---

# pod_start: a container of containerd with the notes that Kubernetes puts into its bundle; with runc and a state of its own.
pod_start()
{
	command -v containerd >/dev/null && command -v ctr >/dev/null || { NO_POD="no containerd here"; return 1; }
	mkdir -p "$ENGINE/cd"
	# As a daemon of root's that says where its state is.
	containerd --root "$ENGINE/cd/root" --state "$ENGINE/cd/state" --address "$ENGINE/cd/sock" >"$ENGINE/cd.log" 2>&1 &
	CONTAINERD_PID=$!
	cleanups+=("pod_stop")
	wait_for 10 ctr --address "$ENGINE/cd/sock" version || { NO_POD="containerd does not start: $(tail -1 "$ENGINE/cd.log")"; return 1; }
	python3 - "$ENGINE" >"$ENGINE/pod.json" <<-'END'
	import json, sys
	spaces = [{"type": t} for t in ("pid", "mount", "ipc", "uts")]
	print(json.dumps({"ociVersion": "1.0.2", "root": {"path": sys.argv[1] + "/rootfs"}, "hostname": "pod",
	    "process": {"user": {"uid": 0, "gid": 0}, "args": ["/opt/imagenode", "10", "600", "40"], "cwd": "/"},
	    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
	    "annotations": {"io.kubernetes.cri.container-name": "reth", "io.kubernetes.cri.sandbox-name": "reth-0",
	        "io.kubernetes.cri.sandbox-namespace": "eth", "io.kubernetes.cri.image-name": "reth:2"},
	    "linux": {"namespaces": spaces, "cgroupsPath": "/kubepods/gf-pod"}}))
	END
	timeout 20 ctr --address "$ENGINE/cd/sock" -n k8s.io run -d --config "$ENGINE/pod.json" gf-pod >"$ENGINE/pod.log" 2>&1 ||
		{ NO_POD="containerd cannot run a container here: $(tail -1 "$ENGINE/pod.log")"; return 1; }
}
pod_stop()
{
	timeout 10 ctr --address "$ENGINE/cd/sock" -n k8s.io task kill -s 9 gf-pod >/dev/null 2>&1
	timeout 10 ctr --address "$ENGINE/cd/sock" -n k8s.io task rm -f gf-pod >/dev/null 2>&1
	timeout 10 ctr --address "$ENGINE/cd/sock" -n k8s.io container rm gf-pod >/dev/null 2>&1
	kill "$CONTAINERD_PID" 2>/dev/null
	wait "$CONTAINERD_PID" 2>/dev/null
	unmount_below "$ENGINE"
	wait_for 10 rm -rf "$ENGINE/cd"
}
if pod_start; then
	record_busy pod.gasflame "$(cat "$ENGINE/cd/state/io.containerd.runtime.v2.task/k8s.io/gf-pod/init.pid")" eth/reth-0
	check_status "a pod is recorded as NAMESPACE/POD" 0
	check "it says so" said "Found pod eth/reth-0, container reth \(containerd, image reth:2\), pid 1 inside, [0-9]+ here"
	check "its functions have names" above "$(share pod.gasflame deep_burn)" 90
	gf mem --json pod:reth-0/reth
	check "a container of a pod, without the namespace" said "Found pod eth/reth-0"
	gf ps --json
	check "ps lists the pod" grep -q '"kind":"pod","name":"eth/reth-0/reth","target":"pod:eth/reth-0/reth"' "$STDOUT"
else
	skip "a pod of containerd" "$NO_POD"
fi

# --- podman ---

if podman_up; then
	podman_run pod-a
	P=$(podman_pid pod-a)
	printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$ENGINE/podman" "$ENGINE/podrun" >"$ENGINE/storage.conf"
	export CONTAINERS_STORAGE_CONF=$ENGINE/storage.conf
	record_busy pod-a.gasflame "$P" pod-a
	check "podman's container by the files of its store" said "Found container pod-a \(podman, image localhost/$IMAGE\), pid 1 inside, $P here"
	check "podman: functions have names" above "$(share pod-a.gasflame deep_burn)" 90
	unset CONTAINERS_STORAGE_CONF
	podman --root "$ENGINE/podman" --runroot "$ENGINE/podrun" --tmpdir "$ENGINE/podtmp" --runtime runc --cgroup-manager=cgroupfs \
		--events-backend=file --storage-driver=vfs system service --time 60 "unix://$ENGINE/podman.sock" >/dev/null 2>&1 &
	started+=($!)
	disown # it is killed at the end, and that is no news
	# It answers the first question late, on a busy machine later than anybody waits for.
	answers() { python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b"GET /containers/pod-a/json HTTP/1.0\r\nHost: d\r\n\r\n"); assert b" 200 " in s.recv(99)' "$ENGINE/podman.sock"; }
	wait_for 20 answers
	CONTAINER_HOST=unix://$ENGINE/podman.sock CONTAINERS_STORAGE_CONF=/nowhere gf mem --json container:pod-a
	check "podman's container by its socket" said "Found container pod-a \(podman, image .*$IMAGE\), pid 1 inside, $P here"
	docker_run pod-a
	CONTAINER_HOST=unix://$ENGINE/podman.sock gf mem --json pod-a
	check_status "one name at two engines is a choice" 1
	check "and how to name each is said" said "pod-a is 2 containers; name one of them: container:$(docker_id pod-a | cut -c1-12) \(docker.*container:[0-9a-f]{12} \(podman"
else
	skip "podman" "$NO_PODMAN"
fi

finish
