#!/bin/bash
# What says whose a recording is: for its owner only, and left out with --redact.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
need_root

mkdir hush-folder
cat >hush-folder/program.py <<'PY'
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
folder = os.path.dirname(sys.argv[0])
def work(name):
    libc.prctl(15, name.encode(), 0, 0, 0)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        with open(folder + '/hush-data', 'wb') as f:
            f.write(b'x' * 65536)
            f.flush()
            os.fsync(f.fileno())
        sum(range(20000))
        time.sleep(0.001)
other = threading.Thread(target=work, args=('hush-thread',))
other.start()
work('hush-main')
other.join()
PY
# recorded OUTPUT OPTIONS…: on a machine whose name is hush-host.
recorded()
{
	HUSH_ENVIRONMENT=hush-environment unshare --uts bash -c 'hostname hush-host; exec "$@"' - "$GASFLAME" run -e cpu,wait,io \
		"${@:2}" -o "$1" -- python3 "$PWD/hush-folder/program.py" --password=hush-argument >"$STDOUT" 2>"$STDERR"
	STATUS=$?
}
# tells FILE: what of it says whose it is, in any of the ways that a file may hold it.
tells() { { strings -n 4 "$1"; strings -n 4 -e l "$1"; } | grep -oE 'hush-[a-z]+' | sort -u | tr '\n' ' '; }
# page_text FILE: a page with its packed data in plain.
page_text()
{
	python3 - "$1" <<-'PY'
	import base64, json, re, sys, zlib
	page = open(sys.argv[1], 'rb').read()
	sys.stdout.buffer.write(page)
	data = re.search(rb'id="data"[^>]*>([A-Za-z0-9+/=]{200,})', page)
	if data:  # docs/page-format.md
	    raw = base64.b64decode(data[1])
	    at = 4 + int.from_bytes(raw[:4], 'little')
	    head = zlib.decompress(raw[4:at], -15)
	    sys.stdout.buffer.write(head)
	    for name, size, packed in json.loads(head)['columns']:
	        sys.stdout.buffer.write(zlib.decompress(raw[at:at + packed], -15))
	        at += packed
	PY
}
# left_out NAME FILE
left_out()
{
	local found
	found=$(tells "$2")
	if [ -z "$found" ]; then ok "$1"; else not_ok "$1" "$found"; fi
}

umask 022
recorded plain.gasflame
check_status "a recording is made" 0
check "a capture is for its owner only" test "$(stat -c %a plain.gasflame)" = 600
plain=$(tells plain.gasflame)
for secret in host argument folder thread data; do
	check "without --redact it tells the $secret (or this test shows nothing)" grep -q "hush-$secret" <<<"$plain"
done
# Kernel frames are there, and their addresses are distances (none has the bits that all of the kernel's addresses have).
kernel="from frame left join module on module.id = frame.module where frame.kind = 1 and address is not null"
check "addresses of the kernel are relative" test "$(sql plain.gasflame "select count(*) > 0 and max(address) < 0x800000000000 and min(address) > 0 $kernel")" = 1
check "and have names all the same" above "$(sql plain.gasflame "select count(*) from frames where kind = 'kernel' and function not like '%+0x%'")" 5
recorded redacted.gasflame --redact
check_status "a recording is made with --redact" 0
left_out "the capture tells nothing: host, arguments, folders, threads, files" redacted.gasflame
check "functions have names all the same" above "$(sql redacted.gasflame "select count(*) from top_functions where function not like '%+0x%'")" 5
check "modules have names, without folders" test "$(sql redacted.gasflame "select count(*) from module where path like '%/%' or path is null")" = 0
check "libc is one of them" above "$(sql redacted.gasflame "select count(*) from module where path like 'libc%'")" 0
check "threads are told from one another" above "$(sql redacted.gasflame "select count(distinct name) from thread where name like 'thread %'")" 1

for format in html svg text json folded; do
	gf report --format $format -o "redacted.$format" redacted.gasflame
	page_text "redacted.$format" >plain-text
	left_out "$format of it tells nothing" plain-text
	gf report --redact --format $format -o "passed-on.$format" plain.gasflame
	page_text "passed-on.$format" >plain-text
	left_out "report --redact: $format tells nothing" plain-text
done
gf report --format html -o plain.html plain.gasflame
page_text plain.html >plain-text
check "without it the page tells (or this test shows nothing)" grep -q 'hush-thread' plain-text

# A recorder that dies: what it wrote before is on disk, in the log.
"$GASFLAME" run --redact -e cpu,wait,io -o died.gasflame -- python3 "$PWD/hush-folder/program.py" hush-argument >/dev/null 2>&1 &
PID=$!
started+=("$PID")
wait_for 30 bash -c 'test "$(stat -c %s died.gasflame-wal 2>/dev/null || echo 0)" -gt 100000'
read -r child _ <"/proc/$PID/task/$PID/children"
kill -9 "$PID"
wait "$PID" 2>/dev/null
[ -z "$child" ] || wait_for 30 bash -c "! kill -0 $child"
check "the log is for its owner only" test "$(stat -c %a died.gasflame-wal)" = 600
cat died.gasflame died.gasflame-wal >died.both
left_out "a recorder that died told nothing" died.both
gf report --format text died.gasflame
left_out "nor do names that were found later" died.gasflame
check "nor does the report" test -z "$(tells "$STDOUT")"
finish
