#!/usr/bin/env bash
# Nothing public is missing from the pages of section 3: functions, sections, the
# errors that the headers name, the X-macro's numbers and texts, options with
# their variables and defaults, macros and flags, members of structs; and the
# pages name nothing that is not there.
set -euo pipefail
source "$(dirname "$0")/common.sh"
headers=("$root"/include/*.h)

# ---- a page for each function, with its sections ------------------------------

for function in $functions; do
	page=$pages/$function.3
	[[ -e $page ]] || {
		object "$function() has no page: write src/man/$function.3"
		continue
	}
	sections=(NAME SYNOPSIS DESCRIPTION 'RETURN VALUES' EXAMPLES 'SEE ALSO')
	! grep -qx '\.Ft int' "$page" || sections+=(ERRORS)
	for section in "${sections[@]}"; do
		grep -qx "\.Sh $section" "$page" || object "$function.3: has no section $section"
	done
	grep -qx "\.It Xr $function 3" "$pages/bizlock.3" ||
		object "bizlock.3: does not list $function"
done
for page in "$pages"/bizlock_*.3; do
	function=$(basename "$page" .3)
	grep -qx "$function" <<<"$functions" || object "$function.3: there is no such function"
done

# ---- errors -------------------------------------------------------------------

errors=$(sed -nE 's/^\tX\(([A-Z_]+), ([0-9]+), "(.*)"\).*/\1 \2 \3/p' "$root/include/bizlock.h")
some "$errors" "error in BIZLOCK_ERRORS"
# Compared word by word, so that a part of a text does not count as the whole.
as_words() {
	tr -s '\n.,:; ' ' '
}
words=$(sed '/^\.\(It\|Sh\)/!s/^\.[A-Z][a-z] //' "$pages/bizlock.3" | as_words)
while read -r error number text; do
	grep -qF "It Er BIZLOCK_$error No ($number) $(as_words <<<"$text")" <<<"$words" ||
		object "bizlock.3: does not say: BIZLOCK_$error ($number) $text"
done <<<"$errors"

# "function ERROR" for each error in the comment before a function's declaration.
named=$(awk -v names="$(cut -d' ' -f1 <<<"$errors" | paste -sd '|')" '
	/^\/\*/ { comment = "" }
	/^\/\*/, /\*\// { comment = comment " " $0; next }
	/^BIZLOCK_API/ { inside = 1; declaration = "" }
	inside { declaration = declaration " " $0 }
	inside && /;/ {
		inside = 0
		match(declaration, /bizlock_[a-z_]+\(/)
		fn = substr(declaration, RSTART, RLENGTH - 1)
		count = split(comment, word, /[^A-Z_]+/)
		for (i = 1; i <= count; i++)
			if (word[i] ~ "^(" names ")$" && word[i] != "OK") print fn, word[i]
	}' "${headers[@]}" | sort -u)
some "$named" "error in the headers' comments"
while read -r function error; do
	page=$pages/$function.3
	[[ ! -e $page ]] || grep -q "BIZLOCK_$error\b" "$page" ||
		object "$function.3: the header names $error, the page does not"
done <<<"$named"

# ---- options of bizlock_set() -------------------------------------------------

table=$(tr '\n' ' ' <"$root/src/core/config.c" |
	grep -oE '\[BL_OPT_[A-Z_]+\] = +\{[^}]*\}' | sed 's/.*{FIELD(\([a-z_]*\))/"\1"/; s/}//')
some "$table" "option in src/core/config.c"
items=$(section "$pages/bizlock_set.3" DESCRIPTION | awk '
	/^\.It/ { printf "\n" } { sub(/^\.It/, "It"); printf "%s ", $0 }')
while IFS=, read -r option _ _ _ initial _; do
	option=$(tr -d '" ' <<<"$option")
	initial=$(tr -d '" ' <<<"$initial")
	item=$(grep -E "^It .*\bCm $option\b" <<<"$items") || {
		object "bizlock_set.3: does not tell of the option $option"
		continue
	}
	[[ -z $initial || $initial == NULL ]] || grep -qwF -- "$initial" <<<"$item" ||
		object "bizlock_set.3: does not say that $initial is the default of $option"
	grep -qE "^\.Ev BIZLOCK_${option^^}( |$)" "$pages/bizlock_set.3" ||
		object "bizlock_set.3: does not tell of the variable BIZLOCK_${option^^}"
done <<<"$table"
while read -r option; do
	grep -q "^\"$option\"," <<<"$table" || object "bizlock_set.3: there is no option $option"
done < <(grep '^It Cm' <<<"$items" | grep -oE 'Cm [a-z_]+' | sed 's/Cm //')

# ---- macros, flags, members ----------------------------------------------------

# Comments are not the interface; what ends in _ is for the macros' own use.
code=$(awk '{ gsub(/\/\*.*\*\//, "") } /\/\*/ { skip = 1 } !skip; /\*\// { skip = 0 }' "${headers[@]}")
macros=$(grep -oE '\bBIZLOCK_[A-Z_]*[A-Z]\b' <<<"$code" |
	grep -vxE 'BIZLOCK_(API|MUST_CHECK|H|OPS_H|TX_H|ASYNC_H)' | sort -u)
some "$macros" "macro"
used=$(sed '/^\.Dt/d' "$pages"/*.[37] | grep -oE '\bBIZLOCK_[A-Z_]*[A-Z]\b' | sort -u)
for macro in $(comm -23 <(echo "$macros") <(echo "$used")); do
	object "$macro is in no page"
done
known=$(echo "$macros" && cut -d' ' -f1 <<<"$errors" | sed 's/^/BIZLOCK_/' &&
	sed -E 's/^"([a-z_]+)".*/BIZLOCK_\U\1/' <<<"$table")
for macro in $(comm -13 <(sort -u <<<"$known") <(echo "$used")); do
	object "there is no $macro, which $(cd "$pages" && grep -lw "$macro" ./*.[37] | paste -sd ' ') names"
done

members=$(awk '
	/^typedef struct bizlock_[a-z_]+ \{/ { inside = 1; next }
	/^\}/ { inside = 0 }
	inside { gsub(/\[[^]]*\]|\)\([^)]*\)/, ""); n = split($0, part, /[,;]/)
		for (i = 1; i < n; i++) { sub(/.*[ *]/, "", part[i]); print part[i] } }' <<<"$code" | sort -u)
some "$members" "member of a struct"
for member in $members; do
	grep -qE "^\.(It )?Fa .*\b$member\b" "$pages"/*.3 || object "the member $member is in no page"
done
verdict
