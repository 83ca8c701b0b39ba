# Finds the client library and makes the target bizlock_connector, which is not
# exported: bizlock.h names no type of it. Sets connector_name, which is mariadb or
# mysqlclient, and for bizlock.pc:
#   connector_requires  the module, if pkg-config found it
#   connector_libs      the linker's words, if not

find_package(PkgConfig)

function(find_connector module library header_folder)
	if(PkgConfig_FOUND)
		pkg_check_modules(connector_${library} QUIET IMPORTED_TARGET ${module})
	endif()
	if(connector_${library}_FOUND)
		add_library(bizlock_connector INTERFACE)
		target_link_libraries(bizlock_connector INTERFACE PkgConfig::connector_${library})
		set(connector_name ${library} PARENT_SCOPE)
		set(connector_requires ${module} PARENT_SCOPE)
		set(connector_libs "" PARENT_SCOPE)
		message(STATUS "Connector: ${module} ${connector_${library}_VERSION}")
		return()
	endif()
	find_path(connector_${library}_include mysql.h PATH_SUFFIXES ${header_folder})
	find_library(connector_${library}_file ${library})
	mark_as_advanced(connector_${library}_include connector_${library}_file)
	if(NOT connector_${library}_include OR NOT connector_${library}_file)
		return()
	endif()
	add_library(bizlock_connector INTERFACE)
	target_include_directories(bizlock_connector SYSTEM INTERFACE
		"${connector_${library}_include}")
	target_link_libraries(bizlock_connector INTERFACE "${connector_${library}_file}")
	get_filename_component(folder "${connector_${library}_file}" DIRECTORY)
	set(connector_name ${library} PARENT_SCOPE)
	set(connector_requires "" PARENT_SCOPE)
	set(connector_libs "-L${folder} -l${library}" PARENT_SCOPE)
	message(STATUS "Connector: ${connector_${library}_file}")
endfunction()

if(NOT BIZLOCK_CONNECTOR MATCHES "^(auto|mariadb|mysql)$")
	message(FATAL_ERROR "BIZLOCK_CONNECTOR is \"${BIZLOCK_CONNECTOR}\"; "
		"it must be auto, mariadb or mysql.")
endif()
if(BIZLOCK_CONNECTOR MATCHES "auto|mariadb")
	find_connector(libmariadb mariadb mariadb)
endif()
if(BIZLOCK_CONNECTOR MATCHES "auto|mysql" AND NOT TARGET bizlock_connector)
	find_connector(mysqlclient mysqlclient mysql)
endif()
if(NOT TARGET bizlock_connector)
	message(FATAL_ERROR "No client library found (BIZLOCK_CONNECTOR=${BIZLOCK_CONNECTOR}). "
		"bizlock needs MariaDB Connector/C (Debian: libmariadb-dev, "
		"Fedora: mariadb-connector-c-devel) or libmysqlclient (libmysqlclient-dev, "
		"mysql-devel), and finds them best by pkg-config.")
endif()
