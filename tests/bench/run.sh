#!/usr/bin/env bash
# tests/bench/run.sh [--server SERVER] [--quick] [--only PART]
#
# bizlock against its peers, on this machine: installs what is missing (Debian, Ubuntu), builds,
# starts every server below a folder of its own, measures all contenders in turn, and stops them
# again. 25 minutes; with --quick 4, for a look. PART:
#   waits     many waits, 9 minutes; with --quick one
#   shared    shared locks, 3 minutes
# SERVER:
#   mariadb   MariaDB, of this system's packages; the default
#   mysql     MySQL 9.7, of Debian unstable, and all its peers, too: in a root file system, which
#             root prepares once (tests/support/roots.sh). Many waits without the peers
#
# It writes tests/bench/results/ or results/mysql/, and its figures in tests/bench/README.md and
# README.md. A quick one writes to BUILD/bench-quick alone, and prints.
#
#   BIZLOCK_BUILD_DIR=build-bench    with --server mysql: build-bench-mysql
#   TMPDIR=/tmp                      where the servers keep their data; not a tmpfs
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../support/setup.sh"
source "$root/tests/support/roots.sh"
source "$root/tests/bench/peers.sh"

die() {
	echo "run.sh: $*" >&2
	exit 1
}

arguments=("$@")
quick=false only= server=mariadb
declare -A names=([mariadb]=MariaDB [mysql]=MySQL) programs=([mariadb]=mariadbd [mysql]=mysqld)
declare -A folders=([mariadb]=build-bench [mysql]=build-bench-mysql)
while (($#)); do
	case $1 in
	--quick) quick=true ;;
	--only)
		only=${2:-}
		[[ $only == waits || $only == shared ]] || die "--only: unknown: ${only:-none}"
		shift
		;;
	--server)
		server=${2:-none}
		[[ $server == mariadb || $server == mysql ]] || die "--server: unknown: $server"
		shift
		;;
	-h | --help)
		sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
		exit
		;;
	*) die "unknown: $1" ;;
	esac
	shift
done

# ---- what is measured ----------------------------------------------------------

contenders=(bizlock floor textbook get_lock redis_always redis etcd zookeeper)
waiting=(bizlock textbook get_lock redis_always redis etcd zookeeper)
watching=(bizlock redis_always redis etcd zookeeper)
[[ $server == mariadb ]] || watching=(bizlock) # the peers are the same everywhere

# Rounds, ms of a measurement, ms of each of the others' warming up.
if $quick; then
	rounds=1 ms=300 warm_ms=500
	crowds=("16 $ms 0" "64 $ms 0" "16 $ms 2000")
else
	rounds=3 ms=1200 warm_ms=3000
	crowds=("2 $ms 0" "16 $ms 0" "64 $ms 0" "16 $ms 2000" "64 $ms 2000")
fi

jobs=() # "ROUND SERVER PROGRAM ARGUMENTS"; round 0 is not kept

plan_contenders() {
	local round lanes crowd name
	for name in "${contenders[@]}"; do
		jobs+=("0 $name lock_bench $name own 8 $warm_ms")
	done
	for ((round = 1; round <= rounds; round++)); do
		for lanes in 1 8 64; do
			for name in "${contenders[@]}"; do
				jobs+=("$round $name lock_bench $name own $lanes $ms")
			done
		done
		jobs+=("$round limit lock_bench limit own 1 $ms")
		for crowd in "${crowds[@]}" "16 $ms 0 processes"; do
			for name in "${waiting[@]}"; do
				jobs+=("$round $name lock_bench $name one $crowd")
			done
		done
	done
}

# Once, or in rounds of their own.
plan_alone() {
	local name round
	for ((round = 1; round <= rounds; round++)); do
		jobs+=("$round bizlock reentry $((ms / 3))")
	done
	if $quick; then
		jobs+=("1 bizlock lock_bench bizlock rest 64 10000")
		jobs+=("1 bizlock renewing 1000 6000" "1 bizlock footprint 1 1000")
		jobs+=("1 bizlock growth $rounds $ms 10 100000" "1 bizlock sets $rounds $((ms / 2))")
		jobs+=("1 bizlock purging 20000 $ms" "1 bizlock beside_renewal $rounds $((4 * ms))")
		return
	fi
	for name in "${waiting[@]}"; do
		jobs+=("1 $name lock_bench $name rest 64 10000")
	done
	jobs+=("1 bizlock renewing 1000 30000" "1 bizlock renewing 10000 30000")
	jobs+=("1 bizlock footprint 1 1000 10000")
	jobs+=("1 bizlock growth $rounds $ms 10 10000 1000000" "1 bizlock sets $rounds $((ms / 3))")
	jobs+=("1 bizlock purging 200000 $ms" "1 bizlock beside_renewal $rounds $((4 * ms))")
}

# NAMES KIND LANES [N]: side by side, locks that nobody shares next to what they are compared with.
plan_shared() {
	local round work sharing name
	for ((round = 1; round <= rounds; round++)); do
		for work in "bizlock,zookeeper share 1" "bizlock,zookeeper share 8" \
			"bizlock plain-own 64" "bizlock,zookeeper share 64" \
			"bizlock plain-one 16" "bizlock,zookeeper mix 16 5" "bizlock,zookeeper mix 16 50" \
			"bizlock plain-one 64" "bizlock,redis_always,redis share 64 4" \
			"bizlock,zookeeper beside 64"; do
			read -ra work <<<"$work"
			IFS=, read -ra sharing <<<"${work[0]}"
			for name in "${sharing[@]}"; do
				jobs+=("$round $name shared $name ${work[1]} ${work[2]} $ms ${work[3]:-}")
			done
		done
	done
}

# A release every 10 to 20 ms. Of 10,000 keys, 2,000 are timed.
plan_waits() {
	local name waits
	local idle_ms=10000 all=("threads 8 10 32" "threads 64 10 4" "threads 256 10" "threads 1000 10" "loop 10000 10")
	if $quick; then
		idle_ms=2000 all=("threads 8 10 4" "threads 64 10" "loop 64 10")
	fi
	for waits in "${all[@]}" "idle 64 $idle_ms"; do
		for name in "${watching[@]}"; do
			jobs+=("1 $name waits $name $waits")
			[[ $waits != "loop 10000"* ]] || jobs[-1]+=" 1 2000"
		done
	done
	jobs+=("1 bizlock waits_fair $idle_ms")
}

# ---- where -----------------------------------------------------------------------

sql() {
	MYSQL_PWD=$BIZLOCK_TEST_PASSWORD "$(sql_client)" --no-defaults --host=127.0.0.1 \
		--port="$BIZLOCK_TEST_PORT" --user=root --batch --skip-column-names -e "$1"
}

global() {
	sql "SELECT '$1', @@GLOBAL.$1" | tr '\t' =
}

redis_setting() {
	redis-cli -p "${port[$1]}" config get "$2" | paste -sd ' '
}

file_system() {
	df --output=fstype "$work" | tail -n 1
}

# A 4 KB write that waits for the disk, in µs, on average.
sync_us() {
	local start=${EPOCHREALTIME/./}
	dd if=/dev/zero of="$work/probe" bs=4k count=500 oflag=dsync 2>/dev/null
	echo $(((${EPOCHREALTIME/./} - start) / 500))
}

connector_version() {
	pkg-config --modversion libmariadb 2>/dev/null || pkg-config --modversion mysqlclient
}

redis_version() {
	redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/'
}

zookeeper_version() {
	dpkg-query -W -f '${Version}' libzookeeper-java 2>/dev/null || printf unknown
	java -version 2>&1 | sed -n '1s/.*"\(.*\)".*/, Java \1/p'
}

# NAME<tab>VALUE. No host name, no path: it is published.
describe() {
	local name=${names[$server]}
	printf '%s\t%s\n' \
		processor "$(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
		memory "$(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo)" \
		kernel "$(uname -sr | grep -o '^[A-Za-z]* [0-9.]*')" \
		system "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)" \
		"file system" "$(file_system)" \
		"4 KB write and sync" "$(sync_us) µs" \
		"load before" "$load" \
		date "$(date -u +%Y-%m-%d)" \
		kind "$($quick && echo quick || echo whole)" \
		rounds "$rounds" \
		"ms of a measurement" "$ms" \
		bizlock "$(sed -n 's/^#define BIZLOCK_VERSION "\(.*\)"/\1/p' "$root/include/bizlock.h")" \
		compiler "$(cc --version | head -n 1), -O2" \
		connector "$(connector_version)" \
		server "$name" \
		"$name" "$(sql 'SELECT VERSION()')" \
		Redis "$(redis_version), hiredis $(pkg-config --modversion hiredis)" \
		etcd "$(etcd --version | sed -n 's/^etcd Version: //p'), libcurl $(pkg-config --modversion libcurl)" \
		ZooKeeper "$(zookeeper_version)" \
		"durability of $name" \
		"$(global innodb_flush_log_at_trx_commit), $(global log_bin), $(global sync_binlog)" \
		"memory of $name" "$(global innodb_buffer_pool_size)" \
		"connections of $name, at most" "$(global max_connections)" \
		"durability of redis_always" \
		"$(redis_setting redis_always appendonly), $(redis_setting redis_always appendfsync)" \
		"durability of redis" "$(redis_setting redis appendonly), $(redis_setting redis save)" \
		"durability of etcd" "as installed: its log is synced before a request is answered" \
		"durability of ZooKeeper" "as installed: forceSync=yes"
}

# ---- doing it ----------------------------------------------------------------------

declare -A deadlocks # of each contender, from the server's counter
done_jobs=0 failures=0

# MySQL counts them elsewhere.
deadlocks_now() {
	local status
	status=$(sql "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")
	[[ -n $status ]] || status=$(sql "SELECT NAME, \`COUNT\` FROM information_schema.INNODB_METRICS
		WHERE NAME = 'lock_deadlocks'")
	cut -f 2 <<<"$status"
}

progress() {
	local left=''
	((done_jobs == 0)) || left=", $(((SECONDS - began) * (${#jobs[@]} - done_jobs) / done_jobs)) s left"
	if [[ -t 1 ]]; then
		printf '\r\033[K[%d/%d%s] %s' "$done_jobs" "${#jobs[@]}" "$left" "$1"
	elif ((done_jobs % 25 == 0)); then
		printf '[%d/%d%s] %s\n' "$done_jobs" "${#jobs[@]}" "$left" "$1"
	fi
}

# One measurement; what it printed goes to raw.jsonl, with its round. In the background,
# for a trap comes at once while the shell waits.
run_job() {
	local round=$1 name=$2 program=$3 code=0 before
	shift 3
	progress "$program $*"
	before=$(deadlocks_now)
	BIZLOCK_BENCH_SERVER_PID=$(server_of "$name") timeout -k 5 600 \
		"$build/tests/bench/$program" "$@" >"$work/out" 2>"$work/err" &
	job=$!
	wait "$job" || code=$?
	job=
	deadlocks[$name]=$((${deadlocks[$name]:-0} + $(deadlocks_now) - before))
	if ((code != 0)); then
		printf '\n%s %s: failed (%d)\n' "$program" "$*" "$code" >&2
		tail -n 5 "$work/err" >&2
		failures=$((failures + 1))
	elif ((round > 0)); then
		sed "s/^{/{\"turn\":$round,/" "$work/out" >>"$work/raw.jsonl"
	fi
	done_jobs=$((done_jobs + 1))
}

# All the processors' time since the start, and what other guests of the host took of it.
stolen() {
	awk '$1 == "cpu" { print $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $9 }' /proc/stat
}

measure() {
	local planned words name before
	before=$(stolen)
	if [[ -z $only ]]; then
		plan_contenders
		plan_alone
	fi
	[[ $only == waits ]] || plan_shared
	[[ $only == shared ]] || plan_waits
	began=$SECONDS
	for planned in "${jobs[@]}"; do
		read -ra words <<<"$planned"
		run_job "${words[@]}"
	done
	progress "done"
	echo
	stolen | awk -v before="$before" '{ split(before, b)
		printf "taken by other guests\t%.0f %% of processor time\n", 100 * ($2 - b[2]) / ($1 - b[1]) }' \
		>>"$work/setting.tsv"
	for name in bizlock floor limit textbook get_lock; do
		[[ -z ${deadlocks[$name]:-} ]] ||
			printf 'deadlocks of %s\t%s\n' "$name" "${deadlocks[$name]}"
	done >>"$work/setting.tsv"
}

job=
finish() {
	[[ -z $job ]] || kill "$job" 2>/dev/null || true
	stop_peers
	rm -rf "$work"
}

cd "$root"
load=$(cut -d ' ' -f 1 /proc/loadavg)
things=(compiler cmake make pkg-config connector criterion server client openssl flock redis-server
	hiredis etcd zookeeper zookeeper-c libcurl curl gnuplot python3)
export BIZLOCK_BUILD_DIR=${BIZLOCK_BUILD_DIR:-${folders[$server]}}
mkdir -p "$BIZLOCK_BUILD_DIR"
BIZLOCK_BUILD_DIR=$(cd "$BIZLOCK_BUILD_DIR" && pwd)
build=$BIZLOCK_BUILD_DIR
if [[ $server == mysql && -z ${BIZLOCK_TEST_ROOT:-} ]]; then
	enter_root mysql-bench "${things[*]}" bash "$root/tests/bench/run.sh" "${arguments[@]}"
fi
export BIZLOCK_TEST_SERVER=${programs[$server]} BIZLOCK_SERVER_SH=$root/tests/support/server.sh
need "${things[@]}"
cmake -S . -B "$build" -DBUILD_TESTING=ON >"$build/cmake.log"
benches=(lock_bench reentry renewing footprint growth sets shared purging waits waits_fair
	beside_renewal)
cmake --build "$build" -j "$(nproc)" --target "${benches[@]/#/bench_}" >"$build/make.log"

work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-bench.XXXXXX")
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
[[ $(file_system) != tmpfs ]] || die "$work is a tmpfs, where a sync costs nothing; set TMPDIR"
awk -v load="$load" 'BEGIN { exit !(load > 0.5) }' &&
	echo "The machine is busy (load $load): these figures are not worth keeping." >&2
echo "Starting the servers"
start_peers
describe >"$work/setting.tsv"
measure
out=$root/tests/bench/results texts=("$root/tests/bench/README.md" "$root/README.md")
if $quick; then
	out=$build/bench-quick texts=()
fi
[[ $server == mariadb ]] || out+=/$server
mkdir -p "$out"
cp "$work/raw.jsonl" "$work/setting.tsv" "$build" # to look closer, or draw anew
python3 -B "$root/tests/bench/report.py" "$work/raw.jsonl" "$work/setting.tsv" "$out" "${texts[@]}"
((failures == 0)) || die "$failures measurements failed"
