#!/bin/sh
# build.sh BUILD - gasflame as one file that runs on any distribution, BUILD/gasflame: a static-pie program with all its libraries in it,
# the man pages and completions aside. Needs what tools/deps.sh package installs, and for libraries.sh, once, Debian's sources.
set -eu
[ $# -eq 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
build=$(cd "$1" && pwd)
"$root/packaging/static/libraries.sh" "${STATIC_LIBRARIES:-$build/libraries}"
libraries=${STATIC_LIBRARIES:-$build/libraries}
[ -e "$build/meson/build.ninja" ] ||
	PKG_CONFIG_PATH=$libraries/prefix/lib/pkgconfig meson setup --prefix /usr/local --prefer-static -Dstatic=true -Dtests=false -Dwerror=false \
		-Db_pie=true -Dcollectors=enabled -Dhttp=enabled -Dserve=enabled -Dterminal=enabled -Ddisassembly=enabled \
		-Dc_args="-O2 -ffile-prefix-map=$root=. -D_FORTIFY_SOURCE=2" -Dc_link_args="-Wl,-z,relro,-z,now,-Map=$build/gasflame.map" "$build/meson" "$root"
ninja -C "$build/meson" src/cmd/gasflame
strip -o "$build/gasflame" "$build/meson/src/cmd/gasflame"
# It must need nothing: a library that crept in would be missing elsewhere.
if readelf -d "$build/gasflame" | grep -q NEEDED || readelf -l "$build/gasflame" | grep -q INTERP; then
	echo "build.sh: $build/gasflame is not static:" >&2
	readelf -d "$build/gasflame" | grep NEEDED >&2
	exit 1
fi
ls -l "$build/gasflame"
