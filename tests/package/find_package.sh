#!/usr/bin/env bash
# Uses the installed package by CMake, as a stranger would. A version that it is
# not must be refused: until 1.0 another minor version is another interface.
set -euo pipefail
source "$(dirname "$0")/common.sh"

IFS=. read -r major minor patch <<<"$version"
cp "$here/version.c" "$root/examples/hello.c" "$work"
cp "$here/stranger.cmake" "$work/CMakeLists.txt"
cd "$work"

configure() {
	cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="$1" >log 2>&1
}

for wanted in '' "$major.$minor" "$version" "$version;EXACT"; do
	step "find_package(bizlock $wanted)"
	configure "$wanted" || die "version \"$wanted\" is refused: $(cat log)"
done
logged cmake --build build
answers build/version

for wanted in "$major.$((minor + 1))" "$major.$minor.$((patch + 1))" "$((major + 1)).0" \
	"$major.$minor;EXACT"; do
	step "find_package(bizlock $wanted)"
	! configure "$wanted" || die "version \"$wanted\" is found in $version"
	grep -q 'requested version' log || die "no word about the version: $(cat log)"
done
