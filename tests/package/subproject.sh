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

# look_at BUILD: writes BUILD.cache, BUILD.targets, BUILD.tests and BUILD.installed.
look_at() {
	cmake -N -LA -S . -B "$1" | grep '=' | sort >"$1.cache"
	cmake --build "$1" --target help | sed -nE 's/^\.\.\. ([^ ]+).*/\1/p' |
		grep -vE '\.(o|i|s)$' | sort >"$1.targets"
	# The CTest of CMake 3.18 knows no --test-dir.
	(cd "$1" && ctest -N) | sed -nE 's/.*Test +#[0-9]+: //p' >"$1.tests"
	rm -rf "$1.prefix"
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
[[ $(<alone.tests) == own ]] || die "the project has a test of its own, and not: $(<alone.tests)"

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
logged cmake -S . -B add_subdirectory -DBIZLOCK_INSTALL=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo
logged cmake --build add_subdirectory -j "$(nproc)"
look_at add_subdirectory
added installed add_subdirectory | sed -n 's,^> \./,,p' >with_bizlock
# Without the folder of the machine, which the two may or may not have.
files() {
	sed -E 's,^lib/[^/]*-[^/]*/,lib/,' "$1" | sort
}
(cd "$prefix" && find . -type f) | sed 's,^\./,,' >as_alone
diff <(files as_alone) <(files with_bizlock) ||
	die "a part of another project installs (>) other files than bizlock alone (<)"

step "BIZLOCK_CLI"
if [[ -x $prefix/bin/bizlock ]]; then
	rm -r add_subdirectory
	logged cmake -S . -B add_subdirectory -DBIZLOCK_BY=add_subdirectory \
		-DBIZLOCK_TREE="$work/tree" -DBIZLOCK_CLI=ON
	logged cmake --build add_subdirectory -j "$(nproc)"
	command=$(find add_subdirectory -name bizlock -type f -perm -u+x)
	[[ $("$command" --version) == *"$version"* ]] || die "the command that was asked for is not there"
	look_at add_subdirectory
	[[ -z $(added installed add_subdirectory) ]] || die "the command is installed, too"
fi
