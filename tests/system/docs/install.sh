#!/bin/bash
# The version, and what make install puts below DESTDIR: all of it goes again, and nothing of others.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
build=$(cd "$(dirname "$GASFLAME")/../.." && pwd)
root=$(cd "$here/../../.." && pwd)
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "wanted: $2
got: $3"; fi; }

# A tree as git archive leaves it, with a commit or none, and one at its release.
version() { mkdir -p tree/tools tree/packaging && cp "$root/tools/version" tree/tools && echo 1.2.3 >tree/VERSION && echo "$1" >tree/packaging/commit &&
	tree/tools/version ${2:-}; }
is "version: a tarball of a commit" 1.2.3-dev.20261118.g1dc118a4 "$(version 'HEAD -> main;1dc118a4;2026-11-18')"
is "version: older than the release, for Debian" 1.2.3~dev.20261118.g1dc118a4 "$(version ';1dc118a4;2026-11-18' --debian)"
is "version: of a release" 1.2.3 "$(version 'HEAD -> main, tag: v1.2.3, origin/main;1dc118a4;2026-11-18')"
is "version: of another release's tag" 1.2.3-dev.20261118.g1dc118a4 "$(version 'tag: v1.2.30;1dc118a4;2026-11-18')"
is "version: of a tree that knows nothing" 1.2.3-dev "$(version '$Format:%D;%h;%cs$')"
case $("$GASFLAME" --version) in
"gasflame $(cat "$root/VERSION")"*) ok "gasflame --version" ;;
*) not_ok "gasflame --version" "$("$GASFLAME" --version)" ;;
esac

if ! command -v meson >/dev/null; then
	skip "make install" "no meson here"
	finish
fi
mkdir -p dest/usr/local/bin
echo mine >dest/usr/local/bin/mine
find dest | sort >before
check "make install" env DESTDIR="$tmp/dest" meson install --no-rebuild -C "$build"
bin=$(find dest -name gasflame -path '*/bin/*')
is "the program is there, and runs" "$("$GASFLAME" --version)" "$("$bin" --version)"
share=${bin%/bin/gasflame}/share
for file in bash-completion/completions/gasflame zsh/site-functions/_gasflame fish/vendor_completions.d/gasflame.fish man/man1/gasflame-record.1 \
	gasflame/configs/agent.conf; do
	[ -s "$share/$file" ] && ok "$file" || not_ok "$file"
done
# A tool that does not know the program's path would complain of that alone.
for unit in gasflame-agent.service gasflame-rollup.service; do
	if command -v systemd-analyze >/dev/null; then
		sed "s|^ExecStart=[^ ]*|ExecStart=$tmp/$bin|; s|^Documentation=.*||" "$(find dest -name "$unit")" >"$unit"
		is "$unit is good" "" "$(systemd-analyze verify --man=no "$tmp/$unit" 2>&1 | grep gasflame)"
	else
		skip "$unit is good" "no systemd-analyze here"
	fi
done
check "make uninstall" "$root/tools/uninstall" "$build"
is "nothing is left, and nothing of others is gone" "$(cat before)" "$(find dest | sort)"
check "nothing is installed any more" sh -c "! '$root/tools/uninstall' '$build'"
finish
