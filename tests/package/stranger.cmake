# A project that knows nothing of bizlock but its name.
cmake_minimum_required(VERSION 3.20)
project(stranger LANGUAGES C)
find_package(bizlock ${WANTED} REQUIRED)
foreach(program hello version)
	add_executable(${program} ${program}.c)
	target_link_libraries(${program} PRIVATE bizlock::bizlock)
endforeach()
