#!/usr/bin/env bash
# A file fits on a few screens, a function on one: ceilings, not knives. A file is cut by its idea.
# Public headers are manuals, and as long as what they have to say. No folder of src is a list, and
# a file's name says what it holds, so no other file of src has it.
set -euo pipefail
source "$(dirname "$0")/common.sh"

file_limit=600
function_limit=60
folder_limit=16 # of .c files

while read -r lines file; do
	[[ $file == total ]] || ((lines <= file_limit)) ||
		object "$file:1: $lines lines; the limit is $file_limit"
done < <(c_files src tests examples | xargs wc -l)
while read -r files folder; do
	((files <= folder_limit)) || object "$folder/: $files files; the limit is $folder_limit"
done < <(c_files src | sed -n 's,/[^/]*\.c$,,p' | sort | uniq -c)
for name in $(c_files src | sed 's,.*/,,' | sort | uniq -d); do
	object "src: two files are called $name"
done
((objections == 0)) || verdict

[[ $(ctags --version 2>/dev/null) == *Universal* ]] || skip "universal-ctags is not installed"
while read -r start end file name; do
	lines=$((end - start + 1))
	((lines <= function_limit)) ||
		object "$file:$start: $name() has $lines lines; the limit is $function_limit"
done < <(c_files include src tests examples |
	xargs ctags -o - --languages=C,C++ --langmap=C:.c.h,C++:.cpp.hpp --kinds-C=f --kinds-C++=f --fields=+ne |
	sed -nE 's,^([^\t]+)\t([^\t]+)\t.*\tline:([0-9]+).*\tend:([0-9]+).*,\3 \4 \2 \1,p')
verdict
