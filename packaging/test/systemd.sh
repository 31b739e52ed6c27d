# systemd.sh - a step of packaging/test.sh: the package on an emulated Debian 12 with systemd and cgroup v2 only. Its kernel is Debian's own, with
# perf_event_paranoid 3.
. "$root/packaging/test/machine.sh"

try_systemd()
{
	local deb
	command -v qemu-system-x86_64 >/dev/null || { skip "a host with systemd" "no qemu-system-x86_64 here"; return; }
	deb=$(deb_of amd64) || { not_ok "make deb"; return; }
	kernel_of amd64 bookworm cloud-amd64 >"$said" 2>&1 || { skip "a host with systemd" "no kernel: $(tail -1 "$said")"; return; }
	machine_root bookworm bookworm amd64 >"$said" 2>&1 || { skip "a host with systemd" "no root: $(tail -1 "$said")"; return; }
	machine_disk "$deb" amd64 >"$said" 2>&1 || { not_ok "a disk of the machine" "$said"; return; }
	machine_run amd64
}
try_systemd
