#!/bin/bash
# Profiles of pprof and OTLP: Go's own are imported with the figures that go tool pprof has of them; a recording is exported, read
# by go tool pprof, protoc and npm's pprof-format with the same totals, and imported again with the same stacks.
. "$(dirname "$0")/../lib.sh"
formats=$(cd "$(dirname "$0")" && pwd)

# total_of FILE EVENT: as a report has it, in ns, bytes or pieces.
total_of() { "$GASFLAME" report --format json --what "$2" "$1" 2>/dev/null | sed -n 's/^"total":\([0-9]*\),.*/\1/p'; }
# equal NAME WANTED GOT: and not empty.
equal() { if [ -n "$2" ] && [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "wanted '$2', got '$3'"; fi; }
# go_top FILE TYPE UNIT: every function and its own value, "value name", sorted; what is 0 is left out.
go_top()
{
	go tool pprof -top -nodecount=1000000 -nodefraction=0 -edgefraction=0 -sample_index="$2" -unit="$3" "$1" 2>/dev/null |
		awk -v unit="$3" '$1 == "flat" { on = 1; next }
			on && $1 != "0" { value = $1; sub(unit "$", "", value); sub(/^ *([^ ]+ +)([^ ]+ +)([^ ]+ +)([^ ]+ +)([^ ]+ +)/, "")
				sub(/ \(inline\)$|\(partial-inline\)$/, ""); print value, $0 }' | sort
}
# go_total FILE TYPE UNIT: the sum of all samples.
go_total()
{
	go tool pprof -top -nodecount=1 -sample_index="$2" -unit="$3" "$1" 2>/dev/null |
		sed -n "s/.*% of \([0-9]*\)$3 total.*/\1/p"
}
# our_top FILE EVENT: the same of a report.
our_top()
{
	"$GASFLAME" report --format folded --weigh value --what "$2" "$1" 2>/dev/null |
		awk '{ value = $NF; sub(/ [0-9]+$/, ""); sub(/.*;/, ""); of[$0] += value } END { for (f in of) printf "%.0f %s\n", of[f], f }' | sort
}

# --- Go's own profiles ---

if command -v go >/dev/null; then
	. "$(dirname "$0")/../go-lib.sh"
	check "Go's program is built" go build -o pprofdemo "$formats/pprofdemo.go"
	check "it writes its profiles" ./pprofdemo
	while read -r file type unit event; do
		go_top "$file.pprof" "$type" "$unit" >theirs
		our_top "$file.pprof" "$event" >ours
		[ -s theirs ] || not_ok "go tool pprof reads $type of $file"
		check "$type of $file is the same by function as go tool pprof has it" diff theirs ours
		equal "and in all" "$(awk '{ n += $1 } END { printf "%.0f", n }' theirs)" "$(total_of "$file.pprof" "$event")"
	done <<-EOF2
		cpu cpu ns cpu
		heap inuse_space B heap
		allocs alloc_space B alloc
		block delay ns delay
		mutex delay ns delay
	EOF2
	equal "goroutines are counted" "$(go tool pprof -top goroutine.pprof 2>/dev/null | sed -n 's/.*% of \([0-9]*\) total.*/\1/p')" "$(total_of goroutine.pprof goroutines)"
	gf report --format folded heap.pprof
	"$GASFLAME" report --format folded --what heap heap.pprof >heap.folded 2>/dev/null
	check "a heap shows first what its profile shows first" cmp "$STDOUT" heap.folded
	gzip -dc cpu.pprof | head -c 500 >cut.pprof
	gf report --format folded cut.pprof
	check "a file that is cut is refused, with the place" said 'cut.pprof: byte [0-9]+: '
else
	skip "Go's own profiles" "Go is not installed (make deps)"
fi

# --- addresses without names ---

python3 "$formats/pprofaddress.py" "$WORKLOAD" main 7f1234560000 >addresses.pprof
equal "the symbolizer names its addresses" "$(basename "$WORKLOAD");main 5" "$("$GASFLAME" report --format folded addresses.pprof 2>/dev/null)"

# --- a recording ---

if [ "$(id -u)" -ne 0 ]; then
	skip "a recording in these formats" "needs root"
	finish
fi
start_workload --seconds 600 --share 40
record_used 400 -e cpu,wait,io,fault -o node.gasflame
kill "$PID"
check_status "a workload is recorded" 0
gf report --format pprof -o node.pb.gz node.gasflame
check_status "it is written as pprof" 0
gf report --format otlp -o node.otlp node.gasflame
check_status "it is written as OTLP" 0
gf report --format pprof -o again.pb.gz node.gasflame
check "the same recording gives the same bytes" cmp node.pb.gz again.pb.gz
gzip -dc node.pb.gz >node.pprof

events=()
for event in cpu wait queue read write minor-faults minor-time; do
	[ -z "$(total_of node.gasflame "$event")" ] || events+=("$event")
done
for event in "${events[@]}"; do
	"$GASFLAME" report --format folded --what "$event" node.gasflame 2>/dev/null | sort >wanted
	for file in node.pb.gz node.otlp; do
		"$GASFLAME" report --format folded --what "$event" "$file" 2>/dev/null | sort >got
		[ -s wanted ] || echo nothing >got
		check "$event has the same stacks after $file" cmp wanted got
		equal "and the same total" "$(total_of node.gasflame "$event")" "$(total_of "$file" "$event")"
	done
done

gf import -o imported.gasflame node.otlp
check_status "OTLP becomes a capture" 0
"$GASFLAME" report --format folded --what wait node.gasflame 2>/dev/null | sort >wanted
"$GASFLAME" report --format folded --what wait imported.gasflame 2>/dev/null | sort >got
check "which has its waits" cmp wanted got

# unit_of EVENT: for go tool pprof.
unit_of() { case $1 in read | write) echo B ;; *-faults) echo ;; *) echo ns ;; esac; }
if command -v go >/dev/null; then
	for event in "${events[@]}"; do
		equal "go tool pprof has the total of $event" "$(total_of node.gasflame "$event")" "$(go_total node.pb.gz "$event" "$(unit_of "$event")")"
	done
	go tool pprof -raw node.pb.gz >raw 2>go.err
	check "go tool pprof shows the CPU first" grep -q 'cpu/nanoseconds\[dflt\]' raw
	check "samples have their thread" grep -q 'thread:\[' raw
	check "waits have their cause" grep -q 'cause:\[' raw
	check "and one is told by it" grep -q . <(go tool pprof -top -sample_index=wait -tagfocus=cause=lock node.pb.gz 2>/dev/null)
	check_not "nothing is complained about" grep -iE 'error|malformed|warn' go.err
fi

if command -v protoc >/dev/null; then
	check "protoc decodes pprof" protoc --decode=fields.Pprof -I"$formats" profiles.proto <node.pprof
	protoc --decode=fields.Pprof -I"$formats" profiles.proto <node.pprof >pprof.txt
	protoc --decode=fields.Otlp -I"$formats" profiles.proto <node.otlp >otlp.txt
	check_not "no field is unknown in pprof" grep -nE '^ *[0-9]+(:| \{)' pprof.txt
	check_not "no field is unknown in OTLP" grep -nE '^ *[0-9]+(:| \{)' otlp.txt
	# The first profile is the CPU's.
	equal "OTLP's first profile has the CPU's total" "$(total_of node.gasflame cpu)" \
		"$(awk '/^    profiles \{/ { n++ } n == 1 && /^        values:/ { sum += $2 } END { printf "%.0f", sum }' otlp.txt)"
	check "entry 0 of the strings is empty" grep -qm1 '^  string_table: ""$' otlp.txt
	for table in mapping function stack attribute; do
		equal "entry 0 of the ${table}s is empty" "  }" "$(grep -m1 -A1 "^  ${table}_table {" otlp.txt | tail -1)"
	done
else
	skip "protoc decodes both" "protoc is not installed (make deps)"
fi

if command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix "$tmp/npm" pprof-format >/dev/null 2>&1; then
	cat >sum.js <<-'EOF2'
		const { Profile } = require(process.argv[2] + '/node_modules/pprof-format');
		const p = Profile.decode(require('fs').readFileSync('node.pprof'));
		const text = (i) => p.stringTable.strings[Number(i)];
		p.sampleType.forEach((type, i) => {
			let sum = 0n;
			for (const s of p.sample)
				sum += BigInt(s.value[i]);
			console.log(text(type.type), String(sum));
		});
	EOF2
	node sum.js "$tmp/npm" >sums 2>node.err
	for event in "${events[@]}"; do
		equal "npm's pprof-format has the total of $event" "$(total_of node.gasflame "$event")" "$(awk -v e="$event" '$1 == e { print $2 }' sums)"
	done
else
	skip "npm's pprof-format reads it" "npm cannot install it"
fi
finish
