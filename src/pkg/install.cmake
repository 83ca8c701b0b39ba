# What is installed, in three components, for whoever installs a part:
#   runtime   what programs need that were linked with bizlock
#   dev       what it takes to compile and link one
#   tools     bizlock(1)

include(CMakePackageConfigHelpers)

set_target_properties(bizlock_static PROPERTIES EXPORT_NAME static)
set_target_properties(bizlock_connector PROPERTIES EXPORT_NAME connector)
install(TARGETS bizlock EXPORT bizlock LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
	INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS bizlock_static EXPORT bizlock COMPONENT dev
	INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS bizlock_connector EXPORT bizlock)
install(DIRECTORY include/ TYPE INCLUDE COMPONENT dev FILES_MATCHING
	PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${sql_files} ${sql_routines} DESTINATION "${CMAKE_INSTALL_DATADIR}/bizlock/sql" COMPONENT dev)
# Not TYPE DOC: that is the folder of the project which bizlock may be a part of.
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/bizlock" COMPONENT dev)

# A connector that pkg-config does not know is written out.
set(connector_cflags "")
set(connector_libs "")
if(NOT bizlock_connector_module)
	list(JOIN bizlock_connector_folders " -I" connector_cflags)
	string(PREPEND connector_cflags " -I")
	list(JOIN bizlock_connector_files " " connector_libs)
endif()
set(atomic_libs "")
if(bizlock_atomic)
	set(atomic_libs " -latomic")
endif()
configure_file(src/pkg/bizlock.pc.in bizlock.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bizlock.pc"
	DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bizlock")
install(EXPORT bizlock NAMESPACE bizlock:: FILE bizlockTargets.cmake
	DESTINATION "${package_dir}" COMPONENT dev)
configure_package_config_file(src/pkg/bizlockConfig.cmake.in bizlockConfig.cmake
	INSTALL_DESTINATION "${package_dir}")
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(bizlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bizlockConfig.cmake"
	"${PROJECT_BINARY_DIR}/bizlockConfigVersion.cmake" src/pkg/connector.cmake
	DESTINATION "${package_dir}" COMPONENT dev)

foreach(section 1 3 7 8)
	file(GLOB manual_pages CONFIGURE_DEPENDS src/man/*.${section})
	set(component dev)
	if(section MATCHES "1|8")
		set(component tools)
	endif()
	if(manual_pages)
		install(FILES ${manual_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}"
			COMPONENT ${component})
	endif()
endforeach()

# The reaper's timer and line for cron. systemd looks for units below every prefix
# that is usual; whoever installs starts them.
if(TARGET bizlock_cli)
	configure_file(src/pkg/systemd/bizlock-reaper.service.in bizlock-reaper.service @ONLY)
	configure_file(src/pkg/cron/bizlock-reaper.in bizlock-reaper.cron @ONLY)
	install(FILES "${PROJECT_BINARY_DIR}/bizlock-reaper.service"
		src/pkg/systemd/bizlock-reaper.timer
		DESTINATION lib/systemd/system COMPONENT tools)
	install(FILES "${PROJECT_BINARY_DIR}/bizlock-reaper.cron"
		DESTINATION "${CMAKE_INSTALL_DATADIR}/bizlock/cron.d"
		RENAME bizlock-reaper COMPONENT tools)
endif()
