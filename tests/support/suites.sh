# Sourced by .ci/run and .ci/full: their steps. Builds and what they note lie in build-ci/.
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"
export BIZLOCK_SKIPS_FAIL=1
# Others may take half of the machine, and leases are time: what fails is run once more. A promise
# that is broken fails twice. What passes only then is named at the end: it is a fault of the test.
export BIZLOCK_AGAIN=1
rm -f build-ci/*/tally.txt build-ci/*.log
mkdir -p build-ci

address="-DCMAKE_C_COMPILER=gcc -DBIZLOCK_SANITIZE=address,undefined"
# gcc's ThreadSanitizer (12) ends children of fork() that start a thread.
thread="-DCMAKE_C_COMPILER=clang -DBIZLOCK_SANITIZE=thread"

step() {
	printf '\n==== %s (%d s)\n' "$*" "$SECONDS"
}

# suite NAME SERVER "CMAKE_ARGS" [ARGUMENTS_OF_RUN]: build and tests.
suite() {
	step "suite: $1, $2"
	BIZLOCK_BUILD_DIR=build-ci/$1 BIZLOCK_CMAKE_ARGS="-DBIZLOCK_WERROR=ON $3" \
		bash tests/run.sh --server "$2" "${@:4}"
}

# begin NAME COMMAND...: in the background, because tests wait more than they work; end NAME: waits
# for it, and shows what it said.
declare -A begun=()
trap stop_begun EXIT

# Never fails: what fails in a trap is what the script ends with, and a kill of nothing fails.
stop_begun() {
	((${#begun[@]} == 0)) || kill "${begun[@]}" 2>/dev/null || true
}

begin() {
	"${@:2}" >"build-ci/$1.log" 2>&1 &
	begun[$1]=$!
}

end() {
	local code=0
	wait "${begun[$1]}" || code=$?
	unset "begun[$1]"
	step "in the background: $1"
	cat "build-ci/$1.log"
	return "$code"
}

fuzz() {
	BIZLOCK_BUILD_DIR=build-ci/fuzz nice -n 19 bash tests/fuzz/run.sh "$@"
}

# The commands of README.md and docs/ on a server that is there, and the demo.
documents() {
	BIZLOCK_BUILD_DIR=build-ci/quickstart bash examples/quickstart.sh
	begin_server
	BIZLOCK_STRESS_SECONDS=2 bash tests/package/readme.sh
}

tell_all() {
	cat build-ci/*/tally.txt >build-ci/tally.txt 2>/dev/null || true # fuzzing has none
	step "all suites"
	tell_tally build-ci/tally.txt "$1"
}
