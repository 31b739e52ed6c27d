#!/bin/sh
# build.sh BUILD [ARCHITECTURE] - gasflame as one file that runs on any distribution, BUILD/gasflame: a static-pie program with all its
# libraries in it, the man pages and completions aside. For this machine, or with Debian's cross compiler for another one (arm64).
# Needs what tools/deps.sh package, and tools/deps.sh arm64, install, and for libraries.sh, once, Debian's sources.
set -eu
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
build=$(cd "$1" && pwd)
architecture=${2:-$(dpkg --print-architecture)}
libraries=$build/libraries
"$root/packaging/static/libraries.sh" "$libraries" "$architecture"
tools= cross=
if [ "$architecture" != "$(dpkg --print-architecture)" ]; then
	tools=$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_TYPE 2>/dev/null)-
	# A second file is laid over the first: Debian's own libraries of that machine, and ours before them.
	cross="--cross-file $root/tools/$architecture.cross --cross-file $build/libraries.cross"
	printf '[properties]\npkg_config_libdir = [%s]\n' "'$libraries/prefix/lib/pkgconfig', '/usr/lib/${tools%-}/pkgconfig', '/usr/share/pkgconfig'" \
		>"$build/libraries.cross"
fi
[ -e "$build/meson/build.ninja" ] ||
	PKG_CONFIG_PATH=$libraries/prefix/lib/pkgconfig meson setup --prefix /usr/local --prefer-static -Dstatic=true -Dtests=false -Dwerror=false \
		-Db_pie=true -Dcollectors=enabled -Dhttp=enabled -Dserve=enabled -Dterminal=enabled -Ddisassembly=enabled $cross \
		-Dc_args="-O2 -ffile-prefix-map=$root=. -D_FORTIFY_SOURCE=2" -Dc_link_args="-Wl,-z,relro,-z,now,-Map=$build/gasflame.map" "$build/meson" "$root"
ninja -C "$build/meson" src/cmd/gasflame
"${tools}strip" -o "$build/gasflame" "$build/meson/src/cmd/gasflame"
# It must need nothing: a library that crept in would be missing elsewhere.
if readelf -d "$build/gasflame" | grep -q NEEDED || readelf -l "$build/gasflame" | grep -q INTERP; then
	echo "build.sh: $build/gasflame is not static:" >&2
	readelf -d "$build/gasflame" | grep NEEDED >&2
	exit 1
fi
ls -l "$build/gasflame"
