#!/usr/bin/env bash
# The files of C and C++ are as clang-format leaves them. Versions differ in details, so one
# version judges: not in a root file system (tests/support/roots.sh), where there is no
# such package; the text is the same outside.
set -euo pipefail
source "$(dirname "$0")/common.sh"

version=14
for tool in clang-format-$version clang-format ''; do
	[[ -n $tool ]] || skip "${BIZLOCK_TEST_ROOT:+not here: }clang-format $version is not installed"
	[[ $("$tool" --version 2>/dev/null) != *"version $version."* ]] || break
done
c_files include src tests examples | xargs "$tool" --dry-run -Werror --style=file
