#!/usr/bin/env bash
# package.sh COMPILER CONNECTOR: installs into a temporary prefix, and uses
# bizlock from there as a stranger would: by pkg-config, by CMake, statically,
# from C99 and C++11. Also: the shared library exports what its headers declare.
set -euo pipefail

CC=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
prefix=$work/usr
strict=(-Wall -Wextra -Wpedantic -Werror)
CXX=${CXX:-c++}

step() {
	echo "-- $*"
}

die() {
	echo "package: $*" >&2
	exit 1
}

step "build and install"
{
	cmake -S "$root" -B "$work/build" -DCMAKE_C_COMPILER="$CC" -DBIZLOCK_CONNECTOR="$2" \
		-DCMAKE_INSTALL_PREFIX="$prefix"
	cmake --build "$work/build" -j "$(nproc)"
	cmake --install "$work/build"
} >"$work/log" 2>&1 || die "$(cat "$work/log")"
libdir=$(cd "$(dirname "$(find "$prefix" -name bizlock.pc)")/.." && pwd)
export PKG_CONFIG_PATH=$libdir/pkgconfig

expected=$(sed -n 's/^#define BIZLOCK_VERSION "\(.*\)"/\1/p' "$root/include/bizlock.h")
found=$(pkg-config --modversion bizlock)
[[ $found == "$expected" ]] || die "bizlock.pc is of version $found"
[[ -e $prefix/share/bizlock/sql/001_init.sql ]] || die "no share/bizlock/sql/001_init.sql"
[[ -e $libdir/libbizlock.so.0 ]] || die "no libbizlock.so.0"

# answers PROGRAM: it runs, and is linked with this version.
answers() {
	[[ $(LD_LIBRARY_PATH=$libdir "$1") == "$expected" ]] || die "$1 does not say $expected"
}

mkdir "$work/stranger"
cp "$here/version.c" "$root/examples/hello.c" "$work/stranger"
cd "$work/stranger"

step "pkg-config, shared"
for program in hello version; do
	"$CC" -std=c99 "${strict[@]}" $program.c -o $program $(pkg-config --cflags --libs bizlock)
done
answers ./version

step "pkg-config, static"
for program in hello version; do
	"$CC" -std=c99 "${strict[@]}" $program.c -o static_$program \
		$(pkg-config --cflags bizlock) \
		$(pkg-config --static --libs bizlock | sed 's/-lbizlock\b/-l:libbizlock.a/')
done
! ldd static_version | grep libbizlock || die "the static program wants the shared library"
answers ./static_version

step "find_package"
cp "$here/stranger.cmake" CMakeLists.txt
cmake -S . -B cmake -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="${expected%.*}" >cmake.log ||
	die "$(cat cmake.log)"
cmake --build cmake >cmake.log || die "$(cat cmake.log)"
answers cmake/version

step "C99 and C++11"
cp "$here"/header*.c "$here"/header*.cc .
for header in header header_tx; do
	"$CC" -std=c99 "${strict[@]}" $(pkg-config --cflags bizlock) -c $header.c -o ${header}_c.o
	command -v "$CXX" >/dev/null || continue
	"$CXX" -std=c++11 "${strict[@]}" $(pkg-config --cflags bizlock) -c $header.cc -o ${header}_cc.o
done
if ! command -v "$CXX" >/dev/null; then
	echo "[SKIP] package: no C++ compiler"
fi

step "exports"
# Without __GNUC__ the header's attributes are empty, so that the name stands
# before the first bracket.
{
	echo '#define BIZLOCK_API DECLARED'
	grep -v 'define BIZLOCK_API' "$prefix/include/bizlock.h"
	grep -v '#include' "$prefix/include/bizlock_tx.h"
} | "$CC" -I"$prefix/include" -std=c99 -U__GNUC__ -E -P - | tr '\n' ' ' | tr ';' '\n' |
	sed -nE 's/.*\bDECLARED\b[^(]*\b(bizlock_[a-z0-9_]+) *\(.*/\1/p' | sort >declared
nm -D --defined-only "$libdir/libbizlock.so" | awk '{ print $3 }' | sort >exported
[[ -s declared ]] || die "found no declaration"
diff -u declared exported || die "the library exports (+) other names than its headers declare (-)"
echo "$(wc -l <declared) functions"
