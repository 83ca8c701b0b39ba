# Finds the client library. Included by the build and, since it is installed, by
# find_package(bizlock), so that both find the same one in the same way.

find_package(PkgConfig QUIET)

# bizlock_find_connector(TARGET KIND): adds what the client library KIND, mariadb or mysql, asks of
# a compiler and a linker to the INTERFACE library TARGET. Sets
#   bizlock_connector_found      empty: it is not there
#   bizlock_connector_module     of pkg-config, or empty: it was found without it
#   bizlock_connector_version    as MariaDB's header says, or else pkg-config; may be empty
#   bizlock_connector_folders    of headers
#   bizlock_connector_files      libraries
function(bizlock_find_connector target kind)
	set(library mysqlclient)
	set(module mysqlclient)
	if(kind STREQUAL "mariadb")
		set(library mariadb)
		set(module libmariadb)
	endif()
	# A variable in the cache is named after bizlock: the cache may be that of another project.
	set(found bizlock_${kind})
	if(PkgConfig_FOUND)
		pkg_check_modules(${found} QUIET ${module})
	endif()
	if(${found}_FOUND)
		set(folders ${${found}_INCLUDE_DIRS})
		set(files ${${found}_LINK_LIBRARIES})
	else()
		find_path(${found}_folder mysql.h PATH_SUFFIXES ${kind})
		find_library(${found}_file ${library})
		mark_as_advanced(${found}_folder ${found}_file)
		set(module "")
		set(folders ${${found}_folder})
		set(files ${${found}_file})
	endif()
	set(version "${${found}_VERSION}")
	set(number "")
	foreach(folder IN LISTS folders)
		if(EXISTS "${folder}/mariadb_version.h")
			file(STRINGS "${folder}/mariadb_version.h" line
				REGEX "define MARIADB_PACKAGE_VERSION_ID ")
			string(REGEX MATCH "[0-9]+" number "${line}")
		endif()
	endforeach()
	if(number)
		math(EXPR major "${number} / 10000")
		math(EXPR minor "${number} / 100 % 100")
		math(EXPR patch "${number} % 100")
		set(version ${major}.${minor}.${patch})
	endif()
	set(bizlock_connector_found "" PARENT_SCOPE)
	if((NOT ${found}_FOUND) AND (NOT ${found}_folder OR NOT ${found}_file))
		return()
	endif()
	# Not in what is installed: each machine finds its own.
	target_include_directories(${target} SYSTEM INTERFACE "$<BUILD_INTERFACE:${folders}>")
	target_link_libraries(${target} INTERFACE "$<BUILD_INTERFACE:${files}>")
	set(bizlock_connector_found 1 PARENT_SCOPE)
	set(bizlock_connector_module "${module}" PARENT_SCOPE)
	set(bizlock_connector_version "${version}" PARENT_SCOPE)
	set(bizlock_connector_folders "${folders}" PARENT_SCOPE)
	set(bizlock_connector_files "${files}" PARENT_SCOPE)
endfunction()
