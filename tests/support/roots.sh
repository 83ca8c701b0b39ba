# Sourced by tests/run.sh, tests/bench/run.sh and tests/package/deb.sh: root file systems of
# Debian, made by mmdebstrap. They hold a server and its client library, and all that the tests or
# the benchmarks need, for machines whose own packages have others:
#
#   mysql          MySQL 9.7 and libmysqlclient, of Debian unstable
#   mysql-bench    the same with the peers of tests/bench
#   mariadb-11.8   MariaDB 11.8 and its connector, of Debian 13
#   mariadb-i386   MariaDB 10.11 of Debian 12, all of it for i386, whose programs x86-64 runs
#   connector-3.1  Connector/C 3.1 of Debian 11, without a server: that of Debian 11 is too old
#
# They lie in ${XDG_CACHE_HOME:-~/.cache}/bizlock-tests. Each is made once, and anew when
# what it has to hold changes. Delete one, and the next run makes it of today's packages.

root_suite() {
	case $1 in
	mysql | mysql-bench) echo unstable ;;
	mariadb-11.8) echo trixie ;;
	mariadb-i386) echo bookworm ;;
	connector-3.1) echo bullseye ;;
	*) return 1 ;;
	esac
}

# The packages that make the difference.
root_server() {
	case $1 in
	mysql) echo mysql-server-core mysql-client-core libmysqlclient-dev mysql-router ;;
	mysql-bench) echo mysql-server-core mysql-client-core libmysqlclient-dev ;;
	mariadb-11.8) echo mariadb-server-core mariadb-client-core galera-4 libmariadb-dev ;;
	mariadb-i386) echo mariadb-server-core mariadb-client-core libmariadb-dev ;;
	connector-3.1) echo mariadb-client-core-10.5 libmariadb-dev ;;
	esac
}

root_machine() {
	case $1 in
	mariadb-i386) echo i386 ;;
	*) dpkg --print-architecture ;;
	esac
}

# SUITE MIRROR: from where this system's apt has it.
apt_source() (
	source /etc/os-release
	apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI)' \
		'Created-By: Packages' 'Component: main' |
		awk -v suites="^(${VERSION_CODENAME:-stable}|stable|testing|unstable|sid)\$" \
			'!found && $1 ~ suites { print; found = 1 }'
)

# Nothing on another system: there mmdebstrap knows a mirror.
debian_mirror() (
	source /etc/os-release
	[[ $ID != debian ]] || apt_source | cut -d ' ' -f 2
)

# make_root SUITE FOLDER MIRROR OPTIONS_OF_MMDEBSTRAP...
make_root() {
	local options=("${@:4}") line
	while read -r line; do # a proxy
		options+=(--aptopt="$line")
	done < <(apt-config dump --no-empty --format '%f "%v";%n' Acquire::http Acquire::https)
	# Its mounts end with it, however it ends. A mirror that has not changed for long is good
	# enough for tests.
	unshare --mount mmdebstrap --mode=root --aptopt='Acquire::Check-Valid-Until "false"' \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/locale/*' \
		"${options[@]}" "$1" "$2" $3
}

# root_contents NAME THING...: its suite and packages. THING as in need().
root_contents() {
	local thing line words=()
	for thing in "${@:2}"; do
		[[ " server client connector galera " != *" $thing "* ]] || continue
		line=$(package "$thing")
		words+=(${line%%:*})
	done
	echo "$(root_suite "$1") $(root_server "$1") ${words[*]}"
}

# A root with more packages will do, too: another checkout may want more.
root_is_whole() {
	local has word
	has=$(cat "$1/etc/bizlock-tests" 2>/dev/null)
	for word in $2; do
		[[ " $has " == *" $word "* ]] || return 1
	done
}

# Made under another name until it is complete.
replace_root() {
	local folder=$1 contents=$2 words
	read -ra words <<<"$contents"
	if grep -F " $folder" /proc/self/mounts; then
		echo "That is mounted in $folder, and would be deleted with it" >&2
		return 1
	fi
	echo "Preparing $folder, of Debian ${words[0]}; this is done once"
	rm -rf --one-file-system "$folder" "$folder.new"
	make_root "${words[0]}" "$folder.new" "$(debian_mirror)" --variant=apt \
		--architectures="$(root_machine "$(basename "$folder")")" \
		--include="$(IFS=,; echo "${words[*]:1}")" >"$folder.log" 2>&1 || {
		tail -n 20 "$folder.log" >&2
		echo "There is no root file system of Debian ${words[0]}; see $folder.log" >&2
		return 1
	}
	echo "$contents" >"$folder.new/etc/bizlock-tests"
	mv "$folder.new" "$folder"
}

# Makes it unless it is there. File descriptor 7 keeps it from being replaced, as long as
# a process of this run has it open.
prepare_root() {
	local folder=$1 contents=$2 waiting=0
	mkdir -p "$(dirname "$folder")"
	exec 7>"$folder.lock"
	flock --shared 7
	until root_is_whole "$folder" "$contents"; do
		flock --unlock 7
		if flock --nonblock 7; then
			root_is_whole "$folder" "$contents" || replace_root "$folder" "$contents"
		else
			((waiting++)) || echo "Waiting for another run in $folder"
			sleep 1
		fi
		flock --shared 7
	done
}

# In a mount namespace of its own: what is mounted here ends with its last process.
mount_and_run() {
	local folder=$1 path
	shift
	mount --bind "$folder" "$folder" # inside, its top is to be a mount like any other
	for path in /dev /proc /sys /tmp "$root" "$BIZLOCK_BUILD_DIR" "${TMPDIR:-/tmp}"; do
		mkdir -p "$folder$path"
		mount --rbind "$path" "$folder$path"
	done
	for path in /etc/hosts /etc/resolv.conf; do
		[[ -e $path ]] || continue
		[[ -e $folder$path ]] || : >"$folder$path"
		mount --bind "$path" "$folder$path"
	done
	exec env -u LC_ALL -u LANGUAGE LANG=C.UTF-8 chroot "$folder" "$@"
}

# enter_root NAME "THING..." COMMAND...: runs that in the root with this name, as this process.
enter_root() {
	local name=$1 things folder=${XDG_CACHE_HOME:-$HOME/.cache}/bizlock-tests/$1
	read -ra things <<<"$2"
	shift 2
	[[ $(id -u) == 0 ]] || {
		echo "Only root can prepare and enter a root file system: start this by sudo, or without --server $name" >&2
		return 1
	}
	need mmdebstrap arch-test unshare flock
	prepare_root "$folder" "$(root_contents "$name" "${things[@]}")"
	export BIZLOCK_TEST_ROOT=$name
	exec unshare --mount bash -euc 'source "$0/setup.sh"; source "$0/roots.sh"; mount_and_run "$@"' \
		"$root/tests/support" "$folder" "$@"
}
