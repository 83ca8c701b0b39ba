#!/usr/bin/env bash
# Older client libraries: the oldest that may be used compiles without a warning, and those before
# are refused by a sentence. Their headers are made of those that are here, by taking away what came
# later.
set -euo pipefail
source "$(dirname "$0")/common.sh"

read -r module _ < <(pkg-config --print-requires-private bizlock)
headers=$(pkg-config --cflags-only-I "$module" | sed 's/ *-I\([^ ]*\).*/\1/')

# pretend MACRO VERSION: makes headers of that version in the temporary folder.
pretend() {
	rm -rf "$work/headers"
	cp -r "$headers" "$work/headers"
	sed -i -E "s/^(#[[:space:]]*define[[:space:]]+$1)[[:space:]].*/\1 $2/" "$work"/headers/*version.h
	grep -qE "$1 $2" "$work"/headers/*version.h || die "there is no $1 in the headers"
}

# compile: all that speaks to the client library.
compile() {
	local file
	while read -r file; do
		"$CC" -std=c11 -D_GNU_SOURCE "${strict[@]}" -fsyntax-only -isystem "$work/headers" \
			-I"$root/src" -I"$root/include" "$file" || return
	done < <(find "$root/src/store" "$root/src/client" -name '*.c')
}

refused() {
	! compile >"$work/log" 2>&1 || die "$1 is taken"
	grep -q "bizlock needs $2" "$work/log" || die "$1: $(head -n 5 "$work/log")"
}

if [[ $module == mysqlclient ]]; then
	step "libmysqlclient 8.0.16"
	pretend MYSQL_VERSION_ID 80016
	logged compile
	step "libmysqlclient 8.0.15"
	pretend MYSQL_VERSION_ID 80015
	refused "libmysqlclient 8.0.15" "libmysqlclient 8.0.16 or later"
	exit
fi
step "Connector/C 3.1"
pretend MARIADB_PACKAGE_VERSION_ID 30122
sed -i -E 's/\bMARIADB_OPT_RESTRICTED_AUTH,?//; /CR_PLUGIN_NOT_ALLOWED/d' "$work"/headers/{mysql,errmsg}.h
! grep -qE 'RESTRICTED_AUTH|PLUGIN_NOT_ALLOWED' "$work"/headers/{mysql,errmsg}.h || die "that is not 3.1"
logged compile
step "Connector/C 3.0"
pretend MARIADB_PACKAGE_VERSION_ID 30009
refused "Connector/C 3.0" "MariaDB Connector/C 3.1 or later"
