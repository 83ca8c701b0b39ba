#!/usr/bin/env bash
# Uses bizlock as a part of another project, by add_subdirectory and by FetchContent: the other
# project keeps its settings, its targets, its tests and what it installs.
set -euo pipefail
source "$(dirname "$0")/common.sh"

prepare_stranger
# As it would be released.
mkdir tree
tar -C "$root" --exclude=.git --exclude='./build*' -cf - . | tar -C tree -xf -
tar -czf bizlock.tar.gz tree

# look_at BUILD: into BUILD.cache the cache, without what CMake says of folders in it; into
# BUILD.targets, BUILD.tests and BUILD.installed what these words say.
look_at() {
	cmake -N -LA -S . -B "$1" | grep '=' | sort >"$1.cache"
	cmake --build "$1" --target help | sed -nE 's/^\.\.\. ([^ ]+).*/\1/p' |
		grep -vE '\.(o|i|s)$' | sort >"$1.targets"
	ctest --test-dir "$1" -N | sed -nE 's/.*Test +#[0-9]+: //p' >"$1.tests"
	cmake --install "$1" --prefix "$work/$1.prefix" >/dev/null
	(cd "$1.prefix" && find . -type f) | sort >"$1.installed"
}

# added WHAT BUILD: lines that are in that of BUILD, and not in that of `alone`; and the other way round.
added() {
	diff "alone.$1" "$2.$1" | grep '^[<>]' || true
}

logged cmake -S . -B alone
logged cmake --build alone
look_at alone

for way in add_subdirectory FetchContent; do
	step "$way"
	tree=$work/tree
	[[ $way == add_subdirectory ]] || tree=$work/bizlock.tar.gz
	logged cmake -S . -B $way -DBIZLOCK_BY=$way -DBIZLOCK_TREE="$tree"
	logged cmake --build $way -j "$(nproc)"
	look_at $way
	libdir=$(dirname "$(find $way -name libbizlock.so)") tell_versions $way
	changed=$(added cache $way | grep -viE '^> (pkgcfg_lib_)?bizlock_|^> FETCHCONTENT_' || true)
	[[ -z $changed ]] || die "$way changes the cache of the project: $changed"
	changed=$(added targets $way |
		grep -vE '^> (bizlock(_objects|_static)?|hello|version|version_static|header_tx|tx)$' || true)
	[[ -z $changed ]] || die "$way adds targets: $changed"
	changed=$(added tests $way)
	[[ -z $changed ]] || die "$way adds tests: $changed"
	changed=$(added installed $way)
	[[ -z $changed ]] || die "$way installs: $changed"
done

step "BIZLOCK_INSTALL"
logged cmake -S . -B add_subdirectory -DBIZLOCK_INSTALL=ON
logged cmake --build add_subdirectory -j "$(nproc)"
look_at add_subdirectory
grep -q 'libbizlock\.so' add_subdirectory.installed || die "installs nothing of bizlock"
