#!/usr/bin/env bash
# Functions that have no place here. Everywhere: no bounds, no errors, or not
# thread-safe. In src: a library neither prints nor exits, and signals are its
# user's; src/cli is a program.
set -euo pipefail
source "$(dirname "$0")/common.sh"

everywhere='sprintf|vsprintf|strcpy|strcat|stpcpy|strncpy|strncat|gets|atoi|atol|atoll|atof'
everywhere+='|strtok|localtime|gmtime|ctime|asctime|rand|srand|random|srandom|drand48'
everywhere+='|tmpnam|tempnam|mktemp|alloca|gethostbyname'
in_src='printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|putc|fputc|fwrite|perror|psignal'
in_src+='|exit|_exit|_Exit|quick_exit|abort|atexit|system|popen'
in_src+='|signal|sigaction|raise|kill|alarm|setenv|putenv|unsetenv'

search() {
	local words=$1 file line text
	shift
	for file in $(c_files "$@"); do
		while IFS=: read -r line text; do
			object "$file:$line: banned:${text//[$'\t ']/ }"
		done < <(code_of "$file" | grep -nE "(^|[^A-Za-z0-9_>.])($words)[ \t]*\(" || true)
	done
}

search "$everywhere" include src tests examples
mapfile -t layers < <(find src -mindepth 1 -maxdepth 1 -type d ! -name cli)
search "$in_src" "${layers[@]}"
for file in $(c_files "${layers[@]}"); do
	while IFS=: read -r line _; do
		object "$file:$line: stdout and stderr are not the library's"
	done < <(code_of "$file" | grep -nE '\b(stdout|stderr)\b' || true)
done
verdict
