#!/usr/bin/env bash
# abi.sh [--write] [LIBRARY]: what programs that are linked with LIBRARY (build/libbizlock.so) rely
# on, its symbols and the layouts of its public types, is what src/pkg/bizlock.abi records; --write
# records what is there now. And no public struct has bytes without a name: compilers leave garbage
# there, and `size` would not tell whether a field that is put there later was filled.
#
# abidiff does not see macros, enumerations and what functions do.
set -euo pipefail
source "$(dirname "$0")/common.sh"

record=src/pkg/bizlock.abi
write=
[[ ${1:-} != --write ]] || {
	write=1
	shift
}
library=${1:-build/libbizlock.so}
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-abi.XXXXXX")
trap 'rm -rf "$work"' EXIT

# ---- bytes without a name ------------------------------------------------------

# The structs are laid out by 64-bit rules, and no connector is asked for.
echo 'typedef struct st_mysql MYSQL;' >"$work/mysql.h"
printf '#include <%s>\n' bizlock.h bizlock_ops.h bizlock_async.h bizlock_tx.h >"$work/all.c"
[[ $(uname -m) == x86_64 ]] || skip "not here: layouts are judged on x86_64"
[[ -z ${BIZLOCK_TEST_ROOT:-} ]] || skip "not here: abidiff of another Debian writes another record"
while IFS= read -r line; do
	object "$line: name the bytes, by a \"uint32_t reserved; /* 0 */\" for example"
done < <(cc -std=c99 -Wpadded -fsyntax-only -Iinclude -I"$work" "$work/all.c" 2>&1 |
	sed -nE 's/(.*) \[-Wpadded\]$/\1/p')
((objections == 0)) || verdict

# ---- symbols and layouts -------------------------------------------------------

command -v abidw >/dev/null || skip "abigail-tools is not installed"
[[ -e $library ]] || {
	echo "There is no $library: build it, or name another" >&2
	exit 2
}
readelf -d "$library" | grep -q 'NEEDED.*libmariadb' ||
	skip "not here: the record is that of a library with MariaDB Connector/C"

# The connector's types are the connector's. A private type may be reached by a pointer.
cat >"$work/others.ini" <<'END'
[suppress_type]
name_regexp = ^(st_|bl_|MYSQL|__).*
drop = yes
END
# abidiff cannot tell growth at the end from other changes of a struct: members_taken() judges structs
# that begin with their size. A key has no size, and must not grow.
cat >"$work/structs.ini" <<'END'
[suppress_type]
name_regexp = ^bizlock_
name_not_regexp = ^bizlock_key$
type_kind = struct
END

abidw --headers-dir include --drop-private-types --exported-interfaces-only \
	--suppressions "$work/others.ini" --no-corpus-path --no-comp-dir-path --no-show-locs \
	--no-elf-needed --no-parameter-names --no-architecture --type-id-style hash "$library" |
	sed -E "s,path='[^']*/src/,path='src/," >"$work/now.abi"
grep -q "class-decl name='bizlock_key'" "$work/now.abi" ||
	skip "$library has no debug information: build it with CMAKE_BUILD_TYPE=RelWithDebInfo"
if [[ ! -e $record ]]; then
	[[ ! $write ]] || exec cp "$work/now.abi" "$record"
	object "$record: missing; record it: tests/check/abi.sh --write"
	verdict
fi

# Exit codes have a bit each: 1 and 2, it could not compare.
differs() {
	local code=0
	abidiff "$@" "$record" "$work/now.abi" >"$work/report" 2>&1 || code=$?
	((!(code & 3))) || {
		cat "$work/report"
		exit 1
	}
	((code))
}

soname() {
	sed -n "s/.*soname='\([^']*\)'.*/\1/p" "$1"
}

# The members of all structs of FILE: struct, offset, type, name. A reserved member has no name: it is
# there to be given one.
members() {
	awk -F "'" '
	/<class-decl name=.bizlock_/ { inside = $2 }
	/<data-member/ { offset = $4 }
	/<var-decl/ && inside { print inside, offset, $4, ($2 == "reserved" ? "" : $2) }
	/<\/class-decl>/ { inside = "" }' "$1" | sort -u
}

# Each member of the record that is not where it was, or is of another type.
members_taken() {
	local member
	members "$work/now.abi" >"$work/members"
	members "$record" | while IFS= read -r member; do
		if [[ $member == *" " ]]; then
			grep -qF -- "$member" "$work/members"
		else
			grep -qxF -- "$member" "$work/members"
		fi || echo "$member"
	done
}

incompatible() {
	[[ -n $(members_taken) ]] || differs --suppressions "$work/structs.ini" --no-added-syms
}

differs --harmless || verdict
if incompatible; then
	major=$(sed -n 's/^#define BIZLOCK_VERSION_MAJOR //p' include/bizlock.h)
	if [[ $write && $major != 0 && $(soname "$record") == "$(soname "$work/now.abi")" ]]; then
		write=
		object "$record: not written: raise SOVERSION (CMakeLists.txt) first"
	elif [[ ! $write ]]; then
		object "$record: programs that were linked before break. Take the change back; or follow" \
			"\"Compatibility\" in CONTRIBUTING.md, and record it: tests/check/abi.sh --write"
	fi
else
	[[ $write ]] || object "$record: a compatible change; record it: tests/check/abi.sh --write"
fi
differs --harmless && cat "$work/report"
[[ ! $write ]] || cp "$work/now.abi" "$record"
verdict
