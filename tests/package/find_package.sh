#!/usr/bin/env bash
# Uses the installed package by CMake, as a stranger would. A version that it is
# not must be refused: until 1.0 another minor version is another interface.
set -euo pipefail
source "$(dirname "$0")/common.sh"

IFS=. read -r major minor patch <<<"$version"
prepare_stranger

configure() {
	cmake -S . -B build -DBIZLOCK_BY=find_package -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="$1" >log 2>&1
}

for wanted in '' "$major.$minor" "$version" "$version;EXACT"; do
	step "find_package(bizlock $wanted)"
	configure "$wanted" || die "version \"$wanted\" is refused: $(cat log)"
done
logged cmake --build build
tell_versions build

for wanted in "$major.$((minor + 1))" "$major.$minor.$((patch + 1))" "$((major + 1)).0" \
	"$major.$minor;EXACT"; do
	step "find_package(bizlock $wanted)"
	! configure "$wanted" || die "version \"$wanted\" is found in $version"
	grep -q 'requested version' log || die "no word about the version: $(cat log)"
done

step "no client library"
! PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH='' cmake -S . -B without -DBIZLOCK_BY=find_package \
	-DCMAKE_PREFIX_PATH="$prefix" -Dbizlock_mariadb_folder=OFF -Dbizlock_mysql_folder=OFF \
	>log 2>&1 || die "found without a client library"
grep -q 'was built with the client library' log || die "no word about the client library: $(cat log)"
