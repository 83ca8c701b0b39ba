#!/usr/bin/env bash
# Makes the RPM packages by src/pkg/rpm/bizlock.spec, and looks at them: what was installed is in one
# of them each, and each knows what it needs. Installs them into an empty folder, where the command
# and a program run, and takes them away again. rpm is Debian's, which knows no other packages of
# RPM: that the names of their dependencies are right only a system of that kind can tell.
set -euo pipefail
source "$(dirname "$0")/common.sh"

command -v rpmbuild >/dev/null || {
	echo "rpmbuild is not installed"
	exit 77
}
pkg-config --exists libmariadb || {
	echo "not here: the packages are built with libmariadb"
	exit 77
}
spec=$root/src/pkg/rpm/bizlock.spec
# Where rpm keeps databases and settings of its own.
export HOME=$work
rpm=(rpm --define "_topdir $folder/rpm" --define "_sourcedir $work")

step "pack"
rm -rf "$folder/rpm"
[[ $(sed -n 's/^Version: *//p' "$spec") == "$version" ]] || die "$spec is not of version $version"
tar -C "$root" --exclude=.git --exclude='./build*' --transform "s,^\.,bizlock-$version," \
	-czf "$work/bizlock-$version.tar.gz" .
logged rpmbuild -bb --nodeps "${rpm[@]:1}" "$spec"
packages=()
for package in "$folder"/rpm/RPMS/*/*.rpm; do # some systems make those with debug information, too
	[[ $package == *-debug* ]] || packages+=("$package")
done
((${#packages[@]} == 3)) || die "packed ${packages[*]##*/}"

# about PACKAGE QUESTION: what rpm says of bizlock, bizlock-libs or bizlock-devel.
about() {
	"${rpm[@]}" -qp "$2" "$folder/rpm/RPMS/"*/"$1-$version"-*.rpm
}

step "contents"
(cd "$prefix" && find . ! -type d | sed -E 's,^\./,,; s,^lib/[^/]*-[^/]*/,lib/,; /^share\/doc/d') |
	sort >"$work/installed"
for package in bizlock bizlock-libs bizlock-devel; do
	about $package --list
done | sed -nE '/\.build-id/d; /\/share\/(doc|licenses)(\/|$)/d; s,^/usr/,,; s,^lib64/,lib/,
	s,^(lib/)[^/]*-[^/]*/,\1,; s,(/man/.*)\.gz$,\1,; s,Targets-none,Targets-relwithdebinfo,; p' |
	grep -vxE 'share/bizlock(/(cron\.d|sql))?|lib/cmake/bizlock' | sort -u >"$work/packed"
diff -u "$work/installed" "$work/packed" || die "the packages hold (+) what is not installed (-)"
[[ $(about bizlock-libs --requires) == *libmariadb.so* ]] || die "bizlock-libs needs no connector"
[[ $(about bizlock --requires) == *"bizlock-libs"*"$version"* ]] || die "bizlock needs no bizlock-libs"
[[ $(about bizlock-devel --requires) == *"bizlock-libs"*"$version"* ]] || die "bizlock-devel neither"

scripts=$(about bizlock --scripts)
[[ $scripts == *postinstall*daemon-reload*preuninstall*disable*bizlock-reaper.timer*postuninstall*daemon-reload* ]] ||
	die "the scripts leave systemd behind: $scripts"

step "install"
[[ $(id -u) == 0 ]] || {
	echo "[SKIP] package: only root can install by rpm"
	exit 0
}
target=$work/target
mkdir "$target" # without a shell, so without the scripts
logged "${rpm[@]}" --root "$target" --install --nodeps --noscripts "${packages[@]}"
library=$(dirname "$(find "$target" -name 'libbizlock.so.*' | head -n 1)")
[[ $(LD_LIBRARY_PATH=$library "$target/usr/bin/bizlock" --version) == "bizlock $version, library $version" ]] ||
	die "the command does not run"
logged "$CC" "$here/version.c" -o "$work/version" -I"$target/usr/include" -L"$library" -lbizlock
[[ $(LD_LIBRARY_PATH=$library "$work/version") == "$version" ]] || die "a program does not run"
logged "${rpm[@]}" --root "$target" --erase --nodeps --noscripts bizlock bizlock-libs bizlock-devel
left=$(find "$target" -path "$target$HOME" -prune -o -name '*bizlock*' -print) # rpm's own is in HOME
[[ -z $left ]] || die "erased, but still there: $left"
