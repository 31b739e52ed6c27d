# lib.sh - what the system tests share. Sourced by each of them.
#
# A test prints one line a check ("ok - …", "not ok - …", "ok - … # SKIP reason"), which
# tools/run-tests counts, and ends by finish(): 0, 1, or 77 when all of it was skipped.
#
# From the environment: GASFLAME (the program), TRUTH (folder of the truth programs), WORKLOAD; PLAIN_BUILD (the build whose
# truth programs and workload are used instead).

set -u
: "${GASFLAME:?}" "${TRUTH:?}" "${WORKLOAD:?}"
# The programs that are recorded are gcc's, whatever gasflame itself was built with: what they promise is of its code.
if [ -n "${PLAIN_BUILD:-}" ]; then
	TRUTH=$PLAIN_BUILD/tests/system/truth WORKLOAD=$PLAIN_BUILD/workload/gasflame-workload
	unset LD_LIBRARY_PATH # meson's, of the other build
fi
export LC_ALL=C
unset MALLOC_PERTURB_ # meson's: malloc would touch what the programs leave untouched
passed=0 failed=0 skipped=0
started=() # pids to end
cleanups=()

tmp=$(mktemp -d "${TMPDIR:-/tmp}/gasflame-system-XXXXXX") || exit 1
chmod 755 "$tmp"
export XDG_CACHE_HOME=$tmp/cache
cd "$tmp" || exit 1

on_exit()
{
	local pid command
	for pid in ${started[@]+"${started[@]}"}; do
		kill -9 "$pid" 2>/dev/null
	done
	for command in ${cleanups[@]+"${cleanups[@]}"}; do
		eval "$command"
	done
	cd / && rm -rf "$tmp"
}
trap on_exit EXIT
trap 'exit 1' INT TERM

ok() { passed=$((passed + 1)); echo "ok - $1"; }
not_ok()
{
	failed=$((failed + 1))
	echo "not ok - $1"
	[ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/#   /' | head -40
}
skip() { skipped=$((skipped + 1)); echo "ok - $1 # SKIP $2"; }
# skip_all REASON: nothing here can run.
skip_all() { skip "$(basename "$0" .sh)" "$1"; exit 77; }
finish()
{
	[ "$failed" -eq 0 ] || exit 1
	[ "$passed" -gt 0 ] || exit 77
	exit 0
}
need_root() { [ "$(id -u)" -eq 0 ] || skip_all "needs root"; }

# check NAME COMMAND…: the command must succeed; what it printed is shown when it does not.
check()
{
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$output"; fi
}
# check_not NAME COMMAND…: it must fail.
check_not()
{
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then not_ok "$name" "$output"; else ok "$name"; fi
}

# relay COMMAND…: a program that prints lines of this kind itself; they count as ours. It must end well.
relay()
{
	local line
	while IFS= read -r line; do
		case $line in
		"ok - "*" # SKIP "*) skip "$(sed 's/^ok - //; s/ # SKIP .*//' <<<"$line")" "${line##* # SKIP }" ;;
		"ok - "*) ok "${line#ok - }" ;;
		"not ok - "*) not_ok "${line#not ok - }" ;;
		*) echo "$line" ;;
		esac
	done < <("$@" 2>&1 || echo "not ok - $(basename "$2") ended well")
}

# start PROGRAM ARGS…: runs a truth program, waits until it works; its pid is in $PID, its words in $OUT.
start()
{
	OUT=$tmp/out.$RANDOM$RANDOM
	"$TRUTH/truth-$1" "${@:2}" >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	wait_for 5 grep -q ready "$OUT"
}
# record_whole PROGRAM ARGS… -- OPTIONS…: records a truth program from before its work to its end, however long a busy
# machine takes to begin or to do it, and whatever that costs. As gf; the program's pid is in $PID, its words in $OUT.
record_whole()
{
	local program=() recorder
	while [ "$1" != -- ]; do
		program+=("$1")
		shift
	done
	OUT=$tmp/out.$RANDOM$RANDOM
	rm -f "$tmp/gate"
	mkfifo "$tmp/gate"
	GATED=1 "$TRUTH/truth-${program[0]}" "${program[@]:1}" <"$tmp/gate" >"$OUT" 2>&1 &
	PID=$!
	started+=("$PID")
	exec 9>"$tmp/gate"
	wait_for 5 grep -q ready "$OUT"
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -d 120 --max-overhead 0 "${@:2}" -p "$PID" >"$STDOUT" 2>"$STDERR" 9>&- &
	recorder=$!
	started+=("$recorder")
	wait_for 10 grep -q '^Recording' "$STDERR"
	echo >&9
	exec 9>&-
	wait "$recorder"
	STATUS=$?
}
# had_cpu [MS]: $PID has had so much CPU time; without one, says how much.
had_cpu()
{
	local ms
	ms=$(awk '{ sub(/.*\) /, ""); print ($12 + $13) * 10 }' "/proc/$PID/stat") || return 1
	if [ $# -eq 0 ]; then echo "$ms"; else [ "$ms" -ge "$1" ]; fi
}
# record_used MS OPTIONS…: records $PID until it has had so much CPU time, however long that takes here. As gf.
record_used()
{
	local recorder
	: >"$STDERR" # what was said before is not waited for
	"$GASFLAME" record -d 600 --max-overhead 0 "${@:2}" -p "$PID" >"$STDOUT" 2>"$STDERR" &
	recorder=$!
	started+=("$recorder")
	wait_for 15 grep -q '^Recording' "$STDERR"
	wait_for 30 had_cpu $(($(had_cpu) + $1))
	kill -INT "$recorder"
	wait "$recorder"
	STATUS=$?
}
# jemalloc_library: its path, for LD_PRELOAD; that of this machine, where packages of others are installed as well.
jemalloc_library() { ldconfig -p | awk '/libjemalloc\.so\.2/ { print $NF; exit }'; }
# has_thread NAME: $PID has one of that name.
has_thread() { grep -qxs "$1" "/proc/$PID/task/"*/comm; }
# start_workload ARGS…: it burns what is left over by the tests beside it. All its threads are there.
start_workload()
{
	local last=ask
	nice -n 5 "$WORKLOAD" --quiet "$@" &
	PID=$!
	started+=("$PID")
	while [ $# -gt 0 ]; do
		[ "$1" != --kinds ] || last=${2##*,}
		shift
	done
	wait_for 5 has_thread "$last-0"
}
# free_port: one that nobody listens on, and that the kernel gives to no connection by itself.
free_port()
{
	local port

	while port=$((15000 + RANDOM % 15000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
	echo "$port"
}
# wait_for SECONDS COMMAND…: what takes so long on a quiet machine may take four times as long on a busy one. What never comes is
# said, in the log: a test that goes on all the same only gets slow by it.
wait_for()
{
	local tenths=$(($1 * 40)) seconds=$1
	shift
	while ! "$@" >/dev/null 2>&1; do
		tenths=$((tenths - 1))
		[ "$tenths" -gt 0 ] || { echo "# waited in vain for $((seconds * 4)) s: $*" >&2; return 1; }
		sleep 0.1
	done
}

# busy_percent: of the CPUs' time, in the next fifth of a second; what a hypervisor takes for others is part of it.
busy_percent()
{
	{ grep '^cpu ' /proc/stat; sleep 0.2; grep '^cpu ' /proc/stat; } | awk '
		{ all = 0; for (i = 2; i <= 9; i++) all += $i; idle = $5 + $6
		  if (NR == 2) printf "%d\n", (all > was ? 100 - (idle - was_idle) * 100 / (all - was) : 0)
		  was = all; was_idle = idle }'
}
# quiet_moment: before a measurement, until nobody else uses the CPUs. A machine that never is quiet is waited for 20 s, and the
# measurement is made all the same: it must hold there too, and how busy it was is said.
quiet_moment()
{
	local tries=100 busy
	while busy=$(busy_percent); [ "$busy" -gt 15 ]; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || { echo "# measured on a machine that is $busy % busy"; return; }
	done
}

# emulated: an emulated processor (tools/test-kernels --system) is some 20 times slower, and translates code before it runs it the first time: it loses
# records at rates that are usual elsewhere, and short pieces of work have other shares.
emulated() { [ -n "${EMULATED:-}" ]; }

# gf ARGS…: runs gasflame; STATUS, and stdout and stderr in the files $STDOUT and $STDERR.
STDOUT=$tmp/stdout STDERR=$tmp/stderr STATUS=0
gf()
{
	"$GASFLAME" "$@" >"$STDOUT" 2>"$STDERR"
	STATUS=$?
}
# check_status NAME WANTED: of the last gf.
check_status()
{
	if [ "$STATUS" -eq "$2" ]; then
		ok "$1"
	else
		not_ok "$1" "status $STATUS, wanted $2: $(cat "$STDERR")"
	fi
}
# said PATTERN: the last gf said so on stderr.
said() { grep -qiE "$1" "$STDERR" || { cat "$STDERR"; return 1; }; }

# folded FILE: its stacks, names only, on stdout.
folded() { "$GASFLAME" report --format folded "$1" 2>/dev/null; }
# share FILE NAME: percent of the samples that have this function anywhere on the stack.
share()
{
	folded "$1" | awk -v name="$2" '
		{ n = $NF; stack = $0; sub(/ [0-9.]+$/, "", stack); total += n
		  k = split(stack, frame, ";"); hit = 0
		  for (i = 1; i <= k; i++) { f = frame[i]; sub(/_\[[a-z]\]$/, "", f); if (f == name) hit = 1 }
		  if (hit) sum += n }
		END { printf "%.2f\n", total ? sum * 100 / total : 0 }'
}
# near A B TOLERANCE
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(d <= t && -d <= t) }' || { echo "$1 against $2"; return 1; }; }
# above A B: A > B
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }' || { echo "$1 is not above $2"; return 1; }; }
# sql FILE STATEMENT: bare values, commas between them.
sql() { "$GASFLAME" query --csv "$1" "$2" | tail -n +2; }
samples() { sql "$1" 'select count(*) from sample'; }
# counter FILE NAME: 0 when there is none. NAME may end in %: the sum.
counter() { sql "$1" "select coalesce(sum(value), 0) from counter where name like '$2'"; }
# complete FILE [CONDITION]: percent of samples whose stack does not begin with a truncation marker, read from the tables.
complete()
{
	python3 - "$1" "${2:-1}" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	marker = {i for i, kind in db.execute("select id, kind from frame") if kind == 2}
	nodes = {i: (parent, frame) for i, parent, frame in db.execute("select id, parent, frame from stack")}
	cut = all = 0
	for stack, n in db.execute(f"select stack, count(*) from sample where {sys.argv[2]} group by stack"):
	    all += n
	    root = None
	    while stack and stack in nodes:
	        stack, root = nodes[stack]
	    cut += n if root is None or root in marker else 0
	print(f"{(all - cut) * 100 / all:.3f}" if all else 0)
	END
}
# as_user COMMAND…: as nobody, with no capability.
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; }
# backends: those that can record here.
backends() { if [ "$(id -u)" -eq 0 ]; then echo "bpf perf"; else echo perf; fi; }
