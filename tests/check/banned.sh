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

# A program for awk: FILE:LINE:CODE, without comments, and with blanks in place of what literals hold.
code_of='
FNR == 1 { state = "" }
{
	out = ""
	for (i = 1; i <= length($0); i++) {
		two = substr($0, i, 2); one = substr($0, i, 1)
		if (state == "comment") {
			if (two == "*/") { state = ""; i++ }
			out = out " "
		} else if (state != "") {
			if (one == "\\") i++
			else if (one == state) state = ""
			out = out (one == "\\" ? "  " : one == "\"" ? "\"" : " ")
		} else if (two == "/*") { state = "comment"; out = out "  "; i++ }
		else if (two == "//") break
		else {
			if (one == "\"" || one == "\047") state = one
			out = out one
		}
	}
	if (state != "comment") state = ""
	print FILENAME ":" FNR ":" out
}'

code=$(c_files include src tests examples | xargs awk "$code_of")
library=$(grep '^src/' <<<"$code" | grep -v '^src/cli/')

# search CODE PATTERN WHY
search() {
	local file line text
	while IFS=: read -r file line text; do
		object "$file:$line: $3${text//[$'\t ']/ }"
	done < <(grep -E "^[^:]*:[0-9]*:(.*[^A-Za-z0-9_>.])?($2)" <<<"$1" || true)
}

search "$code" "($everywhere)[ \t]*\(" "banned:"
search "$library" "($in_src)[ \t]*\(" "banned:"
search "$library" '(stdout|stderr)\b' "stdout and stderr are not the library's:"
verdict
