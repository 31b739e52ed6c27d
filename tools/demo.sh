#!/bin/sh
# demo.sh BUILD - profiles the bundled workload for five seconds and leaves a report. Asks nothing.
set -eu
build=$1
gasflame=$build/src/cmd/gasflame
workload=
cleanup() { [ -z "$workload" ] || kill "$workload" 2>/dev/null || true; }
trap cleanup EXIT
trap 'exit 1' INT TERM

"$build/workload/gasflame-workload" --seconds 30 --quiet &
workload=$!
sleep 0.5
mkdir -p profiling/demo
capture=profiling/demo/demo-$(date +%Y%m%d-%H%M%S).gasflame
echo "+ gasflame record -d 5 -o $capture -p $workload"
"$gasflame" record -d 5 -o "$capture" -p "$workload"
echo "+ gasflame report --format text --limit 15 $capture"
"$gasflame" report --format text --limit 15 "$capture"
echo "+ gasflame report $capture"
page=$("$gasflame" report --quiet "$capture")
echo
echo "capture: $PWD/$capture"
echo "report:  $PWD/$page (open it in a browser)"
