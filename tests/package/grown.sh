#!/usr/bin/env bash
# Programs and libraries of different versions: a program that is compiled with headers whose structs
# have grown, with the installed library; and one that is compiled with the installed headers, with a
# library whose structs have grown. Needs a server in BIZLOCK_TEST_*.
set -euo pipefail
source "$(dirname "$0")/common.sh"
begin_database bizlock_grown_$$
cd "$work"

step "headers that have grown"
mkdir tree
cp -r "$root/CMakeLists.txt" "$root/include" "$root/src" "$root/sql" "$root/examples" tree
for header in tree/include/*.h; do
	awk '/^typedef struct bizlock_[a-z_]+ \{/ { sized = 0 }
		/^\tsize_t size;/ { sized = 1 }
		/^\} bizlock_[a-z_]+;/ && sized { print "\tuint64_t grown[2];" }
		{ print }' "$header" >grown.h
	cp grown.h "$header"
done
grown=$(grep -h 'uint64_t grown' tree/include/*.h | wc -l)
((grown >= 14)) || die "only $grown structs have grown"
cmake -S tree -B grown -DCMAKE_C_COMPILER="$CC" -DBIZLOCK_INSTALL=OFF -DCMAKE_BUILD_TYPE=Debug >log ||
	die "$(cat log)"
cmake --build grown -j "$(nproc)" --target bizlock >log 2>&1 || die "$(grep -A5 error: log)"

"$CC" -std=c99 -Wall -Wextra -Werror -Wno-missing-field-initializers -DGROWN -Itree/include \
	"$here/sizes.c" -o new_program -L"$libdir" -lbizlock
"$CC" -std=c99 "${strict[@]}" $(pkg-config --cflags bizlock) "$here/sizes.c" -o old_program \
	-L"$libdir" -lbizlock

# told PROGRAM FOLDER_OF_LIBRARY
told() {
	LD_LIBRARY_PATH=$2 "./$1" || die "$1 with the library in $2: $(LD_LIBRARY_PATH=$2 "./$1")"
}

step "a newer program"
told new_program "$libdir" >new
step "an older program"
told old_program grown >old
cut -d ' ' -f 1 new >names
[[ -s names && $(cut -d ' ' -f 1 old) == "$(cat names)" ]] || die "they have told different things"

# The library tells its own size: 16 bytes more in the one that has grown.
diff <(awk '{ print $1, $2 + 16 }' new) old || die "these sizes are not the library's"
