# cmake -DFILES=a.sql;b.sql -DROUTINES=r.sql -DOUT=x.c -P embed_sql.cmake
# Writes the files as bl_migrations[] and bl_routines_sql (src/store/table/migrations.h). Each byte becomes
# a character constant: string literals have length limits, and escapes that
# run into the digit behind them.

# embed(FILE NAME): appends an array of that name to `arrays`.
function(embed file name)
	file(READ "${file}" hex HEX)
	string(REGEX REPLACE "(..)" "\\1 " bytes "${hex}")
	if(bytes MATCHES "(^| )00 ")
		message(FATAL_ERROR "${file}: holds a NUL, which would cut the text short.")
	endif()
	string(REGEX REPLACE "(..) " "'\\\\x\\1', " bytes "${bytes}")
	set(arrays "${arrays}const char ${name}[] = {${bytes}0};\n" PARENT_SCOPE)
endfunction()

list(SORT FILES)
set(arrays "")
set(rows "")
set(count 0)
foreach(file IN LISTS FILES)
	get_filename_component(name "${file}" NAME_WE)
	math(EXPR count "${count} + 1")
	if(NOT name MATCHES "^0*([1-9][0-9]*)_" OR NOT CMAKE_MATCH_1 EQUAL count)
		message(FATAL_ERROR "${file}: the files of sql/ are numbered 001_, 002_, ... "
			"without gaps; here ${count} should stand.")
	endif()
	embed("${file}" "bl_sql_${name}")
	string(APPEND rows "\t{${count}, \"${name}.sql\", bl_sql_${name}},\n")
endforeach()
if(count EQUAL 0)
	message(FATAL_ERROR "sql/ holds no file.")
endif()
embed("${ROUTINES}" bl_routines_sql)

file(WRITE "${OUT}.new" "/* Made from sql/ by src/pkg/embed_sql.cmake. */
#include \"store/table/migrations.h\"

${arrays}
const struct bl_migration bl_migrations[] = {
${rows}};

const size_t bl_migration_count = ${count};
")
file(RENAME "${OUT}.new" "${OUT}")
