#!/bin/sh
# release.sh FOLDER - all that a release has, of the commit that is checked out, into FOLDER: the source, and for each of ARCHITECTURES
# (amd64 arm64) the static program, which is one file, what is in it (SBOM), the Debian package; and SHA256SUMS of these.
# docs/howto/release.md is the way to it.
set -eu
[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$("$root/tools/version")
case $version in *.dirty)
	echo "release.sh: there are changes that are not committed" >&2
	exit 1 ;;
esac
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
native=$(dpkg --print-architecture)
cd "$out"
rm -f gasflame-*.tar.gz gasflame-*.tar.xz gasflame-*.json gasflame_*.deb SHA256SUMS

# Names, times and owners that do not depend on who packs it.
pack() { tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$1" -c "$2" | xz -9 -T1 >"$2.tar.xz"; }
git -C "$root" archive --prefix="gasflame-$version/" HEAD | gzip -9 -n >"gasflame-$version.tar.gz"

work=$(mktemp -d "$out/release-XXXXXX")
trap 'rm -rf "$work"' EXIT
for architecture in ${ARCHITECTURES:-amd64 arm64}; do
	static=${STATIC:-$root/build-static}
	[ "$architecture" = "$native" ] || static=$static-$architecture
	"$root/packaging/static/build.sh" "$static" "$architecture"
	name=gasflame-$version-$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_CPU 2>/dev/null)-linux-static
	mkdir "$work/$name"
	cp "$static/gasflame" "$work/$name/gasflame"
	chmod 755 "$work/$name" "$work/$name/gasflame"
	pack "$work" "$name"
	"$root/packaging/sbom.py" "$version" "$static/gasflame" "$static/gasflame.map" "$static/libraries/sources" >"$name.cdx.json"
	"$root/packaging/deb.sh" "$out" "$architecture"
done
sha256sum gasflame-*.tar.gz gasflame-*.tar.xz gasflame-*.cdx.json gasflame_*.deb >SHA256SUMS
cat SHA256SUMS
