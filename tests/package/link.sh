#!/usr/bin/env bash
# Uses the installed package by pkg-config, as a stranger would: shared,
# statically, from C99, and from C++11 to C++20.
set -euo pipefail
source "$(dirname "$0")/common.sh"

found=$(pkg-config --modversion bizlock)
[[ $found == "$version" ]] || die "bizlock.pc is of version $found"
[[ -e $libdir/libbizlock.so.0 ]] || die "no libbizlock.so.0"
cp "$here"/{version,header,header_tx}.c "$here"/*.cpp "$root"/examples/hello.{c,cpp} "$work"
cd "$work"

step "shared"
for program in hello version; do
	"$CC" -std=c99 "${strict[@]}" $program.c -o $program $(pkg-config --cflags --libs bizlock)
done
answers ./version

# A stand-in for the header of the other client library: what was compiled with it does not link.
step "the other client library"
other=-DMARIADB_PACKAGE_VERSION
! readelf -d "$libdir/libbizlock.so" | grep -q 'NEEDED.*libmariadb' || other=-DNEITHER
mkdir other
echo 'typedef struct st_mysql MYSQL;' >other/mysql.h
cat >other.c <<'END'
#include <bizlock_tx.h>

int main(void)
{
	return bizlock_commit(NULL, (bizlock_key){"order", "1"}, NULL, NULL) == BIZLOCK_OK;
}
END
"$CC" -std=c99 $other -Iother -I"$prefix/include" -c other.c
! "$CC" other.o -o other_program $(pkg-config --libs bizlock) 2>refused ||
	die "a program for the other client library was linked"
grep -q 'bizlock_commit_m' refused || die "it was not linked for another reason: $(cat refused)"

step "static"
for program in hello version; do
	"$CC" -std=c99 "${strict[@]}" $program.c -o static_$program \
		$(pkg-config --cflags bizlock) \
		$(pkg-config --static --libs bizlock | sed 's/-lbizlock\b/-l:libbizlock.a/')
done
! ldd static_version | grep libbizlock || die "the static program wants the shared library"
answers ./static_version

step "C99"
for header in header header_tx; do
	"$CC" -std=c99 "${strict[@]}" $(pkg-config --cflags bizlock) -c $header.c
done

for cxx in "$CXX" clang++; do
	command -v "$cxx" >/dev/null || continue
	for standard in 11 14 17 20; do
		step "C++$standard by $cxx"
		for program in header header_tx header_hpp hello; do
			"$cxx" -std=c++$standard -O2 "${strict[@]}" $(pkg-config --cflags bizlock) \
				-c $program.cpp
		done
		"$cxx" -std=c++$standard -fno-exceptions "${strict[@]}" $(pkg-config --cflags bizlock) \
			-c header_without_exceptions.cpp
		# What does not work in transactions does not need the connector.
		for header in bizlock bizlock_async bizlock_guard bizlock_base; do
			echo "#include <$header.hpp>" |
				"$cxx" -std=c++$standard "${strict[@]}" -I"$prefix/include" -fsyntax-only -x c++ -
		done
		"$cxx" hello.o -o hello_cxx $(pkg-config --libs bizlock)
	done
done
command -v "$CXX" >/dev/null || echo "[SKIP] package: no C++ compiler"
