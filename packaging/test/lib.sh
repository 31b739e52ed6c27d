# lib.sh - what the steps of packaging/test.sh share; sourced by it. A line a check ("ok - ...", "not ok - ...", "ok - ... # SKIP reason") as soon as it
# is known; what took long is announced with a #.
#
# inside and foreign run a command in a root folder (packaging/test/inside, foreign).
# root: the source tree; out: where packages and what was said are; roots: root folders of distributions, made once.
passed=0 failed=0 skipped=0
started=()  # pids to end
cleanups=() # commands for the end

inside() { "$root/packaging/test/inside" "$@"; }
foreign() { "$root/packaging/test/foreign" "$@"; }
note() { echo "# $(date +%T) $*"; }
ok() { passed=$((passed + 1)); echo "ok - $1"; }
# not_ok NAME [FILE]: with the end of what was said.
not_ok()
{
	failed=$((failed + 1))
	echo "not ok - $1"
	[ $# -lt 2 ] || tail -20 "$2" | sed 's/^/#   /'
}
skip() { skipped=$((skipped + 1)); echo "ok - $1 # SKIP $2"; }
# check NAME COMMAND...: what it says is kept in $said, and shown where it fails.
said=$out/said.txt
check()
{
	local name=$1
	shift
	if "$@" >"$said" 2>&1; then ok "$name"; else not_ok "$name" "$said"; return 1; fi
}
# relay FILE: lines of this kind that somebody else said; behind "@ ", as a machine's console has other lines as well.
relay()
{
	local line
	while IFS= read -r line; do
		line=${line%$'\r'}
		case $line in
		"@ ok - "*) ok "${line#@ ok - }" ;;
		"@ not ok - "*) not_ok "${line#@ not ok - }" "$1" ;;
		esac
	done < <(grep -ao '@ \(not \)\?ok - .*' "$1")
}
# wait_for SECONDS COMMAND...
wait_for()
{
	local tenths=$(($1 * 10))
	shift
	while ! "$@" >/dev/null 2>&1; do
		tenths=$((tenths - 1))
		[ "$tenths" -gt 0 ] || return 1
		sleep 0.1
	done
}
end_started()
{
	local pid
	for pid in ${started[@]+"${started[@]}"}; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	started=()
}
on_exit()
{
	local command
	end_started
	for command in ${cleanups[@]+"${cleanups[@]}"}; do eval "$command"; done
	cleanups=()
}
trap on_exit EXIT
trap 'exit 1' INT TERM

# --- root folders ---

# A mirror as apt has it here.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\).*/\2/p' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | head -1)

# bootstrap SUITE [ARCHITECTURE]: makes $roots/NAME, and says NAME in $made. For another architecture the second half runs in an emulator.
bootstrap()
{
	local words=(--variant=minbase --components=main)
	made=$1${2:+-$2}
	[ ! -e "$roots/$made/.whole" ] || return 0
	if ! command -v debootstrap >/dev/null; then
		echo "no debootstrap here" >"$roots/$made.log"
		return 1
	fi
	note "debootstrap $made"
	rm -rf "${roots:?}/$made"
	[ -z "${2:-}" ] || words+=(--arch "$2" --foreign)
	debootstrap "${words[@]}" "$1" "$roots/$made" "$mirror" >"$roots/$made.log" 2>&1 || return 1
	if [ -n "${2:-}" ]; then
		# It may make no devices there, as in a container: the first half made them.
		foreign "$roots/$made" env container=lxc /debootstrap/debootstrap --second-stage >>"$roots/$made.log" 2>&1 || return 1
	fi
	touch "$roots/$made/.whole"
}

busybox_root()
{
	local applet
	rm -rf "$roots/busybox"
	mkdir -p "$roots/busybox/bin" "$roots/busybox/tmp" "$roots/busybox/proc" "$roots/busybox/sys" "$roots/busybox/dev" "$roots/busybox/usr/bin" "$roots/busybox/etc"
	cp "$(command -v busybox)" "$roots/busybox/bin/busybox"
	for applet in sh awk cat grep kill tail sleep rm mkdir; do ln -s busybox "$roots/busybox/bin/$applet"; done
}

# try WHAT NAME: packaging/test/try.sh in that root.
try()
{
	local text=$out/try-$1-$2.txt
	cp "$root/packaging/test/try.sh" "$roots/$2/tmp/try.sh"
	if inside "$roots/$2" sh /tmp/try.sh >"$text" 2>&1; then
		ok "$1 on $2: doctor, record, report, top, agent --check: $(tail -1 "$text"), $(sed -n 's/.*\(On this machine.*\)/\1/p' "$text" | head -1)"
	else
		not_ok "$1 on $2" "$text"
		return 1
	fi
}
