#!/usr/bin/env bash
# A private MariaDB or MySQL in a folder: for tests, for the demo, and for tests that
# break servers. Nothing of the machine's own servers is read or touched.
#
#   server.sh start DIR [NAME=value ...] [options of the server]
#                                            new data and a new address unless DIR has some;
#                                            returns when it answers;
#                                            NAME=value: in the environment of the server alone
#   server.sh restart DIR                    stops it if it runs; same arguments, same address
#   server.sh freeze DIR | thaw DIR          SIGSTOP, returns when it stands | SIGCONT
#   server.sh stop DIR | kill DIR            SIGTERM | SIGKILL; returns when it is gone
#   server.sh wait DIR                       returns when it answers
#   server.sh env DIR                        where it is: lines BIZLOCK_TEST_NAME=value
#
# BIZLOCK_TEST_NEW_DATA=FOLDER: new data is made there once, and copied.
# BIZLOCK_TEST_SERVER=mariadbd or mysqld; by default the first that is installed.
#
# Durability is the server's default: a lock that an fsync has not reached is
# not what these tests are about.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/dialects.sh"

PATIENCE_S=120
PASSWORD=bizlock-test # of root; on 127.0.0.1 and in a folder of our own
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/libexec"

die() {
	echo "server.sh: $*" >&2
	exit 1
}

show_log() {
	echo "---- the end of $dir/error.log" >&2
	tail -n 30 "$dir/error.log" >&2 || true
}

# The process that $dir/pid names, unless its number has passed to a stranger.
server_pid() {
	local pid
	pid=$(cat "$dir/pid" 2>/dev/null) || return 1
	{ tr '\0' '\n' <"/proc/$pid/cmdline" | grep -xF -- "--datadir=$dir/data"; } >/dev/null 2>&1 &&
		echo "$pid"
}

# A zombie counts as gone: its parent, or a container's idle init, may be slow to wait for it.
is_gone() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ ${stat##*) } == [ZX]* ]]
}

await_end() {
	local end=$((SECONDS + $2))
	until is_gone "$1"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# Dozens of servers start at a time: a client that is started for each look takes more of the
# processors than they do. So it is asked once there is a socket.
wait_for() {
	local pid socket ask end=$((SECONDS + PATIENCE_S))
	read -r pid <"$dir/pid"
	read -r socket <"$dir/socket"
	ask=("$(sql_client)" --no-defaults --socket="$socket" --user=root "$(without_tls)"
		--connect-timeout=5 -e 'DO 1')
	until [[ -S $socket ]] && MYSQL_PWD=$PASSWORD "${ask[@]}" >>"$dir/ping.log" 2>&1; do
		! is_gone "$pid" || return 1
		((SECONDS < end)) || return 1
		sleep 0.1
	done
}

# ---- what a first start makes ------------------------------------------------

make_certificates() {
	local subject="/O=bizlock tests"
	(
		cd "$dir"
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
			-subj "$subject/CN=test CA" -keyout ca-key.pem -out ca.pem
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
			-subj "$subject/CN=localhost" -keyout server-key.pem -out server.csr
		openssl x509 -req -in server.csr -CA ca.pem -CAkey ca-key.pem -set_serial 1 -days 3650 \
			-extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") -out server-cert.pem
	) >"$dir/openssl.log" 2>&1 || die "openssl failed, see $dir/openssl.log"
}

install_data() {
	local program
	program=$(server_program)
	cat >"$dir/users.sql" <<-SQL
		FLUSH PRIVILEGES;
		ALTER USER root@localhost IDENTIFIED BY '$PASSWORD';
		DROP USER IF EXISTS root@'127.0.0.1';
		CREATE USER root@'127.0.0.1' IDENTIFIED BY '$PASSWORD';
		GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
	SQL
	"install_$program" "$1" "$dir/tmp" "$dir/users.sql" "${as_user[@]}" >"$dir/install.log" 2>&1 ||
		die "$program makes no new data, see $dir/install.log"
}

# Installing takes most of a start's time, and dozens of tests start a server.
copy_new_data() {
	mkdir -p "$1"
	(
		flock 8
		[[ -e $1/complete ]] || {
			rm -rf "$1/data"
			install_data "$1/data"
			touch "$1/complete"
		}
	) 8>"$1/lock"
	cp -a "$1/data" "$dir/data"
}

make_data() {
	local mark="$dir/data.complete"
	[[ -e $mark ]] && return
	rm -rf "$dir/data"
	if [[ -n ${BIZLOCK_TEST_NEW_DATA:-} ]]; then
		copy_new_data "$BIZLOCK_TEST_NEW_DATA"
	else
		install_data "$dir/data"
	fi
	touch "$mark"
}

# Paths of sockets end at 107 bytes; then the socket gets a short folder.
choose_socket() {
	[[ -e $dir/socket ]] && return
	local folder=$dir
	if ((${#dir} > 90)); then
		folder=$(mktemp -d /tmp/bizlock-socket.XXXXXX)
	fi
	echo "$folder/s" >"$dir/socket"
}

# That folder lies outside DIR, so it goes when the server goes; launch() makes
# it anew.
remove_short_folder() {
	local folder
	folder=$(dirname "$(cat "$dir/socket" 2>/dev/null || echo "$dir/s")")
	[[ $folder == "$dir" ]] || rm -rf "$folder"
}

# Below the range from which the kernel takes ports for outgoing connections. Another server's is
# not free while that one restarts, either.
draw_port() {
	local port tries
	for ((tries = 0; tries < 100; tries++)); do
		port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
		! grep -qsx "$port" "${dir%/*}"/*/port || continue
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port" >"$dir/port"
}

# ---- running it --------------------------------------------------------------

# The caller's open files are closed in the server: a test's pipe that the server held
# open would never end.
launch() {
	local fd word program environment=() options=()
	program=$(server_program)
	for word; do
		[[ $word == -* ]] && options+=("$("option_$program" "$word")") || environment+=("$word")
	done
	mkdir -p -m 700 "$(dirname "$(cat "$dir/socket")")"
	# MySQL takes the zombie of one that was killed for the owner of its lock.
	rm -f "$(cat "$dir/socket")" "$(cat "$dir/socket").lock"
	(
		for fd in /proc/"$BASHPID"/fd/*; do
			fd=${fd##*/}
			((fd > 2)) && eval "exec $fd>&-"
		done
		exec setsid env "${environment[@]}" "$("file_$program" "$dir/tmp")" --no-defaults "${as_user[@]}" \
			--datadir="$dir/data" --socket="$(cat "$dir/socket")" \
			--bind-address=127.0.0.1 --port="$(cat "$dir/port")" --skip-name-resolve \
			--pid-file="$dir/server.pid" --tmpdir="$dir/tmp" \
			--ssl-ca="$dir/ca.pem" --ssl-cert="$dir/server-cert.pem" \
			--ssl-key="$dir/server-key.pem" \
			--innodb-buffer-pool-size=64M --key-buffer-size=1M --max-connections=500 \
			$("options_$program") "${options[@]}" </dev/null >>"$dir/error.log" 2>&1
	) &
	echo $! >"$dir/pid"
	disown
}

run() {
	local words=()
	mapfile -d '' words <"$dir/options"
	launch "${words[@]}"
	wait_for
}

port_was_taken() {
	grep -q 'Bind on TCP/IP port' "$dir/error.log"
}

start() {
	local tries
	# Servers that share a tmpdir delete each other's temporary tables.
	mkdir -p "$dir/tmp"
	exec 9>"$dir/lock"
	flock 9
	if server_pid >/dev/null; then
		wait_for || die "it runs but does not answer"
		return
	fi
	printf '%s\0' "$@" >"$dir/options"
	(($#)) || : >"$dir/options"
	[[ -e $dir/server-cert.pem ]] || make_certificates
	make_data
	choose_socket
	for ((tries = 0; tries < 10; tries++)); do
		: >"$dir/error.log"
		[[ -e $dir/port ]] || draw_port
		run && return
		port_was_taken || break
		rm "$dir/port"
	done
	show_log
	die "the server did not start"
}

end_process() {
	kill "-$1" "$2" 2>/dev/null || true
	await_end "$2" "$PATIENCE_S" && return
	kill -KILL "$2" 2>/dev/null || true
	await_end "$2" 10 || die "process $2 does not end"
}

end_by() {
	local pid
	pid=$(server_pid) || return 0
	end_process "$1" "$pid"
	rm -f "/dev/shm/faketime_shm_$pid" "/dev/shm/sem.faketime_sem_$pid" # left by libfaketime
	remove_short_folder
}

# Returns when every thread of it has stopped.
freeze() {
	local pid end=$((SECONDS + PATIENCE_S))
	pid=$(server_pid) || die "it does not run"
	kill -STOP "$pid"
	while grep -hE '^State:[[:space:]]+[^tT]' "/proc/$pid"/task/*/status >/dev/null; do
		((SECONDS < end)) || die "it does not stop"
		sleep 0.01
	done
}

thaw() {
	local pid
	pid=$(server_pid) || die "it does not run"
	kill -CONT "$pid"
}

restart() {
	end_by TERM
	run || {
		show_log
		die "the server did not start again"
	}
}

env_lines() {
	cat <<-EOF
		BIZLOCK_TEST_SOCKET=$(cat "$dir/socket")
		BIZLOCK_TEST_HOST=127.0.0.1
		BIZLOCK_TEST_PORT=$(cat "$dir/port")
		BIZLOCK_TEST_USER=root
		BIZLOCK_TEST_PASSWORD=$PASSWORD
		BIZLOCK_TEST_TLS_CA=$dir/ca.pem
	EOF
}

[[ $# -ge 2 ]] || die "usage: server.sh start|restart|stop|kill|freeze|thaw|wait|env DIR [options]"
command=$1
[[ $2 == /* ]] && dir=$2 || dir=$PWD/$2
shift 2
as_user=()
[[ $(id -u) != 0 ]] || as_user=(--user=root)
[[ $command != *start ]] || server_program >/dev/null || die "neither mariadbd nor mysqld is installed"

case $command in
start) start "$@" ;;
restart) restart ;;
stop) end_by TERM ;;
kill) end_by KILL ;;
freeze) freeze ;;
thaw) thaw ;;
wait) wait_for || die "it does not answer" ;;
env) env_lines ;;
*) die "unknown command: $command" ;;
esac
