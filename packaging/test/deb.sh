# deb.sh - a step of packaging/test.sh: the package in a root of the release that it was built on. It is installed over an older one, used, and purged.

# older DEB: the same package with a version from before, in which agent.conf is another one and one file more is there, as an upgrade meets it.
older()
{
	local tree=$out/older
	rm -rf "$tree"
	dpkg-deb -R "$1" "$tree"
	sed -i 's/^Version: .*/Version: 0.0.1/' "$tree/DEBIAN/control"
	echo "# an older one" >"$tree/etc/gasflame/agent.conf"
	echo gone >"$tree/usr/share/gasflame/of-old-times"
	dpkg-deb -b "$tree" "$out/older.deb" >/dev/null
	rm -rf "$tree"
}

# in_deb COMMAND...: in the root of this step, in a shell.
in_deb() { inside "$roots/$made" sh -c "$*"; }

# describes DEB: what has to be in it.
describes()
{
	local files command unit=./lib/systemd/system/gasflame-agent.service
	files=$(dpkg-deb -c "$1" | awk '{ print $6 }')
	inside "$roots/$made" gasflame help --commands >"$out/commands.txt"
	while IFS= read -r command; do
		grep -qxF "./usr/share/man/man1/gasflame-${command// /-}.1.gz" <<<"$files" || { not_ok "deb: a manual page for $command"; return; }
	done <"$out/commands.txt"
	ok "deb: a manual page for each of $(wc -l <"$out/commands.txt") commands"
	for file in ./usr/share/bash-completion/completions/gasflame ./usr/share/zsh/vendor-completions/_gasflame \
		./usr/share/fish/vendor_completions.d/gasflame.fish $unit ./usr/lib/sysusers.d/gasflame.conf ./etc/gasflame/agent.conf; do
		check "deb: has $file" grep -qxF "$file" <<<"$files" || true
	done
}

# unit_of ROOT: systemd-analyze's opinion of the unit, which runs nothing.
unit_of()
{
	local unit=$1/lib/systemd/system/gasflame-agent.service
	if ! command -v systemd-analyze >/dev/null; then
		skip "deb: the unit" "no systemd-analyze here"
		return
	fi
	check "deb: systemd-analyze verify" sh -c "! systemd-analyze verify --root='$1' --man=no gasflame-agent.service 2>&1 | grep gasflame" || true
	systemd-analyze security --offline=true --threshold="${EXPOSURE:-50}" "$unit" >"$out/security.txt" 2>&1 &&
		ok "deb: systemd-analyze security: $(sed -n 's/.*: \([0-9.]* [A-Z]*\).*/\1/p' "$out/security.txt" | tail -1)" ||
		not_ok "deb: systemd-analyze security: $(tail -1 "$out/security.txt")"
}

try_deb()
{
	local deb=$1 where=$roots/$made
	older "$deb"
	cp "$deb" "$where/tmp/gasflame.deb"
	mv "$out/older.deb" "$where/tmp/older.deb"
	cp /etc/resolv.conf "$where/etc/resolv.conf"
	check "deb on $made: an older one installs" in_deb 'apt-get update -q && apt-get install -y -q --no-install-recommends /tmp/older.deb' || return 0
	in_deb 'mkdir -p /var/lib/gasflame/captures && echo kept >/var/lib/gasflame/captures/old.gasflame'
	check "deb on $made: this one over it" in_deb 'apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-confold /tmp/gasflame.deb' || return 0
	check "deb on $made: files of the older one are gone" test ! -e "$where/usr/share/gasflame/of-old-times" || true
	check "deb on $made: dpkg --audit, dpkg -V" in_deb 'test -z "$(dpkg --audit)" && ! dpkg -V gasflame | grep -v " c /etc/"' || true
	check "deb on $made: the user and group gasflame" in_deb 'getent passwd gasflame && getent group gasflame' || true
	describes "$deb"
	unit_of "$where"
	try deb "$made" || true
	check "deb on $made: remove leaves the configuration" in_deb 'apt-get remove -y -q gasflame && test -e /etc/gasflame/agent.conf && ! test -e /usr/bin/gasflame' || true
	check "deb on $made: purge" in_deb 'apt-get purge -y -q gasflame' || true
	# What dpkg does not own, as captures, is the owner's.
	check "deb on $made: nothing is left but captures" sh -c "! find '$where' -xdev -name '*gasflame*' ! -path '*/var/lib/gasflame*' ! -path '*/tmp/*' | grep ." || true
	check "deb on $made: captures stay" grep -q kept "$where/var/lib/gasflame/captures/old.gasflame" || true
	rm -rf "$where/var/lib/gasflame"
}

if ! deb=$(deb_of "$native"); then
	not_ok "make deb"
elif ! bootstrap "$(. /etc/os-release && echo "$VERSION_CODENAME")"; then
	skip "deb" "debootstrap cannot make a root: $(tail -1 "$roots/$made.log")"
else
	try_deb "$deb"
fi
