#!/bin/sh
# deb.sh FOLDER [ARCHITECTURE] - builds the Debian package of the commit that is checked out, into FOLDER: for this machine, or with
# Debian's cross compiler for another one (arm64). Needs no network: what tools/deps.sh package, and tools/deps.sh arm64, install is
# enough. One commit gives one package, to the byte, with the same tools. Source and package are without any complaint of lintian, pedantic ones included, or it fails.
set -eu
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
native=$(dpkg --print-architecture)
architecture=${2:-$native}
version=$("$root/tools/version" --debian)
case $version in *.dirty)
	echo "deb.sh: changes that are not committed are not in the package" >&2
	version=${version%.dirty} ;;
esac
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# The same folder each time: a compiler's cache knows what it has seen.
work=$out/work-$architecture
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
tree=$work/gasflame-$version
mkdir "$tree"
git -C "$root" archive HEAD | tar -x -C "$tree"
mv "$tree/packaging/debian" "$tree/debian"
cp "$tree/packaging/systemd/gasflame.sysusers" "$tree/debian/gasflame.sysusers"
cat >"$tree/debian/changelog" <<END
gasflame ($version) unstable; urgency=medium

  * See /usr/share/doc/gasflame/CHANGELOG.md.gz.

 -- gasflame developers <gasflame@example.org>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
# For another machine the tests, which are not run here anyway, are not asked for either.
cross=
[ "$architecture" = "$native" ] || cross="-a$architecture -Pcross,nocheck"
(cd "$tree" && dpkg-buildpackage -us -uc $cross) >"$out/deb-$architecture.log" 2>&1 || { tail -40 "$out/deb-$architecture.log" >&2; exit 1; }
rm -f "$work"/gasflame-dbgsym_*.deb
mv "$work"/gasflame_*_"$architecture".deb "$out"
deb=$out/gasflame_${version}_$architecture.deb
! command -v lintian >/dev/null || lintian --allow-root --pedantic --fail-on error,warning,info,pedantic "$work"/gasflame_*.dsc "$deb"
echo "$deb"
