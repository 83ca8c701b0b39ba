#!/usr/bin/env bash
# Notes about work that is left to do belong in an issue, not in the tree.
set -euo pipefail
source "$(dirname "$0")/common.sh"

while IFS= read -r hit; do
	object "$hit"
done < <(grep -rnIE '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b' CMakeLists.txt ./*.md docs include src sql tests \
	examples .ci || true)
verdict
