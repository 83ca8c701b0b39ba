#!/usr/bin/env bash
# install.sh FOLDER COMPILER CONNECTOR: builds into FOLDER/build and installs into
# FOLDER/usr, for the tests beside it.
set -euo pipefail
source "$(dirname "$0")/common.sh"

mkdir -p "$folder"
rm -rf "$prefix"
logged cmake -S "$root" -B "$folder/build" -DCMAKE_C_COMPILER="$CC" \
	-DBIZLOCK_CONNECTOR="$3" -DCMAKE_INSTALL_PREFIX="$prefix"
logged cmake --build "$folder/build" -j "$(nproc)"
logged cmake --install "$folder/build"
for file in "$root"/sql/*; do
	[[ -e $prefix/share/bizlock/sql/$(basename "$file") ]] || die "no share/bizlock/sql/$(basename "$file")"
done
for header in "$root"/include/*; do
	[[ -e $prefix/include/$(basename "$header") ]] || die "no include/$(basename "$header")"
done
for page in "$root"/src/man/*.[1-9]; do
	file=man${page##*.}/$(basename "$page")
	[[ -e $prefix/share/man/$file ]] || die "no share/man/$file"
done
