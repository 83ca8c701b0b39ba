#!/usr/bin/env bash
# map.sh [--write]: docs/files.md lists what each file of src/ is for, in the words with which the
# file begins; --write makes that list anew. And CONTRIBUTING.md names the folders that there are.
set -euo pipefail
source "$(dirname "$0")/common.sh"

export LC_ALL=C # sorts alike everywhere

text=docs/files.md
folders_text=CONTRIBUTING.md
folders_heading="## Where things go"

# The layers from above, each with the rooms in it.
rooms() {
	local layer room
	for layer in cli api client store core base; do
		while read -r room; do
			! compgen -G "$room/*.[ch]" >/dev/null || echo "$room"
		done < <(find "src/$layer" -type d | sort)
	done
}

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

# FILE and its purpose, for each of ROOM. A .c and its .h are one: that of the .h, which newcomers
# read first.
purposes() {
	local file says
	for file in "$1"/*.[ch]; do
		[[ $file != *.h || ! -e ${file%.h}.c ]] || continue
		says=$file
		[[ ! -e ${file%.c}.h ]] || says=${file%.c}.h
		printf '%s\t%s\n' "$file" "$(purpose "$says")"
	done
}

# The same as lines of up to 120 characters.
set_out() {
	awk -F '\t' '{
		sub(/.*\//, "", $1)
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

# The text with LIST in the place of its block.
renewed() {
	list="$1" awk '
	/^```$/ { inside = 0 }
	!inside { print }
	/^```text$/ { print ENVIRON["list"]; inside = 1 }' "$text"
}

# The folders of src/, its rooms, and those of tests/ that the text names, one a line; what is in
# a folder is indented below it.
named_folders() {
	awk -v heading="$folders_heading" '
	/^#/ { below = ($0 == heading) }
	below && /^[a-z]+\/[a-z\/]* / { parent = $1; if ($1 ~ /^(src|tests)\//) print $1 }
	below && /^  [a-z]+\/ / { print parent $1 }' "$folders_text" | sort
}

while read -r side folder; do
	case $side in
	'<') object "$folders_text: \"$folders_heading\" does not name $folder" ;;
	'>') object "$folders_text: there is no $folder" ;;
	esac
done < <(diff <(printf '%s\n' src/*/ src/{store,client,cli}/*/ tests/*/ tests/integration/*/ | sort) <(named_folders))

list=
for room in $(rooms); do
	lines=$(purposes "$room")
	while IFS=$'\t' read -r file says; do
		[[ -n $says ]] || object "$file:1: begins with no comment that says what it is for"
	done <<<"$lines"
	list+=$room/$'\n'$(set_out <<<"$lines")$'\n'
done
new=$(renewed "${list%$'\n'}" && echo end)
if [[ ${1:-} == --write ]]; then
	printf '%s' "${new%end}" >"$text"
else
	diff -u --label "$text" --label "first comments" "$text" <(printf '%s' "${new%end}") ||
		object "$text: differs from what the files say; tests/check/map.sh --write renews it"
fi
verdict
