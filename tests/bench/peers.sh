# Sourced by run.sh: the servers it measures, each below $work, on ports of 127.0.0.1
# that nobody else has, with its own defaults of durability. Sets port[NAME], pid[NAME].

declare -A port pid

# Below the range from which the kernel takes ports for outgoing connections.
draw_port() {
	local try
	for ((try = 0; try < 100; try++)); do
		drawn=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
		(exec 3<>"/dev/tcp/127.0.0.1/$drawn") 2>/dev/null || return 0
	done
	die "no free port"
}

# launch NAME COMMAND...: in a session of its own, or Ctrl-C would reach it before us.
launch() {
	setsid "${@:2}" </dev/null >"$work/$1.log" 2>&1 &
	pid[$1]=$!
	disown
}

# await NAME COMMAND...: until it succeeds.
await() {
	local end=$((SECONDS + 60))
	until "${@:2}" >/dev/null 2>&1; do
		kill -0 "${pid[$1]}" 2>/dev/null || break
		((SECONDS < end)) || break
		sleep 0.1
	done
	"${@:2}" >/dev/null 2>&1 || {
		tail -n 20 "$work/$1.log" >&2
		die "$1 did not start"
	}
}

listens() {
	(exec 3<>"/dev/tcp/127.0.0.1/${port[$1]}")
}

# The log as large as MariaDB's default, which server.sh makes smaller for tests; and
# memory for a table of a million rows, 250 MB, or it is the disk that is measured. And
# as many connections as servers allow by default, which server.sh makes more, too.
start_sql_server() {
	bash "$root/tests/support/server.sh" start "$work/sql" \
		--innodb-buffer-pool-size=512M --innodb-log-file-size=96M --max-connections=151
	set -a
	eval "$(bash "$root/tests/support/server.sh" env "$work/sql")"
	set +a
	pid[sql]=$(cat "$work/sql/pid")
	port[sql]=$BIZLOCK_TEST_PORT
	unset BIZLOCK_TEST_SOCKET         # all contenders come by TCP,
	export BIZLOCK_SSL_MODE=disabled # and without TLS
}

start_redis() {
	draw_port
	port[$1]=$drawn
	mkdir "$work/$1"
	launch "$1" redis-server --bind 127.0.0.1 --port "$drawn" --dir "$work/$1" \
		--daemonize no "${@:2}"
	await "$1" redis-cli -p "$drawn" ping
}

start_etcd() {
	local peers
	draw_port
	peers=$drawn
	draw_port
	port[etcd]=$drawn
	launch etcd env -i PATH="$PATH" etcd --data-dir "$work/etcd" --name bench \
		--listen-client-urls "http://127.0.0.1:$drawn" \
		--advertise-client-urls "http://127.0.0.1:$drawn" \
		--listen-peer-urls "http://127.0.0.1:$peers" \
		--initial-advertise-peer-urls "http://127.0.0.1:$peers" \
		--initial-cluster "bench=http://127.0.0.1:$peers" --logger zap --log-level error
	await etcd curl -fsS --noproxy '*' "http://127.0.0.1:$drawn/health"
}

# Its default of 60 connections an address would not do for 64 sessions.
start_zookeeper() {
	draw_port
	port[zookeeper]=$drawn
	mkdir "$work/zookeeper"
	cat >"$work/zookeeper/zoo.cfg" <<-END
		tickTime=2000
		dataDir=$work/zookeeper/data
		clientPort=$drawn
		clientPortAddress=127.0.0.1
		maxClientCnxns=0
		admin.enableServer=false
	END
	launch zookeeper java -cp "/usr/share/java/zookeeper.jar:$work/zookeeper" \
		-Dzookeeper.log.dir="$work/zookeeper" \
		org.apache.zookeeper.server.quorum.QuorumPeerMain "$work/zookeeper/zoo.cfg"
	await zookeeper listens zookeeper
}

start_peers() {
	start_sql_server
	start_redis redis_always --save "" --appendonly yes --appendfsync always
	start_redis redis --save "" --appendonly no
	start_etcd
	start_zookeeper
	export BIZLOCK_BENCH_REDIS_ALWAYS_PORT=${port[redis_always]}
	export BIZLOCK_BENCH_REDIS_PORT=${port[redis]}
	export BIZLOCK_BENCH_ETCD_PORT=${port[etcd]}
	export BIZLOCK_BENCH_ZOOKEEPER_PORT=${port[zookeeper]}
}

stop_peers() {
	local name
	for name in redis_always redis etcd zookeeper; do
		[[ -n ${pid[$name]:-} ]] || continue
		kill -KILL "${pid[$name]}" 2>/dev/null || true
		while kill -0 "${pid[$name]}" 2>/dev/null; do
			sleep 0.05
		done
	done
	[[ ! -d $work/sql ]] || bash "$root/tests/support/server.sh" kill "$work/sql" || true
}

# The process whose processor time a contender's server uses.
server_of() {
	case $1 in
	redis_always | redis | etcd | zookeeper) echo "${pid[$1]}" ;;
	*) echo "${pid[sql]}" ;;
	esac
}
