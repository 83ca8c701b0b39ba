#!/usr/bin/env bash
# Makes the Debian packages as a distribution does, twice, and looks at them: both times they are the
# same bytes; what was installed is in one of them each; the library's Depends came from the library;
# lintian finds nothing. Then installs them by dpkg -i on a clean machine: a chroot that holds the
# packages Debian calls essential, and what the packages and their tests depend on. There it runs
# debian/tests, with a real server, after an upgrade with the timer enabled; and purges all of it. A
# chroot cannot prove everything: no systemd runs.
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$root/tests/support/roots.sh"

for tool in dh dpkg-buildpackage dpkg-shlibdeps systemctl; do
	command -v $tool >/dev/null || {
		echo "$tool is not installed"
		exit 77
	}
done
dpkg-query -W libmariadb-dev >/dev/null 2>&1 || {
	echo "not here: the packages are built with libmariadb-dev"
	exit 77
}
upstream=$(dpkg-parsechangelog -l "$root/debian/changelog" -S Version)
[[ ${upstream%-*} == "$version" ]] || die "debian/changelog has $upstream, and include/bizlock.h $version"

# pack FOLDER WHAT [NAME=VALUE...]: copies the tree there, and builds packages of it.
pack() {
	local tree=$1/bizlock-$version
	rm -rf "$1"
	mkdir -p "$tree"
	tar -C "$root" --exclude=.git --exclude='./build*' -cf - . | tar -C "$tree" -xf -
	tar -C "$1" --exclude="bizlock-$version/debian" -czf "$1/bizlock_$version.orig.tar.gz" "bizlock-$version"
	(cd "$tree" && logged env "${@:3}" dpkg-buildpackage -us -uc "$2")
	rm -rf "$tree"
}

step "pack"
pack "$folder/deb" --build=full DEB_BUILD_OPTIONS="parallel=$(nproc)"
cd "$folder/deb"
names=(bizlock bizlock-doc libbizlock-dev libbizlock0)
for package in "${names[@]}"; do
	debs+=("${package}_"*.deb)
done
[[ $(ls *.deb | grep -vc -- -dbgsym_) == "${#names[@]}" && -e ${debs[0]} ]] || die "packed $(ls *.deb)"

# Whoever builds the same source has the same bytes, and so can tell whether a package is what it says.
step "pack again, elsewhere"
again=$folder/another-place/of-another-length
(umask 027 && pack "$again" --build=binary DEB_BUILD_OPTIONS=parallel=1 TZ=Asia/Tokyo LC_ALL=C HOME=/nonexistent)
for deb in *.deb; do
	cmp "$deb" "$again/$deb" || die "$deb is not what a second build makes"
done
rm -rf "$folder/another-place"

step "contents"
# Without folders, and where Debian has things: lib/<machine>, *.gz. Its kind of build is "none".
(cd "$prefix" && find . ! -type d | sed -E 's,^\./,,; s,^lib/([^s]),lib/ARCH/\1,; /^share\/doc/d') |
	sort >"$work/installed"
for deb in "${debs[@]}"; do
	dpkg-deb --fsys-tarfile "$deb" | tar -t
done | sed -nE '/\/$/d; /share\/doc/d
	s,^\./(usr/)?,,; s,^lib/[^/]*-[^/]*/,lib/ARCH/,; s,(/man/.*)\.gz$,\1,; s,Targets-none,Targets-relwithdebinfo,; p' | sort >"$work/packed"
diff -u "$work/installed" "$work/packed" || die "the packages hold (+) what is not installed (-)"
for deb in "${debs[@]}"; do
	for file in copyright changelog.gz changelog.Debian.gz; do
		dpkg-deb --fsys-tarfile "$deb" | tar -t "./usr/share/doc/${deb%%_*}/$file" >/dev/null
	done
done
# Links between the documents work in the package.
for deb in bizlock-doc_*.deb; do
	dpkg-deb -x "$deb" "$work/doc"
done
doc=$work/doc/usr/share/doc/bizlock
for file in README.md docs examples; do
	diff -r -x 'picture.*' -x quickstart.sh -x CMakeLists.txt "$root/$file" "$doc/$file"
done
for script in postinst prerm postrm; do
	dpkg-deb -I bizlock_*.deb $script | grep -q bizlock-reaper.timer || die "$script does not know the timer"
done
needs=$(dpkg-deb -f libbizlock0_*.deb Depends)
[[ $needs == *libc6* && $needs =~ lib(mariadb|mysqlclient) ]] || die "libbizlock0 depends on $needs"

step "lintian"
if ! command -v lintian >/dev/null; then
	echo "[SKIP] package: lintian is not installed"
elif [[ -n ${BIZLOCK_TEST_ROOT:-} ]]; then # another release's lintian has other wishes
	logged lintian --allow-root --fail-on error ./*.changes
else
	code=0 # 2: it has found an error
	lintian --allow-root --display-info --pedantic ./*.changes >"$work/tags" 2>"$work/log" || code=$?
	((code == 0 || code == 2)) || die "lintian fails: $(cat "$work/log")"
	! grep -v '^N:' "$work/tags" || die "lintian says that"
fi

step "a clean machine"
skip_chroot() {
	echo "[SKIP] package: $*"
	exit 0
}
command -v mmdebstrap >/dev/null || skip_chroot "mmdebstrap is not installed"
[[ $(id -u) == 0 ]] || skip_chroot "only root can make a chroot"
# depends TEXT...: names of packages, without versions, alternatives, and the packages themselves.
depends() {
	printf '%s\n' "$@" | tr ',' '\n' | sed -E 's/^ *//; s/[ (|].*//' | grep -v bizlock | sort -u | paste -sd ,
}
others=$(depends "$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Depends; done)" \
	"$(sed -n 's/^Depends: //p' "$root/debian/tests/control")")
chroot=$work/chroot
read -r suite mirror <<<"$(apt_source)"
make_root "$suite" "$chroot" "$mirror" --variant=essential --include="$others" >"$work/log" 2>&1 ||
	skip_chroot "no chroot of $suite: $(tail -n 2 "$work/log" | paste -sd ' ')"
# With mounts that end with the command.
in_chroot() {
	LC_ALL=C.UTF-8 unshare --mount bash -euc 'for path in /dev /proc; do mount --rbind "$path" "$0$path"; done
		exec chroot "$0" "$@"' "$chroot" "$@"
}
# install VERSION: makes the packages ones of this version, and installs them.
install() {
	local deb
	for deb in "${debs[@]}"; do
		rm -rf "$work/tree"
		dpkg-deb -R "$deb" "$work/tree"
		sed -i "s/\b$upstream\b/$1/" "$work/tree/DEBIAN/control"
		dpkg-deb -b "$work/tree" "$chroot/tmp/$deb" >/dev/null
	done
	logged in_chroot dpkg -i "${debs[@]/#//tmp/}"
	[[ $(in_chroot dpkg-query -W -f '${Version}' bizlock) == "$1" ]] || die "$1 is not installed"
}
install "$version-0" # lower than that of debian/changelog
enabled=$chroot/etc/systemd/system/timers.target.wants/bizlock-reaper.timer
[[ ! -L $enabled ]] || die "the timer is enabled before an administrator has said so"
logged systemctl --root="$chroot" enable bizlock-reaper.timer
[[ -L $enabled ]] || die "the timer cannot be enabled"

step "upgrade"
install "$upstream"
[[ -L $enabled ]] || die "the upgrade has disabled the timer"

[[ $(in_chroot bizlock --version) == "bizlock $version, library $version" ]] ||
	die "bizlock --version says $(in_chroot bizlock --version 2>&1)"
logged in_chroot bizlock-reaper --help
[[ $(readlink "$chroot/usr/bin/bizlock-reaper") == bizlock ]] || die "bizlock-reaper is no link"

step "debian/tests"
mkdir "$chroot/tmp/tree"
cp /etc/hosts "$chroot/etc" # where a server finds its own name
tar -C "$root" -cf - debian/tests examples tests/support | tar -C "$chroot/tmp/tree" -xf -
for test in $(sed -n 's/^Tests: //p' "$root/debian/tests/control"); do
	mkdir "$chroot/tmp/$test"
	logged in_chroot env AUTOPKGTEST_TMP="/tmp/$test" bash -c 'cd /tmp/tree && exec "debian/tests/$1"' - "$test"
done

logged in_chroot dpkg --purge "${names[@]}"
left=$(find "$chroot"/{etc,usr,var} -name '*bizlock*')
[[ -z $left ]] || die "purged, but still there: $left"
