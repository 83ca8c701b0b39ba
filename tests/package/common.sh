# Sourced by the tests of the installed package, SCRIPT FOLDER COMPILER, which
# run after install.sh FOLDER COMPILER CONNECTOR. Sets:
#   prefix   where it was installed    libdir    its folder of libraries
#   work     a temporary folder        version   what the public header says

folder=$1
CC=$2
CXX=${CXX:-c++}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
name=$(basename "$0" .sh)
prefix=$folder/usr
strict=(-Wall -Wextra -Wpedantic -Werror)
version=$(sed -n 's/^#define BIZLOCK_VERSION "\(.*\)"/\1/p' "$root/include/bizlock.h")
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-package.XXXXXX")
trap 'rm -rf "$work"' EXIT

step() {
	echo "-- $*"
}

die() {
	echo "$name: $*" >&2
	exit 1
}

# logged COMMAND...: its output is shown if it fails.
logged() {
	"$@" >"$work/log" 2>&1 || die "$* failed:
$(cat "$work/log")"
}

# answers PROGRAM: it runs, and is linked with this version.
answers() {
	[[ $(LD_LIBRARY_PATH=$libdir "$1") == "$version" ]] || die "$1 does not say $version"
}

sql() {
	MYSQL_PWD=${BIZLOCK_TEST_PASSWORD:-} "$(sql_client)" --no-defaults "${at[@]}" "$@"
}

# begin_database NAME: an empty one, at the server of BIZLOCK_TEST_*; it ends with the test. Sets
# BIZLOCK_* for programs that are linked with bizlock, `database`, and `ask`, a command that takes a
# statement.
begin_database() {
	source "$root/tests/support/dialects.sh"
	if [[ -n ${BIZLOCK_TEST_SOCKET:-} ]]; then
		at=(--socket="$BIZLOCK_TEST_SOCKET" "$(without_tls)")
		export BIZLOCK_HOST=localhost BIZLOCK_SOCKET=$BIZLOCK_TEST_SOCKET
	else
		: "${BIZLOCK_TEST_HOST:?no server: set it, or BIZLOCK_TEST_SOCKET, or use tests/run.sh}"
		at=(--protocol=tcp --host="$BIZLOCK_TEST_HOST" --port="${BIZLOCK_TEST_PORT:-3306}")
		export BIZLOCK_HOST=$BIZLOCK_TEST_HOST BIZLOCK_PORT=${BIZLOCK_TEST_PORT:-3306}
	fi
	[[ -z ${BIZLOCK_TEST_USER:-} ]] || at+=(--user="$BIZLOCK_TEST_USER")
	export BIZLOCK_USER=${BIZLOCK_TEST_USER:-} BIZLOCK_PASSWORD=${BIZLOCK_TEST_PASSWORD:-}
	database=$1
	export BIZLOCK_DATABASE=$database
	sql -e "CREATE DATABASE $database"
	trap 'rm -rf "$work"; sql -e "DROP DATABASE $database"' EXIT
	ask=(env "MYSQL_PWD=${BIZLOCK_TEST_PASSWORD:-}" "$(sql_client)" --no-defaults "${at[@]}" -N
		"$database" -e)
}

# Makes the project of stranger.cmake in the temporary folder, and goes there.
prepare_stranger() {
	echo "int main(void) { return 0; }" >"$work/own.c"
	cp "$here/version.c" "$here/tx.c" "$here/header_tx.c" "$root/examples/hello.c" "$work"
	cp "$here/stranger.cmake" "$work/CMakeLists.txt"
	cd "$work"
}

# tell_versions BUILD: its programs run, and only that of the shared library needs it.
tell_versions() {
	answers "$1/version"
	answers "$1/version_static"
	answers "$1/tx"
	readelf -d "$1/version" | grep -q 'NEEDED.*libbizlock' || die "version is not linked with libbizlock.so"
	! readelf -d "$1/version_static" | grep 'NEEDED.*libbizlock' ||
		die "the static program wants the shared library"
}

if [[ $name != install ]]; then
	libdir=$(cd "$(dirname "$(find "$prefix" -name bizlock.pc)")/.." && pwd)
	export PKG_CONFIG_PATH=$libdir/pkgconfig
fi
