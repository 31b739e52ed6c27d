# mac.sh - a step of packaging/test.sh: the nearest to Docker Desktop on a Mac that is here. An emulated arm64 machine with pages of 16 KiB, the package of arm64,
# systemd, cgroup v2, and a container of podman that is recorded by its name.
. "$root/packaging/test/machine.sh"

try_mac()
{
	local deb suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	command -v qemu-system-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null ||
		{ skip "an arm64 machine" "no qemu-system-aarch64 or no cross compiler here: tools/deps.sh arm64"; return; }
	deb=$(deb_of arm64) || { not_ok "make deb ARCH=arm64"; return; }
	kernel_of arm64 trixie arm64-16k >"$said" 2>&1 || { skip "an arm64 machine" "no kernel: $(tail -1 "$said")"; return; }
	machine_root "$suite-arm64" "$suite" arm64 podman runc >"$said" 2>&1 || { skip "an arm64 machine" "no root: $(tail -1 "$said")"; return; }
	machine_disk "$deb" arm64 >"$said" 2>&1 || { not_ok "a disk of the arm64 machine" "$said"; return; }
	machine_run arm64
}
try_mac
