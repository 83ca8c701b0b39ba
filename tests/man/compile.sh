#!/usr/bin/env bash
# compile.sh FOLDER COMPILER: SYNOPSIS and EXAMPLES of the pages of section 3 are
# C99 and compile without a warning against what install.sh installed into FOLDER.
#
#   SYNOPSIS   must declare the function as the header named there does.
#   EXAMPLES   each .Bd -literal is a program by itself if it includes something;
#              one with main() is linked too. Else it is the body of
#                  int example(bizlock *lock, bizlock_key key, MYSQL *tx)
#              after `int rc = BIZLOCK_OK;` and before `return rc;`.
set -euo pipefail
source "$(dirname "$0")/common.sh"

folder=$1
CC=$2
libdir=$(cd "$(dirname "$(find "$folder/usr" -name bizlock.pc)")/.." && pwd)
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags <<<"-std=c99 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags bizlock)"

# One file for each example, named by what it is: 1.body.c, 2.unit.c, 3.program.c
extract_examples() {
	section "$1" EXAMPLES | awk -v folder="$2" '
	/^\.Bd -literal/ { inside = 1; text = ""; count++; next }
	/^\.Ed/ {
		kind = text !~ /(^|\n)#include/ ? "body" : text ~ /\nint main\(/ ? "program" : "unit"
		printf "%s", text >(folder "/" count "." kind ".c")
		inside = 0
	}
	inside { gsub(/\\e/, "\\"); gsub(/\\&/, ""); gsub(/\\-/, "-"); text = text $0 "\n" }'
}

wrap() {
	printf '#include <%s>\n' bizlock_tx.h inttypes.h stdio.h stdlib.h string.h
	echo 'int example(bizlock *lock, bizlock_key key, MYSQL *tx);'
	echo 'int example(bizlock *lock, bizlock_key key, MYSQL *tx)'
	echo '{ int rc = BIZLOCK_OK; (void)lock; (void)key; (void)tx; {'
	cat "$1"
	echo '} return rc; }'
}

# The declarations of a SYNOPSIS. Its function is used first, so that the header
# must have it: a declaration alone would invent one.
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

for page in "$pages"/*.3; do
	file=$(basename "$page")
	folder=$work/$file
	mkdir "$folder"
	extract_examples "$page" "$folder"
	compgen -G "$folder/*.c" >/dev/null || object "$file: has no example"
	for source in "$folder"/*.c; do
		what="example $(basename "$source")"
		case $source in
		*.body.c)
			wrap "$source" >"$source.c"
			check -O1 -c "$source.c" -o /dev/null
			;;
		*.unit.c) check -O1 -c "$source" -o /dev/null ;;
		*) check -O1 "$source" -o "$folder/program" $(pkg-config --libs bizlock) ;;
		esac
	done
done
verdict
