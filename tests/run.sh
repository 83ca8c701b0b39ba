#!/usr/bin/env bash
# tests/run.sh [--all | --label LABEL] [--long] [--server SERVER] [-- ARGUMENTS_OF_CTEST]
#
# Installs what is missing (Debian, Ubuntu), builds, starts a private server, runs the tests,
# cleans up. The last line says how many passed, and what was left out. Without --all or --label
# it runs unit, integration, cli, man and check: one server, no root, 5 minutes.
#
# --all: every label. These are the others: cluster (several servers), fault, stress, chaos,
# package, model. They need root, or more packages, or time.
# --long: stress tests take a minute each, those of chaos an hour, fault tests try everything,
# and what they saw is printed.
#
# Without --server it is the server that is installed, or else MariaDB. SERVER:
#   mariadb        MariaDB, of this system's packages
#   mariadb-11.8   MariaDB 11.8, of Debian 13
#   mysql          MySQL 9.7, of Debian unstable
#   mariadb-i386   MariaDB 10.11 on i386
#   connector-3.1  Connector/C 3.1, of Debian 11; with a server that is given
# All but the first live in a root file system of their own, with their own client library and
# compiler. Root prepares it once (tests/support/roots.sh); the build is in build-SERVER/.
#
#   BIZLOCK_TEST_HOST or _SOCKET, _PORT, _USER, _PASSWORD    an existing server instead
#   BIZLOCK_BUILD_DIR=build    BIZLOCK_CMAKE_ARGS="-DBIZLOCK_CONNECTOR=mysql ..."
#   BIZLOCK_SKIPS_FAIL=1       a skipped test is a failure
#   BIZLOCK_AGAIN=1            a test that failed has a second try, and is named if it needed that
#   CRITERION_TEST_PATTERN=wait/*   some of the tests of unit, integration and cluster
#   TMPDIR                     where servers have their data; without it /dev/shm, where that is
#                              large enough: a disk that others use, too, stands still for seconds
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/support/setup.sh"
source "$root/tests/support/roots.sh"

default_labels="unit integration cli man check"
other_labels="cluster fault stress chaos package model"

refuse() {
	echo "tests/run.sh: $* (see --help)" >&2
	exit 2
}

arguments=("$@")
labels=$default_labels
ctest_args=()
long=
server=
while (($#)); do
	case $1 in
	-h | --help)
		sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
		exit
		;;
	--server)
		server=${2:-none}
		[[ $server == mariadb ]] || root_suite "$server" >/dev/null ||
			refuse "unknown server: $server"
		shift
		;;
	--long)
		long=1
		export BIZLOCK_STRESS_SECONDS=${BIZLOCK_STRESS_SECONDS:-60}
		export BIZLOCK_CHAOS_SECONDS=${BIZLOCK_CHAOS_SECONDS:-3600}
		export BIZLOCK_FAULT_LONG=1 BIZLOCK_MODEL_LONG=1
		;;
	--all) labels="$default_labels $other_labels" ;;
	--label)
		labels=${2:-none}
		[[ " $default_labels $other_labels " == *" $labels "* ]] || refuse "unknown label: $labels"
		shift
		;;
	--)
		ctest_args=("${@:2}")
		break
		;;
	*) refuse "unknown argument: $1; what is ctest's goes after --" ;;
	esac
	shift
done

wants() {
	[[ " $labels " == *" $1 "* ]]
}

if [[ $server == mariadb ]]; then
	export BIZLOCK_TEST_SERVER=mariadbd
	server=
fi
cd "$root"
export BIZLOCK_BUILD_DIR=${BIZLOCK_BUILD_DIR:-build${server:+-$server}}
mkdir -p "$BIZLOCK_BUILD_DIR"
BIZLOCK_BUILD_DIR=$(cd "$BIZLOCK_BUILD_DIR" && pwd)
if [[ -z ${TMPDIR:-} ]]; then
	TMPDIR=$(folder_for_servers)
	export TMPDIR
fi

things=(compiler cmake make pkg-config connector smartcols client tmux strace zsh ps python3
	criterion c++ ctags mandoc man groff openssl pymysql mysqli dbd-mariadb)
servers=(server flock faketime)
for_clusters=(galera haproxy ip mount)
for_packages=(libuv sdt dh musl-gcc dpkg-shlibdeps lintian mmdebstrap rpmbuild systemd-analyze)
[[ ${BIZLOCK_CMAKE_ARGS:-} != *=clang* ]] || things+=(clang)
[[ $server == mysql ]] || has_mysqld || things+=(node-mysql) # which cannot log in at MySQL

if [[ -n $server && -z ${BIZLOCK_TEST_ROOT:-} ]]; then
	enter_root "$server" "${things[*]} ${servers[*]} ${for_clusters[*]} ${for_packages[*]}" \
		bash "$root/tests/run.sh" "${arguments[@]}"
fi

# The model is of no server: it is looked at on this system alone.
[[ -n ${BIZLOCK_TEST_ROOT:-} ]] || ! wants model || things+=(spin)
! wants package || things+=("${for_packages[@]}")
! wants cluster && ! wants chaos || servers+=("${for_clusters[@]}")
server_is_given || things+=("${servers[@]}")
need "${things[@]}"
build=$BIZLOCK_BUILD_DIR
read -ra cmake_args <<<"${BIZLOCK_CMAKE_ARGS:-}"
cmake -S . -B "$build" -DBUILD_TESTING=ON "${cmake_args[@]}"
cmake --build "$build" -j "$(nproc)"

begin_server
! has server || export BIZLOCK_SERVER_SH="$root/tests/support/server.sh"
export BIZLOCK_TALLY=$build/tally.txt
: >"$BIZLOCK_TALLY"

code=0
# The CTest of Debian 11 knows no --test-dir.
(cd "$build" && ctest --parallel 4 --output-on-failure --no-tests=error \
	--label-regex "^(${labels// /|})\$" "${ctest_args[@]}") || code=$?
if [[ -n $long ]]; then
	awk '/^[0-9]+\/[0-9]+ Test: (fault|stress|chaos|model)\./ { show = 1 }
		/^<end of output>/ { show = 0 }
		show && !/^(Command|Directory|Output|-+$)/' "$build/Testing/Temporary/LastTest.log"
fi

left_out=
for label in $default_labels $other_labels; do
	wants "$label" || left_out+="${left_out:+, }$label"
done
tell_tally "$BIZLOCK_TALLY" "left out: ${left_out:-nothing}${left_out:+ (--all)}${ctest_args[*]:+,\
 and what ctest was told}"
exit "$code"
