#!/bin/bash
# test.sh FOLDER [STEP...] - packages where people will have them, as root: what make static and make deb leave, in FOLDER, in root folders of other
# distributions, in container engines and in emulated machines. FOLDER/*.txt has what was said; roots and kernels are made once, in
# build-cache/ (ROOTS). A line for each check, and their sum at the end; 1 if one fails. The steps, all by default:
#
#	static    the static program in roots of Debian and of busybox alone: doctor, record, report, agent, serve, top
#	deb       the package in a root of Debian: installed over an older one, used, purged; its unit
#	arm64     both of arm64 in a root of that machine, in emulated processes
#	schemas   the manifest of Kubernetes and the SBOM against what others publish of their form
#	image     packaging/Dockerfile and Dockerfile.static by a real dockerd: doctor, record of another container
#	pods      the DaemonSet's container by a real containerd that has pods
#	rootless  podman of an ordinary user: recorded by root from outside, and from within
#	systemd   the package in an emulated machine with systemd and cgroup v2 only: its agent records a service
#	mac       as systemd, on arm64 with pages of 16 KiB: the nearest to a Mac that is here
set -u
[ $# -ge 1 ] || { sed -n '2,16s/^# \?//p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "test.sh: needs root" >&2; exit 1; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
roots=${ROOTS:-$root/build-cache/roots}
mkdir -p "$roots"
. "$root/packaging/test/lib.sh"

# What is tried, made where it is missing: static_of and deb_of ARCHITECTURE print a path.
native=$(dpkg --print-architecture)
static_of()
{
	local folder=${STATIC:-$root/build-static}
	[ "$1" = "$native" ] || folder=$folder-$1
	[ -x "$folder/gasflame" ] || "$root/packaging/static/build.sh" "$folder" "$1" >"$out/static-$1.log" 2>&1 || { tail -20 "$out/static-$1.log" >&2; return 1; }
	echo "$folder/gasflame"
}
deb_of()
{
	local newest
	newest=$(ls -t "$out"/gasflame_*_"$1".deb 2>/dev/null | head -1)
	[ -n "$newest" ] || newest=$("$root/packaging/deb.sh" "$out" "$1" | tail -1)
	echo "$newest"
}

for step in ${*:-static deb arm64 schemas image pods rootless systemd mac}; do
	[ -e "$root/packaging/test/$step.sh" ] || { echo "test.sh: there is no step $step" >&2; exit 2; }
	note "$step"
	. "$root/packaging/test/$step.sh"
	on_exit
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
