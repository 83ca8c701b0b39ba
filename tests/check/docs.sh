#!/usr/bin/env bash
# What the texts point to is there: files, headings, and the tests that they name.
set -euo pipefail
source "$(dirname "$0")/common.sh"

# As the marks behind '#' in links are made of headings.
headings() {
	sed -nE '/^```/,/^```$/!s/^#+ +//p' "$1" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9_\n-'
}

check_link() {
	local file=$1 to=${2%%#*} mark=${2#*#}
	to=${to:+$(dirname "$file")/$to}
	to=${to:-$file}
	[[ -e $to ]] || object "$file: there is no $2"
	[[ $2 != *'#'* || ! -f $to ]] || grep -qxF -- "$mark" < <(headings "$to") ||
		object "$file: $2: there is no such heading"
}

# SUITE::TEST, where TEST may have a *; cli.SCRIPT::TEST; fault.NAME and stress.NAME.
check_test() {
	local file=$1 suite=${2%%::*} test=${2##*::}
	case $2 in
	std::* | bizlock::*) ;; # names of C++
	cli.*::*) grep -qE "^${test//\*/.*}\(\)" "tests/cli/test_${suite#cli.}.sh" ;;
	*::*) grep -rqE "\b(Test|[A-Z_]+)\($suite, ${test//\*/.*}" tests/integration tests/cluster tests/unit ;;
	*) compgen -G "tests/${2%%.*}/${2#*.}*" >/dev/null ;;
	esac || object "$file: there is no test $2"
}

for file in ./*.md docs/*.md examples/*.md tests/*/*.md; do
	while read -r link; do
		check_link "$file" "$link"
	done < <(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//' | grep -v '^https\?:' || true)
	while read -r path; do
		[[ -e $path ]] || object "$file: there is no $path"
	done < <(grep -oE '`(src|sql|include|examples|tests|docs)/[A-Za-z0-9_./-]+`' "$file" | tr -d '`' || true)
	while read -r test; do
		check_test "$file" "$test"
	done < <(grep -oE '`([a-z_]+::[a-z_*]+|(fault|stress)\.[a-z_]+)`' "$file" | tr -d '`' || true)
done
# The steps of the models are functions.
file=tests/model/README.md
while read -r path; do
	[[ -e src/$path ]] || object "$file: there is no src/$path"
done < <(grep -oE '`[a-z_]+/[a-z_/]+\.[ch]`' "$file" | tr -d '`' | sort -u)
while read -r function; do
	grep -rqE "\b$function\(" src --include='*.[ch]' || object "$file: there is no function $function()"
done < <(grep -oE '`[a-z_]+\(\)`' "$file" | tr -d '`()' | sort -u)
for file in src/man/*.[1-8]; do
	while read -r test; do
		check_test "$file" "$test"
	done < <(grep -E '(::|^(fault|stress)\.)' "$file" |
		grep -oE '(cli\.)?[a-z_]+::[a-z_*]+|\b(fault|stress)\.[a-z_]+' || true)
done
verdict
