#!/usr/bin/env bash
# The pages are as mandoc and groff want them, and refer to pages that are there.
set -euo pipefail
source "$(dirname "$0")/common.sh"

for tool in mandoc man groff; do
	command -v $tool >/dev/null || {
		echo "$tool is not installed"
		exit 77
	}
done

# Other pages may be missing on this machine.
while IFS= read -r line; do
	object "$line"
done < <(mandoc -T lint "$pages"/*.[1-9] 2>/dev/null |
	grep -v 'referenced manual not found' | sed "s,$pages/,,")

# groff 1.24 complains of each line in a narrow column of a table that it cannot fill.
warnings() {
	LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$@" 2>&1 >/dev/null |
		grep -v 'cannot adjust line' || true
}

all=$(warnings "$pages"/*.[1-9])
for page in "$pages"/*.[1-9]; do
	file=$(basename "$page")
	[[ -z $all ]] || while IFS= read -r line; do
		object "$file: $line"
	done < <(warnings "$page")
	while read -r other number; do
		[[ -e $pages/$other.$number ]] ||
			object "$file: refers to $other($number), which is not there"
	done < <(sed -nE 's/^\.(It )?Xr (bizlock[a-z_-]*) ([1-9]).*/\2 \3/p' "$page")
done
verdict
