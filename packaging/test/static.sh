# static.sh - a step of packaging/test.sh: the static program in roots of Debian's releases, and in one of busybox alone.

# serves WHAT NAME: the page of the capture that try made, over HTTP. The URL has a token.
serves()
{
	local url=
	"$root/packaging/test/inside" "$roots/$2" gasflame serve /tmp/try.gasflame >"$out/serve-$1-$2.txt" 2>&1 &
	started+=($!)
	wait_for 30 grep -q http:// "$out/serve-$1-$2.txt" || true
	url=$(grep -o 'http://[^ ]*' "$out/serve-$1-$2.txt" | head -1)
	check "$1 on $2: serve" sh -c "curl -sf '$url' | grep -q '<html'" || true
	end_started
}

# shows WHAT NAME: top on a terminal, until it has drawn its page; then q.
shows()
{
	local screen=$out/top-$1-$2.txt
	rm -f "$screen"
	{ wait_for 30 grep -q functions "$screen" || true; echo q; } |
		timeout 60 script -qefc "$root/packaging/test/inside $roots/$2 gasflame top /tmp/try.gasflame" "$screen" >/dev/null 2>&1 || true
	check "$1 on $2: top on a terminal" grep -q functions "$screen" || true
}
if static=$(static_of "$native"); then
	ok "static: $(stat -c %s "$static") bytes, $(file -b "$static" | grep -o 'static-pie linked' || echo 'not static-pie')"
	busybox_root
	for suite in busybox ${SUITES:-bookworm trixie bullseye}; do
		if [ "$suite" != busybox ] && ! bootstrap "$suite"; then
			skip "static on $suite" "debootstrap cannot make it: $(tail -1 "$roots/$suite.log")"
			continue
		fi
		install -m 755 "$static" "$roots/$suite/usr/bin/gasflame"
		if try static "$suite"; then
			serves static "$suite"
			shows static "$suite"
		fi
		rm -f "$roots/$suite/usr/bin/gasflame"
	done
else
	not_ok "make static"
fi
