#!/bin/sh
# deps.sh [build|bench|kernels|arm64|package] - installs with apt-get what is missing to build and test, and nothing else; with "build"
# not what only some tests use; with "bench" what make bench measures against too, with "kernels" what emulates machines, with "arm64" what builds and
# runs for that, with "package" what makes and tries packages. Asks nothing, and needs no network
# when all is there. What only some tests use may fail to come: they skip then, and say so.
set -eu

# A command that must be there and the package that brings it; or only a package.
wanted="gcc:gcc make:make meson:meson ninja:ninja-build pkg-config:pkg-config clang:clang
bpftool:bpftool python3:python3 readelf:binutils xz:xz-utils setpriv:util-linux pgrep:procps
libc6-dev libbpf-dev libsqlite3-dev zlib1g-dev libzstd-dev liblzma-dev libseccomp-dev
libiberty-dev libjansson-dev libcurl4-openssl-dev libcmocka-dev libdw-dev libclang-rt-dev"
extra="node:nodejs npm:npm perf:linux-perf libmicrohttpd-dev libncurses-dev libcapstone-dev libdevel-nytprof-perl
jeprof:libjemalloc-dev libmimalloc-dev ms_print:valgrind heaptrack:heaptrack chromium:chromium firefox-esr:firefox-esr
fonts-dejavu-core go:golang-go protoc:protobuf-compiler dot:graphviz sqlite3:sqlite3 bpftrace:bpftrace zstd:zstd clickhouse-server:clickhouse-server prometheus:prometheus python3-yaml openssl:openssl curl:curl dockerd:docker.io busybox:busybox-static podman:podman runc:runc tini:tini zsh:zsh fish:fish"
case ${1:-} in
build) extra="libmicrohttpd-dev libncurses-dev libcapstone-dev" ;;
bench) wanted="$wanted perf:linux-perf g++:g++ npm:npm node:nodejs libdevel-nytprof-perl libbpf-tools
postgresql redis-benchmark:redis-tools redis-server:redis-server heaptrack:heaptrack valgrind:valgrind jeprof:libjemalloc-dev" ;;
package) wanted="$wanted libmicrohttpd-dev libncurses-dev libcapstone-dev libelf-dev libssl-dev dh:debhelper dpkg-buildpackage:dpkg-dev
fakeroot:fakeroot infocmp:ncurses-bin git:git file:file"
	extra="lintian:lintian debootstrap:debootstrap busybox:busybox-static curl:curl depmod:kmod mke2fs:e2fsprogs script:bsdutils dockerd:docker.io
podman:podman runc:runc newuidmap:uidmap qemu-system-x86_64:qemu-system-x86 systemd-analyze:systemd python3-yaml" ;;
kernels) wanted="$wanted qemu-system-x86_64:qemu-system-x86 busybox:busybox-static modprobe:kmod"
	extra="jeprof:libjemalloc-dev" ;;
arm64) # libjemalloc-dev of two architectures do not go together: its tests are not built there
	wanted="$wanted aarch64-linux-gnu-gcc:crossbuild-essential-arm64 qemu-aarch64-static:qemu-user-static qemu-system-aarch64:qemu-system-arm
busybox:busybox-static"
	for package in libc6-dev libbpf-dev libelf-dev libsqlite3-dev zlib1g-dev libzstd-dev liblzma-dev libseccomp-dev libiberty-dev libjansson-dev \
		libcurl4-openssl-dev libssl-dev libcmocka-dev libdw-dev libmicrohttpd-dev libncurses-dev libcapstone-dev; do
		wanted="$wanted $package:arm64"
	done
	extra=
	[ "$(id -u)" -ne 0 ] || dpkg --print-foreign-architectures | grep -qx arm64 || { dpkg --add-architecture arm64 && apt-get update -q; } ;;
esac

PATH=$PATH:/usr/sbin:/sbin
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "deps: this is no Debian; please see to these yourself:" $wanted $extra >&2
	exit 0
fi

# A package may be there for several architectures: this machine's counts, or the one that is named.
native=$(dpkg --print-architecture)
installed()
{
	architecture=$native
	case $1 in *:arm64) architecture=arm64 ;; esac
	dpkg-query -W -f='${Architecture}=${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx -e "$architecture=installed" -e all=installed
}

# missing_of WANT…: the packages of those that are not there.
missing_of()
{
	for want; do
		package=${want#*:}
		case $want in
		libclang-rt-dev)
			# The sanitizers and libFuzzer of the clang that there will be; the name has its version.
			version=$(clang --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
			package=libclang-rt-${version:-14}-dev
			# Debian 12's clang-14 has a package of its own for them; elsewhere they come with libclang-common.
			ls "$(clang -print-resource-dir 2>/dev/null)"/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 &&
				continue
			;;
		*:arm64) package=$want ;;
		*:*) ! command -v "${want%:*}" >/dev/null || continue ;;
		esac
		installed "$package" || echo "$package"
	done
}
missing=$(missing_of $wanted)
more=$(missing_of $extra)
[ -n "$missing$more" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
	sudo=
elif sudo -n true 2>/dev/null; then
	sudo="sudo -n"
elif [ -z "$missing" ]; then
	echo "deps: some tests will skip without" $more >&2
	exit 0
else
	echo "deps: missing:" $missing >&2
	echo "deps: run as root: apt-get install" $missing >&2
	exit 1
fi
echo "deps: installing" $missing $more
get() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null; }
# The lists of packages may be missing or old.
get $missing $more || $sudo apt-get update -q </dev/null || true
if [ -n "$missing" ]; then
	get $missing
fi
for package in $more; do
	get "$package" || echo "deps: some tests will skip without $package" >&2
done
