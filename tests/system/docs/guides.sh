#!/bin/bash
# guides.sh - the lines of the tables in docs/migrating.md, each run as it stands there (guides.py).
if [ "$(id -u)" -eq 0 ] && [ ! -r /sys/kernel/tracing/events/header_page ] && [ -z "${MOUNTED:-}" ]; then
	# In a namespace of its own: the machine stays as it is.
	export MOUNTED=1
	exec unshare -m sh -c 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$0"' "$0"
fi
here=$(cd "$(dirname "$0")" && pwd) top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$here/../lib.sh"
need_root
missing=() # PATTERN=REASON: lines that cannot run here

# --- what the lines name ---
mkdir bin
ln -s "$GASFLAME" bin/gasflame
export PATH=$tmp/bin:$PATH
ln -s "$top/configs" configs
for name in op-reth-seq op-reth; do
	cp "$WORKLOAD" "$name"
done
cp "$(dirname "$WORKLOAD")"/*.so .
ln -s "$TRUTH/truth-ethrex" ethrex-replay
ln -s "$TRUTH/truth-leaker" leaker
printf '%s\n' '# only locks and syncs' syscalls:sys_enter_futex 'syscalls:sys_exit_futex # and back' syscalls:sys_enter_fsync >my-events.conf

# --- a node: in a container of that name where an engine runs, else a process ---
jemalloc=$(jemalloc_library)
conf=prof:true,lg_prof_sample:14,lg_prof_interval:23,prof_prefix:
[ -n "$jemalloc" ] || missing+=('heap dump|\bdumps\b|gasflame doctor op=no libjemalloc.so.2 (Debian: libjemalloc2)')
in_container()
{
	[ -r "$here/../containers-lib.sh" ] || { why="no containers-lib.sh"; return 1; }
	. "$here/../containers-lib.sh"
	why=$(engines_allowed) || return 1
	image_root
	image_add op-reth-seq /opt/op-reth
	cp ./*.so "$ENGINE/rootfs/opt/"
	[ -z "$jemalloc" ] || { image_add "$jemalloc" /opt/libjemalloc.so.2; }
	docker_up || { why=$NO_DOCKER; return 1; }
	docker_run op-reth-seq --memory 2g ${jemalloc:+-e LD_PRELOAD=/opt/libjemalloc.so.2 -e "MALLOC_CONF=${conf}/tmp/jeprof"} \
		-- /opt/op-reth --quiet --seconds 3000 --threads 1 --share 30 || { why="docker does not run it"; return 1; }
	target=op-reth-seq
	pid=$(docker_pid op-reth-seq)
}
if ! in_container; then
	skip "the target is a container" "$why; a process stands in"
	LD_PRELOAD=$jemalloc MALLOC_CONF=$conf$tmp/jeprof ./op-reth-seq --quiet --seconds 3000 --threads 1 --share 30 &
	pid=$! target=$!
	started+=("$pid")
	disown
fi
wait_for 10 test -d "/proc/$pid/task" || not_ok "the node runs"
if [ "$target" = "$pid" ]; then
	missing+=('limit --cgroup-of=a process outside of a container has no limit here' 'record --follow=a pid does not come back')
fi
# Dumps of a heap that grows, beside those that the lines make of the node.
mkdir dumps
if [ -n "$jemalloc" ]; then
	LD_PRELOAD=$jemalloc MALLOC_CONF=prof:true,lg_prof_sample:14,prof_prefix:$tmp/dumps/jeprof "$TRUTH/truth-heapdumps" 0 8 >grown 2>&1 &
	started+=($!)
	disown
	wait_for 15 grep -q ready grown || not_ok "there are dumps of a heap that grows"
fi

# --- its RPC and metrics ---
if anvil=$("$top/tools/anvil" 2>why); then
	rpc=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	"$anvil" --host 127.0.0.1 --port "$rpc" --block-time 1 >anvil.log 2>&1 &
	started+=($!)
	disown
	wait_for 20 grep -q Listening anvil.log || missing+=("--rpc=anvil does not start here")
else
	rpc=0
	missing+=("--rpc=$(head -1 why)")
fi
mkdir www
printf 'reth_jemalloc_%s\n' 'active 12000000' 'allocated 9000000' 'mapped 3.2e7' 'metadata 1e6' 'resident 1.4e7' 'retained 5e6' >www/index.html
python3 -u -m http.server --directory www --bind 127.0.0.1 0 >http.log 2>&1 &
started+=($!)
disown
wait_for 10 grep -q port http.log || not_ok "python's server starts"
metrics=$(sed -n 's/.*port \([0-9]*\).*/\1/p' http.log)
gf limit --memory 64M -o probe.gasflame -- true
[ "$STATUS" -eq 0 ] || missing+=("gasflame limit=$(head -1 "$STDERR")")
gf mem --metrics "http://127.0.0.1:$metrics/" "$pid"
! said 'without HTTP' >/dev/null || missing+=("http:=built without HTTP")
rm -f probe.gasflame
gf record -e cpu -d 0.2 "$target" # where captures go without -o: gasflame ls lists it

python3 - "$target" "$pid" "$rpc" "$metrics" ${missing[@]+"${missing[@]}"} >fixtures.json <<-'END'
import json, sys
target, pid, rpc, metrics = sys.argv[1:5]
print(json.dumps({"target": target, "pid": pid, "rpc": int(rpc), "metrics": int(metrics),
                  "missing": dict(m.split("=", 1) for m in sys.argv[5:])}))
END
relay python3 "$here/guides.py" "$top/docs/migrating.md" fixtures.json
if kill -0 "$pid" 2>/dev/null; then ok "the node lives on"; else not_ok "the node lives on"; fi
finish
