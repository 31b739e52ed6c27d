# image.sh - a step of packaging/test.sh: both recipes of an image by a real dockerd. Each image runs doctor, and records another container.
. "$root/packaging/test/engine.sh"
# Docker 20.10 does not know the newer names: docs/manual/containers.md.
rights="--cap-drop ALL --cap-add SYS_ADMIN --cap-add SYS_PTRACE --cap-add SYSLOG --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro"

# records IMAGE: another container, by its name; the capture is in the folder that is mounted.
records()
{
	local captures=$engine/captures-$1
	mkdir -p "$captures"
	check "image $1: doctor" sh -c "docker run --rm --network none --pid=host $rights $1 doctor | grep 'On this machine: full'" || true
	docker run --rm --network none --pid=host $rights -v "$DOCKER_SOCKET:/var/run/docker.sock:ro" -v "$captures:/profiling" "$1" \
		record -d 2 -e cpu,wait -o /profiling/node.gasflame container:gf-node >"$said" 2>&1 && status=0 || status=$?
	if { [ $status -eq 0 ] || [ $status -eq 3 ]; } && [ -s "$captures/node.gasflame" ]; then
		ok "image $1: record of another container: $(grep -o '[0-9.]* % complete' "$said" | head -1)"
	else
		not_ok "image $1: record of another container" "$said"
	fi
}

try_image()
{
	local static context=$engine/context
	DOCKER_SOCKET=$engine/docker.sock
	docker run -d --name gf-node --network none tiny:1 /bin/sh -c 'while :; do :; done' >"$said" 2>&1 || { not_ok "a container" "$said"; return 0; }
	if static=$(static_of "$native"); then
		check "Dockerfile.static builds" docker build -q -t gasflame-static -f "$root/packaging/Dockerfile.static" "$(dirname "$static")" && records gasflame-static
	fi
	if command -v aarch64-linux-gnu-gcc >/dev/null && static=$(static_of arm64); then
		check "Dockerfile.static builds for arm64" docker build -q --platform linux/arm64 -t gasflame-arm64 -f "$root/packaging/Dockerfile.static" \
			"$(dirname "$static")" && check "its image says so" sh -c 'docker inspect gasflame-arm64 | grep "\"Architecture\": \"arm64\""' || true
	else
		skip "Dockerfile.static builds for arm64" "no cross compiler here"
	fi
	note "Dockerfile: packages and a build, some minutes"
	mkdir -p "$context"
	git -C "$root" archive HEAD | tar -x -C "$context"
	if docker build --network host -t gasflame -f "$context/packaging/Dockerfile" "$context" >"$out/docker-build.txt" 2>&1; then
		ok "Dockerfile builds: $(docker image inspect -f '{{.Size}}' gasflame) bytes with its Debian"
		records gasflame
	else
		not_ok "Dockerfile builds" "$out/docker-build.txt"
	fi
	docker rm -f gf-node >/dev/null 2>&1 || true
}

if docker_up >"$out/docker-up.txt" 2>&1; then
	try_image
else
	skip "images" "no dockerd: $(tail -1 "$out/docker-up.txt")"
fi
