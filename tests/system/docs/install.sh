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
is "version: a tarball of a commit" 1.2.3-dev.20261118120501.g1dc118a4 "$(version 'HEAD -> main;1dc118a4;1795003501;')"
is "version: older than the release, for Debian" 1.2.3~dev.20261118120501.g1dc118a4 "$(version ';1dc118a4;1795003501;v1.2.2-7-g1dc118a4' --debian)"
is "version: of a release" 1.2.3 "$(version 'HEAD -> main, tag: v1.2.3, origin/main;1dc118a4;1795003501;v1.2.3')"
is "version: of another release's tag" 1.2.3-dev.20261118120501.g1dc118a4 "$(version 'tag: v1.2.30;1dc118a4;1795003501;v1.2.30')"
is "version: after the release" 1.2.3+dev.20261118120501.g1dc118a4 "$(version ';1dc118a4;1795003501;v1.2.3-4-g1dc118a4' --debian)"
is "version: of an archive by an older git" 1.2.3-dev.20261118120501.g1dc118a4 "$(version ';1dc118a4;1795003501;%(describe:tags=true,match=v[0-9]*)')"
is "version: of a tree that knows nothing" 1.2.3-dev "$(version "$(cat "$root/packaging/commit")")"

# A repository: what is built later is newer for apt, at each commit, by git and as a tarball.
of_git() { git -C repo -c user.name=test -c user.email=test@example.org "$@"; }
# step VERSION [TAG]: a commit, a second after the last one; its version, and that of its tarball, which is the same.
step()
{
	seconds=$((seconds + 1))
	echo "$1" >repo/VERSION
	of_git add -A
	GIT_AUTHOR_DATE="@$seconds +0000" GIT_COMMITTER_DATE="@$seconds +0000" of_git commit -q --allow-empty -m step
	[ -z "${2:-}" ] || of_git tag -m release "$2"
	repo/tools/version --debian >>versions
	rm -rf tarball
	mkdir tarball
	of_git archive HEAD | tar -x -C tarball
	tarball/tools/version --debian >>versions.tarball
}
if command -v git >/dev/null && command -v dpkg >/dev/null; then
	mkdir -p repo/tools repo/packaging
	cp "$root/tools/version" repo/tools
	cp "$root/packaging/commit" repo/packaging
	cp "$root/.gitattributes" repo
	git init -q repo
	seconds=1795003500
	printf '%s\n' '1.2.2' '1.2.3~dev' >versions # the last release, and a tree that knows nothing
	cp versions versions.tarball
	for i in 1 2 3; do step 1.2.3; done
	step 1.2.3 v1.2.3
	for i in 1 2 3; do step 1.2.3; done
	echo 1.2.4~dev | tee -a versions >>versions.tarball
	for i in 1 2 3; do step 1.2.4; done
	step 1.2.4 v1.2.4
	newer=0
	while read -r version; do
		[ -z "${last:-}" ] || dpkg --compare-versions "$last" lt "$version" || { newer=1; echo "# $last is not older than $version"; }
		last=$version
	done <versions
	is "version: each of $(wc -l <versions) is newer than the one before, for dpkg" 0 $newer
	is "version: a tarball has the version of its commit" "$(cat versions)" "$(cat versions.tarball)"
	echo 1.2.5 >repo/VERSION
	is "version: a changed tree is newer than its commit" 0 "$(dpkg --compare-versions "$(repo/tools/version --debian)" gt "$(tail -1 versions)"; echo $?)"
else
	skip "version: the order for dpkg" "no git or no dpkg here"
fi
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
