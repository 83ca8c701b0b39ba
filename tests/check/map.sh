#!/usr/bin/env bash
# map.sh [--write]: CONTRIBUTING.md lists what each file is for, in the words with which the
# file begins; --write makes that list anew.
set -euo pipefail
source "$(dirname "$0")/common.sh"

rooms=(src/client src/client/{ops,lock,hold,conn} src/store src/core)
heading="## What each file is for"
text=CONTRIBUTING.md

# The first sentence of the comment that FILE begins with; nothing where there is none.
purpose() {
	awk '
	NR == 1 && !/^\/\*/ { exit }
	{ line = $0; sub(/^(\/\*| \*) ?/, "", line); all = all (NR > 1 ? " " : "") line }
	/\*\// { exit }
	END {
		sub(/ *\*\/.*/, "", all)
		if (match(all, /[.?]( |$)/)) all = substr(all, 1, RSTART - (substr(all, RSTART, 1) == "."))
		print all
	}' "$1"
}

# A .c and its .h are one line: that of the .h, which newcomers read first.
list() {
	local room file says
	for room in "${rooms[@]}"; do
		echo "$room/"
		for file in "$room"/*.[ch]; do
			[[ $file != *.h || ! -e ${file%.h}.c ]] || continue
			says=$file
			[[ ! -e ${file%.c}.h ]] || says=${file%.c}.h
			printf '%s\t%s\n' "${file##*/}" "$(purpose "$says")"
		done
	done | awk -F '\t' '
	NF < 2 { print; next }
	{
		line = sprintf("  %-17s ", $1)
		n = split($2, words, " ")
		for (i = 1; i <= n; i++) {
			if (length(line) + length(words[i]) > 120) {
				sub(/ $/, "", line); print line; line = sprintf("%20s", "")
			}
			line = line words[i] " "
		}
		sub(/ +$/, "", line); print line
	}'
}

# The text with LIST in the place of the block below the heading.
renewed() {
	list="$1" awk -v heading="$heading" '
	$0 == heading { below = 1 }
	below && /^```$/ { below = inside = 0 }
	!inside { print }
	below && /^```text$/ { print ENVIRON["list"]; inside = 1 }' "$text"
}

grep -qxF -- "$heading" "$text" || object "$text: no heading \"$heading\""
while read -r file; do
	[[ -n $(purpose "$file") ]] || object "$file:1: begins with no comment that says what it is for"
done < <(for room in "${rooms[@]}"; do
	for file in "$room"/*.[ch]; do
		[[ $file == *.c && -e ${file%.c}.h ]] || echo "$file"
	done
done)
new=$(renewed "$(list)" && echo end)
if [[ ${1:-} == --write ]]; then
	printf '%s' "${new%end}" >"$text"
else
	diff -u --label "$text" --label "first comments" "$text" <(printf '%s' "${new%end}") ||
		object "$text: differs from what the files say; tests/check/map.sh --write renews it"
fi
verdict
