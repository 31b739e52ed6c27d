"""manifests.py PACKAGING [caps | conf FILE]: checks the manifests by the rules that an API server and an engine have for what is used there, a line each; or
prints the capabilities of the DaemonSet's container, or the agent's configuration in a file."""

import sys
import yaml

packaging = sys.argv[1]
CAPABILITIES = {"BPF", "PERFMON", "SYS_PTRACE", "SYSLOG", "CHECKPOINT_RESTORE"}
failed = False


def check(what, good):
    global failed
    failed |= not good
    print(("ok - " if good else "not ok - ") + what)


def load(name):
    with open(f"{packaging}/{name}") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def known(what, value, keys):
    check(f"{what} has no unknown key {sorted(set(value) - set(keys))}", set(value) <= set(keys))


documents = {d["kind"]: d for d in load("kubernetes/daemonset.yaml")}
pod = documents["DaemonSet"]["spec"]["template"]["spec"]
agent = pod["containers"][0]
fleet = load("compose-fleet.yaml")[0]
if sys.argv[2:3] == ["caps"]:
    print(" ".join(agent["securityContext"]["capabilities"]["add"]))
    sys.exit()
if sys.argv[2:3] == ["conf"]:
    name = sys.argv[3]
    print(fleet["configs"]["agent"]["content"] if name.startswith("compose") else documents["ConfigMap"]["data"]["agent.conf"])
    sys.exit()


def check_daemonset():
    versions = {"Namespace": "v1", "ServiceAccount": "v1", "ConfigMap": "v1", "DaemonSet": "apps/v1"}
    check("the manifest has its four objects", {k: d["apiVersion"] for k, d in documents.items()} == versions)
    check("all in their namespace", all(d["metadata"].get("namespace", d["metadata"]["name"]) == documents["Namespace"]["metadata"]["name"]
                                        for d in documents.values()))
    spec = documents["DaemonSet"]["spec"]
    known("the DaemonSet", spec, ["selector", "template"])
    labels = spec["template"]["metadata"]["labels"]
    check("its selector matches its pods", spec["selector"]["matchLabels"].items() <= labels.items())
    known("the pod", pod, ["serviceAccountName", "automountServiceAccountToken", "hostPID", "hostNetwork", "dnsPolicy", "terminationGracePeriodSeconds",
                           "tolerations", "containers", "volumes"])
    check("the pod has the account without rights", pod["serviceAccountName"] == documents["ServiceAccount"]["metadata"]["name"])
    check("and no token", pod["automountServiceAccountToken"] is False and documents["ServiceAccount"]["automountServiceAccountToken"] is False)
    check("hostPID", pod["hostPID"] is True)
    known("the container", agent, ["name", "image", "imagePullPolicy", "args", "securityContext", "resources", "livenessProbe", "volumeMounts"])


def check_rights():
    security = agent["securityContext"]
    known("its security", security, ["privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsUser", "capabilities", "seccompProfile"])
    check("not privileged", security["privileged"] is False and security["allowPrivilegeEscalation"] is False)
    check("its root is read-only", security["readOnlyRootFilesystem"] is True)
    check("the capabilities of the manual and no other", security["capabilities"] == {"drop": ["ALL"], "add": security["capabilities"]["add"]}
          and set(security["capabilities"]["add"]) == CAPABILITIES)
    check("a filter of system calls", security["seccompProfile"] == {"type": "RuntimeDefault"})
    check("limits", agent["resources"]["limits"] == {"cpu": "100m", "memory": "150Mi"})
    annotations = documents["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
    check("AppArmor's profile is of this container", list(annotations) == ["container.apparmor.security.beta.kubernetes.io/" + agent["name"]])
    check("the probe asks with the agent's configuration", agent["livenessProbe"]["exec"]["command"][:3] == ["gasflame", "agent", "--status"]
          and agent["livenessProbe"]["exec"]["command"][3] == agent["args"][1])


def check_mounts():
    volumes = {v["name"]: v for v in pod["volumes"]}
    check("each mount has its volume, and each volume its mount", sorted(volumes) == sorted(m["name"] for m in agent["volumeMounts"]))
    for m in agent["volumeMounts"]:
        writable = m["name"] in ("state", "tmp")
        check(f"{m['mountPath']} is {'writable' if writable else 'read-only'}", m.get("readOnly", False) is not writable)
        check(f"{m['mountPath']} is a whole path", m["mountPath"].startswith("/") and not m["mountPath"].endswith("/"))
    for v in volumes.values():
        check(f"volume {v['name']} has one source", len(v) == 2)
        path = v.get("hostPath", {}).get("path", "/x")
        check(f"{path} is no socket, nor the folder of one", not path.endswith(".sock") and path not in ("/", "/run", "/var/run", "/run/containerd"))
    check("the configuration is where the agent looks for it", volumes["config"]["configMap"]["name"] == documents["ConfigMap"]["metadata"]["name"])
    check("what is in memory is bounded", volumes["tmp"]["emptyDir"]["sizeLimit"] == "16Mi")


def check_compose():
    services = fleet["services"]
    check("compose: the services", sorted(services) == ["agent", "clickhouse", "grafana", "init", "prometheus", "rollup"])
    check("compose: the agent has the capabilities of the DaemonSet", services["agent"]["cap_drop"] == ["ALL"]
          and set(services["agent"]["cap_add"]) == CAPABILITIES)
    check("compose: and its limits", services["agent"]["mem_limit"] == "150m" and services["agent"]["cpus"] == 0.1 and services["agent"]["read_only"])
    for name, s in services.items():
        check(f"compose: {name} waits for services that there are", set(s.get("depends_on", {})) <= set(services))
        check(f"compose: {name} has configurations that there are", {c["source"] for c in s.get("configs", [])} <= set(fleet["configs"]))
        check(f"compose: {name} listens on loopback only", all(p.startswith("127.0.0.1:") for p in s.get("ports", [])))
        for v in s.get("volumes", []):
            source = v.split(":")[0]
            if source.startswith("./"):
                open(f"{packaging}/{source}").close()
            elif not source.startswith("/"):
                check(f"compose: the volume {source} is there", source in fleet["volumes"])
    wanted = set(services["grafana"]["environment"])
    for name in ("prometheus", "clickhouse"):
        with open(f"{packaging}/grafana/provisioning/{name}.yaml") as f:
            used = {w.split("}")[0] for w in f.read().split("${")[1:]}
        check(f"compose: Grafana has what {name}.yaml asks for", used and used <= wanted)


def check_rollup():
    deployment = load("kubernetes/rollup.yaml")[0]
    spec = deployment["spec"]["template"]["spec"]
    container = spec["containers"][0]
    check("roll-ups: one pod, in the DaemonSet's namespace, of its account", deployment["kind"] == "Deployment" and deployment["spec"]["replicas"] == 1
          and deployment["metadata"]["namespace"] == documents["Namespace"]["metadata"]["name"]
          and spec["serviceAccountName"] == documents["ServiceAccount"]["metadata"]["name"] and spec["automountServiceAccountToken"] is False)
    check("roll-ups: its selector matches its pods", deployment["spec"]["selector"]["matchLabels"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items())
    check("roll-ups: no rights", container["securityContext"]["capabilities"] == {"drop": ["ALL"]} and container["securityContext"]["runAsNonRoot"]
          and container["securityContext"]["readOnlyRootFilesystem"])
    check("roll-ups: the address is the secret's", container["args"] == ["store", "rollup", "--every", "5m", f"$({container['env'][0]['name']})"])
    check("roll-ups: compose has the same command", fleet["services"]["rollup"]["command"][:4] == container["args"][:4]
          and fleet["services"]["rollup"]["command"][4] == fleet["services"]["init"]["command"][2])
    with open(f"{packaging}/systemd/gasflame-rollup.service.in") as f:
        check("roll-ups: and so has the unit", f" {' '.join(container['args'][:4])} ${{{container['env'][0]['name']}}}\n" in f.read())


check_daemonset()
check_rights()
check_mounts()
check_compose()
check_rollup()
sys.exit(failed)
