#!/usr/bin/env bash
# compile.sh FOLDER COMPILER: what users copy is C99 and compiles without a warning, an
# ignored result for one, against what install.sh installed into FOLDER: SYNOPSIS and
# EXAMPLES of the pages of section 3, blocks of *.md that are marked c, and samples in the
# headers.
#
#   SYNOPSIS   must declare the function as the header named there does.
#   EXAMPLES   each .Bd -literal is a whole program if it includes something;
#              one with main() is linked too. Else it is the body of
#                  int example(bizlock *lock, bizlock_key key, MYSQL *tx)
#              after `int rc = BIZLOCK_OK;` and before `return rc;`, with die() and
#              work() at hand.
#   *.md       a block of c likewise.
#   headers    lines of a comment that are indented by 5 blanks are such a body, unless
#              they begin with a capital: that is SQL.
set -euo pipefail
source "$(dirname "$0")/common.sh"

folder=$1
CC=$2
libdir=$(cd "$(dirname "$(find "$folder/usr" -name bizlock.pc)")/.." && pwd)
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags <<<"-std=c99 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags bizlock)"

# Each prints the samples of a file, with a line "@sample" before and "@end" behind.
samples_of_page() {
	section "$1" EXAMPLES | awk '
	/^\.Bd -literal/ { inside = 1; print "@sample"; next }
	/^\.Ed/ { inside = 0; print "@end" }
	inside { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub(/\\-/, "-"); print }'
}

samples_of_markdown() {
	awk '
	/^```/ && inside { inside = 0; print "@end"; next }
	/^```c$/ { inside = 1; print "@sample"; next }
	inside' "$1"
}

samples_of_header() {
	awk '
	!inside && /^ \*     [^ A-Z]/ { inside = 1; print "@sample" }
	inside && !/^ \*(     |$)/ { inside = 0; print "@end" }
	inside { print substr($0, 4) }' "$1"
}

# split FOLDER: one file for each sample, named by what it is: 1.body.c, 2.unit.c, 3.program.c
split() {
	awk -v folder="$1" '
	/^@sample$/ { text = ""; count++; next }
	/^@end$/ {
		kind = text !~ /(^|\n)#include/ ? "body" : text ~ /\nint main\(/ ? "program" : "unit"
		printf "%s", text >(folder "/" count "." kind ".c")
		next
	}
	{ text = text $0 "\n" }'
}

wrap() {
	printf '#include <%s>\n' bizlock_tx.h inttypes.h stdio.h stdlib.h string.h
	echo 'void die(const char *why); void work(bizlock *lock, uint64_t fence);'
	echo 'int example(bizlock *lock, bizlock_key key, MYSQL *tx);'
	echo 'int example(bizlock *lock, bizlock_key key, MYSQL *tx)'
	echo '{ int rc = BIZLOCK_OK; (void)lock; (void)key; (void)tx; {'
	cat "$1"
	echo '} return rc; }'
}

# The declarations of a SYNOPSIS. The function is used before them, so that the header
# must declare it: a declaration in the page alone would be enough to compile.
declarations() {
	awk -v function_name="$2" '
	function words(line) { sub(/^\.[A-Z][a-z] /, "", line); gsub(/"/, "", line); return line }
	function done() {
		printf "%s\n%s %s(%s);\n", used, type, fn, args
	}
	BEGIN {
		used = "void (*used_here)(void) = (void (*)(void))" function_name ";"
	}
	/^\.In / { print "#include <" words($0) ">" }
	/^\.Ft / { type = words($0) }
	/^\.Fo / { fn = words($0); args = "" }
	/^\.Fa / { args = args (args == "" ? "" : ", ") words($0) }
	/^\.Fc/ { done() }
	/^\.Fn / {
		line = words($0); fn = line; sub(/ .*/, "", fn)
		args = substr(line, length(fn) + 2)
		done()
	}' "$1"
}

check() {
	"$CC" "${flags[@]}" "$@" >"$work/log" 2>&1 || object "$file: $what:
$(cat "$work/log")"
}

for function in $functions; do
	page=$pages/$function.3
	file=$function.3
	[[ -e $page ]] || continue
	what=SYNOPSIS
	section "$page" SYNOPSIS >"$work/synopsis"
	declarations "$work/synopsis" "$function" >"$work/synopsis.c"
	[[ $(grep -cE "^\.F[no] $function( |$)" "$work/synopsis") == 1 ]] ||
		object "$file: SYNOPSIS does not declare $function"
	check -fsyntax-only "$work/synopsis.c"
done

# compile HOW FILE: its samples, as samples_of_HOW finds them.
compile() {
	local folder=$work/samples source what
	file=$(basename "$2")
	rm -rf "$folder"
	mkdir "$folder"
	"samples_of_$1" "$2" | split "$folder"
	for source in "$folder"/*.c; do
		[[ -e $source ]] || continue
		samples=$((samples + 1))
		what="sample $(basename "$source")"
		case $source in
		*.body.c)
			wrap "$source" >"$source.c"
			check -O1 -c "$source.c" -o /dev/null
			;;
		*.unit.c) check -O1 -c "$source" -o /dev/null ;;
		*) check -O1 "$source" -o "$folder/program" $(pkg-config --libs bizlock) ;;
		esac
	done
}

# at_least N WHERE: that many samples since the last time.
at_least() {
	((samples >= $1)) || object "$2: $samples samples; there must be $1 or more"
	samples=0
}

samples=0
for page in "$pages"/*.3; do
	compile page "$page"
	at_least 1 "$file"
done
for text in "$root"/*.md "$root"/{docs,examples,tests/bench}/*.md; do
	[[ ! -e $text ]] || compile markdown "$text"
done
at_least 1 "*.md"
for header in "$root"/include/*.h; do
	compile header "$header"
done
at_least 1 "include/*.h"
verdict
