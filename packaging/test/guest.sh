#!/bin/bash
# guest.sh - in a machine of packaging/test/machine.sh, as a service of its systemd: does the package work on a host with cgroup v2 only, and does its
# agent? Lines behind "@ " go to packaging/test.sh.
cd /tmp
ok() { echo "@ ok - $ON: $1"; }
not_ok() { echo "@ not ok - $ON: $1"; [ ! -s "${2:-}" ] || tail -n 20 "$2" | sed 's/^/#   /'; }
check() { local name=$1; shift; if "$@" >said.txt 2>&1; then ok "$name"; else not_ok "$name" said.txt; fi; }
wait_for() { local n=$(($1 * 5)); shift; until "$@" >/dev/null 2>&1; do n=$((n - 1)); [ $n -gt 0 ] || return 1; sleep 0.2; done; }
ON="$(. /etc/os-release && echo "$ID $VERSION_ID"), $(uname -m), Linux $(uname -r), pages of $(getconf PAGESIZE)"

# Whoever asks podman first, by its socket or by its command, writes into its data which kind of storage it has: the same for both.
if command -v podman >/dev/null; then
	mkdir -p /etc/containers
	printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' >/etc/containers/storage.conf
fi

check "systemd is the first process" grep -qx systemd /proc/1/comm
check "cgroup v2 only" sh -c '[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] && ! grep " cgroup " /proc/mounts'
echo "# perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
gasflame doctor >doctor.txt 2>&1
check "doctor: $(grep "^On this machine" doctor.txt)" grep -q "^On this machine: full recording" doctor.txt

# A service at work, as a node would be: a shell that computes and waits.
cat >/etc/systemd/system/busy.service <<END
[Service]
ExecStart=/bin/sh -c 'while :; do i=0; while [ \$\$i -lt 20000 ]; do i=\$\$((i + 1)); done; sleep 0.01; done'
END
systemctl daemon-reload
systemctl start busy
gasflame record -d 4 -e cpu,wait -o unit.gasflame unit:busy >record.txt 2>&1
status=$?
complete=$(sed -n 's/^.* \([0-9.]*\) % complete.*$/\1/p' record.txt | head -n 1)
if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "record unit:busy: $complete % complete"; else not_ok "record unit:busy" record.txt; fi
check "report of it" sh -c 'gasflame report -q --format folded unit.gasflame | grep -q "sh;\|dash"'

check "a report of another machine's capture, as it is there" sh -c 'gasflame report -q --format folded /root/sample.gasflame | cmp - /root/sample.folded'

# Its agent, by the unit of the package as it is.
cat >/etc/gasflame/agent.conf <<END
[agent]
spool = /var/lib/gasflame/spool
window = 10s
budget = 50%
[target unit:busy]
[sink captures]
url = file:///var/lib/gasflame/captures
END
check "the unit is disabled, and not running, after the package was installed" sh -c '! systemctl is-enabled gasflame-agent && ! systemctl is-active gasflame-agent'
check "agent --check" gasflame agent --check /etc/gasflame/agent.conf
check "systemctl enable --now gasflame-agent" systemctl enable --now gasflame-agent
window() { find /var/lib/gasflame/captures -name '*.gasflame' | grep .; }
if wait_for 60 window; then ok "the agent records the service"; else not_ok "the agent records the service"; fi
journalctl -u gasflame-agent --no-pager -o cat | tail -n 12 | sed 's/^/#   /'
systemctl is-active gasflame-agent >said.txt && ok "it runs" || not_ok "it runs" said.txt
check "agent --status" gasflame agent --status /etc/gasflame/agent.conf
pid=$(systemctl show -p MainPID --value gasflame-agent)
echo "# capabilities of the agent: $(grep CapBnd "/proc/$pid/status"), seccomp $(grep Seccomp: "/proc/$pid/status")"
check "systemctl reload" sh -c "systemctl reload gasflame-agent && systemctl is-active gasflame-agent"
check "systemctl stop: it ends well, within its time" sh -c 'systemctl stop gasflame-agent && [ "$(systemctl show -p Result --value gasflame-agent)" = success ]'
check "its captures are of the group gasflame, and nobody else's" sh -c '[ "$(stat -c "%G %a" /var/lib/gasflame)" = "gasflame 750" ]'
first=$(window | head -n 1)
check "a window has stacks of the service" sh -c "gasflame report -q --format folded '$first' | grep -q ."
echo "# $(systemd-analyze security gasflame-agent --no-pager | tail -n 1)"

# A container beside it.
if command -v podman >/dev/null; then
	mkdir -p box/bin && cp /bin/busybox box/bin/ && ln -sf busybox box/bin/sh
	tar -C box -cf box.tar .
	check "podman imports an image" podman import box.tar box:1
	podman run -d --name gf-box --network none --ulimit nofile=1024:1024 box:1 /bin/sh -c 'while :; do :; done' >said.txt 2>&1 &&
		ok "podman runs a container" || not_ok "podman runs a container" said.txt
	gasflame record -d 4 -e cpu,wait -o box.gasflame container:gf-box >record.txt 2>&1
	status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then
		ok "record container:gf-box: $(sed -n 's/^.* \([0-9.]*\) % complete.*$/\1/p' record.txt | head -n 1) % complete"
	else
		not_ok "record container:gf-box" record.txt
	fi
	podman rm -f -t 0 gf-box >/dev/null 2>&1
fi
check "apt-get purge, offline" sh -c 'dpkg --purge gasflame && ! test -e /etc/gasflame/agent.conf'
echo "@ done"
