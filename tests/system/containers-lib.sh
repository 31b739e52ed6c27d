# containers-lib.sh - real container engines for the system tests, sourced after lib.sh: a private dockerd, and podman
# with runc, both with all of their state in $tmp and an image made here, so that no network is needed.
#
#	docker_up || skip_all "$NO_DOCKER"
#	docker_run reth-a --cpus 0.5 -- imagenode 10 30      # docker_run NAME OPTIONS... -- COMMAND...
#	gf record -d 1 -o a.gasflame reth-a                  # DOCKER_HOST is set: gasflame asks the same engine
#
# The image tiny:1 has busybox and /opt/imagenode, a copy of truth-deep, whose functions (deep_level, deep_burn) exist under
# that name in no file of the host. Whatever was started is ended and unmounted when the test ends.

IMAGE=tiny:1 NO_DOCKER="" NO_PODMAN=""
ENGINE=$tmp/engine # state of the engines
docker_is_up="" podman_is_used=""

# image_root: makes the root folder of the image, once. image_add FILE PATH: another program, with the libraries that it needs.
image_root()
{
	[ ! -d "$ENGINE/rootfs" ] || return 0
	mkdir -p "$ENGINE/rootfs/bin" "$ENGINE/rootfs/opt" "$ENGINE/rootfs/tmp" "$ENGINE/rootfs/proc"
	cp "$(command -v busybox)" "$ENGINE/rootfs/bin/busybox"
	local applet
	for applet in sh sleep cat ls kill ps; do
		ln -s busybox "$ENGINE/rootfs/bin/$applet"
	done
	image_add "$TRUTH/truth-deep" /opt/imagenode
	chmod -R go+rX "$ENGINE/rootfs"
}
image_add()
{
	local library
	mkdir -p "$ENGINE/rootfs$(dirname "$2")"
	cp "$1" "$ENGINE/rootfs$2"
	ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$ENGINE/rootfs$(dirname "$library")"
		cp -n "$library" "$ENGINE/rootfs$library"
	done
}

# is_static FILE: needs no library, so that it runs in an image that has none.
is_static() { ! ldd "$1" >/dev/null 2>&1; }

# engines_allowed: what both engines need; the reason is printed where it is missing.
engines_allowed()
{
	[ "$(id -u)" -eq 0 ] || { echo "needs root"; return 1; }
	command -v busybox >/dev/null && is_static "$(command -v busybox)" || { echo "no static busybox here (busybox-static)"; return 1; }
	grep -q cgroup /proc/mounts || { echo "no cgroups here"; return 1; }
}

# docker_up: starts dockerd and imports the image. 1, and why in NO_DOCKER, where that cannot be done.
docker_up()
{
	[ -z "$docker_is_up" ] || return 0
	NO_DOCKER=$(engines_allowed) || return 1
	if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
		NO_DOCKER="no dockerd here (docker.io)"
		return 1
	fi
	image_root
	export DOCKER_HOST=unix://$ENGINE/docker.sock DOCKER_CONFIG=$ENGINE/config
	mkdir -p "$DOCKER_CONFIG"
	echo '{}' >"$DOCKER_CONFIG/config.json" # podman reads it, too
	dockerd -H "$DOCKER_HOST" --data-root "$ENGINE/data" --exec-root "$ENGINE/exec" -p "$ENGINE/docker.pid" \
		--bridge=none --iptables=false --ip6tables=false >"$ENGINE/dockerd.log" 2>&1 &
	DOCKERD_PID=$!
	docker_is_up=yes
	cleanups+=("docker_down")
	if ! wait_for 60 docker version; then
		NO_DOCKER="dockerd does not start: $(grep -v level=info "$ENGINE/dockerd.log" | tail -1)"
		return 1
	fi
	if ! tar -C "$ENGINE/rootfs" -c . | docker import - "$IMAGE" >"$ENGINE/import.log" 2>&1; then
		NO_DOCKER="docker cannot import an image: $(tail -1 "$ENGINE/import.log")"
		return 1
	fi
	if ! docker run --rm --network none "$IMAGE" /bin/sleep 0 >"$ENGINE/run.log" 2>&1; then
		NO_DOCKER="docker cannot run a container here: $(tail -1 "$ENGINE/run.log")"
		return 1
	fi
}

# docker_down: ends all of it. Also where docker_up failed half-way.
docker_down()
{
	local ids
	[ -n "$docker_is_up" ] || return 0
	ids=$(timeout 10 docker ps -aq 2>/dev/null)
	[ -z "$ids" ] || timeout 30 docker rm -f $ids >/dev/null 2>&1
	kill "$DOCKERD_PID" 2>/dev/null
	wait_for 10 eval "! kill -0 $DOCKERD_PID" || kill -9 "$DOCKERD_PID" 2>/dev/null
	wait "$DOCKERD_PID" 2>/dev/null
	unmount_below "$ENGINE"
	# What it started may write until it has seen that all is over.
	wait_for 10 rm -rf "$ENGINE/data" "$ENGINE/exec"
	docker_is_up=""
	unset DOCKER_HOST
}

unmount_below()
{
	local mount
	awk -v p="$1/" 'index($2, p) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do
		umount -l "$mount" 2>/dev/null
	done
}

# split_run ARGUMENTS...: those before "--" in BEFORE, those behind it in BEHIND.
split_run()
{
	BEFORE=() BEHIND=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		BEFORE+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	BEHIND=("$@")
	[ ${#BEHIND[@]} -gt 0 ] || BEHIND=(imagenode 10 600 40)
	[ "${BEHIND[0]}" != imagenode ] || BEHIND[0]=/opt/imagenode
}

# docker_run NAME OPTIONS... [-- COMMAND...]: in the background; by default the program of the image for ten minutes.
docker_run()
{
	local name=$1
	shift
	split_run "$@"
	docker run -d --name "$name" --network none ${BEFORE[@]+"${BEFORE[@]}"} "$IMAGE" "${BEHIND[@]}" >"$ENGINE/run.log" 2>&1 ||
		{ cat "$ENGINE/run.log"; return 1; }
}
# record_busy FILE PIDS TARGET...: records until each of the processes has used 300 ms of CPU time: a machine that is busy
# otherwise may let a container wait for long. What was said is in $STDERR.
record_busy()
{
	local file=$1 pids=$2 pid recorder
	shift 2
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -e cpu -d 100 -o "$file" "$@" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	wait_for 60 grep -q "^Recording" "$STDERR"
	for pid in $pids; do
		wait_for 60 has_used "$pid" $(($(cpu_ms "$pid") + 300))
	done
	kill -INT "$recorder" 2>/dev/null
	wait "$recorder"
	STATUS=$?
}
cpu_ms() { awk '{ printf "%d\n", $1 / 1000000 }' "/proc/$1/schedstat"; }
has_used() { [ "$(cpu_ms "$1")" -ge "$2" ]; }

docker_pid() { docker inspect -f '{{.State.Pid}}' "$1"; }
docker_id() { docker inspect -f '{{.Id}}' "$1"; }
docker_remove() { docker rm -f "$1" >/dev/null 2>&1; }

# Low ones: podman asks for higher ones than a machine without CAP_SYS_RESOURCE may give.
PODMAN_LIMITS="--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"

# gf_podman ARGUMENTS...: with its state in $tmp, too, and with runc: crun does not know hybrid cgroups.
gf_podman()
{
	timeout 60 podman --root "$ENGINE/podman" --runroot "$ENGINE/podrun" --tmpdir "$ENGINE/podtmp" --runtime runc \
		--cgroup-manager=cgroupfs --events-backend=file --storage-driver=vfs --log-level=error "$@"
}
# podman_up: imports the image into podman's store. 1, and why in NO_PODMAN.
podman_up()
{
	NO_PODMAN=$(engines_allowed) || return 1
	if ! command -v podman >/dev/null || ! command -v runc >/dev/null; then
		NO_PODMAN="no podman with runc here"
		return 1
	fi
	image_root
	podman_is_used=yes
	cleanups+=("podman_down")
	if ! tar -C "$ENGINE/rootfs" -c . | gf_podman import - "$IMAGE" >"$ENGINE/import.log" 2>&1; then
		NO_PODMAN="podman cannot import an image: $(tail -1 "$ENGINE/import.log")"
		return 1
	fi
	if ! gf_podman run --rm --network none $PODMAN_LIMITS "$IMAGE" /bin/sleep 0 >"$ENGINE/run.log" 2>&1; then
		NO_PODMAN="podman cannot run a container here: $(tail -1 "$ENGINE/run.log")"
		return 1
	fi
}
podman_run()
{
	local name=$1
	shift
	split_run "$@"
	gf_podman run -d --name "$name" --network none $PODMAN_LIMITS ${BEFORE[@]+"${BEFORE[@]}"} "$IMAGE" "${BEHIND[@]}" >"$ENGINE/run.log" 2>&1 ||
		{ cat "$ENGINE/run.log"; return 1; }
}
podman_pid() { gf_podman inspect -f '{{.State.Pid}}' "$1"; }
podman_down()
{
	[ -n "$podman_is_used" ] || return 0
	gf_podman rm -fa -t 0 >/dev/null 2>&1
	unmount_below "$ENGINE"
	wait_for 10 rm -rf "$ENGINE/podman" "$ENGINE/podrun" "$ENGINE/podtmp"
	podman_is_used=""
}

# json FILE EXPRESSION: of its report, as r, which is made once.
json()
{
	[ -s "$1.json" ] || "$GASFLAME" report --format json "$1" >"$1.json" 2>/dev/null
	python3 -c "import json; r = json.load(open('$1.json')); print($2)"
}
