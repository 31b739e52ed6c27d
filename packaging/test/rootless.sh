# rootless.sh - a step of packaging/test.sh: podman of an ordinary user. Its container is recorded by root, by its process and by its cgroup; from within such a container nothing
# can be recorded by BPF, and doctor says so.
user=gasflame-rootless

# as_user COMMAND...: with a home of its own, and no session of systemd.
as_user() { setpriv --reuid "$user" --regid "$user" --init-groups env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME="$rootless/home" XDG_RUNTIME_DIR="$rootless/run" "$@"; }
user_podman()
{
	as_user timeout 120 podman --root "$rootless/storage" --runroot "$rootless/run/podman" --runtime runc --cgroup-manager=cgroupfs --events-backend=file \
		--storage-driver=vfs --log-level=error "$@"
}

rootless_up()
{
	command -v podman >/dev/null && command -v newuidmap >/dev/null || { echo "no podman with newuidmap here"; return 1; }
	id "$user" >/dev/null 2>&1 || useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin "$user" || return 1
	grep -q "^$user:" /etc/subuid || usermod --add-subuids 300000-365535 --add-subgids 300000-365535 "$user" || return 1
	rootless=$(mktemp -d /var/tmp/gasflame-rootless-XXXXXX)
	cleanups+=(rootless_down)
	chmod 755 "$rootless"
	mkdir -p "$rootless/home" "$rootless/run" "$rootless/storage"
	busybox_root
	install -m 755 "$(static_of "$native")" "$roots/busybox/bin/gasflame"
	chown -R "$user:" "$rootless"
	chmod 700 "$rootless/run"
	tar -C "$roots/busybox" -c . | user_podman import - tiny:1
}
rootless_down()
{
	user_podman rm -fa -t 0 >/dev/null 2>&1 || true
	user_podman system migrate >/dev/null 2>&1 || true # ends what holds its namespaces
	rm -rf "$rootless"
	userdel "$user" 2>/dev/null || true
}

try_rootless()
{
	local pid static
	static=$(static_of "$native")
	user_podman run -d --name gf-rootless --network none tiny:1 /bin/sh -c 'while :; do :; done' >"$said" 2>&1 || { not_ok "rootless podman runs a container" "$said"; return 0; }
	pid=$(user_podman inspect -f '{{.State.Pid}}' gf-rootless)
	check "a container of rootless podman runs as its user" sh -c "[ \"\$(stat -c %U /proc/$pid)\" != root ]" || true
	"$static" record -d 2 -e cpu,wait -o "$out/rootless.gasflame" -p "$pid" >"$said" 2>&1 && status=0 || status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then
		ok "rootless podman: root records its container from outside: $(grep -o '[0-9.]* % complete' "$said" | head -1)"
	else
		not_ok "rootless podman: root records its container from outside" "$said"
	fi
	user_podman run --rm --network none tiny:1 /bin/gasflame doctor >"$out/rootless-doctor.txt" 2>&1 || true
	check "rootless podman: with its filter of system calls, doctor within says what there is: $(grep "^On this machine" "$out/rootless-doctor.txt")" grep -q 'On this machine: no recording' "$out/rootless-doctor.txt" || true
	check "rootless podman: doctor within says where to run it, and counts no capability" \
		sh -c "grep -q 'run it on the host' '$out/rootless-doctor.txt' && ! grep '^ok  *CAP_' '$out/rootless-doctor.txt'" || true
	# Without that filter an ordinary user's rights are left: its own processes, by perf events.
	user_podman run --rm --network none --security-opt seccomp=unconfined tiny:1 /bin/gasflame run -e cpu -o /tmp/own.gasflame -- \
		/bin/sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done' >"$said" 2>&1 && status=0 || status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then
		ok "rootless podman: without that filter, run within by perf events: $(grep -o '[0-9,]* samples' "$said" | head -1)"
	else
		not_ok "rootless podman: without that filter, run within" "$said"
	fi
}

if rootless_up >"$said" 2>&1; then
	try_rootless
else
	skip "rootless podman" "$(tail -1 "$said")"
fi
