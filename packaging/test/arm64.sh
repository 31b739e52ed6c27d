# arm64.sh - a step of packaging/test.sh: the package and the static program of arm64 in a root of that machine, in emulated processes. Those have no filters of system
# calls and no BPF. A report is refused there, as on any kernel without such filters; the step mac makes one, and records.

# runs WHAT: the version, and what the program prints by itself, which is what ours prints.
runs()
{
	local shell
	check "$1 of arm64: --version" sh -c "'$root/packaging/test/foreign' '$roots/$made' gasflame --version | grep '^gasflame '" || return 0
	check "$1 of arm64: help of each command" foreign "$roots/$made" sh -euc 'gasflame help --commands | while read -r c; do gasflame $c --help >/dev/null; done' || true
	for shell in bash zsh fish; do
		foreign "$roots/$made" gasflame help --completion $shell >"$out/arm64.$shell" 2>"$said"
		"$ours" help --completion $shell >"$out/amd64.$shell"
		check "$1 of arm64: completion for $shell as here" cmp "$out/arm64.$shell" "$out/amd64.$shell" || true
	done
	foreign "$roots/$made" gasflame report -q /tmp/sample.gasflame >"$out/refused.txt" 2>&1
	check "$1 of arm64: no capture is read without a filter of system calls" grep 'cannot install the filter of system calls' "$out/refused.txt" || true
}

try_arm64()
{
	local static deb
	ours=$(static_of "$native")
	"$ours" run -q -e cpu,wait -o "$out/sample.gasflame" -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' >"$said" 2>&1 || [ $? -eq 3 ] ||
		{ not_ok "a capture of this machine" "$said"; return 0; }
	cp "$out/sample.gasflame" "$roots/$made/tmp/sample.gasflame"
	if static=$(static_of arm64); then
		ok "static of arm64: $(stat -c %s "$static") bytes, $(file -b "$static" | grep -o 'ARM aarch64\|static-pie linked' | tr '\n' ' ')"
		install -m 755 "$static" "$roots/$made/usr/bin/gasflame"
		runs static
		rm -f "$roots/$made/usr/bin/gasflame"
	else
		not_ok "make static ARCH=arm64"
	fi
	if deb=$(deb_of arm64); then
		ok "deb of arm64: without lintian's complaints"
		cp "$deb" "$roots/$made/tmp/gasflame.deb"
		cp /etc/resolv.conf "$roots/$made/etc/resolv.conf"
		check "deb of arm64: installs" foreign "$roots/$made" sh -c 'apt-get update -q && apt-get install -y -q --no-install-recommends /tmp/gasflame.deb' || return 0
		runs deb
		check "deb of arm64: purge" foreign "$roots/$made" apt-get purge -y -q gasflame || true
	else
		not_ok "make deb ARCH=arm64"
	fi
}

if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
	skip "arm64" "no cross compiler, or no emulator: tools/deps.sh arm64"
elif ! bootstrap "$(. /etc/os-release && echo "$VERSION_CODENAME")" arm64; then
	skip "arm64" "debootstrap cannot make a root: $(tail -1 "$roots/$made.log")"
else
	try_arm64
fi
