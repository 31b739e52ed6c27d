#!/bin/sh
# deps.sh [bench] - installs with apt-get what is missing to build and test, and nothing else; with "bench"
# what make bench measures against too. Asks nothing, and needs no network when all is there.
set -eu

# A command that must be there and the package that brings it; or only a package.
wanted="gcc:gcc make:make meson:meson ninja:ninja-build pkg-config:pkg-config clang:clang
bpftool:bpftool python3:python3 readelf:binutils xz:xz-utils setpriv:util-linux pgrep:procps
libc6-dev libbpf-dev libsqlite3-dev zlib1g-dev libzstd-dev liblzma-dev libseccomp-dev
libiberty-dev libcurl4-openssl-dev libcmocka-dev libdw-dev libclang-rt-dev"
[ "${1:-}" != bench ] || wanted="$wanted perf:linux-perf g++:g++ npm:npm node:nodejs libdevel-nytprof-perl
libbpf-tools"

PATH=$PATH:/usr/sbin:/sbin
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "deps: this is no Debian; please see to these yourself:" $wanted >&2
	exit 0
fi

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=
for want in $wanted; do
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
	*:*) ! command -v "${want%:*}" >/dev/null || continue ;;
	esac
	installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
	sudo=
elif sudo -n true 2>/dev/null; then
	sudo="sudo -n"
else
	echo "deps: missing:$missing" >&2
	echo "deps: run as root: apt-get install$missing" >&2
	exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; }
install </dev/null || { $sudo apt-get update -q </dev/null && install </dev/null; }
