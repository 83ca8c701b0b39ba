#!/usr/bin/env bash
# Makes the Debian packages and looks at them: what was installed is in one of
# them each, the library's Depends came from the library, lintian finds no error.
# Then installs them by dpkg -i on a clean machine: a chroot that holds the
# packages Debian calls essential, and what the packages depend on; and works with
# them there. A chroot cannot prove everything: no systemd runs, and the
# program is compiled by the compiler outside (--sysroot).
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$root/tests/support/roots.sh"

for tool in dpkg-deb dpkg-shlibdeps cpack; do
	command -v $tool >/dev/null || {
		echo "$tool is not installed"
		exit 77
	}
done

step "pack"
rm -rf "$folder/deb"
logged cmake -S "$root" -B "$folder/build" -DCMAKE_INSTALL_PREFIX=/usr
logged cmake --build "$folder/build" -j "$(nproc)"
logged cpack --config "$folder/build/CPackConfig.cmake" -B "$folder/deb"
cd "$folder/deb"
debs=(*.deb)
[[ ${debs[*]%%_*} == "bizlock-tools libbizlock-dev libbizlock0" ]] || die "packed ${debs[*]}"

step "contents"
# Without folders, and where Debian has things: lib/<machine>, *.gz.
(cd "$prefix" && find . ! -type d | sed -E 's,^\./,,; s,^lib/([^s]),lib/ARCH/\1,; /^share\/doc/d') |
	sort >"$work/installed"
for deb in "${debs[@]}"; do
	dpkg-deb --fsys-tarfile "$deb" | tar -t
done | sed -nE '/\/$/d; /share\/doc/d
	s,^\./usr/,,; s,^lib/[^/]*-[^/]*/,lib/ARCH/,; s,(/man/.*)\.gz$,\1,; p' | sort >"$work/packed"
diff -u "$work/installed" "$work/packed" || die "the packages hold (+) what is not installed (-)"
for deb in "${debs[@]}"; do
	for file in copyright changelog.gz changelog.Debian.gz; do
		dpkg-deb --fsys-tarfile "$deb" | tar -t "./usr/share/doc/${deb%%_*}/$file" >/dev/null
	done
done
needs=$(dpkg-deb -f libbizlock0_*.deb Depends)
[[ $needs == *libc6* && $needs =~ lib(mariadb|mysqlclient) ]] || die "libbizlock0 depends on $needs"

step "lintian"
if command -v lintian >/dev/null; then
	logged lintian --allow-root --fail-on error "${debs[@]}"
else
	echo "[SKIP] package: lintian is not installed"
fi

step "a clean machine"
skip_chroot() {
	echo "[SKIP] package: $*"
	exit 0
}
command -v mmdebstrap >/dev/null || skip_chroot "mmdebstrap is not installed"
[[ $(id -u) == 0 ]] || skip_chroot "only root can make a chroot"
# Their names, without versions and alternatives, and without the packages themselves.
others=$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' |
	sed -E 's/^ *//; s/[ (|].*//' | grep -v bizlock | sort -u | paste -sd ,)
chroot=$work/chroot
read -r suite mirror <<<"$(apt_source)"
make_root "$suite" "$chroot" "$mirror" --variant=essential --include="$others" >"$work/log" 2>&1 ||
	skip_chroot "no chroot of $suite: $(tail -n 2 "$work/log" | paste -sd ' ')"
in_chroot() {
	LC_ALL=C.UTF-8 chroot "$chroot" "$@"
}
cp "${debs[@]}" "$chroot/tmp"
logged in_chroot dpkg -i "${debs[@]/#//tmp/}"

[[ $(in_chroot bizlock --version) == "bizlock $version, library $version" ]] ||
	die "bizlock --version says $(in_chroot bizlock --version 2>&1)"
logged in_chroot bizlock-reaper --help
[[ $(readlink "$chroot/usr/bin/bizlock-reaper") == bizlock ]] || die "bizlock-reaper is no link"

pkgconfig=$(dirname "$(find "$chroot/usr/lib" -name bizlock.pc)")
cp "$here/version.c" "$chroot/tmp"
export PKG_CONFIG_LIBDIR=$pkgconfig:$chroot/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$chroot
unset PKG_CONFIG_PATH
logged "$CC" --sysroot="$chroot" "$here/version.c" -o "$chroot/tmp/version" \
	$(pkg-config --cflags --libs bizlock)
logged "$CC" --sysroot="$chroot" -fsyntax-only "$here/header_tx.c" $(pkg-config --cflags bizlock)
[[ $(in_chroot /tmp/version) == "$version" ]] || die "a program does not run there"

logged in_chroot dpkg --purge bizlock-tools libbizlock-dev libbizlock0
left=$(find "$chroot/usr" "$chroot/etc" -name '*bizlock*')
[[ -z $left ]] || die "purged, but still there: $left"
