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

if [[ $name != install ]]; then
	libdir=$(cd "$(dirname "$(find "$prefix" -name bizlock.pc)")/.." && pwd)
	export PKG_CONFIG_PATH=$libdir/pkgconfig
fi
