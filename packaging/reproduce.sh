#!/bin/sh
# reproduce.sh [WHAT...] - builds the static program and the Debian package (static, deb; static-arm64, deb-arm64) of the commit that is checked out
# in two folders with names of different length, and compares the bytes. 1 if they differ.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gasflame-reproduce-XXXXXX")
trap 'rm -rf "$work"' EXIT
bad=0
for folder in one a-second-folder; do
	git clone -q "$root" "$work/$folder"
done
for what in ${*:-static deb}; do
	architecture=$(dpkg --print-architecture)
	case $what in *-*) architecture=${what#*-} ;; esac
	case $what in
	static | static-*) build="packaging/static/build.sh build-$what $architecture" made=gasflame ;;
	deb | deb-*) build="packaging/deb.sh build-$what $architecture" made='*.deb' ;;
	*) echo "reproduce.sh: there is static, deb, static-arm64 and deb-arm64, not $what" >&2; exit 2 ;;
	esac
	for folder in one a-second-folder; do
		(cd "$work/$folder" && $build) >"$work/$folder.log" 2>&1 || { tail -20 "$work/$folder.log" >&2; exit 1; }
	done
	sums=$(cd "$work" && sha256sum one/build-$what/$made a-second-folder/build-$what/$made)
	echo "$sums"
	if [ "$(echo "$sums" | cut -d' ' -f1 | uniq | wc -l)" -eq 1 ] && [ "$(echo "$sums" | wc -l)" -eq 2 ]; then
		echo "ok - $what: two folders, one hash"
	else
		echo "not ok - $what"
		bad=1
	fi
done
exit $bad
