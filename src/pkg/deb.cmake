# The Debian packages, one for each component of install.cmake:
#   cmake -S . -B build -DCMAKE_INSTALL_PREFIX=/usr && cmake --build build
#   cd build && cpack
# Who builds them for others sets CPACK_PACKAGE_CONTACT to where bugs should go.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_COMPONENTS_ALL runtime dev)
if(TARGET bizlock_cli)
	list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
if(NOT CPACK_PACKAGE_CONTACT)
	set(CPACK_PACKAGE_CONTACT "The bizlock authors <authors@bizlock.invalid>")
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(same_version "= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libbizlock0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/src/pkg/deb/triggers")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
	"distributed, reentrant locks in MySQL or MariaDB
Locks for programs on many machines, kept as rows of one InnoDB table, with
a lease and a fencing token, in the server the programs use already.
.
This package holds the shared library.")

set(connector_package libmariadb-dev)
if(connector_kind STREQUAL "mysql")
	set(connector_package libmysqlclient-dev)
endif()
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libbizlock-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# For bizlock_tx.h, and for programs that are linked statically.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libbizlock0 (${same_version}), ${connector_package}")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "bizlock-tools (${same_version})")
set(CPACK_DEBIAN_DEV_DESCRIPTION
	"distributed locks in MySQL or MariaDB (development files)
Locks for programs on many machines, kept as rows of one InnoDB table, with
a lease and a fencing token, in the server the programs use already.
.
This package holds what it takes to compile and link such programs: headers,
static library, manual pages, and the tables as SQL.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME bizlock-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION database)
# Where bizlock(7) is.
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "libbizlock-dev (${same_version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libbizlock0 (${same_version})")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION
	"distributed locks in MySQL or MariaDB (command line tools)
Runs commands under locks that hold on many machines, shows who holds and
waits, and purges what is stale. The locks are rows of one InnoDB table.
.
This package holds bizlock(1) and bizlock-reaper(8), with a timer for systemd
that is not enabled, and an example for cron.")

# Else it would become the first line of each description.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/src/pkg/deb/finish.cmake")
include(CPack)
