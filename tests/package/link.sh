#!/usr/bin/env bash
# Uses the installed package by pkg-config, as a stranger would: shared,
# statically, from C99 and from C++11.
set -euo pipefail
source "$(dirname "$0")/common.sh"

found=$(pkg-config --modversion bizlock)
[[ $found == "$version" ]] || die "bizlock.pc is of version $found"
[[ -e $libdir/libbizlock.so.0 ]] || die "no libbizlock.so.0"
cp "$here"/{version,header,header_tx}.c "$here"/*.cc "$root/examples/hello.c" "$work"
cd "$work"

step "shared"
for program in hello version; do
	"$CC" -std=c99 "${strict[@]}" $program.c -o $program $(pkg-config --cflags --libs bizlock)
done
answers ./version

step "static"
for program in hello version; do
	"$CC" -std=c99 "${strict[@]}" $program.c -o static_$program \
		$(pkg-config --cflags bizlock) \
		$(pkg-config --static --libs bizlock | sed 's/-lbizlock\b/-l:libbizlock.a/')
done
! ldd static_version | grep libbizlock || die "the static program wants the shared library"
answers ./static_version

step "C99 and C++11"
for header in header header_tx; do
	"$CC" -std=c99 "${strict[@]}" $(pkg-config --cflags bizlock) -c $header.c -o ${header}_c.o
	command -v "$CXX" >/dev/null || continue
	"$CXX" -std=c++11 "${strict[@]}" $(pkg-config --cflags bizlock) -c $header.cc -o ${header}_cc.o
done
command -v "$CXX" >/dev/null || echo "[SKIP] package: no C++ compiler"
