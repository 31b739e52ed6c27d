#!/bin/bash
# test.sh FOLDER - the static program and the package in root folders of other distributions: doctor, record and report of a process there; as root.
# The roots are made by debootstrap, once, in FOLDER/roots; one is of busybox alone. A line for each; 1 if one fails.
set -eu
[ $# -eq 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "test.sh: needs root" >&2; exit 1; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
roots=${ROOTS:-$out/roots}
static=${STATIC:-$root/build-static}/gasflame
bad=0
mkdir -p "$roots"
# A mirror as apt has it here.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\).*/\2/p' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | head -1)

bootstrap()
{
	[ -e "$roots/$1/.whole" ] && return
	rm -rf "${roots:?}/$1"
	debootstrap --variant=minbase "$1" "$roots/$1" "$mirror" >"$roots/$1.log" 2>&1 || return 1
	touch "$roots/$1/.whole"
}

busybox_root()
{
	rm -rf "$roots/busybox"
	mkdir -p "$roots/busybox/bin" "$roots/busybox/tmp" "$roots/busybox/proc" "$roots/busybox/sys" "$roots/busybox/dev" "$roots/busybox/usr/bin" "$roots/busybox/etc"
	cp "$(command -v busybox)" "$roots/busybox/bin/busybox"
	for applet in sh awk cat grep kill tail sleep; do ln -s busybox "$roots/busybox/bin/$applet"; done
}

# inside ROOT COMMAND...: with the machine's processes and kernel, in a mount namespace that ends with it.
inside()
{
	local of=$1
	shift
	unshare -m --propagation private sh -euc 'r=$1; shift; mount -t proc proc "$r/proc"; mount --rbind /sys "$r/sys"; mount --rbind /dev "$r/dev"
		exec env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp TERM=xterm-256color chroot "$r" "$@"' sh "$of" "$@"
}

# try WHAT SUITE
try()
{
	cp "$root/packaging/try.sh" "$roots/$2/tmp/try.sh"
	if inside "$roots/$2" sh /tmp/try.sh >"$out/try-$1-$2.txt" 2>&1; then
		echo "ok - $1 on $2: $(tail -1 "$out/try-$1-$2.txt"), $(sed -n 's/.*\(On this machine.*\)/\1/p' "$out/try-$1-$2.txt" | head -1)"
	else
		bad=1
		echo "not ok - $1 on $2"
		tail -20 "$out/try-$1-$2.txt" | sed 's/^/#   /'
	fi
}

[ -x "$static" ] || "$root/packaging/static/build.sh" "${STATIC:-$root/build-static}"
busybox_root
for suite in busybox ${SUITES:-bookworm trixie bullseye}; do
	if [ "$suite" != busybox ] && ! bootstrap "$suite"; then
		echo "ok - static on $suite # SKIP debootstrap cannot make it: $(tail -1 "$roots/$suite.log")"
		continue
	fi
	install -m 755 "$static" "$roots/$suite/usr/bin/gasflame"
	try static "$suite"
	rm -f "$roots/$suite/usr/bin/gasflame"
done

# The package is for the release that it was built on.
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
deb=$(ls -t "$out"/gasflame_*.deb 2>/dev/null | head -1)
[ -n "$deb" ] || { "$root/packaging/deb.sh" "$out" && deb=$(ls -t "$out"/gasflame_*.deb | head -1); }
if bootstrap "$suite"; then
	cp "$deb" "$roots/$suite/tmp/gasflame.deb"
	cp /etc/resolv.conf "$roots/$suite/etc/resolv.conf"
	if inside "$roots/$suite" sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends /tmp/gasflame.deb' \
		>"$out/install-$suite.txt" 2>&1; then
		try deb "$suite"
		inside "$roots/$suite" sh -c 'DEBIAN_FRONTEND=noninteractive apt-get purge -y -q gasflame && ! ls -d /etc/gasflame /usr/bin/gasflame' \
			>"$out/purge-$suite.txt" 2>&1 && echo "ok - purge on $suite" || { bad=1; echo "not ok - purge on $suite"; }
	else
		bad=1
		echo "not ok - the package installs on $suite"
		tail -20 "$out/install-$suite.txt" | sed 's/^/#   /'
	fi
fi
exit $bad
