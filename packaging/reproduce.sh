#!/bin/sh
# reproduce.sh [WHAT...] - builds the static program and the Debian package (static, deb) of the commit that is checked out in two folders with names
# of different length, and compares the bytes. 1 if they differ.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gasflame-reproduce-XXXXXX")
trap 'rm -rf "$work"' EXIT
bad=0
for folder in one a-second-folder; do
	git clone -q "$root" "$work/$folder"
done
for what in ${*:-static deb}; do
	for folder in one a-second-folder; do
		case $what in
		static) (cd "$work/$folder" && packaging/static/build.sh build-static) >"$work/$folder.log" 2>&1 ;;
		deb) (cd "$work/$folder" && packaging/deb.sh build-packages) >"$work/$folder.log" 2>&1 ;;
		*) echo "reproduce.sh: there is static and deb, not $what" >&2; exit 2 ;;
		esac || { tail -20 "$work/$folder.log" >&2; exit 1; }
	done
	sums=$(cd "$work" && sha256sum one/build-static/gasflame a-second-folder/build-static/gasflame one/build-packages/*.deb \
		a-second-folder/build-packages/*.deb 2>/dev/null | grep -e "$([ "$what" = deb ] && echo 'deb$' || echo 'gasflame$')")
	echo "$sums"
	if [ "$(echo "$sums" | cut -d' ' -f1 | uniq | wc -l)" -eq 1 ] && [ "$(echo "$sums" | wc -l)" -eq 2 ]; then
		echo "ok - $what: two folders, one hash"
	else
		echo "not ok - $what"
		bad=1
	fi
done
exit $bad
