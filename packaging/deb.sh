#!/bin/sh
# deb.sh FOLDER - builds the Debian package of the commit that is checked out, into FOLDER. Needs no network: what tools/deps.sh package
# installs is enough. One commit gives one package, to the byte, with the same tools.
set -eu
[ $# -eq 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$("$root/tools/version" --debian)
case $version in *.dirty)
	echo "deb.sh: changes that are not committed are not in the package" >&2
	version=${version%.dirty} ;;
esac
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d "$out/deb-XXXXXX")
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
(cd "$tree" && dpkg-buildpackage -b -us -uc) >"$out/deb.log" 2>&1 || { tail -40 "$out/deb.log" >&2; exit 1; }
mv "$work"/*.deb "$out"
rm -f "$out"/gasflame-dbgsym_*.deb
deb=$(ls -t "$out"/gasflame_*.deb | head -1)
! command -v lintian >/dev/null || lintian --fail-on error,warning "$deb"
echo "$deb"
