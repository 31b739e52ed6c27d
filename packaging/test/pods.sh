# pods.sh - a step of packaging/test.sh: the agent's pod as the DaemonSet describes it, made by a real containerd as a kubelet would ask for it (packaging/test/cri.py); another
# pod beside it, which the manifest's configuration names, is recorded. There is no cluster: who schedules, and the API server, are not tried.
pods=$out/pods
made_pods=() # to be removed at the end

containerd_up()
{
	command -v containerd >/dev/null && command -v ctr >/dev/null || { echo "no containerd here"; return 1; }
	local static
	static=$(static_of "$native") || return 1
	rm -rf "$pods"
	mkdir -p "$pods/state" "$pods/root" "$pods/image" "$pods/config" "$pods/tmp"
	cat >"$pods/config.toml" <<-END
	version = 2
	root = "$pods/root"
	state = "$pods/run"
	[grpc]
	  address = "$pods/containerd.sock"
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "docker.io/library/tiny:1"
	  disable_apparmor = true
	  restrict_oom_score_adj = true
	END
	containerd -c "$pods/config.toml" >"$pods/containerd.log" 2>&1 &
	containerd_pid=$!
	cleanups+=('[ -z "$containerd_pid" ] || containerd_down')
	wait_for 30 ctr -a "$pods/containerd.sock" version || { tail -1 "$pods/containerd.log"; return 1; }
	busybox_root
	install -m 755 "$static" "$roots/busybox/usr/bin/gasflame"
	pack_image tiny:1 '"/bin/sleep", "100000"' || return 1
	pack_image gasflame:latest '"gasflame"' || return 1
}

containerd_down()
{
	local pod mount
	for pod in ${made_pods[@]+"${made_pods[@]}"}; do
		cri remove "$pod" >/dev/null 2>&1 || true
	done
	kill "$containerd_pid" 2>/dev/null && wait "$containerd_pid" 2>/dev/null || true
	awk -v p="$pods/" 'index($2, p) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
	containerd_pid=
}

# pack_image NAME ENTRYPOINT: the root of busybox as an image, in Docker's form of an archive, which containerd imports.
pack_image()
{
	local layer config
	rm -rf "$pods/image"
	mkdir -p "$pods/image/layer"
	tar -C "$roots/busybox" --exclude=./tmp/* -cf "$pods/image/layer/layer.tar" .
	layer=$(sha256sum <"$pods/image/layer/layer.tar" | cut -d' ' -f1)
	printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":[%s],"Env":["PATH=/usr/bin:/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
		"$native" "$2" "$layer" >"$pods/image/config.json"
	printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer/layer.tar"]}]' "$1" >"$pods/image/manifest.json"
	tar -C "$pods/image" -c manifest.json config.json layer/layer.tar | ctr -a "$pods/containerd.sock" -n k8s.io images import --snapshotter "${SNAPSHOTTER:-overlayfs}" -
}

cri() { python3 "$root/packaging/test/cri.py" "$pods/containerd.sock" "$root/packaging/kubernetes/daemonset.yaml" "$@"; }
pod_window() { find "$pods/state" -name '*.gasflame' -path '*captures*' | grep .; }

# agent_pod SECCOMP: the agent's pod with that filter of system calls; does it record the pod beside it?
agent_pod()
{
	local agent log words
	rm -rf "$pods/state"
	mkdir -m 700 "$pods/state"
	if ! words=$(SECCOMP=$1 cri daemonset docker.io/library/gasflame:latest "config:=$pods/config" "/var/lib/gasflame=$pods/state" "tmp:=$pods/tmp" \
		"/run/containerd/io.containerd.runtime.v2.task=$pods/run/io.containerd.runtime.v2.task" 2>"$said"); then
		not_ok "the pod of the DaemonSet, seccomp $1" "$said"
		return 0
	fi
	read -r pod agent log <<<"$words"
	made_pods+=("$pod")
	if wait_for 150 pod_window; then
		ok "the pod of the DaemonSet, seccomp $1: its agent records the pod beside it"
		check "its livenessProbe, seccomp $1" cri probe "$agent" || true
		check "a window, seccomp $1, has the pod's labels" sh -c "'$static' query '$(pod_window | head -1)' \"select name from counter where name like 'agent.label%'\" | grep -q 'pod=reth-0'" || true
	else
		not_ok "the pod of the DaemonSet, seccomp $1: its agent records the pod beside it" "$log"
	fi
	cri remove "$pod" >"$said" 2>&1 || true
}

try_pods()
{
	local node
	static=$(static_of "$native")
	python3 "$root/tests/system/fleet/manifests.py" "$root/packaging" conf daemonset | sed 's/^window = .*/window = 10s/' >"$pods/config/agent.conf"
	node=$(cri pod ethereum reth-0 docker.io/library/tiny:1 /bin/sh -c 'while :; do :; done' 2>"$said") || { not_ok "a pod by containerd" "$said"; return 0; }
	made_pods+=("${node%% *}")
	ok "a pod by containerd: ethereum/reth-0"
	agent_pod RuntimeDefault
}

if ! python3 -c 'import yaml' 2>/dev/null; then
	skip "pods" "no python3-yaml here"
elif containerd_up >"$out/containerd-up.txt" 2>&1; then
	try_pods
else
	skip "pods" "no containerd: $(tail -1 "$out/containerd-up.txt")"
fi
[ -z "${containerd_pid:-}" ] || containerd_down
