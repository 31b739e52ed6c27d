#!/bin/sh
# libraries.sh FOLDER [ARCHITECTURE] - builds for a static gasflame, into FOLDER, what Debian has only as shared libraries, or with thirty
# others behind it: libcurl with OpenSSL and nothing else, libmicrohttpd without TLS. Their sources are Debian's own, with
# its patches, of the release that this is, fetched with apt-get's checks of signatures; the source lists of the machine are left alone.
# What was built is in FOLDER/sources, a line each: source, version, licence.
set -eu
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
[ ! -e "$out/sources" ] || exit 0
architecture=${2:-$(dpkg --print-architecture)}
host=$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_TYPE 2>/dev/null)
if [ "$architecture" != "$(dpkg --print-architecture)" ]; then
	# curl's configure asks for OpenSSL and zlib there.
	export PKG_CONFIG_LIBDIR="/usr/lib/$host/pkgconfig:/usr/share/pkgconfig"
fi
work=$out/work
rm -rf "$work" "$out/prefix"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/sources.d"

# The machine's own lists, asked for sources.
for list in /etc/apt/sources.list.d/*.sources; do
	[ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/sources.d/${list##*/}"
done
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ ! -e "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"$work/sources.d/machine-$(basename "$list" .list).list"
done
get()
{
	apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources.d" -o Dir::State::lists="$work/lists" \
		-o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
cd "$work"
get update
get source --only-source curl libmicrohttpd

# Paths of this folder must not be in what is built: the same sources give the same bytes anywhere.
flags="-O2 -g -fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$work=."
jobs=$(nproc)
build()
{
	folder=$(ls -d "$work/$1"-*/)
	shift
	(cd "$folder" && ./configure -q --prefix="$out/prefix" --disable-shared --enable-static --disable-dependency-tracking \
		--build="$(dpkg-architecture -q DEB_BUILD_GNU_TYPE)" --host="$host" CFLAGS="$flags" "$@")
}
build curl --with-openssl --with-zlib --disable-debug --disable-manual --disable-ldap --disable-ldaps --disable-rtsp --disable-dict \
	--disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt \
	--disable-ftp --disable-file --without-libpsl --without-libidn2 --without-librtmp --without-libssh2 --without-nghttp2 \
	--without-brotli --without-zstd --without-gssapi --disable-ntlm --disable-alt-svc --without-libgsasl --enable-threaded-resolver \
	--with-ca-bundle=/etc/ssl/certs/ca-certificates.crt --with-ca-path=/etc/ssl/certs
make -s -j"$jobs" -C "$folder/lib" install
make -s -C "$folder/include" install
make -s -C "$folder" install-pkgconfigDATA
build libmicrohttpd --disable-https --disable-curl --disable-doc --disable-examples --disable-tools --disable-postprocessor --disable-dauth \
	--disable-bauth
make -s -j"$jobs" -C "$folder/src/include" install
make -s -j"$jobs" -C "$folder/src/microhttpd" install
make -s -C "$folder" install-pkgconfigDATA

for source in curl:curl libmicrohttpd:LGPL-2.1-or-later; do
	name=${source%%:*}
	version=$(dpkg-parsechangelog -l "$work/$name"-*/debian/changelog -S Version)
	echo "$name $version ${source#*:}"
done >"$out/sources"
rm -rf "$work"
