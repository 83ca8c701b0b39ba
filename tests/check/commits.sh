#!/usr/bin/env bash
# The message of a commit names the area and says why: whoever asks a line where it comes from has
# nothing else to go by. Judged is what was written when this rule was there: the commits of HEAD
# that have the one which added this file among their ancestors. Merges are left out. There may be
# thousands of commits, so that bash alone looks at each.
set -euo pipefail
source "$(dirname "$0")/common.sh"
export LC_ALL=C.UTF-8 # a subject's length is in characters
shopt -s nocasematch

subject_limit=72
area='[a-z0-9_.-]+(/[a-z0-9_.-]+)*'
form="^($area(, $area)*): [^ ]"
# `Reviewed-by: ...` says who, not why.
trailer='^[a-z]+(-[a-z]+)*: '

# AREA is of PATHS: `client/pool` is of src/client/conn/pool.c, and of no path is `fix`.
names_one() {
	local part pattern=$'(^|[/\n])' between=
	for part in ${1//\// }; do
		pattern+="$between${part//./\\.}"
		between=$'[^/\n]*/([^\n]*/)?'
	done
	[[ $2 =~ $pattern ]]
}

says_why() {
	local line
	while IFS= read -r line; do
		[[ ! $line =~ [^[:space:]] || $line =~ $trailer ]] || return 0
	done <<<"$1"
	return 1
}

# check COMMIT SUBJECT BODY PATHS
check() {
	local area areas
	((${#2} < subject_limit)) ||
		object "$1: a subject of ${#2} characters; it is to have fewer than $subject_limit: $2"
	if [[ ! $2 =~ $form ]]; then
		object "$1: a subject that is not \"area/file: what\": $2"
	elif [[ -n ${4//[[:space:]]} ]]; then
		IFS=', ' read -ra areas <<<"${BASH_REMATCH[1]}"
		for area in "${areas[@]}"; do
			names_one "$area" "$4" || object "$1: changes no file of \"$area\": $2"
		done
	fi
	says_why "$3" || object "$1: no body says why: $2"
}

prefix=$(git rev-parse --show-prefix 2>/dev/null) || skip "not here: no git, or no history that it reads"
[[ -z $prefix ]] || skip "not here: the history is of more than this project"
[[ $(git rev-parse --is-shallow-repository) == false ]] || skip "not here: a shallow clone"
rule=$(git log --diff-filter=A --format=%H -- tests/check/commits.sh | tail -n 1)
[[ -n $rule ]] || skip "not here: no commit has added the rule yet"

# No message has the characters that end a commit and a field.
log=$(git -c core.quotePath=false log --no-merges --ancestry-path --name-only --no-renames \
	--format=$'\x1e%h\x1f%s\x1f%b\x1f' "$rule..HEAD")
while IFS=$'\x1f' read -r -d $'\x1e' hash subject body paths; do
	[[ -z $hash ]] || check "$hash" "$subject" "$body" "$paths"
done <<<"$log"$'\x1e'
verdict
