#!/bin/bash
# Files of every import format, good and hostile (those of the fuzzers), files of strangers, and what is no file at all: each is
# read, or refused in one line that names it, within 10 s and 1 GB; packed, from a pipe and from the standard input, too.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
corpus=$(cd "$here/../../../fuzz/corpus" && pwd)
OF_ALL=150 OF_OTHERS=2 # files that are tried of all formats together, and of a folder of others, spread evenly

# formats: names of import formats, as folders of the corpus are called: without signs.
formats() { "$GASFLAME" formats --json | python3 -c 'import json, sys; [print(f["name"]) for f in json.load(sys.stdin)["read"]]' | tr -d '_.-'; }

# some N FILES…: so many of them.
some()
{
	local n=$1 i
	shift
	[ "$n" -lt $# ] || n=$#
	for ((i = 0; i < n; i++)); do
		printf '%s\n' "${@:$((i * $# / n + 1)):1}"
	done
}

# ended NAME: how the last one ended is all right; else it is one of the bad.
ended()
{
	local status=$1 name=$2 lines
	[ "$status" -ne 0 ] && [ "$status" -ne 3 ] || return 0 # 3: it was read, and there is nothing in it
	lines=$(grep -vc '^warning: ' "$STDERR")
	if [ "$status" -ne 1 ] || [ "$lines" -ne 1 ] || ! grep -qF -- "$name" "$STDERR"; then
		bad+="$name: status $status, $(head -c 300 "$STDERR")"$'\n'
	fi
}
# Address space is not limited where sanitizers want more of it than there is.
limit_kb=1048576
[ -z "${PLAIN_BUILD:-}" ] || limit_kb=unlimited
reads() { (ulimit -v "$limit_kb"; exec timeout 10 "$GASFLAME" report --format folded "$@") >/dev/null 2>"$STDERR"; }

bad= tried=0
# try FILE: as it is.
try()
{
	reads "$1"
	ended $? "$1"
	tried=$((tried + 1))
}
# try_ways FILE: packed, and without a name.
try_ways()
{
	local tool
	for tool in gzip zstd xz; do
		command -v "$tool" >/dev/null || continue
		"$tool" -c <"$1" >"$tmp/packed"
		try "$tmp/packed"
	done
	reads /dev/stdin <"$1"
	ended $? /dev/stdin
	reads /dev/stdin < <(cat "$1")
	ended $? /dev/stdin
	reads - < <(cat "$1")
	ended $? "the standard input"
	tried=$((tried + 3))
}
# verdict NAME
verdict()
{
	if [ -z "$bad" ]; then ok "$1 ($tried tries)"; else not_ok "$1" "$bad"; fi
	bad= tried=0
}

known=" $(formats | tr '\n' ' ')"
check "there are import formats" grep -q folded <<<"$known"
each=$((OF_ALL / $(wc -w <<<"$known"))) each=$((each > 16 ? 16 : each < 4 ? 4 : each))
for folder in "$corpus"/*/; do
	name=$(basename "$folder")
	case $known in
	*" $name "*)
		n=0
		while IFS= read -r file; do
			try "$file"
			[ $((n++)) -ne 0 ] || try_ways "$file"
			[ "$n" -ne 1 ] || first=$file
		done < <(some "$each" "$folder"*)
		# Looks like it at first.
		python3 -c 'import random, sys; sys.stdout.buffer.write(open(sys.argv[1], "rb").read()[:64] + random.Random(1).randbytes(20000))' \
			"$first" >"$tmp/beginning"
		try "$tmp/beginning"
		verdict "files of $name are read or refused"
		;;
	esac
done

# Files of others.
while IFS= read -r file; do
	try "$file"
done < <(for folder in "$corpus"/*/; do case $known in *" $(basename "$folder") "*) ;; *) some "$OF_OTHERS" "$folder"* ;; esac; done)
verdict "files of others are read or refused"

for n in 1 2 3 5 6 17 100 4096 65536 65537 300000; do
	python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(int(sys.argv[1])).randbytes(int(sys.argv[1])))' $n >"$tmp/random"
	try "$tmp/random"
done
try_ways "$tmp/random"
: >"$tmp/empty"
try "$tmp/empty"
try_ways "$tmp/empty"
verdict "random bytes and none are refused"

# 10 GB of zeros in less than 1 MB.
if command -v zstd >/dev/null; then
	head -c 64M /dev/zero | zstd -q -c >"$tmp/member"
	for ((i = 0; i < 160; i++)); do cat "$tmp/member"; done >"$tmp/bomb.zst"
	try "$tmp/bomb.zst"
	verdict "10 GB of zeros in $(stat -c %s "$tmp/bomb.zst") bytes are refused"
fi

# No files.
mkdir "$tmp/folder" && mkfifo "$tmp/fifo"
try "$tmp/folder"
try /dev/null
try /dev/zero
try "$tmp/nothing-there"
: >"$tmp/fifo" & # a writer that has nothing to say
reads "$tmp/fifo"
ended $? "$tmp/fifo"
wait $!
verdict "a folder, devices, nothing, a pipe without a byte are refused"

# A pipe to which nobody writes yet is waited for, as by any program; a signal ends that.
timeout -s INT 1 "$GASFLAME" report --format folded "$tmp/fifo" >/dev/null 2>"$STDERR"
check "a pipe that nobody writes to is waited for until a signal" test $? -ge 124
echo 'main;work 7' >"$tmp/fifo" &
check "and read when somebody does" reads "$tmp/fifo"
wait $!

if [ "$(id -u)" -eq 0 ]; then
	echo 'main;work 7' >"$tmp/secret" && chmod 000 "$tmp/secret"
	(cd / && as_user "$GASFLAME" report --format folded "$tmp/secret") >/dev/null 2>"$STDERR"
	ended $? "$tmp/secret"
	verdict "a file without the right to read it is refused"
else
	skip "a file without the right to read it" "needs root, to be somebody else"
fi
finish
