#!/usr/bin/env bash
# tests/run.sh [--server SERVER] [--long] [--label LABEL] [-- ARGUMENTS_OF_CTEST]
#
# Installs what is missing (Debian, Ubuntu), builds, starts a private server,
# runs the tests, cleans up. Labels: unit, integration, fault, stress, chaos, cli, package,
# man, check, model. --long: stress tests take a minute each, those of chaos an hour, fault tests
# try everything, and what they saw is printed.
#
# Without --server it is the server that is installed, or else MariaDB. SERVER:
#   mariadb        MariaDB, of this system's packages
#   mariadb-11.8   MariaDB 11.8, of Debian 13
#   mysql          MySQL 9.7, of Debian unstable
# The last two live in a root file system of their own, with their own client library and
# compiler. Root prepares it once (tests/support/roots.sh); the build is in build-SERVER/.
#
#   BIZLOCK_TEST_HOST or _SOCKET, _PORT, _USER, _PASSWORD    an existing server instead
#   BIZLOCK_BUILD_DIR=build    BIZLOCK_CMAKE_ARGS="-DBIZLOCK_CONNECTOR=mysql ..."
#   BIZLOCK_SKIPS_FAIL=1       a skipped test is a failure
#   CRITERION_TEST_PATTERN=wait/*   some of the unit and integration tests
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/support/setup.sh"
source "$root/tests/support/roots.sh"

arguments=("$@")
ctest_args=()
long=
server=
label=
while (($#)); do
	case $1 in
	-h | --help)
		sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
		exit
		;;
	--server)
		server=${2:-none}
		[[ $server == mariadb ]] || root_suite "$server" >/dev/null || {
			echo "tests/run.sh: unknown server: $server (see --help)" >&2
			exit 2
		}
		shift
		;;
	--long)
		long=1
		export BIZLOCK_STRESS_SECONDS=${BIZLOCK_STRESS_SECONDS:-60}
		export BIZLOCK_FAULT_LONG=1 BIZLOCK_MODEL_LONG=1 BIZLOCK_CHAOS_LONG=1
		;;
	--label)
		[[ " unit integration fault stress chaos cli package man check model " == *" ${2:-} "* ]] || {
			echo "tests/run.sh: unknown label: ${2:-none} (see --help)" >&2
			exit 2
		}
		ctest_args+=(--label-regex "^$2\$")
		label=$2
		shift
		;;
	--)
		ctest_args+=("${@:2}")
		break
		;;
	*)
		echo "tests/run.sh: unknown argument: $1 (see --help; what is ctest's goes after --)" >&2
		exit 2
		;;
	esac
	shift
done

things=(compiler cmake make pkg-config connector smartcols client tmux strace zsh ps python3 criterion c++ ctags mandoc man groff openssl libuv)
servers=(server galera flock faketime ip mount haproxy)
packaging=(dpkg-shlibdeps lintian mmdebstrap systemd-analyze)

if [[ $server == mariadb ]]; then
	export BIZLOCK_TEST_SERVER=mariadbd
	server=
fi
cd "$root"
export BIZLOCK_BUILD_DIR=${BIZLOCK_BUILD_DIR:-build${server:+-$server}}
mkdir -p "$BIZLOCK_BUILD_DIR"
BIZLOCK_BUILD_DIR=$(cd "$BIZLOCK_BUILD_DIR" && pwd)
if [[ -n $server && -z ${BIZLOCK_TEST_ROOT:-} ]]; then
	enter_root "$server" "${things[*]} ${servers[*]} ${packaging[*]}" \
		bash "$root/tests/run.sh" "${arguments[@]}"
fi

# The model is of no server: it is looked at on this system alone.
[[ -n ${BIZLOCK_TEST_ROOT:-} || ${label:-model} != model ]] || things+=(spin)
server_is_given || things+=("${servers[@]}")
need "${things[@]}"
build=$BIZLOCK_BUILD_DIR
read -ra cmake_args <<<"${BIZLOCK_CMAKE_ARGS:-}"
cmake -S . -B "$build" -DBUILD_TESTING=ON "${cmake_args[@]}"
cmake --build "$build" -j "$(nproc)"

begin_server
! has server || export BIZLOCK_SERVER_SH="$root/tests/support/server.sh"
export BIZLOCK_SKIP_LOG=$build/skipped.txt
: >"$BIZLOCK_SKIP_LOG"

code=0
ctest --test-dir "$build" --parallel 4 --output-on-failure --no-tests=error "${ctest_args[@]}" || code=$?
if [[ -n $long ]]; then
	awk '/^[0-9]+\/[0-9]+ Test: (fault|stress|chaos|model)\./ { show = 1 }
		/^<end of output>/ { show = 0 }
		show && !/^(Command|Directory|Output|-+$)/' "$build/Testing/Temporary/LastTest.log"
fi
if [[ -s $BIZLOCK_SKIP_LOG ]]; then
	echo "Skipped:"
	sed 's/^/  /' "$BIZLOCK_SKIP_LOG"
fi
exit "$code"
