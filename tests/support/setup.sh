# Sourced by tests/run.sh, tests/bench/run.sh, examples/quickstart.sh and .ci/run: what
# they need from the system, and a private server. Sets `root`, the top of the tree.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/libexec"
source "$root/tests/support/dialects.sh"

# ---- packages ----------------------------------------------------------------

has() {
	case $1 in
	compiler) command -v cc && echo '#include <stdio.h>' | cc -E - ;;
	c++) command -v c++ ;;
	connector)
		pkg-config --exists libmariadb || pkg-config --exists mysqlclient ||
			ls /usr/include/{mariadb,mysql}/mysql.h
		;;
	smartcols) pkg-config --exists smartcols ;;
	sdt) echo '#include <sys/sdt.h>' | cc -E - ;;
	client) sql_client ;;
	criterion) pkg-config --exists criterion || ls /usr/include/criterion/criterion.h ;;
	server) server_program ;;
	galera) has_mysqld || compgen -G '/usr/lib*/galera*/libgalera_smm.so' ;;
	faketime)
		compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' ||
			compgen -G '/usr/lib*/faketime/libfaketimeMT.so.1'
		;;
	pymysql) python3 -c 'import pymysql' || /usr/bin/python3 -c 'import pymysql' ;;
	mysqli) php -r 'exit(extension_loaded("mysqli") ? 0 : 1);' ;;
	dbd-mariadb) perl -MDBD::MariaDB -e 1 ;;
	node-mysql) [[ -d /usr/share/nodejs/mysql ]] && command -v node ;;
	hiredis | libcurl | libuv) pkg-config --exists "$1" ;;
	zookeeper) ls /usr/share/java/zookeeper.jar && command -v java ;;
	zookeeper-c) ls /usr/include/zookeeper/zookeeper.h ;;
	gcc-s390x) command -v s390x-linux-gnu-gcc ;;
	qemu-s390x) command -v qemu-s390x-static ;;
	clang)
		echo 'int main(void) { return 0; }' | clang -fsanitize=thread -x c - -o /dev/null &&
			echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
			clang -fsanitize=fuzzer,address -x c - -o /dev/null
		;;
	dh) command -v dh && dpkg-query -W build-essential ;;
	rpmbuild) command -v rpmbuild && command -v eu-strip ;;
	*) command -v "$1" ;;
	esac >/dev/null 2>&1
}

# The packages of Debian and Ubuntu, then what for.
package() {
	case $1 in
	compiler) echo "gcc libc6-dev: C compiler" ;;
	c++) echo "g++: the header is also C++" ;;
	connector) echo "$(of_its_family libmysqlclient-dev libmariadb-dev): client library" ;;
	smartcols) echo "libsmartcols-dev: tables of the command line" ;;
	sdt) echo "systemtap-sdt-dev: probes for bpftrace" ;;
	client) echo "$(core "$(of_its_family mysql-client mariadb-client)"): SQL client" ;;
	criterion) echo "libcriterion-dev: test framework" ;;
	server) echo "$(core mariadb-server) $(core mariadb-client): private server" ;;
	galera) echo "galera-4: clusters" ;;
	clang) echo "clang libclang-rt-dev: second compiler, ThreadSanitizer, libFuzzer" ;;
	haproxy) echo "haproxy: a proxy between client and server" ;;
	faketime) echo "libfaketime: a private server's clock" ;;
	abidiff) echo "abigail-tools: the binary interface" ;;
	ctags) echo "universal-ctags: length of functions" ;;
	ps) echo "procps: what runs" ;;
	python3) echo "python3: a reader of JSON" ;;
	pymysql) echo "python3-pymysql: locks by CALL" ;;
	mysqli) echo "php-cli php-mysql: locks by CALL" ;;
	dbd-mariadb) echo "libdbd-mariadb-perl: locks by CALL" ;;
	node-mysql) echo "nodejs node-mysql: locks by CALL" ;;
	zsh) echo "zsh: its completion" ;;
	spin) echo "spin: the model of the protocol" ;;
	strace) echo "strace: a thread that is held up" ;;
	gcc-s390x) echo "gcc-s390x-linux-gnu libc6-dev-s390x-cross: another machine" ;;
	qemu-s390x) echo "qemu-user-static: another machine" ;;
	musl-gcc) echo "musl-tools: another C library" ;;
	libuv) echo "libuv1-dev: an event loop" ;;
	tmux) echo "tmux: a terminal for tests of the command line" ;;
	dh) echo "build-essential debhelper: Debian packages" ;;
	rpmbuild) echo "rpm elfutils: RPM packages" ;;
	dpkg-shlibdeps) echo "dpkg-dev: Debian packages" ;;
	lintian) echo "lintian: Debian packages" ;;
	mmdebstrap) echo "mmdebstrap: a clean machine for Debian packages" ;;
	systemd-analyze) echo "systemd: units of the reaper" ;;
	mandoc) echo "mandoc: manual pages" ;;
	man) echo "man-db: manual pages" ;;
	groff) echo "groff-base: manual pages" ;;
	flock) echo "util-linux: locking" ;;
	ip) echo "iproute2: networks between the nodes of a cluster" ;;
	mount) echo "mount: disks of a cluster" ;;
	hiredis) echo "libhiredis-dev: client library of Redis" ;;
	libcurl) echo "libcurl4-openssl-dev: client library for etcd" ;;
	etcd) echo "etcd-server: a peer to measure" ;;
	zookeeper) echo "libzookeeper-java default-jre-headless: a peer to measure" ;;
	zookeeper-c) echo "libzookeeper-mt-dev: client library of ZooKeeper" ;;
	redis-server) echo "redis-server: a peer to measure" ;;
	gnuplot) echo "gnuplot-nox: pictures" ;;
	*) echo "$1: build" ;;
	esac
}

apt_has() {
	[[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[0-9]* ]]
}

# The "core" package, where there is one: it starts no service.
core() {
	! apt_has "$1-core" || set -- "$1-core"
	echo "$1"
}

# of_its_family MYSQL MARIADB: MySQL's package where MySQL is, because the two exclude each other.
of_its_family() {
	if [[ $(server_program) == mysqld ]] && apt_has "$1"; then
		echo "$1"
	else
		echo "$2"
	fi
}

as_root() {
	if [[ $(id -u) == 0 ]]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Packages of servers start their servers, unless this forbids it.
without_services() {
	local policy=/usr/sbin/policy-rc.d code=0
	if [[ -e $policy ]]; then
		"$@"
		return
	fi
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
	"$@" || code=$?
	as_root rm -f "$policy"
	return "$code"
}

# need THING...: installs those that are missing.
need() {
	local missing=() installs code=0
	find_missing "$@"
	((${#missing[@]})) || return 0
	# Two suites may run beside each other, and apt-get of the second one would fail.
	exec {installs}<"$root"
	! has flock || flock "$installs"
	find_missing "$@"
	((${#missing[@]} == 0)) || install_missing || code=1
	exec {installs}<&-
	return "$code"
}

find_missing() {
	local thing
	missing=()
	for thing; do
		has "$thing" || missing+=("$thing")
	done
}

install_missing() {
	local thing line packages=() words
	! has apt-get || as_root apt-get update -q
	echo "Missing:"
	for thing in "${missing[@]}"; do
		line=$(package "$thing")
		echo "  $line"
		read -ra words <<<"${line%%:*}"
		packages+=("${words[@]}")
	done
	if ! has apt-get; then
		echo "These are the names of Debian and Ubuntu. Please install them, and start again." >&2
		return 1
	fi
	# Nothing that is installed may be removed for it: MySQL's server stays.
	without_services as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qy --no-install-recommends --no-remove "${packages[@]}"
	for thing in "${missing[@]}"; do
		has "$thing" || {
			echo "Still missing: $(package "$thing")" >&2
			return 1
		}
	done
}

# ---- the result --------------------------------------------------------------

# tell_tally FILE WORDS: what harness.sh has noted there, in short; the last line ends with WORDS.
tell_tally() {
	! grep -q '^skipped ' "$1" || sed -n '1i Skipped:
		s/^skipped /  /p' "$1"
	! grep -q '^again ' "$1" || sed -n '1i Passed only at the second try:
		s/^again /  /p
		s/^why /    /p' "$1"
	echo "$(count_tally "$1"), in $SECONDS s; $2"
}

count_tally() {
	awk '$1 == "passed" || $1 == "failed" { n[$1] += $2; next }
		{ n[$1]++ }
		END {
			printf "%d passed, %d failed, %d skipped, %d at the second try\n",
				n["passed"], n["failed"], n["skipped"], n["again"]
		}' "$1"
}

# ---- the server --------------------------------------------------------------

server_is_given() {
	[[ -n ${BIZLOCK_TEST_HOST:-}${BIZLOCK_TEST_SOCKET:-} ]]
}

# Dozens of servers start at a time, and a disk that is full of others' work lets each of them wait
# for seconds, while leases end. In memory, if there is enough: a run may need 4 GB.
folder_for_servers() {
	local free_kb
	free_kb=$(df -t tmpfs --output=avail /dev/shm 2>/dev/null | tail -n 1)
	if [[ -w /dev/shm ]] && ((${free_kb:-0} > 6000000 && $(free_memory_kb) > 8000000)); then
		echo /dev/shm
	else
		echo /tmp
	fi
}

free_memory_kb() {
	sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo
}

# Unless a server is given: starts one, exports where it is, and stops it at the end.
begin_server() {
	server_is_given && return
	server_dir=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-server.XXXXXX")
	trap end_server EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	export BIZLOCK_TEST_NEW_DATA=$server_dir/new
	bash "$root/tests/support/server.sh" start "$server_dir"
	set -a
	eval "$(bash "$root/tests/support/server.sh" env "$server_dir")"
	set +a
}

end_server() {
	bash "$root/tests/support/server.sh" kill "$server_dir" || true
	rm -rf "$server_dir"
}
