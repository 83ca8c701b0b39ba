#!/usr/bin/env bash
# harness.sh SECONDS PROGRAM [ARGS]: runs one test program for ctest, and judges
# what its exit code does not tell:
#   - reports of the sanitizers: Criterion calls a test passed that leaked, and
#     nobody looks at the exit code of a grandchild;
#   - skipped tests: shown, counted, a failure where BIZLOCK_SKIPS_FAIL=1, unless the reason
#     begins with "not here: ": nothing that could be installed would help. A plain program says
#     "skipped" by exit code 77;
#   - programs of Criterion in which no test ran;
#   - processes it left behind, which are killed.
# BIZLOCK_AGAIN=1: what failed is run once more and decides; of a program of Criterion only those
# tests, where it names them. What needed that is a fault of the test, and is told as one.
# BIZLOCK_TALLY, a file, gets lines for tests/run.sh to add up: `passed N`, `failed N`,
# `skipped NAME: WHY`, `again NAME`, and `why TEXT` for each line of what it said when it failed. A
# program that is not of Criterion, nor one of the scripts that count their tests, is one test.
# Of Criterion's output only what failed is shown, or all if the program was killed:
# then it tells which tests had begun.
set -u

limit=$1
shift
name=$(basename "$1")
[[ $name != bash ]] || name=$(basename "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-harness.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Sanitizers of gcc 12 and clang 14 do not work with the address randomization
# of newer kernels. Where it cannot be turned off, it is left on.
prefix=()
if [[ -n ${BIZLOCK_SANITIZE:-} ]] && setarch -R true 2>/dev/null; then
	prefix=(setarch -R)
fi
reports="log_path=$work/report:detect_leaks=1"
export ASAN_OPTIONS="$reports:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="$reports:print_stacktrace=1:${UBSAN_OPTIONS:-}"
# Tests fork where Criterion has threads.
export TSAN_OPTIONS="log_path=$work/report:die_after_fork=0:${TSAN_OPTIONS:-}"
export CRITERION_VERBOSITY_LEVEL=1
: "${CRITERION_TEST_PATTERN:=}"

# Kills the processes that are left, and those that they began meanwhile. A mark in their
# environment tells them: Criterion gives its workers sessions of their own.
end_all() {
	local files file tries
	for ((tries = 0; tries < 50; tries++)); do
		files=$(grep -lzx "BIZLOCK_HARNESS=$work" /proc/[0-9]*/environ 2>/dev/null)
		[[ -n $files ]] || return
		for file in $files; do
			kill -KILL "$(cut -d/ -f3 <<<"$file")" 2>/dev/null
		done
		sleep 0.02
	done
}

# Criterion now and then misses the end of a worker, and would wait for it until its time is over:
# it has no children then.
end_lonely() {
	local alone=0 runner
	while sleep 5; do
		runner=$(pgrep -P "$1") || return 0
		pgrep -P "$runner" >/dev/null && alone=0 || ((++alone))
		((alone < 6)) || kill -KILL "$runner"
	done
}

fail() {
	echo "harness: $name: $*" >&2
	code=1
}

# Runs the program, and judges it: sets code.
attempt() {
	local pid watcher= passed report

	rm -f "$work"/{output,report*}
	BIZLOCK_HARNESS=$work setsid timeout -s KILL "$limit" "${prefix[@]}" "$@" \
		</dev/null >"$work/output" 2>&1 &
	pid=$!
	if [[ $name == @(integration|cluster) ]]; then
		end_lonely "$pid" >/dev/null 2>&1 &
		watcher=$!
	fi
	wait "$pid" 2>/dev/null
	code=$?
	killed=$((code == 137))
	[[ -z $watcher ]] || kill "$watcher" 2>/dev/null
	end_all
	passed='^\[(RUN |PASS)\]|^\[====\] Running|^\[SKIP\].*: Test is disabled$'
	((killed)) && passed='^$'
	grep -avE "$passed" "$work/output"

	((killed)) && fail "killed, perhaps after its $limit seconds"
	for report in "$work"/report*; do
		[[ -e $report ]] || continue
		# Not a fault: malloc() has answered NULL, as the test wanted it to.
		grep -qv 'WARNING: [A-Za-z]*Sanitizer failed to allocate' "$report" || continue
		cat "$report"
		fail "a sanitizer has reported something"
	done

	# Tests that CRITERION_TEST_PATTERN has left out say so in these words.
	skips=$(grep '^\[SKIP\]' "$work/output" | grep -v ': Test is disabled$')
	[[ -n $skips ]] || [[ -n $CRITERION_TEST_PATTERN && -z $failed ]] ||
		! grep -q 'Synthesis: Tested: 0 ' "$work/output" ||
		fail "no test ran"
	((code == 77)) && skips=$(tail -n 1 "$work/output")
	[[ -z $skips || ${BIZLOCK_SKIPS_FAIL:-} != 1 ]] || ! grep -v 'not here: ' <<<"$skips" ||
		fail "skips are not allowed here"
}

# add_up N: the lines of BIZLOCK_TALLY, where N tests have failed, at the last try.
add_up() {
	local tested
	tested=$(sed -nE 's/.*Synthesis: Tested: ([0-9]+) .*/\1/p
		s/^([0-9]+) passed, ([0-9]+) failed$/\1 + \2/p' "$work/first" "$work/output" | head -n 1)
	tested=$((${tested:-$((code != 77))}))
	echo "passed $((tested > $1 ? tested - $1 : 0))"
	echo "failed $1"
	[[ -z $skips ]] || sed "s/^/skipped $name: /" <<<"$skips"
	((!again || $1)) || {
		echo "again $name: ${failed:-all of it}"
		grep -aE '^\[(FAIL|----)\] +[^ ]|^FAILED|^harness' "$work/first" | head -n 12 | sed 's/^/why /'
	}
}

count_failed() {
	local n
	((code != 0 && code != 77)) || {
		echo 0
		return
	}
	n=$(sed -nE 's/.*Synthesis: .*Failing: ([0-9]+) .*/\1/p
		s/^[0-9]+ passed, ([0-9]+) failed$/\1/p' "$work/output" | tail -n 1)
	echo "$((${n:-0} > 0 ? n : 1))"
}

# Those of Criterion's tests that failed, as its pattern; fails where they do not tell all: a program
# that was killed, a leak that is told beside the tests, more than a few.
failed_tests() {
	local tests
	((!killed)) && ! compgen -G "$work/report*" >/dev/null || return
	tests=$(sed -nE 's|^\[FAIL\] ([a-z0-9_]+)::([a-z0-9_]+):.*|\1/\2|p' "$work/output" | sort -u)
	[[ -n $tests ]] && (($(wc -l <<<"$tests") <= 8)) || return
	echo "@(${tests//$'\n'/|})"
}

trap 'end_all; exit 1' INT TERM
failed= again=0 skips=
: >"$work/first"
attempt "$@"
if ((code != 0 && code != 77)) && [[ ${BIZLOCK_AGAIN:-} == 1 ]]; then
	! failed=$(failed_tests) || export CRITERION_TEST_PATTERN=$failed
	again=1
	cp "$work/output" "$work/first"
	echo "harness: $name: once more: ${failed:-all}"
	attempt "$@"
fi
[[ -z ${BIZLOCK_TALLY:-} ]] || add_up "$(count_failed)" >>"$BIZLOCK_TALLY"
exit "$code"
