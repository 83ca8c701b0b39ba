# Run by CPack on what it is about to pack: adds what Debian wants of a package
# and nobody else, so that `cmake --install` needs no tool for it.

set(source "${CMAKE_CURRENT_LIST_DIR}/../../..")
set(version "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(changelog "bizlock (${version}) unstable; urgency=medium

  * Packed from the source of version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")

# LICENSE, as machines read it: one space in front, a dot on what is empty.
file(READ "${source}/LICENSE" license)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)\n\n(.*)$" found "${license}")
set(holder "${CMAKE_MATCH_1}")
string(REGEX REPLACE "\n$" "" license "${CMAKE_MATCH_2}")
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REGEX REPLACE "\n" "\n " license "\n${license}")
set(copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: bizlock

Files: *
Copyright: ${holder}
License: Expat${license}
")

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
	string(TOUPPER "${component}" upper)
	set(share "${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share")
	file(REMOVE_RECURSE "${share}/doc/bizlock")
	set(doc "${share}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
	file(WRITE "${doc}/copyright" "${copyright}")
	file(WRITE "${doc}/changelog.Debian" "${changelog}")
	file(COPY_FILE "${source}/CHANGELOG.md" "${doc}/changelog")
	file(GLOB compressed "${doc}/changelog*" "${share}/man/man*/*.[1-9]")
	execute_process(COMMAND gzip -9n ${compressed} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
