#!/usr/bin/env bash
# tidy.sh BUILD_DIR: clang-tidy over library and examples, by .clang-tidy and the
# build's compile_commands.json. Takes a minute; CI runs it.
set -euo pipefail
build=$(cd "${1:?usage: tidy.sh BUILD_DIR}" && pwd)
source "$(dirname "$0")/common.sh"

command -v clang-tidy >/dev/null || skip "clang-tidy is not installed"
c_files src examples | grep '\.c\(pp\)\?$' |
	xargs -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" --warnings-as-errors='*'
