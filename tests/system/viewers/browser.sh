#!/bin/bash
# The pages in real browsers: every feature in Chromium, the main paths in Firefox (tests/browser/).
here=$(cd "$(dirname "$0")/../../browser" && pwd) || exit 1
. "$(dirname "$0")/../lib.sh"

cleanups+=("rm -rf '$tmp/browser'")
mkdir "$tmp/browser"
# Both at the same time, and one after the other on the terminal.
TMPDIR=$tmp/browser python3 "$here/run.py" "$GASFLAME" --browser firefox >"$tmp/firefox" 2>&1 &
started+=($!)
TMPDIR=$tmp/browser python3 "$here/run.py" "$GASFLAME" --browser chromium
chromium=$?
wait $!
firefox=$?
cat "$tmp/firefox"
for status in $chromium $firefox; do
	case $status in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
done
finish
