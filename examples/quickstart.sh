#!/usr/bin/env bash
# examples/quickstart.sh [arguments of inventory]
#
# Installs what is missing (Debian, Ubuntu; MariaDB, unless MySQL is installed),
# builds, starts a private server in a temporary folder, applies the files of sql/
# to a database bizlock_demo, lets many processes sell one stock without and with
# a lock, and cleans up.
#
#   BIZLOCK_TEST_HOST or _SOCKET, _PORT, _USER, _PASSWORD    an existing server instead
#   BIZLOCK_BUILD_DIR=build
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tests/support/setup.sh"

case ${1:-} in
-h | --help)
	sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
	exit
	;;
esac

sql() {
	local at=(--no-defaults)
	if [[ -n ${BIZLOCK_TEST_SOCKET:-} ]]; then
		at+=(--socket="$BIZLOCK_TEST_SOCKET")
	else
		at+=(--protocol=tcp --host="$BIZLOCK_TEST_HOST" --port="${BIZLOCK_TEST_PORT:-3306}")
	fi
	[[ -z ${BIZLOCK_TEST_USER:-} ]] || at+=(--user="$BIZLOCK_TEST_USER")
	MYSQL_PWD=${BIZLOCK_TEST_PASSWORD:-} "$(sql_client)" "${at[@]}" "$@"
}

things=(compiler cmake make pkg-config connector client)
server_is_given || things+=(server openssl flock)
need "${things[@]}"

build=${BIZLOCK_BUILD_DIR:-$root/build}
echo "-- build"
cmake -S "$root" -B "$build" >/dev/null
cmake --build "$build" --target inventory -j "$(nproc)" | tail -n 1

echo "-- server and tables"
if server_is_given; then
	# What is there already is somebody's, and stays.
	found=$(sql -Ne "SHOW DATABASES LIKE 'bizlock\\_demo'")
	[[ -n $found ]] || trap 'sql -e "DROP DATABASE IF EXISTS bizlock_demo"' EXIT
fi
begin_server
sql -e "CREATE DATABASE IF NOT EXISTS bizlock_demo"
cat "$root"/sql/0*.sql | sql bizlock_demo

echo "-- inventory"
export BIZLOCK_SOCKET=${BIZLOCK_TEST_SOCKET:-}
export BIZLOCK_HOST=${BIZLOCK_TEST_HOST:-localhost}
[[ -z $BIZLOCK_SOCKET ]] || BIZLOCK_HOST=localhost
export BIZLOCK_PORT=${BIZLOCK_TEST_PORT:-3306}
export BIZLOCK_USER=${BIZLOCK_TEST_USER:-}
export BIZLOCK_PASSWORD=${BIZLOCK_TEST_PASSWORD:-}
export BIZLOCK_DATABASE=bizlock_demo
"$build/examples/inventory" "$@"
