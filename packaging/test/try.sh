#!/bin/sh
# try.sh - run inside another distribution's root folder: does the gasflame of its PATH work there? Needs a POSIX shell and no more. The last line is
# how much was recorded; the capture stays in /tmp/try.gasflame.
set -eu
cd /tmp
# A shell at work: a program of this distribution, with its libc.
sh -c 'while :; do :; done' &
busy=$!
trap 'kill $busy' EXIT
gasflame --version
gasflame doctor >doctor.txt 2>&1 || { cat doctor.txt; exit 1; }
grep '^On this machine' doctor.txt
gasflame record -d 2 -e cpu,wait -o try.gasflame $busy >record.txt 2>&1 || [ $? -eq 3 ] || { cat record.txt; exit 1; } # 3: too few samples, on a busy machine
grep -i -m 1 "complete\|quality" record.txt || true
gasflame report -q try.gasflame >report.txt || exit 1
[ -s report.txt ]
gasflame report -q --format html -o try.html try.gasflame >/dev/null
[ -s try.html ]
gasflame top --batch try.gasflame >top.txt
[ -s top.txt ]
# An agent, with one window of it.
rm -rf try-agent
mkdir -m 700 try-agent
printf '%s\n' '[agent]' 'spool = /tmp/try-agent/spool' 'window = 10s' 'budget = 50%' 'listen = off' "[target pid:$busy]" '[sink files]' \
	'url = file:///tmp/try-agent/files' >agent.conf
gasflame agent --check agent.conf >agent.txt 2>&1 || { cat agent.txt; exit 1; }
# Its CPU time is there, as stacks.
gasflame report -q --format folded try.gasflame >try.folded
awk '{ n += $NF } END { print n, "samples"; exit n < 20 }' try.folded
