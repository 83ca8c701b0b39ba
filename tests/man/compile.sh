#!/usr/bin/env bash
# compile.sh FOLDER COMPILER: what users copy is C99, or C++11, and compiles without a warning,
# an ignored result for one, against what install.sh installed into FOLDER: SYNOPSIS and
# EXAMPLES of the pages of section 3, blocks of *.md that are marked c or cpp, and samples in
# the headers.
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
#   C++        what is not a whole file is the body of int example(), before `return 0;`,
#              with work() at hand. Without a C++ compiler it is left out.
set -euo pipefail
source "$(dirname "$0")/common.sh"

folder=$1
CC=$2
CXX=${CXX:-c++}
libdir=$(cd "$(dirname "$(find "$folder/usr" -name bizlock.pc)")/.." && pwd)
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags <<<"-Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags bizlock)"
declare -A compilers=([c]="$CC -std=c99" [cpp]="$CXX -std=c++11")

# Each prints the samples of a file in $language, with a line "@sample" before and "@end" behind.
samples_of_page() {
	section "$1" EXAMPLES | awk '
	/^\.Bd -literal/ { inside = 1; print "@sample"; next }
	/^\.Ed/ { inside = 0; print "@end" }
	inside { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub(/\\-/, "-"); print }'
}

samples_of_markdown() {
	awk -v mark="\`\`\`$language" '
	/^```/ && inside { inside = 0; print "@end"; next }
	$0 == mark { inside = 1; print "@sample"; next }
	inside' "$1"
}

samples_of_header() {
	awk '
	!inside && /^ \*     [^ A-Z]/ { inside = 1; print "@sample" }
	inside && !/^ \*(     |$)/ { inside = 0; print "@end" }
	inside { print substr($0, 4) }' "$1"
}

# split FOLDER: one file for each sample, named by what it is: 1.body.c, 2.unit.c, 3.program.cpp
split() {
	awk -v folder="$1" -v language="$language" '
	/^@sample$/ { text = ""; count++; next }
	/^@end$/ {
		kind = text !~ /(^|\n)#include/ ? "body" : text ~ /\nint main\(/ ? "program" : "unit"
		printf "%s", text >(folder "/" count "." kind "." language)
		next
	}
	{ text = text $0 "\n" }'
}

wrap_c() {
	printf '#include <%s>\n' bizlock_async.h bizlock_tx.h inttypes.h poll.h stdio.h stdlib.h string.h
	echo 'void die(const char *why); void work(bizlock *lock, uint64_t fence);'
	echo 'int example(bizlock *lock, bizlock_key key, MYSQL *tx);'
	echo 'int example(bizlock *lock, bizlock_key key, MYSQL *tx)'
	echo '{ int rc = BIZLOCK_OK; (void)lock; (void)key; (void)tx; {'
	cat "$1"
	echo '} return rc; }'
}

wrap_cpp() {
	echo '#include <bizlock_async.hpp>'
	echo 'void work(std::uint64_t fence, std::chrono::milliseconds left);'
	echo 'int example();'
	echo 'int example() {'
	cat "$1"
	echo 'return 0; }'
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
	${compilers[$language]} "${flags[@]}" "$@" >"$work/log" 2>&1 || object "$file: $what:
$(cat "$work/log")"
}

language=c
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
	for source in "$folder"/*; do
		[[ -e $source ]] || continue
		samples=$((samples + 1))
		what="sample $(basename "$source")"
		case $source in
		*.body.*)
			"wrap_$language" "$source" >"$work/body.$language"
			check -O1 -c "$work/body.$language" -o /dev/null
			;;
		*.unit.*) check -O1 -c "$source" -o /dev/null ;;
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
compile_texts() {
	for text in "$root"/*.md "$root"/{docs,examples,tests/bench}/*.md; do
		[[ ! -e $text ]] || compile markdown "$text"
	done
}

# compile_headers ENDING
compile_headers() {
	for header in "$root"/include/*."$1"; do
		compile header "$header"
	done
	at_least 1 "include/*.$1"
}

compile_texts
at_least 1 "*.md"
compile_headers h

command -v "$CXX" >/dev/null || {
	echo "[SKIP] man: no C++ compiler"
	verdict
}
language=cpp
compile_texts
compile_headers hpp
verdict
