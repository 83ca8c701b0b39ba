#!/usr/bin/env bash
# tests/fuzz/run.sh [--seconds N] [TARGET...]
#
# Lets clang's libFuzzer invent inputs for the targets (all of tests/fuzz/*.c) for N seconds
# in all (60), as many targets at once as there are processors. What it learns is kept in
# $BIZLOCK_BUILD_DIR (build-fuzz), so that a second run begins where the first has ended.
# An input that breaks a promise fails the run: mend the parser, and move the input to
# tests/fuzz/corpus/TARGET/, by a name that says what it is. ctest reads it again ever after.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../support/setup.sh"
cd "$root"

seconds=60
targets=()
while (($#)); do
	case $1 in
	--seconds) seconds=${2:?} && shift ;;
	-*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
	*) targets+=("$1") ;;
	esac
	shift
done
((${#targets[@]})) || for file in tests/fuzz/*.c; do
	targets+=("$(basename "$file" .c)")
done

need clang
mkdir -p "${BIZLOCK_BUILD_DIR:=build-fuzz}"
build=$(cd "$BIZLOCK_BUILD_DIR" && pwd)
lanes=$(nproc)
rounds=$(((${#targets[@]} + lanes - 1) / lanes))
each=$((seconds > rounds ? seconds / rounds : 1)) # 0 would be for ever
# optfile writes each input into a file: in memory, if possible, where it is faster 7 times.
memory=/dev/shm
[[ -w $memory ]] || memory=${TMPDIR:-/tmp}
work=$(mktemp -d "$memory/bizlock-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
# The address randomization of newer kernels is too much for the sanitizers of clang 14.
prefix=()
! setarch -R true 2>/dev/null || prefix=(setarch -R)

compile() {
	clang -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -O1 -fno-omit-frame-pointer \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-Isrc -Iinclude -Itests/fuzz "tests/fuzz/$1.c" tests/fuzz/common/fuzz.c \
		src/base/*.c src/core/*.c -pthread -o "$build/$1"
}

fuzz() {
	mkdir -p "$build/$1.found" "$work/$1"
	TMPDIR=$work/$1 "${prefix[@]}" "$build/$1" -max_total_time="$each" -timeout=30 \
		-use_value_profile=1 -print_final_stats=1 -artifact_prefix="$build/$1-" \
		"$build/$1.found" "$root/tests/fuzz/corpus/$1" >"$build/$1.log" 2>&1
}

# in_lanes FUNCTION: for each target, so many at once; prints those that failed.
in_lanes() {
	local target
	for target in "${targets[@]}"; do
		while (($(jobs -pr | wc -l) >= lanes)); do
			wait -n || true
		done
		{ "$1" "$target" || echo "$target"; } &
	done
	wait
}

failed=$(in_lanes compile)
[[ -z $failed ]] || exit 1
failed=$(in_lanes fuzz)
for target in "${targets[@]}"; do
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log")
	echo "fuzz: $target: ${runs:-no count of} inputs"
done
for target in $failed; do
	grep -avE '^(INFO|#[0-9]+)' "$build/$target.log" || true
	echo "fuzz: $target: failed" >&2
done
[[ -z $failed ]]
