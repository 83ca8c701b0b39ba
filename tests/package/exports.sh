#!/usr/bin/env bash
# The shared library exports what src/pkg/bizlock.map lists, in those versions,
# and the list is what the headers declare. On 32 bits it calls glibc with times and files of 64 bits.
set -euo pipefail
source "$(dirname "$0")/common.sh"
map=src/pkg/bizlock.map
cd "$work"

# differ A B: the lines that A has more than B.
differ() {
	comm -23 "$1" "$2" | paste -sd ' '
}

own=mariadb
other=mysql
if readelf -d "$libdir/libbizlock.so" | grep -q 'NEEDED.*libmysqlclient'; then
	own=mysql
	other=mariadb
fi

# Without __GNUC__ the header's attributes are empty, so that the name stands
# before the first bracket.
{
	echo '#define BIZLOCK_API DECLARED'
	grep -v 'define BIZLOCK_API' "$prefix/include/bizlock.h"
	grep -hv '#include' "$prefix/include/bizlock_tx.h" "$prefix/include/bizlock_async.h"
} | "$CC" -I"$prefix/include" -std=c99 -U__GNUC__ -E -P - | tr '\n' ' ' | tr ';' '\n' |
	sed -nE 's/.*\bDECLARED\b[^(]*\b(bizlock_[a-z0-9_]+) *\(.*/\1/p' >names
grep -o 'BIZLOCK_TX_(bizlock_[a-z_]*' "$prefix/include/bizlock_tx.h" | sed 's/.*(//' >with_library
{
	grep -vxFf with_library names
	sed "s/$/_$own/" with_library
} | sort >declared
[[ -s declared ]] || die "found no declaration"

# name@@node, as nm writes it.
awk '/^[A-Z]/ { node = $1 } /^\tbizlock_/ { sub(/;/, "", $1); print $1 "@@" node }' \
	"$root/$map" | grep -v "_$other@@" | sort >listed
sed 's/@@.*//' listed | sort >listed_names
nm -D --defined-only --with-symbol-versions "$libdir/libbizlock.so" |
	awk '$2 != "A" { print $3 }' | sort >exported

missing=$(differ declared listed_names)
[[ -z $missing ]] || die "declared in include/, but nobody can link with it: $missing.
Add it to the newest node of $map."
missing=$(differ listed_names declared)
[[ -z $missing ]] || die "listed in $map, but declared nowhere in include/: $missing.
If it was never released, take it off the list. If it was, programs use it: put it back."
missing=$(differ listed exported)
[[ -z $missing ]] || die "listed in $map, but not in the library: $missing.
If it was never released, take it off the list. If it was, programs that were linked with
it do not start any more: put it back, with BIZLOCK_API, in the node where it was."
missing=$(differ exported listed)
[[ -z $missing ]] || die "in the library, but not listed in $map: $missing.
Add it to the newest node, or make it static or bl_."

soname=$(readelf -d "$libdir/libbizlock.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[[ $soname == libbizlock.so.0 ]] || die "the SONAME is $soname: old programs would not find it"
readelf -d "$libdir/libbizlock.so" | grep -q 'FLAGS_1.*NODELETE' ||
	die "dlclose() unloads it, and a thread that has used it crashes when it ends"
# There, glibc's functions without "64" in their names have times that end in 2038, and files at 2 GiB.
if [[ $(readelf -h "$libdir/libbizlock.so") == *ELF32* ]]; then
	short=$(nm -D --undefined-only "$libdir/libbizlock.so" | sed -E 's/.* U //; s/@.*//' | grep -xE \
		'clock_(gettime|nanosleep)|nanosleep|[fl]?stat|pthread_cond_(timed|clock)wait|ppoll|time|(local|gm)time_r|open|lseek' |
		paste -sd ' ' || true)
	[[ -z $short ]] || die "it calls with times or files of 32 bits: $short"
fi
echo "$(wc -l <declared) functions"
