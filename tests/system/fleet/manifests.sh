#!/bin/bash
# manifests.sh - what packaging/ has for fleets: the manifests of Kubernetes and compose are whole, and each configuration of an agent in them, and the example
# with all keys, is one that an agent takes.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
packaging=$here/../../../packaging
umask 077

# here_conf: a configuration as it would be on this machine: folders and secrets are in $tmp.
here_conf() { sed -e "s|/var/lib/gasflame|$tmp/state|; s|/etc/gasflame|$tmp/etc|"; }
mkdir etc
echo secret >etc/password
echo secret >etc/token
cp /etc/ssl/certs/ca-certificates.crt etc/ca.pem 2>/dev/null || echo >etc/ca.pem

gf agent --check <(here_conf <"$packaging/agent.conf")
check_status "the example as it is has no target" 2
check "and says so" said 'it has no target'
here_conf <"$packaging/agent.conf" | sed 's/^#\([a-z[]\)/\1/' >all.conf
gf agent --check all.conf
check_status "with all of it taken, an agent takes it" 0
check "also its sinks" said 'sink objects: its address is understood'
# Every key that an agent has is in it, and none besides: they are listed where one is wrong.
for section in agent target sink; do
	name=$([ $section = agent ] || echo " x")
	printf '[%s%s]\nnonsense = 1\n' $section "$name" >wrong.conf
	gf agent --check wrong.conf
	for key in $(sed -n "s/.*nonsense: \[$section\] has //p" "$STDERR" | tr -d ',' | sed 's/ and / /'); do
		check "[$section] $key is in the example" grep -qE "^#?$key = " "$packaging/agent.conf"
	done
done

if ! python3 -c 'import yaml' 2>/dev/null; then
	skip "the manifests" "no python3-yaml here"
	finish
fi
relay python3 "$here/manifests.py" "$packaging"
for file in daemonset compose-fleet; do
	python3 "$here/manifests.py" "$packaging" conf $file | here_conf >$file.conf
	gf agent --check $file.conf
	check_status "the configuration of $file is right" 0
done
if docker compose version >/dev/null 2>&1; then
	check "docker compose takes it" docker compose -f "$packaging/compose-fleet.yaml" config -q
else
	skip "docker compose takes it" "no docker compose here"
fi
finish
