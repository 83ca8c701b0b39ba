#!/usr/bin/env bash
# build.sh FOLDER PREFIX "COMPILER..." "RUNNER...": builds library, command and examples for another C
# library or another machine, without a warning, and runs the unit tests there; RUNNER runs a program
# of there, and may be empty. FOLDER is for the builds. PREFIX: where this machine's bizlock is
# installed (tests/package/install.sh).
#
# No client library is there. So this machine's headers are used, and libraries in whose place
# functions stand that do nothing: all symbols are found, and `bizlock --version` runs.
set -euo pipefail

folder=$1 prefix=$2
read -ra compiler <<<"$3"
read -ra runner <<<"$4"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

die() {
	echo "elsewhere: $*" >&2
	exit 1
}

# stand_in LIBRARY MODULE PREFIX_OF_NAMES: in place of this machine's library of that module.
stand_in() {
	local real
	real=$(pkg-config --variable=libdir "$2")/$(pkg-config --libs-only-l "$2" | sed -E 's/-l([^ ]+).*/lib\1.so/')
	nm -D --defined-only "$real" | sed -nE "s/.* T ($3[a-z0-9_]*).*/\1/p" | sort -u |
		sed 's/.*/void &(void);\nvoid &(void)\n{\n}/' >"$folder/$1.c"
	[[ -s $folder/$1.c ]] || die "$real has nothing of that name"
	"${compiler[@]}" -shared -fPIC -Wl,-soname,"lib$1.so" "$folder/$1.c" -o "$folder/lib/lib$1.so"
}

rm -rf "$folder"
mkdir -p "$folder"/{lib,include}
# The kernel's headers, which a compiler for another C library does not look for.
if ! echo '#include <linux/futex.h>' | "${compiler[@]}" -E - >/dev/null 2>&1; then
	for name in linux asm-generic; do
		ln -s "/usr/include/$name" "$folder/include/$name"
	done
	ln -s "/usr/include/$(gcc -print-multiarch)/asm" "$folder/include/asm"
fi

library=$(find "$prefix" -name libbizlock.so)
export PKG_CONFIG_PATH=${library%/*}/pkgconfig
read -r module _ < <(pkg-config --print-requires-private bizlock)
kind=mariadb
[[ $module != mysqlclient ]] || kind=mysql
headers=$(pkg-config --cflags-only-I "$module" | sed 's/ *-I\([^ ]*\).*/\1/')
# Those of MySQL name each other from the folder above.
ln -s "$headers" "$folder/include/$kind"
stand_in client "$module" mysql_
arguments=(-DBIZLOCK_WERROR=ON -DBIZLOCK_CONNECTOR=$kind -DBIZLOCK_CLI=OFF
	-Dbizlock_${kind}_folder="$headers" -Dbizlock_${kind}_file="$folder/lib/libclient.so"
	-Dbizlock_sdt_folder=OFF)
if [[ -x $prefix/bin/bizlock ]]; then
	stand_in smartcols smartcols scols_
	cat >"$folder/lib/smartcols.pc" <<-END
		Name: smartcols
		Description: functions that do nothing
		Version: 2
		Cflags: $(pkg-config --cflags smartcols)
		Libs: -L$folder/lib -lsmartcols
	END
	arguments+=(-DBIZLOCK_CLI=ON)
fi
PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$folder/lib cmake -S "$root" -B "$folder/build" \
	-DCMAKE_C_COMPILER="${compiler[0]}" -DCMAKE_C_FLAGS="${compiler[*]:1} -isystem $folder/include" \
	"${arguments[@]}"
cmake --build "$folder/build" -j "$(nproc)"
if [[ -x $folder/build/bizlock ]]; then
	said=$(LD_LIBRARY_PATH=$folder/lib "${runner[@]}" "$folder/build/bizlock" --version)
	[[ $said == "$("$prefix/bin/bizlock" --version)" ]] || die "the command says $said"
fi

libraries=$(grep -oE -- '-(pthread|latomic)\b' "$folder/build/bizlock.pc")
"${compiler[@]}" -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 -Wall -Wextra -Werror \
	-O1 -static -isystem "$folder/include" -I"$here" -I"$root/src" -I"$root/include" \
	-I"$root/tests/support" "$root"/tests/unit/*.c "$root/tests/chaos/check.c" \
	"$root/tests/support/patience.c" "$here/runner.c" "$folder/build/libbizlock.a" $libraries \
	-o "$folder/unit"
"${runner[@]}" "$folder/unit"
