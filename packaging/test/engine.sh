# engine.sh - for steps of packaging/test.sh: a dockerd of our own, with its state in $out/engine. docker_up starts it, with images debian:12 and debian:12-slim
# of the root that debootstrap made, and tiny:1 of busybox; engine_down ends it.
engine=$out/engine

docker_up()
{
	command -v dockerd >/dev/null || { echo "no dockerd here"; return 1; }
	bootstrap bookworm || return 1
	busybox_root
	rm -rf "$engine"
	mkdir -p "$engine/config"
	echo '{}' >"$engine/config/config.json"
	export DOCKER_HOST=unix://$engine/docker.sock DOCKER_CONFIG=$engine/config
	dockerd -H "$DOCKER_HOST" --data-root "$engine/data" --exec-root "$engine/exec" -p "$engine/docker.pid" --bridge=none --iptables=false \
		--ip6tables=false >"$engine/dockerd.log" 2>&1 &
	dockerd_pid=$!
	cleanups+=('[ -z "$dockerd_pid" ] || engine_down')
	wait_for 60 docker version || { tail -1 "$engine/dockerd.log"; return 1; }
	tar -C "$roots/busybox" -c . | docker import - tiny:1 || return 1
	tar -C "$roots/bookworm" --exclude=./tmp/* --exclude=./var/cache/apt/archives/*.deb --exclude=./usr/bin/gasflame -c . | docker import - debian:12 || return 1
	docker tag debian:12 debian:12-slim
}
engine_down()
{
	local mount ids
	ids=$(docker ps -aq 2>/dev/null)
	[ -z "$ids" ] || docker rm -f $ids >/dev/null 2>&1 || true
	kill "$dockerd_pid" 2>/dev/null && wait "$dockerd_pid" 2>/dev/null || true
	awk -v p="$engine/" 'index($2, p) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
	rm -rf "$engine" || true
	unset DOCKER_HOST DOCKER_CONFIG
	dockerd_pid=
}
