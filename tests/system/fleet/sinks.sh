#!/bin/bash
# sinks.sh - the sinks of an agent: the same window by OTLP, Pyroscope's push and pprof has the same totals; Debian's Prometheus scrapes the page and
# takes remote writes, and every expression of the rules and the dashboard; ClickHouse, files and S3; then servers that misbehave, and hostile names.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
formats=$here/../formats packaging=$here/../../../packaging
send=$TRUTH/../sendwindow
[ -x "$send" ] || skip_all "sendwindow was not built"
PATH=$PATH:/usr/sbin

# say COMMAND...: what it prints is in $STDERR, for said.
say() { "$@" >"$STDERR" 2>&1; STATUS=$?; }
# start_server FOLDER [CERTIFICATE]: its port is in $PORT. Not in a subshell, which would forget to end it.
start_server()
{
	python3 "$here/sinkserver.py" "$@" >"$1.port" 2>"$1.err" &
	started+=("$!")
	wait_for 5 grep -q port "$1.port"
	PORT=$(awk '{ print $2 }' "$1.port")
}
hostile=$'../o\'brien"; drop {x="y"} \\ \n größe %41'
now=$(date +%s)
python3 "$here/makecapture.py" "$GASFLAME" 0.gasflame $((now - 100)) 30 1 || not_ok "a capture is made"
python3 "$here/makecapture.py" "$GASFLAME" 1.gasflame $((now - 60)) 30 2 || not_ok "another is made"
mkdir plain
start_server plain
at=127.0.0.1:$PORT
say "$send" "otlp+http://$at/ok" 0.gasflame
! said "without HTTP" >/dev/null || skip_all "this gasflame was built without HTTP"

# --- the same totals ---
# header NAME: of the last request.
header() { python3 -c 'import json, sys; print(json.load(open("plain/last.json"))["headers"].get(sys.argv[1], ""))' "$1"; }
# total_of EVENT: of the capture, as a report has it.
total_of() { "$GASFLAME" report --format json --what "$1" "$2" 2>/dev/null | sed -n 's/^"total":\([0-9]*\),.*/\1/p'; }
say "$send" "otlp+http://$at/ok" 0.gasflame "target=$hostile" release=v1.2 label=region=eu "label=we ird=\"x\"" token=T0KEN tenant=team
check_status "OTLP takes a window" 0
check "with its token" test "$(header authorization)" = "Bearer T0KEN"
check "and tenant" test "$(header x-scope-orgid)" = team
check "packed" test "$(header content-encoding) $(header content-type)" = "gzip application/x-protobuf"
cp plain/last.body otlp.body
say "$send" "pyroscope+http://us%40er:p%3Ass@$at/ok" 0.gasflame "target=$hostile" release=v1.2 label=region=eu "label=we ird=\"x\"" label=__name__=evil
check_status "Pyroscope takes it" 0
check "with user and password of the address" test "$(header authorization)" = "Basic $(printf 'us@er:p:ss' | base64)"
cp plain/last.body push.body
gf report --format pprof -o file.pb.gz 0.gasflame
if command -v protoc >/dev/null; then
	protoc --decode=fields.Otlp -I"$formats" profiles.proto <otlp.body >otlp.txt
	check_not "no field of OTLP is unknown" grep -nE '^ *[0-9]+(:| \{)' otlp.txt
	python3 "$here/sinktotals.py" otlp otlp.txt >otlp.totals
	check "it names target, release and labels" test "$(grep -cE 'key: "(service.name|service.version|region|we ird|host.name)"' otlp.txt)" = 5
	protoc --decode=push.PushRequest -I"$here" push.proto <push.body >push.txt
	check_not "no field of the push is unknown" grep -nE '^ *[0-9]+(:| \{)' push.txt
	check "labels of the push are such names" test "$(grep -oE '^    name: ".*"' push.txt | cut -d'"' -f2 | tr '\n' ' ')" = "__name__ host label___name__ region release service_name we_ird "
	check "its id is one" grep -qE 'ID: "[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"' push.txt
	python3 "$here/sinktotals.py" push push.body push.pb.gz
	check "the pushed profile is the one of --format pprof" cmp push.pb.gz file.pb.gz
	for event in cpu wait queue; do
		wanted=$(total_of "$event" 0.gasflame)
		check "$event: OTLP has the total of the file" test "$(sed -n "s/^$event //p" otlp.totals) ${wanted:-none}" = "$wanted $wanted"
		if command -v go >/dev/null; then
			got=$(go tool pprof -top -nodecount=1 -sample_index="$event" -unit=ns push.pb.gz 2>/dev/null | sed -n 's/.*% of \([0-9]*\)ns total.*/\1/p')
			check "$event: go tool pprof has it of the push" test "$got ${wanted:-none}" = "$wanted $wanted"
		fi
	done
else
	skip "what was sent is decoded" "protoc is not installed (make deps)"
fi

# --- files ---
mkdir -m 700 kept
for round in 1 2; do
	say "$send" "file://$tmp/kept" 0.gasflame "target=$hostile" capture=1.gasflame times=2
	check_status "files take windows, round $round" 0
done
find kept -type f -printf '%P\n' | sort >names
check "each has one file, below the folder" test "$(wc -l <names)" = 2
check_not "nothing of a name leaves it" grep -vE '^~2E\.~2Fo~27brien[A-Za-z0-9_.~-]*/[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{6}-[01]\.gasflame$' names
check "it is the capture" cmp 0.gasflame "kept/$(head -1 names)"
say "$send" "file://$tmp/kept" 1.gasflame "target=$hostile" "sequence=0"
check_status "another window with its own name" 0
cp "kept/$(head -1 names)" saved
echo more >>"kept/$(head -1 names)"
say "$send" "file://$tmp/kept" 0.gasflame "target=$hostile"
check "a name that another file has is not written over" said "EEXIST"
cp saved "kept/$(head -1 names)"
size=$(stat -c %s 0.gasflame)
touch kept/mine "kept/$(dirname "$(head -1 names)")/notes.txt"
say "$send" "file://$tmp/kept" 1.gasflame target=new keep_bytes=$((size * 2 + size / 2)) sequence=9
check_status "a limit makes room" 0
check "the oldest is gone" test ! -e "kept/$(head -1 names)"
check "what is not ours stays" test -e kept/mine -a -e "kept/$(dirname "$(head -1 names)")/notes.txt"
check "within the limit" test "$(find kept -name '*.gasflame' -printf '%s\n' | awk '{ n += $1 } END { print n }')" -le $((size * 5 / 2))
say "$send" "file://$tmp/kept" 1.gasflame target=new keep_s=50 sequence=9
check "an age, too, within which nothing goes" test "$(find kept/new -name '*.gasflame' | wc -l)" = 1
say "$send" "file://$tmp/kept" 1.gasflame target=later keep_s=1 sequence=9
check "what is older goes" test ! -e kept/new
mkdir -m 777 open
chmod 777 open
say "$send" "file://$tmp/open" 0.gasflame
check "a folder that others may write to is refused" said "EACCES.*others may write"
mkdir -m 700 linked elsewhere
ln -s "$tmp/elsewhere" "linked/made~20up"
say "$send" "file://$tmp/linked" 0.gasflame
check "a link in place of a folder, too" test "$STATUS" = 1 -a -z "$(ls elsewhere)"

# --- S3: the signature is checked ---
say "$send" "s3+http://$at/bucket/nodes" 0.gasflame "target=$hostile" user=AKTEST password=se/cr+et= region=eu-test-1 times=2
check_status "S3 takes a window, twice" 0
check "as one object" test "$(ls plain/s3 | wc -l)" = 1
check "which is the capture" cmp 0.gasflame plain/s3/*
say "$send" "s3+http://$at/bucket/nodes" 0.gasflame user=AKTEST password=wrong region=eu-test-1
check "another secret is refused" said "EACCES.*the signature is another"
check_not "and is in no message" said "wrong"
for bad in "s3+http://$at/" "s3+http://$at/bucket/../x" "s3+http://$at/buck%20et" "s3+http:///bucket"; do
	say "$send" "$bad" 0.gasflame user=AKTEST password=x
	check "$bad is no address" said "open: EINVAL"
done

# --- answers that are none ---
for kind in "partial EBADMSG.*refuses.2.of" "html EREMOTEIO.*log in" "text EREMOTEIO" "garbage EREMOTEIO" "short EIO" "cut EIO" "400 EBADMSG" "401 EACCES" \
	"403 EACCES" "404 ENXIO" "413 EBADMSG" "422 EBADMSG" "429 EAGAIN" "500 EREMOTEIO" "502 EAGAIN" "503 EAGAIN" "redirect ENXIO.*elsewhere" "hang ETIMEDOUT"; do
	for sink in otlp pyroscope prometheus; do
		[ "$sink" = otlp ] || [[ $kind =~ ^(html|text|short|429|redirect) ]] || continue
		say "$send" "$sink+http://$at/${kind%% *}" 0.gasflame timeout_ms=$([[ $kind = hang* ]] && echo 200 || echo 20000)
		check "$sink: ${kind%% *} is ${kind#* }" said "^${kind#* }"
	done
done
check_not "what a server says reaches no terminal raw" grep -q $'\033' "$STDERR"
for secret in token=S3CRET "user=me password=S3CRET"; do
	# shellcheck disable=SC2086
	say "$send" "otlp+http://$at/echo" 0.gasflame $secret
	check_not "a secret that a server sends back is not repeated ($secret)" grep -qE "S3CRET|$(printf me:S3CRET | base64)" "$STDERR"
done
say "$send" "otlp+http://me:S3CRET@127.0.0.1:1/" 0.gasflame
check "nobody there is EIO" said "^EIO"
check_not "and the address has no password" said S3CRET
for bad in "gopher://x" "otlp+http://" "otlp+http://a b/" "file://relative" "clickhouse://h?target=x"; do
	say "$send" "$bad" 0.gasflame
	check "$bad is no address" said "open: EINVAL"
done
say "$send" "otlp+http://$at/ok" 0.gasflame region=x
check "an option that would be ignored is refused" said "EINVAL.*takes no region"
say "$send" "otlp+http://$at/ok" 0.gasflame $'token=a\nX-Evil: b'
check "a token with a line break, too" said "open: EINVAL"

# --- certificates ---
if command -v openssl >/dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out ca.pem 2>/dev/null
	cat key.pem ca.pem >both.pem
	mkdir tls
	start_server tls both.pem
	tls=$PORT
	say "$send" "otlp+https://localhost:$tls/ok" 0.gasflame
	check "a certificate that nobody knows is refused" said "^EACCES"
	say "$send" "otlp+https://localhost:$tls/ok" 0.gasflame "ca=$tmp/ca.pem"
	check_status "with its CA it is fine" 0
	say "$send" "otlp+https://127.0.0.1:$tls/ok" 0.gasflame "ca=$tmp/ca.pem"
	check "but not for another name" said "^EACCES"
	say "$send" "otlp+https://localhost:$tls/ok" 0.gasflame "ca=$tmp/nothing.pem"
	check "a CA file that is not there is said" said "^EACCES"
	say "$send" "clickhouses://localhost:$tls/x" 0.gasflame
	check "a store's certificate is checked" said "^EACCES"
else
	skip "certificates" "there is no openssl"
fi

# --- Prometheus ---
"$send" - 0.gasflame capture=1.gasflame "target=$hostile" "label=Regi on=a\"b" label=state=x >plain/metrics
if command -v promtool >/dev/null; then
	check "promtool has nothing to say about the page" promtool check metrics <plain/metrics
	check "nor about the rules" promtool check rules "$packaging/prometheus/gasflame.rules.yml"
	check "which fire when they should" promtool test rules "$here/rules.test.yml"
	prom=$(free_port)
	cat >prometheus.yml <<-END
	global: { scrape_interval: 1s, evaluation_interval: 1s }
	rule_files: ["$packaging/prometheus/gasflame.rules.yml"]
	scrape_configs: [{ job_name: gasflame, static_configs: [{ targets: ["$at"] }] }]
	END
	prometheus --config.file=prometheus.yml --storage.tsdb.path="$tmp/tsdb" --web.listen-address="127.0.0.1:$prom" --web.enable-remote-write-receiver >prometheus.log 2>&1 &
	started+=("$!")
	# ask EXPRESSION: the values, one a line.
	ask() { curl -s "http://127.0.0.1:$prom/api/v1/query" --data-urlencode "query=$1" | python3 -c 'import json, sys
a = json.load(sys.stdin)
if a["status"] != "success": sys.exit(a["error"])
print("\n".join(r["value"][1] for r in a["data"]["result"]))'; }
	ready() { curl -sf "http://127.0.0.1:$prom/-/ready" | grep -qi ready; }
	wait_for 10 ready
	seen() { [ "$(ask "$1")" = "$2" ]; }
	cpu=$(awk -v a="$(total_of cpu 0.gasflame)" -v b="$(total_of cpu 1.gasflame)" 'BEGIN { print (a + b) / 1e9 }')
	check "Prometheus scrapes the page: CPU time of both windows" wait_for 10 seen 'gasflame_time_seconds_total{state="cpu",instance="'"$at"'"}' "$cpu"
	check "a label of the user's does not take the place of ours" seen 'count(gasflame_time_seconds_total{state="x"})' ""
	check "blocks are a histogram" seen 'gasflame_block_seconds_count{instance="'"$at"'"} == bool gasflame_blocks_total' 1
	say "$send" "prometheus+http://127.0.0.1:$prom" 0.gasflame capture=1.gasflame "target=$hostile" label=region=eu times=2
	check_status "it takes remote writes, each twice" 0
	check "which count once" seen 'gasflame_time_seconds_total{state="cpu",region="eu",job="gasflame",instance="node'"'"'1"}' "$cpu"
	check "the agent's figures are there" seen 'gasflame_agent_target_up{instance="node'"'"'1"}' 1
	say "$send" "prometheus+http://127.0.0.1:$prom" 0.gasflame "target=$hostile" label=region=eu
	check "a window that is older than what it has is set aside" said "^EBADMSG.*400"
	python3 "$here/expressions.py" "$packaging/grafana/prometheus.json" "$packaging/prometheus/gasflame.rules.yml" >expressions
	check "the dashboard and the rules have expressions" test "$(wc -l <expressions)" -gt 15
	check "Prometheus takes each of them" python3 "$here/expressions.py" --ask "http://127.0.0.1:$prom" expressions
	echo 'sum by (' >broken
	check_not "and would not take others" python3 "$here/expressions.py" --ask "http://127.0.0.1:$prom" broken
	# Metrics that an expression names are metrics that there are.
	{ sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' plain/metrics; sed -n 's/^.*{ "\(gasflame_[a-z_]*\)", \(COUNTER\|GAUGE\|HISTOGRAM\).*/\1/p' "$here/../../../src/fleet/sink/metrics.c"; } | sort -u >known
	grep -ohP '(?<![:\w])gasflame_[a-z_]+' expressions | sed -E 's/_(bucket|sum|count)$//' | sort -u | comm -23 - known >unknown
	check_not "and names only what there is" grep . unknown
else
	skip "Prometheus" "it is not installed (make deps)"
fi

# --- ClickHouse ---
if command -v clickhouse-server >/dev/null; then
	mkdir -p house/data house/tmp
	http=$(free_port)
	cat >house/config.xml <<-END
	<yandex><logger><level>warning</level><console>1</console></logger><http_port>$http</http_port><tcp_port>$(free_port)</tcp_port>
	<listen_host>127.0.0.1</listen_host><path>$tmp/house/data/</path><tmp_path>$tmp/house/tmp/</tmp_path><users_config>users.xml</users_config>
	<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>67108864</mark_cache_size></yandex>
	END
	cat >house/users.xml <<-END
	<yandex><profiles><default/></profiles><users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
	<agent><password>pw</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></agent></users><quotas><default/></quotas></yandex>
	END
	clickhouse-server --config-file="$tmp/house/config.xml" >house/log 2>&1 &
	started+=("$!")
	wait_for 20 curl -sf "http://127.0.0.1:$http/"
	store=clickhouse://127.0.0.1:$http/gasflame
	rows() { curl -s "http://127.0.0.1:$http/?database=gasflame" --data-binary "$1"; }
	say "$send" "$store" 0.gasflame user=agent password=pw
	check "a store without tables is to be set right" said "^ENXIO.*store init"
	gf store init "$store"
	say "$send" "$store" 0.gasflame capture=1.gasflame "target=$hostile" release=v1 label=region=eu user=agent password=pw sequence=41 times=2
	check_status "with them it takes windows, each twice" 0
	check "which are two, with the agent's numbers" test "$(rows 'select groupArray(sequence) from (select sequence from windows order by sequence)')" = "[41,42]"
	check "as long as they were" test "$(rows 'select uniq(duration_ns), any(duration_ns) from windows' | tr '\t' ' ')" = "1 30000000000"
	check "with their totals" test "$(rows "select sum(value) from samples where event = 'cpu'")" = $(($(total_of cpu 0.gasflame) + $(total_of cpu 1.gasflame)))
	say "$send" "$store" 0.gasflame user=agent password=wrong
	check "a wrong password is to be set right, too" said "^EACCES"
	say "$send" "$store" 0.gasflame "target=$(printf 'x%.0s' {1..300})"
	check "a name that is too long is set aside" said "^EBADMSG"
else
	skip "ClickHouse" "there is no clickhouse-server: tools/deps.sh installs it"
fi
finish
