#!/usr/bin/env python3
"""cri.py SOCKET MANIFEST COMMAND ... - what a kubelet asks a container engine for (CRI, runtime.v1, gRPC over its socket; curl speaks HTTP/2).

pod NAMESPACE NAME IMAGE COMMAND...         a pod with one container; prints the ids of both
daemonset IMAGE HOSTPATH=PATH...            the pod of MANIFEST's DaemonSet, with the rights, limits and mounts that stand there; HOSTPATH=PATH puts another folder of this
                                            machine in the place of one of the manifest's. Prints the ids of both
probe ID                                    the manifest's livenessProbe in that container: its exit status, and what it said
remove POD                                  stops the pod and all in it

The messages are written by field number, as the interface defines them: only the fields that are used."""
import os
import subprocess
import sys
import tempfile

import yaml

socket, manifest = sys.argv[1:3]


# --- protocol buffers: {field: value}, where a value is an int, a string, bytes, another message, or a list of these ---

def varint(n):
	out = b""
	n &= (1 << 64) - 1
	while n > 127:
		out, n = out + bytes([n & 127 | 128]), n >> 7
	return out + bytes([n])


def message(fields):
	out = b""
	for number, value in fields.items():
		for v in value if isinstance(value, list) else [value]:
			if isinstance(v, (bool, int)):
				out += varint(number << 3) + varint(int(v))
				continue
			data = message(v) if isinstance(v, dict) else v.encode() if isinstance(v, str) else v
			out += varint(number << 3 | 2) + varint(len(data)) + data
	return out


def fields_of(data):
	found, at = {}, 0

	def number():
		nonlocal at
		n = shift = 0
		while True:
			byte = data[at]
			at += 1
			n |= (byte & 127) << shift
			shift += 7
			if byte < 128:
				return n

	while at < len(data):
		key = number()
		value = number()
		if key & 7 == 2:
			value, at = data[at:at + value], at + value
		found[key >> 3] = value
	return found


def call(method, request):
	body = message(request)
	with tempfile.NamedTemporaryFile() as head, tempfile.NamedTemporaryFile() as sent:
		sent.write(b"\0" + len(body).to_bytes(4, "big") + body)
		sent.flush()
		out = subprocess.run(["curl", "-s", "--http2-prior-knowledge", "--unix-socket", socket, "-D", head.name, "-H", "content-type: application/grpc",
			"-H", "te: trailers", "--data-binary", "@" + sent.name, "http://localhost/runtime.v1.RuntimeService/" + method],
			stdout=subprocess.PIPE, check=True, timeout=120).stdout
		told = head.read().decode()
	if "grpc-status: 0" not in told.lower():
		sys.exit(f"{method}: " + " ".join(line for line in told.splitlines() if line.lower().startswith("grpc-")))
	return fields_of(out[5:])


# --- pods ---

NODE, UNCONFINED, RUNTIME_DEFAULT = 2, 1, 0


def run_pod(namespace, name, annotations, container):
	"""container: the fields of ContainerConfig. The network is the machine's: no plugin for others is needed."""
	logs = tempfile.mkdtemp(prefix="gasflame-pod-")
	shared = {1: NODE, 2: container.get("pid", 1)}
	sandbox = {1: {1: name, 2: f"uid-{namespace}-{name}", 3: namespace}, 3: logs, 7: [{1: k, 2: v} for k, v in annotations.items()],
		8: {2: {1: shared}}}
	pod = call("RunPodSandbox", {1: sandbox})[1].decode()
	security = container["security"]
	security[3] = shared
	config = {1: {1: container["name"]}, 2: {1: container["image"]}, 3: container.get("command", []), 4: container.get("args", []),
		7: container.get("mounts", []), 11: "log", 15: {1: container.get("resources", {}), 2: security}}
	made = call("CreateContainer", {1: pod, 2: config, 3: sandbox})[1].decode()
	call("StartContainer", {1: made})
	print(pod, made, os.path.join(logs, "log"))


def documents():
	with open(manifest, encoding="utf-8") as f:
		return {d["kind"]: d for d in yaml.safe_load_all(f) if d}


def daemonset(image, *places):
	template = documents()["DaemonSet"]["spec"]["template"]
	pod, agent = template["spec"], template["spec"]["containers"][0]
	rights, limits = agent["securityContext"], agent["resources"]["limits"]
	instead = dict(p.split("=", 1) for p in places)
	volumes = {v["name"]: v for v in pod["volumes"]}
	mounts = []
	for m in agent["volumeMounts"]:
		volume = volumes[m["name"]]
		path = volume["hostPath"]["path"] if "hostPath" in volume else m["name"] + ":"  # a ConfigMap, or memory: a folder that the caller made
		mounts.append({1: m["mountPath"], 2: instead.get(path, path), 3: m.get("readOnly", False)})
	profile = {"RuntimeDefault": RUNTIME_DEFAULT, "Unconfined": UNCONFINED}[os.environ.get("SECCOMP", rights["seccompProfile"]["type"])]
	run_pod("gasflame", "gasflame-agent", template["metadata"]["annotations"], {
		"name": agent["name"], "image": image, "args": agent["args"], "mounts": mounts, "pid": NODE if pod["hostPID"] else 1,
		"resources": {1: 100000, 2: int(limits["cpu"].rstrip("m")) * 100, 4: int(limits["memory"].rstrip("Mi")) << 20},
		"security": {1: {1: rights["capabilities"]["add"], 2: rights["capabilities"]["drop"]}, 5: {1: rights["runAsUser"]}, 7: rights["readOnlyRootFilesystem"],
			11: not rights["allowPrivilegeEscalation"], 15: {1: profile}, 16: {1: UNCONFINED}}})


def probe(container):
	command = documents()["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["exec"]["command"]
	said = call("ExecSync", {1: container, 2: command, 3: 30})
	print((said.get(1, b"") + said.get(2, b"")).decode())
	sys.exit(said.get(3, 0))


command, words = sys.argv[3], sys.argv[4:]
if command == "pod":
	run_pod(words[0], words[1], {}, {"name": "node", "image": words[2], "command": words[3:], "security": {15: {1: RUNTIME_DEFAULT}}})
elif command == "daemonset":
	daemonset(*words)
elif command == "probe":
	probe(words[0])
elif command == "remove":
	call("StopPodSandbox", {1: words[0]})
	call("RemovePodSandbox", {1: words[0]})
