# servers.sh - ClickHouse servers for tests, as the shards of a cluster called fleet. Sourced behind lib.sh, in the test's own folder:
#
#	make_servers 2; serve 0; serve 1; wait_for 20 answers 0 ...; ask 0 'select 1'
PATH=$PATH:/usr/sbin
command -v clickhouse-server >/dev/null || skip_all "there is no clickhouse-server: tools/deps.sh installs it"
command -v curl >/dev/null || skip_all "there is no curl"
gf store ls clickhouse://127.0.0.1:1/none
! said "without HTTP" >/dev/null || skip_all "this gasflame was built without HTTP"
ports=() pids=() database=gasflame

# make_servers N [XML]: folders and configurations for so many, with more of a configuration in which @I@ is the number of the server.
make_servers()
{
	local i shards="" wires=() more=${2-}
	for ((i = 0; i < $1; i++)); do
		ports+=("$(free_port)")
		wires+=("$(free_port)")
		shards+="<shard><replica><host>127.0.0.1</host><port>${wires[i]}</port></replica></shard>"
	done
	for ((i = 0; i < $1; i++)); do
		mkdir -p "server$i/data" "server$i/tmp" "server$i/files"
		cat >"server$i/config.xml" <<-END
		<yandex><logger><level>warning</level><console>1</console></logger><http_port>${ports[i]}</http_port><tcp_port>${wires[i]}</tcp_port>
		<listen_host>127.0.0.1</listen_host><path>$tmp/server$i/data/</path><tmp_path>$tmp/server$i/tmp/</tmp_path>
		<user_files_path>$tmp/server$i/files/</user_files_path><users_config>users.xml</users_config><default_profile>default</default_profile>
		<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>
		<remote_servers><fleet>$shards</fleet></remote_servers>${more//@I@/$i}</yandex>
		END
		# The password has what an address and SQL give a meaning.
		cat >"server$i/users.xml" <<-END
		<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
		<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
		<writer><password>p@ss:w/rd'</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></writer>
		</users><quotas><default/></quotas></yandex>
		END
	done
}

# serve I: starts that server.
serve()
{
	clickhouse-server --config-file="$tmp/server$1/config.xml" >>"server$1/log" 2>&1 &
	pids[$1]=$!
	started+=("$!")
}
answers() { curl -s "http://127.0.0.1:${ports[$1]}/" | grep -q Ok; }
# ask I SQL: one server, directly.
ask() { curl -s "http://127.0.0.1:${ports[$1]}/?database=${database// /%20}" --data-binary "$2"; }
# serve_all: starts all of them, and waits.
serve_all()
{
	local i
	for i in "${!ports[@]}"; do serve "$i"; done
	for i in "${!ports[@]}"; do wait_for 20 answers "$i" || { head -20 "server$i/log"; skip_all "clickhouse-server does not start here"; }; done
}
# percent TEXT: for an address.
percent() { python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$1"; }
