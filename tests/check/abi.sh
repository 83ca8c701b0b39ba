#!/usr/bin/env bash
# abi.sh [--write] [LIBRARY]: what programs that are linked with LIBRARY (build/libbizlock.so) rely
# on is what is recorded: its symbols and the layouts of its public types in src/pkg/bizlock.abi, and
# the numbers of errors, flags, enumerations and limits, which programs were compiled with, in
# src/pkg/bizlock.numbers; --write records what is there now. And no public struct has bytes without a
# name: compilers leave garbage there, and `size` would not tell whether a field that is put there
# later was filled.
#
# What functions do it does not see.
set -euo pipefail
source "$(dirname "$0")/common.sh"

record=src/pkg/bizlock.abi
numbers=src/pkg/bizlock.numbers
write=
[[ ${1:-} != --write ]] || {
	write=1
	shift
}
library=${1:-build/libbizlock.so}
export LC_ALL=C
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-abi.XXXXXX")
trap 'rm -rf "$work"' EXIT

# No connector is asked for.
echo 'typedef struct st_mysql MYSQL;' >"$work/mysql.h"
for header in include/*.h; do
	echo "#include <${header##*/}>"
done >"$work/all.c"
compile=(cc -std=c99 -Iinclude -I"$work")

soname() {
	sed -n "s/.*soname='\([^']*\)'.*/\1/p" "$1"
}

# May what breaks programs be recorded? Before 1.0.0 nothing is promised; later, SOVERSION is raised first.
may_break() {
	grep -q '^#define BIZLOCK_VERSION_MAJOR 0$' include/bizlock.h ||
		[[ $(sed -nE 's/.* SOVERSION ([0-9]+).*/libbizlock.so.\1/p' CMakeLists.txt) != $(soname "$record") ]]
}

# ---- numbers ---------------------------------------------------------------------

# The macros that are a number, except the version's; and the names in enumerations.
names() {
	"${compile[@]}" -E -dM "$work/all.c" |
		sed -nE '/_VERSION_/d; s/^#define (BIZLOCK_[A-Z_0-9]+) [0-9]+u?$/\1/p'
	"${compile[@]}" -E -P "$work/all.c" | tr '\n' ' ' | grep -oE 'enum bizlock_[a-z_]+ *\{[^}]*' |
		sed 's/.*{//' | grep -oE '\bBIZLOCK_[A-Z_0-9]+'
}

names | sort -u >"$work/names"
{
	cat "$work/all.c"
	echo '#include <stdio.h>'
	echo 'int main(void) {'
	sed 's/.*/printf("%s %lld\\n", "&", (long long)(&));/' "$work/names"
	echo 'return 0; }'
} >"$work/numbers.c"
"${compile[@]}" "$work/numbers.c" -o "$work/numbers"
"$work/numbers" >"$work/now.numbers"
[[ -s $work/now.numbers ]] || object "include: no number is found"
taken=$(comm -13 "$work/now.numbers" <(cat "$numbers" 2>/dev/null))
if [[ $taken ]] && { [[ ! $write ]] || ! may_break; }; then
	object "$numbers: programs that were compiled with these rely on them: $(paste -sd , <<<"$taken")." \
		"Follow \"Compatibility\" in CONTRIBUTING.md"
elif [[ $write ]]; then
	cp "$work/now.numbers" "$numbers"
elif ! cmp -s "$work/now.numbers" "$numbers"; then
	object "$numbers: a new number; record it: tests/check/abi.sh --write"
fi
((objections == 0)) || verdict

# ---- bytes without a name ------------------------------------------------------

[[ $("${compile[@]}" -E -dM -x c /dev/null) == *__x86_64__* ]] || skip "not here: layouts are judged on x86-64"
"${compile[@]}" -Wpadded -fsyntax-only "$work/all.c" >"$work/log" 2>&1 || {
	cat "$work/log"
	exit 1
}
while IFS= read -r line; do
	object "$line: name the bytes, by a \"uint32_t reserved; /* 0 */\" for example"
done < <(sed -nE 's/(.*) \[-Wpadded\]$/\1/p' "$work/log")
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
# Another release of the one or the other describes the same library in other words.
made_by="$(abidw --version), $(readelf -p .comment "$library" | sed -nE 's/^ *\[.*\]  //p' | paste -sd ,)"
echo "<!-- made by $made_by -->" >>"$work/now.abi"
if [[ ! -e $record ]]; then
	[[ $write ]] || object "$record: missing; record it: tests/check/abi.sh --write"
	[[ ! $write ]] || cp "$work/now.abi" "$record"
	verdict
fi
[[ $write ]] || grep -qxF "<!-- made by $made_by -->" "$record" ||
	skip "not here: the record was$(sed -n 's/<!--\( made by .*\) -->/\1/p' "$record"), this is made by $made_by"

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

differs --harmless || {
	[[ ! $write ]] || cp "$work/now.abi" "$record"
	verdict
}
if incompatible; then
	if [[ $write ]] && ! may_break; then
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
